// Rows of data in sections, so that waves can share a sum: the blocks of a row are cut into four sections of whole stages.
// A section is added in f32, step by step, and then the sections in their order: the bits are the same whether a wave has
// one of them or all.
#pragma once
#include "matrix.h"

constexpr u32 SECTIONS = 4;
// Columns of a stage, its steps, and its blocks.
constexpr u32 STAGE = 128;
constexpr u32 STEPS = STAGE / STEP;
constexpr u32 STAGE_BLOCKS = STAGE / SCALED_COLUMNS;
// Threads of a block: a wave has a section.
constexpr u32 THREADS = 256;

DEVICE u64 ceiling(u64 x, u64 y) { return (x + y - 1) / y; }
DEVICE u64 at_most(u64 x, u64 most) { return x < most ? x : most; }

DEVICE u64 stages_of_section(u64 blocks) { return ceiling(blocks, SECTIONS * STAGE_BLOCKS); }

DEVICE u32 wave_of_block() { return (u32)__builtin_amdgcn_readfirstlane((int)(threadIdx.x / 64)); }

// What waves tell each other: each quarter of a lane's results.
typedef F32x4 Parts[SECTIONS][RESULTS / 4][64];

// The wave's section of 32 rows by 32 tokens. `side.load(stage)` brings a stage of a lane's rows, `side.multiply(sum, rows,
// stage)` adds its products.
template <typename Side> DEVICE F32x16 section_sum(const Side &side, u64 blocks) {
    u64 each = stages_of_section(blocks), stage = wave_of_block() * each;
    u64 end = at_most(stage + each, ceiling(blocks, STAGE_BLOCKS));
    F32x16 sum = {};
    if (stage >= end) return sum;
    // One stage is on its way while another is multiplied.
    auto even = side.load(stage);
    for (; stage < end; stage += 2) {
        auto odd = side.load(at_most(stage + 1, end - 1));
        side.multiply(sum, even, stage);
        if (stage + 1 >= end) break;
        even = side.load(at_most(stage + 2, end - 1));
        side.multiply(sum, odd, stage + 1);
    }
    return sum;
}

// The sum of all sections for the quarter of results that is this wave's: four outputs of a lane's token, from
// `8 wave + 4 half_of_wave()` on. Threads may go on to other parts behind the next barrier.
DEVICE F32x4 sum_of_sections(Parts &parts, const F32x16 &sum) {
    u32 lane = threadIdx.x % 64, wave = wave_of_block();
#pragma unroll
    for (u32 q = 0; q < RESULTS / 4; q++) {
        parts[wave][q][lane] = {sum[4 * q], sum[4 * q + 1], sum[4 * q + 2], sum[4 * q + 3]};
    }
    __syncthreads();
    F32x4 total = {};
#pragma unroll
    for (u32 s = 0; s < SECTIONS; s++) total += parts[s][wave][lane];
    return total;
}
