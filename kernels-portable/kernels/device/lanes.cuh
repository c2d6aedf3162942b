// Groups of lanes of a warp, a power of two of them, that have something in common.
#pragma once
#include "number.cuh"

constexpr u32 ALL_LANES = 0xFFFFFFFFu;

// Lanes that share `count` pieces of work: as many as there are pieces, at most a warp.
DEVICE u32 lanes_for(u64 count) {
    u32 lanes = 1;
    while (lanes < count && lanes < 32) lanes *= 2;
    return lanes;
}

// The sum over a group, by halves, known to all of it. All lanes of a warp call it.
DEVICE double lanes_sum(double x, u32 lanes) {
    for (u32 mask = lanes / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(ALL_LANES, x, mask);
    return x;
}

// The largest in a warp, known to all of it. A NaN is passed over where another value is there.
template <typename T> DEVICE T warp_max(T x) {
    for (u32 mask = 16; mask > 0; mask /= 2) {
        T other = __shfl_xor_sync(ALL_LANES, x, mask);
        x = other > x ? other : x;
    }
    return x;
}
