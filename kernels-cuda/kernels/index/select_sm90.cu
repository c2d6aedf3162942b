// index.select on Hopper among listed blocks: the k best of the entries inside them, of MXFP4 keys of 128 columns, by
// the blocks of a cluster a row. Only those entries are scored, and no score is written: each block keeps those of its
// entries in shared memory, and the choice is that of index.top_k.
//
// Bytes: 68 an entry, so 1.1 MB a row of 2,048 blocks of 8; FLOP: 8,192 an entry. Floor of 48 rows: 12.4 us.
// SASS: IGMMA QGMMA UCGABAR_ARV
#include "../device/cluster_best.cuh"
#include "../device/entry.cuh"
#include "../device/fp4_scores.cuh"
#include "../device/page_table.cuh"

constexpr u32 GANG = 128, GANGS = BEST_THREADS / GANG;
// Entries of a block, as many as it lists at most.
constexpr u32 OWN = LISTED, EACH = OWN / BEST_THREADS, NOWHERE = ~0u;

struct alignas(1024) Room {
    // As whole numbers and as E4M3.
    u8 wholes[QUERY_BYTES], tile[QUERY_BYTES];
    ScoredRow row;
    // Where the block's entries lie, in entries from the first one on, NOWHERE for those without; where their scores
    // stand.
    u32 at[OWN];
    u32 standings[OWN];
    // The block's first listed block, a bit for each tile with keys that whole numbers do not
    // hold, and the row.
    u32 first, later, token;
    BestRoom best;
    // The row's listed blocks that have entries it sees, ascending, each once; as many as there may be.
    u32 blocks[1];
};

// Reads the list; blocks from `limit` on have nothing that the row sees. Returns how many are left.
DEVICE u32 read_blocks(const i32 *list, u32 count, u32 limit, Room &room) {
    u32 valid = 0, all;
    bool sorted = true;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < count; i += BEST_THREADS) {
        u32 own = (u32)list[i], before = i > 0 ? (u32)list[i - 1] : 0;
        room.blocks[i] = own, valid += own < limit ? 1 : 0;
        sorted = sorted && (i == 0 || own >= limit || before < own);
    }
    sum_before(valid, room.best.sums[0], all);
    if (__syncthreads_and(sorted)) return all;
    // Nobody writes such lists: the next one in turn.
    u32 found = 0;
    for (u32 after = 0;; found++) {
        u32 next = ~0u, unused = 0;
#pragma unroll 1
        for (u32 i = threadIdx.x; i < count; i += BEST_THREADS) {
            u32 own = (u32)list[i];
            if (own >= after && own < limit && own < next) next = own;
        }
        range_of(next, unused, room.best);
        __syncthreads();
        if (next == ~0u) return found;
        if (threadIdx.x == 0) room.blocks[found] = next;
        after = next + 1;
    }
}

DEVICE u32 entry_of(const Room &room, u32 from, u32 i, u32 size) { return room.blocks[from + i / size] * size + i % size; }

// Of a gang's tile, the key whose score a lane gets.
DEVICE u32 own_key() { return threadIdx.x % GANG / 32 * 16 + threadIdx.x % 32 / 4 + threadIdx.x % 2 * 8; }

DEVICE void keep_score(u32 i, float score, Room &room) {
    room.standings[i] = standing(room.at[i] == NOWHERE ? float_of(NO_SCORE) : score);
}

// Scores the block's entries: all that whole numbers hold, then the tiles with others.
DEVICE void score_own(const Scored &of, const u8 *keys, u32 count, Room &room) {
    u32 lane = threadIdx.x % 32, gang = threadIdx.x / GANG;
    bool aligned = (u64)keys % 4 == 0;
    auto key_of = [&](u32 i) {
        u32 at = i < count ? room.at[i] : NOWHERE;
        return at == NOWHERE ? nullptr : keys + (u64)at * KEY_BYTES;
    };
    // All gangs together, so that products are not in a branch.
    u32 turns = (count + GANGS * TILE_KEYS - 1) / (GANGS * TILE_KEYS);
#pragma unroll 1
    for (u32 turn = 0; turn < turns; turn++) {
        u32 first = (turn * GANGS + gang) * TILE_KEYS, i = first + own_key();
        KeyWords words;
        words.load<true>([&](u32 row) { return key_of(first + row); }, aligned);
        WholeKeys<false> own(words);
        i32 dot[16];
        begin_dots(dot, own, operand_128(room.wholes));
        mma_wait<0>();
        mma_hold(dot);
        float sum[2];
        add_heads(dot, 0, room.row, sum);
        float score = lanes_score(sum[0], sum[1]) * (lane % 2 ? own.scale[1] : own.scale[0]);
        if (lane % 4 < 2 && i < count) keep_score(i, score, room);
        if (own.special[0] || own.special[1]) atomicOr(&room.later, 1u << (turn * GANGS + gang));
    }
    __syncthreads();
    u32 later = room.row.wide || room.row.far ? ~0u : room.later;
#pragma unroll 1
    for (u32 turn = 0; turn < turns; turn++) {
        u32 tile = turn * GANGS + gang, first = tile * TILE_KEYS, i = first + own_key();
        if (!(later >> tile & 1)) continue;
        KeyWords words;
        words.load<false>([&](u32 row) { return key_of(first + row); }, false);
        float score = block_scores(words, operand_128(room.tile), room.row);
        u32 scales = lane % 2 ? words.scales[1] : words.scales[0], largest = largest_scale(scales);
        bool mine = lane % 4 < 2 && i < count, far = are_far(scales) || room.row.far;
        bool wide = are_special(scale_steps(scales, largest), largest) || room.row.wide;
        if (mine && wide && !far) keep_score(i, score, room);
        u32 all_far = __ballot_sync(ALL_LANES, mine && far);
#pragma unroll 1
        for (u32 r = 0; r < 16; r++) {
            if (!(all_far >> (r % 8 * 4 + r / 8) & 1)) continue;
            u32 place = first + threadIdx.x % GANG / 32 * 16 + r;
            const u8 *key = key_of(place);
            float exact = key ? plain_score(of, room.token, key) : 0.0f;
            if (lane == 0) keep_score(place, exact, room);
        }
    }
}

