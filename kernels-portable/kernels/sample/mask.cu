// sample.mask: -inf at every id whose bit is 0. One id a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(sample_mask__portable, 256)(View allowed, View logits, u64 vocab, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * vocab) {
        auto [token, id] = split(item, vocab);
        bool stays = row_of<const u32>(allowed, token)[id / 32] >> id % 32 & 1u;
        if (!stays) row_of<float>(logits, token)[id] = float_of(0xFF800000u);
    }
}
