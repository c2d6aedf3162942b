// mhc.mixes: the coefficients that a sub-layer's input, output and residual mix with. One block a token: a warp makes
// the products of a few coefficients at once, its lanes in turn the columns, in f64; then a thread has a coefficient.
#include "../device/dot.cuh"
#include "../device/rms.cuh"
#include "../device/split.cuh"

constexpr int THREADS = 256;
// Streams at most, as the host has it.
constexpr u64 STREAMS = 16;
// Coefficients at a time.
constexpr int COLUMNS = 3;

DEVICE double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// The sum of `count` values `step` apart.
template <u64 COUNT> DEVICE double sum_of(const double *values, u64 count, u64 step) {
    if (COUNT > 0) count = COUNT;
    double sum = 0;
#pragma unroll
    for (u64 i = 0; i < count; i++) sum += values[i * step];
    return sum;
}

// Threads below `count` squared go on together: a warp where that is enough.
DEVICE void meet(u64 count) {
    if (count * count <= 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

// Rows and columns in turn, the rows' first step being their softmax; a thread an element. COUNT is the count, or 0 for
// any; `spare` is as large as `comb`. The largest passes over NaN, which comes back through its own exponential.
template <u64 COUNT> DEVICE void sinkhorn(double *comb, double *spare, u64 count, u64 iterations, double eps) {
    if (COUNT > 0) count = COUNT;
    u32 own = threadIdx.x;
    bool there = own < count * count;
    u64 row = own / (u32)count * count, column = own % (u32)count;
    double x = 0, largest = -1.0 / 0.0;
    for (u64 k = 0; there && k < count; k++) largest = comb[row + k] > largest ? comb[row + k] : largest;
    if (there) x = exp(comb[own] - largest);
    meet(count);
    for (u64 i = 0; i < iterations; i++) {
        if (there) comb[own] = x;
        meet(count);
        if (there) {
            double sum = sum_of<COUNT>(comb + row, count, 1);
            // The softmax has its `eps` behind the division.
            x = x / (i == 0 ? sum : sum + eps) + (i == 0 ? eps : 0.0);
            spare[own] = x;
        }
        meet(count);
        if (there) x = x / (sum_of<COUNT>(spare + column, count, count) + eps);
    }
    if (there) comb[own] = x;
}

KERNEL(mhc_mixes__portable, THREADS)(View streams, View projection, View base, View scale, View pre, View post, View comb,
                                     u64 count, u64 width, u64 iterations, float eps, float norm_eps, u64 tokens) {
    begin();
    __shared__ double mixes[(2 + STREAMS) * STREAMS], spare[STREAMS * STREAMS];
    u64 coefficients = (2 + count) * count, chunks = (width + CHUNK - 1) / CHUNK, own = threadIdx.x;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        for (u64 first = warp * COLUMNS; first < coefficients; first += THREADS / 32 * COLUMNS) {
            // Every warp has the squares, too.
            double sums[COLUMNS] = {}, squares = 0;
#pragma unroll 2
            for (u64 i = lane; i < count * chunks; i += 32) {
                auto [s, at] = split(i, chunks);
                Chunk x = chunk(Plain<u16>{streams}, token * count + s, at * CHUNK, width);
                squares = add_products(x, x, squares);
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    u64 row = first + j < coefficients ? first + j : coefficients - 1;
                    Chunk w = chunk(Plain<float>{projection}, row, s * width + at * CHUNK, (s + 1) * width);
                    sums[j] = add_products(x, w, sums[j]);
                }
            }
            double rstd = rstd_of(lanes_sum(squares, 32), count * width, norm_eps), product = 0;
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                double sum = lanes_sum(sums[j], 32);
                product = lane == j ? sum : product;
            }
            u64 c = first + lane;
            if (lane >= COLUMNS || c >= coefficients) continue;
            u64 part = c < count ? 0 : c < 2 * count ? 1 : 2;
            double mix = in_f32_range(product) * rstd * (double)row_of<const float>(scale, 0)[part];
            mix += (double)row_of<const float>(base, 0)[c];
            if (part < 2) mix = sigmoid(mix);
            mixes[c] = part == 0 ? mix + (double)eps : part == 1 ? 2.0 * mix : mix;
        }
        __syncthreads();
        if (count == 4) {
            if (warp == 0) sinkhorn<4>(mixes + 2 * count, spare, count, iterations, (double)eps);
        } else if (count * count > 32 || warp == 0) {
            sinkhorn<0>(mixes + 2 * count, spare, count, iterations, (double)eps);
        }
        __syncthreads();
        if (own < count) {
            row_of<float>(pre, token)[own] = f32_result(mixes[own]);
            row_of<float>(post, token)[own] = f32_result(mixes[count + own]);
        }
        if (own < count * count) {
            row_of<float>(comb, token * count + (u32)own / (u32)count)[(u32)own % (u32)count] = f32_result(mixes[2 * count + own]);
        }
        __syncthreads();
    }
}
