// FP4 as codes of gfx942's FP8, exactly: by a table of eight bytes, which an instruction looks four codes up in.
#pragma once
#include "fnuz.h"

DEVICE u32 permuted(u32 high, u32 low, u32 bytes) { return __builtin_amdgcn_perm(high, low, bytes); }

// Codes of the eight magnitudes with signs, the least four and the others. Zero has none, as that code is NaN.
struct Fp4Table {
    u32 low, high;
};
constexpr Fp4Table FP4_VALUES = {0xC4C0B800u, 0xD4D0CCC8u};

// Those of the values times 2^power, from -6 to 5: the exponents of all codes have room for it.
DEVICE Fp4Table fp4_times(i32 power) {
    return {FP4_VALUES.low + (u32)power * 0x08080800u, FP4_VALUES.high + (u32)power * 0x08080808u};
}

// Codes of four magnitudes in bytes, with the signs that stand in the upper bits of `signs`.
DEVICE u32 fnuz_of_magnitudes(const Fp4Table &table, u32 magnitudes, u32 signs) {
    return permuted(table.high, table.low, magnitudes) & (signs | MAGNITUDES);
}

// Codes of COUNT words of eight, in their order.
template <int COUNT> DEVICE Words<2 * COUNT> fnuz_of_e2m1(const Words<COUNT> &codes, const Fp4Table &table = FP4_VALUES) {
    Words<2 * COUNT> made;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        u32 word = codes.of[i];
        u32 even = fnuz_of_magnitudes(table, word & 0x07070707u, word << 4);
        u32 odd = fnuz_of_magnitudes(table, word >> 4 & 0x07070707u, word);
        made.of[2 * i] = permuted(odd, even, 0x05010400u), made.of[2 * i + 1] = permuted(odd, even, 0x07030602u);
    }
    return made;
}
