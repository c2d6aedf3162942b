// moe.expert_down on Hopper: see device/expert_tiles.cuh. Projections go to scratch as the steps would round them, and a
// last launch adds them up, to the byte as the steps would.
// Bytes: 17/32 inter hidden of each expert that occurs; FLOP: 2 inter hidden a pair; floor 45 us at 64 rows, 70 at 1,024, 91
// at 4,096, for the experts of moe.gate_up. Measured with its sorting and adding, us: 74 at 64 rows, 93 at 128, 110 at 256,
// 128 at 512, 146 at 1,024, 185 at 2,048, 254 at 4,096.
// SASS: HGMMA UTMALDG UBLKCP
#include "../device/expert_down_tiles.cuh"

KERNEL(moe_expert_down__sort, tiles::SORTERS)(View expert, View rows, u64 total, u64 first, u64 local, u64 top_k, u64 hidden,
                                    u64 inter, u64 tokens, u32 width) {
    tiles::sort_rows({total, first, local, top_k, hidden, inter}, expert, rows, tokens, width);
}

KERNEL(moe_expert_down__rows, tiles::ROW_THREADS)(View x, View expert, View rows, u64 total, u64 first, u64 local,
                                                  u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    Experts d = {total, first, local, top_k, hidden, inter};
    tiles::gather(d, expert, rows, (u32)inter, tokens, DownRows{d, x}, [](u32) {});
}

#define PROJECT(FORM)                                                                                                   \
    (const __grid_constant__ TensorMap map, View x, View w2, View each, View rows, u64 total, u64 first, u64 local,    \
     u64 top_k, u64 hidden, u64 inter) {                                                                               \
        u16 *to = (u16 *)each.codes;                                                                                   \
        Experts d = {total, first, local, top_k, hidden, inter};                                                       \
        make_down<FORM>(d, &map, x, w2, rows, [&](u32 pair, u32 output, float sum) {               \
            to[pair * hidden + output] = tiles::rounded(sum);                                                          \
        });                                                                                                            \
    }

KERNEL(moe_expert_down__grouped_8, tiles::Wide8::THREADS) PROJECT(tiles::Wide8)
KERNEL(moe_expert_down__grouped_16, tiles::Wide16::THREADS) PROJECT(tiles::Wide16)
KERNEL(moe_expert_down__grouped_32, tiles::Wide32::THREADS) PROJECT(tiles::Wide32)
KERNEL(moe_expert_down__grouped_48, tiles::Wide48::THREADS) PROJECT(tiles::Wide48)
KERNEL(moe_expert_down__grouped_80, tiles::Wide80::THREADS) PROJECT(tiles::Wide80)

constexpr u32 ADDERS = 128, CHUNK_COLUMNS = 128;

// A warp adds up every so many-th 128 columns of a row, whose slots it sorts by expert.
KERNEL(moe_expert_down__add, ADDERS)(View each, View expert, View y, u64 total, u64 first, u64 local, u64 top_k,
                                     u64 hidden, u64 inter, u64 tokens, u32 sharers) {
    __shared__ u32 sorted[ADDERS];
    Experts d = {total, first, local, top_k, hidden, inter};
    let_next_begin();
    wait_for_previous();
    u32 lane = threadIdx.x % 32, *slots = sorted + threadIdx.x / 32 * 32;
    u32 item = blockIdx.x * (ADDERS / 32) + threadIdx.x / 32, token = item / sharers;
    if (token >= tokens) return;
    i32 place = lane < top_k ? (i32)held(d, expert, token, lane) : -1;
    u32 count = __popc(__ballot_sync(ALL_LANES, place >= 0)), rank = 0;
    for (u32 i = 0; i < top_k; i++) {
        i32 other = __shfl_sync(ALL_LANES, place, i);
        rank += other >= 0 && (other < place || (other == place && i < lane));
    }
    if (place >= 0) slots[rank] = lane;
    __syncwarp();
    const u16 *from = (const u16 *)each.codes + (u64)token * top_k * hidden;
    float *to = row_of<float>(y, token);
    for (u64 column = item % sharers * CHUNK_COLUMNS + lane * 4; column < hidden; column += sharers * CHUNK_COLUMNS) {
        double sum[4] = {};
        for (u32 i = 0; i < count; i++) {
            Words<2> four = *(const Words<2> *)(from + slots[i] * hidden + column);
#pragma unroll
            for (u32 j = 0; j < 4; j++) sum[j] += (double)bf16_to_f32((u16)(four.of[j / 2] >> j % 2 * 16));
        }
        Words<4> made;
#pragma unroll
        for (u32 j = 0; j < 4; j++) made.of[j] = bits_of(f32_result(sum[j]));
        if ((u64)(to + column) % 16 == 0) {
            *(Words<4> *)(to + column) = made;
        } else {
#pragma unroll
            for (u32 j = 0; j < 4; j++) to[column + j] = float_of(made.of[j]);
        }
    }
}
