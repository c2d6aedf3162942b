// attn.sparse: one softmax over listed window and compressed entries, with sink. One block a row and head; a warp
// scores one entry after the other, its lanes in turn the dims; then a thread sums a dim.
#include "../device/entry.cuh"
#include "../device/softmax.cuh"
#include "../device/split.cuh"

constexpr int THREADS = 256;

// The entries that a row lists, window first.
struct Lists {
    const View &window, &selected;
    const Entry &window_entry, &selected_entry;
    const i32 *window_at, *selected_at;
    u64 window_count;
};

// The bytes of listed entry `i`; none for an address outside.
DEVICE const u8 *listed_at(const Lists &lists, u64 i) {
    if (i < lists.window_count) return entry_at(lists.window_entry, lists.window, lists.window_at[i]);
    return entry_at(lists.selected_entry, lists.selected, lists.selected_at[i - lists.window_count]);
}

// Dim `d` of listed entry `i`, which lies at `from`.
DEVICE float dim_at(const Lists &lists, u64 i, const u8 *from, u64 d) {
    return entry_value(i < lists.window_count ? lists.window_entry : lists.selected_entry, from, d);
}

KERNEL(attn_sparse__portable, THREADS)(View q, View window, View window_at, View selected, View selected_at, View sink,
                                       View y, View lse, const __grid_constant__ Entry window_entry,
                                       const __grid_constant__ Entry selected_entry, u64 heads, u64 head_dim,
                                       u64 window_count, u64 selected_count, float scale, u64 tokens) {
    __shared__ SoftmaxMemory<THREADS> memory;
    for (u64 row = blockIdx.x; row < tokens * heads; row += gridDim.x) {
        auto [token, head] = split(row, heads);
        const u16 *query = row_of<const u16>(q, row);
        u16 *to = row_of<u16>(y, row);
        Lists lists = {window,         selected,
                       window_entry,   selected_entry,
                       row_of<const i32>(window_at, token), selected_count > 0 ? row_of<const i32>(selected_at, token) : nullptr,
                       window_count};
        auto listed = [&](u64 i) { return listed_at(lists, i) != nullptr; };
        auto score = [&](u64 first, u64 count, float *tile) {
            for (u64 i = threadIdx.x / 32; i < count; i += THREADS / 32) {
                const u8 *key = listed_at(lists, first + i);
                double dot = 0;
                for (u64 d = threadIdx.x % 32; key && d < head_dim; d += 32) {
                    dot += (double)bf16_to_f32(query[d]) * (double)dim_at(lists, first + i, key, d);
                }
                dot = warp_sum(dot);
                if (threadIdx.x % 32 == 0) tile[i] = (float)(dot * (double)scale);
            }
        };
        auto value = [&](u64 i, u64 d) { return dim_at(lists, i, listed_at(lists, i), d); };
        auto items = items_of(window_count + selected_count, head_dim, listed, score, value);
        float logit = sink.codes ? row_of<const float>(sink, 0)[head] : float_of(0xFF800000u), largest;
        double mass;
        auto share = [&](float largest) { return sink.codes ? (double)(float)exp((double)logit - (double)largest) : 0.0; };
        bool any = attend(items, memory, largest, mass, [&](u64 d, double sum, double mass) {
            to[d] = bf16_result(sum / (mass + share(largest)));
        });
        for (u64 d = threadIdx.x; !any && d < head_dim; d += THREADS) to[d] = 0;
        if (lse.codes && threadIdx.x == 0) {
            double log_sum = any ? (double)largest + log(mass + share(largest)) : (double)logit;
            row_of<float>(lse, token)[head] = f32_result(log_sum);
        }
        __syncthreads();
    }
}
