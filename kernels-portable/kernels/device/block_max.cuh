// The largest of the threads' values, known to all of them. A NaN is passed over where another value is there.
#pragma once
#include "lanes.cuh"

// `scratch` holds one value a warp, and may be used again after the next barrier of the block; `least` is
// below every value.
template <int THREADS, typename T> DEVICE T block_max(T x, T least, T *scratch) {
    x = warp_max(x);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    T largest = least;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) largest = scratch[i] > largest ? scratch[i] : largest;
    return largest;
}
