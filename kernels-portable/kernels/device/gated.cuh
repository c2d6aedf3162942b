// The clamped gated unit, (g sigmoid(g)) u w, before rounding. The gate has no lower clamp; a limit of 0 means none;
// NaN passes, as it compares with nothing.
#pragma once
#include "bf16.cuh"

DEVICE double gated_unit(float gate, float up, float limit, double weight) {
    if (limit > 0) {
        gate = gate > limit ? limit : gate;
        up = up > limit ? limit : up;
        up = up < -limit ? -limit : up;
    }
    double g = gate, u = up;
    return g * (1.0 / (1.0 + exp(-g))) * u * weight;
}

// 1 / (1 + exp(-g)) to some units of f32.
DEVICE float near_sigmoid(float g) {
    constexpr float LOG2_E = 1.44269504f, LOG2_E_REST = 1.92596303e-8f, LN_2 = 0.693147181f;
    float exponent = -g * LOG2_E, rest = fmaf(-g, LOG2_E_REST, fmaf(-g, LOG2_E, -exponent));
    float power = near_power(exponent);
    return near_reciprocal(1.0f + fmaf(power, rest * LN_2, power));
}

// bf16_result(gated_unit(…)), by f32 where that is sure to round alike: its error is below 2^-20, 16 of the units that
// rounding cuts off.
DEVICE u16 gated_result(float gate, float up, float limit, float weight) {
    float g = gate, u = up;
    if (limit > 0) {
        g = g > limit ? limit : g;
        u = u > limit ? limit : u;
        u = u < -limit ? -limit : u;
    }
    u32 bits = bits_of(g * near_sigmoid(g) * u * weight), exponent = bits >> 23 & 0xFF, cut = bits & 0xFFFF;
    bool sure = exponent - 40 < 200 && (cut < 0x8000 - 64 || cut > 0x8000 + 64);
    if (sure) return (u16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    return bf16_result(gated_unit(gate, up, limit, weight));
}
