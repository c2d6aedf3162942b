// moe.route_hash: experts by token id, expert -1 and weight 0 for an id or an entry outside. One block a row.
#include "../device/score.cuh"

constexpr int THREADS = 32;

KERNEL(moe_route_hash__portable, THREADS)(View logits, View id, View table, View expert, View weight, u64 vocab,
                                          u64 experts, u64 top_k, float scale, u64 tokens) {
    begin();
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        i64 row = row_of<const i32>(id, 0)[token];
        bool listed = row >= 0 && (u64)row < vocab;
        float *scores = row_of<float>(weight, token);
        for (u64 i = threadIdx.x; i < top_k; i += THREADS) {
            i64 entry = listed ? row_of<const i32>(table, row)[i] : -1;
            bool known = entry >= 0 && (u64)entry < experts;
            row_of<i32>(expert, token)[i] = known ? (i32)entry : -1;
            // Zero adds nothing to the sum.
            scores[i] = known ? softplus_score(row_of<const float>(logits, token)[entry]) : 0.0f;
        }
        __syncthreads();
        weigh(scores, scores, top_k, scale);
        // Also where the sum is NaN.
        for (u64 i = threadIdx.x; i < top_k; i += THREADS) {
            if (row_of<const i32>(expert, token)[i] < 0) scores[i] = 0;
        }
    }
}
