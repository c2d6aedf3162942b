// index.scores on Hopper: MXFP4 keys of 128 columns against up to 32 heads. A block has up to ROWS rows of one sequence
// and a part of its entries: four warps move tiles of 64 keys into a ring, gangs of four warps score them, each tile
// against every row.
//
// Bytes: 68 a key, 4 a score; FLOP: 8,192 a score. Floor of 64 requests of 131,072 keys: 140 us with one row each (bytes),
// 208 with six (products). What limits it is neither: turning a key into whole numbers and the ReLU and sum over heads
// take the integer units, which are half as wide as those for f32. With one row, positive and negative codes of the keys
// stay apart and meet the queries and their negatives, which doubles the products and spares a third of that.
// SASS: IGMMA QGMMA UBLKCP
#include "../device/entry.cuh"
#include "../device/fp4_scores.cuh"
#include "../device/page_table.cuh"

// Gangs as many as there are registers for.
constexpr u32 GANG = 128, GANGS = 4, SCORERS = GANGS * GANG, MOVERS = 4, THREADS = SCORERS + MOVERS * 32;
// Tiles of the ring: a multiple of both, so that a slot is always filled by the same warp and scored by the same gang, and
// nobody who waits for it is two rounds ahead.
template <u32 ROWS> constexpr u32 SLOTS = ROWS == 1 ? 24 : 12;
constexpr u32 NONE = 0xFF800000u;

// One tile of the ring: which keys are there, and its barriers.
struct alignas(16) Slot {
    u64 full, empty;
    u32 there[2];
};

struct Part {
    Scored of;
    View sequence, visible, y;
    u32 tokens, entries, parts;
    // The block's first row.
    u32 token;
    // Whether rows that are scored together begin anywhere, or at multiples of their number.
    bool anywhere;
};

// How many rows in front of a token have its sequence.
DEVICE u32 rows_before(const Part &d, u32 token, i32 own) {
    const i32 *sequence = row_of<const i32>(d.sequence, 0);
    for (u32 before = 0;; before += 32) {
        u32 back = before + threadIdx.x % 32 + 1;
        u32 same = __ballot_sync(ALL_LANES, back <= token && sequence[token - (back <= token ? back : 0)] == own);
        if (same != ALL_LANES) return before + (u32)__ffs((int)~same) - 1;
    }
}

// Rows of the block, none if an earlier block has its first one.
DEVICE u32 rows_from(const Part &d, u32 token, u32 most) {
    const i32 *sequence = row_of<const i32>(d.sequence, 0);
    i32 own = sequence[token];
    u32 rows = 1;
    if (d.anywhere) {
        if (rows_before(d, token, own) % most != 0) return 0;
    } else {
        if (token % most != 0 && sequence[token - 1] == own) return 0;
        most -= token % most;
    }
    while (rows < most && token + rows < d.tokens && sequence[token + rows] == own) rows++;
    return rows;
}

// Entries that a row sees.
DEVICE u32 seen_by(const Part &d, u32 token) {
    i32 counted = row_of<const i32>(d.visible, 0)[token];
    return counted < 0 ? 0 : (u32)counted < d.entries ? (u32)counted : d.entries;
}

