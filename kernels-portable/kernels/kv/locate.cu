// kv.locate: entry numbers of a sequence to addresses of a cache, -1 where there is none. One entry a thread.
#include "../device/grid.cuh"
#include "../device/page_table.cuh"

KERNEL(kv_locate__portable, 256)(View entry, View sequence, View pages, View y, u64 sequences, u64 table_pages,
                                 u64 page_entries, u64 count, u64 tokens) {
    begin();
    PageTable table = {pages, sequences, table_pages, page_entries};
    FOR_EACH_ITEM(item, tokens * count) {
        auto [token, i] = split(item, count);
        i32 own = row_of<const i32>(sequence, 0)[token];
        row_of<i32>(y, token)[i] = address_of(table, own, row_of<const i32>(entry, token)[i]);
    }
}
