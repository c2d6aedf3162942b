// mhc.mixes: the coefficients that a sub-layer's input, output and residual mix with. One block a token: a warp makes
// one coefficient's product after the other, its lanes in turn the columns, in f64; then one thread has a row, or a
// column, of the matrix.
#include "../device/rms.cuh"
#include "../device/streams.cuh"

constexpr int THREADS = 512;
// Streams at most, as the host has it.
constexpr u64 STREAMS = 16;

DEVICE double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// Divides `count` values `step` apart by their sum and `eps`.
DEVICE void divide(double *values, u64 count, u64 step, double eps) {
    double sum = 0;
    for (u64 i = 0; i < count; i++) sum += values[i * step];
    sum += eps;
    for (u64 i = 0; i < count; i++) values[i * step] = values[i * step] / sum;
}

// The softmax of a row, and `eps`. The largest passes over NaN, which comes back through its own exponential.
DEVICE void soften(double *row, u64 count, double eps) {
    double largest = -1.0 / 0.0, sum = 0;
    for (u64 k = 0; k < count; k++) largest = row[k] > largest ? row[k] : largest;
    for (u64 k = 0; k < count; k++) sum += row[k] = exp(row[k] - largest);
    for (u64 k = 0; k < count; k++) row[k] = row[k] / sum + eps;
}

// Rows and columns in turn, the rows' first step being their softmax.
DEVICE void sinkhorn(double *comb, u64 count, u64 iterations, double eps) {
    u64 own = threadIdx.x;
    for (u64 i = 0; i < iterations; i++) {
        if (own < count) {
            if (i == 0) {
                soften(comb + own * count, count, eps);
            } else {
                divide(comb + own * count, count, 1, eps);
            }
        }
        __syncthreads();
        if (own < count) divide(comb + own, count, count, eps);
        __syncthreads();
    }
}

// This thread's share of `sum over s, i of weight(s, i, h) h[s,i]`: every STEP-th column from `first` on.
template <int STEP, typename Weight>
DEVICE double product(const View &streams, u64 count, u64 width, u64 token, u64 first, const Weight &weight) {
    double sum = 0;
    for (u64 s = 0; s < count; s++) {
        const u16 *from = row_of<const u16>(streams, token * count + s);
        for (u64 i = first; i < width; i += STEP) {
            double h = bf16_to_f32(from[i]);
            sum += weight(s, i, h) * h;
        }
    }
    return sum;
}

KERNEL(mhc_mixes__portable, THREADS)(View streams, View projection, View base, View scale, View pre, View post, View comb,
                                     u64 count, u64 width, u64 iterations, float eps, float norm_eps, u64 tokens) {
    __shared__ double scratch[THREADS / 32], mixes[(2 + STREAMS) * STREAMS];
    u64 coefficients = (2 + count) * count, own = threadIdx.x;
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        auto itself = [](u64, u64, double h) { return h; };
        double squares = product<THREADS>(streams, count, width, token, threadIdx.x, itself);
        double rstd = rstd_of(block_sum<THREADS>(squares, scratch), count * width, norm_eps);
        for (u64 c = threadIdx.x / 32; c < coefficients; c += THREADS / 32) {
            const float *row = row_of<const float>(projection, c);
            auto weight = [=](u64 s, u64 i, double) { return (double)row[s * width + i]; };
            double sum = warp_sum(product<32>(streams, count, width, token, threadIdx.x % 32, weight));
            if (threadIdx.x % 32 == 0) mixes[c] = sum;
        }
        __syncthreads();
        if (own < coefficients) {
            u64 part = own < count ? 0 : own < 2 * count ? 1 : 2;
            double mix = in_f32_range(mixes[own]) * rstd * (double)row_of<const float>(scale, 0)[part];
            mix += (double)row_of<const float>(base, 0)[own];
            if (part < 2) mix = sigmoid(mix);
            mixes[own] = part == 0 ? mix + (double)eps : part == 1 ? 2.0 * mix : mix;
        }
        __syncthreads();
        sinkhorn(mixes + 2 * count, count, iterations, (double)eps);
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
