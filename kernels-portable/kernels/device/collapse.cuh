// The collapse of a token's streams by chunks.
#pragma once
#include "chunk.cuh"

// Streams that are loaded together.
constexpr int TOGETHER = 4;

// `sum over s of pre[s] h[s]`, in stream order and f32 steps, each element rounded to bf16. WHOLE as of `any_chunk`.
template <bool WHOLE>
DEVICE Chunk collapsed_chunk(const View &streams, const View &pre, u64 count, u64 token, u64 column, u64 width) {
    const float *mix = row_of<const float>(pre, token);
    Chunk sum = {};
    for (u64 first = 0; first < count; first += TOGETHER) {
        Chunk x[TOGETHER];
        float weight[TOGETHER];
#pragma unroll
        for (int s = 0; s < TOGETHER; s++) {
            u64 stream = first + s < count ? first + s : first;
            weight[s] = mix[stream];
            x[s] = any_chunk<WHOLE, u16>(streams, token * count + stream, column, width);
        }
#pragma unroll
        for (int s = 0; s < TOGETHER; s++) {
#pragma unroll
            for (int i = 0; i < CHUNK; i++) {
                float next = sum.of[i] + weight[s] * x[s].of[i];
                sum.of[i] = first + s < count ? next : sum.of[i];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < CHUNK; i++) sum.of[i] = bf16_to_f32(bf16_result(sum.of[i]));
    return sum;
}
