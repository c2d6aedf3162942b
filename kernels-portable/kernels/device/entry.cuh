// Cache entries: vectors as records, codes first, then scales.
#pragma once
#include "chunk.cuh"
#include "quantise.cuh"

// Arrangements of an entry by number; the host names the same ones.
enum Form : u32 { SCALED = 0, ROPE = 1, BF16 = 2, F32 = 3 };

// Elements of a record with rotary values that are those.
constexpr u64 ROPE_WIDTH = 64;

// How a cache's entries lie and what they hold.
struct Entry {
    u32 form;
    u32 rule;
    // Elements under a scale, and all elements.
    u32 block, width;
    u32 page_entries;
    u64 bytes, entries;
};

// The entry at an address; none for -1 and anything outside.
DEVICE u8 *entry_at(const Entry &entry, const View &cache, i32 at) {
    if (at < 0 || (u64)at >= entry.entries) return nullptr;
    u32 page = (u32)at / entry.page_entries, slot = (u32)at - page * entry.page_entries;
    return cache.codes + (page * cache.stride + slot) * entry.bytes;
}

// Where the scales begin.
DEVICE u64 scales_of(const Entry &entry) {
    return entry.form == ROPE ? entry.width + ROPE_WIDTH : code_bytes(entry.rule, entry.width);
}

// Value of the scale at `from`.
DEVICE float load_scale(u32 rule, const u8 *from) {
    if (rule == FP8_F32) return float_of(load_bytes<u32>(from));
    return rule == NVFP4_E4M3 ? e4m3_to_f32(*from) : ue8m0_to_f32(*from);
}

// Element `i` of the vector that an entry stands for.
DEVICE float entry_value(const Entry &entry, const u8 *from, u32 i) {
    if (entry.form == F32) return float_of(load_bytes<u32>(from + 4 * (u64)i));
    if (entry.form == BF16) return bf16_to_f32(load_bytes<u16>(from + 2 * (u64)i));
    u32 coded = entry.width - ROPE_WIDTH;
    if (entry.form == ROPE && i >= coded) return bf16_to_f32(load_bytes<u16>(from + coded + 2 * (u64)(i - coded)));
    float scale = load_scale(entry.rule, from + scales_of(entry) + i / entry.block * scale_bytes(entry.rule));
    if (!is_packed(entry.rule)) return e4m3_to_f32(from[i]) * scale;
    return e2m1_to_f32((u8)(from[i / 2] >> i % 2 * 4)) * scale;
}

// The elements from `column` on, as chunks are; a chunk has one scale.
DEVICE Chunk entry_chunk(const Entry &entry, const u8 *from, u32 column) {
    if (column + CHUNK > entry.width) {
        Chunk x;
#pragma unroll
        for (int i = 0; i < CHUNK; i++) x.of[i] = column + i < entry.width ? entry_value(entry, from, column + i) : 0.0f;
        return x;
    }
    if (entry.form == F32) return load_chunk((const float *)(from + 4 * (u64)column));
    if (entry.form == BF16) return load_chunk((const u16 *)(from + 2 * (u64)column));
    u32 coded = entry.width - ROPE_WIDTH;
    if (entry.form == ROPE && column >= coded) return load_chunk((const u16 *)(from + coded + 2 * (u64)(column - coded)));
    float scale = load_scale(entry.rule, from + scales_of(entry) + column / entry.block * scale_bytes(entry.rule));
    if (!is_packed(entry.rule)) return e4m3_chunk(load_words<2>(from + column), scale);
    return e2m1_chunk(load_words<1>(from + column / 2).of[0], scale);
}

// Block `at` of a vector, whose element i is `value(i)`, into its entry, by a warp; the last block of a record with
// rotary values is those. A record that is not f32 takes bf16.
template <typename Value> DEVICE void store_block(const Entry &entry, const Value &value, u64 at, u8 *to) {
    u64 first = at * entry.block;
    u32 lane = threadIdx.x % 32;
    bool rotary = entry.form == ROPE && first + ROPE_WIDTH == entry.width;
    if (entry.form == F32) {
        for (u64 i = first + lane; i < first + entry.block; i += 32) store_bytes(to + 4 * i, bits_of(value(i)));
    } else if (entry.form == BF16 || rotary) {
        // Rotary values lie behind a code for each element before them.
        u8 *from = to + (rotary ? first : 2 * first);
        for (u64 i = lane; i < entry.block; i += 32) store_bytes(from + 2 * i, bf16_from_f32(value(first + i)));
        if (!rotary) return;
        for (u64 i = first + 2 * ROPE_WIDTH + at + lane; i < entry.bytes; i += 32) to[i] = 0;
    } else {
        u8 *scale = to + scales_of(entry) + at * scale_bytes(entry.rule);
        auto own = [=](u64 i) { return bf16_to_f32(bf16_from_f32(value(first + i))); };
        quantise(entry.rule, own, entry.block, to + code_bytes(entry.rule, first), scale);
    }
}
