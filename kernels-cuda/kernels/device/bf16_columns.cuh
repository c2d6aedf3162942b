// Rows of bf16 as the operand of tokens of the 16-bit matrix units, and FP8 codes as bf16 beside them.
#pragma once
#include "f16_units.cuh"

// Rows of x, `pitch` elements apart, the first `count` of which are there, and of them the blocks of a part.
struct Bf16Rows {
    const u16 *x;
    u64 pitch;
    u32 count, columns, first_block, own;

    // The elements of a block, those of pieces of 8 that are there.
    DEVICE void load(Words<4> (&to)[4], u32 token, u32 block) const {
#pragma unroll
        for (u32 c = 0; c < 4; c++) {
            u32 column = (first_block + block) * 32 + c * 8;
            to[c] = {};
            if (block < own && token < count && column < columns) to[c] = load_words<4>(x + token * pitch + column);
        }
    }
};

// The rows, for 64 columns after the other TOKENS swizzled rows of 128 bytes, by THREADS threads; columns of a block in
// the order of fragments (f16_units.cuh) if that is how the other operand comes.
template <u32 TOKENS, u32 THREADS, bool FRAGMENTS>
DEVICE void bring_rows(const Bf16Rows &rows, u8 *to, u32 begin) {
    // As many as there are registers for.
    constexpr u32 AT_ONCE = TOKENS <= 16 ? 2 : 1;
    Spread<TOKENS> spread(rows.own, begin);
    for (u32 from = threadIdx.x; from < spread.all; from += AT_ONCE * THREADS) {
        Words<4> held[AT_ONCE][4];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            u32 at = from + i * THREADS;
            if (at < spread.all) rows.load(held[i], spread.token(at), spread.block(at));
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            u32 at = from + i * THREADS, token = spread.token(at), block = spread.block(at);
            if (at >= spread.all || block >= rows.own) continue;
#pragma unroll
            for (u32 q = 0; q < 4; q++) {
                // Thread c has 16 bytes of a block, of which each product takes two words.
                const Words<4>(&w)[4] = held[i];
                Words<4> words = FRAGMENTS ? Words<4>{w[0].of[q], w[1].of[q], w[2].of[q], w[3].of[q]} : w[q];
                store_16(to + spread.place(token, block, q), words.of);
            }
        }
    }
}

// Two neighbouring codes of a word of four, each at the upper end of a half.
template <u32 PAIR> DEVICE u32 apart(u32 codes) {
#ifdef __CUDACC__
    return __byte_perm(codes, 0, PAIR ? 0x3424 : 0x1404);
#else
    codes >>= 16 * PAIR;
    return (codes & 0xFF) << 8 | (codes & 0xFF00) << 16;
#endif
}
// As bf16, by a factor in twos: the code moved to the lower end of exponent and upper end of mantissa is its value times
// 2^-120, exactly. It has no NaN.
DEVICE u32 bf16s_of_e4m3(u32 codes, u32 factors) {
    return product_of_bf16s((codes & 0x80008000u) | (codes >> 4 & 0x07F007F0u), factors);
}
// What shows the NaN among four codes in the bits 0x80808080.
DEVICE u32 nans_of_e4m3(u32 codes) { return (codes & 0x7F7F7F7Fu) + 0x01010101u; }

// As `widen` of f16_units.cuh.
DEVICE void widen_to_bf16(u32 (&a)[2][4], u32 h, const Words<2> &codes, u32 factors) {
#pragma unroll
    for (u32 p = 0; p < 2; p++) {
        a[p][h] = bf16s_of_e4m3(apart<0>(codes.of[p]), factors);
        a[p][2 + h] = bf16s_of_e4m3(apart<1>(codes.of[p]), factors);
    }
}
