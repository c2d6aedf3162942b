// The scales of a weight with one for each 32 by 32, as narrow_tiles.cuh uses them: a tile's on their way while the one
// before is multiplied.
#pragma once
#include "narrow_tiles.cuh"
#include "ue8m0.cuh"

struct BandScales {
    // Codes, as they come; and what they became.
    u32 codes[2];
    u32 now;

    // Those of this warp's band of a tile: of blocks `lane` and 32 further of a part. What is not there is 1.
    DEVICE void load(const View &weight, u64 band, bool there, u32 blocks, u32 first_block, u32 own) {
        const u8 *row = weight.scales + band * blocks;
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            u32 block = i * 32 + threadIdx.x % 32;
            bool counts = there && block < own && first_block + block < blocks;
            codes[i] = counts ? row[first_block + block] : 127;
        }
    }
    // Shows them to the gang, whose threads agree on something before they read.
    DEVICE void show(float *scales, u32 gang, u32 round) {
        u32 thread = forgotten(threadIdx.x), warp = thread % narrow::GANG / 32, lane = thread % 32;
        now = ((gang * 2 + round % 2) * narrow::BANDS + warp / 2) * narrow::BLOCKS;
        float *to = scales + now;
        if (warp % 2 == 0) to[lane] = ue8m0_to_f32((u8)codes[0]), to[32 + lane] = ue8m0_to_f32((u8)codes[1]);
    }
    // Of the four blocks of a stage.
    DEVICE narrow::Four stage(const float *scales, u32 i) const { return *(const narrow::Four *)(scales + now + i * 4); }
    DEVICE float block(const float *scales, u32 i) const { return scales[now + i]; }
};
