// Rows of data sorted by the routed expert they go to, as bf16 in the order in which Hopper's matrix units take them:
// what kernels of device/expert_tiles.cuh read.
//
// A code of E4M3 times its scale is a bf16 exactly while the scale is tame, so that products need no scales afterwards.
// Rows that hold another one are marked, and are made the slow way.
#pragma once
#include "bf16.cuh"
#include "experts.cuh"
#include "hopper.cuh"
#include "lanes.cuh"

namespace tiles {
// Columns of a stage, in blocks of 32 under one scale; bytes of them in a row of data, and in an eighth of that row, which
// is as long as a swizzled row of shared memory.
constexpr u32 COLUMNS = 256, BLOCKS = COLUMNS / 32, X_BYTES = 2 * COLUMNS, ATOMS = 4, ATOM_BYTES = X_BYTES / ATOMS;

// The rows of one expert: the first of them, a multiple of 8; how many; and how many passes are before them, a pass being
// the rows that a tile takes at once.
struct alignas(16) Group {
    u32 first_row, count, first_pass, spare;
};
// A row: the pair of a row of data and a slot that it is, and how it lies in its pass: which one, of how many there is room
// for.
struct alignas(8) Place {
    u32 pair;
    u16 rank, padded;
};

// Scratch, as `View`: the groups of all experts here and one that ends them, then the places of rows; and the rows.
DEVICE Group *groups_of(const View &rows) { return (Group *)rows.codes; }
DEVICE Place *places_of(const View &rows, u64 local) { return (Place *)(groups_of(rows) + local + 1); }
// In a pair, that its row is made the slow way; and no pair, where a pass has room for more rows than it has.
constexpr u32 FAR = 1u << 31, NONE = FAR - 1;

// Scales for which products of f32 hold everything: 2^-63 to 2^63.
DEVICE bool is_tame(u32 scale) { return scale - 64 <= 126; }

// A row of codes and its scales.
struct Row {
    const u8 *codes, *scales;
};

constexpr u32 SORTERS = 1024, ROW_THREADS = 256;

// The place among the experts here of the one in a pair, -1 for none.
struct Places {
    const Experts &d;
    const View &expert;
    bool dense;

    DEVICE Places(const Experts &d, const View &expert) : d(d), expert(expert), dense(expert.stride == d.top_k) {}
    DEVICE i32 operator()(u32 pair) const {
        u32 top_k = (u32)d.top_k;
        u64 at = dense ? pair : (u64)(pair / top_k) * expert.stride + pair % top_k;
        i64 index = ((const i32 *)expert.codes)[at], place = index - (i64)d.first;
        bool here = index >= 0 && (u64)index < d.total && place >= 0 && (u64)place < d.local;
        return here ? (i32)place : -1;
    }
};

// The sum of those before one's own, of two numbers in a word, over a block; and of all.
DEVICE u64 sum_before(u64 own, u64 *scratch, u64 &all) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 sum = own;
    for (u32 step = 1; step < 32; step *= 2) {
        u64 other = __shfl_sync(ALL_LANES, sum, lane - step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) scratch[warp] = sum;
    __syncthreads();
    u64 before = sum - own;
    all = 0;
    for (u32 w = 0; w < SORTERS / 32; w++) {
        if (w == warp) before += all;
        all += scratch[w];
    }
    return before;
}

// Calls `each(pair, place)` for the pairs of this thread with an expert here; several are on their way at once.
DEVICE void for_each_pair(const Places &place_of, u32 pairs, const auto &each) {
    constexpr u32 AT_ONCE = 8;
    for (u32 first = threadIdx.x; first < pairs; first += SORTERS * AT_ONCE) {
        i32 at[AT_ONCE];
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) at[j] = first + j * SORTERS < pairs ? place_of(first + j * SORTERS) : -1;
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            if (at[j] >= 0) each(first + j * SORTERS, at[j]);
        }
    }
}

