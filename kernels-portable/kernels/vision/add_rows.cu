// vision.add: x <- bf(x + y), in place. One element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(vision_add__portable, 256)(View y, View x, u64 width, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * width) {
        auto [token, i] = split(item, width);
        u16 *to = row_of<u16>(x, token) + i;
        *to = bf16_result((double)bf16_to_f32(*to) + (double)bf16_to_f32(row_of<const u16>(y, token)[i]));
    }
}
