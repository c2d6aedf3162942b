// Arithmetic whose results are known on any machine: one value a thread.
#include "device.h"

KERNEL(256) quotients(const double *a, const double *b, double *q, float *p, u32 count) {
    u32 i = block() * 256 + thread();
    if (i >= count) return;
    q[i] = a[i] / b[i];
    p[i] = (float)a[i] / (float)b[i];
}

KERNEL(256) roots(const double *a, double *r, float *s, u32 count) {
    u32 i = block() * 256 + thread();
    if (i >= count) return;
    r[i] = __builtin_sqrt(a[i]);
    s[i] = __builtin_sqrtf((float)a[i]);
}

KERNEL(256) fused(const double *a, const double *b, const double *c, double *r, float *s, u32 count) {
    u32 i = block() * 256 + thread();
    if (i >= count) return;
    r[i] = __builtin_fma(a[i], b[i], c[i]) - __builtin_fma(-a[i], c[i], b[i]);
    s[i] = __builtin_fmaf((float)a[i], (float)b[i], (float)c[i]);
}

// Sixteen results of each pair.
KERNEL(256) integers(const u64 *a, const u64 *b, u64 *out, u32 count) {
    u32 i = block() * 256 + thread();
    if (i >= count) return;
    u64 x = a[i], y = b[i] | 1;
    u32 v = (u32)x, w = (u32)y;
    u64 *to = out + 16 * (u64)i;
    to[0] = x + y;
    to[1] = x - y;
    to[2] = x * y;
    to[3] = x / y;
    to[4] = x % y;
    to[5] = (u64)(v / w) << 32 | v % w;
    to[6] = (u32)((i32)v / ((i32)w | 1));
    to[7] = x << (y & 63) | x >> (y >> 6 & 63);
    to[8] = (u64)((i64)x >> (y & 63));
    to[9] = __builtin_popcountll(x) | (u64)(v ? __builtin_clz(v) : 32) << 8 | (u64)__builtin_ffs(w) << 16;
    to[10] = (i64)x < (i64)y ? x : y;
    to[11] = x < y ? x : y;
    to[12] = (u64)((__int128)(i64)x * (i64)y >> 64);
    to[13] = __builtin_bitreverse32(v) | (u64)__builtin_bswap32(w) << 32;
    to[14] = (u64)(u16)((u16)v * (u16)w + 3) | (u64)(u8)(v >> 8) << 16 | (u64)(u32)(int)(signed char)(w >> 3) << 32;
    to[15] = (v > w) + 2 * ((i32)v > (i32)w) + 4 * (x == y) + 8 * ((v & 0x10) != 0);
}

// Eight results of each number.
KERNEL(256) conversions(const double *a, u64 *out, u32 count) {
    u32 i = block() * 256 + thread();
    if (i >= count) return;
    double x = a[i];
    float f = (float)x;
    u64 *to = out + 8 * (u64)i;
    to[0] = __builtin_bit_cast(u32, f);
    to[1] = (u64)(i64)(f > -9e18f && f < 9e18f ? f : 0.0f);
    to[2] = (u32)(i32)(x > -2e9 && x < 2e9 ? x : 7.0);
    to[3] = __builtin_bit_cast(u16, (_Float16)f);
    to[4] = __builtin_bit_cast(u64, (double)(i64)(x > -9e18 && x < 9e18 ? x : 0.0));
    to[5] = __builtin_bit_cast(u64, __builtin_rint(x)) ^ __builtin_bit_cast(u64, __builtin_floor(x));
    to[6] = __builtin_bit_cast(u64, __builtin_fmax(x, 1.0)) + __builtin_bit_cast(u32, __builtin_fminf(f, -2.0f));
    to[7] = __builtin_isnan(x) + 2 * __builtin_isinf(x) + 4 * (x < 0) + 8 * !(f >= 1.0f) + 16 * (f != f);
}
