// Rows of the gate and up projections of one slot through its expert, side by side: gates first.
#pragma once
#include "dot.cuh"
#include "experts.cuh"

// Rows that a group of lanes makes at once.
constexpr int UP_ROWS = 4;

// Of rows `row(0)` to `row(3)`, none behind the last one. Known to the first lane of a group; all threads of a block call
// it for the same slot.
template <typename Row>
DEVICE Dots<1, UP_ROWS> up_projections(const Experts &d, View x, View w1, View w3, u64 token, i64 place, const Row &row) {
    u64 blocks = d.hidden / SCALED_COLUMNS;
    auto left = [&](int, u64 k) { return chunk(Mxfp8<1>{x, blocks}, token, k, 0); };
    auto right = [&](int j, u64 k) {
        u64 n = row(j);
        bool gate = n < d.inter;
        return chunk(Mxfp4{gate ? w1 : w3, blocks}, (u64)place * d.inter + (gate ? n : n - d.inter), k, 0);
    };
    return dots<1, UP_ROWS>(left, right, d.hidden);
}
