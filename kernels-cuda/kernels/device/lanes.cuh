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

// The sum over a group, by halves, known to its first lane. All lanes of a warp call it.
DEVICE double lanes_sum(double x, u32 lanes) {
    for (u32 step = lanes / 2; step > 0; step /= 2) x += __shfl_down_sync(ALL_LANES, x, step);
    return x;
}
