// moe.gate_up and moe.down on the matrix units, see device/mixed.h: pairs of a row of data and a slot sorted by their
// expert, then 32 outputs of 32 pairs of an expert a block, again and again for all its pairs.
//
// loop gfx942 moe_gate_up__matrix moe_down__matrix: v_mfma_f32_32x32x16_fp8_fp8
// loop gfx942 moe_gate_up__bf16 moe_down__bf16: v_mfma_f32_32x32x8_bf16
// loop gfx950 moe_gate_up__matrix moe_down__matrix: v_mfma_scale_f32_32x32x64_f8f6f4
// never gfx950: v_cvt_
#include "../device/mixed.h"
#include "experts.cuh"

// The pairs of an expert in the list of all.
struct alignas(16) Group {
    u64 first, count;
};

// Scratch: the group of each expert here, then the list.
DEVICE Group *groups_of(const View &lists) { return (Group *)lists.codes; }
DEVICE u64 *pairs_of(const View &lists, const Experts &d) { return (u64 *)(groups_of(lists) + d.local); }

// The place of a pair's expert here; -1 for none, and behind the last pair.
DEVICE i64 place_of(const Experts &d, const View &expert, u64 pair, u64 pairs) {
    return pair < pairs ? held(d, expert, pair / d.top_k, pair % d.top_k) : -1;
}

// Lanes for which it holds, in a wave.
DEVICE u32 count_of(bool mine) { return (u32)__builtin_popcountll(__builtin_amdgcn_ballot_w64(mine)); }

// Lists the pairs of one expert in their order, behind those of all experts before it.
DEVICE void list_pairs(const Experts &d, const View &expert, const View &lists, i64 own, u64 pairs) {
    __shared__ u32 counts[2][THREADS / 64];
    u32 wave = wave_of_block(), lane = threadIdx.x % 64;
    u64 before = 0;
    for (u64 at = 0; at < pairs; at += THREADS) {
        i64 place = place_of(d, expert, at + threadIdx.x, pairs);
        before += count_of(place >= 0 && place < own);
    }
    // Each wave has seen its own.
    __shared__ u64 befores[THREADS / 64];
    if (lane == 0) befores[wave] = before;
    __syncthreads();
    u64 first = befores[0] + befores[1] + befores[2] + befores[3], count = 0;
    u64 *list = pairs_of(lists, d) + first;
    for (u64 at = 0; at < pairs; at += THREADS) {
        bool mine = place_of(d, expert, at + threadIdx.x, pairs) == own;
        u64 all = __builtin_amdgcn_ballot_w64(mine);
        // Every other time, so that a barrier a turn is enough.
        u32 *turn = counts[at / THREADS % 2];
        if (lane == 0) turn[wave] = (u32)__builtin_popcountll(all);
        __syncthreads();
        u32 ahead = 0, sum = 0;
#pragma unroll
        for (u32 w = 0; w < THREADS / 64; w++) ahead += w < wave ? turn[w] : 0, sum += turn[w];
        u32 rank = (u32)__builtin_popcountll(all & ((1ull << lane) - 1));
        if (mine) list[count + ahead + rank] = at + threadIdx.x;
        count += sum;
    }
    if (threadIdx.x == 0) groups_of(lists)[own] = {first, count};
}

// Lists all pairs, and makes zeros of the `width` outputs of those that have no expert here.
KERNEL(moe_experts__sort, THREADS)(View expert, View lists, View y, u64 total, u64 first, u64 local, u64 top_k, u64 hidden,
                                   u64 inter, u64 width, u64 tokens) {
    Experts d = {total, first, local, top_k, hidden, inter};
    u64 pairs = tokens * top_k;
    if (blockIdx.x < local) return list_pairs(d, expert, lists, (i64)blockIdx.x, pairs);
    for (u64 pair = blockIdx.x - local; pair < pairs; pair += gridDim.x - local) {
        if (place_of(d, expert, pair, pairs) >= 0) continue;
        u16 *to = row_of<u16>(y, pair / top_k) + pair % top_k * width;
        for (u64 i = threadIdx.x; i < width; i += THREADS) to[i] = 0;
    }
}

