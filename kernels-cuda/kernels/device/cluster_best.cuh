// The k best of a row by the blocks of a cluster. Each block has a contiguous part of the row. It keeps the largest
// standing of every group of 16 entries; a bound that k groups of the whole row reach leaves few entries, which one
// block of the cluster then chooses from. Everything is exact: which entries are looked at, not which are taken,
// depends on how many blocks there are.
#pragma once
#include "best.cuh"
#include "choice.cuh"
#include "hopper.cuh"

constexpr u32 BEST_THREADS = 512, BEST_WARPS = BEST_THREADS / 32;
constexpr u32 BINS = 1024, BIN_BITS = 10;
// Counts from the top at which a block tells how high its groups are: one a warp.
constexpr u32 RANKS = BEST_WARPS;
// Entries that a block puts up for choice, and that are gathered from all blocks before the choice.
constexpr u32 LISTED = 2048, GATHERED = 4096;
// Entries of a row that one block chooses from at once.
constexpr u32 SHORT = 2 * GATHERED;
// Of how many the last few are told apart by a warp.
constexpr u32 TOLD_APART = 32;
constexpr u32 MOST_BLOCKS = 16;
// What an entry without a key scores.
constexpr u32 NO_SCORE = 0xFF800000u;

struct Listed {
    u32 standing, place;
};

// Dynamic shared memory of a block.
struct BestRoom {
    Listed list[LISTED];
    // Or the standings of a short row, a word left out behind each 32: threads have neighbouring ones.
    union {
        Listed gathered[GATHERED];
        u32 standings[SHORT + SHORT / 32];
    };
    u32 bins[BINS];
    u32 edges[RANKS];
    u32 all_edges[MOST_BLOCKS * RANKS];
    u32 sums[2][BEST_WARPS];
    u32 low[BEST_WARPS], high[BEST_WARPS];
    u32 starts[MOST_BLOCKS + 1];
    u32 listed;
    u32 bin, above, inside;
    u32 few_count;
    Listed few[TOLD_APART];
    Listed last;
    BestMemory<u32> memory;
};

// What one block chooses from, in order of place: `count` entries, those gathered, those of each block where they are
// too many for that, or all of a short row.
struct Field {
    u32 count, blocks;
    bool is_short;
};

DEVICE Listed listed_at(const Field &field, u32 i, BestRoom &room) {
    if (field.is_short) return {room.standings[i + i / 32], i};
    if (field.count <= GATHERED) return room.gathered[i];
    u32 block = 0;
    while (i >= room.starts[block + 1]) block++;
    return *peer_shared(&room.list[i - room.starts[block]], block);
}

DEVICE u32 bits_for(u32 range) { return range == 0 ? 0 : 32 - (u32)__clz((int)range); }

// The sum over the threads before this one, and over all of them. `sums` is not used again before the block has met.
DEVICE u32 sum_before(u32 own, u32 *sums, u32 &total) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, reached = own;
    for (u32 step = 1; step < 32; step *= 2) {
        u32 below = __shfl_up_sync(ALL_LANES, reached, step);
        if (lane >= step) reached += below;
    }
    if (lane == 31) sums[warp] = reached;
    __syncthreads();
    u32 of_warp = lane < BEST_WARPS ? sums[lane] : 0;
    total = __reduce_add_sync(ALL_LANES, of_warp);
    return __reduce_add_sync(ALL_LANES, lane < warp ? of_warp : 0) + reached - own;
}

// The least and the largest over the block, of what each thread has; from ~0 down to 0 where it has nothing.
DEVICE void range_of(u32 &low, u32 &high, BestRoom &room) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    low = __reduce_min_sync(ALL_LANES, low), high = __reduce_max_sync(ALL_LANES, high);
    if (lane == 0) room.low[warp] = low, room.high[warp] = high;
    __syncthreads();
    low = __reduce_min_sync(ALL_LANES, lane < BEST_WARPS ? room.low[lane] : ~0u);
    high = __reduce_max_sync(ALL_LANES, lane < BEST_WARPS ? room.high[lane] : 0);
}

// Turns counts of bins, the highest first, into counts from the top; returns their sum, and tells where `wanted` of
// them are reached.
DEVICE u32 count_up(u32 wanted, BestRoom &room) {
    constexpr u32 EACH = BINS / BEST_THREADS;
    u32 own[EACH], sum = 0, total, first = threadIdx.x * EACH;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) sum += own[i] = room.bins[first + i];
    u32 before = sum_before(sum, room.sums[0], total);
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        u32 reached = before + own[i];
        if (before < wanted && wanted <= reached) room.bin = first + i, room.above = before, room.inside = own[i];
        room.bins[first + i] = before = reached;
    }
    __syncthreads();
    return total;
}

