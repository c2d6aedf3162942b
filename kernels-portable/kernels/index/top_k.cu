// index.top_k: the k best visible entries of each row, ascending, padded with -1; only inside listed blocks if there is
// a list. One block a row.
#include "../device/best.cuh"
#include "../device/choice.cuh"
#include "../device/split.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 256;
// Candidate blocks that are looked up at a time, a bit each.
constexpr u64 SPAN = 65536;

struct Scored {
    const float *scores;
    u64 visible;
    // Candidate blocks; none without a restriction.
    const i32 *blocks;
    u64 count, size;
};

// Marks which of the SPAN blocks from `first` on are listed.
DEVICE void mark(const Scored &row, u64 first, u32 *marks) {
    __syncthreads();
    for (u64 i = threadIdx.x; i < SPAN / 32; i += THREADS) marks[i] = 0;
    __syncthreads();
    for (u64 i = threadIdx.x; i < row.count; i += THREADS) {
        i64 at = (i64)row.blocks[i] - (i64)first;
        if (at >= 0 && at < (i64)SPAN) atomicOr(&marks[at / 32], 1u << at % 32);
    }
    __syncthreads();
}

template <typename F> DEVICE void walk_entries(const Scored &row, u32 *marks, const F &f) {
    u64 span = row.blocks ? SPAN * row.size : row.visible;
    for (u64 start = 0; start < row.visible; start += span) {
        if (row.blocks) mark(row, split(start, row.size).row, marks);
        u64 end = row.visible - start < span ? row.visible : start + span;
        for (u64 base = start; base < end; base += THREADS) {
            u64 j = base + threadIdx.x;
            bool there = j < end;
            if (there && row.blocks) {
                u64 block = split(j - start, row.size).row;
                there = marks[block / 32] >> block % 32 & 1u;
            }
            f(j, there, there ? standing(row.scores[j]) : 0u, (u64)1);
        }
    }
}

KERNEL(index_top_k__portable, THREADS)(View scores, View visible, View blocks, View y, u64 k, u64 count, u64 size,
                                       u64 entries, u64 tokens) {
    begin();
    __shared__ BestMemory<u32> memory;
    __shared__ u32 marks[SPAN / 32], scratch[THREADS / 32];
    for (u64 token = blockIdx.x; token < tokens; token += gridDim.x) {
        i64 counted = row_of<const i32>(visible, 0)[token];
        u64 seen = counted < 0 ? 0 : (u64)counted < entries ? (u64)counted : entries;
        // The one block of a larger size is the same.
        u64 least = size > seen ? (seen > 0 ? seen : 1) : size;
        Scored row = {row_of<const float>(scores, token), seen, count > 0 ? row_of<const i32>(blocks, token) : nullptr,
                      count, least};
        auto walk = [&](const auto &f) { walk_entries(row, marks, f); };
        i32 *to = row_of<i32>(y, token);
        Threshold threshold = threshold_of<THREADS>(walk, k, memory);
        auto take = [&](u64 n, u64 place) { to[n] = (i32)place; };
        u64 taken = take_best<THREADS>(walk, threshold, scratch, take);
        for (u64 i = taken + threadIdx.x; i < k; i += THREADS) to[i] = -1;
        __syncthreads();
    }
}
