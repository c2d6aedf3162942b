// Elements of operands as f32: `value(operand, row, column)`, a code times its scale where there are scales.
// The product is exact unless it is beyond f32.
#pragma once
#include "e2m1.cuh"
#include "e4m3.cuh"
#include "ue8m0.cuh"
#include "view.cuh"

// Columns under one scale.
constexpr u64 SCALED_COLUMNS = 32;

DEVICE float widened(float x) { return x; }
DEVICE float widened(u16 bf16) { return bf16_to_f32(bf16); }

// bf16, stored as u16, or f32.
template <typename T> struct Plain {
    View view;
};

template <typename T> DEVICE float value(const Plain<T> &x, u64 row, u64 column) {
    return widened(row_of<const T>(x.view, row)[column]);
}

// E4M3 codes, a power of two for ROWS rows by 32 columns; `blocks` is the scales of a row.
template <int ROWS> struct Mxfp8 {
    View view;
    u64 blocks;
};

template <int ROWS> DEVICE float value(const Mxfp8<ROWS> &x, u64 row, u64 column) {
    float scale = ue8m0_to_f32(x.view.scales[row / ROWS * x.blocks + column / SCALED_COLUMNS]);
    return e4m3_to_f32(x.view.codes[row * x.view.stride + column]) * scale;
}

// E2M1 codes, the even column in the low nibble, and a power of two for 32 columns of a row.
struct Mxfp4 {
    View view;
    u64 blocks;
};

DEVICE float value(const Mxfp4 &x, u64 row, u64 column) {
    u64 place = row * x.view.stride + column;
    float scale = ue8m0_to_f32(x.view.scales[row * x.blocks + column / SCALED_COLUMNS]);
    return e2m1_to_f32((u8)(x.view.codes[place / 2] >> place % 2 * 4)) * scale;
}
