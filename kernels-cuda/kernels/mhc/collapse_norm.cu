// mhc.collapse_norm: the collapse, rounded to bf16; its norm, rounded to bf16; and that as FP8 codes. One block a
// row, an element a thread, a block of codes a warp. The collapse of rows of more than that is made anew where it is
// read, so that rows of any width need no memory.
#include "../device/quantise.cuh"
#include "../device/rms.cuh"
#include "../device/streams.cuh"

constexpr int THREADS = 256;
constexpr u64 BLOCK = 32;

KERNEL(mhc_collapse_norm__portable, THREADS)(View streams, View pre, View weight, View y, View y8, u64 count, u64 width,
                                             float eps, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    const u16 *scale = row_of<const u16>(weight, 0);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        const float *mix = row_of<const float>(pre, token);
        u16 *to = row_of<u16>(y, token);
        auto value = [=](u64 i) {
            float sum = collapsed(streams, count, token, i, [=](u64 s) { return mix[s]; });
            return bf16_to_f32(bf16_result((double)sum));
        };
        float own = 0;
        double squares = 0;
        for (u64 i = threadIdx.x; i < width; i += THREADS) {
            own = value(i);
            squares += (double)own * (double)own;
        }
        float rstd = rstd_of(block_sum<THREADS>(squares, scratch), width, eps);
        for (u64 i = threadIdx.x; i < width; i += THREADS) {
            u16 unit = normed(width > THREADS ? value(i) : own, rstd, scale[i]);
            to[i] = unit;
            u64 block = i / BLOCK;
            u8 *codes = y8.codes + token * y8.stride + block * BLOCK;
            auto lane = [=](u64) { return bf16_to_f32(unit); };
            quantise(FP8_UE8M0, lane, BLOCK, codes, y8.scales + token * (width / BLOCK) + block);
        }
        __syncthreads();
    }
}
