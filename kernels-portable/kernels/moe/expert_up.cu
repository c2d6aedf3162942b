// moe.expert_up: gate and up projections of each slot, the weighted gated unit and its FP8 cast. A block makes the 32
// units under one scale, a group of lanes two of them; then a warp has a unit a lane.
#include "../device/expert_up.cuh"
#include "../device/gated.cuh"
#include "../device/quantise.cuh"

constexpr int THREADS = 512;
constexpr u32 UNITS = 32;

KERNEL(moe_expert_up__portable, THREADS)(View x, View expert, View weight, View w1, View w3, View y, u64 total,
                                         u64 first, u64 local, u64 top_k, u64 hidden, u64 inter, float limit,
                                         u64 tokens) {
    begin();
    __shared__ float gates[UNITS], ups[UNITS];
    Experts d = {total, first, local, top_k, hidden, inter};
    u64 tiles = inter / UNITS;
    u32 lanes = dot_lanes(hidden), own = threadIdx.x / lanes * (UP_ROWS / 2);
    for (u64 at = blockIdx.x; at < tokens * top_k * tiles; at += gridDim.x) {
        u64 unit = at % tiles * UNITS, slot = at / tiles % top_k, token = at / tiles / top_k;
        i64 place = held(d, expert, token, slot);
        // Warps without units have none in any group.
        if (own < UNITS) {
            Dots<1, UP_ROWS> sums = {};
            auto row = [=](int j) { return (j < UP_ROWS / 2 ? 0 : inter) + unit + own + j % (UP_ROWS / 2); };
            if (place >= 0) sums = up_projections(d, x, w1, w3, token, place, row);
#pragma unroll
            for (int j = 0; j < UP_ROWS; j++) {
                float *to = j < UP_ROWS / 2 ? gates : ups;
                if (threadIdx.x % lanes == 0) to[own + j % (UP_ROWS / 2)] = bf16_to_f32(bf16_result(sums.of[0][j]));
            }
        }
        __syncthreads();
        if (threadIdx.x < UNITS) {
            double w = row_of<const float>(weight, token)[slot];
            auto value = [&](u64 i) { return bf16_to_f32(bf16_result(gated_unit(gates[i], ups[i], limit, w))); };
            u64 column = slot * inter + unit;
            u8 *scale = y.scales + token * top_k * tiles + column / UNITS;
            quantise(FP8_UE8M0, value, UNITS, y.codes + token * y.stride + column, scale);
        }
        // The next units are written where slower threads may still read these.
        __syncthreads();
    }
}
