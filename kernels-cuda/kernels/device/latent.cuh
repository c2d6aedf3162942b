// A row normed and its last dims turned in adjacent pairs: element by element, from the row's own values.
#pragma once
#include "rms.cuh"
#include "turn.cuh"
#include "view.cuh"

struct Latent {
    const u16 *from, *weight;
    u64 width, pairs;
    i32 position, group;
    bool inverse;
};

// Whether element `i` turns. Rows without a position do not.
DEVICE bool turns(const Latent &row, u64 i) { return i >= row.width - 2 * row.pairs && i < row.width && row.position >= 0; }

DEVICE Turn turn_of(const Latent &row, const Frequencies &frequencies, u64 i) {
    if (!turns(row, i)) return {1, 0};
    return turn_at(row.position, row.group, frequencies.of[(i - (row.width - 2 * row.pairs)) / 2], row.inverse);
}

// Element `i`, rounded to bf16 after the norm and after its turn.
DEVICE u16 latent_at(const Latent &row, float rstd, Turn turn, u64 i) {
    auto normed_at = [&](u64 i) { return normed(bf16_to_f32(row.from[i]), rstd, row.weight[i]); };
    if (!turns(row, i)) return normed_at(i);
    // Pairs are as even as the width.
    u64 odd = (i - row.width) % 2, at = i - odd;
    float low = bf16_to_f32(normed_at(at)), high = bf16_to_f32(normed_at(at + 1));
    return bf16_result((double)(odd == 0 ? turned_even(low, high, turn) : turned_odd(low, high, turn)));
}
