// A host's C++, by the names of device/number.cuh.
#pragma once
#include "cuda.h"

#define DEVICE inline
#define KERNEL(name, ...) static void name

// One launch ends before the next.
DEVICE void begin() {}

DEVICE u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }

DEVICE float larger(float x, float y) { return x != x || y > x ? y : x; }
DEVICE float root_reciprocal(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
DEVICE float quotient(float x, float y) { return x / y; }
DEVICE float towards_zero(double x) {
    float cut = (float)x;
    double wide = cut;
    if ((wide < 0 ? -wide : wide) > (x < 0 ? -x : x)) cut = float_of(bits_of(cut) - 1);
    return cut;
}

DEVICE double near_reciprocal(double x) { return 1.0 / x; }
DEVICE float near_reciprocal(float x) { return 1.0f / x; }
DEVICE float near_power(float x) { return exp2f(x); }

// One rank runs after the other, where no wait has an end: it has no patience.
DEVICE void fence_system() {}
DEVICE void store_release(u64 *to, u64 word) { *to = word; }
DEVICE u64 load_acquire(const u64 *from) { return *from; }
DEVICE u64 clock_ns() {
    static u64 now = 0;
    return now += 1ull << 62;
}
