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
// One copy is enough: one block runs at a time. Kernels of clusters have none; they take dynamic shared memory.
#define __shared__ static

namespace emu {
struct Dim3 {
    unsigned x, y, z;
};
// The thread that runs.
extern Dim3 thread_index, block_index, block_extent, grid_extent;

// All threads of the block that have not ended arrive here.
void block_barrier(const char *file, int line);
// As above; whether all say so.
bool block_all(bool mine, const char *file, int line);
// All threads of the warp.
void warp_barrier();
// The word of the lane that `from` names, or one's own where there is none.
std::uint64_t shuffle(std::uint64_t word, unsigned (*from)(unsigned lane, unsigned step), unsigned step);
// A bit for every lane of the warp that says so.
unsigned ballot(bool mine);

template <typename T> T shuffled(T value, unsigned (*from)(unsigned lane, unsigned step), unsigned step) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    word = shuffle(word, from, step);
    std::memcpy(&value, &word, sizeof value);
    return value;
}

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
#define __syncthreads() emu::block_barrier(__FILE__, __LINE__)

inline int __syncthreads_and(int mine, const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return emu::block_all(mine, file, line);
}
inline void __syncwarp(unsigned = ~0u) { emu::warp_barrier(); }
template <typename T> T __shfl_down_sync(unsigned, T value, unsigned step) {
    return emu::shuffled(value, [](unsigned lane, unsigned step) { return lane + step; }, step);
}
template <typename T> T __shfl_up_sync(unsigned, T value, unsigned step) {
    return emu::shuffled(value, [](unsigned lane, unsigned step) { return lane - step; }, step);
}
template <typename T> T __shfl_xor_sync(unsigned, T value, unsigned step) {
    return emu::shuffled(value, [](unsigned lane, unsigned step) { return lane ^ step; }, step);
}
template <typename T> T __shfl_sync(unsigned, T value, unsigned lane) {
    return emu::shuffled(value, [](unsigned, unsigned lane) { return lane % 32; }, lane);
}
inline unsigned __reduce_max_sync(unsigned lanes, unsigned value) {
    for (unsigned mask = 16; mask > 0; mask /= 2) value = std::max(value, __shfl_xor_sync(lanes, value, mask));
    return value;
}
inline unsigned __reduce_min_sync(unsigned lanes, unsigned value) { return ~__reduce_max_sync(lanes, ~value); }
inline unsigned __reduce_add_sync(unsigned lanes, unsigned value) {
    for (unsigned mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(lanes, value, mask);
    return value;
}
inline unsigned __reduce_or_sync(unsigned lanes, unsigned value) {
    for (unsigned mask = 16; mask > 0; mask /= 2) value |= __shfl_xor_sync(lanes, value, mask);
    return value;
}
inline unsigned __ballot_sync(unsigned, bool mine) { return emu::ballot(mine); }
inline int __popc(unsigned word) { return __builtin_popcount(word); }
inline int __clz(int word) { return word == 0 ? 32 : __builtin_clz((unsigned)word); }
inline int __ffs(int word) { return __builtin_ffs(word); }

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
