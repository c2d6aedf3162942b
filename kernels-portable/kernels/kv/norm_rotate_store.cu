// kv.norm_rotate_store: a row's norm, the turn of its last dims, and the result as a cache entry. One block of threads a
// row, one block of the entry a warp.
#include "../device/entry.cuh"
#include "../device/latent.cuh"

constexpr int THREADS = 512;

KERNEL(kv_norm_rotate_store__portable, THREADS)(View x, View weight, View position, View address, View cache,
                                                const __grid_constant__ Frequencies frequencies, Entry entry, u64 pairs,
                                                float eps, i32 group, u32 inverse, u64 tokens) {
    begin();
    __shared__ double scratch[THREADS / 32];
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        const u16 *from = row_of<const u16>(x, token);
        auto source = [=](u64 i) { return bf16_to_f32(from[i]); };
        float rstd = row_rstd<THREADS>(source, entry.width, eps, scratch);
        Latent row = {from,  row_of<const u16>(weight, 0),           entry.width, pairs,
                      rstd,  row_of<const i32>(position, 0)[token], group,       inverse != 0};
        u8 *to = entry_at(entry, cache, row_of<const i32>(address, 0)[token]);
        u32 blocks = to ? entry.width / entry.block : 0;
        auto value = [&](u64 i) { return bf16_to_f32(latent_at(row, frequencies, i)); };
        for (u64 at = threadIdx.x / 32; at < blocks; at += THREADS / 32) store_block(entry, value, at, to);
        __syncthreads();
    }
}
