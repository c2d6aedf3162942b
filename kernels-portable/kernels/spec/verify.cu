// spec.verify: how many drafts of a sequence stand, and the token after them. One block a sequence; its threads walk
// the vocabulary together and agree on every choice.
#include "../device/block_max.cuh"
#include "../device/block_sum.cuh"
#include "../device/choice.cuh"
#include "../device/draw.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;

// The rules by number; the host names the same ones.
enum Rule : u32 { GREEDY = 0, STANDARD = 1, BLOCK = 2, SYNTHETIC = 3 };

struct Memory {
    DrawMemory<THREADS> draw;
    double sums[THREADS / 32];
    u64 keys[THREADS / 32];
};

// A sequence's drafts and the laws around them.
struct Drafts {
    const View &p, &q;
    u64 first_p, first_q, vocab, count;
    const i32 *tokens;
    const float *uniforms;
    float draw;
};

struct Outcome {
    u64 accepted;
    i32 token;
};

DEVICE const float *law_p(const Drafts &all, u64 i) { return row_of<const float>(all.p, all.first_p + i); }
DEVICE const float *law_q(const Drafts &all, u64 i) { return row_of<const float>(all.q, all.first_q + i); }

DEVICE i32 draw_p(const Drafts &all, u64 i, Memory &memory) {
    const float *p = law_p(all, i);
    return token_from([=](u64 x) { return (double)p[x]; }, all.vocab, all.draw, memory.draw);
}

// What is left of p where q is taken off it: max(part p - q, 0); NaN stays.
struct Rest {
    const float *p, *q;
    double part;
};
DEVICE double rest_at(const Rest &rest, u64 x) {
    double left = rest.part * (double)rest.p[x] - (double)rest.q[x];
    return left < 0 ? 0.0 : left;
}
DEVICE double mass_of(const Rest &rest, u64 vocab, Memory &memory) {
    double sum = 0;
    for (u64 x = threadIdx.x; x < vocab; x += THREADS) sum += rest_at(rest, x);
    __syncthreads();
    return block_sum<THREADS>(sum, memory.sums);
}

// From the rest, or from p where that has no mass.
DEVICE i32 draw_rest(const Drafts &all, u64 i, double part, Memory &memory) {
    Rest rest = {law_p(all, i), law_q(all, i), part};
    double mass = mass_of(rest, all.vocab, memory);
    if (mass != mass) return -1;
    if (!(mass > 0)) return draw_p(all, i, memory);
    return token_from([=](u64 x) { return rest_at(rest, x); }, all.vocab, all.draw, memory.draw);
}

// The best id of p_i; -1 where p_i has a NaN.
DEVICE i32 best_of(const Drafts &all, u64 i, Memory &memory) {
    const float *p = law_p(all, i);
    u64 key = 0;
    for (u64 x = threadIdx.x; x < all.vocab; x += THREADS) {
        u64 own = is_nan(p[x]) ? ~0ull : choice_of(p[x], (u32)x);
        key = own > key ? own : key;
    }
    __syncthreads();
    key = block_max<THREADS>(key, 0ull, memory.keys);
    return key == ~0ull ? -1 : (i32)place_of(key);
}

// Whether q_i of draft i is one to be held against p_i.
DEVICE bool has_odds(float q) { return q > 0 && q <= 1; }

DEVICE Outcome greedy(const Drafts &all, Memory &memory) {
    u64 k = 0;
    i32 best = best_of(all, 0, memory);
    while (k < all.count && best == all.tokens[k]) best = best_of(all, ++k, memory);
    return {k, best};
}

DEVICE Outcome standard(const Drafts &all, Memory &memory) {
    u64 k = 0;
    for (; k < all.count; k++) {
        float p = law_p(all, k)[all.tokens[k]], q = law_q(all, k)[all.tokens[k]];
        if (!(has_odds(q) && (double)all.uniforms[k] * (double)q < (double)p)) break;
    }
    return {k, k == all.count ? draw_p(all, k, memory) : draw_rest(all, k, 1.0, memory)};
}

DEVICE Outcome block_rule(const Drafts &all, Memory &memory) {
    u64 n = all.count, k = 0;
    double part = 1, part_of_k = 1;
    for (u64 i = 1; i <= n; i++) {
        float p = law_p(all, i - 1)[all.tokens[i - 1]], q = law_q(all, i - 1)[all.tokens[i - 1]];
        part *= has_odds(q) ? (double)p / (double)q : 0.0;
        // NaN stays.
        part = part > 1 ? 1.0 : part;
        double odds = part;
        if (i < n) {
            double mass = mass_of({law_p(all, i), law_q(all, i), part}, all.vocab, memory), whole = mass + 1.0 - part;
            odds = whole == 0 ? 1.0 : mass / whole;
        }
        if ((double)all.uniforms[i - 1] < odds) k = i, part_of_k = part;
    }
    return {k, k == n ? draw_p(all, n, memory) : draw_rest(all, k, part_of_k, memory)};
}

DEVICE Outcome synthetic(const Drafts &all, float rate, Memory &memory) {
    u64 k = 0;
    while (k < all.count && all.uniforms[k] < rate) k++;
    return {k, draw_p(all, k, memory)};
}

KERNEL(spec_verify__portable, THREADS)(View p, View q, View draft, View length, View uniform, View draw, View accepted,
                                       View token, u32 rule, float rate, u64 block, u64 vocab, u64 sequences) {
    begin();
    __shared__ Memory memory;
    for (u64 s = blockIdx.x; s < sequences; s += gridDim.x) {
        Drafts all = {p, q, s * (block + 1), s * block, vocab, 0, row_of<const i32>(draft, s),
                      row_of<const float>(uniform, s), row_of<const float>(draw, 0)[s]};
        i64 made = row_of<const i32>(length, 0)[s];
        // A draft of -1 or outside ends them.
        while ((i64)all.count < made && all.count < block && (u64)(i64)all.tokens[all.count] < vocab) all.count++;
        Outcome outcome;
        if (rule == GREEDY) {
            outcome = greedy(all, memory);
        } else if (rule == STANDARD) {
            outcome = standard(all, memory);
        } else if (rule == BLOCK) {
            outcome = block_rule(all, memory);
        } else {
            outcome = synthetic(all, rate, memory);
        }
        if (threadIdx.x == 0) {
            row_of<i32>(accepted, 0)[s] = (i32)outcome.accepted;
            row_of<i32>(token, 0)[s] = outcome.token;
        }
        __syncthreads();
    }
}
