// RMSNorm of a row by the threads of a block, a chunk of the row a thread. Rows of more chunks than that are asked for
// twice instead of kept, so that rows of any width need no memory. Squares are exact in f64; the order of their addition
// depends on the row's length alone, as the host chooses the threads by that.
#pragma once
#include "chunk.cuh"
#include "quantise.cuh"
#include "rms.cuh"

// bf16 of a chunk, two a word.
DEVICE Words<4> normed_chunk(const Chunk &x, float rstd, const Chunk &weight) {
    Words<4> unit;
#pragma unroll
    for (int i = 0; i < CHUNK; i += 2) {
        u32 low = bf16_result(weight.of[i] * (x.of[i] * rstd));
        unit.of[i / 2] = low | (u32)bf16_result(weight.of[i + 1] * (x.of[i + 1] * rstd)) << 16;
    }
    return unit;
}

// Threads of a block at most.
constexpr int ROW_THREADS = 1024;

// `value(column)` is a chunk of the row, zeros behind its end; `take(column, unit)` gets its norm, by all lanes of a warp
// together where any of them has one, columns behind the end included. `scratch` holds one f64 a warp. WHOLE as of
// `any_chunk`, of the weight.
template <bool WHOLE, typename Value, typename Take>
DEVICE void norm_row(const Value &value, const View &weight, u64 width, float eps, double *scratch, const Take &take) {
    Chunk own = {}, scale = {};
    double squares = 0;
    u64 step = (u64)blockDim.x * CHUNK;
    for (u64 column = threadIdx.x * CHUNK; column < width; column += step) {
        own = value(column), scale = any_chunk<WHOLE, u16>(weight, 0, column, width);
#pragma unroll
        for (int i = 0; i < CHUNK; i++) squares += (double)own.of[i] * (double)own.of[i];
    }
    // Lanes by halves, then warps by halves.
    u32 lane = threadIdx.x % 32, warps = blockDim.x / 32;
    squares = lanes_sum(squares, 32);
    if (warps > 1) {
        if (lane == 0) scratch[threadIdx.x / 32] = squares;
        __syncthreads();
        squares = lanes_sum(lane < warps ? scratch[lane] : 0.0, 32);
    }
    float rstd = rstd_of(squares, width, eps);
    for (u64 first = threadIdx.x / 32 * 32 * CHUNK; first < width; first += step) {
        u64 column = first + lane * CHUNK;
        if (width > step && column < width) own = value(column), scale = any_chunk<WHOLE, u16>(weight, 0, column, width);
        take(column, normed_chunk(own, rstd, scale));
    }
    // The next row's sum writes the scratch that slower threads may still read.
    __syncthreads();
}

// A chunk into a row of bf16, as far as the row goes.
DEVICE void store_chunk(u16 *row, u64 column, u64 width, Words<4> unit) {
    if (column >= width) return;
    if (column + CHUNK <= width && (u64)(row + column) % 16 == 0) {
        *(Words<4> *)(row + column) = unit;
        return;
    }
#pragma unroll
    for (int i = 0; i < CHUNK; i++) {
        if (column + i < width) row[column + i] = (u16)(unit.of[i / 2] >> i % 2 * 16);
    }
}

// A chunk of bf16 as FP8 codes, by the four lanes that have a block of 32; all lanes of a warp call it.
DEVICE void store_codes(const View &y, u64 row, u64 column, u64 width, Words<4> unit) {
    Chunk x = bf16_chunk(unit);
    u32 amax = 0;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) amax = magnitude_of(x.of[i]) > amax ? magnitude_of(x.of[i]) : amax;
#pragma unroll
    for (u32 mask = 1; mask < 4; mask *= 2) {
        u32 other = __shfl_xor_sync(ALL_LANES, amax, mask);
        amax = other > amax ? other : amax;
    }
    if (column >= width) return;
    u8 scale = fp8_scale(float_of(amax));
    if (column % SCALED_COLUMNS == 0) y.scales[row * (width / SCALED_COLUMNS) + column / SCALED_COLUMNS] = scale;
    u8 *to = y.codes + row * y.stride + column;
    // A scale of a floored block has a reciprocal, by which the product is the quotient.
    Words<2> codes = e4m3_codes(x, ue8m0_inverse(scale));
    if ((u64)to % 8 == 0) {
        *(Words<2> *)to = codes;
    } else {
        store_bytes(to, codes.of[0]), store_bytes(to + 4, codes.of[1]);
    }
}
