// Down projections on Hopper: each slot its own row of data, 64 outputs a tile.
#pragma once
#include "expert_tiles.cuh"

// For pairs of a row and a slot with an expert here; `store(pair, output, sum)` is called by whole warps, for the outputs
// from `output` on that are there.
template <u32 TOKENS, u32 SLOTS, typename Store>
DEVICE void make_down(const Experts &d, const View &x, const View &expert, const View &w2, u64 tokens, u64 place,
                      const Store &store) {
    DYNAMIC_SHARED(shared);
    __shared__ u32 list[TOKENS], counts[tiles::WARPS];
    u32 output = blockIdx.x * tiles::ROWS, top_k = (u32)d.top_k;
    u64 blocks = d.inter / 32, low = place * d.hidden + output, high = low + tiles::BAND;
    bool whole = output + tiles::BAND < d.hidden;
    tiles::Weight weight = {{w2.codes + low * blocks * 16, whole ? w2.codes + high * blocks * 16 : nullptr},
                            {w2.scales + low * blocks, whole ? w2.scales + high * blocks : nullptr},
                            (u32)blocks};
    for (u32 first = 0;; first += TOKENS) {
        u32 found = tiles::find<TOKENS>(d, expert, tokens, (i32)(d.first + place), first, list, counts);
        if (found == 0) return;
        auto row = [&](u32 i) {
            u32 token = list[i] / top_k, slot = list[i] % top_k;
            return tiles::Row{x.codes + token * x.stride + slot * d.inter, x.scales + list[i] * blocks};
        };
        auto own = [&](u32 i, const auto &sum) { store(list[i], output, sum); };
        tiles::make<TOKENS, SLOTS>(shared, weight, found, row, own);
    }
}
