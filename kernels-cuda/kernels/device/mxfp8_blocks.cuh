// Products of MXFP8 by MXFP8 as the matrix units make them: 32 columns at a time, each sum then scaled and added in f32,
// block after block. Every kernel of this kind adds so, whatever its tiles, so that they agree to the bit.
#pragma once
#include "number.cuh"
#include "ue8m0.cuh"

// Columns that the matrix units take for one tile, and blocks of 32 in them.
constexpr u32 STAGE_COLUMNS = 128, STAGE_BLOCKS = 4;

// Scales whose product with any other such is a normal number of f32.
DEVICE bool is_tame(u32 scale) { return scale == 0xFF || (scale >= 64 && scale <= 190); }

// acc + part 2^(a + b - 254), in two steps where the product of the scales is beyond f32. Both ways give the same bits
// where the first will do.
DEVICE float promoted(float acc, float part, float scale) { return fmaf(part, scale, acc); }
DEVICE float promoted_far(float acc, float part, u32 a, u32 b) {
    u32 low = (a + b) / 2;
    float first = a == 0xFF || b == 0xFF ? float_of(NAN_BITS) : ue8m0_to_f32((u8)low);
    return fmaf(part * first, ue8m0_to_f32((u8)(a + b - low)), acc);
}

// The scales of a stage's four blocks in one row of them; those behind the last block are 0.
DEVICE u32 scales_of(const u8 *row, u32 block, u32 blocks) {
    if (block + STAGE_BLOCKS <= blocks && (u64)(row + block) % 4 == 0) return *(const u32 *)(row + block);
    u32 word = 0;
    for (u32 i = 0; i < STAGE_BLOCKS && block + i < blocks; i++) word |= (u32)row[block + i] << 8 * i;
    return word;
}

// The stages of part `i` of `parts`, in which a sum over `stages` is made: each part block after block, then the parts in
// order.
struct Stages {
    u32 first, last;
};
DEVICE Stages part_of(u32 stages, u32 parts, u32 i) { return {stages * i / parts, stages * (i + 1) / parts}; }
