// The down projection of one slot through its expert, an output a thread from `output` on.
#pragma once
#include "dot.cuh"
#include "element.cuh"
#include "experts.cuh"

constexpr int DOWN_OUTPUTS = 128;

// All threads of a block call it for the same slot; what threads behind the last output get is of no use.
DEVICE double down_projection(Tile<1, DOWN_OUTPUTS> &tile, const Experts &d, View x, View w2, u64 token, u64 slot,
                              i64 place, u64 output) {
    Mxfp8<1> row = {x, d.top_k * d.inter / SCALED_COLUMNS};
    Mxfp4 weight = {w2, d.inter / SCALED_COLUMNS};
    u64 inter = d.inter, hidden = d.hidden;
    auto left = [=](int, u64 k) { return value(row, token, slot * inter + k); };
    auto right = [=](int i, u64 k) {
        return output + i < hidden ? value(weight, (u64)place * hidden + output + i, k) : 0.0f;
    };
    return dot(tile, left, right, inter);
}
