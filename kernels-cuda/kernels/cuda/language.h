// CUDA, by the names of device/number.cuh.
#pragma once

#define DEVICE __device__ __forceinline__
#define KERNEL_BOUNDED(name, threads) extern "C" __global__ void __launch_bounds__(threads, 1) name
#define KERNEL_OF(name, threads, registers) extern "C" __global__ void __maxnreg__(registers) name
#define KERNEL_FITTING(name, threads, fitting, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks) name
#define KERNEL_PICK(a, b, c, d, PICK, ...) PICK
#define KERNEL(...) KERNEL_PICK(__VA_ARGS__, KERNEL_FITTING, KERNEL_OF, KERNEL_BOUNDED)(__VA_ARGS__)

// Blocks up to which a plain kernel lets what is behind it begin at once. More would take the places that their own
// kernel still needs.
constexpr u32 SMALL_GRID = 64;

DEVICE void begin() {
    if (gridDim.x <= SMALL_GRID) cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
}

DEVICE u32 bits_of(float x) { return __float_as_uint(x); }
DEVICE float float_of(u32 bits) { return __uint_as_float(bits); }

DEVICE float larger(float x, float y) { return fmaxf(x, y); }
DEVICE float root_reciprocal(float x) { return __frsqrt_rn(x); }
DEVICE float quotient(float x, float y) { return __fdiv_rn(x, y); }
DEVICE float towards_zero(double x) { return __double2float_rz(x); }

DEVICE double near_reciprocal(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    double error = fma(-x, y, 1.0);
    return fma(y, fma(error, error, error), y);
}
DEVICE float near_reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE float near_power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#define HAS_BF16_NEAREST
DEVICE u16 bf16_nearest(float x) {
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

#define HAS_E4M3_PAIR
DEVICE u32 e4m3_pair_from_f32(float low, float high) {
    u16 codes;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
    return codes;
}

DEVICE void fence_system() { __threadfence_system(); }
DEVICE void store_release(u64 *to, u64 word) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
DEVICE u64 load_acquire(const u64 *from) {
    u64 word;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
DEVICE u64 clock_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
