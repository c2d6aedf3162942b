// Single products of a warpgroup on given numbers, whose bits a board's are recorded and the emulator's are compared with.
// Tests use them; no operator does.
//
// SASS: QGMMA HGMMA
#include "../device/hopper.cuh"

// Both formats have 32 bytes of columns in a product.
constexpr u32 DEPTH_BYTES = 32, ROWS = 64, COLUMNS = 8, TILE_BYTES = COLUMNS * 128;

// d = c + a b^T of one case a block: `a` of 64 rows, `b` of 8, `c` and `d` of 64 rows of 8.
template <typename Product>
DEVICE void product(const u8 *a, const u8 *b, const float *c, float *d, const Product &multiply) {
    DYNAMIC_SHARED(tile);
    a += blockIdx.x * ROWS * DEPTH_BYTES, b += blockIdx.x * COLUMNS * DEPTH_BYTES;
    c += blockIdx.x * ROWS * COLUMNS, d += blockIdx.x * ROWS * COLUMNS;
    for (u32 i = threadIdx.x; i < TILE_BYTES; i += 128) {
        u32 row = i / 128, byte = i % 128;
        tile[i ^ (i >> 3 & 0x70)] = byte < DEPTH_BYTES ? b[row * DEPTH_BYTES + byte] : 0;
    }
    async_fence();
    __syncthreads();
    u32 lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    u32 fragment[4];
    float sum[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        fragment[i] = *(const u32 *)(a + (row + i % 2 * 8) * DEPTH_BYTES + i / 2 * 16 + lane % 4 * 4);
        sum[i] = c[(row + i / 2 * 8) * COLUMNS + lane % 4 * 2 + i % 2];
    }
    mma_fence();
    multiply(sum, fragment, operand_128(tile));
    mma_commit();
    mma_wait<0>();
    mma_hold(sum);
#pragma unroll
    for (u32 i = 0; i < 4; i++) d[(row + i / 2 * 8) * COLUMNS + lane % 4 * 2 + i % 2] = sum[i];
}

typedef float Sum[4];
typedef u32 Fragment[4];

KERNEL(probe_products__e4m3, 128)(const u8 *a, const u8 *b, const float *c, float *d) {
    product(a, b, c, d, [](Sum &sum, const Fragment &x, u64 y) { mma_e4m3_add(sum, x, y); });
}
KERNEL(probe_products__bf16, 128)(const u8 *a, const u8 *b, const float *c, float *d) {
    product(a, b, c, d, [](Sum &sum, const Fragment &x, u64 y) { mma_bf16_add(sum, x, y); });
}
KERNEL(probe_products__f16, 128)(const u8 *a, const u8 *b, const float *c, float *d) {
    product(a, b, c, d, [](Sum &sum, const Fragment &x, u64 y) { mma_f16_add(sum, x, y); });
}
