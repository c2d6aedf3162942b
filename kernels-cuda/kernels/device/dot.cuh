// Dot products by tiles: a block makes ROWS by COLUMNS of them, one a thread, from slices in shared memory.
// Products of f32 are exact in f64 where these operands come from, and each thread adds its own in order, so the
// bits of a dot product depend on nothing else in the tile.
#pragma once
#include "number.cuh"

// Elements of a slice.
constexpr int DEPTH = 32;

template <int ROWS, int COLUMNS> struct Tile {
    // One more, so that neighbouring threads read from different banks.
    float left[ROWS][DEPTH + 1], right[COLUMNS][DEPTH + 1];
};

// Elements `first` to `first + 32` of COUNT vectors of `width`; what lies behind the width is not read.
template <int COUNT, int THREADS, typename Element>
DEVICE void load_slice(float (*slice)[DEPTH + 1], const Element &element, u64 first, u64 width) {
    for (int i = threadIdx.x; i < COUNT * DEPTH; i += THREADS) {
        int vector = i / DEPTH, at = i % DEPTH;
        slice[vector][at] = first + at < width ? element(vector, first + at) : 0.0f;
    }
}

// The sum over i < `width` of left(thread / COLUMNS, i) right(thread % COLUMNS, i).
template <int ROWS, int COLUMNS, typename Left, typename Right>
DEVICE double dot(Tile<ROWS, COLUMNS> &tile, const Left &left, const Right &right, u64 width) {
    double sum = 0;
    for (u64 first = 0; first < width; first += DEPTH) {
        load_slice<ROWS, ROWS * COLUMNS>(tile.left, left, first, width);
        load_slice<COLUMNS, ROWS * COLUMNS>(tile.right, right, first, width);
        __syncthreads();
        // The last slice may be shorter; what lies behind the width is never multiplied.
        int depth = width - first < DEPTH ? (int)(width - first) : DEPTH;
        const float *x = tile.left[threadIdx.x / COLUMNS], *w = tile.right[threadIdx.x % COLUMNS];
        for (int i = 0; i < depth; i++) sum += (double)x[i] * (double)w[i];
        // The slices are read to the end before they are filled again.
        __syncthreads();
    }
    return sum;
}
