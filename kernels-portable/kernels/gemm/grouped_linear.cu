// gemm.grouped: y[t,g,n] = sum over k of x[t,g,k] W[g,n,k], bf16 by FP8 with a scale for each 32 by 32. One output a
// group of lanes.
#include "../device/linear.cuh"

KERNEL(gemm_grouped__portable, LINEAR_THREADS)(View x, View weight, View y, u64 groups, u64 n, u64 k, u64 tokens) {
    begin();
    linear({groups, n, k, tokens}, Plain<u16>{x}, Mxfp8<32>{weight, k / SCALED_COLUMNS},
           [=](u64 row, u64 output, double sum) { row_of<u16>(y, row)[output] = bf16_result(sum); });
}
