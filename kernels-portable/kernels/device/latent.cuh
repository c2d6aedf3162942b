// A row normed and its last dims turned in adjacent pairs: element by element, from the row's own values.
#pragma once
#include "rms.cuh"
#include "turn.cuh"
#include "view.cuh"

struct Latent {
    const u16 *from, *weight;
    u64 width, pairs;
    float rstd;
    i32 position, group;
    bool inverse;
};

DEVICE u16 normed_at(const Latent &row, u64 i) { return normed(bf16_to_f32(row.from[i]), row.rstd, row.weight[i]); }

// Element `i`, rounded to bf16 after the norm and after the turn. Rows without a position do not turn.
DEVICE u16 latent_at(const Latent &row, const Frequencies &frequencies, u64 i) {
    u64 start = row.width - 2 * row.pairs;
    if (i < start || row.position < 0) return normed_at(row, i);
    u64 pair = (i - start) / 2, at = start + 2 * pair;
    Turn turn = turn_at(row.position, row.group, frequencies.of[pair], row.inverse);
    float even = bf16_to_f32(normed_at(row, at)), odd = bf16_to_f32(normed_at(row, at + 1));
    return bf16_result(i == at ? turned_even(even, odd, turn) : turned_odd(even, odd, turn));
}
