// moe.down: the down projection of each slot through its expert, zeros without one. One output a group of lanes, a
// block those of one slot.
#include "../device/expert_down.cuh"

KERNEL(moe_down__portable, DOWN_THREADS)(View x, View expert, View w2, View y, u64 total, u64 first, u64 local,
                                         u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    begin();
    Experts d = {total, first, local, top_k, hidden, inter};
    u32 lanes = dot_lanes(inter), each = DOWN_THREADS / lanes;
    u64 tiles = (hidden + each - 1) / each;
    for (u64 at = blockIdx.x; at < tokens * top_k * tiles; at += gridDim.x) {
        u64 output = at % tiles * each + threadIdx.x / lanes, slot = at / tiles % top_k, token = at / tiles / top_k;
        i64 place = held(d, expert, token, slot);
        double sum = 0;
        if (place >= 0) sum = down_projections<1>(d, x, w2, token, {{slot, place}}, output).of[0][0];
        bool mine = threadIdx.x % lanes == 0 && output < hidden;
        if (mine) row_of<u16>(y, token)[slot * hidden + output] = bf16_result(sum);
    }
}