KERNEL(index_select__listed, BEST_THREADS, fitting, 2)(View q, View weight, View keys, View sequence, View pages, View visible,
                                           View listed, View y, const __grid_constant__ Entry entry, u64 sequences,
                                           u64 table_pages, u32 heads, float scale, u32 k, u32 count, u32 size,
                                           u32 entries, u32 blocks) {
    DYNAMIC_SHARED(shared);
    Room &room = *(Room *)shared;
    BestRoom &best = room.best;
    u32 token = blockIdx.x / blocks, rank = cluster_rank();
    clear_bins(best);
    wait_for_previous();
    let_next_begin();
    i32 counted = row_of<const i32>(visible, 0)[token];
    u32 seen = counted < 0 ? 0 : (u32)counted < entries ? (u32)counted : entries;
    Scored of = {q, weight, heads, scale};
    if (threadIdx.x == 0) room.token = token, room.row.wide = 0, room.row.far = 0, room.later = 0;
    u32 valid = read_blocks(row_of<const i32>(listed, token), count, (seen + size - 1) / size, room);
    __syncthreads();
    u32 considered = valid * size;
    if (valid > 0 && (room.blocks[valid - 1] + 1) * size > seen) considered -= (room.blocks[valid - 1] + 1) * size - seen;
    if (considered <= k) {
        i32 *to = row_of<i32>(y, token);
        for (u32 i = rank * BEST_THREADS + threadIdx.x; i < k; i += blocks * BEST_THREADS) {
            to[i] = i < considered ? (i32)entry_of(room, 0, i, size) : -1;
        }
        return;
    }
    // The entries of the block.
    u32 each = (valid + blocks - 1) / blocks, from = rank * each < valid ? rank * each : valid;
    u32 past = (from + each) * size < considered ? (from + each) * size : considered, own = past - from * size;
    PageTable table = {pages, sequences, table_pages, entry.page_entries};
    if (threadIdx.x == 0) room.first = from;
    i32 of_sequence = row_of<const i32>(sequence, 0)[token];
    for (u32 i = threadIdx.x; i < own; i += BEST_THREADS) {
        i32 at = address_of(table, of_sequence, (i64)entry_of(room, from, i, size));
        u32 page = (u32)at / entry.page_entries, slot = (u32)at - page * entry.page_entries;
        room.at[i] = at >= 0 && (u64)at < entry.entries ? (u32)(page * keys.stride) + slot : NOWHERE;
    }
    if (threadIdx.x < SCORE_COLUMNS) {
        u32 head = threadIdx.x / BLOCKS_OF_HEAD, block = threadIdx.x % BLOCKS_OF_HEAD;
        prepare_block(of, token, head, block, room.wholes, nullptr, room.tile, room.row);
    }
    async_fence();
    __syncthreads();
    score_own(of, keys.codes, own, room);
    __syncthreads();
    u32 low = ~0u, high = 0, mine[EACH];
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        mine[i] = threadIdx.x * EACH + i < own ? room.standings[threadIdx.x * EACH + i] : 0;
        low = mine[i] > 0 && mine[i] < low ? mine[i] : low, high = mine[i] > high ? mine[i] : high;
    }
    range_of(low, high, best);
    u32 bits = low <= high ? bits_for(high - low) : 0, shift = bits > BIN_BITS ? bits - BIN_BITS : 0;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        if (mine[i] > 0) atomicAdd(&best.bins[BINS - 1 - ((mine[i] - low) >> shift)], 1u);
    }
    u32 bound = common_bound(low, shift, k, blocks, best), kept = 0, all;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) kept += threadIdx.x * EACH + i < own && mine[i] >= bound ? 1 : 0;
    u32 at = sum_before(kept, best.sums[1], all);
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        u32 own_at = threadIdx.x * EACH + i;
        if (own_at < own && mine[i] >= bound) best.list[at++] = {mine[i], entry_of(room, room.first, own_at, size)};
    }
    if (threadIdx.x == 0) best.listed = all;
    cluster_sync();
    choose_listed(k, blocks, row_of<i32>(y, token), best);
}
