// The functions that the crate calls.
#include "launch.h"

#include <cstring>

namespace emu {
extern const Kernel KERNELS[];
}

// Runs the kernel of this name; the sizes of the arguments must be those of its parameters.
extern "C" int tandem_emu_launch(const char *name, const unsigned *grid, const unsigned *extent, unsigned shared_bytes,
                                 unsigned cluster, void **values, const std::size_t *sizes, std::size_t count,
                                 std::uint64_t seed) {
    const emu::Kernel *kernel = emu::KERNELS;
    while (kernel->name && std::strcmp(kernel->name, name) != 0) kernel++;
    if (!kernel->name) return (int)emu::Outcome::unknown;
    for (std::size_t i = 0; i <= count; i++) {
        if (kernel->sizes[i] != (i < count ? sizes[i] : 0)) return (int)emu::Outcome::sizes;
    }
    emu::Shape shape = {{grid[0], grid[1], grid[2]}, {extent[0], extent[1], extent[2]}, shared_bytes, cluster};
    return (int)emu::launch(*kernel, shape, values, seed);
}

// What the last launch failed of; valid until the next.
extern "C" const char *tandem_emu_message() { return emu::message().c_str(); }

// The sites that launches so far came by, a line each; valid until the next call.
extern "C" const char *tandem_emu_sites() {
    static std::string text;
    text.clear();
    for (const std::string &site : emu::known_sites()) text += site + "\n";
    return text.c_str();
}

// The site to leave out from now on; none for null.
extern "C" void tandem_emu_plant(const char *site) { emu::plant(site); }
