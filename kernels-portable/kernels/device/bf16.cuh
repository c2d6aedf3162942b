// bfloat16, the upper half of an f32. Rounds to nearest with ties to even; a NaN becomes quiet and keeps
// its sign and the upper bits of its payload.
#pragma once
#include "number.cuh"

DEVICE float bf16_to_f32(u16 bits) { return float_of((u32)bits << 16); }

DEVICE u16 bf16_from_f32(float x) {
    u32 bits = bits_of(x);
    if (is_nan(x)) return (u16)(bits >> 16 | 0x40u);
    // Half a step less one, plus one when the kept part is odd; a carry out of the mantissa is the next
    // binade, and out of the last one infinity.
    return (u16)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// Towards zero, with the last bit set when something was cut off: it remembers on which side of every
// shorter value `x` lies, so one more rounding to nearest is that of the exact value.
DEVICE float f32_to_odd(double x) {
#ifdef __CUDACC__
    float cut = __double2float_rz(x);
#else
    float cut = (float)x;
    double wide = cut;
    if ((wide < 0 ? -wide : wide) > (x < 0 ? -x : x)) cut = float_of(bits_of(cut) - 1);
#endif
    return (double)cut == x || is_nan(cut) ? cut : float_of(bits_of(cut) | 1u);
}

// A result: rounded once from f64, any NaN to the one quiet NaN.
DEVICE u16 bf16_result(double x) {
    return x == x ? bf16_from_f32(f32_to_odd(x)) : (u16)(NAN_BITS >> 16);
}
DEVICE u16 bf16_result(float x) {
#ifdef __CUDACC__
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return x == x ? bits : (u16)(NAN_BITS >> 16);
#else
    return x == x ? bf16_from_f32(x) : (u16)(NAN_BITS >> 16);
#endif
}
