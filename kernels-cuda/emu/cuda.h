// The part of the device language that plain kernels use, for a host compiler: kernels' own sources run on the CPU,
// one block after the other, each thread a fiber. Arithmetic is the host's, with the same roundings.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#define __global__
#define __device__
#define __forceinline__ inline
// One copy is enough: one block runs at a time.
#define __shared__ static

namespace emu {
struct Dim3 {
    unsigned x, y, z;
};
// The thread that runs.
extern Dim3 thread_index, block_index, block_extent, grid_extent;

// All threads of the block that have not ended arrive here.
void block_barrier();
// The value of the lane `step` further on, or one's own past the last lane.
double shuffle_down(double value, unsigned step);
}  // namespace emu

#define threadIdx emu::thread_index
#define blockIdx emu::block_index
#define blockDim emu::block_extent
#define gridDim emu::grid_extent
#define __syncthreads() emu::block_barrier()

inline double __shfl_down_sync(unsigned, double value, unsigned step) { return emu::shuffle_down(value, step); }

using std::sqrt;
