// moe.expert_up on Hopper: see device/expert_tiles.cuh. Projections are rounded, go through the gated unit and are cast as
// the steps would do it, to the byte.
// Bytes, FLOP and floor as moe.gate_up. Measured with its sorting, us: 133 at 64 rows, 173 at 128, 201 at 256, 253 at 512,
// 290 at 1,024, 373 at 2,048, 535 at 4,096.
// SASS: HGMMA UTMALDG UBLKCP
#include "../device/block.cuh"
#include "../device/expert_up_tiles.cuh"
#include "../device/gated.cuh"

// The scale of a block whose largest magnitude has these bits.
DEVICE u8 scale_of(u32 amax) { return fp8_scale(float_of(amax)); }

KERNEL(moe_expert_up__sort, tiles::SORTERS)(View expert, View rows, u64 total, u64 first, u64 local, u64 top_k, u64 hidden,
                                    u64 inter, u64 tokens, u32 width) {
    tiles::sort_rows({total, first, local, top_k, hidden, inter}, expert, rows, tokens, width);
}

KERNEL(moe_expert_up__rows, tiles::ROW_THREADS)(View x, View expert, View weight, View y, View rows, u64 total, u64 first,
                                                u64 local, u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    Experts d = {total, first, local, top_k, hidden, inter};
    gather_up(d, x, expert, rows, tokens, [&](u32 pair) {
        u32 token = pair / (u32)top_k, slot = pair % (u32)top_k;
        // A unit of zeros, times its weight.
        float unit = bf16_to_f32(bf16_result(0.0 * row_of<const float>(weight, token)[slot]));
        u8 scale = scale_of(magnitude_of(unit));
        u32 codes = e4m3_from_f32(quotient(unit, ue8m0_to_f32(scale))) * 0x01010101u;
        u8 *to = y.codes + token * y.stride + slot * inter, *scales = y.scales + (u64)pair * (inter / 32);
        for (u64 i = threadIdx.x % 32; i < inter / 16; i += 32) ((Words<4> *)to)[i] = {{codes, codes, codes, codes}};
        for (u64 i = threadIdx.x % 32; i < inter / 32; i += 32) scales[i] = scale;
    });
}

template <typename F>
DEVICE void expert_up(const TensorMap *gates, const TensorMap *ups, const View &x, const View &weight, const View &w1,
                      const View &w3, const View &y, const View &rows, const Experts &d, float limit) {
    u32 inter = (u32)d.inter, top_k = (u32)d.top_k;
    auto store = [&](const auto &worker, const tiles::Item &item, const u32 *pairs, const float(&sum)[F::HELD]) {
        u32 lane = worker.lane, unit = worker.row_of(item), block = unit / 32;
        float *largest = worker.room.exchange + worker.gang * 4 * F::TOKENS;
        float own[F::HELD / 2];
#pragma unroll
        for (u32 c = 0; c < F::HELD / 2; c++) {
            u32 token = c / 2 * 8 + lane % 4 * 2 + c % 2, at = c / 2 * 4 + c % 2;
            own[c] = 0;
            u32 pair = pairs[token] & ~tiles::FAR;
            if (pair != tiles::NONE) {
                float w = row_of<const float>(weight, pair / top_k)[pair % top_k];
                float gate = bf16_to_f32(tiles::rounded(sum[at])), up = bf16_to_f32(tiles::rounded(sum[at + 2]));
                own[c] = bf16_to_f32(gated_result(gate, up, limit, w));
            }
            u32 amax = magnitude_of(own[c]);
            for (u32 mask = 4; mask < 32; mask *= 2) {
                u32 other = __shfl_xor_sync(ALL_LANES, amax, mask);
                amax = other > amax ? other : amax;
            }
            if (lane < 4) largest[worker.warp * F::TOKENS + token] = float_of(amax);
        }
        some_sync(1 + worker.gang, tiles::GANG);
#pragma unroll
        for (u32 c = 0; c < F::HELD / 2; c++) {
            u32 token = c / 2 * 8 + lane % 4 * 2 + c % 2, amax = 0;
            u32 pair = pairs[token] & ~tiles::FAR;
            if (pair == tiles::NONE || unit >= inter) continue;
#pragma unroll
            for (u32 w = 0; w < 4; w++) {
                u32 other = bits_of(largest[w * F::TOKENS + token]);
                amax = other > amax ? other : amax;
            }
            u8 scale = scale_of(amax);
            // By the reciprocal, which is exact: of 2^121 at most, as bf16 is, or NaN.
            float factor = scale == 0xFF ? float_of(NAN_BITS) : float_of((254u - scale) << 23);
            y.codes[pair / top_k * y.stride + pair % top_k * inter + unit] = e4m3_from_f32(own[c] * factor);
            if (unit % 32 == 0) y.scales[(u64)pair * (inter / 32) + block] = scale;
        }
    };
    make_up<F>(d, gates, ups, x, w1, w3, rows, store);
}

#define EXPERT_UP(FORM)                                                                                                 \
    (const __grid_constant__ TensorMap gates, const __grid_constant__ TensorMap ups, View x, View weight, View w1,     \
     View w3, View y, View rows, u64 total, u64 first, u64 local, u64 top_k, u64 hidden, u64 inter, float limit) {     \
        expert_up<FORM>(&gates, &ups, x, weight, w1, w3, y, rows,                                  \
                                            {total, first, local, top_k, hidden, inter}, limit);                       \
    }

KERNEL(moe_expert_up__grouped_8, tiles::Wide8::THREADS) EXPERT_UP(tiles::Wide8)
KERNEL(moe_expert_up__grouped_16, tiles::Wide16::THREADS) EXPERT_UP(tiles::Wide16)
KERNEL(moe_expert_up__grouped_32, tiles::Wide32::THREADS) EXPERT_UP(tiles::Wide32)
KERNEL(moe_expert_up__grouped_48, tiles::Wide48::THREADS) EXPERT_UP(tiles::Wide48)
KERNEL(moe_expert_up__grouped_80, tiles::Wide80::THREADS) EXPERT_UP(tiles::Wide80)
