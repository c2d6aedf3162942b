// Sums of MXFP8 by MXFP8 on the 16-bit units, exact but for the order: the scales of a row of x go into its f16 as far as
// they differ from the row's largest, so that each block of 32 columns is promoted by the one scale of the weight's tile;
// the row's own, its unit, comes at the end. Every kernel of this kind adds so, whatever its tiles, so that they agree
// to the bit.
#pragma once
#include "f16_units.cuh"
#include "lanes.cuh"
#include "mxfp8_blocks.cuh"
#include "ue8m0.cuh"

// The code of a scale's value.
DEVICE u32 code_of_bits(float scale) { return bits_of(scale) >> 23; }

// Scales with which no sum of f32 leaves the normal numbers: 2^-40 to 2^40.
DEVICE bool is_tame_code(u32 code) { return code - 87 <= 80; }

// A unit is the code of what a row's f16 count in, 2^7 below its largest scale, or says that they are codes as they are.
constexpr u32 WILD = 0x100, UP = 7, DOWN = 15;
DEVICE bool is_wild_unit(u32 unit) { return unit == WILD; }
DEVICE float unit_of(u32 unit) { return float_of(unit << 23); }

// Rows of x, the first `count` of which are there, and of them the blocks of a part.
struct Rows {
    const View &x;
    u32 first, count, blocks, first_block, own;

    DEVICE bool there(u32 token, u32 block) const {
        return token < count && block < own && first_block + block < blocks;
    }
    DEVICE u32 scale(u32 token, u32 block) const {
        return x.scales[(u64)(first + token) * blocks + first_block + block];
    }
    DEVICE const Words<4> *codes(u32 token, u32 block) const {
        return (const Words<4> *)(x.codes + ((u64)(first + token) * blocks + first_block + block) * 32);
    }
    // Whether a block is nothing but zeros, which have a scale of their own.
    DEVICE bool zeros(u32 token, u32 block) const {
        if (!there(token, block)) return true;
        u32 any = 0;
        for (u32 i = 0; i < 8; i++) any |= codes(token, block)[i / 4].of[i % 4];
        return (any & 0x7F7F7F7Fu) == 0;
    }
};

// The unit of each row, by WARPS warps; whether all of this warp's rows have one. A part has 64 blocks at most.
template <u32 TOKENS, u32 WARPS> DEVICE bool measure(const Rows &rows, u32 *unit) {
    constexpr u32 EACH = (TOKENS + WARPS - 1) / WARPS;
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, codes[EACH][2];
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
#pragma unroll
        for (u32 j = 0; j < 2; j++) {
            u32 token = e * WARPS + warp, block = j * 32 + lane;
            codes[e][j] = rows.there(token, block) ? rows.scale(token, block) : 0;
        }
    }
    bool all = true;
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
        u32 token = e * WARPS + warp, largest = 0;
#pragma unroll
        for (u32 j = 0; j < 2; j++) largest = codes[e][j] != 0xFF && codes[e][j] > largest ? codes[e][j] : largest;
        largest = __reduce_max_sync(ALL_LANES, largest);
        bool fits = largest == 0 || is_tame_code(largest);
#pragma unroll
        for (u32 j = 0; j < 2; j++) {
            u32 code = codes[e][j];
            fits &= code == 0 ? rows.zeros(token, j * 32 + lane) : code == 0xFF || code + UP + DOWN >= largest;
        }
        fits = __ballot_sync(ALL_LANES, fits) == ALL_LANES;
        if (lane == 0 && token < TOKENS) unit[token] = fits ? (largest ? largest : 127) - UP : WILD;
        all &= fits;
    }
    return all;
}

// Twice the f16 that a block's are multiplied by.
DEVICE u32 factors_of(u32 code, u32 unit) {
    u32 up = code + DOWN - unit;
    u32 half = code == 0xFF ? 0x7E00 : unit == WILD ? 0x3C00 : up - 1 <= 29 ? up << 10 : up == 0 ? 0x0200 : 0;
    return half << 16 | half;
}

// The rows as f16 on their way to shared memory, for 64 columns after the other TOKENS swizzled rows of 128 bytes, by
// THREADS threads.
template <u32 TOKENS, u32 THREADS> struct Widening {
    static constexpr u32 AT_ONCE = TOKENS <= 8 ? 2 : 4;
    const Rows &rows;
    const Spread<TOKENS> spread;
    Words<4> codes[AT_ONCE][2];
    u32 scale[AT_ONCE];

    DEVICE Widening(const Rows &rows, u32 begin) : rows(rows), spread(rows.own, begin) {}

    DEVICE void load(u32 from) {
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            u32 at = from + i * THREADS, token = spread.token(at), block = spread.block(at);
            codes[i][0] = codes[i][1] = {}, scale[i] = 0;
            if (at >= spread.all || !rows.there(token, block)) continue;
            codes[i][0] = rows.codes(token, block)[0], codes[i][1] = rows.codes(token, block)[1];
            scale[i] = rows.scale(token, block);
        }
    }
    DEVICE void store(const u32 *unit, u8 *to, u32 from) const {
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            u32 at = from + i * THREADS, token = spread.token(at), block = spread.block(at);
            if (at >= spread.all || block >= rows.own) continue;
            Words<4> halves[4];
            widen_block(halves, codes[i], factors_of(scale[i], unit[token]));
#pragma unroll
            for (u32 q = 0; q < 4; q++) store_16(to + spread.place(token, block, q), halves[q].of);
        }
    }
    // All of it, the first of which were loaded.
    DEVICE void finish(const u32 *unit, u8 *to) {
        for (u32 from = threadIdx.x;; load(from)) {
            store(unit, to, from);
            from += AT_ONCE * THREADS;
            if (from >= spread.all) break;
        }
    }
};
