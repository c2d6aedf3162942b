// gemm.f32: y[t,n] = sum over k of x[t,k] W[n,k] in f32, inputs stored as bf16 or f32. One output a group of lanes.
#include "../device/linear.cuh"

template <typename X, typename Weight>
DEVICE void f32_linear(View x, View weight, View y, u64 n, u64 k, u64 tokens) {
    auto store = [=](u64 row, u64 output, double sum) { row_of<float>(y, row)[output] = f32_result(sum); };
    if (is_aligned(Plain<X>{x}, k) && is_aligned(Plain<Weight>{weight}, k)) {
        linear({1, n, k, tokens}, Aligned<X>{x}, Aligned<Weight>{weight}, store);
    } else {
        linear({1, n, k, tokens}, Plain<X>{x}, Plain<Weight>{weight}, store);
    }
}

KERNEL(gemm_f32__portable_bf16_bf16, LINEAR_THREADS)(View x, View weight, View y, u64 n, u64 k, u64 tokens) {
    begin();
    f32_linear<u16, u16>(x, weight, y, n, k, tokens);
}

KERNEL(gemm_f32__portable_bf16_f32, LINEAR_THREADS)(View x, View weight, View y, u64 n, u64 k, u64 tokens) {
    begin();
    f32_linear<u16, float>(x, weight, y, n, k, tokens);
}

KERNEL(gemm_f32__portable_f32_bf16, LINEAR_THREADS)(View x, View weight, View y, u64 n, u64 k, u64 tokens) {
    begin();
    f32_linear<float, u16>(x, weight, y, n, k, tokens);
}

KERNEL(gemm_f32__portable_f32_f32, LINEAR_THREADS)(View x, View weight, View y, u64 n, u64 k, u64 tokens) {
    begin();
    f32_linear<float, float>(x, weight, y, n, k, tokens);
}
