// norm.rms_cast: a row's norm, rounded to bf16, as FP8 codes. One block of threads a row, a block of codes four lanes.
#include "../device/normed_row.cuh"

template <bool WHOLE> DEVICE void cast_one(View x, View weight, View y, u64 width, float eps, double *scratch, u64 token) {
    auto value = [&](u64 column) { return any_chunk<WHOLE, u16>(x, token, column, width); };
    auto take = [&](u64 column, Words<4> unit) { store_codes(y, token, column, width, unit); };
    norm_row<WHOLE>(value, weight, width, eps, scratch, take);
}

KERNEL(norm_rms_cast__portable, ROW_THREADS)(View x, View weight, View y, u64 width, float eps, u64 tokens) {
    begin();
    __shared__ double scratch[ROW_THREADS / 32];
    bool whole = is_aligned(Plain<u16>{x}, width) && is_aligned(Plain<u16>{weight}, width);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        if (whole) {
            cast_one<true>(x, weight, y, width, eps, scratch, token);
        } else {
            cast_one<false>(x, weight, y, width, eps, scratch, token);
        }
    }
}
