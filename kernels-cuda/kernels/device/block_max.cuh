// The largest of the threads' values, known to all of them. A NaN is passed over where another value is there.
#pragma once
#include "block_sum.cuh"

template <typename T> DEVICE T warp_max(T x) {
    for (int step = 16; step > 0; step /= 2) {
        T other = __shfl_down_sync(ALL_LANES, x, step);
        x = other > x ? other : x;
    }
    return x;
}

// `scratch` holds one value a warp, and may be used again after the next barrier of the block; `least` is
// below every value.
template <int THREADS, typename T> DEVICE T block_max(T x, T least, T *scratch) {
    x = warp_max(x);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        x = warp_max(threadIdx.x < THREADS / 32 ? scratch[threadIdx.x] : least);
        if (threadIdx.x == 0) scratch[0] = x;
    }
    __syncthreads();
    return scratch[0];
}
