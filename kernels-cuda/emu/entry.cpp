// The one function that the crate calls.
#include "launch.h"

#include <cstring>

namespace emu {
extern const Kernel KERNELS[];
}

// Runs the kernel of this name; the sizes of the arguments must be those of its parameters.
extern "C" int tandem_emu_launch(const char *name, const unsigned *grid, const unsigned *extent, void **values,
                                 const std::size_t *sizes, std::size_t count, std::uint64_t seed) {
    const emu::Kernel *kernel = emu::KERNELS;
    while (kernel->name && std::strcmp(kernel->name, name) != 0) kernel++;
    if (!kernel->name) return (int)emu::Outcome::unknown;
    for (std::size_t i = 0; i <= count; i++) {
        if (kernel->sizes[i] != (i < count ? sizes[i] : 0)) return (int)emu::Outcome::sizes;
    }
    return (int)emu::launch(*kernel, {grid[0], grid[1], grid[2]}, {extent[0], extent[1], extent[2]}, values, seed);
}
