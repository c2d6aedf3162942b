// gemm.mxfp8 on Hopper for many tokens: the bits of device/narrow_tiles.cuh by other tiles.
//
// One launch makes f16 of x (device/f16_blocks.cuh), the next multiplies. There a block has 128 rows of the weight at a
// time, which two gangs of four warps expand in registers, and up to 192 tokens. The blocks of a cluster have neighbouring
// rows and the same tokens: each brings a share of these for all. Blocks stay and take tiles one after the other, whose
// columns two threads move through rings.
//
// What the units add of a section goes to sums in registers, those of a part to sums in shared memory where there are
// several.
// SASS: HGMMA UTMALDG
#include "../device/f16_blocks.cuh"

namespace wide {
constexpr u32 GANG = 128, GANGS = 2, WORKERS = GANGS * GANG, THREADS = WORKERS + GANG, ROW_THREADS = 256;
constexpr u32 ROWS = 64 * GANGS, ROW_BYTES = 128, TILE_BYTES = ROWS * ROW_BYTES;
// Blocks of a cluster, and neighbouring tiles of clusters that go through all tokens before the next ones.
constexpr u32 PEERS = 2, BAND = 8;
// Outputs of a row that a warp exchanges, with room for banks, and rows at a time.
constexpr u32 PITCH = 40, AT_ONCE = 4, EXCHANGE_BYTES = AT_ONCE * 8 * PITCH;
// Of the workers.
constexpr int MORE = 232, FEWER = 40;

struct Shape {
    u32 n, k, tokens, parts, weight_slots, x_slots;
};

template <u32 TOKENS> struct Room {
    static constexpr u32 HELD = TOKENS / 2, HALF_BYTES = TOKENS * ROW_BYTES;
    u8 *weight, *x, *exchange;
    float *totals, *units;
    u64 *weight_full, *weight_empty, *x_full, *x_empty;

    DEVICE Room(u8 *shared, const Shape &d) {
        weight = shared, x = weight + d.weight_slots * TILE_BYTES;
        totals = (float *)(x + d.x_slots * HALF_BYTES);
        exchange = (u8 *)(totals + (d.parts > 1 ? WORKERS * HELD : 0));
        units = (float *)(exchange + WORKERS / 32 * EXCHANGE_BYTES);
        weight_full = (u64 *)(units + GANGS * 2 * TOKENS), weight_empty = weight_full + d.weight_slots;
        x_full = weight_empty + d.weight_slots, x_empty = x_full + d.x_slots;
    }
};

// Sums of a thread, for two tokens and two rows; and what two tokens have.
struct alignas(16) Four {
    float of[4];
};
struct alignas(8) Pair {
    float even, odd;
};

// A ring's slot, and how often it came round.
struct Turn {
    u32 slots, slot = 0, round = 0;
    DEVICE void next() {
        if (++slot == slots) slot = 0, round++;
    }
};

// Tiles of a block: of its rows of the weight and of tokens.
struct Items {
    u32 rows, columns, item, step;

