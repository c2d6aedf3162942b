// Neighbouring elements of a row that a lane takes at once, as f32: `chunk(operand, row, column, width)`, from `column`
// on, a multiple of their number; zeros behind the width. A code is multiplied with its scale where there are scales;
// the product is exact unless it is beyond f32.
#pragma once
#include "e2m1.cuh"
#include "e4m3.cuh"
#include "ue8m0.cuh"
#include "view.cuh"

constexpr int CHUNK = 8;
// Columns under one scale.
constexpr u64 SCALED_COLUMNS = 32;

struct Chunk {
    float of[CHUNK];
};

// Two bf16 of a word.
DEVICE float lower_bf16(u32 word) { return float_of(word << 16); }
DEVICE float upper_bf16(u32 word) { return float_of(word & 0xFFFF0000u); }

DEVICE Chunk bf16_chunk(Words<4> words) {
    Chunk x;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) x.of[i] = i % 2 == 0 ? lower_bf16(words.of[i / 2]) : upper_bf16(words.of[i / 2]);
    return x;
}

DEVICE Chunk f32_chunk(Words<4> low, Words<4> high) {
    Chunk x;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) x.of[i] = float_of(i < 4 ? low.of[i % 4] : high.of[i % 4]);
    return x;
}

DEVICE Chunk load_chunk(const u16 *from) { return bf16_chunk(load_words<4>(from)); }
DEVICE Chunk load_chunk(const float *from) { return f32_chunk(load_words<4>(from), load_words<4>(from + 4)); }

// At multiples of 16 bytes.
DEVICE Chunk aligned_chunk(const u16 *from) { return bf16_chunk(*(const Words<4> *)from); }
DEVICE Chunk aligned_chunk(const float *from) {
    return f32_chunk(((const Words<4> *)from)[0], ((const Words<4> *)from)[1]);
}

DEVICE float widened(float x) { return x; }
DEVICE float widened(u16 bf16) { return bf16_to_f32(bf16); }

// bf16, stored as u16, or f32.
template <typename T> struct Plain {
    View view;
};

// Whether chunks of rows of this width lie within them, at multiples of 16 bytes.
template <typename T> DEVICE bool is_aligned(const Plain<T> &operand, u64 width) {
    return width % CHUNK == 0 && ((u64)operand.view.codes | operand.view.stride * sizeof(T)) % 16 == 0;
}

// A plain operand of which that holds.
template <typename T> struct Aligned {
    View view;
};

template <typename T> DEVICE Chunk chunk(const Aligned<T> &operand, u64 row, u64 column, u64) {
    return aligned_chunk(row_of<const T>(operand.view, row) + column);
}

template <typename T> DEVICE Chunk chunk(const Plain<T> &operand, u64 row, u64 column, u64 width) {
    const T *from = row_of<const T>(operand.view, row) + column;
    if (column + CHUNK <= width) return load_chunk(from);
    Chunk x;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) x.of[i] = column + i < width ? widened(from[i]) : 0.0f;
    return x;
}

// WHOLE says that it does. Loads without a choice do not wait for each other.
template <bool WHOLE, typename T> DEVICE Chunk any_chunk(const View &view, u64 row, u64 column, u64 width) {
    return WHOLE ? chunk(Aligned<T>{view}, row, column, width) : chunk(Plain<T>{view}, row, column, width);
}

DEVICE Chunk e4m3_chunk(Words<2> codes, float scale) {
    Chunk x;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) x.of[i] = e4m3_to_f32((u8)(codes.of[i / 4] >> i % 4 * 8)) * scale;
    return x;
}

// Codes of a chunk times `factor`.
DEVICE Words<2> e4m3_codes(const Chunk &x, float factor) {
    Words<2> codes;
#pragma unroll
    for (int i = 0; i < CHUNK; i += 4) {
        u32 low = e4m3_pair_from_f32(x.of[i] * factor, x.of[i + 1] * factor);
        codes.of[i / 4] = low | e4m3_pair_from_f32(x.of[i + 2] * factor, x.of[i + 3] * factor) << 16;
    }
    return codes;
}

DEVICE Chunk e2m1_chunk(u32 codes, float scale) {
    Chunk x;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) x.of[i] = e2m1_to_f32((u8)(codes >> i * 4)) * scale;
    return x;
}

// E4M3 codes, a power of two for ROWS rows by 32 columns; `blocks` is the scales of a row.
template <int ROWS> struct Mxfp8 {
    View view;
    u64 blocks;
};

template <int ROWS> DEVICE Chunk chunk(const Mxfp8<ROWS> &x, u64 row, u64 column, u64) {
    u8 scale = x.view.scales[row / ROWS * x.blocks + column / SCALED_COLUMNS];
    return e4m3_chunk(load_words<2>(x.view.codes + row * x.view.stride + column), ue8m0_to_f32(scale));
}

// E2M1 codes, the even column in the low nibble, and a power of two for 32 columns of a row.
struct Mxfp4 {
    View view;
    u64 blocks;
};

DEVICE Chunk chunk(const Mxfp4 &x, u64 row, u64 column, u64) {
    u8 scale = x.view.scales[row * x.blocks + column / SCALED_COLUMNS];
    return e2m1_chunk(load_words<1>(x.view.codes + (row * x.view.stride + column) / 2).of[0], ue8m0_to_f32(scale));
}
