// Gate and up projections on Hopper: half of the rows of a tile are gates of some units, the other half the ups of the same.
#pragma once
#include "expert_tiles.cuh"

// A row of data for each row and slot that goes to one expert.
DEVICE void gather_up(const Experts &d, const View &x, const View &expert, const View &rows, u64 tokens, const auto &idle) {
    auto source = [&](u32 pair) {
        u64 token = pair / (u32)d.top_k;
        return tiles::Row{x.codes + token * x.stride, x.scales + token * (d.hidden / 32)};
    };
    tiles::gather(d, expert, rows, (u32)d.hidden, tokens, source, idle);
}

// `store(worker, item, pairs, sum)`: of the sums of a thread four belong to two rows of data, first the gates of both.
template <typename F>
DEVICE void make_up(const Experts &d, const TensorMap *gates, const TensorMap *ups, const View &x, const View &w1,
                    const View &w3, const View &rows, const auto &store) {
    u32 inter = (u32)d.inter, blocks = (u32)d.hidden / 32;
    tiles::Weights weights = {
        {{gates, w1.codes, w1.scales, 0}, {ups, w3.codes, w3.scales, 0}}, inter, tiles::HALF, inter / tiles::HALF, blocks};
    auto source = [&](u32 pair) {
        u64 token = pair / (u32)d.top_k;
        return tiles::Row{x.codes + token * x.stride, x.scales + token * blocks};
    };
    tiles::multiply_groups<F>(weights, rows, (u32)d.local, source, store);
}
