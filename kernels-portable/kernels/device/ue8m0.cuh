// Power-of-two block scales: byte b is 2^(b - 127); 0xFF is NaN. No sign, no zero, no infinity.
#pragma once
#include "number.cuh"

// The smallest power of two that is not below `x`, from its exponent and mantissa bits. Up to 2^-127 that
// is code 0; NaN, infinity, a negative value and one above 2^127 give NaN.
DEVICE u8 ue8m0_round_up(float x) {
    u32 bits = bits_of(x), exponent = bits >> 23, mantissa = bits & 0x7FFFFFu;
    if (bits == 0x80000000u) return 0;
    if (exponent >= 255) return 0xFF;
    // Subnormal: the binades under code 1 end at 2^-127, mantissa 0x400000.
    if (exponent == 0) return mantissa > 0x400000u;
    return (u8)(exponent + (mantissa != 0));
}

// Value of the code; exact. Code 0 is a subnormal of f32.
DEVICE float ue8m0_to_f32(u8 code) {
    if (code == 0) return float_of(0x400000u);
    return code == 0xFF ? float_of(NAN_BITS) : float_of((u32)code << 23);
}

// The reciprocal of the code's value; exact. Code 0 has none.
DEVICE float ue8m0_inverse(u8 code) {
    if (code == 254) return float_of(0x400000u);
    return code == 0xFF ? float_of(NAN_BITS) : float_of((u32)(254 - code) << 23);
}

// Twice the scale; NaN for the largest one and for NaN.
DEVICE u8 ue8m0_doubled(u8 code) { return code < 0xFE ? (u8)(code + 1) : (u8)0xFF; }
