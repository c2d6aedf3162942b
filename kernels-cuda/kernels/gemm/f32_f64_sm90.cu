// gemm.f32 on Hopper's f64 matrix units: products of two bf16 are exact in f64, sums of them nearly so, and a result is
// rounded once, when it becomes f32.
//
// A block makes a tile of outputs by tokens: a warp has fragments of 16 outputs by eights of tokens. Weights come from
// memory straight to registers, eight columns a lane, some steps of 32 columns ahead, from before the kernel in front has
// ended; the tokens lie in shared memory as f64 in the order of fragments, one stage of steps read while the next is
// written. Where outputs are few, the blocks of a cluster have parts of the columns: each adds its share of the tile from
// where all have left their sums, in order. Parts follow from the shape alone, and products of both depths add column after
// column, so the bits do not depend on the number of tokens. Of many tokens a block makes all parts itself.
//
// Bytes: the weight once for each 32 tokens, whose blocks run side by side, tokens once for each tile, from L2. Floors of
// 129,280 x 5120: 308 us of bytes, and 20 us a token of the units' 67 TFLOP/s, which is more from 16 tokens on; of 384 outputs
// 0.9 us, and 481 of 8,192 tokens. Predicted, from a program of its own: 331, 334 and 1,601 us for the head at 1, 8 and 64
// tokens, 7.1, 7.2, 13.5 and 776 for 384 outputs at 1, 8, 64 and 8,192.
// Measured: head 339, 355 and 1,599 us; 384 outputs 5.8, 6.1, 10.8 and 659 (the plain row: 455, 846 and 6,402; 4.3, 10.2, 26.8
// and 2,565). 512 outputs of 512 tokens 77, 1,024 of 8,192 tokens 1,683.
// SASS: DMMA UCGABAR_ARV
#include "../device/chunk.cuh"
#include "../device/hopper.cuh"

// Columns of a step, rows and tokens of a fragment, and its sums.
constexpr u32 STEP = 32, ROWS = 16, EIGHT = 8, SUMS = ROWS * EIGHT;
constexpr u32 MOST_PARTS = 16;

struct F64Linear {
    View x, weight, y;
    u64 n, k, tokens;
    // Of the columns, and steps of a stage.
    u32 parts, held;
};

// Where a block's outputs and tokens begin, and its steps.
struct F64Tile {
    u64 output, token;
    u32 first, steps;
};

DEVICE u32 steps_of(u64 k) { return (u32)((k + STEP - 1) / STEP); }
DEVICE u32 first_step(const F64Linear &d, u32 part) { return (u32)((u64)steps_of(d.k) * part / d.parts); }

// A lane's eight columns of the steps of a tile, and those of them that are there: eight columns of the last may be none.
struct LaneSteps {
    u32 column, count;
};
DEVICE LaneSteps lane_steps(const F64Linear &d, const F64Tile &tile) {
    u32 column = threadIdx.x % 4 * CHUNK;
    u64 there = (d.k - column + STEP - 1) / STEP - tile.first;
    return {column, column < d.k ? (there < tile.steps ? (u32)there : tile.steps) : 0};
}

// Eight bf16 from a place on, if they are `there`, zeros if not; of a weight or not. `left` columns of the row are to come.
template <bool WHOLE, bool OF_WEIGHT> DEVICE Words<4> eight_of(bool there, const u16 *from, u64 left) {
    Words<4> words = {};
    if constexpr (!WHOLE) {
#pragma unroll
        for (u32 i = 0; i < CHUNK; i++) {
            if (there && i < left) words.of[i / 2] |= (u32)from[i] << i % 2 * 16;
        }
    } else if constexpr (OF_WEIGHT) {
        load_16_once_if(there, from, words.of);
    } else {
        load_16_if(there, from, words.of);
    }
    return words;
}

DEVICE double f64_of(const Words<4> &words, u32 i) {
    return (double)(i % 2 ? upper_bf16(words.of[i / 2]) : lower_bf16(words.of[i / 2]));
}

