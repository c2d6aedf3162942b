// quant.requant: E4M3 codes to half their value in the dialect of gfx942, scales to twice theirs. One code a thread,
// then one scale.
#include "../device/e4m3_fnuz.cuh"
#include "../device/grid.cuh"
#include "../device/ue8m0.cuh"
#include "../device/view.cuh"

KERNEL(quant_requant__portable, 256)(View x, View y, u64 n, u64 k, u64 scales) {
    begin();
    FOR_EACH_ITEM(item, n * k) {
        u64 row = item / k, column = item % k;
        row_of<u8>(y, row)[column] = e4m3_fnuz_half_of(row_of<const u8>(x, row)[column]);
    }
    FOR_EACH_ITEM(item, scales) { y.scales[item] = ue8m0_doubled(x.scales[item]); }
}
