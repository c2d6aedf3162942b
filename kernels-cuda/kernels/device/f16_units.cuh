// FP8 codes for the 16-bit matrix units: every code of E4M3 is a number of f16, so that products are exact, and a sum of a
// block's is to f32.
//
// A block of 32 columns is two products deep. Both operands have its columns in the order in which the threads of a
// fragment find them in memory: thread c = lane % 4 of the four of a row has the columns from 8 c on, four for the first
// product and four for the second. So in a product's 16, columns 8 c + 4 p, …, 8 c + 4 p + 3 of product p stand at
// 2 c, 2 c + 1, 8 + 2 c and 9 + 2 c.
#pragma once
#include "hopper.cuh"
#include "view.cuh"

// Which row of eight a thread of a fragment has, so that their codes lie in banks of their own.
DEVICE u32 fragment_row(u32 lane) { return lane / 4 % 4 * 2 + lane / 16; }

// Where in a tile of 128-byte swizzled rows this thread of a gang finds its eight codes of a block: of its first row, and
// of the one 8 below, 1024 bytes further.
DEVICE u32 fragment_place(u32 block) {
    u32 lane = threadIdx.x % 32, row = fragment_row(lane);
    return (threadIdx.x % 128 / 32 * 16 + row) * 128 + ((block * 2 + lane % 4 / 2) ^ row) * 16 + lane % 2 * 8;
}

// Which blocks of which rows threads bring to shared memory: a warp four blocks of eight rows, a line of memory each. Those
// that begin elsewhere take other lines at a time.
template <u32 TOKENS> struct Spread {
    static constexpr u32 EIGHTS = TOKENS / 8;
    u32 fours, begin, all;

    DEVICE Spread(u32 blocks, u32 begin) : fours((blocks + 3) / 4), begin(begin), all((blocks + 3) / 4 * 4 * TOKENS) {}
    DEVICE u32 token(u32 at) const { return at / 32 % EIGHTS * 8 + at % 8; }
    DEVICE u32 block(u32 at) const { return (at / 32 / EIGHTS + begin) % fours * 4 + at / 8 % 4; }
    // Where the q-th 16 bytes of a block of 32 columns of 16 bits go.
    DEVICE static u32 place(u32 token, u32 block, u32 q) {
        return (block / 2 * TOKENS + token) * 128 + ((block % 2 * 4 + q) ^ token % 8) * 16;
    }
};

// Of both products of a block the fragment of the weight: eight codes of this thread's row into half h of it.
DEVICE void widen(u32 (&a)[2][4], u32 h, const Words<2> &codes) {
#pragma unroll
    for (u32 p = 0; p < 2; p++) a[p][h] = halves_of_e4m3(codes.of[p]), a[p][2 + h] = halves_of_e4m3(codes.of[p] >> 16);
}

// As above, each by a factor.
DEVICE void widen(u32 (&a)[2][4], u32 h, const Words<2> &codes, u32 factors) {
#pragma unroll
    for (u32 p = 0; p < 2; p++) {
        a[p][h] = product_of_halves(halves_of_e4m3(codes.of[p]), factors);
        a[p][2 + h] = product_of_halves(halves_of_e4m3(codes.of[p] >> 16), factors);
    }
}

// A block's 32 codes as 64 bytes of a row of the other operand, each by a factor.
DEVICE void widen_block(Words<4> (&to)[4], const Words<4> (&codes)[2], u32 factors) {
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        u32 word = codes[i / 4].of[i % 4];
        to[i % 2 * 2].of[i / 2] = product_of_halves(halves_of_e4m3(word), factors);
        to[i % 2 * 2 + 1].of[i / 2] = product_of_halves(halves_of_e4m3(word >> 16), factors);
    }
}
