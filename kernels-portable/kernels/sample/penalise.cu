// sample.penalise: repetition, presence and frequency penalties and logit bias. A block counts the ids of a range in
// the row's history, then changes their logits; a thread has the same ids throughout, so that its steps keep their order.
#include "../device/split.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;
// Ids of a range, as the host has it.
constexpr u64 RANGE = 4096;
// Set for ids of the prompt; the other bits count the output.
constexpr u32 PROMPT = 0x80000000u;

struct Penalties {
    float repetition, presence, frequency;
};

DEVICE float penalised(float logit, u32 word, const Penalties &by) {
    u32 count = word & ~PROMPT;
    float repeated = logit > 0 ? quotient(logit, by.repetition) : logit * by.repetition;
    return repeated - by.frequency * (float)count - (count > 0 ? by.presence : 0.0f);
}

KERNEL(sample_penalise__portable, THREADS)(View prompt, View output, View repetition, View presence, View frequency,
                                           View bias_id, View bias, View logits, u64 vocab, u64 history, u64 biases,
                                           u64 tokens) {
    begin();
    __shared__ u32 words[RANGE];
    u64 ranges = (vocab + RANGE - 1) / RANGE;
    for (u64 item = blockIdx.x; item < tokens * ranges; item += gridDim.x) {
        auto [token, range] = split(item, ranges);
        u64 first = range * RANGE, count = vocab - first < RANGE ? vocab - first : RANGE;
        float *row = row_of<float>(logits, token) + first;
        Penalties by = {row_of<const float>(repetition, 0)[token], row_of<const float>(presence, 0)[token],
                        row_of<const float>(frequency, 0)[token]};
        if (!(by.repetition == 1 && by.presence == 0 && by.frequency == 0)) {
            for (u64 i = threadIdx.x; i < RANGE; i += THREADS) words[i] = 0;
            __syncthreads();
            for (u64 i = threadIdx.x; i < history; i += THREADS) {
                u64 given = (u64)(i64)row_of<const i32>(prompt, token)[i] - first;
                u64 made = (u64)(i64)row_of<const i32>(output, token)[i] - first;
                if (given < count) atomicOr(&words[given], PROMPT);
                if (made < count) atomicAdd(&words[made], 1u);
            }
            __syncthreads();
            for (u64 i = threadIdx.x; i < count; i += THREADS) {
                if (words[i] != 0) row[i] = penalised(row[i], words[i], by);
            }
        }
        for (u64 i = 0; i < biases; i++) {
            u64 id = (u64)(i64)row_of<const i32>(bias_id, token)[i] - first;
            if (id < count && id % THREADS == threadIdx.x) row[id] += row_of<const float>(bias, token)[i];
        }
        __syncthreads();
    }
}
