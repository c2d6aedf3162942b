// moe.expert_down: down projections of a row, each rounded to bf16, added up by ascending expert. One output a group of
// lanes, a block those of one row.
#include "../device/expert_down.cuh"

KERNEL(moe_expert_down__portable, DOWN_THREADS)(View x, View expert, View w2, View y, u64 total, u64 first, u64 local,
                                                u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    begin();
    Experts d = {total, first, local, top_k, hidden, inter};
    u32 lanes = dot_lanes(inter), each = DOWN_THREADS / lanes;
    u64 tiles = (hidden + each - 1) / each;
    for (u64 at = blockIdx.x; at < tokens * tiles; at += gridDim.x) {
        u64 output = at % tiles * each + threadIdx.x / lanes, token = at / tiles;
        double sum = 0;
        bool more = true;
        for (Walk walk; more;) {
            Slot slots[SLOTS];
            int count = 0;
#pragma unroll
            for (int j = 0; j < SLOTS; j++) {
                more = more && next(walk, d, expert, token);
                // Places behind the last one make some slot's again.
                slots[j] = more ? Slot{walk.slot, walk.place} : slots[0];
                count += more;
            }
            if (count == 0) break;
            auto sums = down_projections(d, x, w2, token, slots, output);
#pragma unroll
            for (int j = 0; j < SLOTS; j++) {
                if (j < count) sum += (double)bf16_to_f32(bf16_result(sums.of[0][j]));
            }
        }
        if (threadIdx.x % lanes == 0 && output < hidden) row_of<float>(y, token)[output] = f32_result(sum);
    }
}
