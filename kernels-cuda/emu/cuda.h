// The part of the device language that plain kernels use, for a host compiler: kernels' own sources run on the CPU,
// one block after the other, each thread a fiber. Arithmetic is the host's, with the same roundings.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
// One copy is enough: one block runs at a time.
#define __shared__ static

namespace emu {
struct Dim3 {
    unsigned x, y, z;
};
// The thread that runs.
extern Dim3 thread_index, block_index, block_extent, grid_extent;

// All threads of the block that have not ended arrive here.
void block_barrier();
// All threads of the warp likewise.
void warp_barrier();
// The word of the lane `step` further on, or one's own past the last lane.
std::uint64_t shuffle_down(std::uint64_t word, unsigned step);
// The word of the lane whose number differs in the bits of `mask`.
std::uint64_t shuffle_xor(std::uint64_t word, unsigned mask);
// A bit for every lane of the warp that says so.
unsigned ballot(bool mine);

// No thread runs between the reading and the writing.
template <typename T, typename F> T exchange(T *at, F f) {
    T old = *at;
    *at = f(old);
    return old;
}
}  // namespace emu

#define threadIdx emu::thread_index
#define blockIdx emu::block_index
#define blockDim emu::block_extent
#define gridDim emu::grid_extent
#define __syncthreads() emu::block_barrier()
#define __syncwarp() emu::warp_barrier()

template <typename T> T __shfl_down_sync(unsigned, T value, unsigned step) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    word = emu::shuffle_down(word, step);
    std::memcpy(&value, &word, sizeof value);
    return value;
}
template <typename T> T __shfl_xor_sync(unsigned, T value, unsigned mask) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    word = emu::shuffle_xor(word, mask);
    std::memcpy(&value, &word, sizeof value);
    return value;
}
inline unsigned __reduce_max_sync(unsigned lanes, unsigned value) {
    for (unsigned mask = 16; mask > 0; mask /= 2) value = std::max(value, __shfl_xor_sync(lanes, value, mask));
    return value;
}
inline unsigned __ballot_sync(unsigned, bool mine) { return emu::ballot(mine); }
inline int __popc(unsigned word) { return __builtin_popcount(word); }

template <typename T> T atomicAdd(T *at, T value) {
    return emu::exchange(at, [=](T old) { return old + value; });
}
template <typename T> T atomicOr(T *at, T value) {
    return emu::exchange(at, [=](T old) { return old | value; });
}
template <typename T> T atomicMin(T *at, T value) {
    return emu::exchange(at, [=](T old) { return std::min(old, value); });
}
template <typename T> T atomicMax(T *at, T value) {
    return emu::exchange(at, [=](T old) { return std::max(old, value); });
}

using std::copysign;
using std::erfc;
using std::exp;
using std::fabs;
using std::fma;
using std::log;
using std::log1p;
using std::rint;
using std::sqrt;
