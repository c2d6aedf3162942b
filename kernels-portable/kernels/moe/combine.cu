// moe.combine: a row's expert outputs added up by ascending expert; slots without an expert here are skipped. One
// element a thread.
#include "../device/experts.cuh"
#include "../device/grid.cuh"

KERNEL(moe_combine__portable, 256)(View x, View expert, View y, u64 total, u64 first, u64 local, u64 top_k,
                                   u64 hidden, u64 inter, u64 tokens) {
    begin();
    Experts d = {total, first, local, top_k, hidden, inter};
    FOR_EACH_ITEM(item, tokens * hidden) {
        u64 token = item / hidden, column = item % hidden;
        double sum = 0;
        for (Walk walk; next(walk, d, expert, token);) {
            sum += (double)bf16_to_f32(row_of<const u16>(x, token)[walk.slot * hidden + column]);
        }
        row_of<float>(y, token)[column] = f32_result(sum);
    }
}
