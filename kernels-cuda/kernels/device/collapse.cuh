// The collapse of a token's streams by chunks.
#pragma once
#include "chunk.cuh"

// `sum over s of pre[s] h[s]`, in stream order and f32 steps, each element rounded to bf16.
DEVICE Chunk collapsed_chunk(const View &streams, const View &pre, u64 count, u64 token, u64 column, u64 width) {
    const float *mix = row_of<const float>(pre, token);
    Chunk sum = {};
#pragma unroll 4
    for (u64 s = 0; s < count; s++) {
        Chunk x = chunk(Plain<u16>{streams}, token * count + s, column, width);
#pragma unroll
        for (int i = 0; i < CHUNK; i++) sum.of[i] += mix[s] * x.of[i];
    }
#pragma unroll
    for (int i = 0; i < CHUNK; i++) sum.of[i] = bf16_to_f32(bf16_result((double)sum.of[i]));
    return sum;
}
