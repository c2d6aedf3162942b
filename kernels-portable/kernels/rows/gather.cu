// rows.gather: y[o] = x[at[o]], zero bytes for an index outside. One element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

template <typename T> DEVICE void gather(View x, View at, View y, u64 width, u64 tokens, u64 outputs) {
    FOR_EACH_ITEM(item, outputs * width) {
        u64 output = item / width, column = item % width;
        i64 row = row_of<const i32>(at, 0)[output];
        bool inside = row >= 0 && (u64)row < tokens;
        row_of<T>(y, output)[column] = inside ? row_of<const T>(x, row)[column] : (T)0;
    }
}

KERNEL(rows_gather__portable_1, 256)(View x, View at, View y, u64 width, u64 tokens, u64 outputs) {
    begin();
    gather<u8>(x, at, y, width, tokens, outputs);
}

KERNEL(rows_gather__portable_2, 256)(View x, View at, View y, u64 width, u64 tokens, u64 outputs) {
    begin();
    gather<u16>(x, at, y, width, tokens, outputs);
}

KERNEL(rows_gather__portable_4, 256)(View x, View at, View y, u64 width, u64 tokens, u64 outputs) {
    begin();
    gather<u32>(x, at, y, width, tokens, outputs);
}