// A stage of the tokens, from a step of the tile on: element j of lane l's eight columns of step s and eight t is at
// ((8 s + j) EIGHTS + t) 32 + l.
template <u32 EIGHTS, bool WHOLE>
DEVICE void bring(const F64Linear &d, const F64Tile &tile, const LaneSteps &own, u32 first, double *stage) {
    u32 lane = threadIdx.x % 32;
#pragma unroll (EIGHTS == 1 ? 4 : 1)
    for (u32 i = threadIdx.x / 32; i < d.held * EIGHTS; i += blockDim.x / 32) {
        u32 eight = i % EIGHTS, step = first + i / EIGHTS;
        u64 token = tile.token + eight * EIGHT + lane / 4, column = (u64)(tile.first + step) * STEP + own.column;
        bool there = token < d.tokens && step < own.count;
        Words<4> words = eight_of<WHOLE, false>(there, row_of<const u16>(d.x, token) + column, d.k - column);
#pragma unroll
        for (u32 j = 0; j < CHUNK; j++) stage[((i / EIGHTS * CHUNK + j) * EIGHTS + eight) * 32 + lane] = f64_of(words, j);
    }
}

// A warp's sums over columns.
template <u32 FRAGMENTS, u32 EIGHTS> struct F64Sums {
    static constexpr u32 EACH = FRAGMENTS * EIGHTS * 4;
    double of[FRAGMENTS][EIGHTS][4];

    DEVICE double &at(u32 i) { return of[i / 4 / EIGHTS][i / 4 % EIGHTS][i % 4]; }
    // Where a lane's sum is among those of a block.
    static DEVICE u32 place(u32 i) { return (threadIdx.x / 32 * EACH + i) * 32 + threadIdx.x % 32; }
};

template <u32 DEPTH, u32 FRAGMENTS, u32 EIGHTS>
DEVICE void multiply_step(F64Sums<FRAGMENTS, EIGHTS> &sums, const Words<4> (&weights)[FRAGMENTS][2], const double *x) {
    constexpr u32 EACH = DEPTH / 4;
#pragma unroll
    for (u32 j = 0; j < CHUNK; j += EACH) {
        double a[FRAGMENTS][2 * EACH];
#pragma unroll
        for (u32 m = 0; m < FRAGMENTS; m++) {
#pragma unroll
            for (u32 i = 0; i < 2 * EACH; i++) a[m][i] = f64_of(weights[m][i % 2], j + i / 2);
        }
#pragma unroll
        for (u32 t = 0; t < EIGHTS; t++) {
            double b[EACH];
#pragma unroll
            for (u32 i = 0; i < EACH; i++) b[i] = x[((j + i) * EIGHTS + t) * 32];
#pragma unroll
            for (u32 m = 0; m < FRAGMENTS; m++) mma_f64_warp(sums.of[m][t], a[m], b);
        }
    }
}

// A part is whole: to those of this block before it, each lane its own.
template <u32 FRAGMENTS, u32 EIGHTS> DEVICE void add_part(F64Sums<FRAGMENTS, EIGHTS> &sums, bool is_first, double *all) {
#pragma unroll
    for (u32 i = 0; i < sums.EACH; i++) {
        double &sum = all[sums.place(i)];
        sum = is_first ? sums.at(i) : sum + sums.at(i), sums.at(i) = 0;
    }
}

