// mhc.collapse_norm: the collapse, rounded to bf16; its norm, rounded to bf16; and that as FP8 codes. One block a
// row, a block of codes four lanes.
#include "../device/collapse.cuh"
#include "../device/normed_row.cuh"

// Enough for rows of 5,120, and few enough for the registers that four streams at once take.
constexpr int THREADS = 640;

template <bool WHOLE>
DEVICE void collapse_one(View streams, View pre, View weight, View y, View y8, u64 count, u64 width, float eps,
                         double *scratch, u64 token) {
    auto value = [&](u64 column) { return collapsed_chunk<WHOLE>(streams, pre, count, token, column, width); };
    auto take = [&](u64 column, Words<4> unit) {
        store_chunk(row_of<u16>(y, token), column, width, unit);
        store_codes(y8, token, column, width, unit);
    };
    norm_row<WHOLE>(value, weight, width, eps, scratch, take);
}

KERNEL(mhc_collapse_norm__portable, THREADS)(View streams, View pre, View weight, View y, View y8, u64 count, u64 width,
                                             float eps, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    bool whole = is_aligned(Plain<u16>{streams}, width) && is_aligned(Plain<u16>{weight}, width);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        if (whole) {
            collapse_one<true>(streams, pre, weight, y, y8, count, width, eps, scratch, token);
        } else {
            collapse_one<false>(streams, pre, weight, y, y8, count, width, eps, scratch, token);
        }
    }
}
