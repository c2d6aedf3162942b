// mhc.expand: h'[t,k] = post[t,k] x[t] + sum over j of comb[t,j,k] h[t,j], the sources in order, then the term of
// `post`, all in f32 steps. One element a thread.
#include "../device/grid.cuh"
#include "../device/streams.cuh"

KERNEL(mhc_expand__portable, 256)(View x, View residual, View post, View comb, View y, u64 count, u64 width,
                                  u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * count * width) {
        auto [row, column] = split(item, width);
        auto [token, k] = split(row, count);
        auto weight = [=](u64 j) { return row_of<const float>(comb, token * count + j)[k]; };
        float sum = collapsed(residual, count, token, column, weight);
        float own = row_of<const float>(post, token)[k] * bf16_to_f32(row_of<const u16>(x, token)[column]);
        row_of<u16>(y, row)[column] = bf16_result(own + sum);
    }
}
