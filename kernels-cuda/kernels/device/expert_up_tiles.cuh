// Gate and up projections on Hopper: the gates of 32 units and their other halves are one tile, so that a block has all
// of a unit, and of the units under one scale.
#pragma once
#include "expert_tiles.cuh"

struct UpTiles {
    Experts experts;
    u64 tokens;
    // Blocks in front that see to slots without an expert here, and pairs of a row and a slot that each looks at.
    u32 idle_blocks;
    static constexpr u32 IDLE_PAIRS = 512;
};

// `idle(token, slot, unit)` and `store(token, slot, unit, sum)` are called by whole warps, for 32 units from `unit` on; of the
// sums the first 32 are gates.
template <u32 TOKENS, u32 SLOTS, typename Idle, typename Store>
DEVICE void make_up(const UpTiles &d, const View &x, const View &expert, const View &w1, const View &w3, const Idle &idle,
                    const Store &store) {
    DYNAMIC_SHARED(shared);
    __shared__ u32 list[TOKENS], counts[tiles::WARPS];
    const Experts &e = d.experts;
    let_next_begin();
    wait_for_previous();
    u32 unit = blockIdx.x * tiles::BAND, top_k = (u32)e.top_k;
    if (blockIdx.y < d.idle_blocks) {
        u64 first = (u64)blockIdx.y * UpTiles::IDLE_PAIRS, end = first + UpTiles::IDLE_PAIRS, all = d.tokens * top_k;
        for (u64 i = first + threadIdx.x / 32; i < end && i < all; i += tiles::WARPS) {
            u32 token = (u32)i / top_k, slot = (u32)i % top_k;
            if (held(e, expert, token, slot) < 0) idle(token, slot, unit);
        }
        return;
    }
    u64 place = blockIdx.y - d.idle_blocks, blocks = e.hidden / 32;
    u64 from = place * e.inter + unit;
    tiles::Weight weight = {{w1.codes + from * blocks * 16, w3.codes + from * blocks * 16},
                            {w1.scales + from * blocks, w3.scales + from * blocks},
                            (u32)blocks};
    for (u32 first = 0;; first += TOKENS) {
        u32 found = tiles::find<TOKENS>(e, expert, d.tokens, (i32)(e.first + place), first, list, counts);
        if (found == 0) return;
        auto row = [&](u32 i) {
            u64 token = list[i] / top_k;
            return tiles::Row{x.codes + token * x.stride, x.scales + token * blocks};
        };
        auto own = [&](u32 i, const auto &sum) { store(list[i] / top_k, list[i] % top_k, unit, sum); };
        tiles::make<TOKENS, SLOTS>(shared, weight, found, row, own);
    }
}
