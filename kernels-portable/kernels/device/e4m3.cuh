// FP8 of the checkpoint, the "fn" dialect: largest 448 (0x7E), NaN 0x7F and 0xFF, two zeros, no infinity.
#pragma once
#include "minifloat.cuh"

// Nearest code, ties to even, saturating; NaN gives 0x7F whatever its sign.
DEVICE u8 e4m3_from_f32(float x) {
    if (is_nan(x)) return 0x7F;
    return (u8)(bits_of(x) >> 31 << 7 | encode_magnitude<3, 7>(x, 0x7E));
}

// The codes of two, the first one in the low byte; by an instruction where there is one.
#ifndef HAS_E4M3_PAIR
DEVICE u32 e4m3_pair_from_f32(float low, float high) {
    return (u32)e4m3_from_f32(low) | (u32)e4m3_from_f32(high) << 8;
}
#endif

DEVICE float e4m3_to_f32(u8 code) {
    u32 magnitude = code & 0x7Fu;
    if (magnitude == 0x7F) return float_of(NAN_BITS);
    return float_of(bits_of(decode_magnitude<3, 7>(magnitude)) | (u32)(code & 0x80u) << 24);
}
