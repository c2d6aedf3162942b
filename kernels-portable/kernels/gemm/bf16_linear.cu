// gemm.bf16: y[t,n] = sum over k of x[t,k] W[n,k], plus b[n]. One output a thread. The bias comes last, then the one
// rounding.
#include "../device/linear.cuh"

KERNEL(gemm_bf16__portable, LINEAR_THREADS)(View x, View weight, View bias, View y, u64 n, u64 k, u64 tokens) {
    begin();
    auto store = [=](u64 row, u64 output, double sum) {
        if (bias.codes) sum += (double)bf16_to_f32(row_of<const u16>(bias, 0)[output]);
        row_of<u16>(y, row)[output] = bf16_result(sum);
    };
    if (is_aligned(Plain<u16>{x}, k) && is_aligned(Plain<u16>{weight}, k)) {
        linear({1, n, k, tokens}, Aligned<u16>{x}, Aligned<u16>{weight}, store);
    } else {
        linear({1, n, k, tokens}, Plain<u16>{x}, Plain<u16>{weight}, store);
    }
}