DEVICE void clear_bins(BestRoom &room) {
#pragma unroll 1
    for (u32 i = threadIdx.x; i < BINS; i += BEST_THREADS) room.bins[i] = 0;
}

// The i-th count: half as many two ranks down, the last one is k.
DEVICE u32 rank_count(u32 i, u32 k) {
    u32 count = (k * (i % 2 ? 32 : 23)) >> (5 + (RANKS - 1 - i) / 2);
    return count > 0 ? count : 1;
}

// What a block tells the others: for each rank a standing that as many groups reach, 0 if there are not so many. The
// bins count groups from `low` on.
DEVICE void find_edges(u32 low, u32 shift, u32 total, u32 k, BestRoom &room) {
    constexpr u32 EACH = BINS / 32;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = rank_count(warp, k);
    u32 past = __ballot_sync(ALL_LANES, room.bins[lane * EACH + EACH - 1] >= count);
    u32 first = past ? ((u32)__ffs((int)past) - 1) * EACH : 0;
    past = __ballot_sync(ALL_LANES, room.bins[first + lane] >= count);
    first += (u32)__ffs((int)past) - 1;
    if (lane == 0) room.edges[warp] = count <= total ? low + ((BINS - 1 - first) << shift) : 0;
}

// A standing that k entries of the row reach, from what all blocks told; 0 if that is not known of any. Each round every
// warp tries one.
DEVICE u32 bound_of(u32 k, u32 blocks, BestRoom &room) {
    constexpr u32 EACH = MOST_BLOCKS * RANKS / 32, ROUNDS = 3;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = lane % RANKS, own[EACH], low = ~0u, high = 0;
    u32 weight = rank_count(rank, k) - (rank > 0 ? rank_count(rank - 1, k) : 0);
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        u32 at = i * 32 + lane;
        own[i] = at < blocks * RANKS ? room.all_edges[at] : 0;
        low = own[i] > 0 && own[i] < low ? own[i] : low, high = own[i] > high ? own[i] : high;
    }
    low = __reduce_min_sync(ALL_LANES, low), high = __reduce_max_sync(ALL_LANES, high);
    // All blocks have the same numbers.
    if (high == 0) return 0;
#pragma unroll 1
    for (u32 round = 0; round < ROUNDS; round++) {
        u32 step = (high - low) / BEST_WARPS, bound = low + warp * step, count = 0;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) count += own[i] >= bound ? 1 : 0;
        bool reached = __reduce_add_sync(ALL_LANES, count * weight) >= k;
        if (lane == 0) room.sums[round % 2][warp] = reached;
        __syncthreads();
        u32 met = (u32)__popc(__ballot_sync(ALL_LANES, lane < BEST_WARPS && room.sums[round % 2][lane] != 0));
        if (met == 0) return 0;
        low += (met - 1) * step, high = met < BEST_WARPS ? low + step : high;
    }
    return low;
}

// The same from bins that count groups from `low` on; leaves them clear.
DEVICE u32 common_bound(u32 low, u32 shift, u32 k, u32 blocks, BestRoom &room) {
    __syncthreads();
    u32 total = count_up(0, room);
    find_edges(low, shift, total, k, room);
    cluster_sync();
    for (u32 i = threadIdx.x; i < blocks * RANKS; i += BEST_THREADS) {
        room.all_edges[i] = *peer_shared(&room.edges[i % RANKS], i / RANKS);
    }
    clear_bins(room);
    __syncthreads();
    return bound_of(k, blocks, room);
}

