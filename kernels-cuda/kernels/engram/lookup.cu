// engram.lookup: the named table rows side by side as bf16, zeros for an index outside. One element a thread.
#include "../device/element.cuh"
#include "../device/grid.cuh"

KERNEL(engram_lookup__portable, 256)(View row, View table, View y, u64 rows, u64 columns, u64 head_dim, u64 tokens) {
    FOR_EACH_ITEM(item, tokens * columns * head_dim) {
        u64 at = item % head_dim, column = item / head_dim % columns, token = item / head_dim / columns;
        i64 named = row_of<const i32>(row, token)[column];
        bool inside = named >= 0 && (u64)named < rows;
        float element = inside ? value(Mxfp8<1>{table, head_dim / SCALED_COLUMNS}, named, at) : 0.0f;
        row_of<u16>(y, token)[column * head_dim + at] = bf16_result((double)element);
    }
}
