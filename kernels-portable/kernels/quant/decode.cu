// quant.decode: block-scaled codes to bf16. One element a thread; in f64 code times scale is exact.
#include "../device/e2m1.cuh"
#include "../device/e4m3.cuh"
#include "../device/e4m3_fnuz.cuh"
#include "../device/grid.cuh"
#include "../device/ue8m0.cuh"
#include "../device/view.cuh"

// Elements of codes and of scales by number; the host names the same ones.
enum Elem : u32 { F32 = 0, E4M3_FN = 1, E4M3_FNUZ = 2, E2M1 = 3, UE8M0 = 4 };

DEVICE float element(u32 elem, const u8 *from, u64 i) {
    if (elem == F32) return ((const float *)from)[i];
    if (elem == E4M3_FN) return e4m3_to_f32(from[i]);
    if (elem == E4M3_FNUZ) return e4m3_fnuz_to_f32(from[i]);
    return elem == E2M1 ? e2m1_to_f32((u8)(from[i / 2] >> i % 2 * 4)) : ue8m0_to_f32(from[i]);
}

KERNEL(quant_decode__portable, 256)(View x, View y, u32 code, u32 scale, u64 block, u64 width, u64 tokens) {
    begin();
    FOR_EACH_ITEM(item, tokens * width) {
        u64 token = item / width, column = item % width;
        double unit = element(scale, x.scales, item / block);
        row_of<u16>(y, token)[column] = bf16_result((double)element(code, x.codes, token * x.stride + column) * unit);
    }
}