// A warp's sums of a tile's steps; with WITHIN those are of all parts, whose sum `all` holds then.
template <u32 DEPTH, u32 AHEAD, bool WITHIN, bool WHOLE, u32 FRAGMENTS, u32 EIGHTS>
DEVICE void add_steps(const F64Linear &d, const F64Tile &tile, double *stages, F64Sums<FRAGMENTS, EIGHTS> &sums, double *all) {
    u32 lane = threadIdx.x % 32, part = 1, end = WITHIN ? first_step(d, 1) : 0;
    LaneSteps own = lane_steps(d, tile);
    u64 column = (u64)tile.first * STEP + own.column;
    const u16 *rows[FRAGMENTS][2];
#pragma unroll
    for (u32 i = 0; i < FRAGMENTS * 2; i++) {
        u64 output = tile.output + threadIdx.x / 32 * FRAGMENTS * ROWS + i * 8 + lane / 4;
        // Rows behind the last one are made as that, and not stored.
        rows[i / 2][i % 2] = row_of<const u16>(d.weight, output < d.n ? output : d.n - 1) + column;
    }
    auto load = [&](Words<4>(&to)[FRAGMENTS][2], u32 step) {
#pragma unroll
        for (u32 i = 0; i < FRAGMENTS * 2; i++) {
            const u16 *from = rows[i / 2][i % 2] + (u64)step * STEP;
            to[i / 2][i % 2] = eight_of<WHOLE, true>(step < own.count, from, d.k - column - (u64)step * STEP);
        }
    };
    Words<4> ring[AHEAD][FRAGMENTS][2];
#pragma unroll
    for (u32 i = 0; i < AHEAD; i++) load(ring[i], i);
    u32 size = d.held * CHUNK * EIGHTS * 32;
    wait_for_previous();
    bring<EIGHTS, WHOLE>(d, tile, own, 0, stages);
    __syncthreads();
    for (u32 begin = 0, turn = 0; begin < tile.steps; begin += d.held, turn ^= 1) {
        if (begin + d.held < tile.steps) bring<EIGHTS, WHOLE>(d, tile, own, begin + d.held, stages + (turn ^ 1) * size);
        const double *x = stages + turn * size + lane;
#pragma unroll 1
        for (u32 s = 0; s < d.held && begin + s < tile.steps; s += AHEAD) {
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++) {
                u32 step = begin + s + i;
                // Steps behind the last one are zeros.
                if (WITHIN && step == end) {
                    add_part(sums, part == 1, all);
                    part++, end = first_step(d, part);
                }
                Words<4> weights[FRAGMENTS][2];
#pragma unroll
                for (u32 m = 0; m < FRAGMENTS * 2; m++) weights[m / 2][m % 2] = ring[i][m / 2][m % 2];
                load(ring[i], step + AHEAD);
                multiply_step<DEPTH>(sums, weights, x + (s + i) * CHUNK * EIGHTS * 32);
            }
        }
        __syncthreads();
    }
    if (WITHIN) add_part(sums, part == 1, all);
}

// Sum `at` of those that a block's warps have, one lane's after the other's: to the result.
template <u32 FRAGMENTS, u32 EIGHTS> DEVICE void store(const F64Linear &d, const F64Tile &tile, u32 at, double sum) {
    u32 lane = at % 32, i = at / 32 % 4, eight = at / SUMS % EIGHTS, fragment = at / SUMS / EIGHTS;
    u64 output = tile.output + fragment * ROWS + i / 2 * 8 + lane / 4;
    u64 token = tile.token + eight * EIGHT + lane % 4 * 2 + i % 2;
    if (output < d.n && token < d.tokens) row_of<float>(d.y, token)[output] = f32_result(sum);
}

// Adds the parts of a cluster's blocks: each its share of the tile. `room` is of one block's sums.
template <u32 FRAGMENTS, u32 EIGHTS>
DEVICE void store_together(const F64Linear &d, const F64Tile &tile, F64Sums<FRAGMENTS, EIGHTS> &sums, double *room) {
    u32 share = blockDim.x * sums.EACH / d.parts, first = cluster_rank() * share;
#pragma unroll
    for (u32 i = 0; i < sums.EACH; i++) room[sums.place(i)] = sums.at(i);
    cluster_sync();
    for (u32 at = first + threadIdx.x; at < first + share; at += blockDim.x) {
        double part[MOST_PARTS], sum = 0;
#pragma unroll
        for (u32 i = 0; i < MOST_PARTS; i++) part[i] = i < d.parts ? *peer_shared(room + at, i) : 0;
#pragma unroll
        for (u32 i = 0; i < MOST_PARTS; i++) sum = i < d.parts ? sum + part[i] : sum;
        store<FRAGMENTS, EIGHTS>(d, tile, at, sum);
    }
    // A block that ends takes away what peers read.
    cluster_sync();
}

