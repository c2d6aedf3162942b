// Linears with the tokens as the narrow side of Hopper's matrix units, for decoding: the weight is read once for each 32
// tokens, at the speed of the memory.
//
// The blocks of a cluster have the parts of the columns. Each keeps its part of up to 32 tokens in shared memory, as the
// units take it. Its gangs of four warps walk over tiles of 64 rows of the weight, each over its own: a thread moves the
// tiles of a gang through its ring, 128 bytes of each row a stage. Sums of a tile are added through the cluster's shared
// memory while the next one is under way. Parts follow from the shape alone, so the bits do not depend on the number of
// tokens.
//
// What differs from linear to linear is its Kind: whether sums are CHAINED, that is whether the units add SECTION stages
// before f32 or `add` is called for each block of 32 columns; whether it HAS_FAR outputs, which `far` makes the slow way;
// `load` and `multiply` of a block; `next`, `open` and `close` of a tile; `store` of an output; and `prepare` of x.
#pragma once
#include "f16_units.cuh"
#include "hopper.cuh"
#include "lanes.cuh"
#include "parts.cuh"
#include "view.cuh"

namespace narrow {
constexpr u32 GANG = 128, ROWS = 64, ROW_BYTES = 128, STAGE_BYTES = ROWS * ROW_BYTES;
// Gangs of a block, as many as have room; the host has the same ones.
template <u32 TOKENS> constexpr u32 GANGS = TOKENS <= 16 ? 4 : 3;
template <u32 TOKENS> constexpr u32 WORKERS = GANGS<TOKENS> * GANG;
// A warp for each gang moves its tiles.
template <u32 TOKENS> constexpr u32 THREADS = WORKERS<TOKENS> + GANGS<TOKENS> * 32;
constexpr u32 ALL_WORKERS = 1;

struct Shape {
    u32 n, k, tokens, parts, slots;
};

// Sums of a thread for 8 tokens.
struct alignas(16) Four {
    float of[4];
};

// Of them those of one row, of neighbouring tokens.
struct alignas(8) Pair {
    float even, odd;
};

// Shared memory of a block, laid out alike in all blocks of the cluster, which reach into each other's.
template <u32 TOKENS> struct Room {
    // Tokens by 64 columns.
    static constexpr u32 COLUMNS_64 = TOKENS * ROW_BYTES;
    // Of a tile the fours of a gang.
    static constexpr u32 FOURS = TOKENS / 8 * GANG, SUMS_BYTES = FOURS * 16;
    u8 *x, *rings;
    // Of each gang what each block has of this block's share of a tile.
    Four *all_sums;
    u64 *barriers;
    u32 *unit;
    u32 slots;

    DEVICE Room(u8 *shared, u32 blocks, const Shape &d) : slots(d.slots) {
        constexpr u32 ALL = GANGS<TOKENS>;
        x = shared;
        rings = x + blocks / 2 * COLUMNS_64;
        all_sums = (Four *)(rings + ALL * slots * STAGE_BYTES);
        barriers = (u64 *)(all_sums + (d.parts > 1 ? ALL * FOURS : 0));
        unit = (u32 *)(barriers + ALL * (2 * slots + 2));
    }
    // What a gang has of it.
    DEVICE u8 *slot(u32 gang, u32 i) const { return rings + (gang * slots + i) * STAGE_BYTES; }
    DEVICE Four *sums(u32 gang) const { return all_sums + gang * FOURS; }
    DEVICE u64 *full(u32 gang, u32 i) const { return barriers + gang * (2 * slots + 2) + i; }
    DEVICE u64 *empty(u32 gang, u32 i) const { return full(gang, slots + i); }
    DEVICE u64 *ready(u32 gang) const { return full(gang, 2 * slots); }
    DEVICE u64 *taken(u32 gang) const { return full(gang, 2 * slots + 1); }
};

// What a block has of the sum, and of the tiles. `most` is the length of the longest part.
struct Part {
    Stages stages;
    u32 own, most, tiles, first_tile, step, first_row, from, rank, log_parts;

    DEVICE Part(const Shape &d, u32 tokens) {
        u32 all = (d.k + STAGE_COLUMNS - 1) / STAGE_COLUMNS;
        // Of the parts there are 1, 2, 4 or 8.
        log_parts = (d.parts > 1) + (d.parts > 2) + (d.parts > 4), rank = blockIdx.x & (d.parts - 1);
        stages = part_of(all, d.parts, rank);
        own = stages.last - stages.first, most = (all + d.parts - 1) >> log_parts;
        tiles = (d.n + ROWS - 1) / ROWS, first_tile = blockIdx.x >> log_parts, step = gridDim.x >> log_parts;
        first_row = blockIdx.z * d.n, from = blockIdx.y * tokens;
    }
};

// A place in a ring, and how often it came round.
struct Cursor {
    u32 slots, slot = 0, parity = 0;

