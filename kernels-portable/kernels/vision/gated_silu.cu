// vision.gated_silu: y = bf(bf(silu(gate)) up), gate and up the halves of a row. One element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(vision_gated_silu__portable, 256)(View x, View y, u64 inter, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * inter) {
        auto [token, i] = split(item, inter);
        const u16 *from = row_of<const u16>(x, token);
        double gate = bf16_to_f32(from[i]), up = bf16_to_f32(from[inter + i]);
        u16 unit = bf16_result(gate * (1.0 / (1.0 + exp(-gate))));
        row_of<u16>(y, token)[i] = bf16_result((double)bf16_to_f32(unit) * up);
    }
}