// One tile, by a block or, of parts that are not WITHIN one, by a cluster.
template <u32 FRAGMENTS, u32 EIGHTS, u32 DEPTH, u32 AHEAD, bool WITHIN, bool WHOLE = true>
DEVICE void f64_linear(const F64Linear &d) {
    DYNAMIC_SHARED(shared);
    let_next_begin();
    u32 outputs = blockDim.x / 32 * FRAGMENTS * ROWS, rank = WITHIN ? 0 : cluster_rank();
    u64 tiles = (d.n + outputs - 1) / outputs, bands = (d.tokens + EIGHTS * EIGHT - 1) / (EIGHTS * EIGHT);
    // Neighbours share what is the larger side, so that it comes from memory once.
    u64 at = cluster_number(), output = d.n >= d.tokens ? at / bands : at % tiles;
    u64 band = d.n >= d.tokens ? at % bands : at / tiles;
    u32 first = first_step(d, rank), end = WITHIN ? steps_of(d.k) : first_step(d, rank + 1);
    F64Tile tile = {output * outputs, band * EIGHTS * EIGHT, first, end - first};
    F64Sums<FRAGMENTS, EIGHTS> sums = {};
    double *stages = (double *)shared, *all = stages + 2 * d.held * CHUNK * EIGHTS * 32;
    add_steps<DEPTH, AHEAD, WITHIN, WHOLE>(d, tile, stages, sums, all);
    if (!WITHIN && d.parts > 1) return store_together(d, tile, sums, stages);
#pragma unroll
    for (u32 i = 0; i < sums.EACH; i++) {
        u32 place = sums.place(i);
        store<FRAGMENTS, EIGHTS>(d, tile, place, WITHIN ? all[place] : sums.at(i));
    }
}

KERNEL(gemm_f32__f64_8, 256, fitting, 2)(View x, View weight, View y, u64 n, u64 k, u64 tokens, u32 parts, u32 held) {
    f64_linear<1, 1, 8, 5, false>({x, weight, y, n, k, tokens, parts, held});
}
KERNEL(gemm_f32__f64_16, 256, fitting, 2)(View x, View weight, View y, u64 n, u64 k, u64 tokens, u32 parts, u32 held) {
    f64_linear<1, 2, 8, 5, false>({x, weight, y, n, k, tokens, parts, held});
}
KERNEL(gemm_f32__f64_32, 256, fitting, 2)(View x, View weight, View y, u64 n, u64 k, u64 tokens, u32 parts, u32 held) {
    f64_linear<1, 4, 16, 1, false>({x, weight, y, n, k, tokens, parts, held});
}
KERNEL(gemm_f32__f64_parts_16, 256, fitting, 2)(View x, View weight, View y, u64 n, u64 k, u64 tokens, u32 parts, u32 held) {
    f64_linear<1, 2, 8, 4, true>({x, weight, y, n, k, tokens, parts, held});
}
KERNEL(gemm_f32__f64_parts_32, 256, fitting, 2)(View x, View weight, View y, u64 n, u64 k, u64 tokens, u32 parts, u32 held) {
    f64_linear<1, 4, 16, 2, true>({x, weight, y, n, k, tokens, parts, held});
}
KERNEL(gemm_f32__f64_any, 256, fitting, 2)(View x, View weight, View y, u64 n, u64 k, u64 tokens, u32 parts, u32 held) {
    f64_linear<1, 1, 8, 1, true, false>({x, weight, y, n, k, tokens, parts, held});
}
