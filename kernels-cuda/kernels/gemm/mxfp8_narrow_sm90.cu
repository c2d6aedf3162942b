// gemm.mxfp8 on Hopper for decoding, see device/narrow_tiles.cuh: codes are expanded to f16 in registers, activations once
// in shared memory, with their scales as far as they differ (device/f16_blocks.cuh).
// SASS: HGMMA UTMALDG
#include "../device/band_scales.cuh"
#include "../device/f16_blocks.cuh"
#include "../device/narrow_tiles.cuh"

template <u32 TOKENS> struct Mxfp8Kind {
    static constexpr u32 BLOCKS = STAGE_BLOCKS;
    static constexpr bool IN_REGISTERS = true, ALWAYS_NEAR = false;
    struct Fragment {
        u32 of[2][4];
    };
    const narrow::Room<TOKENS> &room;
    const narrow::Shape &d;
    const narrow::Part &part;
    const Rows rows;
    const View &weight, &y;
    bool near_x;
    BandScales scales;

    DEVICE bool prepare() const {
        Widening<TOKENS, narrow::WORKERS> widening(rows, part.first_tile);
        widening.load(threadIdx.x);
        bool near = measure<TOKENS, narrow::WARPS>(rows, room.unit);
        some_sync(narrow::ALL_WORKERS, narrow::WORKERS);
        widening.finish(room.unit, room.x);
        return near;
    }

    DEVICE void load(Fragment &a, const u8 *slot, u32, u32 block) const {
        const u8 *at = slot + fragment_place(block);
        widen(a.of, 0, *(const Words<2> *)at);
        widen(a.of, 1, *(const Words<2> *)(at + 1024));
    }
    template <int HELD> DEVICE void multiply(float (&some)[HELD], const Fragment &a, u64 x) const {
        mma_f16(some, a.of[0], x);
        mma_f16_add(some, a.of[1], x + 2);
    }
    DEVICE narrow::Four scales_of(u32 stage) const { return scales.stage(room.scales, stage); }
    template <int HELD> DEVICE void add(float (&sum)[HELD], const float (&some)[HELD], float scale) const {
#pragma unroll
        for (u32 i = 0; i < HELD; i++) sum[i] = fmaf(some[i], scale, sum[i]);
    }
    DEVICE void add_far(float *sum, const float (&some)[4], u32 block, u32 first) const {
        u32 lane = forgotten(threadIdx.x % 32), token = first + lane % 8, unit = room.unit[token];
        u32 own = code_of_bits(scales.block(room.scales, block));
        // What is not there is zeros.
        u32 code = !is_wild_unit(unit) ? unit : rows.there(token, block) ? rows.scale(token, block) : 127;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 one = __shfl_sync(ALL_LANES, code, narrow::token_of(lane, i));
            sum[i] = promoted_far(sum[i], some[i], one, own);
        }
    }

    DEVICE void next(u32 tile) {
        u32 band = tile * 2 + threadIdx.x % narrow::GANG / 64;
        scales.load(weight, band, tile < part.tiles && band < (d.n + 31) / 32, rows.blocks, rows.first_block, rows.own);
    }
    DEVICE bool is_near(u32 gang, u32 round) {
        scales.show(room.scales, gang, round);
        bool near = near_x;
        for (u32 code : scales.codes) near &= is_tame_code(code) || code == 0xFF;
        return narrow::gang_agrees(gang, near);
    }
    template <int HELD> DEVICE void close(float (&sum)[HELD], bool near) const {
        if (!near) return;
        u32 thread = forgotten(threadIdx.x);
#pragma unroll
        for (u32 i = 0; i < HELD; i++) sum[i] *= unit_of(room.unit[narrow::token_of(thread, i)]);
    }
    DEVICE static u32 row_of_eight(u32 lane) { return fragment_row(lane); }
    DEVICE void store(u32 token, u32 output, float total) const {
        row_of<u16>(y, token)[output] = bf16_from_f32(total);
    }
};

template <u32 TOKENS>
DEVICE void mxfp8(const TensorMap *map, const View &x, const View &weight, const View &y, const narrow::Shape &d) {
    auto make = [&](const narrow::Room<TOKENS> &room, const narrow::Part &part) {
        u32 left = d.tokens - part.from;
        Rows rows = {x, part.from, left < TOKENS ? left : TOKENS, d.k / 32, part.stages.first * STAGE_BLOCKS,
                     part.own * STAGE_BLOCKS};
        return Mxfp8Kind<TOKENS>{room, d, part, rows, weight, y};
    };
    narrow::run<TOKENS, STAGE_BLOCKS>(map, d, make);
}

#define MXFP8(TOKENS)                                                                                                  \
    (const __grid_constant__ TensorMap map, View x, View weight, View y, u32 n, u32 k, u32 tokens, u32 parts,          \
     u32 slots) {                                                                                                      \
        mxfp8<TOKENS>(&map, x, weight, y, {n, k, tokens, parts, slots});                                               \
    }

KERNEL(gemm_mxfp8__narrow_8, narrow::THREADS<8>, narrow::REGISTERS) MXFP8(8)
KERNEL(gemm_mxfp8__narrow_16, narrow::THREADS<16>, narrow::REGISTERS) MXFP8(16)
KERNEL(gemm_mxfp8__narrow_32, narrow::THREADS<32>) MXFP8(32)
KERNEL(gemm_mxfp8__narrow_64, narrow::THREADS<64>) MXFP8(64)
