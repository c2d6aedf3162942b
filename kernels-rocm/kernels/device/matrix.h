// Sums of products on the matrix units: a weight's 32 rows by 32 tokens, 64 columns of FP8 at a time, a power of two for
// each 32 of a row of either.
//
// Lane l has row l % 32 of either operand, and of 64 columns those from 16 (l / 32) on, 16 of the first block and 16 of the
// second. Of the result it has token l % 32, and in register r row 8 (r / 4) + 4 (l / 32) + r % 4. So a token's scale is a
// number of a lane, and four outputs of a token lie side by side.
#pragma once
#include "fnuz.h"

constexpr u32 SIDE = 32;
// Columns of a step, and blocks under a scale in it.
constexpr u32 STEP = 64;
constexpr u32 STEP_BLOCKS = STEP / SCALED_COLUMNS;
// Registers of a lane for a result.
constexpr u32 RESULTS = 16;

typedef float F32x2 __attribute__((ext_vector_type(2)));
typedef float F32x4 __attribute__((ext_vector_type(4)));
typedef float F32x16 __attribute__((ext_vector_type(16)));
typedef int I32x8 __attribute__((ext_vector_type(8)));

namespace amd {
#ifdef __gfx950__
// 16 bytes a lane from memory to LDS, where the lanes' lie one behind the other from `to` on, which is the wave's. Nobody
// waits for them but who waits for memory.
DEVICE void load_to_lds(const u8 *from, u8 *to) {
    __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) u8 *)const_cast<u8 *>(from),
                                     (__attribute__((address_space(3))) u8 *)to, 16, 0, 0);
}
#endif
}  // namespace amd

// A step's codes of a row: of the first block and of the second.
struct Fragment {
    Words<4> of[STEP_BLOCKS];
};

// The half of the wave, whose lanes have every other 16 columns.
DEVICE u32 half_of_wave() { return amd::lane() / 32; }

#ifdef __gfx950__
// A lane has the scale of its half's block.
constexpr u32 STEP_SCALES = 1;
DEVICE u32 block_of_scale(u32) { return half_of_wave(); }

// Units of gfx950 read the codes as they are, and scales beside them.
DEVICE Words<4> unit_codes(const Words<4> &codes) { return codes; }

DEVICE I32x8 operand(const Fragment &x) {
    I32x8 words;
#pragma unroll
    for (u32 i = 0; i < 8; i++) words[i] = (int)x.of[i / 4].of[i % 4];
    return words;
}

struct Scales {
    u32 of[STEP_SCALES];
};

DEVICE bool are_near(const Scales &) { return true; }

template <bool NEAR>
DEVICE void multiply(F32x16 &sum, const Fragment &a, const Scales &a_scales, const Fragment &b, const Scales &b_scales) {
    sum = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(operand(a), operand(b), sum, 0, 0, 0, (int)a_scales.of[0], 0,
                                                          (int)b_scales.of[0]);
}
#else
constexpr u32 STEP_SCALES = STEP_BLOCKS;
DEVICE u32 block_of_scale(u32 at) { return at; }

// Units of gfx942 read codes of half their value, and know no scales.
DEVICE Words<4> unit_codes(const Words<4> &codes) { return fnuz_chunk(codes); }

DEVICE long half_operand(const Words<4> &x, u32 half) { return (long)((u64)x.of[2 * half + 1] << 32 | x.of[2 * half]); }

// As they are in memory.
struct Scales {
    u32 of[STEP_SCALES];
};

// Whether the product of two such is a normal number of f32, four times as large as well.
DEVICE bool are_near(const Scales &scales) {
    bool near = true;
#pragma unroll
    for (u32 i = 0; i < STEP_SCALES; i++) near = near && scales.of[i] - 66 <= 122;
    return near;
}

// The sum of a block is exact to f32; then it is scaled and added, rounded once.
template <bool NEAR>
DEVICE void multiply(F32x16 &sum, const Fragment &a, const Scales &a_scales, const Fragment &b, const Scales &b_scales) {
#pragma unroll
    for (u32 i = 0; i < STEP_BLOCKS; i++) {
        F32x16 part = {};
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            long x = half_operand(a.of[i], half), w = half_operand(b.of[i], half);
            part = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(x, w, part, 0, 0, 0);
        }
        u32 left = a_scales.of[i], right = b_scales.of[i];
        if constexpr (NEAR) {
            // Twice for either side's halves.
            float factor = float_of((left + 1) << 23) * float_of((right + 1) << 23);
            // Two at a time.
#pragma unroll
            for (u32 r = 0; r < RESULTS; r += 2) {
                F32x2 pair = {sum[r], sum[r + 1]};
                pair = __builtin_elementwise_fma(F32x2{part[r], part[r + 1]}, F32x2{factor, factor}, pair);
                sum[r] = pair[0], sum[r + 1] = pair[1];
            }
        } else {
            bool is_nan = left == 0xFF || right == 0xFF;
            int exponent = (int)(left + right) - 252;
#pragma unroll
            for (u32 r = 0; r < RESULTS; r++) {
                float scaled = __builtin_amdgcn_ldexpf(part[r], exponent);
                sum[r] += is_nan ? float_of(NAN_BITS) : scaled;
            }
        }
    }
}
#endif

// Scales of a row in a step; those behind the last block are the last one's.
DEVICE Scales load_scales(const u8 *row, u64 block, u64 blocks) {
    Scales scales;
#pragma unroll
    for (u32 i = 0; i < STEP_SCALES; i++) {
        u64 at = block + block_of_scale(i);
        scales.of[i] = row[at < blocks ? at : blocks - 1];
    }
    return scales;
}

// Every product of rows of A by rows of B over a step. `is_whole` says that the second block is there.
template <u32 ROWS, u32 TOKENS>
DEVICE void multiply_step(F32x16 (&sums)[ROWS][TOKENS], Fragment (&a)[ROWS], const Scales (&a_scales)[ROWS],
                          Fragment (&b)[TOKENS], const Scales (&b_scales)[TOKENS], bool is_whole) {
    if (!is_whole) {
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) a[i].of[1] = {};
#pragma unroll
        for (u32 j = 0; j < TOKENS; j++) b[j].of[1] = {};
    }
    bool near = true;
#pragma unroll
    for (u32 i = 0; i < ROWS; i++) near = near && are_near(a_scales[i]);
#pragma unroll
    for (u32 j = 0; j < TOKENS; j++) near = near && are_near(b_scales[j]);
    if (__builtin_amdgcn_ballot_w64(!near) == 0) {
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
#pragma unroll
            for (u32 j = 0; j < TOKENS; j++) multiply<true>(sums[i][j], a[i], a_scales[i], b[j], b_scales[j]);
        }
    } else {
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
#pragma unroll
            for (u32 j = 0; j < TOKENS; j++) multiply<false>(sums[i][j], a[i], a_scales[i], b[j], b_scales[j]);
        }
    }
}

// Four neighbouring outputs of a token.
DEVICE void store_outputs(const View &y, u64 token, u64 output, u64 n, const F32x4 &values) {
    u16 *to = row_of<u16>(y, token) + output;
    u16 codes[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) codes[i] = bf16_result(values[i]);
    if (output + 4 <= n && (u64)to % 8 == 0) {
        *(u64 *)to = (u64)codes[3] << 48 | (u64)codes[2] << 32 | (u32)codes[1] << 16 | codes[0];
        return;
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        if (output + i < n) to[i] = codes[i];
    }
}
