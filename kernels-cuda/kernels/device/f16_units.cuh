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

// Of both products of a block the fragment of the weight: eight codes of this thread's row into half h of it.
DEVICE void widen(u32 (&a)[2][4], u32 h, const Words<2> &codes) {
#pragma unroll
    for (u32 p = 0; p < 2; p++) a[p][h] = halves_of_e4m3(codes.of[p]), a[p][2 + h] = halves_of_e4m3(codes.of[p] >> 16);
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
