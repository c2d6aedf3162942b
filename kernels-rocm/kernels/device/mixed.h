// As device/matrix.h, of rows of FP4 with a power of two for each 32 columns, by tokens of FP8.
//
// On gfx950 a lane has of a step the 32 codes of its half's block, and units take FP4 as it is. gfx942 knows no FP4: a table
// of eight bytes, which an instruction looks four codes up in, makes FP8 of it, exactly; its scale is another for every
// register of a result, which lanes tell each other through LDS. There is a second form for gfx942 to compare with, which
// makes bf16 of both and takes half as fast a product.
#pragma once
#include "fp4_codes.h"
#include "sections.h"

// Powers of two that lanes tell each other: for the blocks of a stage and each row.
struct Factors {
#ifndef __gfx950__
    float of[STAGE_BLOCKS][SIDE];
#endif
};

#ifdef __gfx950__
// A stage of a lane's rows.
struct MixedRows {
    Words<4> a[STEPS], b[STAGE_BLOCKS];
    u32 a_scales[STEPS], b_scales[STEPS];
};
#else
struct MixedRows {
    Words<2> a[STAGE_BLOCKS];
    Words<4> b[STAGE_BLOCKS];
    // Of the row the two blocks that are this half's to tell.
    u32 a_scales[STAGE_BLOCKS / 2], b_scales[STAGE_BLOCKS];
};

typedef short I16x4 __attribute__((ext_vector_type(4)));

// Four FP8 codes as bf16, in which every one is a number.
DEVICE I16x4 bf16_of_fnuz(u32 codes) {
    u32 words[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        auto pair = i == 0 ? __builtin_amdgcn_cvt_pk_f32_fp8((int)codes, false)
                           : __builtin_amdgcn_cvt_pk_f32_fp8((int)codes, true);
        float low = pair[0], high = pair[1];
        words[i] = permuted(bits_of(high), bits_of(low), 0x07060302u);
    }
    u64 four = (u64)words[1] << 32 | words[0];
    return __builtin_bit_cast(I16x4, four);
}

// The sum of a block's products: of FP8, and of bf16.
DEVICE F32x16 fp8_products(const Words<4> &left, const Words<4> &right) {
    F32x16 part = {};
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        part = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(half_operand(left, half), half_operand(right, half), part, 0, 0, 0);
    }
    return part;
}
DEVICE F32x16 bf16_products(const Words<4> &left, const Words<4> &right) {
    F32x16 part = {};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        part = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(bf16_of_fnuz(left.of[i]), bf16_of_fnuz(right.of[i]), part, 0, 0, 0);
    }
    return part;
}

// Negative if the scale is not between 66 and 188, so that the product of two such is a normal number of f32.
DEVICE i32 is_far(u32 scale) { return ((i32)scale - 66) | (188 - (i32)scale); }
#endif

template <bool BF16> struct Mixed {
    // The codes and the scales of this lane's row and token.
    const u8 *a, *b, *a_scales, *b_scales;
    u64 blocks;
    Factors *factors;

    DEVICE u64 block(u64 stage, u32 at) const { return at_most(stage * STAGE_BLOCKS + at, blocks - 1); }

    DEVICE MixedRows load(u64 stage) const {
        MixedRows rows;
        u32 half = half_of_wave();
#pragma unroll
        for (u32 i = 0; i < STAGE_BLOCKS; i++) {
            rows.b[i] = *(const Words<4> *)(b + block(stage, i) * SCALED_COLUMNS + half * 16);
        }
#ifdef __gfx950__
#pragma unroll
        for (u32 s = 0; s < STEPS; s++) {
            u64 own = block(stage, 2 * s + half);
            rows.a[s] = *(const Words<4> *)(a + own * (SCALED_COLUMNS / 2));
            rows.a_scales[s] = a_scales[own], rows.b_scales[s] = b_scales[own];
        }
#else
#pragma unroll
        for (u32 i = 0; i < STAGE_BLOCKS; i++) {
            u64 at = block(stage, i);
            rows.a[i] = *(const Words<2> *)(a + at * (SCALED_COLUMNS / 2) + half * 8);
            rows.b_scales[i] = b_scales[at];
        }
#pragma unroll
        for (u32 i = 0; i < STAGE_BLOCKS / 2; i++) rows.a_scales[i] = a_scales[block(stage, STAGE_BLOCKS / 2 * half + i)];
#endif
        return rows;
    }

#ifdef __gfx950__
    DEVICE void multiply(F32x16 &sum, const MixedRows &rows, u64 stage) const {
#pragma unroll
        for (u32 s = 0; s < STEPS; s++) {
            u64 first = stage * STAGE_BLOCKS + s * STEP_BLOCKS;
            if (first >= blocks) break;
            Words<4> second = rows.b[2 * s + 1];
            if (first + 1 >= blocks) second = {};
            I32x8 left = {}, right;
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                left[i] = (int)rows.a[s].of[i];
                right[i] = (int)rows.b[2 * s].of[i], right[4 + i] = (int)second.of[i];
            }
            sum = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(left, right, sum, 4, 0, 0, (int)rows.a_scales[s], 0,
                                                                  (int)rows.b_scales[s]);
        }
    }
