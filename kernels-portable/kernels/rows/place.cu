// rows.place: x[t] = rows[at[t]]; an index outside leaves the row as it is. One element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(rows_place__portable, 256)(View rows, View at, View x, u64 width, u64 cells, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * width) {
        u64 token = item / width, column = item % width;
        i64 row = row_of<const i32>(at, 0)[token];
        if (row >= 0 && (u64)row < cells) row_of<u16>(x, token)[column] = row_of<const u16>(rows, row)[column];
    }
}
