// One block of values to codes and a scale, by a warp, whose lanes take the values in turn.
#pragma once
#include "block.cuh"
#include "lanes.cuh"
#include "view.cuh"

// The scale rules of device/block.cuh by number; the host names the same ones.
enum Rule : u32 { FP8_UE8M0 = 0, MXFP4_UE8M0 = 1, NVFP4_E4M3 = 2, FP8_F32 = 3 };

// Whether a byte holds two codes.
DEVICE bool is_packed(u32 rule) { return rule == MXFP4_UE8M0 || rule == NVFP4_E4M3; }
// Bytes of `count` codes.
DEVICE u64 code_bytes(u32 rule, u64 count) { return is_packed(rule) ? count / 2 : count; }
// Bytes of a scale.
DEVICE u64 scale_bytes(u32 rule) { return rule == FP8_F32 ? 4 : 1; }

// The scale that belongs to `amax`, written by the one who `writes`, and its value.
DEVICE float store_scale(u32 rule, float amax, u8 *scale, bool writes) {
    if (rule == FP8_F32) {
        float value = fp8_f32_scale(amax);
        if (writes) store_bytes(scale, bits_of(value));
        return value;
    }
    u8 code = rule == NVFP4_E4M3 ? nvfp4_scale(amax) : rule == FP8_UE8M0 ? fp8_scale(amax) : mxfp4_scale(amax);
    if (writes) *scale = code;
    return rule == NVFP4_E4M3 ? e4m3_to_f32(code) : ue8m0_to_f32(code);
}

// `value(i)` is element i of `count`; a packed rule takes an even count. The values of a block of more than a warp are
// asked for twice instead of kept, so that blocks of any length need no memory.
template <typename Value> DEVICE void quantise(u32 rule, const Value &value, u32 count, u8 *codes, u8 *scale) {
    u32 lane = threadIdx.x % 32, amax = 0;
    float x = 0;
    for (u32 i = lane; i < count; i += 32) {
        x = value(i);
        amax = magnitude_of(x) > amax ? magnitude_of(x) : amax;
    }
    float divisor = store_scale(rule, float_of(__reduce_max_sync(ALL_LANES, amax)), scale, lane == 0);
    for (u32 first = 0; first < count; first += 32) {
        u32 i = first + lane;
        if (count > 32) x = i < count ? value(i) : 0.0f;
        float unit = quotient(x, divisor);
        if (!is_packed(rule)) {
            if (i < count) codes[i] = e4m3_from_f32(unit);
            continue;
        }
        u32 even = e2m1_from_f32(unit), odd = __shfl_down_sync(ALL_LANES, even, 1);
        if (i < count && i % 2 == 0) codes[i / 2] = e2m1_pack((u8)even, (u8)odd);
    }
}
