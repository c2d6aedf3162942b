// moe.down on Hopper: see device/expert_tiles.cuh.
// SASS: QGMMA LDGSTS
#include "../device/expert_down_tiles.cuh"

// Pairs of a row and a slot that a block in front looks at, for those without an expert here.
constexpr u32 IDLE_PAIRS = 512;

template <u32 TOKENS, u32 SLOTS>
DEVICE void down(const View &x, const View &expert, const View &w2, const View &y, const Experts &d, u64 tokens,
                 u32 idle_blocks) {
    let_next_begin();
    wait_for_previous();
    u32 top_k = (u32)d.top_k, lane = threadIdx.x % 32;
    auto own = [&](u32 pair, u32 output) { return row_of<u16>(y, pair / top_k) + pair % top_k * d.hidden + output; };
    if (blockIdx.y < idle_blocks) {
        u64 first = (u64)blockIdx.y * IDLE_PAIRS, end = first + IDLE_PAIRS, all = tokens * top_k;
        u32 output = blockIdx.x * tiles::ROWS;
        for (u64 i = first + threadIdx.x / 32; i < end && i < all; i += tiles::WARPS) {
            if (held(d, expert, (u32)i / top_k, (u32)i % top_k) >= 0) continue;
            for (u32 r = lane; r < tiles::ROWS && output + r < d.hidden; r += 32) own((u32)i, output)[r] = 0;
        }
        return;
    }
    make_down<TOKENS, SLOTS>(d, x, expert, w2, tokens, blockIdx.y - idle_blocks, [&](u32 pair, u32 output, const auto &sum) {
        for (u32 r = lane; r < tiles::ROWS && output + r < d.hidden; r += 32) own(pair, output)[r] = tiles::rounded(sum(r));
    });
}

#define DOWN(TOKENS, SLOTS)                                                                                            \
    (View x, View expert, View w2, View y, u64 total, u64 first, u64 local, u64 top_k, u64 hidden, u64 inter,          \
     u64 tokens, u32 idle_blocks) {                                                                                    \
        down<TOKENS, SLOTS>(x, expert, w2, y, {total, first, local, top_k, hidden, inter}, tokens, idle_blocks);       \
    }

KERNEL(moe_down__grouped_8, tiles::THREADS) DOWN(8, 4)
KERNEL(moe_down__grouped_16, tiles::THREADS) DOWN(16, 4)
KERNEL(moe_down__grouped_32, tiles::THREADS) DOWN(32, 3)
