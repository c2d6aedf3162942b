// engram.hash: the table rows of a token from its last few token ids. One column of a row a thread. All arithmetic is
// 64-bit; what a map beyond its bound gives wraps.
#include "../device/grid.cuh"
#include "../device/view.cuh"

// A multiplier for each position of the history, then the primes, then the first table row of each column.
struct Numbers {
    u64 at[480];
};

KERNEL(engram_hash__portable, 256)(View history, View map, View y, const __grid_constant__ Numbers numbers,
                                   u64 positions, u64 columns, u64 vocab, u64 pad, u64 picture, u64 tokens) {
    begin();
    u64 heads = columns / (positions - 1);
    FOR_EACH_ITEM(item, tokens * columns) {
        u64 token = item / columns, column = item % columns, hash = 0;
        bool blocked = false;
        // The n-th order takes one position more than its number.
        for (u64 s = 0; s < column / heads + 2; s++) {
            i64 id = row_of<const i32>(history, token)[s];
            blocked = blocked || id < 0 || (u64)id >= vocab || (u64)id == picture;
            i64 compressed = row_of<const i32>(map, 0)[blocked ? pad : (u64)id];
            hash ^= (compressed < 0 ? 0 : (u64)compressed) * numbers.at[s];
        }
        u64 prime = numbers.at[positions + column], first = numbers.at[positions + columns + column];
        row_of<i32>(y, token)[column] = (i32)(hash % prime + first);
    }
}
