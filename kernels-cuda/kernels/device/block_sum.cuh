// One order of addition for sums over a row by the threads of a block: thread i adds elements i, i + T,
// i + 2T, … in turn, warps add their lanes by halves, and the first warp adds the warps by halves. It
// depends on the row's length and on T alone.
#pragma once
#include "lanes.cuh"

DEVICE double warp_sum(double x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(ALL_LANES, x, step);
    return x;
}

// The sum over a block of THREADS threads, known to all of them. `scratch` holds one f64 a warp, and may be
// used again after the next barrier of the block.
template <int THREADS> DEVICE double block_sum(double x, double *scratch) {
    static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps, at most one warp of them");
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        x = warp_sum(threadIdx.x < THREADS / 32 ? scratch[threadIdx.x] : 0.0);
        if (threadIdx.x == 0) scratch[0] = x;
    }
    __syncthreads();
    return scratch[0];
}
