// One order of addition for sums over a row by the threads of a block: thread i adds elements i, i + T,
// i + 2T, … in turn, warps add their lanes by halves, and then the warps are added in order. It depends on the row's
// length and on T alone.
#pragma once
#include "lanes.cuh"

DEVICE double warp_sum(double x) { return lanes_sum(x, 32); }

// The sum over a block of THREADS threads, known to all of them. `scratch` holds one f64 a warp, and may be
// used again after the next barrier of the block.
template <int THREADS> DEVICE double block_sum(double x, double *scratch) {
    static_assert(THREADS % 32 == 0, "whole warps");
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = scratch[0];
#pragma unroll
    for (int i = 1; i < THREADS / 32; i++) sum += scratch[i];
    return sum;
}
