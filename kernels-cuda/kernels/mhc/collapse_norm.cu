// mhc.collapse_norm: the collapse, rounded to bf16; its norm, rounded to bf16; and that as FP8 codes. One block a
// row. The collapse is made anew where it is read, so that rows of any width need no memory.
#include "../device/quantise.cuh"
#include "../device/rms.cuh"
#include "../device/streams.cuh"

constexpr int THREADS = 256;
constexpr u64 BLOCK = 32;

KERNEL(mhc_collapse_norm__portable, THREADS)(View streams, View pre, View weight, View y, View y8, u64 count, u64 width,
                                             float eps, u64 tokens) {
    __shared__ double scratch[THREADS / 32];
    const u16 *scale = row_of<const u16>(weight, 0);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        const float *mix = row_of<const float>(pre, token);
        u16 *to = row_of<u16>(y, token);
        auto value = [=](u64 i) {
            float sum = collapsed(streams, count, token, i, [=](u64 s) { return mix[s]; });
            return bf16_to_f32(bf16_result((double)sum));
        };
        float rstd = row_rstd<THREADS>(value, width, eps, scratch);
        for (u64 i = threadIdx.x; i < width; i += THREADS) to[i] = normed(value(i), rstd, scale[i]);
        // Codes are made from what other threads wrote.
        __syncthreads();
        for (u64 at = threadIdx.x / 32; at < width / BLOCK; at += THREADS / 32) {
            auto own = [=](u64 i) { return bf16_to_f32(to[at * BLOCK + i]); };
            u8 *codes = y8.codes + token * y8.stride + at * BLOCK;
            quantise(FP8_UE8M0, own, BLOCK, codes, y8.scales + token * (width / BLOCK) + at);
        }
        __syncthreads();
    }
}
