// Matrix products of one wave, operands as they lie in memory: rows of A and columns of B, each along k.
#include "device.h"

typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef int i32x8 __attribute__((ext_vector_type(8)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef short i16x4 __attribute__((ext_vector_type(4)));

DEVICE void store32(f32x16 c, float *d) {
    for (u32 r = 0; r < 16; r++) d[(r / 4 * 8 + lane() / 32 * 4 + r % 4) * 32 + lane() % 32] = c[r];
}

DEVICE void store16(f32x4 c, float *d) {
    for (u32 r = 0; r < 4; r++) d[(lane() / 16 * 4 + r) * 16 + lane() % 16] = c[r];
}

KERNEL(64) bf16_32x32x8(const i16x4 *a, const i16x4 *b, float *d) {
    u32 at = lane() % 32 * 2 + lane() / 32;
    f32x16 c = {};
    store32(__builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a[at], b[at], c, 0, 0, 0), d);
}

KERNEL(64) bf16_16x16x16(const i16x4 *a, const i16x4 *b, float *d) {
    u32 at = lane() % 16 * 4 + lane() / 16;
    f32x4 c = {};
    store16(__builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a[at], b[at], c, 0, 0, 0), d);
}

KERNEL(64) fp8_32x32x16(const long *a, const long *b, float *d) {
    u32 at = lane() % 32 * 2 + lane() / 32;
    f32x16 c = {};
    store32(__builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(a[at], b[at], c, 0, 0, 0), d);
}

#ifdef __gfx950__
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef int i32x2 __attribute__((ext_vector_type(2)));

// FP4 by FP4 with a scale for each 32.
KERNEL(64) fp4_32x32x64(const u32x4 *a, const u32x4 *b, const u8 *sa, const u8 *sb, float *d) {
    u32 at = lane() % 32 * 2 + lane() / 32;
    u32x4 x = a[at], y = b[at];
    i32x8 wide_x = {(int)x.x, (int)x.y, (int)x.z, (int)x.w}, wide_y = {(int)y.x, (int)y.y, (int)y.z, (int)y.w};
    f32x16 c = {};
    store32(__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(wide_x, wide_y, c, 4, 4, 0, sa[at], 0, sb[at]), d);
}

// The same with scales that are one byte of a word: of A the second, of B the third.
KERNEL(64) fp4_scale_bytes(const u32x4 *a, const u32x4 *b, const u32 *sa, const u32 *sb, float *d) {
    u32 at = lane() % 32 * 2 + lane() / 32;
    u32x4 x = a[at], y = b[at];
    i32x8 wide_x = {(int)x.x, (int)x.y, (int)x.z, (int)x.w}, wide_y = {(int)y.x, (int)y.y, (int)y.z, (int)y.w};
    f32x16 c = {};
    store32(__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(wide_x, wide_y, c, 4, 4, 1, sa[at], 2, sb[at]), d);
}

// FP8 by FP4, which lie in different orders: FP8 in two runs of 16 a lane.
KERNEL(64) fp8_fp4_32x32x64(const u32x4 *a, const u32x4 *b, const u8 *sa, const u8 *sb, float *d) {
    u32 row = lane() % 32, half = lane() / 32, at = row * 2 + half;
    u32x4 low = a[row * 4 + half], high = a[row * 4 + 2 + half], y = b[at];
    i32x8 wide_x = {(int)low.x, (int)low.y, (int)low.z, (int)low.w, (int)high.x, (int)high.y, (int)high.z, (int)high.w};
    i32x8 wide_y = {(int)y.x, (int)y.y, (int)y.z, (int)y.w};
    f32x16 c = {};
    store32(__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(wide_x, wide_y, c, 0, 4, 0, sa[at], 0, sb[at]), d);
}

// Reads that transpose: bytes, 4-bit elements, and shorts.
KERNEL(64) columns(const u32x2 *x, u32x2 *bytes, u32x2 *nibbles, u32x2 *shorts) {
    SHARED u32x2 tile[64];
    tile[thread()] = x[thread()];
    barrier();
    typedef __attribute__((address_space(3))) i32x2 Tile;
    bytes[thread()] = __builtin_bit_cast(u32x2, __builtin_amdgcn_ds_read_tr8_b64_v2i32((Tile *)&tile[thread()]));
    nibbles[thread()] = __builtin_bit_cast(u32x2, __builtin_amdgcn_ds_read_tr4_b64_v2i32((Tile *)&tile[thread()]));
    typedef __attribute__((address_space(3))) i16x4 Shorts;
    shorts[thread()] = __builtin_bit_cast(u32x2, __builtin_amdgcn_ds_read_tr16_b64_v4i16((Shorts *)&tile[thread()]));
}
#endif
