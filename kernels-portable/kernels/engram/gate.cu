// engram.gate: a row's value added to each stream through a gate, in place. One block a stream of a row; sums are f64
// in the order of device/block_sum.cuh, the gate is rounded to f32, product and addition are f32.
#include "../device/rms.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;

// 1 / sqrt(mean of squares + eps).
DEVICE double rstd(double squares, u64 width, float eps) {
    return 1.0 / sqrt(in_f32_range(squares) / (double)width + (double)eps);
}

// How much of the value is added for a similarity; NaN passes the floor.
DEVICE float gate(double similarity) {
    double size = fabs(similarity), root = sqrt(size < 1e-6 ? 1e-6 : size);
    return (float)(1.0 / (1.0 + exp(-copysign(root, similarity))));
}

KERNEL(engram_gate__portable, THREADS)(View kv, View q_weight, View k_weight, View masked, View streams, u64 count,
                                       u64 width, float eps, u64 tokens) {
    begin();
    __shared__ double scratch[3][THREADS / 32];
    for (u64 at = blockIdx.x; at < tokens * count; at += gridDim.x) {
        u64 token = at / count, stream = at % count;
        if (row_of<const i32>(masked, 0)[token] != 0) continue;
        const u16 *key = row_of<const u16>(kv, token) + stream * width, *added = row_of<const u16>(kv, token) + count * width;
        const u16 *q = row_of<const u16>(q_weight, stream), *k = row_of<const u16>(k_weight, stream);
        u16 *h = row_of<u16>(streams, at);
        double terms = 0, own = 0, others = 0;
        for (u64 i = threadIdx.x; i < width; i += THREADS) {
            double x = bf16_to_f32(h[i]), y = bf16_to_f32(key[i]);
            terms += x * ((double)bf16_to_f32(q[i]) * (double)bf16_to_f32(k[i])) * y;
            own += x * x;
            others += y * y;
        }
        terms = in_f32_range(block_sum<THREADS>(terms, scratch[0]));
        own = block_sum<THREADS>(own, scratch[1]);
        others = block_sum<THREADS>(others, scratch[2]);
        float g = gate(terms * (rstd(own, width, eps) * rstd(others, width, eps) / sqrt((double)width)));
        for (u64 i = threadIdx.x; i < width; i += THREADS) {
            h[i] = bf16_result(bf16_to_f32(h[i]) + g * bf16_to_f32(added[i]));
        }
        // The next stream's sums write the scratch that slower threads may still read.
        __syncthreads();
    }
}
