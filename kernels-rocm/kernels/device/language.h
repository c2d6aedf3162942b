// The device language of AMD, for clang alone, without vendor header and device library: the part of it that plain kernels
// use as CUDA spells it, and the names of device/number.cuh.
//
// A warp of the sources is half of a wave of 64 lanes. Whatever a warp does among its lanes stays in its half, so the
// other half may be anywhere, or not be there.
#pragma once

#ifndef __GFX9__
#error "for parts of the ninth generation, whose waves have 64 lanes"
#endif

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
// Arguments are read where they lie unless they are written to.
#define __grid_constant__

#define DEVICE __device__ __forceinline__
// The compiler needs the threads alone.
#define KERNEL(name, threads, ...) \
    extern "C" __global__ void __attribute__((amdgpu_flat_work_group_size(1, threads))) name

namespace amd {
struct Index {
    unsigned x, y, z;
};

DEVICE Index thread_index() {
    return {__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z()};
}
DEVICE Index block_index() {
    return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z()};
}
DEVICE Index block_extent() {
    return {__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
            __builtin_amdgcn_workgroup_size_z()};
}
// The runtime puts the blocks of the grid behind the arguments, three words of 32 bits.
DEVICE Index grid_extent() {
    auto blocks = (const __attribute__((address_space(4))) unsigned *)__builtin_amdgcn_implicitarg_ptr();
    return {blocks[0], blocks[1], blocks[2]};
}

// The lane in its wave, and the first lane of its warp.
DEVICE unsigned lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
DEVICE unsigned first_lane() { return lane() & 32u; }

DEVICE unsigned word_of_lane(unsigned word, unsigned lane) {
    return (unsigned)__builtin_amdgcn_ds_bpermute((int)(4 * lane), (int)word);
}

// The value of a lane of the wave.
template <typename T> DEVICE T value_of_lane(T value, unsigned lane) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "one word or two");
    if constexpr (sizeof(T) == 4) {
        return __builtin_bit_cast(T, word_of_lane(__builtin_bit_cast(unsigned, value), lane));
    } else {
        auto words = __builtin_bit_cast(unsigned long long, value);
        unsigned long long high = word_of_lane((unsigned)(words >> 32), lane);
        return __builtin_bit_cast(T, high << 32 | word_of_lane((unsigned)words, lane));
    }
}

// Until every load, store and write-back of the wave is done. The compiler counts no write-backs (LLVM 22 at least), and
// so leaves out its own wait behind one where it knows of nothing else that is on its way.
DEVICE void await_memory() { asm volatile("s_waitcnt vmcnt(0)" ::: "memory"); }

DEVICE void release_system() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    await_memory();
}

template <typename F> DEVICE unsigned reduced(unsigned value, F f) {
#pragma unroll
    for (unsigned mask = 16; mask > 0; mask /= 2) value = f(value, value_of_lane(value, lane() ^ mask));
    return value;
}
}  // namespace amd

#define threadIdx amd::thread_index()
#define blockIdx amd::block_index()
#define blockDim amd::block_extent()
#define gridDim amd::grid_extent()

// As CUDA has it, a thread that fences behind the barrier does so for what its whole block wrote before. A fence waits for
// the stores of its own wave alone, and one for the block for none, so the barrier waits.
DEVICE void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    amd::await_memory();
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// A wave goes in step: only the order of its memory is at stake.
DEVICE void __syncwarp(unsigned = ~0u) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
DEVICE void __threadfence() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    amd::await_memory();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}
DEVICE void __threadfence_system() {
    amd::release_system();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}

// As CUDA has them: a lane outside the warp is one's own.
template <typename T> DEVICE T __shfl_sync(unsigned, T value, unsigned from) {
    return amd::value_of_lane(value, amd::first_lane() | from % 32);
}
template <typename T> DEVICE T __shfl_xor_sync(unsigned, T value, unsigned mask) {
    return amd::value_of_lane(value, amd::lane() ^ mask % 32);
}
template <typename T> DEVICE T __shfl_down_sync(unsigned, T value, unsigned step) {
    unsigned own = amd::lane();
    return amd::value_of_lane(value, own % 32 + step < 32 ? own + step : own);
}
template <typename T> DEVICE T __shfl_up_sync(unsigned, T value, unsigned step) {
    unsigned own = amd::lane();
    return amd::value_of_lane(value, own % 32 >= step ? own - step : own);
}
DEVICE unsigned __ballot_sync(unsigned, bool mine) {
    return (unsigned)(__builtin_amdgcn_ballot_w64(mine) >> amd::first_lane());
}
DEVICE unsigned __reduce_max_sync(unsigned, unsigned value) {
    return amd::reduced(value, [](unsigned a, unsigned b) { return a > b ? a : b; });
}
DEVICE unsigned __reduce_min_sync(unsigned, unsigned value) {
    return amd::reduced(value, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
DEVICE unsigned __reduce_add_sync(unsigned, unsigned value) {
    return amd::reduced(value, [](unsigned a, unsigned b) { return a + b; });
}
DEVICE unsigned __reduce_or_sync(unsigned, unsigned value) {
    return amd::reduced(value, [](unsigned a, unsigned b) { return a | b; });
}

DEVICE int __popc(unsigned word) { return __builtin_popcount(word); }
DEVICE int __clz(int word) { return word == 0 ? 32 : __builtin_clz((unsigned)word); }
DEVICE int __ffs(int word) { return __builtin_ffs(word); }

// Relaxed, within the device.
template <typename T> DEVICE T atomicAdd(T *at, T value) {
    return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T> DEVICE T atomicOr(T *at, T value) {
    return __hip_atomic_fetch_or(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T> DEVICE T atomicMin(T *at, T value) {
    return __hip_atomic_fetch_min(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T> DEVICE T atomicMax(T *at, T value) {
    return __hip_atomic_fetch_max(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// What the instruction set has, each rounded once.
DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
DEVICE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
DEVICE double sqrt(double x) { return __builtin_sqrt(x); }
DEVICE float sqrt(float x) { return __builtin_sqrtf(x); }
DEVICE double rint(double x) { return __builtin_rint(x); }
DEVICE double fabs(double x) { return __builtin_fabs(x); }
DEVICE float fabs(float x) { return __builtin_fabsf(x); }
DEVICE double copysign(double x, double sign) { return __builtin_copysign(x, sign); }
// To one unit in the last place.
DEVICE float exp2f(float x) { return __builtin_exp2f(x); }

// One launch ends before the next.
DEVICE void begin() {}

DEVICE u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }

DEVICE float larger(float x, float y) { return x != x || y > x ? y : x; }
DEVICE float root_reciprocal(float x) { return (float)(1.0 / sqrt((double)x)); }
DEVICE float quotient(float x, float y) { return x / y; }
DEVICE float towards_zero(double x) {
    float cut = (float)x;
    return fabs((double)cut) > fabs(x) ? float_of(bits_of(cut) - 1) : cut;
}

DEVICE double near_reciprocal(double x) { return 1.0 / x; }
DEVICE float near_reciprocal(float x) { return 1.0f / x; }
DEVICE float near_power(float x) { return exp2f(x); }

DEVICE void fence_system() { __threadfence_system(); }
DEVICE void store_release(u64 *to, u64 word) {
    amd::release_system();
    __hip_atomic_store(to, word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
DEVICE u64 load_acquire(const u64 *from) {
    return __hip_atomic_load(from, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
// A counter of 100 MHz.
DEVICE u64 clock_ns() { return 10 * __builtin_readsteadycounter(); }

#include "elementary.h"
