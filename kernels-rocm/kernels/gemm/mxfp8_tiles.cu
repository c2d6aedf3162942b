// gemm.mxfp8 on the matrix units, see device/matrix.h and device/sections.h.
//
// loop gfx942: v_mfma_f32_32x32x16_fp8_fp8
// loop gfx950: v_mfma_scale_f32_32x32x64_f8f6f4
// never gfx950: v_cvt_
#include "../device/sections.h"

// --- 32 outputs of 32 tokens a block, a section a wave, without a word in LDS but for the sums.

// A stage of both rows of a lane.
struct Rows {
    Fragment a[STEPS], b[STEPS];
    Scales a_scales[STEPS], b_scales[STEPS];
};

struct Narrow {
    // Where this lane's columns begin, and its scales.
    const u8 *a, *b, *a_scales, *b_scales;
    u64 blocks;

    DEVICE Rows load(u64 stage) const {
        Rows rows;
#pragma unroll
        for (u32 s = 0; s < STEPS; s++) {
            u64 block = stage * STAGE_BLOCKS + s * STEP_BLOCKS;
#pragma unroll
            for (u32 i = 0; i < STEP_BLOCKS; i++) {
                u64 column = at_most(block + i, blocks - 1) * SCALED_COLUMNS;
                rows.a[s].of[i] = *(const Words<4> *)(a + column);
                rows.b[s].of[i] = *(const Words<4> *)(b + column);
            }
            rows.a_scales[s] = load_scales(a_scales, block, blocks);
            rows.b_scales[s] = load_scales(b_scales, block, blocks);
        }
        return rows;
    }

    DEVICE void multiply(F32x16 &sum, Rows &rows, u64 stage) const {
        F32x16 sums[1][1] = {{sum}};
#pragma unroll
        for (u32 s = 0; s < STEPS; s++) {
            u64 block = stage * STAGE_BLOCKS + s * STEP_BLOCKS;
            if (block >= blocks) break;
            Fragment a[1], b[1];
#pragma unroll
            for (u32 i = 0; i < STEP_BLOCKS; i++) {
                a[0].of[i] = unit_codes(rows.a[s].of[i]);
                b[0].of[i] = unit_codes(rows.b[s].of[i]);
            }
            Scales a_scales[1] = {rows.a_scales[s]}, b_scales[1] = {rows.b_scales[s]};
            multiply_step(sums, a, a_scales, b, b_scales, block + 1 < blocks);
        }
        sum = sums[0][0];
    }
};

KERNEL(gemm_mxfp8__narrow, THREADS)(View x, View weight, View y, u64 n, u64 k, u64 tokens) {
    __shared__ Parts parts;
    u64 blocks = k / SCALED_COLUMNS, tiles = ceiling(n, SIDE);
    u64 output = blockIdx.x % tiles * SIDE, token = blockIdx.x / tiles * SIDE;
    u32 lane = threadIdx.x % 64;
    u64 own = at_most(output + lane % SIDE, n - 1), row = at_most(token + lane % SIDE, tokens - 1);
    u64 first_column = half_of_wave() * 16;
    Narrow rows = {weight.codes + own * k + first_column, x.codes + row * k + first_column,
                   weight.scales + output / SIDE * blocks, x.scales + row * blocks, blocks};
    F32x4 total = sum_of_sections(parts, section_sum(rows, blocks));
    u64 to = output + 8 * wave_of_block() + 4 * half_of_wave();
    if (token + lane % SIDE < tokens) store_outputs(y, token + lane % SIDE, to, n, total);
}

// --- 128 outputs of 128 tokens a block, 64 of 64 a wave, stages through LDS.

constexpr u32 WIDE = 128;
// Tiles of a wave either way.
constexpr u32 TILES = 2;
constexpr u32 CHUNK_BYTES = 16;
constexpr u32 TILE_BYTES = WIDE * STAGE;
// Chunks of one side that a thread moves, and how many rows are between them.
constexpr u32 MOVES = TILE_BYTES / CHUNK_BYTES / THREADS;
constexpr u32 MOVED_ROWS = WIDE / MOVES;

