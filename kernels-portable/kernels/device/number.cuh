// Fixed-width names, what the language brings, and f32 as bits. No standard library.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

// Languages differ in what this header defines; each backend brings its own, and so does the emulator for a host:
//
//   DEVICE                       begins a function.
//   KERNEL(name, threads)        begins a kernel launched with blocks of up to `threads`. The build finds kernels by it for
//                                the host. One block at least is to fit, so that registers are not spilled for more. Where
//                                several are to fit, a third argument says how many registers a thread has, or the third is
//                                the word `fitting` and a fourth says how many blocks.
//   begin()                      what a plain kernel does first: it may be launched before what is in front of it has ended.
//                                Nothing in memory is touched before.
//   bits_of, float_of            of an f32 and back.
//   larger(x, y)                 the larger of two; a NaN is passed over where the other is a number.
//   root_reciprocal(float)       correctly rounded reciprocal of the square root.
//   quotient(x, y)               correctly rounded. The compiler may not turn it into a product with a reciprocal.
//   near_reciprocal(double)      to within two last places of f64, of a number whose reciprocal is not subnormal.
//   near_reciprocal(float), near_power(x)
//                                1 / x and 2^x to some units of f32; where they are subnormal, perhaps 0.
//   towards_zero(double)         as f32.
//   bf16_nearest, e4m3_pair_from_f32
//                                see bf16.cuh and e4m3.cuh: where there are instructions, with HAS_BF16_NEAREST, HAS_E4M3_PAIR.
//   fence_system()               order among devices: what was written before it is there when what is stored after it is seen.
//   store_release, load_acquire  of 64-bit words, among devices.
//   clock_ns()                   nanoseconds since some moment.
#include "language.h"

// Magnitude bits: as integers they order like the values, infinity above them and NaN above infinity.
DEVICE u32 magnitude_of(float x) { return bits_of(x) & 0x7FFFFFFFu; }

constexpr u32 INFINITE = 0x7F800000u;
// The one quiet NaN that results hold.
constexpr u32 NAN_BITS = 0x7FC00000u;

DEVICE bool is_nan(float x) { return magnitude_of(x) > INFINITE; }
DEVICE bool is_finite(float x) { return magnitude_of(x) < INFINITE; }

// A result: rounded once from f64, any NaN to the one quiet NaN.
DEVICE float f32_result(double x) { return x == x ? (float)x : float_of(NAN_BITS); }