// The last of the `k` best, by standing and then by place: those in front of it are taken. `low` to `high` is where
// the standings of the field are, of which there are more than k; the bins are clear. A thread has the entries from
// `first` to `end`.
DEVICE void find_last(const Field &field, u32 low, u32 high, u32 k, u32 first, u32 end, BestRoom &room) {
    u32 wanted = k, total;
    for (;;) {
        u32 bits = bits_for(high - low), shift = bits > BIN_BITS ? bits - BIN_BITS : 0;
#pragma unroll 1
        for (u32 i = first; i < end; i++) {
            u32 standing = listed_at(field, i, room).standing;
            if (standing >= low && standing <= high) atomicAdd(&room.bins[BINS - 1 - ((standing - low) >> shift)], 1u);
        }
        if (threadIdx.x == 0) room.few_count = 0;
        __syncthreads();
        count_up(wanted, room);
        low += (BINS - 1 - room.bin) << shift, high = low + ((1u << shift) - 1);
        wanted -= room.above;
        if (room.inside <= TOLD_APART || shift == 0) break;
        clear_bins(room);
        __syncthreads();
    }
    if (room.inside == wanted) {
        // All of this bin.
        if (threadIdx.x == 0) room.last = {low, ~0u};
    } else if (room.inside <= TOLD_APART) {
#pragma unroll 1
        for (u32 i = first; i < end; i++) {
            Listed own = listed_at(field, i, room);
            if (own.standing >= low && own.standing <= high) room.few[atomicAdd(&room.few_count, 1u)] = own;
        }
        __syncthreads();
        if (threadIdx.x < room.inside) {
            Listed own = room.few[threadIdx.x];
            u32 better = 0;
#pragma unroll 1
            for (u32 i = 0; i < room.inside; i++) {
                Listed other = room.few[i];
                better += other.standing > own.standing || (other.standing == own.standing && other.place < own.place);
            }
            if (better == wanted - 1) room.last = own;
        }
    } else {
        u32 ties = 0;
#pragma unroll 1
        for (u32 i = first; i < end; i++) ties += listed_at(field, i, room).standing == low;
        u32 before = sum_before(ties, room.sums[1], total);
#pragma unroll 1
        for (u32 i = first; i < end && before < wanted; i++) {
            Listed own = listed_at(field, i, room);
            if (own.standing == low && ++before == wanted) room.last = own;
        }
    }
    __syncthreads();
}

// The k best of a field, ascending, padded with -1.
DEVICE void choose(const Field &field, u32 low, u32 high, u32 k, i32 *to, BestRoom &room) {
    u32 each = (field.count + BEST_THREADS - 1) / BEST_THREADS, from = threadIdx.x * each, all;
    u32 past = from + each < field.count ? from + each : field.count;
    Listed last = {0, ~0u};
    if (field.count > k) {
        find_last(field, low, high, k, from, past, room);
        last = room.last;
    }
    u32 kept = 0;
    u64 taken = 0;
#pragma unroll 1
    for (u32 i = from; i < past; i++) {
        Listed x = listed_at(field, i, room);
        bool take = x.standing > last.standing || (x.standing == last.standing && x.place <= last.place);
        taken |= (u64)take << (i - from), kept += take;
    }
    u32 at = sum_before(kept, room.sums[1], all);
#pragma unroll 1
    for (u32 i = from; i < past; i++) {
        if (taken >> (i - from) & 1) to[at++] = (i32)listed_at(field, i, room).place;
    }
#pragma unroll 1
    for (u32 i = all + threadIdx.x; i < k; i += BEST_THREADS) to[i] = -1;
}

// What the first block does when all have listed entries, in order, and cleared their bins; the others wait for it.
DEVICE void choose_listed(u32 k, u32 blocks, i32 *to, BestRoom &room) {
    constexpr u32 AHEAD = 2;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (cluster_rank() != 0) return cluster_sync();
    // Most blocks list no more than this; what is behind their lists is not looked at.
    Listed ahead[AHEAD];
#pragma unroll
    for (u32 i = 0; i < AHEAD; i++) ahead[i] = *peer_shared(&room.list[lane + 32 * i], warp < blocks ? warp : 0);
    u32 own = lane < blocks ? *peer_shared(&room.listed, lane) : 0, end = own;
    for (u32 step = 1; step < 32; step *= 2) {
        u32 below = __shfl_up_sync(ALL_LANES, end, step);
        if (lane >= step) end += below;
    }
    Field field = {__shfl_sync(ALL_LANES, end, 31), blocks, false};
    u32 first = __shfl_sync(ALL_LANES, end - own, warp), count = __shfl_sync(ALL_LANES, own, warp);
    if (warp == 0 && lane <= blocks) room.starts[lane] = end - own;
    u32 low = ~0u, high = 0;
    if (field.count <= GATHERED) {
        auto keep = [&](u32 i, Listed listed) {
            room.gathered[first + i] = listed;
            low = listed.standing < low ? listed.standing : low;
            high = listed.standing > high ? listed.standing : high;
        };
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) {
            if (lane + 32 * i < count) keep(lane + 32 * i, ahead[i]);
        }
#pragma unroll 1
        for (u32 i = lane + 32 * AHEAD; i < count; i += 32) keep(i, *peer_shared(&room.list[i], warp));
        cluster_sync();
        range_of(low, high, room);
    } else {
        low = 0, high = ~0u;
        __syncthreads();
    }
    choose(field, low, high, k, to, room);
    if (field.count > GATHERED) cluster_sync();
}
