// Down projections on Hopper: each slot its own row of data.
#pragma once
#include "expert_tiles.cuh"

struct DownRows {
    const Experts &d;
    const View &x;

    DEVICE tiles::Row operator()(u32 pair) const {
        u32 token = pair / (u32)d.top_k, slot = pair % (u32)d.top_k;
        return {x.codes + token * x.stride + slot * d.inter, x.scales + (u64)pair * (d.inter / 32)};
    }
};

// `put(pair, output, sum)` for each output of a pair with an expert here.
template <typename F>
DEVICE void make_down(const Experts &d, const TensorMap *map, const View &x, const View &w2, const View &rows,
                      const auto &put) {
    u32 hidden = (u32)d.hidden, blocks = (u32)d.inter / 32;
    constexpr u32 HALF = tiles::HALF, ROWS = 2 * HALF;
    tiles::Weights weights = {{{map, w2.codes, w2.scales, 0}, {map, w2.codes, w2.scales, HALF}},
                              hidden,
                              ROWS,
                              (hidden + ROWS - 1) / ROWS,
                              blocks};
    auto store = [&](const auto &worker, const tiles::Item &item, const u32 *pairs, const float(&sum)[F::HELD]) {
        u32 output = worker.row_of(item);
#pragma unroll
        for (u32 c = 0; c < F::HELD; c++) {
            u32 token = c / 4 * 8 + worker.lane % 4 * 2 + c % 2, to = output + c / 2 % 2 * HALF;
            u32 pair = pairs[token] & ~tiles::FAR;
            if (pair != tiles::NONE && to < hidden) put(pair, to, sum[c]);
        }
    };
    tiles::multiply_groups<F>(weights, rows, (u32)d.local, DownRows{d, x}, store);
}
