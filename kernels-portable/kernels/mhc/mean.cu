// mhc.mean: y[t] = sum over s of h[t,s], divided by their number. One element a thread.
#include "../device/grid.cuh"
#include "../device/streams.cuh"

KERNEL(mhc_mean__portable, 256)(View streams, View y, u64 count, u64 width, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * width) {
        auto [token, column] = split(item, width);
        float sum = collapsed(streams, count, token, column, [](u64) { return 1.0f; });
        row_of<u16>(y, token)[column] = bf16_result((double)sum / (double)count);
    }
}