    DEVICE Items(const Shape &d, u32 width) {
        rows = (d.n + ROWS * PEERS - 1) / (ROWS * PEERS), columns = (d.tokens + width - 1) / width;
        item = blockIdx.x / PEERS, step = gridDim.x / PEERS;
    }
    DEVICE bool more() const { return item < rows * columns; }
    DEVICE void next() { item += step; }
    DEVICE void find(u32 &row, u32 &column) const {
        u32 band = item / (BAND * columns), within = item - band * BAND * columns;
        u32 left = rows - band * BAND, height = left < BAND ? left : BAND;
        column = within / height;
        row = ((band * BAND + within - column * height) * PEERS + blockIdx.x % PEERS) * ROWS;
    }
};

template <u32 TOKENS> DEVICE void move_weight(const Room<TOKENS> &room, const TensorMap *map, const Shape &d) {
    Turn turn{d.weight_slots};
    u32 stages = (d.k + STAGE_COLUMNS - 1) / STAGE_COLUMNS, row, column;
    for (Items items(d, TOKENS); items.more(); items.next()) {
        items.find(row, column);
        for (u32 stage = 0; stage < stages; stage++) {
            u64 *full = &room.weight_full[turn.slot];
            if (turn.round > 0) barrier_wait(&room.weight_empty[turn.slot], (turn.round - 1) % 2);
            barrier_expect(full, TILE_BYTES);
            copy_tile(room.weight + turn.slot * TILE_BYTES, map, full, stage * ROW_BYTES, row);
            turn.next();
        }
    }
}

template <u32 TOKENS> DEVICE void move_x(const Room<TOKENS> &room, const TensorMap *map, const Shape &d) {
    constexpr u32 SHARE = TOKENS / PEERS;
    Turn turn{d.x_slots};
    u32 halves = (d.k + STAGE_COLUMNS - 1) / STAGE_COLUMNS * 2, rank = blockIdx.x % PEERS, row, column;
    for (Items items(d, TOKENS); items.more(); items.next()) {
        items.find(row, column);
        for (u32 half = 0; half < halves; half++) {
            u64 *full = &room.x_full[turn.slot];
            if (turn.round > 0) barrier_wait(&room.x_empty[turn.slot], (turn.round - 1) % 2);
            barrier_expect(full, room.HALF_BYTES);
            u8 *to = room.x + turn.slot * room.HALF_BYTES + rank * SHARE * ROW_BYTES;
            copy_tile_to_all(to, map, full, half * ROW_BYTES, column * TOKENS + rank * SHARE, PEERS);
            turn.next();
        }
    }
}


// What a part of a tile needs besides its operands, on its way while the part before is multiplied: scales of this warp's
// band of the weight, and units of rows of x.
template <u32 TOKENS> struct Ahead {
    static constexpr u32 EACH = (TOKENS + GANG - 1) / GANG;
    u32 codes[2], units[EACH];

    DEVICE void load(const Shape &d, const View &weight, const View &rows, u32 row, u32 column, u32 part) {
        u32 stages = (d.k + STAGE_COLUMNS - 1) / STAGE_COLUMNS, thread = threadIdx.x % GANG;
        BandCodes{weight, row / 32, d.n, d.k / 32, part_of(stages, d.parts, part)}.load(codes);
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            u32 token = i * GANG + thread, at = column * TOKENS + token;
            bool there = token < TOKENS && at < d.tokens;
            units[i] = there ? ((const u32 *)rows.scales)[(u64)at * MOST_PARTS + part] : 127;
        }
    }
};

