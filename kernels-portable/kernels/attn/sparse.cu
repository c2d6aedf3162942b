// attn.sparse: one softmax over listed window and compressed entries, with sink. First the scores, an entry of a row a
// group of lanes, which decodes it once for several heads; then the values, a block a slice of dims of a row and head.
#include "../device/block_sum.cuh"
#include "../device/dot.cuh"
#include "../device/entry.cuh"
#include "../device/split.cuh"

// Of a block that scores: few, as a row has few entries for a board.
constexpr int SCORING_THREADS = 64;
constexpr int THREADS = 256, WARPS = THREADS / 32;
// Heads at a time.
constexpr int HEADS = 4;
// Dims of a slice, and entries that are weighed at a time.
constexpr int SLICE = 32;
constexpr u64 TILE = 1024;
// Lanes that have a slice, and entries that are added side by side.
constexpr int ROW = SLICE / CHUNK, ROWS = THREADS / ROW;

// The entries that a row lists, window first.
struct Lists {
    const View &window, &selected;
    const Entry &window_entry, &selected_entry;
    const i32 *window_at, *selected_at;
    u64 window_count;
};

// How listed entry `i` lies.
DEVICE const Entry &entry_of(const Lists &lists, u64 i) {
    return i < lists.window_count ? lists.window_entry : lists.selected_entry;
}

// Its bytes; none for an address outside.
DEVICE const u8 *listed_at(const Lists &lists, u64 i) {
    if (i < lists.window_count) return entry_at(lists.window_entry, lists.window, lists.window_at[i]);
    return entry_at(lists.selected_entry, lists.selected, lists.selected_at[i - lists.window_count]);
}

DEVICE const i32 *list_of(const View &at, u64 token) { return at.codes ? row_of<const i32>(at, token) : nullptr; }

// `scores` has `window_count + selected_count` for each head of each row; those of entries outside are of no use.
KERNEL(attn_sparse__portable_scores, SCORING_THREADS)(View q, View window, View window_at, View selected, View selected_at,
                                              const __grid_constant__ Entry window_entry,
                                              const __grid_constant__ Entry selected_entry, View scores, u64 heads,
                                              u64 head_dim, u64 window_count, u64 selected_count, float scale,
                                              u64 first_token, u64 tokens) {
    begin();
    u64 count = window_count + selected_count;
    u32 lanes = dot_lanes(head_dim), each = SCORING_THREADS / lanes;
    for (u64 first = (u64)blockIdx.x * each; first < tokens * count; first += (u64)gridDim.x * each) {
        u64 item = first + threadIdx.x / lanes;
        bool there = item < tokens * count;
        auto [own, i] = split(there ? item : 0, count);
        u64 token = first_token + own;
        Lists lists = {window, selected, window_entry, selected_entry, list_of(window_at, token), list_of(selected_at, token),
                       window_count};
        const u8 *key = listed_at(lists, i);
        const Entry &entry = entry_of(lists, i);
        for (u64 from = 0; from < heads; from += HEADS) {
            auto query = [&](int h, u64 at) {
                u64 head = from + h < heads ? from + h : heads - 1;
                return chunk(Plain<u16>{q}, token * heads + head, at, head_dim);
            };
            auto right = [&](int, u64 at) { return key ? entry_chunk(entry, key, (u32)at) : Chunk{}; };
            auto sums = dots<HEADS, 1>(query, right, head_dim);
#pragma unroll
            for (int h = 0; h < HEADS; h++) {
                if (!there || from + h >= heads || threadIdx.x % lanes != 0) continue;
                ((float *)scores.codes)[(own * heads + from + h) * count + i] = (float)(sums.of[h][0] * (double)scale);
            }
        }
    }
}

