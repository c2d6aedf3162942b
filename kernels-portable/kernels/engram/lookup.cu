// engram.lookup: the named table rows side by side as bf16, zeros for an index outside. One chunk a thread.
#include "../device/chunk.cuh"
#include "../device/grid.cuh"

KERNEL(engram_lookup__portable, 256)(View row, View table, View y, u64 rows, u64 columns, u64 head_dim, u64 tokens) {
    begin();
    u64 chunks = head_dim / CHUNK;
    FOR_EACH_ITEM(item, tokens * columns * chunks) {
        u64 at = item % chunks * CHUNK, column = item / chunks % columns, token = item / chunks / columns;
        i64 named = row_of<const i32>(row, token)[column];
        Chunk x = {};
        if (named >= 0 && (u64)named < rows) x = chunk(Mxfp8<1>{table, head_dim / SCALED_COLUMNS}, named, at, head_dim);
        u16 *to = row_of<u16>(y, token) + column * head_dim + at;
#pragma unroll
        for (int i = 0; i < CHUNK; i++) to[i] = bf16_result(x.of[i]);
    }
}
