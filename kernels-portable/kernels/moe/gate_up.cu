// moe.gate_up: gate and up projections of each slot through its expert, zeros without one. Four outputs a group of lanes,
// a block those of one slot.
#include "../device/expert_up.cuh"

constexpr int THREADS = 128;

KERNEL(moe_gate_up__portable, THREADS)(View x, View expert, View w1, View w3, View y, u64 total, u64 first, u64 local,
                                       u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    begin();
    Experts d = {total, first, local, top_k, hidden, inter};
    u32 lanes = dot_lanes(hidden), each = THREADS / lanes * UP_ROWS;
    u64 width = 2 * inter, tiles = (width + each - 1) / each;
    for (u64 at = blockIdx.x; at < tokens * top_k * tiles; at += gridDim.x) {
        u64 output = at % tiles * each + threadIdx.x / lanes * UP_ROWS, slot = at / tiles % top_k, token = at / tiles / top_k;
        i64 place = held(d, expert, token, slot);
        Dots<1, UP_ROWS> sums = {};
        auto row = [=](int j) { return output + j < width ? output + j : width - 1; };
        if (place >= 0) sums = up_projections(d, x, w1, w3, token, place, row);
        u16 *to = row_of<u16>(y, token) + slot * width + output;
#pragma unroll
        for (int j = 0; j < UP_ROWS; j++) {
            if (threadIdx.x % lanes == 0 && output + j < width) to[j] = bf16_result(sums.of[0][j]);
        }
    }
}
