// The order of every choice as a number: the larger key is better, of equal keys the lower place, and a NaN is
// behind every number. No two places have the same number, so a choice is the numbers above some other one.
#pragma once
#include "number.cuh"

// Better than every key at every place.
constexpr u64 BEST = 0xFFFFFFFFFFFFFFFFull;

// Where a key stands whatever its place: NaN below everything, both zeros alike.
DEVICE u32 standing(float key) {
    u32 bits = bits_of(key == 0 ? 0.0f : key);
    u32 rising = bits >> 31 ? ~bits : bits | 0x80000000u;
    return is_nan(key) ? 0u : rising;
}

DEVICE u64 choice_of(float key, u32 place) { return (u64)standing(key) << 32 | (u32)~place; }

DEVICE u32 place_of(u64 choice) { return ~(u32)choice; }
