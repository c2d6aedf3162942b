// The scales of a weight with one for each 32 by 32, as the warps of a tile of it have them: lane l those of blocks l and
// l + 32 of a part.
#pragma once
#include "lanes.cuh"
#include "parts.cuh"
#include "view.cuh"

// A band of 32 rows of a weight of n rows, in a part of its columns.
struct BandCodes {
    const View &weight;
    u32 band, n, blocks;
    Stages part;

    DEVICE u32 column(u32 block) const { return part.first * STAGE_BLOCKS + block; }
    DEVICE bool there(u32 block) const {
        return band <= (n - 1) / 32 && column(block) < blocks && column(block) < part.last * STAGE_BLOCKS;
    }
    // The code of a block of the part; that of 1 where there is none.
    DEVICE void load(u32 (&codes)[2]) const {
        const u8 *row = weight.scales + (u64)band * blocks;
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            u32 block = i * 32 + threadIdx.x % 32;
            codes[i] = there(block) ? row[column(block)] : 127;
        }
    }
    // Whether all codes of a block of the part are zeros.
    DEVICE bool zeros(u32 block) const {
        u32 any = 0;
        for (u32 row = band * 32; there(block) && row < n && row < band * 32 + 32; row++) {
            const u32 *codes = (const u32 *)(weight.codes + ((u64)row * blocks + column(block)) * 32);
            for (u32 w = 0; w < 8; w++) any |= codes[w];
        }
        return (any & 0x7F7F7F7Fu) == 0;
    }
};

// What the lane that has a block of the part has of it.
template <typename T> DEVICE T of_block(const T (&own)[2], u32 block) {
    return __shfl_sync(ALL_LANES, block < 32 ? own[0] : own[1], block % 32);
}
