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

// That of a number, by an instruction where there is one.
#ifndef HAS_BF16_NEAREST
DEVICE u16 bf16_nearest(float x) { return bf16_from_f32(x); }
#endif

// Towards zero, with the last bit set when something was cut off: it remembers on which side of every
// shorter value `x` lies, so one more rounding to nearest is that of the exact value.
DEVICE float f32_to_odd(double x) {
    float cut = towards_zero(x);
    return (double)cut == x || is_nan(cut) ? cut : float_of(bits_of(cut) | 1u);
}

// A result: rounded once from f64, any NaN to the one quiet NaN.
DEVICE u16 bf16_result(double x) {
    return x == x ? bf16_from_f32(f32_to_odd(x)) : (u16)(NAN_BITS >> 16);
}
DEVICE u16 bf16_result(float x) {
    u16 bits = bf16_nearest(x);
    return x == x ? bits : (u16)(NAN_BITS >> 16);
}