template <u32 TOKENS> struct Worker {
    static constexpr u32 HELD = TOKENS / 2;
    typedef u32 Fragment[2][4];
    const Room<TOKENS> &room;
    const Shape &d;
    const View &x, &weight, &y, &rows;
    u32 gang, warp, lane;
    Turn weights, halves;
    float part[HELD], sum[HELD];
    Fragment a[2];
    u32 factors[2];

    DEVICE Worker(const Room<TOKENS> &room, const Shape &d, const View &x, const View &weight, const View &y,
                  const View &rows)
        : room(room), d(d), x(x), weight(weight), y(y), rows(rows), weights{d.weight_slots}, halves{d.x_slots} {
        // The compiler is to know that it is the same for all lanes.
        gang = __shfl_sync(ALL_LANES, threadIdx.x / GANG, 0), warp = threadIdx.x % GANG / 32, lane = threadIdx.x % 32;
    }

    // The fragment of a block of the stage at hand, block `of_part` of its part.
    DEVICE void load(Fragment &to, u32 block, u32 of_part) const {
        const u8 *at = room.weight + weights.slot * TILE_BYTES + gang * (64 * ROW_BYTES) + fragment_place(block);
        u32 factor = of_block(factors, of_part);
        widen(to, 0, *(const Words<2> *)at, factor);
        widen(to, 1, *(const Words<2> *)(at + 1024), factor);
    }
    template <bool FIRST> DEVICE void multiply(const Fragment &a, u64 b) {
        mma_fence();
        if constexpr (FIRST) mma_f16(part, a[0], b);
        else mma_f16_add(part, a[0], b);
        mma_f16_add(part, a[1], b + 2);
        mma_commit();
    }
    DEVICE u64 enter_x() const {
        barrier_wait(&room.x_full[halves.slot], halves.round % 2);
        return operand_128(room.x + halves.slot * room.HALF_BYTES);
    }
    DEVICE void leave_x(u32 slot) const {
        __syncwarp();
        if (lane < PEERS) peer_arrive(&room.x_empty[slot], lane);
    }
    // Waits for a stage of the weight and begins to expand it.
    DEVICE void enter(u32 of_part) {
        barrier_wait(&room.weight_full[weights.slot], weights.round % 2);
        load(a[0], 0, of_part);
    }
    DEVICE void leave() {
        __syncwarp();
        if (lane == 0) barrier_arrive(&room.weight_empty[weights.slot]);
        weights.next();
    }
    // A stage that was entered, whose first block is `of_part`; enters the next one of the part, if there is one. Nothing
    // is under way from stage to stage, which would make the compiler wait for each product: the other gang's are then.
    template <bool FIRST> DEVICE void stage(u32 of_part, bool more) {
        u32 first = halves.slot;
        u64 b = enter_x();
        halves.next();
        multiply<FIRST>(a[0], b);
        load(a[1], 1, of_part + 1);
        multiply<false>(a[1], b + 4);
        u32 second = halves.slot;
        b = enter_x();
        halves.next();
        mma_wait<1>();
        load(a[0], 2, of_part + 2);
        multiply<false>(a[0], b);
        mma_wait<1>();
        leave_x(first);
        load(a[1], 3, of_part + 3);
        leave();
        multiply<false>(a[1], b + 4);
        mma_wait<1>();
        if (more) enter(of_part + 4);
        mma_wait<0>();
        mma_hold(part);
        leave_x(second);
    }

    // The products of a part.
    DEVICE void multiply_part(u32 stages) {
#pragma unroll
        for (float &s : sum) s = 0;
        enter(0);
        for (u32 i = 0; i < stages; i += SECTION) {
            stage<true>(i * STAGE_BLOCKS, i + 1 < stages);
            if (i + 1 < stages) stage<false>((i + 1) * STAGE_BLOCKS, i + 2 < stages);
#pragma unroll
            for (u32 c = 0; c < HELD; c++) sum[c] += part[c];
        }
    }

    // Adds what was made of a part, in units of both operands, to the parts before; the last sums stay in registers.
    DEVICE void close_part(const float *units, float own, bool first, bool last) {
        Four *totals = (Four *)room.totals + gang * (HELD / 4 * GANG) + threadIdx.x % GANG;
#pragma unroll
        for (u32 i = 0; i < HELD; i += 4) {
            Pair unit = *(const Pair *)(units + token_of(i));
            float even = unit.even * own, odd = unit.odd * own;
            Four all = {sum[i] * even, sum[i + 1] * odd, sum[i + 2] * even, sum[i + 3] * odd};
            if (!first) {
                Four before = totals[i / 4 * GANG];
#pragma unroll
                for (u32 j = 0; j < 4; j++) all.of[j] += before.of[j];
            }
            if (!last) totals[i / 4 * GANG] = all;
#pragma unroll
            for (u32 j = 0; j < 4; j++) sum[i + j] = all.of[j];
        }
    }

    // Of an output of this thread its token and row in the tile.
    DEVICE u32 token_of(u32 i) const { return i / 4 * 8 + lane % 4 * 2 + i % 2; }
    DEVICE u32 row_of(u32 i) const { return gang * 64 + warp * 16 + fragment_row(lane) + i / 2 % 2 * 8; }

    // Sums that are no numbers, where scales are so far apart that f16 do not hold them: made again the slow way.
    DEVICE void make_far(bool wild, u32 first_row, u32 first_token) {
        bool any = false;
#pragma unroll
        for (float s : sum) any |= is_nan(s);
        if (!any) return;
#pragma unroll 1
        for (u32 c = 0; c < HELD; c++) {
            float s = 0;
#pragma unroll
            for (u32 i = 0; i < HELD; i++) s = i == c ? sum[i] : s;
            u32 token = first_token + token_of(c), row = first_row + row_of(c);
            if (!is_nan(s) || token >= d.tokens || row >= d.n) continue;
            bool far = wild;
            for (u32 p = 0; p < d.parts; p++) far |= ((const u32 *)rows.scales)[(u64)token * MOST_PARTS + p] == WILD;
            if (!far) continue;
            s = far_sum(x, weight, token, row, d.k / 32);
#pragma unroll
            for (u32 i = 0; i < HELD; i++) sum[i] = i == c ? s : sum[i];
        }
    }

    // Stores a tile's outputs, which the threads of a warp exchange so that each has four neighbouring ones of a token.
    DEVICE void store(u32 first_row, u32 first_token) const {
        u8 *own = room.exchange + (gang * 4 + warp) * EXCHANGE_BYTES;
        u32 row = first_row + gang * 64 + warp * 16 + lane % 4 * 4;
        bool whole = row + 4 <= d.n && ((u64)y.codes + row * 2) % 8 == 0 && y.stride % 4 == 0;
#pragma unroll
        for (u32 from = 0; from < HELD / 4; from += AT_ONCE) {
#pragma unroll
            for (u32 i = from * 4; i < (from + AT_ONCE) * 4; i++) {
                u16 *to = (u16 *)(own + (i / 4 % AT_ONCE * 8 + token_of(i) % 8) * PITCH);
                to[row_of(i) % 16] = bf16_result(sum[i]);
            }
            __syncwarp();
#pragma unroll
            for (u32 j = 0; j < AT_ONCE; j++) {
                u32 token = first_token + (from + j) * 8 + lane / 4;
                const u16 *from_row = (const u16 *)(own + (j * 8 + lane / 4) * PITCH) + lane % 4 * 4;
                u16 *to = ::row_of<u16>(y, token) + row;
                if (token >= d.tokens) continue;
                if (whole) *(Words<2> *)to = *(const Words<2> *)from_row;
                else for (u32 q = 0; q < 4 && row + q < d.n; q++) to[q] = from_row[q];
            }
            __syncwarp();
        }
    }

    DEVICE void run() {
        u32 stages = (d.k + STAGE_COLUMNS - 1) / STAGE_COLUMNS, first_row, column, round = 0;
        Items items(d, TOKENS);
        Ahead<TOKENS> ahead;
        items.find(first_row, column);
        u32 own_rows = gang * 64 + warp * 16;
        ahead.load(d, weight, rows, first_row + own_rows, column, 0);
        while (items.more()) {
            u32 row = first_row, token = column * TOKENS;
            bool wild = false;
            items.next();
            for (u32 p = 0; p < d.parts; p++, round++) {
                Stages of = part_of(stages, d.parts, p);
                float *units = room.units + (gang * 2 + round % 2) * TOKENS;
#pragma unroll
                for (u32 i = 0; i < ahead.EACH; i++) {
                    u32 at = i * GANG + threadIdx.x % GANG;
                    if (at < TOKENS) units[at] = ahead.units[i] == WILD ? float_of(NAN_BITS) : unit_of(ahead.units[i]);
                }
                BandCodes band = {weight, (row + own_rows) / 32, d.n, d.k / 32, of};
                u32 unit = unit_of_band(band, ahead.codes);
#pragma unroll
                for (u32 i = 0; i < 2; i++) factors[i] = factors_of(ahead.codes[i], unit);
                wild |= unit == WILD;
                bool last = p + 1 == d.parts;
                if (last) items.find(first_row, column);
                if (!last || items.more()) ahead.load(d, weight, rows, first_row + own_rows, column, last ? 0 : p + 1);
                multiply_part(of.last - of.first);
                some_sync(1 + gang, GANG);
                close_part(units, unit == WILD ? float_of(NAN_BITS) : unit_of(unit), p == 0, last);
            }
            make_far(wild, row, token);
            store(row, token);
        }
    }
};