    DEVICE void advance() {
        if (++slot == slots) slot = 0, parity ^= 1;
    }
};

// Moves the stages of all tiles of a gang.
template <u32 TOKENS> struct Mover {
    const Room<TOKENS> &room;
    const TensorMap *map;
    const Part &part;
    u32 gang, slot = 0, round = 0, tile, stage;

    DEVICE Mover(const Room<TOKENS> &room, const TensorMap *map, const Part &part, u32 gang)
        : room(room), map(map), part(part), gang(gang) {
        tile = part.first_tile + gang * part.step, stage = part.stages.first;
    }
    // While there are some, and only without waiting if `ahead`.
    DEVICE void run(bool ahead) {
        while (tile < part.tiles && !(ahead && round > 0)) {
            u64 *full = room.full(gang, slot);
            if (round > 0) barrier_wait(room.empty(gang, slot), (round - 1) % 2);
            barrier_expect(full, STAGE_BYTES);
            copy_tile(room.slot(gang, slot), map, full, stage * ROW_BYTES, part.first_row + tile * ROWS);
            if (++slot == room.slots) slot = 0, round++;
            if (++stage == part.stages.last) stage = part.stages.first, tile += part.step * GANGS<TOKENS>;
        }
    }
};

// The token of an output of a thread, and its row in the tile.
DEVICE u32 token_of(u32 thread, u32 i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }
DEVICE u32 row_in_tile(u32 thread, u32 i) {
    return thread / 32 * 16 + fragment_row(thread % 32) + i / 2 % 2 * 8;
}

// One thread's share of the products of a tile.
template <typename Kind, u32 TOKENS> struct Worker {
    static constexpr u32 HELD = TOKENS / 2;
    // Blocks of a group, whose products are issued together; fragments of two groups are held.
    static constexpr u32 EACH = Kind::CHAINED ? 2 : 1;
    typedef float Sum[HELD];
    const Room<TOKENS> &room;
    Kind &kind;
    u32 gang;
    Cursor at;
    Sum sum;
    typename Kind::Fragment a[2][EACH];

    DEVICE Worker(const Room<TOKENS> &room, Kind &kind, u32 gang)
        : room(room), kind(kind), gang(gang), at{room.slots} {}

    // A group of the stage at hand.
    DEVICE void load(u32 stage, u32 group) {
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            u32 block = group * EACH + j;
            kind.load(a[group % 2][j], room.slot(gang, at.slot), stage * STAGE_BLOCKS + block, block);
        }
    }
    // Waits for a stage of the ring, and begins to load it.
    DEVICE void enter(u32 stage) {
        barrier_wait(room.full(gang, at.slot), at.parity);
        load(stage, 0);
    }
    DEVICE void leave() {
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(room.empty(gang, at.slot));
        at.advance();
    }
    // The products of a group, which are the first of a sum or added to it.
    template <bool FIRST> DEVICE void begin(Sum &some, u32 stage, u32 group) const {
        u64 x = operand_128(room.x) + stage * (STAGE_BLOCKS / 2) * (Room<TOKENS>::COLUMNS_64 / 16);
        mma_fence();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            u32 block = group * EACH + j;
            u64 at = x + block / 2 * (Room<TOKENS>::COLUMNS_64 / 16) + block % 2 * 4;
            if (FIRST && j == 0) kind.template multiply<true>(some, a[group % 2][j], at);
            else kind.template multiply<false>(some, a[group % 2][j], at);
        }
        mma_commit();
    }

    // A stage that was entered; enters the next one, if there is one. Nothing is under way from stage to stage, which would
    // make the compiler wait for each product.
    template <bool FIRST> DEVICE void chain(Sum &some, u32 stage, bool more) {
        begin<FIRST>(some, stage, 0);
        load(stage, 1);
        leave();
        begin<false>(some, stage, 1);
        mma_wait<1>();
        if (more) enter(stage + 1);
        mma_wait<0>();
        mma_hold(some);
    }

    // The same where each block is added in f32.
    DEVICE void by_blocks(u32 stage, bool more) {
        Sum some;
#pragma unroll
        for (u32 block = 0; block < STAGE_BLOCKS; block++) {
            begin<true>(some, stage, block);
            if (block + 1 < STAGE_BLOCKS) {
                load(stage, block + 1);
            } else {
                leave();
                if (more) enter(stage + 1);
            }
            mma_wait<0>();
            mma_hold(some);
            kind.add(sum, some, stage * STAGE_BLOCKS + block);
        }
    }

    // All stages of a tile; `between` is called behind the first ones.
    DEVICE void multiply(u32 stages, const auto &between) {
#pragma unroll
        for (float &s : sum) s = 0;
        enter(0);
        for (u32 i = 0; i < stages; i += Kind::CHAINED ? SECTION : 1) {
            if constexpr (Kind::CHAINED) {
                Sum some;
                chain<true>(some, i, i + 1 < stages);
                if (i + 1 < stages) chain<false>(some, i + 1, i + 2 < stages);
#pragma unroll
                for (u32 c = 0; c < HELD; c++) sum[c] += some[c];
            } else {
                by_blocks(i, i + 1 < stages);
            }
            if (i == 0) between();
        }
    }
};

