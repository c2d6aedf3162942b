// gemm.bf16: y[t,n] = sum over k of x[t,k] W[n,k], plus b[n]. A block makes a tile of 16 rows by 16 outputs,
// one output a thread, from tiles of 32 columns in shared memory. Products of bf16 are exact in f64 and each
// output adds them in order of k, so its bits depend on nothing else in the launch; the bias comes last, then
// the one rounding.
#include "../device/view.cuh"

constexpr int SIDE = 16;
constexpr int DEPTH = 32;

// Rows `first` to `first + 16` and columns `k` to `k + 32` of a matrix of `rows` by `width`; zero bits outside.
DEVICE void load_tile(u16 (*tile)[DEPTH + 2], const View &from, u64 first, u64 rows, u64 k, u64 width) {
    for (int i = threadIdx.y * SIDE + threadIdx.x; i < SIDE * DEPTH; i += SIDE * SIDE) {
        int r = i / DEPTH, c = i % DEPTH;
        bool inside = first + r < rows && k + c < width;
        tile[r][c] = inside ? row_of<const u16>(from, first + r)[k + c] : (u16)0;
    }
}

KERNEL(gemm_bf16__portable, SIDE *SIDE)(View x, View weight, View bias, View y, u64 n, u64 k, u64 tokens) {
    __shared__ u16 left[SIDE][DEPTH + 2], right[SIDE][DEPTH + 2];
    u64 output = (u64)blockIdx.x * SIDE + threadIdx.x;
    for (u64 first = (u64)blockIdx.y * SIDE; first < tokens; first += (u64)gridDim.y * SIDE) {
        u64 token = first + threadIdx.y;
        double sum = 0;
        for (u64 at = 0; at < k; at += DEPTH) {
            load_tile(left, x, first, tokens, at, k);
            load_tile(right, weight, (u64)blockIdx.x * SIDE, n, at, k);
            __syncthreads();
            // The last tile may be shorter; what lies behind k is never multiplied.
            int depth = k - at < DEPTH ? (int)(k - at) : DEPTH;
            for (int i = 0; i < depth; i++) {
                sum += (double)bf16_to_f32(left[threadIdx.y][i]) * (double)bf16_to_f32(right[threadIdx.x][i]);
            }
            // The tiles are read to the end before they are filled again.
            __syncthreads();
        }
        if (token < tokens && output < n) {
            if (bias.codes) sum += (double)bf16_to_f32(row_of<const u16>(bias, 0)[output]);
            row_of<u16>(y, token)[output] = bf16_result(sum);
        }
    }
}
