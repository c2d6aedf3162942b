// Kernels that prove how launches reach the device: clusters, programmatic launch, tensor maps, and a fault.
// Tests use them; no operator does.
//
// SASS: UTMALDG SYNCS
#include "../device/number.cuh"

// Blocks of the cluster that each block finds itself in, and its number in it.
extern "C" __global__ void probe_cluster(u32 *sizes, u32 *ranks) {
    u32 size, rank;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) sizes[blockIdx.x] = size, ranks[blockIdx.x] = rank;
}

// Adds one to a word. A programmatic launch may start before the one in front of it has ended, so it waits
// for that one's writes first.
extern "C" __global__ void probe_increment(u32 *word) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (threadIdx.x == 0) *word += 1;
    asm volatile("griddepcontrol.launch_dependents;");
}

// Copies one box of a two-dimensional tensor of bytes to `to`, through its tensor map.
struct alignas(64) TensorMap {
    u8 opaque[128];
};

constexpr u32 BOX_BYTES = 16 * 64;

extern "C" __global__ void probe_tensor_map(const __grid_constant__ TensorMap map, u8 *to, i32 column, i32 row) {
    __shared__ alignas(128) u8 box[BOX_BYTES];
    __shared__ alignas(8) u64 barrier;
    u32 bar = (u32)__cvta_generic_to_shared(&barrier), place = (u32)__cvta_generic_to_shared(box);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        // The copy engine must see the barrier before it is told to arrive there.
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(BOX_BYTES) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4}], [%2];" ::"r"(place), "l"(&map), "r"(bar), "r"(column), "r"(row)
                     : "memory");
    }
    __syncthreads();
    asm volatile("{\n.reg .pred done;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra AGAIN;\n}" ::"r"(bar) : "memory");
    for (u32 i = threadIdx.x; i < BOX_BYTES; i += blockDim.x) to[i] = box[i];
}

// Writes where no memory is.
extern "C" __global__ void probe_fault() { *(volatile u32 *)16 = 1; }
