// mhc.start: every stream is the embedding, h[t,s] = x[t], and the mix reads stream 0. One element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(mhc_start__portable, 256)(View x, View streams, View pre, u64 count, u64 width, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * count * width) {
        auto [row, column] = split(item, width);
        auto [token, stream] = split(row, count);
        row_of<u16>(streams, row)[column] = row_of<const u16>(x, token)[column];
        if (column == 0) row_of<float>(pre, token)[stream] = stream == 0 ? 1.0f : 0.0f;
    }
}
