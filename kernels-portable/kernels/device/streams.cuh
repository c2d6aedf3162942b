// The streams of a token, and their mix.
#pragma once
#include "view.cuh"

// Element `column` of stream `stream` of token `token`.
DEVICE float stream_at(const View &streams, u64 count, u64 token, u64 stream, u64 column) {
    return bf16_to_f32(row_of<const u16>(streams, token * count + stream)[column]);
}

// `sum over s of weight(s) h[s]` at a column, in stream order and f32 steps.
template <typename Weight>
DEVICE float collapsed(const View &streams, u64 count, u64 token, u64 column, const Weight &weight) {
    float sum = 0;
    for (u64 s = 0; s < count; s++) sum += weight(s) * stream_at(streams, count, token, s, column);
    return sum;
}
