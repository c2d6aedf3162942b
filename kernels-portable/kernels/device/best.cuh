// The best of many by the threads of a block: a threshold found digit by digit of the standings, from the top. Counts
// and weights are integers, so that the order in which threads add them never shows.
#pragma once
#include "lanes.cuh"
#include "number.cuh"

// Counts of Weight: u32 where every weight is one.
template <typename Weight> struct BestMemory {
    Weight digits[256];
    u64 wanted;
    u32 digit;
    bool all;
};

// What is above `standing` is taken; of what is there, in order of place, so much that the weights reach `wanted`.
struct Threshold {
    u32 standing;
    u64 wanted;
    // Everything together does not reach what was wanted.
    bool all;
};

// The digit at which the weights from the top reach `wanted`, and how much of it that takes; by a warp, a lane eight
// digits.
template <typename Weight> DEVICE void find_digit(u64 wanted, BestMemory<Weight> &memory) {
    u32 lane = threadIdx.x, digit = 8 * lane + 7;
    u64 own = 0;
    for (u32 i = 0; i < 8; i++) own += memory.digits[8 * lane + i];
    u64 reached = own;
    for (u32 step = 1; step < 32; step *= 2) {
        u64 above = __shfl_down_sync(ALL_LANES, reached, step);
        if (lane + step < 32) reached += above;
    }
    bool here = reached - own < wanted && wanted <= reached;
    bool found = __ballot_sync(ALL_LANES, here) != 0;
    if (lane == 0) memory.all = !found;
    if (!here) return;
    wanted -= reached - own;
    while (memory.digits[digit] < wanted) wanted -= memory.digits[digit--];
    memory.digit = digit, memory.wanted = wanted;
}

// `walk(f)` calls f(place, there, standing, weight) for places in any order, a thread's own; the weights of the best
// are to reach `wanted`, which is positive.
template <int THREADS, typename Walk, typename Weight>
DEVICE Threshold threshold_of(const Walk &walk, u64 wanted, BestMemory<Weight> &memory) {
    u32 prefix = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();
        for (u32 i = threadIdx.x; i < 256; i += THREADS) memory.digits[i] = 0;
        __syncthreads();
        walk([&](u64, bool there, u32 standing, u64 weight) {
            bool same = shift == 24 || standing >> (shift + 8) == prefix >> (shift + 8);
            if (there && same) atomicAdd(&memory.digits[standing >> shift & 255u], (Weight)weight);
        });
        __syncthreads();
        if (threadIdx.x < 32) find_digit(wanted, memory);
        __syncthreads();
        if (memory.all) return {0, ~0ull, true};
        wanted = memory.wanted;
        prefix |= memory.digit << shift;
    }
    return {prefix, wanted, false};
}

// How many threads before this one say so, and how many of all; `scratch` holds one count a warp. Every thread of the
// block calls it.
template <int THREADS> DEVICE u32 rank_of(bool mine, u32 *scratch, u32 &total) {
    u32 votes = __ballot_sync(ALL_LANES, mine), lane = threadIdx.x % 32, warp = threadIdx.x / 32, before = 0;
    __syncthreads();
    if (lane == 0) scratch[warp] = (u32)__popc(votes);
    __syncthreads();
    total = 0;
    for (u32 i = 0; i < THREADS / 32; i++) {
        if (i < warp) before += scratch[i];
        total += scratch[i];
    }
    return before + (u32)__popc(votes & ((1u << lane) - 1u));
}

// Takes places by a threshold, in ascending order: `walk(f)` calls f(place, there, standing, weight) with all threads
// of the block together, places ascending from thread to thread and from call to call; `take(n, place)` gets the n-th.
// Ties have one weight. Returns how many were taken.
template <int THREADS, typename Walk, typename Take>
DEVICE u64 take_best(const Walk &walk, Threshold threshold, u32 *scratch, const Take &take) {
    u64 ties = 0, taken = 0;
    walk([&](u64 place, bool there, u32 standing, u64 weight) {
        bool tie = there && !threshold.all && standing == threshold.standing;
        u32 tied, kept;
        u64 tie_rank = ties + rank_of<THREADS>(tie, scratch, tied);
        ties += tied;
        bool keep = there && (threshold.all || standing > threshold.standing);
        // Those before it have not reached it yet.
        keep = keep || (tie && tie_rank * weight < threshold.wanted);
        u64 rank = taken + rank_of<THREADS>(keep, scratch, kept);
        taken += kept;
        if (keep) take(rank, place);
    });
    return taken;
}
