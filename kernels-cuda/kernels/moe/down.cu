// moe.down: the down projection of each slot through its expert, zeros without one. One output a thread, tiles of
// outputs of one slot.
#include "../device/expert_down.cuh"

KERNEL(moe_down__portable, DOWN_OUTPUTS)(View x, View expert, View w2, View y, u64 total, u64 first, u64 local,
                                         u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    __shared__ Tile<1, DOWN_OUTPUTS> tile;
    Experts d = {total, first, local, top_k, hidden, inter};
    u64 tiles = (hidden + DOWN_OUTPUTS - 1) / DOWN_OUTPUTS;
    for (u64 at = blockIdx.x; at < tokens * top_k * tiles; at += gridDim.x) {
        u64 output = at % tiles * DOWN_OUTPUTS, slot = at / tiles % top_k, token = at / tiles / top_k;
        i64 place = held(d, expert, token, slot);
        double sum = place >= 0 ? down_projection(tile, d, x, w2, token, slot, place, output) : 0.0;
        output += threadIdx.x;
        if (output < hidden) row_of<u16>(y, token)[slot * hidden + output] = bf16_result(sum);
    }
}
