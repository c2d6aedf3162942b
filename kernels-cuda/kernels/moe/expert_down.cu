// moe.expert_down: down projections of a row, each rounded to bf16, added up by ascending expert. One output a group of
// lanes, a block those of one row.
#include "../device/expert_down.cuh"

KERNEL(moe_expert_down__portable, DOWN_THREADS)(View x, View expert, View w2, View y, u64 total, u64 first, u64 local,
                                                u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    Experts d = {total, first, local, top_k, hidden, inter};
    u32 lanes = dot_lanes(inter), each = DOWN_THREADS / lanes;
    u64 tiles = (hidden + each - 1) / each;
    for (u64 at = blockIdx.x; at < tokens * tiles; at += gridDim.x) {
        u64 output = at % tiles * each + threadIdx.x / lanes, token = at / tiles;
        double sum = 0;
        for (Walk walk; next(walk, d, expert, token);) {
            double one = down_projection(d, x, w2, token, walk.slot, walk.place, output);
            sum += (double)bf16_to_f32(bf16_result(one));
        }
        if (threadIdx.x % lanes == 0 && output < hidden) row_of<float>(y, token)[output] = f32_result(sum);
    }
}
