// norm.rms: y = w (x / sqrt(mean(x^2) + eps)). One block a row.
#include "../device/rms.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;

KERNEL(norm_rms__portable, THREADS)(View x, View weight, View y, u64 width, float eps, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    const u16 *scale = row_of<const u16>(weight, 0);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        const u16 *from = row_of<const u16>(x, token);
        u16 *to = row_of<u16>(y, token);
        auto value = [=](u64 i) { return bf16_to_f32(from[i]); };
        float rstd = row_rstd<THREADS>(value, width, eps, scratch);
        for (u64 i = threadIdx.x; i < width; i += THREADS) to[i] = normed(value(i), rstd, scale[i]);
        // The next row's sum writes the scratch that slower threads may still read.
        __syncthreads();
    }
}
