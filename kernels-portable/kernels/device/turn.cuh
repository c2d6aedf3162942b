// Rotations of pairs. Sine and cosine are those of the f32 angle, reduced without loss, in f64, then rounded
// to f32; only sums, products and fused steps, so that every machine gets the same bits.
#pragma once
#include "number.cuh"

// Frequencies of a launch, made on the host.
struct Frequencies {
    float of[256];
};

struct Turn {
    float cos, sin;
};

// Of an angle of at most 2^31. The multiple of pi/2 comes off in three parts: the first step is exact, since
// its result is a multiple of the last place of pi/2 and below one.
DEVICE Turn turn_of(float angle) {
    double turns = rint((double)angle * 0.63661977236758134);
    double r = fma(-turns, 1.5707963267948966, (double)angle);
    r = fma(-turns, 6.123233995736766e-17, r);
    r = fma(-turns, -1.4973849048591833e-33, r);
    // Taylor's series, until a term is below the last place at pi/4.
    double z = r * r, s = 1.0 / 355687428096000, c = 1.0 / 20922789888000;
    s = fma(s, z, -1.0 / 1307674368000), c = fma(c, z, -1.0 / 87178291200);
    s = fma(s, z, 1.0 / 6227020800), c = fma(c, z, 1.0 / 479001600);
    s = fma(s, z, -1.0 / 39916800), c = fma(c, z, -1.0 / 3628800);
    s = fma(s, z, 1.0 / 362880), c = fma(c, z, 1.0 / 40320);
    s = fma(s, z, -1.0 / 5040), c = fma(c, z, -1.0 / 720);
    s = fma(s, z, 1.0 / 120), c = fma(c, z, 1.0 / 24);
    s = fma(s, z, -1.0 / 6), c = fma(c, z, -0.5);
    s = fma(r * z, s, r), c = fma(c, z, 1.0);
    // Each quarter turn swaps the two and changes a sign.
    i64 quarter = (i64)turns & 3;
    double cosine = quarter % 2 == 0 ? c : s, sine = quarter % 2 == 0 ? s : c;
    if (quarter == 1 || quarter == 2) cosine = -cosine;
    if (quarter >= 2) sine = -sine;
    return {(float)cosine, (float)sine};
}

// The turn of a pair of this frequency at a position, lowered to a multiple of `group`.
DEVICE Turn turn_at(i32 position, i32 group, float frequency, bool inverse) {
    Turn turn = turn_of((float)(position / group * group) * frequency);
    return {turn.cos, inverse ? -turn.sin : turn.sin};
}

// The two values of a pair after its turn, in f32 steps.
DEVICE float turned_even(float even, float odd, Turn turn) { return even * turn.cos - odd * turn.sin; }
DEVICE float turned_odd(float even, float odd, Turn turn) { return even * turn.sin + odd * turn.cos; }
