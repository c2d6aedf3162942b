// RMSNorm of a row by the threads of a block: squares are exact in f64 and added in the order of
// device/block_sum.cuh; mean, root, quotient and the two products are f32, one rounding each.
#pragma once
#include "bf16.cuh"
#include "block_sum.cuh"

// What an fp32 accumulator holds: infinite where the sum lies beyond f32.
DEVICE double in_f32_range(double x) {
    float narrow = (float)x;
    return magnitude_of(narrow) == INFINITE ? (double)narrow : x;
}

// `1 / sqrt(mean + eps)` of a sum of squares.
DEVICE float rstd_of(double squares, u64 width, float eps) {
    float mean = (float)(in_f32_range(squares) / (double)width);
    return root_reciprocal(mean + eps);
}

// `1 / sqrt(mean(x^2) + eps)` of the row of `value(i)`; `scratch` as of block_sum.
template <int THREADS, typename Value>
DEVICE float row_rstd(const Value &value, u64 width, float eps, double *scratch) {
    double squares = 0;
    for (u64 i = threadIdx.x; i < width; i += THREADS) {
        double x = value(i);
        squares += x * x;
    }
    return rstd_of(block_sum<THREADS>(squares, scratch), width, eps);
}

// One element of the normed row.
DEVICE u16 normed(float x, float rstd, u16 weight) { return bf16_result(bf16_to_f32(weight) * (x * rstd)); }
