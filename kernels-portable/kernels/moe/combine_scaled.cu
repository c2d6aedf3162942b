// moe.combine_scaled: weighted expert outputs and the shared one, the routed factor at one of three places. One
// element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

// Places of the factor by number; the host names the same ones.
enum Placement : u32 { WEIGHTS = 0, SUM = 1, WHOLE = 2 };

KERNEL(moe_combine_scaled__portable, 256)(View x, View weight, View shared, View y, u32 placement, float factor,
                                          u64 top_k, u64 hidden, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * hidden) {
        u64 token = item / hidden, column = item % hidden;
        double f = factor, within = placement == WEIGHTS ? f : 1.0, sum = 0;
        for (u64 i = 0; i < top_k; i++) {
            double w = row_of<const float>(weight, token)[i];
            sum += within * w * (double)row_of<const float>(x, token * top_k + i)[column];
        }
        double other = row_of<const float>(shared, token)[column];
        if (placement == SUM) sum *= f;
        double all = placement == WHOLE ? f * (sum + 1.0 / f * other) : sum + other;
        row_of<float>(y, token)[column] = f32_result(all);
    }
}
