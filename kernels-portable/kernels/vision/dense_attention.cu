// vision.attention: full softmax attention over the patches of one picture. One block a row and head; a thread scores a
// key, then sums a dim.
#include "../device/softmax.cuh"
#include "../device/split.cuh"
#include "../device/view.cuh"

constexpr int THREADS = 128;

KERNEL(vision_attention__portable, THREADS)(View q, View k, View v, View y, u64 heads, u64 head_dim, float scale, u64 keys,
                                            u64 tokens) {
    begin();
    __shared__ SoftmaxMemory<THREADS> memory;
    for (u64 item = blockIdx.x; item < tokens * heads; item += gridDim.x) {
        auto [token, head] = split(item, heads);
        u64 column = head * head_dim;
        const u16 *query = row_of<const u16>(q, token) + column;
        u16 *to = row_of<u16>(y, token) + column;
        auto score = [&](u64 first, u64 count, float *tile) {
            for (u64 i = threadIdx.x; i < count; i += THREADS) {
                const u16 *key = row_of<const u16>(k, first + i) + column;
                double dot = 0;
                for (u64 d = 0; d < head_dim; d++) dot += (double)bf16_to_f32(query[d]) * (double)bf16_to_f32(key[d]);
                tile[i] = (float)((double)scale * dot);
            }
        };
        auto value = [&](u64 i, u64 d) { return bf16_to_f32(row_of<const u16>(v, i)[column + d]); };
        auto items = items_of(keys, head_dim, [](u64) { return true; }, score, value);
        float largest;
        double mass;
        auto put = [&](u64 d, double sum, double mass) { to[d] = bf16_result(sum / mass); };
        bool any = attend(items, memory, largest, mass, put);
        for (u64 d = threadIdx.x; !any && d < head_dim; d += THREADS) to[d] = 0;
        __syncthreads();
    }
}
