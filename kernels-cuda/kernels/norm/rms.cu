// norm.rms: y = w (x / sqrt(mean(x^2) + eps)). One block a row.
#include "../device/normed_row.cuh"

constexpr int THREADS = 256;

KERNEL(norm_rms__portable, THREADS)(View x, View weight, View y, u64 width, float eps, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        auto value = [&](u64 column) { return chunk(Plain<u16>{x}, token, column, width); };
        auto take = [&](u64 column, Words<4> unit) { store_chunk(row_of<u16>(y, token), column, width, unit); };
        norm_row<THREADS>(value, weight, width, eps, scratch, take);
    }
}
