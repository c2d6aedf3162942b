// The coefficients that a sub-layer's input, output and residual mix with, of one token by the threads of a block: warps
// share the products, made in f32; then one warp, or a thread a coefficient, goes on in f64.
#pragma once
#include "chunk.cuh"
#include "lanes.cuh"
#include "rms.cuh"
#include "sinkhorn.cuh"

// Streams at most, as the host has it.
constexpr u64 STREAMS = 16;
// Coefficients of a warp at a time, and warps that share their columns.
constexpr int BAND = 3;
constexpr int SLICES = 2;

struct Mixer {
    View streams, projection, base, scale, pre, post, comb;
    u64 count, width, iterations;
    float eps, norm_eps;
};

struct MixesMemory {
    // Sums of slices; behind the last coefficient the squares.
    double sums[SLICES][(2 + STREAMS) * STREAMS + 1];
    double comb[STREAMS * STREAMS], spare[STREAMS * STREAMS];
};

DEVICE double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

DEVICE u64 coefficients_of(const Mixer &mixer) { return (2 + mixer.count) * mixer.count; }

// A warp's share of the products of a band and of the squares, a lane's in turn in Sum.
template <typename Sum> struct Band {
    Sum of[BAND], squares;
};

template <bool WHOLE, typename Sum>
DEVICE Band<Sum> band_of(const Mixer &mixer, u64 token, u64 first, u32 slice) {
    u64 coefficients = coefficients_of(mixer);
    u32 chunks = (u32)((mixer.width + CHUNK - 1) / CHUNK), all = (u32)mixer.count * chunks;
    u32 stream = 0, at = slice * 32 + threadIdx.x % 32;
    Band<Sum> sums = {};
#pragma unroll 2
    for (u32 i = at; i < all; i += 32 * SLICES, at += 32 * SLICES) {
        while (at >= chunks) at -= chunks, stream++;
        u64 column = (u64)at * CHUNK, begin = stream * mixer.width;
        Chunk x = any_chunk<WHOLE, u16>(mixer.streams, token * mixer.count + stream, column, mixer.width);
#pragma unroll
        for (int j = 0; j < BAND; j++) {
            u64 row = first + j < coefficients ? first + j : coefficients - 1;
            Chunk w = any_chunk<WHOLE, float>(mixer.projection, row, begin + column, begin + mixer.width);
#pragma unroll
            for (int k = 0; k < CHUNK; k++) sums.of[j] = fma((Sum)x.of[k], (Sum)w.of[k], sums.of[j]);
        }
#pragma unroll
        for (int k = 0; k < CHUNK; k++) sums.squares = fma((Sum)x.of[k], (Sum)x.of[k], sums.squares);
    }
    return sums;
}

template <int THREADS, bool WHOLE> DEVICE void project(const Mixer &mixer, u64 token, MixesMemory &memory) {
    u64 coefficients = coefficients_of(mixer);
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, slice = warp % SLICES;
    for (u64 first = warp / SLICES * BAND; first < coefficients; first += THREADS / 32 / SLICES * BAND) {
        Band<float> narrow = band_of<WHOLE, float>(mixer, token, first, slice);
        Band<double> sums = {};
        // The whole sum may be in range where a lane's was not, or a step of it.
        bool in_range = is_finite(narrow.squares);
#pragma unroll
        for (int j = 0; j < BAND; j++) sums.of[j] = narrow.of[j], in_range = in_range && is_finite(narrow.of[j]);
        sums.squares = narrow.squares;
        if (__ballot_sync(ALL_LANES, !in_range) != 0) sums = band_of<false, double>(mixer, token, first, slice);
#pragma unroll
        for (int j = 0; j < BAND; j++) {
            double sum = lanes_sum(sums.of[j], 32);
            if (lane == 0 && first + j < coefficients) memory.sums[slice][first + j] = sum;
        }
        if (first > 0) continue;
        double sum = lanes_sum(sums.squares, 32);
        if (lane == 0) memory.sums[slice][coefficients] = sum;
    }
}

// The products and the squares, for all threads after the next barrier.
template <int THREADS> DEVICE void project(const Mixer &mixer, u64 token, MixesMemory &memory) {
    bool whole = is_aligned(Plain<u16>{mixer.streams}, mixer.width);
    if (whole && is_aligned(Plain<float>{mixer.projection}, mixer.width)) {
        project<THREADS, true>(mixer, token, memory);
    } else {
        project<THREADS, false>(mixer, token, memory);
    }
}

// What a coefficient's product is scaled with, and its base.
struct Affine {
    float scale, base;
};

