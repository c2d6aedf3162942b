// mhc.collapse_norm: the collapse, rounded to bf16; its norm, rounded to bf16; and that as FP8 codes. One block a
// row, a block of codes four lanes.
#include "../device/collapse.cuh"
#include "../device/normed_row.cuh"

constexpr int THREADS = 256;

KERNEL(mhc_collapse_norm__portable, THREADS)(View streams, View pre, View weight, View y, View y8, u64 count, u64 width,
                                             float eps, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        auto value = [&](u64 column) { return collapsed_chunk(streams, pre, count, token, column, width); };
        auto take = [&](u64 column, Words<4> unit) {
            store_chunk(row_of<u16>(y, token), column, width, unit);
            store_codes(y8, token, column, width, unit);
        };
        norm_row<THREADS>(value, weight, width, eps, scratch, take);
    }
}
