// moe.expert_down: down projections of a row, each rounded to bf16, added up by ascending expert. One output a thread,
// tiles of outputs of one row.
#include "../device/expert_down.cuh"

KERNEL(moe_expert_down__portable, DOWN_OUTPUTS)(View x, View expert, View w2, View y, u64 total, u64 first, u64 local,
                                                u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    __shared__ Tile<1, DOWN_OUTPUTS> tile;
    Experts d = {total, first, local, top_k, hidden, inter};
    u64 tiles = (hidden + DOWN_OUTPUTS - 1) / DOWN_OUTPUTS;
    for (u64 at = blockIdx.x; at < tokens * tiles; at += gridDim.x) {
        u64 output = at % tiles * DOWN_OUTPUTS, token = at / tiles;
        double sum = 0;
        for (Walk walk; next(walk, d, expert, token);) {
            double one = down_projection(tile, d, x, w2, token, walk.slot, walk.place, output);
            sum += (double)bf16_to_f32(bf16_result(one));
        }
        output += threadIdx.x;
        if (output < hidden) row_of<float>(y, token)[output] = f32_result(sum);
    }
}
