// index.top_k on Hopper: the k best visible entries of each row, ascending, padded with -1. The blocks of a cluster have a
// row, each a contiguous part of it; a row that fits is chosen from by one block at once.
//
// Bytes: the row once, and again a sector for each group that reaches the bound (about k of entries / 16). Floor for 512
// of 131,072 entries: 0.1 us for one row, where the time is that of a launch, two rounds through the cluster and the
// choice; 5.9 us for 48 rows. Groups of 16 bound the entries that are looked at again by 16 k, random scores leave about 1.3 k. Rows in which many entries tie at the bound are chosen from in each block first, four times
// slower or more. Measured: 8.2 us for one row, 18.9 for 48, 14.9 for one of 1,048,576 entries.
// SASS: UCGABAR_ARV REDUX
#include "../device/cluster_best.cuh"
#include "../device/view.cuh"

// Entries that a warp reads at a time, and those of a group.
constexpr u32 STRETCH = 512, GROUP = 16;

// A row from the last multiple of 16 bytes on: its entries are those from `first` to `end`. A block's stretches go from
// `begin` on, as many a warp as it has.
struct Row {
    const float *from;
    u32 first, end;
    u32 begin, stretches;
};

// Four entries from `at` on, a multiple of four; NaN where there are none.
DEVICE Words<4> four_of(const Row &row, u32 at) {
    if (at >= row.first && at + 4 <= row.end) return *(const Words<4> *)(row.from + at);
    Words<4> words;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        words.of[i] = at + i >= row.first && at + i < row.end ? bits_of(row.from[at + i]) : NAN_BITS;
    }
    return words;
}

// The first entry of a warp's stretch.
DEVICE u32 stretch_of(const Row &row, u32 i) {
    return row.begin + (threadIdx.x / 32 * row.stretches + i) * STRETCH;
}

// The largest of four; NaN is passed over.
DEVICE float largest_of(const Words<4> &words) {
    return larger(larger(float_of(words.of[0]), float_of(words.of[1])),
                 larger(float_of(words.of[2]), float_of(words.of[3])));
}

// The largest of each group of a stretch: lane l gets that of group `l % 4 * 8 + l / 4`. `part` are the largest of four
// entries in each quarter of the stretch.
DEVICE float group_largest(const float (&part)[4]) {
    u32 lane = threadIdx.x % 32;
    bool odd = lane & 1, upper = lane & 2;
    float a = odd ? part[1] : part[0], b = odd ? part[3] : part[2];
    a = larger(a, __shfl_xor_sync(ALL_LANES, odd ? part[0] : part[1], 1));
    b = larger(b, __shfl_xor_sync(ALL_LANES, odd ? part[2] : part[3], 1));
    return larger(upper ? b : a, __shfl_xor_sync(ALL_LANES, upper ? a : b, 2));
}

// Keeps the standing of each group's largest.
DEVICE void keep_groups(const Row &row, u32 *groups, u32 &low, u32 &high) {
    constexpr u32 AHEAD = 1;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 1
    for (u32 i = 0; i < row.stretches; i += AHEAD) {
        Words<4> words[AHEAD][4];
#pragma unroll
        for (u32 s = 0; s < AHEAD; s++) {
            u32 at = stretch_of(row, i + s);
#pragma unroll
            for (u32 q = 0; q < 4; q++) {
                bool there = i + s < row.stretches && at + q * 128 < row.end;
                words[s][q] = there ? four_of(row, at + q * 128 + lane * 4) : Words<4>{NAN_BITS, NAN_BITS, NAN_BITS, NAN_BITS};
            }
        }
#pragma unroll
        for (u32 s = 0; s < AHEAD; s++) {
            if (i + s >= row.stretches) break;
            float part[4];
#pragma unroll
            for (u32 q = 0; q < 4; q++) part[q] = largest_of(words[s][q]);
            u32 own = standing(group_largest(part));
            groups[(warp * row.stretches + i + s) * 32 + lane % 4 * 8 + lane / 4] = own;
            low = own > 0 && own < low ? own : low, high = own > high ? own : high;
        }
    }
}

// Lists the block's entries from `bound` on, in order, if there is room; returns their number. First the groups that
// have any are listed, in the same memory.
DEVICE u32 list_best(const Row &row, const u32 *groups, u32 bound, BestRoom &room) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = 0, hits, listed = 0;
    u32 *hit = (u32 *)room.gathered;
#pragma unroll 1
    for (u32 i = 0; i < row.stretches && stretch_of(row, i) < row.end; i++) {
        count += (u32)__popc(__ballot_sync(ALL_LANES, groups[(warp * row.stretches + i) * 32 + lane] >= bound));
    }
    u32 at = sum_before(lane == 0 ? count : 0, room.sums[0], hits);
    if (hits > SHORT) return hits;
    at = __shfl_sync(ALL_LANES, at, 0);
#pragma unroll 1
    for (u32 i = 0; i < row.stretches && stretch_of(row, i) < row.end; i++) {
        bool is_hit = groups[(warp * row.stretches + i) * 32 + lane] >= bound;
        u32 votes = __ballot_sync(ALL_LANES, is_hit);
        if (is_hit) hit[at + (u32)__popc(votes & ((1u << lane) - 1))] = stretch_of(row, i) + lane * GROUP;
        at += (u32)__popc(votes);
    }
    __syncthreads();
    // A group has four lanes.
