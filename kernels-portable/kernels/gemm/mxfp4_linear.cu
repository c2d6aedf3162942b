// gemm.mxfp4: y[t,n] = sum over k of x[t,k] W[n,k], FP8 by FP4. One output a group of lanes.
#include "../device/linear.cuh"

KERNEL(gemm_mxfp4__portable, LINEAR_THREADS)(View x, View weight, View y, u64 n, u64 k, u64 tokens) {
    begin();
    u64 blocks = k / SCALED_COLUMNS;
    linear({1, n, k, tokens}, Mxfp8<1>{x, blocks}, Mxfp4{weight, blocks},
           [=](u64 row, u64 output, double sum) { row_of<u16>(y, row)[output] = bf16_result(sum); });
}