template <u32 TOKENS>
DEVICE void multiply(const TensorMap *weight_map, const TensorMap *x_map, const View &x, const View &weight, const View &y,
                     const View &rows, const Shape &d) {
    DYNAMIC_SHARED(shared);
    Room<TOKENS> room(shared, d);
    let_next_begin();
    if (threadIdx.x == WORKERS) {
        for (u32 i = 0; i < d.weight_slots; i++) {
            barrier_init(&room.weight_full[i], 1);
            barrier_init(&room.weight_empty[i], WORKERS / 32);
        }
        for (u32 i = 0; i < d.x_slots; i++) {
            barrier_init(&room.x_full[i], 1);
            barrier_init(&room.x_empty[i], PEERS * WORKERS / 32);
        }
        barrier_init_fence();
    }
    __syncwarp();
    cluster_arrive();
    cluster_wait();
    if (threadIdx.x < WORKERS) {
        more_registers<MORE>();
        wait_for_previous();
        Worker<TOKENS> worker(room, d, x, weight, y, rows);
        worker.run();
    } else {
        fewer_registers<FEWER>();
        // Of what is read only the weight is sure not to be a result of the launch before.
        if (threadIdx.x == WORKERS) move_weight(room, weight_map, d);
        if (threadIdx.x == WORKERS + 32) {
            wait_for_previous();
            move_x(room, x_map, d);
        }
    }
    __syncwarp();
    // Peers tell this block's barriers and fill its memory until they are done.
    cluster_arrive();
    cluster_wait();
}
}  // namespace wide

