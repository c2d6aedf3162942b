// sample.log_probs: log-probabilities of the chosen token and of the best. One block a row.
#include "../device/block_max.cuh"
#include "../device/block_sum.cuh"
#include "../device/choice.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;

KERNEL(sample_log_probs__portable, THREADS)(View logits, View token, View chosen, View top_id, View top, u64 vocab,
                                            u64 count, u64 tokens) {
    begin();
    __shared__ double sums[THREADS / 32];
    __shared__ u64 keys[THREADS / 32];
    for (u64 t = blockIdx.x; t < tokens; t += gridDim.x) {
        const float *row = row_of<const float>(logits, t);
        // The best below a key; 0 for none.
        auto best_below = [&](u64 limit) {
            u64 key = 0;
            for (u64 id = threadIdx.x; id < vocab; id += THREADS) {
                u64 own = choice_of(row[id], (u32)id);
                if (own < limit && own > key) key = own;
            }
            __syncthreads();
            return block_max<THREADS>(key, 0ull, keys);
        };
        u64 key = best_below(~0ull);
        double largest = row[place_of(key)], sum = 0;
        // A NaN makes the sum one.
        for (u64 id = threadIdx.x; id < vocab; id += THREADS) sum += exp((double)row[id] - largest);
        double rest = log(block_sum<THREADS>(sum, sums));
        auto value = [=](u64 id) { return f32_result((double)row[id] - largest - rest); };
        i64 known = row_of<const i32>(token, 0)[t];
        bool inside = known >= 0 && (u64)known < vocab;
        if (threadIdx.x == 0) row_of<float>(chosen, 0)[t] = inside ? value((u64)known) : float_of(NAN_BITS);
        for (u64 n = 0; n < count; n++) {
            if (threadIdx.x == 0) {
                row_of<i32>(top_id, t)[n] = key != 0 ? (i32)place_of(key) : -1;
                row_of<float>(top, t)[n] = key != 0 ? value(place_of(key)) : float_of(0xFF800000u);
            }
            key = key != 0 ? best_below(key) : 0;
        }
        __syncthreads();
    }
}
