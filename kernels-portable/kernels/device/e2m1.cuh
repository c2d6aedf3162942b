// FP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and signs in the low four bits; no NaN and no infinity.
#pragma once
#include "minifloat.cuh"

// Nearest code, ties to even, saturating; NaN gives 7 whatever its sign, and its block's scale keeps it.
DEVICE u8 e2m1_from_f32(float x) {
    if (is_nan(x)) return 7;
    return (u8)(bits_of(x) >> 31 << 3 | encode_magnitude<1, 1>(x, 7));
}

// Only the low four bits count.
DEVICE float e2m1_to_f32(u8 code) {
    return float_of(bits_of(decode_magnitude<1, 1>(code & 7u)) | (u32)(code & 8u) << 28);
}

// Two codes as the byte of a packed row: the even column in the low nibble.
DEVICE u8 e2m1_pack(u8 even, u8 odd) { return (u8)(even | odd << 4); }
