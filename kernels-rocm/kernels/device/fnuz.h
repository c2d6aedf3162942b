// Codes of FP8 of the "fn" dialect as those of half their value in MI300's: the same bits, but that minus zero is zero
// and that NaN is the code of minus zero.
#pragma once
#include "chunk.cuh"

constexpr u32 MAGNITUDES = 0x7F7F7F7Fu;

// Four codes; none may be NaN.
DEVICE u32 fnuz_numbers(u32 codes) {
    // The upper bit of each byte that is not zero. No sum leaves its byte.
    u32 is_some = (codes & MAGNITUDES) + MAGNITUDES;
    return codes & (is_some | MAGNITUDES);
}

// The upper bit of each byte that is NaN, among bits that mean nothing.
DEVICE u32 nan_bits(u32 codes) { return (codes & MAGNITUDES) + 0x01010101u; }

// Four codes, whatever they are.
DEVICE u32 fnuz_codes(u32 codes) {
    u32 nans = nan_bits(codes) & ~MAGNITUDES, whole = nans | (nans - (nans >> 7));
    return (fnuz_numbers(codes) & ~whole) | nans;
}

// Codes of a chunk of 16.
DEVICE Words<4> fnuz_chunk(const Words<4> &codes) {
    Words<4> made;
    u32 nans = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        nans |= nan_bits(codes.of[i]);
        made.of[i] = fnuz_numbers(codes.of[i]);
    }
    // As good as never, and then for all lanes.
    if (__builtin_amdgcn_ballot_w64((nans & ~MAGNITUDES) != 0) != 0) {
#pragma unroll
        for (int i = 0; i < 4; i++) made.of[i] = fnuz_codes(codes.of[i]);
    }
    return made;
}
