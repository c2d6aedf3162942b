// FP8 of gfx942: largest 240 (0x7F), one zero, NaN 0x80, no infinity.
#pragma once
#include "minifloat.cuh"

DEVICE float e4m3_fnuz_to_f32(u8 code) {
    if (code == 0x80) return float_of(NAN_BITS);
    return float_of(bits_of(decode_magnitude<3, 8>(code & 0x7Fu)) | (u32)(code & 0x80u) << 24);
}

// The code whose value is half of that of an E4M3 code of the "fn" dialect: the same bits, but for minus zero and
// NaN.
DEVICE u8 e4m3_fnuz_half_of(u8 code) {
    if ((code & 0x7Fu) == 0x7F) return 0x80;
    return code == 0x80 ? (u8)0 : code;
}
