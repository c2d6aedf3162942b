// moe.route_grouped: the best groups by the sum of their two largest keys, then the experts with the largest keys in
// them. One block a row, a group a thread: it looks for the best group or key behind the one found last, as often as
// there are to take, and makes keys anew each time instead of keeping them.
#include "../device/block_max.cuh"
#include "../device/choice.cuh"
#include "../device/score.cuh"

constexpr int THREADS = 32;

// A row's logits and biases, and its groups.
struct Row {
    const float *logit, *bias;
    u64 groups, size;
};

// An expert as a choice, with its score and its key.
struct Candidate {
    u64 choice;
    float score, key;
};

// A group as a choice among groups, and its best expert behind some other one.
struct Group {
    u64 self;
    Candidate expert;
};

DEVICE Group look(const Row &row, u64 group, u64 last) {
    Candidate first = {}, second = {}, next = {};
    for (u64 e = group * row.size; e < (group + 1) * row.size; e++) {
        float score = sigmoid_score(row.logit[e]), key = score + row.bias[e];
        Candidate own = {choice_of(key, (u32)e), score, key};
        if (own.choice > first.choice) {
            second = first, first = own;
        } else if (own.choice > second.choice) {
            second = own;
        }
        if (own.choice < last && own.choice > next.choice) next = own;
    }
    return {choice_of(first.key + second.key, (u32)group), next};
}

KERNEL(moe_route_grouped__portable, THREADS)(View logits, View bias, View expert, View weight, u64 experts, u64 groups,
                                             u64 groups_taken, u64 top_k, float scale, u64 tokens) {
    begin();
    __shared__ u64 scratch[THREADS / 32];
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        Row row = {row_of<const float>(logits, token), row_of<const float>(bias, 0), groups, experts / groups};
        i32 *taken = row_of<i32>(expert, token);
        float *scores = row_of<float>(weight, token);
        // First the groups that stay, down to `lowest`, then the experts in them.
        u64 lowest = BEST, last = BEST;
        for (u64 i = 0; i < groups_taken + top_k; i++) {
            bool choosing_groups = i < groups_taken;
            u64 best = 0;
            float score = 0;
            for (u64 g = threadIdx.x; g < groups; g += THREADS) {
                Group group = look(row, g, last);
                if (choosing_groups) {
                    if (group.self < lowest && group.self > best) best = group.self;
                } else if (group.self >= lowest && group.expert.choice > best) {
                    best = group.expert.choice, score = group.expert.score;
                }
            }
            u64 found = block_max<THREADS>(best, (u64)0, scratch);
            if (choosing_groups) {
                lowest = found;
            } else {
                last = found;
                if (best == last) taken[i - groups_taken] = (i32)place_of(last), scores[i - groups_taken] = score;
            }
            // The next search writes the scratch that slower threads may still read; after the last one,
            // everyone sees what was taken.
            __syncthreads();
        }
        weigh(scores, scores, top_k, scale);
    }
}
