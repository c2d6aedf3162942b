// norm.rms_rotate: a row's norm, then the turn of its last dims. One block a row.
#include "../device/latent.cuh"

constexpr int THREADS = 256;

KERNEL(norm_rms_rotate__portable, THREADS)(View x, View weight, View position, View y,
                                           const __grid_constant__ Frequencies frequencies, u64 width, u64 pairs,
                                           float eps, i32 group, u32 inverse, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        const u16 *from = row_of<const u16>(x, token);
        auto value = [=](u64 i) { return bf16_to_f32(from[i]); };
        float rstd = row_rstd<THREADS>(value, width, eps, scratch);
        Latent row = {from,  row_of<const u16>(weight, 0),           width, pairs,
                      rstd,  row_of<const i32>(position, 0)[token], group, inverse != 0};
        u16 *to = row_of<u16>(y, token);
        for (u64 i = threadIdx.x; i < width; i += THREADS) to[i] = latent_at(row, frequencies, i);
        __syncthreads();
    }
}
