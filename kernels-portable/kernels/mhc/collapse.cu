// mhc.collapse: x[t] = sum over s of pre[t,s] h[t,s]. One element a thread.
#include "../device/grid.cuh"
#include "../device/streams.cuh"

KERNEL(mhc_collapse__portable, 256)(View streams, View pre, View y, u64 count, u64 width, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * width) {
        auto [token, column] = split(item, width);
        const float *mix = row_of<const float>(pre, token);
        float sum = collapsed(streams, count, token, column, [=](u64 s) { return mix[s]; });
        row_of<u16>(y, token)[column] = bf16_result(sum);
    }
}
