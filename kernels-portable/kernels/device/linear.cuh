// y(t, g, n) = sum over k of x(t, g, k) W(g, n, k), for linears of every kind: `groups` blocks that do not mix, one
// for an ordinary linear. A group of lanes makes one output of a token, or, of many tokens, a tile of outputs.
#pragma once
#include "dot.cuh"

constexpr int LINEAR_THREADS = 128;
// Tokens and tiles up to which every output is made alone, for more threads at work, and the side of a tile, as the host has
// them.
constexpr u64 FEW = 16, FEW_TILES = 256;
constexpr int SIDE = 4;
// Tiles of outputs for each tile of tokens from which on a weight is the larger side.
constexpr u64 LARGE = 64;

struct LinearShape {
    u64 groups, n, k, tokens;
};

template <int TOKENS, int OUTPUTS, typename X, typename Weight, typename Store>
DEVICE void linear_tiles(const LinearShape &d, const X &x, const Weight &weight, const Store &store) {
    u64 columns = (d.n + OUTPUTS - 1) / OUTPUTS, bands = (d.tokens + TOKENS - 1) / TOKENS;
    u64 tiles = d.groups * columns * bands;
    bool by_token = columns >= LARGE * bands;
    u32 lanes = dot_lanes(d.k), own = threadIdx.x / lanes, each = blockDim.x / lanes;
    for (u64 first = (u64)blockIdx.x * each; first < tiles; first += (u64)gridDim.x * each) {
        // Groups behind the last tile make it as well.
        u64 at = first + own < tiles ? first + own : tiles - 1;
        // Neighbours share what is the larger side, so that it comes from memory once.
        u64 all = d.groups * columns, place = by_token ? at / bands : at % all, band = by_token ? at % bands : at / all;
        u64 output = place % columns * OUTPUTS, group = place / columns, token = band * TOKENS;
        // So do rows behind the last one.
        auto left = [&](int i, u64 column) {
            u64 row = token + i < d.tokens ? token + i : d.tokens - 1;
            return chunk(x, row * d.groups + group, column, d.k);
        };
        auto right = [&](int j, u64 column) {
            u64 row = output + j < d.n ? output + j : d.n - 1;
            return chunk(weight, group * d.n + row, column, d.k);
        };
        auto sums = narrow_dots<TOKENS, OUTPUTS>(left, right, d.k);
        if (threadIdx.x % lanes != 0 || first + own >= tiles) continue;
#pragma unroll
        for (int i = 0; i < TOKENS; i++) {
#pragma unroll
            for (int j = 0; j < OUTPUTS; j++) {
                bool there = token + i < d.tokens && output + j < d.n;
                if (there) store((token + i) * d.groups + group, output + j, sums.of[i][j]);
            }
        }
    }
}

// `store(row, output, sum)` takes each sum, at row `t groups + g` of `x` and of the result.
template <typename X, typename Weight, typename Store>
DEVICE void linear(const LinearShape &d, const X &x, const Weight &weight, const Store &store) {
    u64 tiles = d.groups * ((d.n + SIDE - 1) / SIDE) * ((d.tokens + SIDE - 1) / SIDE);
    if (d.tokens <= 1 || (d.tokens <= FEW && tiles <= FEW_TILES)) {
        linear_tiles<1, 1>(d, x, weight, store);
    } else {
        linear_tiles<SIDE, SIDE>(d, x, weight, store);
    }
}
