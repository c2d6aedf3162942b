// vision.rotate_halves: heads turned in split-half pairs, the first half of the angles from the patch's row, the second
// from its column; in place. One pair a thread; products of a bf16 and an f32 are exact in f64.
#include "../device/grid.cuh"
#include "../device/turn.cuh"
#include "../device/view.cuh"

KERNEL(vision_rotate_halves__portable, 256)(View x, View row, View column,
                                            const __grid_constant__ Frequencies frequencies, u64 heads, u64 head_dim,
                                            u64 tokens) {
    begin();
    u64 half = head_dim / 2, quarter = head_dim / 4;
    FOR_EACH_ITEM(item, tokens * heads * half) {
        auto [row_and_head, pair] = split(item, half);
        auto [token, head] = split(row_and_head, heads);
        i32 of_row = row_of<const i32>(row, 0)[token], of_column = row_of<const i32>(column, 0)[token];
        if (of_row < 0 || of_column < 0) continue;
        float position = (float)(pair < quarter ? of_row : of_column);
        Turn turn = turn_of(position * frequencies.of[pair < quarter ? pair : pair - quarter]);
        u16 *to = row_of<u16>(x, token) + head * head_dim + pair;
        double a = bf16_to_f32(to[0]), b = bf16_to_f32(to[half]), cosine = turn.cos, sine = turn.sin;
        to[0] = bf16_result(a * cosine - b * sine);
        to[half] = bf16_result(b * cosine + a * sine);
    }
}