// Sorts the rows of a launch by expert, one block, for passes of `width` rows. Within an expert their order is any: no row
// depends on it.
DEVICE void sort_rows(const Experts &d, const View &expert, const View &rows, u64 tokens, u32 width) {
    __shared__ u32 counts[SORTERS], next[SORTERS];
    __shared__ u64 scratch[SORTERS / 32];
    let_next_begin();
    wait_for_previous();
    u32 pairs = (u32)(tokens * d.top_k), local = (u32)d.local, own = threadIdx.x;
    Places place_of(d, expert);
    counts[own] = 0;
    __syncthreads();
    for_each_pair(place_of, pairs, [&](u32, i32 at) { atomicAdd(&counts[at], 1u); });
    __syncthreads();
    u32 count = counts[own], padded = (count + 7) / 8 * 8;
    u64 all, before = sum_before(padded | (u64)((count + width - 1) / width) << 32, scratch, all);
    Place *places = places_of(rows, local);
    next[own] = (u32)before;
    if (own < local) {
        groups_of(rows)[own] = {(u32)before, count, (u32)(before >> 32), 0};
        for (u32 i = count; i < padded; i++) places[(u32)before + i] = {NONE, 0, 0};
    }
    if (own == 0) groups_of(rows)[local] = {(u32)all, 0, (u32)(all >> 32), 0};
    // Where each expert's first row lies, for those who place others.
    counts[own] = (u32)before;
    __shared__ u32 many[SORTERS];
    many[own] = count;
    __syncthreads();
    for_each_pair(place_of, pairs, [&](u32 pair, i32 at) {
        u32 row = atomicAdd(&next[at], 1u), behind = row - counts[at], rank = behind % width;
        u32 left = many[at] - (behind - rank), held = left < width ? left : width;
        places[row] = {pair, (u16)rank, (u16)((held + 7) / 8 * 8)};
    });
}

// 32 columns of a row, eight in each of four blocks that are two apart, as a thread of the matrix units has those of the
// weight: to `to`, whose 16-byte units lie in the order that row `rank` of a tile has them. Whether the slow way is needed.
DEVICE bool store_unit(const Row &row, u32 unit, u32 blocks, u8 *to, u32 rank) {
    u32 first = unit / 8 * BLOCKS + unit % 8 / 4, word = unit % 4;
    u32 pairs[4][4];
    bool far = false;
#pragma unroll
    for (u32 q = 0; q < 4; q++) {
        u32 block = first + 2 * q, scale = 0;
        Words<2> codes = {};
        if (block < blocks) {
            codes = *(const Words<2> *)(row.codes + (u64)block * 32 + word * 8);
            scale = row.scales[block];
        }
        bool zero = ((codes.of[0] | codes.of[1]) & 0x7F7F7F7Fu) == 0;
        far |= scale == 0xFF || (!is_tame(scale) && !zero);
        // 2^(scale - 127 + 56), so that products with the weight's are numbers of f32.
        float factor = float_of((is_tame(scale) ? scale + 56 : 127) << 23);
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 both = halves_of_e4m3((codes.of[0] >> 8 * j & 0xFF) | (codes.of[1] >> 8 * j & 0xFF) << 8);
            u32 low = bits_of(float_of_half(both) * factor), high = bits_of(float_of_half(both >> 16) * factor);
            pairs[j][q] = low >> 16 | (high & 0xFFFF0000u);
        }
    }
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        u32 place = (word % 2 * 4 + j) ^ rank % 8;
        *(Words<4> *)(to + place * 16) = {{pairs[j][0], pairs[j][1], pairs[j][2], pairs[j][3]}};
    }
    return far;
}

// Brings sorted rows, `source(pair)` a row of `columns`; then whole warps call `idle(pair)` for pairs without an expert here.
template <typename Source, typename Idle>
DEVICE void gather(const Experts &d, const View &expert, const View &rows, u32 columns, u64 tokens, const Source &source,
                   const Idle &idle) {
    let_next_begin();
    wait_for_previous();
    u32 pairs = (u32)(tokens * d.top_k), local = (u32)d.local, threads = gridDim.x * ROW_THREADS;
    u32 first = blockIdx.x * ROW_THREADS + threadIdx.x;
    Place *places = places_of(rows, local);
    u32 blocks = columns / 32, stages = (columns + COLUMNS - 1) / COLUMNS, units = stages * 8;
    u32 all = groups_of(rows)[local].first_row * units;
    for (u32 i = first; i < all; i += threads) {
        u32 row = i / units, unit = i % units, stage = unit / 8, atom = unit % 8 / 2;
        Place place = places[row];
        if ((place.pair & ~FAR) == NONE) continue;
        u8 *to = rows.scales + (u64)(row - place.rank) * stages * X_BYTES + (u64)stage * place.padded * X_BYTES;
        to += (atom * place.padded + place.rank) * ATOM_BYTES;
        if (store_unit(source(place.pair & ~FAR), unit, blocks, to, place.rank)) atomicOr(&places[row].pair, FAR);
    }
    Places place_of(d, expert);
    for (u32 i = first / 32; i < pairs; i += threads / 32) {
        if (place_of(i) < 0) idle(i);
    }
}
}  // namespace tiles
