// Sums of MXFP8 by MXFP8 on the 16-bit units, exact but for the order: codes become f16, with their scales in them as far as
// they differ from the largest of a row of x, or of a band of 32 rows of the weight, in a part of the columns. The row's
// and the band's own, their units, come behind. The units add a section of a part; sections, then parts are added in f32.
// Outputs with scales that f16 do not hold beside each other are made one product after the other. Every kernel of this
// kind adds so, whatever its tiles, so that they agree to the bit.
#pragma once
#include "band_codes.cuh"
#include "bf16.cuh"
#include "e4m3.cuh"
#include "f16_units.cuh"
#include "lanes.cuh"
#include "ue8m0.cuh"

// Scales with which no sum of f32 leaves the normal numbers: 2^-40 to 2^40.
DEVICE bool is_tame_code(u32 code) { return code - 87 <= 80; }

// A unit is the code of what a row's f16 count in, 2^7 below its largest scale, or says that they are codes as they are.
constexpr u32 WILD = 0x100, UP = 7, DOWN = 15;
DEVICE bool is_wild_unit(u32 unit) { return unit == WILD; }
DEVICE float unit_of(u32 unit) { return float_of(unit << 23); }
// The unit for what is largest; and whether a scale's codes then are numbers of f16, as they are if they are zeros.
DEVICE u32 unit_for(u32 largest) {
    return largest == 0 || is_tame_code(largest) ? (largest ? largest : 127) - UP : WILD;
}
DEVICE bool fits_unit(u32 code, u32 largest) {
    return code == 0 || code == 0xFF || code + UP + DOWN >= largest;
}

// Twice the f16 that a block's are multiplied by.
DEVICE u32 factors_of(u32 code, u32 unit) {
    u32 up = code + DOWN - unit;
    u32 half = code == 0xFF ? 0x7E00 : unit == WILD ? 0x3C00 : up - 1 <= 29 ? up << 10 : up == 0 ? 0x0200 : 0;
    return half << 16 | half;
}

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

// The unit of each row, by WARPS warps. A part has 64 blocks at most.
template <u32 TOKENS, u32 WARPS> DEVICE void measure(const Rows &rows, u32 *unit) {
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
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
        u32 token = e * WARPS + warp, largest = 0;
#pragma unroll
        for (u32 j = 0; j < 2; j++) largest = codes[e][j] != 0xFF && codes[e][j] > largest ? codes[e][j] : largest;
        largest = __reduce_max_sync(ALL_LANES, largest);
        u32 own = unit_for(largest);
        bool fits = own != WILD;
#pragma unroll
        for (u32 j = 0; j < 2; j++) {
            u32 code = codes[e][j];
            fits &= fits_unit(code, largest) && (code != 0 || rows.zeros(token, j * 32 + lane));
        }
        fits = __ballot_sync(ALL_LANES, fits) == ALL_LANES;
        if (lane == 0 && token < TOKENS) unit[token] = fits ? own : WILD;
    }
}

// The unit of a band of the weight, from the codes of a part's blocks, by a warp.
DEVICE u32 unit_of_band(const BandCodes &band, const u32 (&codes)[2]) {
    u32 lane = threadIdx.x % 32, largest = 0;
    bool fits = true;
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
        bool counts = codes[i] != 0xFF && band.there(i * 32 + lane);
        largest = counts && codes[i] > largest ? codes[i] : largest;
    }
    largest = __reduce_max_sync(ALL_LANES, largest);
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
        u32 block = i * 32 + lane;
        if (band.there(block)) fits &= fits_unit(codes[i], largest) && (codes[i] != 0 || band.zeros(block));
    }
    return __ballot_sync(ALL_LANES, fits) == ALL_LANES ? unit_for(largest) : WILD;
}

// An output one product after the other, of any scales.
DEVICE float far_sum(const View &x, const View &weight, u64 token, u64 row, u32 blocks) {
    double sum = 0;
    for (u32 block = 0; block < blocks; block++) {
        double scale = (double)ue8m0_to_f32(x.scales[token * blocks + block]) *
                       ue8m0_to_f32(weight.scales[row / 32 * blocks + block]);
        const u8 *left = x.codes + (token * blocks + block) * 32, *right = weight.codes + (row * blocks + block) * 32;
        for (u32 i = 0; i < 32; i++) sum += (double)e4m3_to_f32(left[i]) * e4m3_to_f32(right[i]) * scale;
    }
    return f32_to_odd(sum);
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
