// Cache entries as bf16, for matrix units: 16 elements at a time, all of them 2^-8 of what they mean, exactly, so that FP4
// with scales of E4M3 needs one product. Of each eight, elements i and i + 4 share a word. What bf16 does not hold says so.
#pragma once
#include "entry.cuh"
#include "hopper.cuh"

// What numbers in shared memory are multiplied with to be what the entries say.
constexpr float KEY_LEVEL = 256.0f;
constexpr u32 PIECE = 16;

// How the pieces of a cache's entries are read.
enum Kind : u32 { FP8_PIECES, FP4_PIECES, OTHER_PIECES };

// By words only where all of them are aligned.
DEVICE Kind kind_of(const Entry &entry, const View &cache) {
    u64 places = (u64)cache.codes | entry.bytes;
    if (entry.form != SCALED) return OTHER_PIECES;
    if (entry.rule == FP8_UE8M0 && places % 16 == 0) return FP8_PIECES;
    return entry.rule == NVFP4_E4M3 && places % 16 == 0 ? FP4_PIECES : OTHER_PIECES;
}
// Codes of a piece as they lie, in the unit of 16 bytes that they are in: of FP4 that of two pieces.
struct Codes {
    u32 of[4];
};
DEVICE u32 unit_of(Kind kind, u32 column) { return kind == FP8_PIECES ? column : column / (2 * PIECE) * 16; }

// A scale that turns zeros into zeros, whatever it is that it scales.
constexpr u8 NO_SCALE = 0x38;

// Powers of two for which products of FP8 codes are numbers of bf16.
constexpr u32 LEAST_SCALE = 18, LARGEST_SCALE = 142;

// Whether bf16 does not hold 16 codes with their scale: NaN, or a scale outside over any code but zero.
DEVICE bool is_wild(const Codes &codes, u32 scale) {
    u32 any = 0, nan = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 magnitudes = codes.of[i] & 0x7F7F7F7Fu;
        any |= magnitudes, nan |= magnitudes + 0x01010101u;
    }
    bool outside = scale < LEAST_SCALE || scale > LARGEST_SCALE;
    return (nan & 0x80808080u) != 0 || (outside && (any != 0 || scale == 0xFF));
}

// Eight codes of FP8 in two words times 2^(scale - 127).
DEVICE void widen_fp8(u32 low, u32 high, u32 scale, u32 (&to)[4]) {
    // A code's bits in their places of bf16 are 2^-120 of it.
    u32 factors = (scale + 120 - 8) * 0x00800080u;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 pair = bytes_by_nibbles(low, high, i << 4 | (4 + i) << 12);
        to[i] = product_of_bf16s((pair & 0x80008000u) | (pair >> 4 & 0x07F007F0u), factors);
    }
}

// Eight codes of FP4 times a scale of E4M3, twice in `factors` as `fp4_factors` makes it.
DEVICE u32 fp4_factors(u32 scale) {
    // A code's bits in their places of bf16 are 2^-126 of it.
    float factor = float_of_half(halves_of_e4m3(scale) & 0xFFFFu) * 0x1p118f;
    return bf16_pair(factor, factor);
}
DEVICE void widen_fp4(u32 codes, u32 factors, u32 (&to)[4]) {
    constexpr u32 SIGN_AND_MAGNITUDE = 0x81C081C0u;
    u32 upper = codes >> 8;
    // One product moves the sign to bit 15 and the magnitude to bit 6.
    to[0] = product_of_bf16s((codes & 0x000F000Fu) * 0x1040u & SIGN_AND_MAGNITUDE, factors);
    to[1] = product_of_bf16s((codes & 0x00F000F0u) * 0x0104u & SIGN_AND_MAGNITUDE, factors);
    to[2] = product_of_bf16s((upper & 0x000F000Fu) * 0x1040u & SIGN_AND_MAGNITUDE, factors);
    to[3] = product_of_bf16s((upper & 0x00F000F0u) * 0x0104u & SIGN_AND_MAGNITUDE, factors);
}

// Eight elements of any entry; whether bf16 does not hold them.
DEVICE bool widen_any(const Entry &entry, const u8 *from, u32 column, u32 (&to)[4]) {
    Chunk x = entry_chunk(entry, from, column);
    bool wild = false;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        float low = x.of[i], high = x.of[i + 4];
        to[i] = bf16_pair(low * (1 / KEY_LEVEL), high * (1 / KEY_LEVEL));
        // NaN differs from itself; what is infinite, or close to it, may not meet its opposite in a sum.
        wild |= !(lower_bf16(to[i]) * KEY_LEVEL == low && upper_bf16(to[i]) * KEY_LEVEL == high);
        wild |= magnitude_of(low) > bits_of(0x1p24f) || magnitude_of(high) > bits_of(0x1p24f);
    }
    return wild;
}

// The units of 16 bytes of a row of 128, as matrix products take them.
DEVICE u32 swizzled_unit(u32 row, u32 unit) { return row * 128 + (unit ^ row % 8) * 16; }
