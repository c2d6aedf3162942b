// moe.gate_up: gate and up projections of each slot through its expert, zeros without one. One output a thread, tiles
// of outputs of one slot.
#include "../device/dot.cuh"
#include "../device/element.cuh"
#include "../device/experts.cuh"

constexpr int OUTPUTS = 128;

KERNEL(moe_gate_up__portable, OUTPUTS)(View x, View expert, View w1, View w3, View y, u64 total, u64 first, u64 local,
                                       u64 top_k, u64 hidden, u64 inter, u64 tokens) {
    __shared__ Tile<1, OUTPUTS> tile;
    Experts d = {total, first, local, top_k, hidden, inter};
    u64 width = 2 * inter, tiles = (width + OUTPUTS - 1) / OUTPUTS, blocks = hidden / SCALED_COLUMNS;
    for (u64 at = blockIdx.x; at < tokens * top_k * tiles; at += gridDim.x) {
        u64 output = at % tiles * OUTPUTS, slot = at / tiles % top_k, token = at / tiles / top_k;
        i64 place = held(d, expert, token, slot);
        double sum = 0;
        if (place >= 0) {
            auto input = [=](int, u64 k) { return value(Mxfp8<1>{x, blocks}, token, k); };
            auto row = [=](int i, u64 k) {
                u64 n = output + i;
                if (n >= width) return 0.0f;
                return value(Mxfp4{n < inter ? w1 : w3, blocks}, (u64)place * inter + n % inter, k);
            };
            sum = dot(tile, input, row, hidden);
        }
        output += threadIdx.x;
        if (output < width) row_of<u16>(y, token)[slot * width + output] = bf16_result(sum);
    }
}
