// gemm.grouped on Hopper for decoding, see device/narrow_tiles.cuh: codes are expanded in registers to the bf16 that they
// mean with their scales, and sums of 32 columns are added in f32.
// SASS: HGMMA UTMALDG
#include "../device/band_codes.cuh"
#include "../device/bf16_columns.cuh"
#include "../device/narrow_tiles.cuh"

// Of a scale's code what goes into the bf16, which are 2^-120 without; the rest, beyond 2^7, is left to the sums.
constexpr u32 FROM = 120, MOST = 254 - FROM;
DEVICE u32 factors_of_code(u32 code) {
    u32 one = code == 0xFF ? NAN_BITS >> 16 : ((code < MOST ? code : MOST) + FROM) << 7;
    return one << 16 | one;
}
DEVICE float rest_of_code(u32 code) { return float_of((code == 0xFF || code < MOST ? 127 : code - MOST + 127) << 23); }

template <u32 TOKENS> struct GroupedKind {
    static constexpr bool CHAINED = false, HAS_FAR = false;
    struct Fragment {
        u32 of[2][4];
    };
    const narrow::Room<TOKENS> &room;
    const narrow::Shape &d;
    const narrow::Part &part;
    const View &x, &weight, &y;
    // Scales of this warp's band of the next tile, and of the one at hand.
    u32 codes[2], own[2];
    // Of the rows of this thread's fragment what shows NaN.
    u32 nans[2];

    DEVICE void prepare() const {
        u32 left = d.tokens - part.from;
        u64 row = (u64)part.from * gridDim.z + blockIdx.z;
        Bf16Rows rows = {row_of<const u16>(x, row), x.stride * gridDim.z, left < TOKENS ? left : TOKENS, d.k,
                         part.stages.first * STAGE_BLOCKS, part.own * STAGE_BLOCKS};
        bring_rows<TOKENS, narrow::WORKERS<TOKENS>, true>(rows, room.x, part.first_tile);
    }

    DEVICE void next(u32 tile) {
        u32 band = (part.first_row + tile * narrow::ROWS) / 32 + threadIdx.x % narrow::GANG / 64;
        BandCodes{weight, band, d.n * gridDim.z, d.k / 32, part.stages}.load(codes);
    }
    DEVICE void open(u32) {
#pragma unroll
        for (u32 i = 0; i < 2; i++) own[i] = codes[i], nans[i] = 0;
    }
    DEVICE void load(Fragment &a, const u8 *slot, u32 of_part, u32 block) {
        const u8 *at = slot + fragment_place(block);
        u32 factor = factors_of_code(of_block(own, of_part));
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            Words<2> codes = *(const Words<2> *)(at + h * 1024);
            nans[h] |= nans_of_e4m3(codes.of[0]) | nans_of_e4m3(codes.of[1]);
            widen_to_bf16(a.of, h, codes, factor);
        }
    }
    template <bool FIRST, int HELD> DEVICE void multiply(float (&some)[HELD], const Fragment &a, u64 x) const {
        if constexpr (FIRST) mma_bf16(some, a.of[0], x);
        else mma_bf16_add(some, a.of[0], x);
        mma_bf16_add(some, a.of[1], x + 2);
    }
    template <int HELD> DEVICE void add(float (&sum)[HELD], const float (&some)[HELD], u32 of_part) const {
        float rest = rest_of_code(of_block(own, of_part));
#pragma unroll
        for (u32 i = 0; i < HELD; i++) sum[i] = fmaf(some[i], rest, sum[i]);
    }
    // The four threads of a row have its columns between them.
    template <int HELD> DEVICE void close(float (&sum)[HELD]) const {
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            u32 any = nans[h];
            any |= __shfl_xor_sync(ALL_LANES, any, 1);
            any |= __shfl_xor_sync(ALL_LANES, any, 2);
            if ((any & 0x80808080u) == 0) continue;
#pragma unroll
            for (u32 i = 0; i < HELD; i += 4) sum[i + 2 * h] = sum[i + 2 * h + 1] = float_of(NAN_BITS);
        }
    }
    DEVICE void store(u32 token, u32 output, float sum) const {
        row_of<u16>(y, (u64)token * gridDim.z + blockIdx.z)[output] = bf16_result(sum);
    }
};

template <u32 TOKENS>
DEVICE void grouped(const TensorMap *map, const View &x, const View &weight, const View &y, const narrow::Shape &d) {
    auto make = [&](const narrow::Room<TOKENS> &room, const narrow::Part &part) {
        return GroupedKind<TOKENS>{room, d, part, x, weight, y};
    };
    narrow::run<TOKENS>(map, d, make);
}

#define GROUPED(TOKENS)                                                                                                \
    (const __grid_constant__ TensorMap map, View x, View weight, View y, u32 n, u32 k, u32 tokens, u32 parts,          \
     u32 slots) {                                                                                                      \
        grouped<TOKENS>(&map, x, weight, y, {n, k, tokens, parts, slots});                                             \
    }

KERNEL(gemm_grouped__narrow_8, narrow::THREADS<8>) GROUPED(8)
KERNEL(gemm_grouped__narrow_16, narrow::THREADS<16>) GROUPED(16)
KERNEL(gemm_grouped__narrow_32, narrow::THREADS<32>) GROUPED(32)
