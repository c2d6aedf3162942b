// moe.down on Hopper: see device/expert_tiles.cuh. As moe.gate_up, with half of its bytes and FLOP.
// Measured as moe.expert_down.
// SASS: HGMMA UTMALDG UBLKCP
#include "../device/expert_down_tiles.cuh"

KERNEL(moe_down__sort, tiles::SORTERS)(View expert, View rows, u64 total, u64 first, u64 local, u64 top_k, u64 hidden,
                                    u64 inter, u64 tokens, u32 width) {
    tiles::sort_rows({total, first, local, top_k, hidden, inter}, expert, rows, tokens, width);
}

KERNEL(moe_down__rows, tiles::ROW_THREADS)(View x, View expert, View y, View rows, u64 total, u64 first, u64 local,
                                           u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    Experts d = {total, first, local, top_k, hidden, inter};
    tiles::gather(d, expert, rows, (u32)inter, tokens, DownRows{d, x}, [&](u32 pair) {
        u16 *to = row_of<u16>(y, pair / (u32)top_k) + pair % (u32)top_k * hidden;
        for (u64 i = threadIdx.x % 32; i < hidden; i += 32) to[i] = 0;
    });
}

template <typename F>
DEVICE void down(const TensorMap *map, const View &x, const View &w2, const View &y, const View &rows, const Experts &d) {
    u32 top_k = (u32)d.top_k;
    make_down<F>(d, map, x, w2, rows, [&](u32 pair, u32 output, float sum) {
        row_of<u16>(y, pair / top_k)[pair % top_k * d.hidden + output] = tiles::rounded(sum);
    });
}

#define DOWN(FORM)                                                                                                      \
    (const __grid_constant__ TensorMap map, View x, View w2, View y, View rows, u64 total, u64 first, u64 local,       \
     u64 top_k, u64 hidden, u64 inter) {                                                                               \
        down<FORM>(&map, x, w2, y, rows, {total, first, local, top_k, hidden, inter});             \
    }

KERNEL(moe_down__grouped_8, tiles::Wide8::THREADS) DOWN(tiles::Wide8)
KERNEL(moe_down__grouped_16, tiles::Wide16::THREADS) DOWN(tiles::Wide16)
KERNEL(moe_down__grouped_32, tiles::Wide32::THREADS) DOWN(tiles::Wide32)
KERNEL(moe_down__grouped_48, tiles::Wide48::THREADS) DOWN(tiles::Wide48)
KERNEL(moe_down__grouped_80, tiles::Wide80::THREADS) DOWN(tiles::Wide80)
