// spec.confidence: the logit of a draft's survival, z[t] = w . [hidden[t] | embed[previous[t]]]. One block a row; without
// a previous token the sum ends after the state.
#include "../device/block_sum.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;

// This thread's share of the product of two rows.
DEVICE double share(const u16 *x, const u16 *w, u64 width) {
    double sum = 0;
    for (u64 i = threadIdx.x; i < width; i += THREADS) sum += (double)bf16_to_f32(x[i]) * (double)bf16_to_f32(w[i]);
    return sum;
}

KERNEL(spec_confidence__portable, THREADS)(View hidden, View previous, View embed, View weight, View y, u64 width, u64 vocab,
                                           u64 rank, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    const u16 *w = row_of<const u16>(weight, 0);
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        i64 before = row_of<const i32>(previous, 0)[token];
        double sum = share(row_of<const u16>(hidden, token), w, width);
        if (before >= 0 && (u64)before < vocab) sum += share(row_of<const u16>(embed, (u64)before), w + width, rank);
        sum = block_sum<THREADS>(sum, scratch);
        if (threadIdx.x == 0) row_of<float>(y, 0)[token] = f32_result(sum);
        __syncthreads();
    }
}
