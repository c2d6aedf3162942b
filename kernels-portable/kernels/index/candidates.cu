// index.candidates: the best blocks of each row, ascending, padded with -1: the one with the newest visible entry, and
// of the others those with the largest scores, never -inf. One block of threads a row.
#include "../device/best.cuh"
#include "../device/choice.cuh"
#include "../device/split.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;
constexpr u32 NO_SCORE = 0xFF800000u;

// The largest score of the `size` entries of a block; NaN is passed over.
DEVICE float block_score(const float *scores, u64 size) {
    float largest = float_of(NO_SCORE);
    for (u64 i = 0; i < size; i++) largest = scores[i] > largest ? scores[i] : largest;
    return largest;
}

template <typename F> DEVICE void walk_blocks(const float *scores, u64 size, u64 blocks, const F &f) {
    for (u64 base = 0; base < blocks; base += THREADS) {
        u64 block = base + threadIdx.x;
        float score = block < blocks ? block_score(scores + block * size, size) : float_of(NO_SCORE);
        f(block, bits_of(score) != NO_SCORE, standing(score), (u64)1);
    }
}

KERNEL(index_candidates__portable, THREADS)(View scores, View visible, View y, u64 count, u64 size, u64 entries,
                                            u64 tokens) {
    begin();
    __shared__ BestMemory<u32> memory;
    __shared__ u32 scratch[THREADS / 32];
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        i64 counted = row_of<const i32>(visible, 0)[token];
        u64 seen = counted < 0 ? 0 : (u64)counted < entries ? (u64)counted : entries;
        i32 *to = row_of<i32>(y, token);
        u64 taken = 0;
        if (seen > 0) {
            u64 newest = split(seen - 1, size).row;
            if (count > 1) {
                const float *row = row_of<const float>(scores, token);
                auto walk = [&](const auto &f) { walk_blocks(row, size, newest, f); };
                Threshold threshold = threshold_of<THREADS>(walk, count - 1, memory);
                auto take = [&](u64 n, u64 place) { to[n] = (i32)place; };
                taken = take_best<THREADS>(walk, threshold, scratch, take);
            }
            if (threadIdx.x == 0) to[taken] = (i32)newest;
            taken++;
        }
        for (u64 i = taken + threadIdx.x; i < count; i += THREADS) to[i] = -1;
        __syncthreads();
    }
}
