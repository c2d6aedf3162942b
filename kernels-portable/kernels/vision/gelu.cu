// vision.gelu: y = x (1 + erf(x / sqrt 2)) / 2, by the complement, whose bits stay where the sum would cancel. One
// element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(vision_gelu__portable, 256)(View x, View y, u64 width, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * width) {
        auto [token, i] = split(item, width);
        float narrow = bf16_to_f32(row_of<const u16>(x, token)[i]);
        double wide = narrow, value = 0.5 * wide * erfc(-wide / 1.4142135623730951);
        row_of<u16>(y, token)[i] = bf16_result(narrow == float_of(0xFF800000u) ? -0.0 : value);
    }
}
