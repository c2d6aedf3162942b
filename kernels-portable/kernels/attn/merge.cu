// attn.merge: two parts of one attention put together by their log-sum-exps. One block a row and head.
#include "../device/split.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 128;
constexpr u32 NONE = 0xFF800000u;

// A part of one head: values, log-sum-exp, and its weight against the larger part.
struct Part {
    const u16 *values;
    double log, weight;
};

// A part without entries is not multiplied.
DEVICE double term(const Part &part, u64 d) {
    return part.log == (double)float_of(NONE) ? 0.0 : part.weight * (double)bf16_to_f32(part.values[d]);
}

KERNEL(attn_merge__portable, THREADS)(View a, View lse_a, View b, View lse_b, View sink, View y, View lse, u64 heads,
                                      u64 head_dim, u64 tokens) {
    begin();
    for (u64 row = blockIdx.x; row < tokens * heads; row += gridDim.x) {
        auto [token, head] = split(row, heads);
        Part first = {row_of<const u16>(a, row), row_of<const float>(lse_a, token)[head], 0};
        Part second = {row_of<const u16>(b, row), row_of<const float>(lse_b, token)[head], 0};
        double none = float_of(NONE), logit = sink.codes ? row_of<const float>(sink, 0)[head] : float_of(NONE);
        bool any = !(first.log == none && second.log == none);
        double largest = first.log > second.log || second.log != second.log ? first.log : second.log;
        first.weight = exp(first.log - largest), second.weight = exp(second.log - largest);
        double mass = first.weight + second.weight + (sink.codes ? exp(logit - largest) : 0.0);
        // A NaN in either part's logarithm is one in every value.
        if (first.log != first.log || second.log != second.log) mass = float_of(NAN_BITS);
        for (u64 d = threadIdx.x; d < head_dim; d += THREADS) {
            row_of<u16>(y, row)[d] = any ? bf16_result((term(first, d) + term(second, d)) / mass) : (u16)0;
        }
        double log_sum = any ? largest + log(mass) : logit;
        if (threadIdx.x == 0) row_of<float>(lse, token)[head] = f32_result(log_sum);
    }
}