// Which of a row's eight chunks stands where in LDS: exclusive-or with this, so that no phase of a read meets a bank twice.
DEVICE u32 swizzle(u32 row) {
#ifdef __gfx950__
    return row / 2 % 8;
#else
    return row % 8;
#endif
}

// How stages come to LDS. On gfx950 they go there at once, one ahead, in two buffers; gfx942 has to make other codes of them
// and keeps them in registers until everybody has read the stage before.
#ifdef __gfx950__
constexpr u32 BUFFERS = 2;
struct Moved {};
#else
constexpr u32 BUFFERS = 1;
struct Moved {
    Words<4> of[2][MOVES];
};
#endif

struct Wide {
    // Both sides: the first row's codes, and offsets of this thread's rows behind it.
    const u8 *codes[2];
    u32 rows[2][MOVES];
    u64 k;
    u8 (*tiles)[2][TILE_BYTES];

    DEVICE void load(Moved &moved, u64 stage) const {
        // The eight threads of a row take a line.
        u64 column = stage * STAGE + (threadIdx.x % 8 ^ swizzle(threadIdx.x / 8)) * CHUNK_BYTES;
        u32 at = column < k ? (u32)column : 0;
#pragma unroll
        for (u32 side = 0; side < 2; side++) {
#pragma unroll
            for (u32 i = 0; i < MOVES; i++) {
                const u8 *from = codes[side] + (u64)(rows[side][i] + at);
#ifdef __gfx950__
                u8 *to = tiles[stage % BUFFERS][side] + (i * THREADS + wave_of_block() * 64) * CHUNK_BYTES;
                amd::load_to_lds(from, to);
#else
                moved.of[side][i] = *(const Words<4> *)from;
#endif
            }
        }
    }

    DEVICE void keep(const Moved &moved) const {
#ifndef __gfx950__
#pragma unroll
        for (u32 side = 0; side < 2; side++) {
#pragma unroll
            for (u32 i = 0; i < MOVES; i++) {
                u8 *to = tiles[0][side] + (i * THREADS + threadIdx.x) * CHUNK_BYTES;
                *(Words<4> *)to = fnuz_chunk(moved.of[side][i]);
            }
        }
#endif
    }
};

struct WideScales {
    Scales a[STEPS][TILES], b[STEPS][TILES];
};

DEVICE WideScales load_wide(const u8 *(&a)[TILES], const u8 *(&b)[TILES], u64 stage, u64 blocks) {
    WideScales scales;
#pragma unroll
    for (u32 s = 0; s < STEPS; s++) {
        u64 block = stage * STAGE_BLOCKS + s * STEP_BLOCKS;
#pragma unroll
        for (u32 i = 0; i < TILES; i++) {
            scales.a[s][i] = load_scales(a[i], block, blocks);
            scales.b[s][i] = load_scales(b[i], block, blocks);
        }
    }
    return scales;
}

// The tile that a block makes. Blocks go to dies in turn: a die gets neighbours, which share rows of the weight.
DEVICE u64 tile_of_block(u64 tiles) {
    constexpr u64 DIES = 8;
    return blockIdx.x % DIES * ceiling(tiles, DIES) + blockIdx.x / DIES;
}

