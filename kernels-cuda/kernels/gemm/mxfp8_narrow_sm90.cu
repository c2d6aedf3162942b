// gemm.mxfp8 on Hopper for decoding, see device/narrow_tiles.cuh: codes of both sides are expanded to f16, of the weight in
// registers, of x once in shared memory, with their scales as far as they differ (device/f16_blocks.cuh).
// SASS: HGMMA UTMALDG
#include "../device/f16_blocks.cuh"
#include "../device/narrow_tiles.cuh"

template <u32 TOKENS> struct Mxfp8Kind {
    static constexpr bool CHAINED = true, HAS_FAR = true;
    struct Fragment {
        u32 of[2][4];
    };
    const narrow::Room<TOKENS> &room;
    const narrow::Shape &d;
    const narrow::Part &part;
    const Rows rows;
    const View &weight, &y;
    // Of this warp's band of the next tile, and of the one at hand.
    u32 codes[2], factors[2], unit;

    DEVICE void prepare() const {
        constexpr u32 WORKERS = narrow::WORKERS<TOKENS>;
        Widening<TOKENS, WORKERS> widening(rows, part.first_tile);
        widening.load(threadIdx.x);
        measure<TOKENS, WORKERS / 32>(rows, room.unit);
        some_sync(narrow::ALL_WORKERS, WORKERS);
        widening.finish(room.unit, room.x);
    }

    DEVICE BandCodes band_of(u32 tile) const {
        return {weight, tile * 2 + threadIdx.x % narrow::GANG / 64, d.n, rows.blocks, part.stages};
    }
    DEVICE void next(u32 tile) { band_of(tile).load(codes); }
    DEVICE void open(u32 tile) {
        unit = unit_of_band(band_of(tile), codes);
#pragma unroll
        for (u32 i = 0; i < 2; i++) factors[i] = factors_of(codes[i], unit);
    }
    DEVICE void load(Fragment &a, const u8 *slot, u32 of_part, u32 block) const {
        const u8 *at = slot + fragment_place(block);
        u32 factor = of_block(factors, of_part);
        widen(a.of, 0, *(const Words<2> *)at, factor);
        widen(a.of, 1, *(const Words<2> *)(at + 1024), factor);
    }
    template <bool FIRST, int HELD> DEVICE void multiply(float (&some)[HELD], const Fragment &a, u64 x) const {
        if constexpr (FIRST) mma_f16(some, a.of[0], x);
        else mma_f16_add(some, a.of[0], x);
        mma_f16_add(some, a.of[1], x + 2);
    }
    template <int HELD> DEVICE void close(float (&sum)[HELD]) const {
        u32 thread = forgotten(threadIdx.x);
#pragma unroll
        for (u32 i = 0; i < HELD; i++) {
            u32 other = room.unit[narrow::token_of(thread, i)];
            bool far = is_wild_unit(unit) || is_wild_unit(other);
            sum[i] = far ? float_of(narrow::FAR_BITS) : sum[i] * (unit_of(other) * unit_of(unit));
        }
    }
    DEVICE void store(u32 token, u32 output, float sum) const { row_of<u16>(y, token)[output] = bf16_result(sum); }
    DEVICE float far(u32 token, u32 output) const { return far_sum(rows.x, weight, token, output, rows.blocks); }
};

template <u32 TOKENS>
DEVICE void mxfp8(const TensorMap *map, const View &x, const View &weight, const View &y, const narrow::Shape &d) {
    auto make = [&](const narrow::Room<TOKENS> &room, const narrow::Part &part) {
        u32 left = d.tokens - part.from;
        Rows rows = {x, part.from, left < TOKENS ? left : TOKENS, d.k / 32, part.stages.first * STAGE_BLOCKS,
                     part.own * STAGE_BLOCKS};
        return Mxfp8Kind<TOKENS>{room, d, part, rows, weight, y};
    };
    narrow::run<TOKENS>(map, d, make);
}

#define MXFP8(TOKENS)                                                                                                  \
    (const __grid_constant__ TensorMap map, View x, View weight, View y, u32 n, u32 k, u32 tokens, u32 parts,          \
     u32 slots) {                                                                                                      \
        mxfp8<TOKENS>(&map, x, weight, y, {n, k, tokens, parts, slots});                                               \
    }

KERNEL(gemm_mxfp8__narrow_8, narrow::THREADS<8>) MXFP8(8)
KERNEL(gemm_mxfp8__narrow_16, narrow::THREADS<16>) MXFP8(16)
KERNEL(gemm_mxfp8__narrow_32, narrow::THREADS<32>) MXFP8(32)
