// moe.gate_up on Hopper: see device/expert_tiles.cuh.
// SASS: QGMMA LDGSTS
#include "../device/expert_up_tiles.cuh"

template <u32 TOKENS, u32 SLOTS>
DEVICE void gate_up(const View &x, const View &expert, const View &w1, const View &w3, const View &y, const UpTiles &d) {
    auto both = [&](u64 token, u32 slot, u32 unit) {
        return row_of<u16>(y, token) + slot * 2 * d.experts.inter + unit + threadIdx.x % 32;
    };
    auto idle = [&](u64 token, u32 slot, u32 unit) {
        u16 *to = both(token, slot, unit);
        to[0] = to[d.experts.inter] = 0;
    };
    auto store = [&](u64 token, u32 slot, u32 unit, const auto &sum) {
        u16 *to = both(token, slot, unit);
        u32 lane = threadIdx.x % 32;
        to[0] = tiles::rounded(sum(lane)), to[d.experts.inter] = tiles::rounded(sum(tiles::BAND + lane));
    };
    make_up<TOKENS, SLOTS>(d, x, expert, w1, w3, idle, store);
}

#define GATE_UP(TOKENS, SLOTS)                                                                                         \
    (View x, View expert, View w1, View w3, View y, u64 total, u64 first, u64 local, u64 top_k, u64 hidden, u64 inter, \
     u64 tokens, u32 idle_blocks) {                                                                                    \
        gate_up<TOKENS, SLOTS>(x, expert, w1, w3, y, {{total, first, local, top_k, hidden, inter}, tokens, idle_blocks}); \
    }

KERNEL(moe_gate_up__grouped_8, tiles::THREADS) GATE_UP(8, 4)
KERNEL(moe_gate_up__grouped_16, tiles::THREADS) GATE_UP(16, 4)
KERNEL(moe_gate_up__grouped_32, tiles::THREADS) GATE_UP(32, 3)
