// index.scores: how well each visible entry fits a row, y[t,j] = sum over h of w[t,h] max(0, q[t,h] . k_j), -inf for
// entries that are not visible or not there. Dots in f64, rounded to f32; the heads in order in f64. One entry of a
// row a group of lanes, which decodes it once for several heads.
#include "../device/dot.cuh"
#include "../device/entry.cuh"
#include "../device/page_table.cuh"

constexpr int THREADS = 256;
// Heads at a time.
constexpr int HEADS = 4;

KERNEL(index_scores__portable, THREADS)(View q, View weight, View keys, View sequence, View pages, View visible, View y,
                                        const __grid_constant__ Entry entry, u64 sequences, u64 table_pages, u64 heads,
                                        u64 head_dim, float scale, u64 entries, u64 tokens) {
    begin();
    PageTable table = {pages, sequences, table_pages, entry.page_entries};
    Mxfp4 queries = {q, heads * head_dim / SCALED_COLUMNS};
    u32 lanes = dot_lanes(head_dim), each = THREADS / lanes;
    for (u64 first = (u64)blockIdx.x * each; first < tokens * entries; first += (u64)gridDim.x * each) {
        u64 item = first + threadIdx.x / lanes;
        bool there = item < tokens * entries;
        auto [token, j] = split(there ? item : 0, entries);
        const u8 *key = nullptr;
        if (there && (i64)j < (i64)row_of<const i32>(visible, 0)[token]) {
            key = entry_at(entry, keys, address_of(table, row_of<const i32>(sequence, 0)[token], (i64)j));
        }
        double sum = 0;
        // The lanes of a warp go together.
        bool any = __ballot_sync(ALL_LANES, key != nullptr) != 0;
        for (u64 from = 0; any && from < heads; from += HEADS) {
            auto query = [&](int i, u64 at) {
                u64 head = from + i < heads ? from + i : heads - 1;
                return chunk(queries, token, head * head_dim + at, 0);
            };
            auto own = [&](int, u64 at) { return key ? entry_chunk(entry, key, (u32)at) : Chunk{}; };
            auto sums = dots<HEADS, 1>(query, own, head_dim);
#pragma unroll
            for (int i = 0; i < HEADS; i++) {
                if (from + i >= heads) continue;
                float dot = (float)sums.of[i][0];
                // NaN passes.
                float kept = dot < 0 ? 0.0f : dot;
                double w = (double)bf16_to_f32(row_of<const u16>(weight, token)[from + i]) * (double)scale;
                sum += (double)bf16_to_f32(bf16_result(w)) * (double)kept;
            }
        }
        if (there && threadIdx.x % lanes == 0) row_of<float>(y, token)[j] = key ? f32_result(sum) : float_of(0xFF800000u);
    }
}
