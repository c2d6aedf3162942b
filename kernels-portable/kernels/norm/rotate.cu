// norm.rotate: the last dims of every head turned in adjacent pairs, in place. One pair a thread.
#include "../device/grid.cuh"
#include "../device/turn.cuh"
#include "../device/view.cuh"

KERNEL(norm_rotate__portable, 256)(View x, View position, const __grid_constant__ Frequencies frequencies, u64 heads,
                                   u64 head_dim, u64 pairs, i32 group, u32 inverse, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * heads * pairs) {
        auto [row, pair] = split(item, pairs);
        i32 at = row_of<const i32>(position, 0)[split(row, heads).row];
        if (at < 0) continue;
        Turn turn = turn_at(at, group, frequencies.of[pair], inverse);
        u16 *to = row_of<u16>(x, row) + head_dim - 2 * (pairs - pair);
        float even = bf16_to_f32(to[0]), odd = bf16_to_f32(to[1]);
        to[0] = bf16_result(turned_even(even, odd, turn));
        to[1] = bf16_result(turned_odd(even, odd, turn));
    }
}
