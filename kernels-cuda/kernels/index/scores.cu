// index.scores: how well each visible entry fits a row, y[t,j] = sum over h of w[t,h] max(0, q[t,h] . k_j), -inf for
// entries that are not visible or not there. Dots in f64, rounded to f32; the heads in order in f64. One entry of a
// row a thread.
#include "../device/entry.cuh"
#include "../device/grid.cuh"
#include "../device/page_table.cuh"

constexpr u64 BLOCK = 32;

struct Query {
    const u8 *codes, *scales;
    const u16 *weights;
    u64 heads, head_dim;
    float scale;
};

// Element `i` of a row of MXFP4.
DEVICE float query_at(const Query &query, u64 i) {
    return e2m1_to_f32((u8)(query.codes[i / 2] >> i % 2 * 4)) * ue8m0_to_f32(query.scales[i / BLOCK]);
}

DEVICE double score(const Query &query, const Entry &entry, const u8 *key) {
    double sum = 0;
    for (u64 h = 0; h < query.heads; h++) {
        double exact = 0;
        for (u64 d = 0; d < query.head_dim; d++) {
            exact += (double)query_at(query, h * query.head_dim + d) * (double)entry_value(entry, key, d);
        }
        float dot = (float)exact;
        // NaN passes.
        float kept = dot < 0 ? 0.0f : dot;
        double weight = (double)bf16_to_f32(query.weights[h]) * (double)query.scale;
        sum += (double)bf16_to_f32(bf16_result(weight)) * (double)kept;
    }
    return sum;
}

KERNEL(index_scores__portable, 256)(View q, View weight, View keys, View sequence, View pages, View visible, View y,
                                    const __grid_constant__ Entry entry, u64 sequences, u64 table_pages, u64 heads,
                                    u64 head_dim, float scale, u64 entries, u64 tokens) {
    PageTable table = {pages, sequences, table_pages, entry.page_entries};
    FOR_EACH_ITEM(item, tokens * entries) {
        auto [token, j] = split(item, entries);
        u64 blocks = heads * head_dim / BLOCK;
        const u8 *key = nullptr;
        if ((i64)j < (i64)row_of<const i32>(visible, 0)[token]) {
            key = entry_at(entry, keys, address_of(table, row_of<const i32>(sequence, 0)[token], (i64)j));
        }
        Query query = {q.codes + token * q.stride / 2, q.scales + token * blocks, row_of<const u16>(weight, token),
                       heads, head_dim, scale};
        row_of<float>(y, token)[j] = key ? f32_result(score(query, entry, key)) : float_of(0xFF800000u);
    }
}
