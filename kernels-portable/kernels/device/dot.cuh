// Dot products by groups of lanes: a lane adds the products of its chunks in order, then lanes add their sums by
// halves. Products of f32 are exact in f64, so the bits of a dot product depend on its operands and its width alone,
// however many are made at once.
#pragma once
#include "chunk.cuh"
#include "lanes.cuh"

// Lanes of a dot product.
DEVICE u32 dot_lanes(u64 width) { return lanes_for((width + CHUNK - 1) / CHUNK); }

DEVICE double add_products(const Chunk &x, const Chunk &w, double sum) {
#pragma unroll
    for (int i = 0; i < CHUNK; i++) sum = fma((double)x.of[i], (double)w.of[i], sum);
    return sum;
}

template <int ROWS, int COLUMNS> struct Dots {
    double of[ROWS][COLUMNS];
};

// COUNT pairs of vectors: `left(i, column)` and `right(i, column)` are chunks of the i-th. As `dots`.
template <int COUNT, typename Left, typename Right>
DEVICE Dots<1, COUNT> pair_dots(const Left &left, const Right &right, u64 width) {
    Dots<1, COUNT> sums = {};
    u32 lanes = dot_lanes(width);
    for (u64 at = threadIdx.x % lanes * CHUNK; at < width; at += lanes * CHUNK) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) sums.of[0][i] = add_products(left(i, at), right(i, at), sums.of[0][i]);
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) sums.of[0][i] = lanes_sum(sums.of[0][i], lanes);
    return sums;
}

// ROWS vectors by COLUMNS others: `left(i, column)` and `right(j, column)` are chunks of them. Known to all lanes of a
// group; all lanes of a warp call it.
template <int ROWS, int COLUMNS, typename Left, typename Right>
DEVICE Dots<ROWS, COLUMNS> dots(const Left &left, const Right &right, u64 width) {
    // Chunks that are loaded ahead, where registers allow for more.
    constexpr int AHEAD = COLUMNS == 1 ? 2 : 1;
    Dots<ROWS, COLUMNS> sums = {};
    u32 lanes = dot_lanes(width);
#pragma unroll AHEAD
    for (u64 at = threadIdx.x % lanes * CHUNK; at < width; at += lanes * CHUNK) {
        Chunk w[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) w[j] = right(j, at);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            Chunk x = left(i, at);
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                sums.of[i][j] = add_products(x, w[j], sums.of[i][j]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) sums.of[i][j] = lanes_sum(sums.of[i][j], lanes);
    }
    return sums;
}

// The products of COUNT chunks of a lane, `step` columns apart, loaded together.
template <int COUNT, int ROWS, int COLUMNS, typename Left, typename Right>
DEVICE void add_chunks(const Left &left, const Right &right, u64 at, u64 step, float (&sums)[ROWS][COLUMNS]) {
    Chunk x[COUNT][ROWS], w[COUNT][COLUMNS];
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) w[c][j] = right(j, at + c * step);
#pragma unroll
        for (int i = 0; i < ROWS; i++) x[c][i] = left(i, at + c * step);
    }
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
#pragma unroll
                for (int k = 0; k < CHUNK; k++) sums[i][j] = fmaf(x[c][i].of[k], w[c][j].of[k], sums[i][j]);
            }
        }
    }
}

// As `dots`, but a lane adds in f32; a sum of which a lane leaves the range of f32 on the way is made as there, whatever
// the others do.
template <int ROWS, int COLUMNS, typename Left, typename Right>
DEVICE Dots<ROWS, COLUMNS> narrow_dots(const Left &left, const Right &right, u64 width) {
    float narrow[ROWS][COLUMNS] = {};
    u32 lanes = dot_lanes(width);
    u64 at = threadIdx.x % lanes * CHUNK, step = lanes * CHUNK;
    if constexpr (ROWS * COLUMNS == 1) {
        for (; at + 7 * step < width; at += 8 * step) add_chunks<8>(left, right, at, step, narrow);
        if (at + 3 * step < width) add_chunks<4>(left, right, at, step, narrow), at += 4 * step;
    }
    for (; at + step < width; at += 2 * step) add_chunks<2>(left, right, at, step, narrow);
    if (at < width) add_chunks<1>(left, right, at, step, narrow);
    Dots<ROWS, COLUMNS> sums;
    bool in_range = true;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            in_range = in_range && is_finite(narrow[i][j]);
            sums.of[i][j] = lanes_sum(narrow[i][j], lanes);
        }
    }
    if (__ballot_sync(ALL_LANES, !in_range) == 0) return sums;
    Dots<ROWS, COLUMNS> wide = dots<ROWS, COLUMNS>(left, right, width);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            double beyond = lanes_sum(is_finite(narrow[i][j]) ? 0 : 1, lanes);
            if (beyond != 0) sums.of[i][j] = wide.of[i][j];
        }
    }
    return sums;
}
