// Fixed-width names and bit casts, for device code and, compiled by a host compiler, for the tests of
// these headers. No standard library: the casts are the compiler's own.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

// KERNEL(name, threads) begins the definition of a kernel launched with blocks of up to `threads`. The build
// finds kernels by it for the host. One block at least is to fit, so that registers are not spilled for more. Where several
// are to fit, a third argument says how many registers a thread has, or the third is the word `fitting` and a fourth says
// how many blocks. AMD's compiler needs the threads alone.
#ifdef __CUDACC__
#define DEVICE __device__ __forceinline__
#define KERNEL_BOUNDED(name, threads) extern "C" __global__ void __launch_bounds__(threads, 1) name
#define KERNEL_OF(name, threads, registers) extern "C" __global__ void __maxnreg__(registers) name
#define KERNEL_FITTING(name, threads, fitting, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks) name
#define KERNEL_PICK(a, b, c, d, PICK, ...) PICK
#define KERNEL(...) KERNEL_PICK(__VA_ARGS__, KERNEL_FITTING, KERNEL_OF, KERNEL_BOUNDED)(__VA_ARGS__)
#elif defined(__HIP__)
#define DEVICE __device__ __forceinline__
#define KERNEL(name, threads, ...) \
    extern "C" __global__ void __attribute__((amdgpu_flat_work_group_size(1, threads))) name
#else
#define DEVICE inline
#define KERNEL(name, ...) static void name
#endif

// Blocks up to which a plain kernel lets what is behind it begin at once. More would take the places that their own
// kernel still needs.
constexpr u32 SMALL_GRID = 64;

// What a plain kernel does first: it may be launched before what is in front of it has ended. Nothing in memory is touched
// before.
DEVICE void begin() {
#ifdef __CUDACC__
    if (gridDim.x <= SMALL_GRID) cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

DEVICE u32 bits_of(float x) {
#ifdef __CUDACC__
    return __float_as_uint(x);
#else
    return __builtin_bit_cast(u32, x);
#endif
}

DEVICE float float_of(u32 bits) {
#ifdef __CUDACC__
    return __uint_as_float(bits);
#else
    return __builtin_bit_cast(float, bits);
#endif
}

// Magnitude bits: as integers they order like the values, infinity above them and NaN above infinity.
DEVICE u32 magnitude_of(float x) { return bits_of(x) & 0x7FFFFFFFu; }

constexpr u32 INFINITE = 0x7F800000u;
// The one quiet NaN that results hold.
constexpr u32 NAN_BITS = 0x7FC00000u;

DEVICE bool is_nan(float x) { return magnitude_of(x) > INFINITE; }
DEVICE bool is_finite(float x) { return magnitude_of(x) < INFINITE; }

// The larger of two; a NaN is passed over where the other is a number.
DEVICE float larger(float x, float y) {
#ifdef __CUDACC__
    return fmaxf(x, y);
#else
    return is_nan(x) || y > x ? y : x;
#endif
}

// A result: rounded once from f64, any NaN to the one quiet NaN.
DEVICE float f32_result(double x) { return x == x ? (float)x : float_of(NAN_BITS); }

// Correctly rounded reciprocal of the square root.
DEVICE float root_reciprocal(float x) {
#ifdef __CUDACC__
    return __frsqrt_rn(x);
#else
    return (float)(1.0 / __builtin_sqrt((double)x));
#endif
}

// Reciprocal to within two last places of f64, of a number whose reciprocal is not subnormal.
DEVICE double near_reciprocal(double x) {
#ifdef __CUDACC__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    double error = fma(-x, y, 1.0);
    return fma(y, fma(error, error, error), y);
#else
    return 1.0 / x;
#endif
}

// Correctly rounded quotient. The compiler may not turn it into a product with a reciprocal.
DEVICE float quotient(float x, float y) {
#ifdef __CUDACC__
    return __fdiv_rn(x, y);
#else
    return x / y;
#endif
}
