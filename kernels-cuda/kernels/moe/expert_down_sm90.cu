// moe.expert_down on Hopper: see device/expert_tiles.cuh. Projections go to scratch as the steps would round them, and a
// second launch adds them up.
// SASS: QGMMA LDGSTS
#include "../device/expert_down_tiles.cuh"

template <u32 TOKENS, u32 SLOTS>
DEVICE void project(const View &x, const View &expert, const View &w2, u16 *each, const Experts &d, u64 tokens) {
    let_next_begin();
    wait_for_previous();
    make_down<TOKENS, SLOTS>(d, x, expert, w2, tokens, blockIdx.y, [&](u32 pair, u32 output, const auto &sum) {
        for (u32 r = threadIdx.x % 32; r < tiles::ROWS && output + r < d.hidden; r += 32) {
            each[pair * d.hidden + output + r] = tiles::rounded(sum(r));
        }
    });
}

#define PROJECT(TOKENS, SLOTS)                                                                                         \
    (View x, View expert, View w2, View each, u64 total, u64 first, u64 local, u64 top_k, u64 hidden, u64 inter,       \
     u64 tokens) {                                                                                                     \
        Experts d = {total, first, local, top_k, hidden, inter};                                                       \
        project<TOKENS, SLOTS>(x, expert, w2, (u16 *)each.codes, d, tokens);                                           \
    }

KERNEL(moe_expert_down__grouped_8, tiles::THREADS) PROJECT(8, 4)
KERNEL(moe_expert_down__grouped_16, tiles::THREADS) PROJECT(16, 4)
KERNEL(moe_expert_down__grouped_32, tiles::THREADS) PROJECT(32, 3)

constexpr u32 ADDERS = 256, MOST_SLOTS = 64;

// A row of results a block of the second dimension.
KERNEL(moe_expert_down__add, ADDERS)(View each, View expert, View y, u64 total, u64 first, u64 local, u64 top_k,
                                     u64 hidden, u64 inter, u64 tokens) {
    __shared__ u32 slots[MOST_SLOTS], count;
    Experts d = {total, first, local, top_k, hidden, inter};
    let_next_begin();
    wait_for_previous();
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        if (threadIdx.x == 0) {
            u32 found = 0;
            for (Walk walk; next(walk, d, expert, token);) slots[found++] = (u32)walk.slot;
            count = found;
        }
        __syncthreads();
        const u16 *from = (const u16 *)each.codes + token * top_k * hidden;
        for (u64 column = blockIdx.y * ADDERS + threadIdx.x; column < hidden; column += gridDim.y * ADDERS) {
            double sum = 0;
            for (u32 i = 0; i < count; i++) sum += (double)bf16_to_f32(from[slots[i] * hidden + column]);
            row_of<float>(y, token)[column] = f32_result(sum);
        }
        __syncthreads();
    }
}
