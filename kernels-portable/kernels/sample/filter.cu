// sample.filter: logits to the distribution that is sampled from. One block a row. What top_k and top_p keep is found
// as a threshold of logits; shares add up as integers of 2^-62, so that no order shows.
#include "../device/best.cuh"
#include "../device/block_max.cuh"
#include "../device/block_sum.cuh"
#include "../device/choice.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;
// Temperatures up to this are greedy.
constexpr float GREEDY = 1e-5f;
// How nearly a sum must reach top_p.
constexpr double REACH = 1e-6;
constexpr double UNITS = 4611686018427387904.0;

struct Memory {
    BestMemory<u64> best;
    double sums[THREADS / 32];
    u64 keys[THREADS / 32];
    u32 counts[THREADS / 32];
};

// A row's softmax.
struct Softmax {
    const float *logits;
    u64 vocab;
    float largest, temperature;
    double mass;
};

DEVICE double weight_of(const Softmax &law, float logit) {
    if (logit == law.largest) return 1.0;
    if (magnitude_of(logit) == INFINITE || law.largest == float_of(INFINITE)) return 0.0;
    return exp(((double)logit - (double)law.largest) / (double)law.temperature);
}

DEVICE double share_of(const Softmax &law, float logit) { return weight_of(law, logit) / law.mass; }

// In units that add up exactly.
DEVICE u64 units_of(const Softmax &law, float logit) { return (u64)(share_of(law, logit) * UNITS); }

template <typename F> DEVICE void walk_ids(const Softmax &law, const F &f) {
    for (u64 base = 0; base < law.vocab; base += THREADS) {
        u64 id = base + threadIdx.x;
        float logit = id < law.vocab ? law.logits[id] : 0.0f;
        f(id, id < law.vocab, standing(logit), (u64)1);
    }
}

// The logit that stands there.
DEVICE float logit_at(u32 standing) { return float_of(standing >> 31 ? standing & 0x7FFFFFFFu : ~standing); }

// Of what `kept` keeps, the best until their shares reach `top_p`; ties are counted.
DEVICE Threshold reach(const Softmax &law, Threshold kept, float top_p, Memory &memory) {
    double least = ((double)top_p - REACH) * UNITS;
    u64 wanted = least > 1 ? (u64)least : 1;
    auto walk = [&](const auto &f) {
        walk_ids(law, [&](u64 id, bool there, u32 standing, u64) {
            bool inside = there && standing >= kept.standing;
            f(id, inside, standing, inside ? units_of(law, law.logits[id]) : 0);
        });
    };
    Threshold reached = threshold_of<THREADS>(walk, wanted, memory.best);
    if (reached.all) return kept;
    u64 each = units_of(law, logit_at(reached.standing)), ties = (reached.wanted + each - 1) / each;
    bool same = !kept.all && reached.standing == kept.standing;
    return {reached.standing, same && kept.wanted < ties ? kept.wanted : ties, false};
}

// The shares that are kept, divided by their sum.
DEVICE void write_kept(const Softmax &law, Threshold kept, double least, float *to, Memory &memory) {
    auto walk = [&](const auto &f) { walk_ids(law, f); };
    double sum = 0;
    take_best<THREADS>(walk, kept, memory.counts, [&](u64, u64 id) {
        double share = share_of(law, law.logits[id]);
        if (!(share < least)) sum += share;
        to[id] = share < least ? 0.0f : 1.0f;
    });
    __syncthreads();
    sum = block_sum<THREADS>(sum, memory.sums);
    for (u64 id = threadIdx.x; id < law.vocab; id += THREADS) {
        if (to[id] != 0) to[id] = f32_result(share_of(law, law.logits[id]) / sum);
    }
}

KERNEL(sample_filter__portable, THREADS)(View logits, View temperature, View top_k, View top_p, View min_p, View p,
                                         u64 vocab, u64 tokens) {
    begin();
    __shared__ Memory memory;
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        float *to = row_of<float>(p, token);
        Softmax law = {row_of<const float>(logits, token), vocab, 0, row_of<const float>(temperature, 0)[token], 0};
        u64 key = 0;
        bool nan = is_nan(law.temperature);
        for (u64 id = threadIdx.x; id < vocab; id += THREADS) {
            u64 own = choice_of(law.logits[id], (u32)id);
            key = own > key ? own : key;
            nan = nan || is_nan(law.logits[id]);
            to[id] = 0;
        }
        // A NaN anywhere is above every key.
        key = block_max<THREADS>(nan ? ~0ull : key, 0ull, memory.keys);
        __syncthreads();
        u32 top = place_of(key);
        law.largest = key == ~0ull ? 0.0f : law.logits[top];
        if (key == ~0ull) {
            for (u64 id = threadIdx.x; id < vocab; id += THREADS) to[id] = float_of(NAN_BITS);
        } else if (law.temperature <= GREEDY || law.largest == float_of(0xFF800000u)) {
            if (threadIdx.x == 0) to[top] = 1;
        } else {
            double sum = 0;
            for (u64 id = threadIdx.x; id < vocab; id += THREADS) sum += weight_of(law, law.logits[id]);
            law.mass = block_sum<THREADS>(sum, memory.sums);
            Threshold kept = {0, ~0ull, true};
            i64 most = row_of<const i32>(top_k, 0)[token];
            auto walk = [&](const auto &f) { walk_ids(law, f); };
            if (most >= 1 && (u64)most < vocab) kept = threshold_of<THREADS>(walk, (u64)most, memory.best);
            float reached = row_of<const float>(top_p, 0)[token], share = row_of<const float>(min_p, 0)[token];
            if (reached < 1) kept = reach(law, kept, reached, memory);
            // A limit above 1 would keep nothing.
            double least = share > 0 ? (share > 1 ? 1.0 : (double)share) * share_of(law, law.largest) : 0.0;
            write_kept(law, kept, least, to, memory);
        }
        __syncthreads();
    }
}
