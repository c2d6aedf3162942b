// moe.expert_up: gate and up projections of each slot, the weighted gated unit and its FP8 cast. A block makes the 32
// units under one scale: the first half of its threads the gates, the second the ups.
#include "../device/dot.cuh"
#include "../device/element.cuh"
#include "../device/experts.cuh"
#include "../device/gated.cuh"
#include "../device/quantise.cuh"

constexpr int UNITS = 32;

KERNEL(moe_expert_up__portable, 2 * UNITS)(View x, View expert, View weight, View w1, View w3, View y, u64 total,
                                           u64 first, u64 local, u64 top_k, u64 hidden, u64 inter, float limit,
                                           u64 tokens) {
    __shared__ Tile<1, 2 * UNITS> tile;
    __shared__ float both[2 * UNITS];
    __shared__ float units[UNITS];
    Experts d = {total, first, local, top_k, hidden, inter};
    u64 tiles = inter / UNITS, blocks = hidden / SCALED_COLUMNS;
    for (u64 at = blockIdx.x; at < tokens * top_k * tiles; at += gridDim.x) {
        u64 unit = at % tiles * UNITS, slot = at / tiles % top_k, token = at / tiles / top_k;
        i64 place = held(d, expert, token, slot);
        double sum = 0;
        if (place >= 0) {
            auto input = [=](int, u64 k) { return value(Mxfp8<1>{x, blocks}, token, k); };
            auto row = [=](int i, u64 k) {
                return value(Mxfp4{i < UNITS ? w1 : w3, blocks}, (u64)place * inter + unit + i % UNITS, k);
            };
            sum = dot(tile, input, row, hidden);
        }
        both[threadIdx.x] = bf16_to_f32(bf16_result(sum));
        __syncthreads();
        if (threadIdx.x < UNITS) {
            float gate = both[threadIdx.x], up = both[UNITS + threadIdx.x];
            double w = row_of<const float>(weight, token)[slot];
            units[threadIdx.x] = bf16_to_f32(bf16_result(gated_unit(gate, up, limit, w)));
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u64 column = slot * inter + unit;
            const float *from = units;
            auto own = [from](u64 i) { return from[i]; };
            u8 *scale = y.scales + token * top_k * tiles + column / UNITS;
            quantise(FP8_UE8M0, own, UNITS, y.codes + token * y.stride + column, scale);
        }
    }
}
