// kv.store: rows into cache entries, cache[at[t]] = record(x[t]). One block of an entry a thread; the last
// block of a record with rotary values is those. An address outside stores nothing.
#include "../device/grid.cuh"
#include "../device/quantise.cuh"

// Arrangements of an entry by number; the host names the same ones.
enum Form : u32 { SCALED = 0, ROPE = 1, BF16 = 2, F32 = 3 };

constexpr u64 ROPE_WIDTH = 64;

// Element `column` of a row, as its own bits widen to f32.
DEVICE float element(const View &x, bool wide, u64 row, u64 column) {
    return wide ? row_of<const float>(x, row)[column] : bf16_to_f32(row_of<const u16>(x, row)[column]);
}

struct Entry {
    u32 form;
    u32 rule;
    // Elements of a block, and blocks of an entry.
    u64 block, blocks;
    u64 width, bytes;
};

DEVICE void store(const Entry &entry, const View &x, bool wide, u64 token, u64 at, u8 *to) {
    // A record that is not f32 takes bf16.
    auto value = [=](u64 i) { return bf16_to_f32(bf16_from_f32(element(x, wide, token, i))); };
    u64 first = at * entry.block;
    if (entry.form == F32) {
        for (u64 i = first; i < first + entry.block; i++) store_bytes(to + 4 * i, bits_of(element(x, wide, token, i)));
    } else if (entry.form == BF16) {
        for (u64 i = first; i < first + entry.block; i++) store_bytes(to + 2 * i, bf16_from_f32(value(i)));
    } else if (entry.form == ROPE && at == entry.blocks - 1) {
        for (u64 i = 0; i < ROPE_WIDTH; i++) store_bytes(to + first + 2 * i, bf16_from_f32(value(first + i)));
        for (u64 i = first + 2 * ROPE_WIDTH + at; i < entry.bytes; i++) to[i] = 0;
    } else {
        u64 codes = code_bytes(entry.rule, entry.width);
        if (entry.form == ROPE) codes = entry.width - ROPE_WIDTH + 2 * ROPE_WIDTH;
        auto own = [=](u64 i) { return value(first + i); };
        quantise(entry.rule, own, entry.block, to + code_bytes(entry.rule, first), to + codes + at * scale_bytes(entry.rule));
    }
}

KERNEL(kv_store__portable, 256)(View x, View address, View cache, u32 form, u32 rule, u64 block,
                                              u64 blocks, u64 width, u64 bytes, u32 wide, u64 page_entries,
                                              u64 entries, u64 tokens) {
    Entry entry = {form, rule, block, blocks, width, bytes};
    FOR_EACH_ITEM(item, tokens * entry.blocks) {
        u64 token = item / entry.blocks;
        i64 at = row_of<const i32>(address, 0)[token];
        if (at < 0 || (u64)at >= entries) continue;
        u64 place = (u64)at / page_entries * cache.stride + (u64)at % page_entries;
        store(entry, x, wide, token, item % entry.blocks, cache.codes + place * entry.bytes);
    }
}
