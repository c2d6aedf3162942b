// spec.markov: the bias that a drafted token gives its successor's logits, logits[t] += head . embed[previous[t]]. One
// logit a thread; products are exact in f64 and added in order.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(spec_markov__portable, 256)(View previous, View embed, View head, View logits, u64 vocab, u64 rank, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * vocab) {
        auto [token, id] = split(item, vocab);
        i64 before = row_of<const i32>(previous, 0)[token];
        if (before < 0 || (u64)before >= vocab) continue;
        const u16 *x = row_of<const u16>(embed, (u64)before), *w = row_of<const u16>(head, id);
        double sum = 0;
        for (u64 i = 0; i < rank; i++) sum += (double)bf16_to_f32(x[i]) * (double)bf16_to_f32(w[i]);
        float *to = row_of<float>(logits, token) + id;
        *to = f32_result((double)*to + sum);
    }
}
