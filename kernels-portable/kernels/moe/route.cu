// moe.route: the experts with the largest keys s + b, and weights from s. One block a row, a thread an expert: it looks for
// the best key behind the one found last, `top_k` times. Keys of more than a thread has are made anew each time instead
// of kept.
#include "../device/best_choice.cuh"
#include "../device/score.cuh"

constexpr int THREADS = 512;
// Experts taken at most whose scores are kept at hand.
constexpr u64 AT_HAND = 64;

KERNEL(moe_route__portable, THREADS)(View logits, View bias, View bias_picture, View picture, View expert, View weight,
                                     u64 experts, u64 top_k, float scale, u64 tokens) {
    begin();
    __shared__ u64 scratch[2][THREADS / 32];
    __shared__ float at_hand[AT_HAND];
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        const float *logit = row_of<const float>(logits, token);
        bool shown = picture.codes && row_of<const i32>(picture, 0)[token] != 0;
        const float *added = shown ? row_of<const float>(bias_picture, 0) : row_of<const float>(bias, 0);
        i32 *taken = row_of<i32>(expert, token);
        float *weights = row_of<float>(weight, token), *scores = top_k <= AT_HAND ? at_hand : weights;
        u64 last = BEST, choice = 0;
        float score = 0;
        for (u64 i = 0; i < top_k; i++) {
            u64 best = 0;
            float best_score = 0;
            for (u64 e = threadIdx.x; e < experts; e += blockDim.x) {
                if (i == 0 || experts > blockDim.x) {
                    score = softplus_score(logit[e]);
                    choice = choice_of(score + added[e], (u32)e);
                }
                if (choice < last && choice > best) best = choice, best_score = score;
            }
            // Slower threads may still read the scratch of the search before this one, not that of the one before that.
            last = best_choice(best, scratch[i % 2]);
            if (best == last) taken[i] = (i32)place_of(last), scores[i] = best_score;
        }
        __syncthreads();
        weigh(scores, weights, top_k, scale);
        __syncthreads();
    }
}
