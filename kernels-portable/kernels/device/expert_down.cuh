// The down projection of one slot through its expert, an output a group of lanes.
#pragma once
#include "dot.cuh"
#include "experts.cuh"

constexpr int DOWN_THREADS = 128;

// Slots that are projected at once.
constexpr int SLOTS = 4;

// A slot and the place of its expert.
struct Slot {
    u64 slot;
    i64 place;
};

// Of each slot, all of which have an expert here; all threads of a block call it for the same ones. Groups behind the
// last output make that one.
template <int COUNT>
DEVICE Dots<1, COUNT> down_projections(const Experts &d, View x, View w2, u64 token, const Slot (&slots)[COUNT], u64 output) {
    Mxfp8<1> row = {x, d.top_k * d.inter / SCALED_COLUMNS};
    Mxfp4 weight = {w2, d.inter / SCALED_COLUMNS};
    u64 to = output < d.hidden ? output : d.hidden - 1;
    auto left = [&](int j, u64 k) { return chunk(row, token, slots[j].slot * d.inter + k, 0); };
    auto right = [&](int j, u64 k) { return chunk(weight, (u64)slots[j].place * d.hidden + to, k, 0); };
    return pair_dots<COUNT>(left, right, d.inter);
}