DEVICE Affine affine_of(const Mixer &mixer, u64 c) {
    if (c >= coefficients_of(mixer)) return {};
    u64 part = c < mixer.count ? 0 : c < 2 * mixer.count ? 1 : 2;
    return {row_of<const float>(mixer.scale, 0)[part], row_of<const float>(mixer.base, 0)[c]};
}

// Coefficient `c` before Sinkhorn's steps.
DEVICE double mix_of(const Mixer &mixer, const MixesMemory &memory, u64 c, Affine affine) {
    u64 last = coefficients_of(mixer);
    double product = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < SLICES; i++) product += memory.sums[i][c], squares += memory.sums[i][last];
    double rstd = rstd_of(squares, mixer.count * mixer.width, mixer.norm_eps);
    double mix = in_f32_range(product) * rstd * (double)affine.scale;
    mix += (double)affine.base;
    if (c >= 2 * mixer.count) return mix;
    mix = sigmoid(mix);
    return c < mixer.count ? mix + (double)mixer.eps : 2.0 * mix;
}

// All of it for four streams, by a warp: a lane a coefficient.
DEVICE void mix_four(const Mixer &mixer, u64 token, MixesMemory &memory, Affine affine) {
    u32 lane = threadIdx.x % 32, own = lane - 8, row = own / 4 % 4, column = own % 4;
    double x = lane < 24 ? mix_of(mixer, memory, lane, affine) : 0.0, largest = -1.0 / 0.0;
    if (lane < 4) row_of<float>(mixer.pre, token)[lane] = f32_result(x);
    if (lane >= 4 && lane < 8) row_of<float>(mixer.post, token)[lane - 4] = f32_result(x);
    double four[4], sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) four[k] = __shfl_sync(ALL_LANES, x, lane / 4 * 4 + k);
    // The largest passes over NaN, which comes back through its own exponential.
#pragma unroll
    for (int k = 0; k < 4; k++) largest = four[k] > largest ? four[k] : largest;
    x = exp(x - largest);
#pragma unroll
    for (int k = 0; k < 4; k++) sum += __shfl_sync(ALL_LANES, x, lane / 4 * 4 + k);
    // The softmax is the first step of the rows; it has its `eps` behind the division.
    x = x / sum + (double)mixer.eps;
    if (lane >= 8 && lane < 24) memory.comb[own] = x;
    __syncwarp();
    double across[4], down[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) across[i] = memory.comb[4 * column + i], down[i] = memory.comb[4 * i + column];
    Inverses inverse = sinkhorn(across, down, mixer.iterations, (double)mixer.eps);
    x *= __shfl_sync(ALL_LANES, inverse.row, row) * inverse.column;
    if (lane >= 8 && lane < 24) row_of<float>(mixer.comb, token * 4 + row)[column] = f32_result(x);
}

// The same for any number, by all threads of a block: a thread a coefficient.
template <int THREADS> DEVICE void mix_any(const Mixer &mixer, u64 token, MixesMemory &memory) {
    static_assert(THREADS >= (2 + STREAMS) * STREAMS, "a coefficient a thread");
    u32 own = threadIdx.x, count = (u32)mixer.count, row = own / count, column = own % count;
    double x = own < coefficients_of(mixer) ? mix_of(mixer, memory, own, affine_of(mixer, own)) : 0.0;
    if (own < count) row_of<float>(mixer.pre, token)[own] = f32_result(x);
    if (own >= count && own < 2 * count) row_of<float>(mixer.post, token)[own - count] = f32_result(x);
    if (own >= 2 * count && own < (2 + count) * count) memory.comb[own - 2 * count] = x;
    __syncthreads();
    bool there = own < count * count;
    double largest = -1.0 / 0.0, eps = (double)mixer.eps;
    for (u32 k = 0; there && k < count; k++) {
        double other = memory.comb[row * count + k];
        largest = other > largest ? other : largest;
    }
    if (there) x = exp(memory.comb[own] - largest);
    __syncthreads();
    for (u64 i = 0; i < mixer.iterations; i++) {
        if (there) memory.comb[own] = x;
        __syncthreads();
        double sum = 0;
        for (u32 k = 0; there && k < count; k++) sum += memory.comb[row * count + k];
        x = x / (i == 0 ? sum : sum + eps) + (i == 0 ? eps : 0.0);
        if (there) memory.spare[own] = x;
        __syncthreads();
        sum = 0;
        for (u32 k = 0; there && k < count; k++) sum += memory.spare[k * count + column];
        x = x / (sum + eps);
    }
    if (there) row_of<float>(mixer.comb, token * count + row)[column] = f32_result(x);
}
