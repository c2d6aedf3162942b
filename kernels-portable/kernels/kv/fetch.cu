// kv.fetch: cache entries back to rows, y[t] = value(cache[at[t]]), zeros for an address outside. One element a thread.
#include "../device/entry.cuh"
#include "../device/grid.cuh"

KERNEL(kv_fetch__portable, 256)(View cache, View address, View y, Entry entry, u32 wide, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * entry.width) {
        auto [token, i] = split(item, entry.width);
        const u8 *from = entry_at(entry, cache, row_of<const i32>(address, 0)[token]);
        float value = from ? entry_value(entry, from, i) : 0.0f;
        if (wide) {
            row_of<float>(y, token)[i] = value;
        } else {
            row_of<u16>(y, token)[i] = bf16_from_f32(value);
        }
    }
}
