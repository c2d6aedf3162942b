// The clamped gated unit, (g sigmoid(g)) u w, before rounding. The gate has no lower clamp; a limit of 0 means none;
// NaN passes, as it compares with nothing.
#pragma once
#include "number.cuh"

DEVICE double gated_unit(float gate, float up, float limit, double weight) {
    if (limit > 0) {
        gate = gate > limit ? limit : gate;
        up = up > limit ? limit : up;
        up = up < -limit ? -limit : up;
    }
    double g = gate, u = up;
    return g * (1.0 / (1.0 + exp(-g))) * u * weight;
}
