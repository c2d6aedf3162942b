// quant.cast: bf16 rows to block-scaled codes. One block of a row a warp.
#include "../device/grid.cuh"
#include "../device/quantise.cuh"

KERNEL(quant_cast__portable, 256)(View x, View y, u32 rule, u64 block, u64 width, u64 tokens) {
    begin();
    u64 blocks = width / block;
    FOR_EACH_WARP(item, tokens * blocks) {
        u64 token = item / blocks, at = item % blocks;
        const u16 *from = row_of<const u16>(x, token) + at * block;
        auto value = [from](u64 i) { return bf16_to_f32(from[i]); };
        u8 *codes = y.codes + code_bytes(rule, token * y.stride + at * block);
        quantise(rule, value, block, codes, y.scales + item * scale_bytes(rule));
    }
}
