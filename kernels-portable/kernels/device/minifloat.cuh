// The arithmetic that the small signed formats share; the formats say what zero, NaN and the top mean.
#pragma once
#include "number.cuh"

// Code of |x| with MANTISSA mantissa bits and exponent bias BIAS, to nearest with ties to even, never
// above `top`. `x` must not be NaN; an infinity gives `top`.
template <int MANTISSA, int BIAS> DEVICE u8 encode_magnitude(float x, u32 top) {
    constexpr int drop = 23 - MANTISSA;
    constexpr u32 smallest_normal = (u32)(128 - BIAS) << 23;
    u32 bits = magnitude_of(x), code;
    if (bits < smallest_normal) {
        // Adding a power of two whose last place is the format's subnormal step makes the adder round
        // to that step; the step count is then the difference of the bit patterns.
        constexpr u32 anchor = (u32)(128 - BIAS + drop) << 23;
        code = bits_of(float_of(bits) + float_of(anchor)) - anchor;
    } else {
        u32 rounded = (bits + (1u << (drop - 1)) - 1u + (bits >> drop & 1u)) >> drop;
        code = rounded - ((u32)(127 - BIAS) << MANTISSA);
    }
    return (u8)(code < top ? code : top);
}

// Value of the magnitude code `code`; exact. As the upper bits of an f32 it is too small by the difference of the
// biases, whether it is normal or not.
template <int MANTISSA, int BIAS> DEVICE float decode_magnitude(u32 code) {
    return float_of(code << (23 - MANTISSA)) * float_of((u32)(254 - BIAS) << 23);
}
