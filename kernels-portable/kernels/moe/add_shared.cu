// moe.add_shared: routed sum plus shared expert. One element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(moe_add_shared__portable, 256)(View routed, View shared, View y, u64 hidden, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * hidden) {
        u64 token = item / hidden, column = item % hidden;
        double sum = row_of<const float>(routed, token)[column];
        row_of<u16>(y, token)[column] = bf16_result(sum + (double)bf16_to_f32(row_of<const u16>(shared, token)[column]));
    }
}
