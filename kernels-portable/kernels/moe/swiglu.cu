// moe.swiglu: the clamped gated unit of each slot, times the slot's weight where there is one. One element a thread.
#include "../device/gated.cuh"
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(moe_swiglu__portable, 256)(View x, View weight, View y, u64 slots, u64 inter, float limit, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * slots * inter) {
        u64 column = item % inter, slot = item / inter % slots, token = item / inter / slots;
        const u16 *from = row_of<const u16>(x, token) + slot * 2 * inter + column;
        double w = weight.codes ? (double)row_of<const float>(weight, token)[slot] : 1.0;
        double unit = gated_unit(bf16_to_f32(from[0]), bf16_to_f32(from[inter]), limit, w);
        row_of<u16>(y, token)[slot * inter + column] = bf16_result(unit);
    }
}