// The largest score of what is listed, by each warp, and whether there is any. The largest passes over NaN, which comes
// back through its own exponential.
DEVICE float largest_of(const Lists &lists, const float *scores, u64 count, bool &any) {
    float largest = float_of(0xFF800000u);
    bool found = false;
#pragma unroll 4
    for (u64 i = threadIdx.x % 32; i < count; i += 32) {
        // Scores are there for what is not listed, too.
        float score = scores[i];
        bool listed = listed_at(lists, i) != nullptr;
        found = found || listed;
        largest = listed && score > largest ? score : largest;
    }
    any = __ballot_sync(ALL_LANES, found) != 0;
    return warp_max(largest);
}

KERNEL(attn_sparse__portable_values, THREADS)(View window, View window_at, View selected, View selected_at, View sink,
                                              View y, View lse, const __grid_constant__ Entry window_entry,
                                              const __grid_constant__ Entry selected_entry, View scores, u64 heads,
                                              u64 head_dim, u64 window_count, u64 selected_count, u64 first_token,
                                              u64 tokens) {
    begin();
    __shared__ const u8 *keys[TILE];
    __shared__ float weights[TILE];
    __shared__ double parts[WARPS][SLICE], masses[WARPS];
    u64 count = window_count + selected_count, slices = (head_dim + SLICE - 1) / SLICE;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u64 at = blockIdx.x; at < tokens * heads * slices; at += gridDim.x) {
        u64 row = at / slices, slice = at % slices * SLICE, token = first_token + row / heads, head = row % heads;
        Lists lists = {window, selected, window_entry, selected_entry, list_of(window_at, token), list_of(selected_at, token),
                       window_count};
        const float *score = (const float *)scores.codes + row * count;
        bool any;
        double largest = largest_of(lists, score, count, any), mass = 0, sums[CHUNK] = {};
        u64 column = slice + threadIdx.x % ROW * CHUNK;
        for (u64 first = 0; first < count; first += TILE) {
            u64 end = count - first < TILE ? count : first + TILE;
            __syncthreads();
            for (u64 i = first + threadIdx.x; i < end; i += THREADS) {
                const u8 *key = listed_at(lists, i);
                float weight = key ? (float)exp((double)score[i] - largest) : 0.0f;
                keys[i - first] = key, weights[i - first] = bf16_to_f32(bf16_from_f32(weight));
                mass += (double)weight;
            }
            __syncthreads();
            for (u64 i = first + threadIdx.x / ROW; i < end && column < head_dim; i += ROWS) {
                const u8 *key = keys[i - first];
                if (!key) continue;
                Chunk x = entry_chunk(entry_of(lists, i), key, (u32)column);
                double weight = weights[i - first];
#pragma unroll
                for (int n = 0; n < CHUNK; n++) sums[n] = fma(weight, (double)x.of[n], sums[n]);
            }
        }
        // Rows of lanes add up by halves, then warps in order.
#pragma unroll
        for (int n = 0; n < CHUNK; n++) {
            for (int step = 16; step >= ROW; step /= 2) sums[n] += __shfl_down_sync(ALL_LANES, sums[n], step);
            if (lane < ROW) parts[warp][lane * CHUNK + n] = sums[n];
        }
        mass = warp_sum(mass);
        if (lane == 0) masses[warp] = mass;
        __syncthreads();
        float logit = sink.codes ? row_of<const float>(sink, 0)[head] : float_of(0xFF800000u);
        double whole = 0, sum = 0;
        for (int i = 0; i < WARPS; i++) whole += masses[i], sum += parts[i][lane];
        if (sink.codes) whole += (double)(float)exp((double)logit - largest);
        u64 d = slice + lane;
        u64 to = token * heads + head;
        if (warp == 0 && d < head_dim) row_of<u16>(y, to)[d] = any ? bf16_result(sum / whole) : (u16)0;
        if (lse.codes && slice == 0 && threadIdx.x == 0) {
            row_of<float>(lse, token)[head] = f32_result(any ? largest + log(whole) : (double)logit);
        }
    }
}
