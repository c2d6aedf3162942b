// The order of every choice as a number: the larger key is better, of equal keys the lower place, and a NaN is
// behind every number. No two places have the same number, so a choice is the numbers above some other one.
#pragma once
#include "number.cuh"

// Better than every key at every place.
constexpr u64 BEST = 0xFFFFFFFFFFFFFFFFull;

DEVICE u64 choice_of(float key, u32 place) {
    u32 bits = bits_of(key == 0 ? 0.0f : key);
    u32 rising = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (u64)(is_nan(key) ? 0u : rising) << 32 | (u32)~place;
}

DEVICE u32 place_of(u64 choice) { return ~(u32)choice; }