// Sends the sums of a tile to the blocks that add those of all parts.
template <u32 TOKENS, u32 HELD>
DEVICE void send(const Room<TOKENS> &room, const Part &part, const float (&sum)[HELD], u32 gang, u32 round) {
    constexpr u32 FOURS = Room<TOKENS>::FOURS;
    u32 share = FOURS >> part.log_parts, thread = forgotten(threadIdx.x % GANG);
    // Those who add have read the sums of the last tile before these take their place.
    if (round > 0) barrier_wait(room.taken(gang), (round - 1) % 2);
#pragma unroll
    for (u32 i = 0; i < HELD; i += 4) {
        u32 at = i / 4 * GANG + thread, words[4];
#pragma unroll
        for (u32 j = 0; j < 4; j++) words[j] = bits_of(sum[i + j]);
        peer_store_16(room.sums(gang) + part.rank * share + (at & (share - 1)), words, room.ready(gang),
                      (at << part.log_parts) / FOURS);
    }
}

// Instead of a part's sum, that the output is to be made the slow way. No sum gives this NaN.
constexpr u32 FAR_BITS = 0x7FC0FA12u;
struct Total {
    float sum = 0;
    bool far = false;

    DEVICE void add(float part) { sum += part, far |= bits_of(part) == FAR_BITS; }
};

template <typename Kind> DEVICE float far_output(const Kind &kind, u32 token, u32 output) {
    if constexpr (Kind::HAS_FAR) return kind.far(token, output);
    else return float_of(NAN_BITS);
}

// Adds this block's share of the sums of a tile, and stores it.
template <typename Kind, u32 TOKENS>
DEVICE void finish(const Kind &kind, const Room<TOKENS> &room, const Shape &d, const Part &part, u32 gang, u32 tile,
                   u32 round) {
    u32 share = Room<TOKENS>::FOURS >> part.log_parts, thread = forgotten(threadIdx.x % GANG);
    barrier_wait(room.ready(gang), round % 2);
    // What comes of the next tile.
    if (thread == 0 && tile + part.step * GANGS<TOKENS> < part.tiles) {
        barrier_expect(room.ready(gang), Room<TOKENS>::SUMS_BYTES);
    }
    // Calls `each(token, output, total)` for those that are there, two of four at a time so that more have something to do.
    auto for_each = [&](const auto &each) {
#pragma unroll 1
        for (u32 i = thread; i < 2 * share; i += GANG) {
            Total even, odd;
            const Pair *sums = (const Pair *)room.sums(gang) + i;
#pragma unroll 8
            for (u32 p = 0; p < d.parts; p++) {
                Pair one = sums[p * 2 * share];
                even.add(one.even), odd.add(one.odd);
            }
            u32 at = share * part.rank + i / 2, first = i % 2 * 2;
            u32 token = part.from + at / GANG * 8 + token_of(at % GANG, first);
            u32 output = tile * ROWS + row_in_tile(at % GANG, first);
            if (token < d.tokens && output < d.n) each(token, output, even);
            if (token + 1 < d.tokens && output < d.n) each(token + 1, output, odd);
        }
    };
    bool far = false;
    for_each([&](u32 token, u32 output, const Total &total) {
        kind.store(token, output, total.sum);
        far |= total.far;
    });
    // Apart, as it would slow the other.
    if (Kind::HAS_FAR && far) {
        for_each([&](u32 token, u32 output, const Total &total) {
            if (total.far) kind.store(token, output, far_output(kind, token, output));
        });
    }
    __syncwarp();
    if (threadIdx.x % 32 < d.parts) peer_arrive(room.taken(gang), threadIdx.x % 32);
}

