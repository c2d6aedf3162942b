// kv.store: rows into cache entries, cache[at[t]] = record(x[t]). One block of an entry a warp. An address outside
// stores nothing.
#include "../device/entry.cuh"
#include "../device/grid.cuh"

KERNEL(kv_store__portable, 256)(View x, View address, View cache, Entry entry, u32 wide, u64 tokens) {
    begin();
    u32 blocks = entry.width / entry.block;
    FOR_EACH_WARP(item, tokens * blocks) {
        auto [token, at] = split(item, blocks);
        u8 *to = entry_at(entry, cache, row_of<const i32>(address, 0)[token]);
        if (!to) continue;
        // As its own bits widen to f32.
        const u8 *row = x.codes + token * x.stride * (wide ? 4 : 2);
        auto value = [=](u64 i) { return wide ? ((const float *)row)[i] : bf16_to_f32(((const u16 *)row)[i]); };
        store_block(entry, value, at, to);
    }
}
