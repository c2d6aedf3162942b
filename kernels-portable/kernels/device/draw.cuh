// A token from a law by the threads of a block: the smallest id whose running sum exceeds `uniform` times the mass. A
// thread has neighbouring ids; their sums are added by doubling distances within warps, then from warp to warp, and each
// thread goes on from where its ids begin.
#pragma once
#include "lanes.cuh"

template <int THREADS> struct DrawMemory {
    double sums[THREADS / 32];
    i32 first, last;
};

// The sum of the lanes up to this one.
DEVICE double sum_so_far(double x) {
    for (u32 step = 1; step < 32; step *= 2) {
        double before = __shfl_sync(ALL_LANES, x, (int)((threadIdx.x - step) % 32));
        if (threadIdx.x % 32 >= step) x += before;
    }
    return x;
}

// `law(x)` is the share of id x of `count`. The last id with a positive share where rounding leaves none; -1 where the
// mass is not positive and finite.
template <int THREADS, typename Law>
DEVICE i32 token_from(const Law &law, u64 count, float uniform, DrawMemory<THREADS> &memory) {
    u64 each = (count + THREADS - 1) / THREADS, from = threadIdx.x * each;
    u64 end = from + each < count ? from + each : count;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    double sum = 0;
    for (u64 x = from; x < end; x++) sum += law(x);
    double reached = sum_so_far(sum), mass = 0, before = __shfl_sync(ALL_LANES, reached, (int)((lane + 31) % 32));
    __syncthreads();
    if (lane == 31) memory.sums[warp] = reached;
    if (threadIdx.x == 0) memory.first = 0x7FFFFFFF, memory.last = -1;
    __syncthreads();
    sum = lane == 0 ? 0.0 : before;
#pragma unroll
    for (u32 i = 0; i < THREADS / 32; i++) {
        if (i < warp) sum += memory.sums[i];
        mass += memory.sums[i];
    }
    if (!(mass > 0 && mass < 1.0 / 0.0)) return -1;
    double threshold = (double)uniform * mass;
    i32 found = 0x7FFFFFFF, last = -1;
    for (u64 x = from; x < end && found > last; x++) {
        double share = law(x);
        sum += share;
        if (!(share > 0)) continue;
        last = (i32)x;
        if (sum > threshold) found = (i32)x;
    }
    atomicMin(&memory.first, found);
    atomicMax(&memory.last, last);
    __syncthreads();
    return memory.first < 0x7FFFFFFF ? memory.first : memory.last;
}
