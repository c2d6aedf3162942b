// y(t, g, n) = sum over k of x(t, g, k) W(g, n, k), for linears of every kind: `groups` blocks that do not mix, one
// for an ordinary linear. A block makes tiles of 16 tokens by 16 outputs of a group.
#pragma once
#include "dot.cuh"
#include "element.cuh"

constexpr int SIDE = 16;

struct LinearShape {
    u64 groups, n, k, tokens;
};

// `store(row, output, sum)` takes each sum, at row `t groups + g` of `x` and of the result.
template <typename X, typename Weight, typename Store>
DEVICE void linear(Tile<SIDE, SIDE> &tile, const LinearShape &d, const X &x, const Weight &weight, const Store &store) {
    u64 columns = (d.n + SIDE - 1) / SIDE, bands = (d.tokens + SIDE - 1) / SIDE;
    for (u64 at = blockIdx.x; at < d.groups * columns * bands; at += gridDim.x) {
        u64 output = at % columns * SIDE, group = at / columns % d.groups, token = at / columns / d.groups * SIDE;
        auto left = [=](int i, u64 k) {
            return token + i < d.tokens ? value(x, (token + i) * d.groups + group, k) : 0.0f;
        };
        auto right = [=](int i, u64 k) { return output + i < d.n ? value(weight, group * d.n + output + i, k) : 0.0f; };
        double sum = dot(tile, left, right, d.k);
        token += threadIdx.x / SIDE, output += threadIdx.x % SIDE;
        if (token < d.tokens && output < d.n) store(token * d.groups + group, output, sum);
    }
}
