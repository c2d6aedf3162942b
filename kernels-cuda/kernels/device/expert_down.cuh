// The down projection of one slot through its expert, an output a group of lanes.
#pragma once
#include "dot.cuh"
#include "experts.cuh"

constexpr int DOWN_THREADS = 128;

// Known to the first lane of a group; all threads of a block call it for the same slot. Groups behind the last output
// make that one.
DEVICE double down_projection(const Experts &d, View x, View w2, u64 token, u64 slot, i64 place, u64 output) {
    Mxfp8<1> row = {x, d.top_k * d.inter / SCALED_COLUMNS};
    Mxfp4 weight = {w2, d.inter / SCALED_COLUMNS};
    u64 from = slot * d.inter, to = (u64)place * d.hidden + (output < d.hidden ? output : d.hidden - 1);
    auto left = [&](int, u64 k) { return chunk(row, token, from + k, 0); };
    auto right = [&](int, u64 k) { return chunk(weight, to, k, 0); };
    return dots<1, 1>(left, right, d.inter).of[0][0];
}
