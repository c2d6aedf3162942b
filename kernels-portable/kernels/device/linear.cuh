// y(t, g, n) = sum over k of x(t, g, k) W(g, n, k), for linears of every kind: `groups` blocks that do not mix, one
// for an ordinary linear. A group of lanes makes one output of a token, or, of many tokens, a tile of outputs.
#pragma once
#include "dot.cuh"

constexpr int LINEAR_THREADS = 128;
// Tokens up to which every output is made alone, and the side of a tile of more, as the host has them.
constexpr u64 FEW = 1;
constexpr int SIDE = 4;

struct LinearShape {
    u64 groups, n, k, tokens;
};

template <int TOKENS, int OUTPUTS, typename X, typename Weight, typename Store>
DEVICE void linear_tiles(const LinearShape &d, const X &x, const Weight &weight, const Store &store) {
    u64 columns = (d.n + OUTPUTS - 1) / OUTPUTS, bands = (d.tokens + TOKENS - 1) / TOKENS;
    u64 tiles = d.groups * columns * bands;
    u32 lanes = dot_lanes(d.k), own = threadIdx.x / lanes, each = blockDim.x / lanes;
    for (u64 first = (u64)blockIdx.x * each; first < tiles; first += (u64)gridDim.x * each) {
        // Groups behind the last tile make it as well.
        u64 at = first + own < tiles ? first + own : tiles - 1;
        // All tokens' tiles of an output are neighbours, so that the weight comes from memory once.
        u64 token = at % bands * TOKENS, column = at / bands, output = column % columns * OUTPUTS, group = column / columns;
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
    if (d.tokens <= FEW) {
        linear_tiles<1, 1>(d, x, weight, store);
    } else {
        linear_tiles<SIDE, SIDE>(d, x, weight, store);
    }
}
