// One softmax over listed items and the sum of values that it weighs, by the threads of a block. Scores come in tiles,
// so that lists of any length take the same memory: once for the largest, then for the weights against it. A list of
// one tile is scored once.
#pragma once
#include "bf16.cuh"
#include "block_max.cuh"
#include "block_sum.cuh"

constexpr u64 TILE = 1024;

template <int THREADS> struct SoftmaxMemory {
    float tile[TILE];
    double sums[THREADS / 32];
    float maxima[THREADS / 32];
};

// A list of items: `listed(i)` says whether item i counts, `score(first, count, tile)` has the block's threads fill a
// tile with the scores of items, `value(i, d)` is a dim of an item's value. What is not listed is not asked for values.
template <typename Listed, typename Score, typename Value> struct Items {
    u64 count, dims;
    Listed listed;
    Score score;
    Value value;
};
template <typename Listed, typename Score, typename Value>
DEVICE Items<Listed, Score, Value> items_of(u64 count, u64 dims, Listed listed, Score score, Value value) {
    return {count, dims, listed, score, value};
}

// Largest of the scores, -inf for none, and whether there is any. The largest passes over NaN, which comes back
// through its own exponential. Leaves the last tile of scores.
template <int THREADS, typename Items>
DEVICE float largest_score(const Items &items, SoftmaxMemory<THREADS> &memory, bool &any) {
    float largest = float_of(0xFF800000u), found = 0;
    for (u64 first = 0; first < items.count; first += TILE) {
        u64 count = items.count - first < TILE ? items.count - first : TILE;
        __syncthreads();
        items.score(first, count, memory.tile);
        __syncthreads();
        for (u64 i = threadIdx.x; i < count; i += THREADS) {
            if (!items.listed(first + i)) continue;
            found = 1;
            largest = memory.tile[i] > largest ? memory.tile[i] : largest;
        }
    }
    any = block_max<THREADS>(found, 0.0f, memory.maxima) > 0;
    __syncthreads();
    return block_max<THREADS>(largest, float_of(0xFF800000u), memory.maxima);
}

// `put(d, sum over i of bf(p_i) value(i, d), Z)` for every dim d, with p_i = exp(score_i - largest) as f32 and Z their
// sum; true if any item is listed. Without one nothing is put. `Z` and `largest` are known to all threads.
template <int THREADS, typename Items, typename Put>
DEVICE bool attend(const Items &items, SoftmaxMemory<THREADS> &memory, float &largest, double &mass, const Put &put) {
    bool any;
    largest = largest_score(items, memory, any);
    mass = 0;
    if (!any) return false;
    for (u64 from = 0; from < items.dims; from += THREADS) {
        u64 d = from + threadIdx.x;
        double sum = 0, weights = 0;
        for (u64 first = 0; first < items.count; first += TILE) {
            u64 count = items.count - first < TILE ? items.count - first : TILE;
            if (items.count > TILE) {
                __syncthreads();
                items.score(first, count, memory.tile);
                __syncthreads();
            }
            // The weights of a single tile stay.
            bool weigh = items.count > TILE || from == 0;
            for (u64 i = threadIdx.x; weigh && i < count; i += THREADS) {
                double away = (double)memory.tile[i] - (double)largest;
                float weight = items.listed(first + i) ? (float)exp(away) : 0.0f;
                memory.tile[i] = weight;
                weights += (double)weight;
            }
            __syncthreads();
            for (u64 i = 0; d < items.dims && i < count; i++) {
                if (!items.listed(first + i)) continue;
                double weight = bf16_to_f32(bf16_from_f32(memory.tile[i]));
                sum += weight * (double)items.value(first + i, d);
            }
        }
        if (from == 0) mass = block_sum<THREADS>(weights, memory.sums);
        if (d < items.dims) put(d, sum, mass);
    }
    return true;
}
