// sample.draw: a token from a distribution. One block a row.
#include "../device/draw.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;

KERNEL(sample_draw__portable, THREADS)(View p, View uniform, View token, u64 vocab, u64 tokens) {
    begin();
    __shared__ DrawMemory<THREADS> memory;
    for (u64 t = blockIdx.x; t < tokens; t += gridDim.x) {
        const float *row = row_of<const float>(p, t);
        auto law = [=](u64 x) { return (double)row[x]; };
        i32 drawn = token_from(law, vocab, row_of<const float>(uniform, 0)[t], memory);
        if (threadIdx.x == 0) row_of<i32>(token, 0)[t] = drawn;
    }
}