KERNEL(gemm_mxfp8__wide, THREADS)(View x, View weight, View y, u64 n, u64 k, u64 tokens) {
    __shared__ alignas(16) u8 tiles[BUFFERS][2][TILE_BYTES];
    u64 blocks = k / SCALED_COLUMNS, bands = ceiling(tokens, WIDE), count = ceiling(n, WIDE) * bands;
    u64 tile = tile_of_block(count);
    if (tile >= count) return;
    u64 output = tile / bands * WIDE, token = tile % bands * WIDE;
    u32 lane = threadIdx.x % 64, wave = wave_of_block();
    u32 own = wave / 2 * TILES * SIDE, row = wave % 2 * TILES * SIDE;

    Wide side = {{weight.codes + output * k, x.codes + token * k}, {}, k, tiles};
#pragma unroll
    for (u32 i = 0; i < MOVES; i++) {
        u64 at = i * MOVED_ROWS + threadIdx.x / 8;
        side.rows[0][i] = (u32)(at_most(at, n - output - 1) * k);
        side.rows[1][i] = (u32)(at_most(at, tokens - token - 1) * k);
    }
    const u8 *a_scales[TILES], *b_scales[TILES];
#pragma unroll
    for (u32 i = 0; i < TILES; i++) {
        a_scales[i] = weight.scales + at_most(output + own + i * SIDE, n - 1) / SIDE * blocks;
        b_scales[i] = x.scales + at_most(token + row + i * SIDE + lane % SIDE, tokens - 1) * blocks;
    }

    u64 stages = ceiling(blocks, STAGE_BLOCKS), each = stages_of_section(blocks), next_section = each;
    F32x16 sums[TILES][TILES] = {}, totals[TILES][TILES] = {};
    Moved moved;
    side.load(moved, 0);
    WideScales scales = load_wide(a_scales, b_scales, 0, blocks);
    side.keep(moved);
    __syncthreads();
    for (u64 stage = 0; stage < stages; stage++) {
        u64 next = at_most(stage + 1, stages - 1);
        if (BUFFERS == 1 || stage + 1 < stages) side.load(moved, next);
        WideScales coming = load_wide(a_scales, b_scales, next, blocks);
#pragma unroll
        for (u32 s = 0; s < STEPS; s++) {
            u64 block = stage * STAGE_BLOCKS + s * STEP_BLOCKS;
            if (block >= blocks) break;
            Fragment a[TILES], b[TILES];
#pragma unroll
            for (u32 i = 0; i < TILES; i++) {
#pragma unroll
                for (u32 c = 0; c < STEP_BLOCKS; c++) {
                    u32 chunk = s * STEP / CHUNK_BYTES + 2 * c + half_of_wave();
                    u32 at = (lane % SIDE) * STAGE + (chunk ^ swizzle(lane % SIDE)) * CHUNK_BYTES;
                    const u8 *from = (const u8 *)tiles[stage % BUFFERS];
                    a[i].of[c] = *(const Words<4> *)(from + (own + i * SIDE) * STAGE + at);
                    b[i].of[c] = *(const Words<4> *)(from + TILE_BYTES + (row + i * SIDE) * STAGE + at);
                }
            }
            multiply_step(sums, a, scales.a[s], b, scales.b[s], block + 1 < blocks);
        }
        scales = coming;
        if (stage + 1 == next_section || stage + 1 == stages) {
            next_section += each;
#pragma unroll
            for (u32 i = 0; i < TILES * TILES; i++) {
                totals[i / TILES][i % TILES] += sums[i / TILES][i % TILES];
                sums[i / TILES][i % TILES] = {};
            }
        }
        __syncthreads();
        if (BUFFERS == 1) {
            side.keep(moved);
            __syncthreads();
        }
    }
#pragma unroll
    for (u32 i = 0; i < TILES; i++) {
#pragma unroll
        for (u32 j = 0; j < TILES; j++) {
            u64 to = token + row + j * SIDE + lane % SIDE;
            if (to >= tokens) continue;
#pragma unroll
            for (u32 q = 0; q < RESULTS / 4; q++) {
                F32x16 &t = totals[i][j];
                F32x4 values = {t[4 * q], t[4 * q + 1], t[4 * q + 2], t[4 * q + 3]};
                store_outputs(y, to, output + own + i * SIDE + 8 * q + 4 * half_of_wave(), n, values);
            }
        }
    }
}