#pragma unroll 1
    for (u32 base = 0; base < hits; base += BEST_THREADS / 4) {
        u32 i = base + threadIdx.x / 4, own = 0, mine = 0, rank = 0, all;
        Words<4> words = {NAN_BITS, NAN_BITS, NAN_BITS, NAN_BITS};
        if (i < hits) own = hit[i] + lane % 4 * 4, words = four_of(row, own);
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
            words.of[e] = standing(float_of(words.of[e]));
            bool there = i < hits && own + e >= row.first && own + e < row.end && words.of[e] >= bound;
            u32 votes = __ballot_sync(ALL_LANES, there);
            rank += (u32)__popc(votes & ((1u << lane) - 1)), count = (e > 0 ? count : 0) + (u32)__popc(votes);
            mine |= there ? 1u << e : 0;
        }
        u32 before = sum_before(lane == 0 ? count : 0, room.sums[1], all);
        u32 next = listed + __shfl_sync(ALL_LANES, before, 0) + rank;
        listed += all;
        if (listed > LISTED) return listed;
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
            if (mine >> e & 1) room.list[next++] = {words.of[e], own + e - row.first};
        }
        __syncthreads();
    }
    return listed;
}

// The k best of the block's own entries, where too many reach the bound.
DEVICE u32 list_own(const Row &row, u32 k, BestRoom &room) {
    u32 past = row.begin + row.stretches * BEST_WARPS * STRETCH;
    u32 from = row.begin > row.first ? row.begin : row.first, end = past < row.end ? past : row.end;
    auto walk = [&](const auto &f) {
#pragma unroll 1
        for (u32 base = from; base < end; base += BEST_THREADS) {
            u32 at = base + threadIdx.x;
            f(at, at < end, at < end ? standing(row.from[at]) : 0u, (u64)1);
        }
    };
    Threshold threshold = threshold_of<BEST_THREADS>(walk, k, room.memory);
    auto take = [&](u64 n, u64 at) { room.list[n] = {standing(row.from[at]), (u32)at - row.first}; };
    return (u32)take_best<BEST_THREADS>(walk, threshold, room.sums[0], take);
}

// The k best of a row that one block chooses from at once.
DEVICE void choose_short(const float *from, u32 seen, u32 k, i32 *to, BestRoom &room) {
    u32 low = ~0u, high = 0;
#pragma unroll 4
    for (u32 i = threadIdx.x; i < seen; i += BEST_THREADS) {
        u32 own = standing(from[i]);
        room.standings[i + i / 32] = own;
        low = own < low ? own : low, high = own > high ? own : high;
    }
    range_of(low, high, room);
    choose({seen, 1, true}, low, high, k, to, room);
}

// `groups` is for how many groups of a block there is memory.
KERNEL(index_top_k__cluster, BEST_THREADS, fitting, 3)(View scores, View visible, View y, u32 k, u32 entries, u32 blocks,
                                              u32 groups) {
    DYNAMIC_SHARED(shared);
    BestRoom &room = *(BestRoom *)shared;
    u32 *kept = (u32 *)(shared + sizeof(BestRoom));
    u32 token = blockIdx.x / blocks, rank = cluster_rank(), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    clear_bins(room);
    wait_for_previous();
    let_next_begin();
    i32 counted = row_of<const i32>(visible, 0)[token];
    u32 seen = counted < 0 ? 0 : (u32)counted < entries ? (u32)counted : entries;
    i32 *to = row_of<i32>(y, token);
    const float *start = row_of<const float>(scores, token);
    if (seen <= k) {
#pragma unroll 1
        for (u32 i = rank * BEST_THREADS + threadIdx.x; i < k; i += blocks * BEST_THREADS) to[i] = i < seen ? (i32)i : -1;
        return;
    }
    if (seen <= SHORT) {
        if (rank == 0) choose_short(start, seen, k, to, room);
        return;
    }
    u32 first = (u32)((u64)start % 16 / 4);
    u32 stretches = (first + seen + STRETCH - 1) / STRETCH;
    u32 each = (stretches + blocks * BEST_WARPS - 1) / (blocks * BEST_WARPS);
    Row row = {start - first, first, first + seen, rank * each * BEST_WARPS * STRETCH, each};
    bool fits = each * BEST_WARPS * 32 <= groups;
    u32 low = ~0u, high = 0;
    if (fits) keep_groups(row, kept, low, high);
    range_of(low, high, room);
    u32 bits = low <= high ? bits_for(high - low) : 0, shift = bits > BIN_BITS ? bits - BIN_BITS : 0;
#pragma unroll 1
    for (u32 i = lane; fits && i < each * 32; i += 32) {
        u32 own = kept[warp * each * 32 + i];
        if (own > 0) atomicAdd(&room.bins[BINS - 1 - ((own - low) >> shift)], 1u);
    }
    u32 bound = common_bound(low, shift, k, blocks, room), listed = LISTED + 1;
    if (fits) listed = list_best(row, kept, bound, room);
    if (listed > LISTED) {
        __syncthreads();
        listed = list_own(row, k, room);
    }
    if (threadIdx.x == 0) room.listed = listed;
    cluster_sync();
    choose_listed(k, blocks, to, room);
}
