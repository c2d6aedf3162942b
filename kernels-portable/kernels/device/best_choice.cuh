// The best of the threads' choices.
#pragma once
#include "choice.cuh"
#include "lanes.cuh"

// In a warp, known to all of it.
DEVICE u64 warp_best(u64 choice) {
    u32 key = (u32)(choice >> 32), best = __reduce_max_sync(ALL_LANES, key);
    return (u64)best << 32 | __reduce_max_sync(ALL_LANES, key == best ? (u32)choice : 0u);
}

// In a block, known to all of it. `scratch` holds one choice a warp, and may be used again after the next barrier of the
// block.
DEVICE u64 best_choice(u64 choice, u64 *scratch) {
    u32 lane = threadIdx.x % 32;
    choice = warp_best(choice);
    if (lane == 0) scratch[threadIdx.x / 32] = choice;
    __syncthreads();
    return warp_best(lane < blockDim.x / 32 ? scratch[lane] : 0ull);
}
