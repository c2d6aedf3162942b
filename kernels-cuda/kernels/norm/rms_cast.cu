// norm.rms_cast: a row's norm, rounded to bf16, as FP8 codes. One block of threads a row, one block of codes
// a warp.
#include "../device/quantise.cuh"
#include "../device/rms.cuh"

constexpr int THREADS = 256;
constexpr u64 BLOCK = 32;

KERNEL(norm_rms_cast__portable, THREADS)(View x, View weight, View y, u64 width, float eps, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    const u16 *scale = row_of<const u16>(weight, 0);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        const u16 *from = row_of<const u16>(x, token);
        auto value = [=](u64 i) { return bf16_to_f32(from[i]); };
        float rstd = row_rstd<THREADS>(value, width, eps, scratch);
        for (u64 at = threadIdx.x / 32; at < width / BLOCK; at += THREADS / 32) {
            auto own = [=](u64 i) { return bf16_to_f32(normed(value(at * BLOCK + i), rstd, scale[at * BLOCK + i])); };
            u8 *codes = y.codes + token * y.stride + at * BLOCK;
            quantise(FP8_UE8M0, own, BLOCK, codes, y.scales + token * (width / BLOCK) + at);
        }
        __syncthreads();
    }
}
