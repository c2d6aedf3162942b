// What routers share: scores of experts and the weights of those taken. Kernels say each score once, as every copy of
// its logarithm and exponential costs registers.
#pragma once
#include "view.cuh"

// sqrt(softplus(logit)), rounded to f32.
DEVICE float softplus_score(float logit) {
    double z = logit;
    return (float)sqrt(z > 20 ? z : log1p(exp(z)));
}

// sigmoid(logit), rounded to f32.
DEVICE float sigmoid_score(float logit) { return (float)(1.0 / (1.0 + exp(-(double)logit))); }

// Turns the scores of a row's `count` experts into their weights, which may take their place, by all threads of a block.
DEVICE void weigh(const float *scores, float *weights, u64 count, float scale) {
    double sum = 0;
    for (u64 i = 0; i < count; i++) sum += (double)scores[i];
    // The scores are read to the end before they are replaced.
    __syncthreads();
    for (u64 i = threadIdx.x; i < count; i += blockDim.x) {
        weights[i] = f32_result((double)scores[i] / (sum + 1e-20) * (double)scale);
    }
}
