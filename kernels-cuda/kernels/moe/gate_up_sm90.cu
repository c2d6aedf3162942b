// moe.gate_up on Hopper: see device/expert_tiles.cuh. Sorts the pairs of a row and a slot by expert, brings their rows,
// multiplies; pairs without an expert here are zeros.
// Bytes: 17/16 inter hidden of each expert that occurs; FLOP: 4 inter hidden a pair. For 48 experts of 5120 x 2304 of 384,
// 6 a row, at 4.3 TB/s and 790 TFLOP/s: 91 us at 64 rows, 140 at 1,024, 183 at 4,096.
// Measured as moe.expert_up.
// SASS: HGMMA UTMALDG UBLKCP
#include "../device/expert_up_tiles.cuh"

KERNEL(moe_gate_up__sort, tiles::SORTERS)(View expert, View rows, u64 total, u64 first, u64 local, u64 top_k, u64 hidden,
                                    u64 inter, u64 tokens, u32 width) {
    tiles::sort_rows({total, first, local, top_k, hidden, inter}, expert, rows, tokens, width);
}

KERNEL(moe_gate_up__rows, tiles::ROW_THREADS)(View x, View expert, View y, View rows, u64 total, u64 first, u64 local,
                                              u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    Experts d = {total, first, local, top_k, hidden, inter};
    gather_up(d, x, expert, rows, tokens, [&](u32 pair) {
        u16 *to = row_of<u16>(y, pair / (u32)top_k) + pair % (u32)top_k * 2 * inter;
        for (u64 i = threadIdx.x % 32; i < 2 * inter; i += 32) to[i] = 0;
    });
}

template <typename F>
DEVICE void gate_up(const TensorMap *gates, const TensorMap *ups, const View &x, const View &w1, const View &w3, const View &y,
                    const View &rows, const Experts &d) {
    u32 inter = (u32)d.inter, top_k = (u32)d.top_k;
    auto store = [&](const auto &worker, const tiles::Item &item, const u32 *pairs, const float(&sum)[F::HELD]) {
        u32 unit = worker.row_of(item);
#pragma unroll
        for (u32 c = 0; c < F::HELD; c++) {
            u32 token = c / 4 * 8 + worker.lane % 4 * 2 + c % 2;
            u32 pair = pairs[token] & ~tiles::FAR, ups = c / 2 % 2;
            if (pair == tiles::NONE || unit >= inter) continue;
            row_of<u16>(y, pair / top_k)[(pair % top_k * 2 + ups) * (u64)inter + unit] = tiles::rounded(sum[c]);
        }
    };
    make_up<F>(d, gates, ups, x, w1, w3, rows, store);
}

#define GATE_UP(FORM)                                                                                                   \
    (const __grid_constant__ TensorMap gates, const __grid_constant__ TensorMap ups, View x, View w1, View w3, View y, \
     View rows, u64 total, u64 first, u64 local, u64 top_k, u64 hidden, u64 inter) {                                   \
        gate_up<FORM>(&gates, &ups, x, w1, w3, y, rows,                                            \
                                          {total, first, local, top_k, hidden, inter});                                \
    }

KERNEL(moe_gate_up__grouped_8, tiles::Wide8::THREADS) GATE_UP(tiles::Wide8)
KERNEL(moe_gate_up__grouped_16, tiles::Wide16::THREADS) GATE_UP(tiles::Wide16)
KERNEL(moe_gate_up__grouped_32, tiles::Wide32::THREADS) GATE_UP(tiles::Wide32)
KERNEL(moe_gate_up__grouped_48, tiles::Wide48::THREADS) GATE_UP(tiles::Wide48)
KERNEL(moe_gate_up__grouped_80, tiles::Wide80::THREADS) GATE_UP(tiles::Wide80)