// A row of x as f16 and its units, a block a row.
KERNEL(gemm_mxfp8__wide_rows, wide::ROW_THREADS)(View x, View rows, u32 k, u32 parts) {
    __shared__ u32 largest[MOST_PARTS], wild[MOST_PARTS];
    u32 blocks = k / 32, stages = (k + STAGE_COLUMNS - 1) / STAGE_COLUMNS, thread = threadIdx.x;
    auto part_of_block = [&](u32 block) { return part_with(block / STAGE_BLOCKS, stages, parts); };
    let_next_begin();
    wait_for_previous();
    Rows own = {x, blockIdx.x, 1, blocks, 0, blocks};
    auto unit = [&](u32 part) { return wild[part] ? WILD : unit_for(largest[part]); };
    if (thread < MOST_PARTS) largest[thread] = 0, wild[thread] = 0;
    __syncthreads();
    for (u32 block = thread; block < blocks; block += wide::ROW_THREADS) {
        u32 code = own.scale(0, block);
        if (code != 0xFF) atomicMax(&largest[part_of_block(block)], code);
    }
    __syncthreads();
    for (u32 block = thread; block < blocks; block += wide::ROW_THREADS) {
        u32 part = part_of_block(block), code = own.scale(0, block);
        if (!fits_unit(code, largest[part]) || (code == 0 && !own.zeros(0, block))) wild[part] = 1;
    }
    __syncthreads();
    if (thread < MOST_PARTS) ((u32 *)rows.scales)[(u64)blockIdx.x * MOST_PARTS + thread] = unit(thread);
    // Four threads for a block, so that neighbours store neighbouring bytes.
    Words<4> *to = (Words<4> *)rows.codes + (u64)blockIdx.x * (k / 8);
    for (u32 i = thread; i < k / 8; i += wide::ROW_THREADS) {
        u32 block = i / 4, factors = factors_of(own.scale(0, block), unit(part_of_block(block)));
        Words<4> codes[2] = {own.codes(0, block)[0], own.codes(0, block)[1]}, halves[4];
        widen_block(halves, codes, factors);
        Words<4> quarter = halves[0];
#pragma unroll
        for (u32 q = 1; q < 4; q++) quarter = i % 4 == q ? halves[q] : quarter;
        to[i] = quarter;
    }
}

#define WIDE(TOKENS)                                                                                                   \
    (const __grid_constant__ TensorMap weight_map, const __grid_constant__ TensorMap x_map, View x, View weight,       \
     View y, View rows, u32 n, u32 k, u32 tokens, u32 parts, u32 weight_slots, u32 x_slots) {                          \
        wide::multiply<TOKENS>(&weight_map, &x_map, x, weight, y, rows, {n, k, tokens, parts, weight_slots, x_slots}); \
    }

KERNEL(gemm_mxfp8__wide_128, wide::THREADS) WIDE(128)
KERNEL(gemm_mxfp8__wide_160, wide::THREADS) WIDE(160)
KERNEL(gemm_mxfp8__wide_192, wide::THREADS) WIDE(192)
