// Work items of a launch, one a thread, any number of them: a grid of fewer threads goes round again.
#pragma once
#include "split.cuh"

#define FOR_EACH_ITEM(item, items)                                                                        \
    for (u64 item = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;      \
         item < (items); item += step)

// The same, one a warp.
#define FOR_EACH_WARP(item, items)                                                                        \
    for (u64 item = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32, step = (u64)gridDim.x * blockDim.x / 32; \
         item < (items); item += step)
