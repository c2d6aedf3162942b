// One block of values to codes and a scale, by one thread. The values are read twice instead of kept, so
// that blocks of any length need no local memory.
#pragma once
#include "block.cuh"
#include "view.cuh"

// The scale rules of device/block.cuh by number; the host names the same ones.
enum Rule : u32 { FP8_UE8M0 = 0, MXFP4_UE8M0 = 1, NVFP4_E4M3 = 2, FP8_F32 = 3 };

// Whether a byte holds two codes.
DEVICE bool is_packed(u32 rule) { return rule == MXFP4_UE8M0 || rule == NVFP4_E4M3; }
// Bytes of `count` codes.
DEVICE u64 code_bytes(u32 rule, u64 count) { return is_packed(rule) ? count / 2 : count; }
// Bytes of a scale.
DEVICE u64 scale_bytes(u32 rule) { return rule == FP8_F32 ? 4 : 1; }

// Writes the scale that belongs to `amax` and returns its value.
DEVICE float store_scale(u32 rule, float amax, u8 *scale) {
    if (rule == FP8_F32) {
        float value = fp8_f32_scale(amax);
        store_bytes(scale, bits_of(value));
        return value;
    }
    if (rule == NVFP4_E4M3) {
        *scale = nvfp4_scale(amax);
        return e4m3_to_f32(*scale);
    }
    *scale = rule == FP8_UE8M0 ? fp8_scale(amax) : mxfp4_scale(amax);
    return ue8m0_to_f32(*scale);
}

// `value(i)` is element i of `count`; a packed rule takes an even count.
template <typename Value> DEVICE void quantise(u32 rule, const Value &value, u32 count, u8 *codes, u8 *scale) {
    u32 amax = 0;
    for (u32 i = 0; i < count; i++) {
        u32 bits = magnitude_of(value(i));
        amax = bits > amax ? bits : amax;
    }
    float divisor = store_scale(rule, float_of(amax), scale);
    bool packed = is_packed(rule);
    u8 even = 0;
    // One division for all rules: each copy of it costs registers.
    for (u32 i = 0; i < count; i++) {
        float unit = quotient(value(i), divisor);
        if (!packed) {
            codes[i] = e4m3_from_f32(unit);
        } else if (i % 2 == 0) {
            even = e2m1_from_f32(unit);
        } else {
            codes[i / 2] = e2m1_pack(even, e2m1_from_f32(unit));
        }
    }
}