#else
    DEVICE void multiply(F32x16 &sum, const MixedRows &rows, u64 stage) const {
        Factors &shared = factors[wave_of_block()];
        i32 far = 0;
#pragma unroll
        for (u32 i = 0; i < STAGE_BLOCKS / 2; i++) {
            shared.of[STAGE_BLOCKS / 2 * half_of_wave() + i][amd::lane() % SIDE] = ue8m0_to_f32((u8)rows.a_scales[i]);
            far |= is_far(rows.a_scales[i]);
        }
#pragma unroll
        for (u32 i = 0; i < STAGE_BLOCKS; i++) far |= is_far(rows.b_scales[i]);
        __syncwarp();
        bool all_near = __builtin_amdgcn_ballot_w64(far < 0) == 0;
#pragma unroll
        for (u32 i = 0; i < STAGE_BLOCKS; i++) {
            if (stage * STAGE_BLOCKS + i >= blocks) break;
            Words<4> left = fnuz_of_e2m1(rows.a[i]), right = fnuz_chunk(rows.b[i]);
            F32x16 part = BF16 ? bf16_products(left, right) : fp8_products(left, right);
            if (all_near) {
                add_near(sum, part, shared.of[i], rows.b_scales[i]);
            } else {
                add_far(sum, part, shared.of[i], rows.b_scales[i]);
            }
        }
        // Reads are done before the next stage's factors are written.
        __syncwarp();
    }

    // Twice for the token's halves.
    DEVICE static void add_near(F32x16 &sum, const F32x16 &part, const float (&left)[SIDE], u32 right) {
        float factor = float_of((right + 1) << 23);
#pragma unroll
        for (u32 q = 0; q < RESULTS / 4; q++) {
            F32x4 rows = *(const F32x4 *)&left[8 * q + 4 * half_of_wave()];
#pragma unroll
            for (u32 r = 0; r < 4; r += 2) {
                u32 at = 4 * q + r;
                F32x2 pair = F32x2{part[at], part[at + 1]} * F32x2{factor, factor};
                pair = __builtin_elementwise_fma(pair, F32x2{rows[r], rows[r + 1]}, F32x2{sum[at], sum[at + 1]});
                sum[at] = pair[0], sum[at + 1] = pair[1];
            }
        }
    }

    DEVICE static void add_far(F32x16 &sum, const F32x16 &part, const float (&left)[SIDE], u32 right) {
#pragma unroll
        for (u32 r = 0; r < RESULTS; r++) {
            // As codes again: none has a fraction but the least one, whose code is 0, and NaN.
            u32 code = bits_of(left[r / 4 * 8 + 4 * half_of_wave() + r % 4]) >> 23;
            float scaled = __builtin_amdgcn_ldexpf(part[r], (int)(code + right) - 253);
            sum[r] += code == 0xFF || right == 0xFF ? float_of(NAN_BITS) : scaled;
        }
    }
#endif
};
