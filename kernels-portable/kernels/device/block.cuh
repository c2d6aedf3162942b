// Scale choices: how a block of values becomes small codes and one scale. All arithmetic is IEEE f32 with
// subnormals; an element is divided by the scale as stored, by a true division. A block with a NaN or an
// infinity gets a NaN scale. `amax` is the largest magnitude of the block, NaN when any is NaN.
#pragma once
#include "e2m1.cuh"
#include "e4m3.cuh"
#include "ue8m0.cuh"

constexpr float FP8_FLOOR = 1e-4f;
constexpr float MXFP4_FLOOR = 6.0f * 1.17549435e-38f;
constexpr float NVFP4_FLOOR = 6.0f / 512.0f;

// `amax`, raised to `floor`; NaN stays.
DEVICE float floored(float amax, float floor) { return amax < floor ? floor : amax; }

// UE8M0 scale of an FP8 block: the smallest power of two not below max(amax, 1e-4) * (1/448).
DEVICE u8 fp8_scale(float amax) { return ue8m0_round_up(floored(amax, FP8_FLOOR) * (1.0f / 448.0f)); }

// UE8M0 scale of an MXFP4 block: the smallest power of two not below max(amax, 6 * 2^-126) * (1/6).
DEVICE u8 mxfp4_scale(float amax) { return ue8m0_round_up(floored(amax, MXFP4_FLOOR) * (1.0f / 6.0f)); }

// E4M3 scale of an NVFP4 block: the code nearest to max(amax, 6 * 2^-9) / 6.
DEVICE u8 nvfp4_scale(float amax) {
    return is_finite(amax) ? e4m3_from_f32(quotient(floored(amax, NVFP4_FLOOR), 6.0f)) : (u8)0x7F;
}

// f32 scale of an FP8 block: max(amax, 1e-4) / 448.
DEVICE float fp8_f32_scale(float amax) {
    return is_finite(amax) ? quotient(floored(amax, FP8_FLOOR), 448.0f) : float_of(NAN_BITS);
}
