// Kernels by name, and how they are called.
#pragma once
#include "cuda.h"
#include "hopper.h"

#include <set>
#include <string>
#include <utility>

namespace emu {
enum class Outcome : int { done = 0, unknown = 1, sizes = 2, stuck = 3, failed = 4 };

struct Kernel {
    const char *name;
    void (*run)(void **);
    // Bytes of each parameter, then 0.
    const std::size_t *sizes;
};

// How a kernel of this signature takes its arguments.
template <auto F, typename T> struct Call;
template <auto F, typename... A> struct Call<F, void (*)(A...)> {
    static constexpr std::size_t sizes[] = {sizeof(A)..., 0};
    template <std::size_t... I> static void with(void **values, std::index_sequence<I...>) { F(*(A *)values[I]...); }
    static void run(void **values) { with(values, std::index_sequence_for<A...>{}); }
};
template <auto F> constexpr Kernel entry(const char *name) {
    return {name, Call<F, decltype(F)>::run, Call<F, decltype(F)>::sizes};
}

struct Shape {
    Dim3 grid, extent;
    std::size_t shared_bytes;
    // Blocks of a cluster, along x.
    unsigned cluster;
};

Outcome launch(const Kernel &kernel, const Shape &shape, void **values, std::uint64_t seed);
// What the last launch failed of.
const std::string &message();
// Every place that a launch so far came by, and the one to leave out (none for null).
const std::set<std::string> &known_sites();
void plant(const char *site);
}  // namespace emu
