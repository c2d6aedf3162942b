// gemm.bf16 on Hopper for decoding, see device/narrow_tiles.cuh: the units read both operands from shared memory, and sums
// of 32 columns are added in f32.
// SASS: HGMMA UTMALDG
#include "../device/bf16_columns.cuh"
#include "../device/narrow_tiles.cuh"

template <u32 TOKENS> struct Bf16Kind {
    static constexpr u32 BLOCKS = 2;
    static constexpr bool IN_REGISTERS = false, ALWAYS_NEAR = true;
    typedef u64 Fragment;
    const narrow::Room<TOKENS> &room;
    const narrow::Shape &d;
    const narrow::Part &part;
    const View &x, &bias, &y;
    bool near_x;

    DEVICE bool prepare() const {
        u32 left = d.tokens - part.from;
        Bf16Rows rows = {row_of<const u16>(x, part.from), x.stride, left < TOKENS ? left : TOKENS, d.k,
                         part.stages.first * BLOCKS, part.own * BLOCKS};
        bring_rows<TOKENS, narrow::WORKERS, false>(rows, room.x, part.first_tile);
        return true;
    }

    DEVICE void load(Fragment &a, const u8 *slot, u32, u32 block) const { a = operand_128(slot) + block * 4; }
    template <int HELD> DEVICE void multiply(float (&some)[HELD], const Fragment &a, u64 x) const {
        mma_bf16(some, a, x);
        mma_bf16_add(some, a + 2, x + 2);
    }
    DEVICE narrow::Four scales_of(u32) const { return {}; }
    template <int HELD> DEVICE void add(float (&sum)[HELD], const float (&some)[HELD], float) const {
#pragma unroll
        for (u32 i = 0; i < HELD; i++) sum[i] += some[i];
    }
    DEVICE void next(u32) {}
    DEVICE bool is_near(u32, u32) const { return true; }
    template <int HELD> DEVICE void close(float (&)[HELD], bool) const {}
    DEVICE static u32 row_of_eight(u32 lane) { return lane / 4; }
    DEVICE void store(u32 token, u32 output, float total) const {
        if (bias.codes) total += bf16_to_f32(row_of<const u16>(bias, 0)[output]);
        row_of<u16>(y, token)[output] = bf16_from_f32(total);
    }
};

template <u32 TOKENS>
DEVICE void bf16(const TensorMap *map, const View &x, const View &bias, const View &y, const narrow::Shape &d) {
    auto make = [&](const narrow::Room<TOKENS> &room, const narrow::Part &part) {
        return Bf16Kind<TOKENS>{room, d, part, x, bias, y};
    };
    narrow::run<TOKENS, Bf16Kind<TOKENS>::BLOCKS>(map, d, make);
}

#define BF16(TOKENS)                                                                                                   \
    (const __grid_constant__ TensorMap map, View x, View bias, View y, u32 n, u32 k, u32 tokens, u32 parts,            \
     u32 slots) {                                                                                                      \
        bf16<TOKENS>(&map, x, bias, y, {n, k, tokens, parts, slots});                                                  \
    }

KERNEL(gemm_bf16__narrow_8, narrow::THREADS<8>, narrow::REGISTERS) BF16(8)
KERNEL(gemm_bf16__narrow_16, narrow::THREADS<16>, narrow::REGISTERS) BF16(16)
KERNEL(gemm_bf16__narrow_32, narrow::THREADS<32>, narrow::REGISTERS) BF16(32)
KERNEL(gemm_bf16__narrow_64, narrow::THREADS<64>) BF16(64)