// Stores the sums of a tile where there is one part.
template <typename Kind, u32 HELD>
DEVICE void store_all(const Kind &kind, const Shape &d, const Part &part, const float (&sum)[HELD], u32 tile) {
    u32 thread = forgotten(threadIdx.x % GANG);
    u32 far = 0;
#pragma unroll
    for (u32 i = 0; i < HELD; i++) {
        u32 token = part.from + token_of(thread, i), output = tile * ROWS + row_in_tile(thread, i);
        if (token < d.tokens && output < d.n) kind.store(token, output, sum[i]);
        far |= (u32)(token < d.tokens && output < d.n && bits_of(sum[i]) == FAR_BITS) << i;
    }
#pragma unroll 1
    for (u32 i = 0; Kind::HAS_FAR && i < HELD; i++) {
        u32 token = part.from + token_of(thread, i), output = tile * ROWS + row_in_tile(thread, i);
        if (far >> i & 1) kind.store(token, output, far_output(kind, token, output));
    }
}

template <typename Kind, u32 TOKENS>
DEVICE void work(Kind &kind, const Room<TOKENS> &room, const Shape &d, const Part &part, u32 gang) {
    Worker<Kind, TOKENS> worker(room, kind, gang);
    u32 step = part.step * GANGS<TOKENS>, before = 0, round = 0;
    bool apart = d.parts > 1;
    auto finish_before = [&] {
        if (apart && round > 0) finish(kind, room, d, part, gang, before, round - 1);
    };
    for (u32 tile = part.first_tile + gang * part.step; tile < part.tiles; tile += step, round++) {
        kind.open(tile);
        kind.next(tile + step);
        worker.multiply(part.own, finish_before);
        kind.close(worker.sum);
        if (apart) send(room, part, worker.sum, gang, round);
        else store_all(kind, d, part, worker.sum, tile);
        before = tile;
    }
    finish_before();
    // All that comes to this block's memory has come before it goes.
    if (apart && round > 0) barrier_wait(room.taken(gang), (round - 1) % 2);
}

// Barriers of a gang, by the thread that moves its tiles.
template <u32 TOKENS> DEVICE void make_barriers(const Room<TOKENS> &room, const Shape &d, u32 gang) {
    for (u32 i = 0; i < d.slots; i++) {
        barrier_init(room.full(gang, i), 1);
        barrier_init(room.empty(gang, i), GANG / 32);
    }
    barrier_init(room.ready(gang), 1);
    barrier_init(room.taken(gang), d.parts * (GANG / 32));
    barrier_init_fence();
    if (d.parts > 1) barrier_expect(room.ready(gang), Room<TOKENS>::SUMS_BYTES);
}

// The barriers of all blocks are there.
DEVICE void meet_peers() { cluster_wait(); }

// A block, with a kind that `make(room, part)` makes, before what is in front of it has ended.
template <u32 TOKENS, typename Make> DEVICE void run(const TensorMap *map, const Shape &d, const Make &make) {
    DYNAMIC_SHARED(shared);
    Part part(d, TOKENS);
    Room<TOKENS> room(shared, part.most * STAGE_BLOCKS, d);
    bool works = threadIdx.x < WORKERS<TOKENS>;
    // The compiler is to know that it is the same for all lanes.
    u32 gang = __shfl_sync(ALL_LANES, works ? threadIdx.x / GANG : (threadIdx.x - WORKERS<TOKENS>) / 32, 0);
    bool moves = !works && threadIdx.x % 32 == 0;
    Mover<TOKENS> mover(room, map, part, gang);
    let_next_begin();
    if (moves) {
        make_barriers(room, d, gang);
        // Of what is read only the weight is sure not to be a result of the launch before.
        mover.run(true);
    }
    __syncwarp();
    cluster_arrive();
    if (works) {
        auto kind = make(room, part);
        kind.next(part.first_tile + gang * part.step);
        wait_for_previous();
        kind.prepare();
        async_fence();
        meet_peers();
        some_sync(ALL_WORKERS, WORKERS<TOKENS>);
        work(kind, room, d, part, gang);
    } else {
        meet_peers();
        if (moves) mover.run(false);
    }
}
}  // namespace narrow