// Moves keys of tiles into the ring, by a warp: every MOVERS-th tile.
template <u32 ROWS>
DEVICE void move_keys(const Part &d, const PageTable &table, const Entry &entry, const View &keys, i32 sequence, u32 begin,
                      u32 end, u8 *ring, Slot *slots, bool aligned) {
    u32 lane = threadIdx.x % 32, mover = threadIdx.x / 32 - SCORERS / 32, window = 0, past_window = 0;
    u32 size = (u32)table.page_entries;
    const u8 *pages = nullptr;
    for (u32 tile = begin + mover; tile < end; tile += MOVERS) {
        u32 turn = tile - begin, round = turn / SLOTS<ROWS>, slot = turn % SLOTS<ROWS>;
        u32 first = tile * TILE_KEYS, page = first / size, last = (first + TILE_KEYS - 1) / size;
        if (last >= past_window) {
            // Where pages ahead begin, a lane each.
            window = page, past_window = page + 32;
            pages = entry_at(entry, keys, address_of(table, sequence, (i64)(window + lane) * size));
        }
        u32 own = page + lane, from = own * size > first ? own * size : first;
        u32 past = (own + 1) * size < first + TILE_KEYS ? (own + 1) * size : first + TILE_KEYS;
        const u8 *key = (const u8 *)__shfl_sync(ALL_LANES, (u64)pages, own - window < 32 ? own - window : 0);
        if (own > last) key = nullptr;
        u32 count = key ? past - from : 0;
        u64 mask = count == 64 ? ~0ull : ((1ull << count) - 1) << (from - first) % 64;
        u32 lower = __reduce_or_sync(ALL_LANES, (u32)mask), upper = __reduce_or_sync(ALL_LANES, (u32)(mask >> 32));
        barrier_wait(&slots[slot].empty, round % 2 ^ 1);
        u8 *to = ring + slot * TILE_BYTES + (from - first) * KEY_BYTES;
        key += (from - own * size) * KEY_BYTES;
        if (lane == 0) slots[slot].there[0] = lower, slots[slot].there[1] = upper;
        if (aligned) {
            if (lane == 0) barrier_expect(&slots[slot].full, (u32)(__popc(lower) + __popc(upper)) * KEY_BYTES);
            __syncwarp();
            if (count > 0) copy_bulk(to, key, count * KEY_BYTES, &slots[slot].full);
        } else {
            for (u32 i = 0; i < count * KEY_BYTES; i += 4) *(u32 *)(to + i) = load_bytes<u32>(key + i);
            __syncwarp();
            if (lane == 0) barrier_arrive(&slots[slot].full);
        }
    }
}

// Of a warp's 16 keys, the one whose score a lane gets.
DEVICE u32 own_key() { return threadIdx.x % 32 / 4 + threadIdx.x % 2 * 8; }

// Tiles with keys that whole numbers do not hold, a bit for one or several; and whether there are any.
constexpr u32 LATER_WORDS = 256;
struct Later {
    u32 bits[LATER_WORDS], any;

    DEVICE u32 bit_of(u32 tile, u32 tiles) const { return (u32)((u64)tile * (LATER_WORDS * 32) / tiles); }
};

// Tiles of the queries: whole numbers, with one row their negatives too, and E4M3.
template <u32 ROWS> constexpr u32 WHOLE_TILES = ROWS == 1 ? 2 : ROWS;
template <u32 ROWS> constexpr u32 QUERIES = (WHOLE_TILES<ROWS> + ROWS) * QUERY_BYTES;

