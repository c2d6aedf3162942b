// A token from a law by the threads of a block: the smallest id whose running sum exceeds `uniform` times the mass. A
// thread has neighbouring ids; their sums are added from thread to thread, and each goes on from where its ids begin.
#pragma once
#include "number.cuh"

template <int THREADS> struct DrawMemory {
    double sums[THREADS];
    double mass;
    i32 first, last;
};

// `law(x)` is the share of id x of `count`. The last id with a positive share where rounding leaves none; -1 where the
// mass is not positive and finite.
template <int THREADS, typename Law>
DEVICE i32 token_from(const Law &law, u64 count, float uniform, DrawMemory<THREADS> &memory) {
    u64 each = (count + THREADS - 1) / THREADS, from = threadIdx.x * each;
    u64 end = from + each < count ? from + each : count;
    double sum = 0;
    for (u64 x = from; x < end; x++) sum += law(x);
    __syncthreads();
    memory.sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double before = 0;
        for (int i = 0; i < THREADS; i++) {
            double own = memory.sums[i];
            memory.sums[i] = before;
            before += own;
        }
        memory.mass = before, memory.first = 0x7FFFFFFF, memory.last = -1;
    }
    __syncthreads();
    double mass = memory.mass;
    if (!(mass > 0 && mass < 1.0 / 0.0)) return -1;
    double threshold = (double)uniform * mass;
    i32 found = 0x7FFFFFFF, last = -1;
    sum = memory.sums[threadIdx.x];
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
