// mhc.mixes: the coefficients that a sub-layer's input, output and residual mix with. One block a token.
#include "../device/mixes.cuh"

constexpr int THREADS = 512;

KERNEL(mhc_mixes__portable, THREADS)(View streams, View projection, View base, View scale, View pre, View post, View comb,
                                     u64 count, u64 width, u64 iterations, float eps, float norm_eps, u64 tokens) {
    begin();
    __shared__ MixesMemory memory;
    Mixer mixer = {streams, projection, base, scale, pre, post, comb, count, width, iterations, eps, norm_eps};
    Affine affine = affine_of(mixer, threadIdx.x);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        project<THREADS>(mixer, token, memory);
        __syncthreads();
        if (count != 4) {
            mix_any<THREADS>(mixer, token, memory);
        } else if (threadIdx.x < 32) {
            mix_four(mixer, token, memory, affine);
        }
        __syncthreads();
    }
}