// One gang's share of the tiles.
template <u32 ROWS>
DEVICE void score_tiles(const Part &d, const ScoredRow *rows, u32 count, const u8 *queries, u32 begin, u32 end,
                        const u8 *ring, Slot *slots, Later &later) {
    constexpr u32 PAIR = ROWS == 1 ? 1 : 2;
    u32 lane = threadIdx.x % 32, gang = threadIdx.x / GANG, warp = threadIdx.x % GANG / 32, slot = gang, parity = 0;
    u64 wholes = operand_128(queries);
    // The row that a lane writes, of one or two.
    u32 own_row = ROWS == 1 ? 0 : lane % 4 / 2;
    const u8 *keys_of = ring + (warp * 16 + lane / 4) * KEY_BYTES, *blocks_of = keys_of + lane % 4 * 16;
    for (u32 tile = begin + gang; tile < end; tile += GANGS) {
        barrier_wait(&slots[slot].full, parity);
        KeyWords words;
        words.load((const u32 *)(keys_of + slot * TILE_BYTES), (const u32 *)(blocks_of + slot * TILE_BYTES));
        WholeKeys<ROWS == 1> keys(words);
        u32 entry = tile * TILE_KEYS + warp * 16 + own_key();
        bool there = slots[slot].there[warp / 2] >> (warp % 2 * 16 + own_key()) & 1;
        bool writes = entry < d.entries && (ROWS > 1 || lane % 4 < 2);
        float scale = lane % 2 ? keys.scale[1] : keys.scale[0];
#pragma unroll 1
        for (u32 first = 0; first < count; first += PAIR) {
            i32 dot[PAIR * 16];
            begin_dots(dot, keys, wholes + first * (QUERY_BYTES / 16));
            mma_wait<0>();
            mma_hold(dot);
            float sum[PAIR][2], score;
#pragma unroll
            for (u32 i = 0; i < PAIR; i++) add_heads(dot, i * 16, rows[first + i], sum[i]);
            if constexpr (PAIR == 2) score = lanes_sum_of(sum);
            else score = lanes_score(sum[0][0], sum[0][1]);
            const ScoredRow &row = rows[first + own_row];
            bool seen = there && entry < row.visible;
            if (writes && first + own_row < count) row_of<float>(d.y, d.token + first + own_row)[entry] = seen ? score * scale : float_of(NONE);
        }
        if (keys.special[0] || keys.special[1]) {
            u32 bit = later.bit_of(tile - begin, end - begin);
            atomicOr(&later.bits[bit / 32], 1u << bit % 32), later.any = 1;
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(&slots[slot].empty);
        slot += GANGS;
        if (slot >= SLOTS<ROWS>) slot = gang, parity ^= 1;
    }
}

// Scores that whole numbers do not hold, over what was written for them.
template <u32 ROWS>
DEVICE void score_later(const Part &d, const PageTable &table, const Entry &entry, const View &keys, i32 sequence,
                        const ScoredRow *rows, u32 count, const u8 *queries, u32 begin, u32 end, const Later &later) {
    u32 lane = threadIdx.x % 32, gang = threadIdx.x / GANG, warp = threadIdx.x % GANG / 32;
    u64 operand = operand_128(queries);
    bool all = false;
    for (u32 r = 0; r < count; r++) all = all || rows[r].wide || rows[r].far;
    if (!all && !later.any) return;
    for (u32 tile = begin + gang; tile < end; tile += GANGS) {
        u32 bit = later.bit_of(tile - begin, end - begin), first = tile * TILE_KEYS;
        if (!all && !(later.bits[bit / 32] >> bit % 32 & 1)) continue;
        auto key_of = [&](u32 i) { return entry_at(entry, keys, address_of(table, sequence, (i64)(first + i))); };
        KeyWords words;
        words.load<false>(key_of, (u64)keys.codes % 4 == 0);
        u32 place = first + warp * 16 + own_key();
        for (u32 r = 0; r < count; r++) {
            float score = block_scores(words, operand + r * (QUERY_BYTES / 16), rows[r]);
            u32 scales = lane % 2 ? words.scales[1] : words.scales[0], largest = largest_scale(scales);
            bool wide = rows[r].wide || are_special(scale_steps(scales, largest), largest);
            bool written = lane % 4 < 2 && wide && !are_far(scales) && !rows[r].far && place < rows[r].visible;
            if (written && key_of(warp * 16 + own_key())) row_of<float>(d.y, d.token + r)[place] = score;
        }
        u32 far = __ballot_sync(ALL_LANES, lane % 4 < 2 && are_far(lane % 2 ? words.scales[1] : words.scales[0]));
        for (u32 r = 0; r < count; r++) {
            for (u32 i = 0; i < 16; i++) {
                const u8 *key = rows[r].far || far >> (i % 8 * 4 + i / 8) & 1 ? key_of(warp * 16 + i) : nullptr;
                u32 at = first + warp * 16 + i;
                if (!key || at >= rows[r].visible) continue;
                float score = plain_score(d.of, d.token + r, key);
                if (lane == 0) row_of<float>(d.y, d.token + r)[at] = score;
            }
        }
    }
}

template <u32 ROWS>
DEVICE void score(const Part &d, const View &keys, const Entry &entry, const PageTable &table, bool aligned, u8 *shared) {
    u32 token = d.token, part = blockIdx.x % d.parts;
    u8 *queries = shared, *ring = shared + QUERIES<ROWS>;
    Slot *slot = (Slot *)(ring + SLOTS<ROWS> * TILE_BYTES);
    ScoredRow *rows = (ScoredRow *)(slot + SLOTS<ROWS>);
    Later &later = *(Later *)(rows + ROWS);
    wait_for_previous();
    let_next_begin();
    u32 count = rows_from(d, token, ROWS);
    if (count == 0) return;
    if (threadIdx.x < SLOTS<ROWS>) {
        barrier_init(&slot[threadIdx.x].full, 1);
        barrier_init(&slot[threadIdx.x].empty, GANG / 32);
        barrier_init_fence();
    }
    if (threadIdx.x < LATER_WORDS) later.bits[threadIdx.x] = 0, later.any = 0;
    if (threadIdx.x < count) {
        ScoredRow &row = rows[threadIdx.x];
        row.visible = seen_by(d, token + threadIdx.x), row.wide = 0, row.far = 0;
    }
    u32 longest = 0;
    for (u32 r = 0; r < count; r++) longest = seen_by(d, token + r) > longest ? seen_by(d, token + r) : longest;
    __syncthreads();
    u32 tiles = (longest + TILE_KEYS - 1) / TILE_KEYS;
    u32 begin = (u32)((u64)tiles * part / d.parts), end = (u32)((u64)tiles * (part + 1) / d.parts);
    i32 sequence = row_of<const i32>(d.sequence, 0)[token];
    if (threadIdx.x >= SCORERS) {
        return move_keys<ROWS>(d, table, entry, keys, sequence, begin, end, ring, slot, aligned);
    }
    for (u32 i = threadIdx.x; i < count * SCORE_COLUMNS; i += SCORERS) {
        u32 r = i / SCORE_COLUMNS, head = i % SCORE_COLUMNS / BLOCKS_OF_HEAD, block = i % BLOCKS_OF_HEAD;
        u8 *wholes = queries + r * QUERY_BYTES, *tile = wholes + WHOLE_TILES<ROWS> * QUERY_BYTES;
        prepare_block(d.of, token + r, head, block, wholes, ROWS == 1 ? wholes + QUERY_BYTES : nullptr, tile, rows[r]);
    }
    async_fence();
    some_sync(1 + GANGS, SCORERS);
    // Nobody sees what is behind all tiles.
    u32 behind = tiles * TILE_KEYS, rest = behind < d.entries ? d.entries - behind : 0;
    u32 from = behind + (u32)((u64)rest * part / d.parts), past = behind + (u32)((u64)rest * (part + 1) / d.parts);
    for (u32 r = 0; r < count; r++) {
        for (u32 i = from + threadIdx.x; i < past; i += SCORERS) row_of<float>(d.y, token + r)[i] = float_of(NONE);
    }
    score_tiles<ROWS>(d, rows, count, queries, begin, end, ring, slot, later);
    some_sync(1 + GANGS, SCORERS);
    const u8 *tile = queries + WHOLE_TILES<ROWS> * QUERY_BYTES;
    score_later<ROWS>(d, table, entry, keys, sequence, rows, count, tile, begin, end, later);
}

#define SCORES(ROWS)                                                                                                  \
    (View q, View weight, View keys, View sequence, View pages, View visible, View y,                                 \
     const __grid_constant__ Entry entry, u64 sequences, u64 table_pages, u32 heads, float scale, u32 entries,        \
     u32 tokens, u32 parts, u32 anywhere, u32 aligned) {                                                              \
        DYNAMIC_SHARED(shared);                                                                                       \
        Part d = {{q, weight, heads, scale}, sequence, visible, y, tokens, entries, parts, blockIdx.x / parts,      \
                  anywhere != 0};                                                                                 \
        score<ROWS>(d, keys, entry, {pages, sequences, table_pages, entry.page_entries}, aligned != 0, shared);       \
    }
KERNEL(index_scores__tiles_1, THREADS) SCORES(1)
KERNEL(index_scores__tiles_2, THREADS) SCORES(2)
KERNEL(index_scores__tiles_4, THREADS) SCORES(4)
KERNEL(index_scores__tiles_6, THREADS) SCORES(6)
