// norm.rms: y = w (x / sqrt(mean(x^2) + eps)). One block a row: squares are exact in f64 and added in the
// order of device/block_sum.cuh; mean, root, quotient and the two products are f32, one rounding each.
#include "../device/block_sum.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;

// What an fp32 accumulator holds: infinite where the sum lies beyond f32.
DEVICE double in_f32_range(double x) {
    float narrow = (float)x;
    return magnitude_of(narrow) == INFINITE ? (double)narrow : x;
}

KERNEL(norm_rms__portable, THREADS)(View x, View weight, View y, u64 width, float eps, u64 tokens) {
    __shared__ double scratch[THREADS / 32];
    const u16 *scale = row_of<const u16>(weight, 0);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        const u16 *from = row_of<const u16>(x, token);
        u16 *to = row_of<u16>(y, token);
        double squares = 0;
        for (u64 i = threadIdx.x; i < width; i += THREADS) {
            double value = bf16_to_f32(from[i]);
            squares += value * value;
        }
        squares = block_sum<THREADS>(squares, scratch);
        float mean = (float)(in_f32_range(squares) / (double)width);
        float rstd = (float)(1.0 / sqrt((double)(mean + eps)));
        for (u64 i = threadIdx.x; i < width; i += THREADS) {
            float unit = bf16_to_f32(from[i]) * rstd;
            to[i] = bf16_result((double)(bf16_to_f32(scale[i]) * unit));
        }
        // The next row's sum writes the scratch that slower threads may still read.
        __syncthreads();
    }
}
