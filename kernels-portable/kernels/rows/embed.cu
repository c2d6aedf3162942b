// rows.embed: y[t] = table[id[t]], zeros for an id outside. One element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(rows_embed__portable, 256)(View id, View table, View y, u64 vocab, u64 width, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * width) {
        u64 token = item / width, column = item % width;
        i64 row = row_of<const i32>(id, 0)[token];
        bool inside = row >= 0 && (u64)row < vocab;
        row_of<u16>(y, token)[column] = inside ? row_of<const u16>(table, row)[column] : (u16)0;
    }
}