// Outputs of all pairs of an expert: `row` gives a weight's row, `token` the codes and the scales of a pair.
template <bool BF16, typename Row, typename Token>
DEVICE void expert_outputs(const Experts &d, const View &lists, const View &y, u64 width, u64 columns, const Row &row,
                           const Token &token) {
    __shared__ Parts parts;
    __shared__ Factors factors[SECTIONS];
    u64 tiles = ceiling(width, SIDE), place = blockIdx.x / tiles, output = blockIdx.x % tiles * SIDE;
    Group group = groups_of(lists)[place];
    const u64 *list = pairs_of(lists, d) + group.first;
    u32 lane = threadIdx.x % SIDE;
    u64 blocks = columns / SCALED_COLUMNS;
    View weight = row(place, at_most(output + lane, width - 1));
    for (u64 pass = 0; pass < group.count; pass += SIDE) {
        u64 pair = list[at_most(pass + lane, group.count - 1)];
        View x = token(pair / d.top_k, pair % d.top_k);
        Mixed<BF16> side = {weight.codes, x.codes, weight.scales, x.scales, blocks, factors};
        F32x4 sums = sum_of_sections(parts, section_sum(side, blocks));
        u64 slot = pair % d.top_k * width, to = output + 8 * wave_of_block() + 4 * half_of_wave();
        if (pass + lane < group.count) store_outputs(y, pair / d.top_k, slot + to, slot + width, sums);
        // Before the next parts.
        __syncthreads();
    }
}

// A row of a weight of FP4, and one of the experts' codes of FP8.
DEVICE View row_of_weight(const View &weight, u64 row, u64 columns) {
    return {weight.codes + row * (columns / 2), weight.scales + row * (columns / SCALED_COLUMNS), 0};
}
DEVICE View columns_of_row(const View &x, u64 column, u64 width, u64 row) {
    return {x.codes + row * width + column, x.scales + (row * width + column) / SCALED_COLUMNS, 0};
}

template <bool BF16> DEVICE void gate_up(const Experts &d, View x, View w1, View w3, View lists, View y) {
    auto row = [=](u64 place, u64 output) {
        bool gate = output < d.inter;
        return row_of_weight(gate ? w1 : w3, place * d.inter + (gate ? output : output - d.inter), d.hidden);
    };
    auto token = [=](u64 token, u64) { return columns_of_row(x, 0, d.hidden, token); };
    expert_outputs<BF16>(d, lists, y, 2 * d.inter, d.hidden, row, token);
}

template <bool BF16> DEVICE void down(const Experts &d, View x, View w2, View lists, View y) {
    auto row = [=](u64 place, u64 output) { return row_of_weight(w2, place * d.hidden + output, d.inter); };
    auto token = [=](u64 token, u64 slot) { return columns_of_row(x, slot * d.inter, d.top_k * d.inter, token); };
    expert_outputs<BF16>(d, lists, y, d.hidden, d.inter, row, token);
}

#define GATE_UP(name, bf16)                                                                                                \
    KERNEL(name, THREADS)(View x, View w1, View w3, View lists, View y, u64 total, u64 first, u64 local, u64 top_k,        \
                          u64 hidden, u64 inter) {                                                                         \
        gate_up<bf16>({total, first, local, top_k, hidden, inter}, x, w1, w3, lists, y);                                   \
    }
#define DOWN(name, bf16)                                                                                                   \
    KERNEL(name, THREADS)(View x, View w2, View lists, View y, u64 total, u64 first, u64 local, u64 top_k, u64 hidden,     \
                          u64 inter) {                                                                                     \
        down<bf16>({total, first, local, top_k, hidden, inter}, x, w2, lists, y);                                          \
    }

GATE_UP(moe_gate_up__matrix, false)
DOWN(moe_down__matrix, false)
#ifndef __gfx950__
GATE_UP(moe_gate_up__bf16, true)
DOWN(moe_down__bf16, true)
#endif
