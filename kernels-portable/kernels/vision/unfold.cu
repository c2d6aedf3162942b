// vision.unfold: a cell's patches in one row, channel-major, zeros for a patch outside. One element a thread.
#include "../device/grid.cuh"
#include "../device/view.cuh"

KERNEL(vision_unfold__portable, 256)(View x, View at, View y, u64 width, u64 patches, u64 tokens, u64 cells) {
    begin();
    FOR_EACH_ITEM(item, cells * width * patches) {
        auto [cell_and_channel, patch] = split(item, patches);
        auto [cell, channel] = split(cell_and_channel, width);
        i64 row = row_of<const i32>(at, cell)[patch];
        bool inside = row >= 0 && (u64)row < tokens;
        u16 value = inside ? row_of<const u16>(x, (u64)row)[channel] : (u16)0;
        row_of<u16>(y, cell)[channel * patches + patch] = value;
    }
}
