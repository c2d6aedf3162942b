// Linears with the tokens as the narrow side of Hopper's matrix units, for decoding: the weight is read once for each 64
// tokens, at the speed of the memory.
//
// The blocks of a cluster have the parts of the columns. Each keeps its part of up to 64 tokens in shared memory, as the
// units take it, and walks over tiles of 64 rows of the weight, which one thread moves through a ring, 128 bytes of each
// row a stage. Two gangs of four warps take the stages in turn. Sums of a tile are added through the cluster's shared
// memory while the next one is under way. Parts follow from the shape alone, so the bits do not depend on the number of
// tokens.
//
// What differs from linear to linear is its Kind: BLOCKS of 32 columns in a stage, the `row_of_eight` of a lane, whether
// fragments are IN_REGISTERS and it is ALWAYS_NEAR; `scales_of` a stage; `load`, `multiply`, `add` and, of 8 tokens, `add_far`
// of a block; `next`, `is_near` and `close` of a tile; `store` of an output;
// and `prepare` of x, which says whether it is near.
#pragma once
#include "bf16.cuh"
#include "f16_units.cuh"
#include "hopper.cuh"
#include "lanes.cuh"
#include "mxfp8_blocks.cuh"
#include "view.cuh"

namespace narrow {
constexpr u32 GANG = 128, GANGS = 2, WORKERS = GANGS * GANG, WARPS = WORKERS / 32;
constexpr u32 ROWS = 64, BANDS = 2, BLOCKS = 64, ROW_BYTES = 128, STAGE_BYTES = ROWS * ROW_BYTES;
// Barriers of a gang, and of all workers.
constexpr u32 GANG_BARRIER = 1, ALL_WORKERS = GANG_BARRIER + GANGS;
// Threads of a block. Many tokens take so many registers that the mover has to give up its own, with its whole gang.
template <u32 TOKENS> constexpr u32 THREADS = TOKENS > 32 ? WORKERS + GANG : WORKERS + 32;

// Of a thread where two blocks are to fit a multiprocessor.
constexpr u32 REGISTERS = 112;

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
    u8 *x, *ring;
    // Of a tile what the second gang has; of this block's share of it what each block has.
    Four *half, *sums;
    // Of each gang and two tiles in turn what scales blocks of both bands.
    float *scales;
    u64 *full, *empty, *ready, *taken;
    u32 *unit;

    DEVICE Room(u8 *shared, u32 blocks, u32 slots) {
        x = shared;
        ring = x + blocks / 2 * COLUMNS_64;
        half = (Four *)(ring + slots * STAGE_BYTES);
        sums = half + FOURS;
        scales = (float *)(sums + FOURS);
        full = (u64 *)(scales + GANGS * 2 * BANDS * BLOCKS);
        empty = full + slots;
        ready = empty + slots;
        taken = ready + 1;
        unit = (u32 *)(taken + 1);
    }
};

// What a block has of the sum, and of the tiles. `most` is the length of the longest part.
struct Part {
    Stages stages;
    u32 own, most, tiles, first_tile, step, first_row, from, rank, log_parts;

    DEVICE Part(const Shape &d, u32 tokens, u32 columns) {
        u32 all = (d.k + columns - 1) / columns;
        // Of the parts there are 1, 2, 4 or 8.
        log_parts = (d.parts > 1) + (d.parts > 2) + (d.parts > 4), rank = blockIdx.x & (d.parts - 1);
        stages = part_of(all, d.parts, rank);
        own = stages.last - stages.first, most = (all + d.parts - 1) >> log_parts;
        tiles = (d.n + ROWS - 1) / ROWS, first_tile = blockIdx.x >> log_parts, step = gridDim.x >> log_parts;
        first_row = blockIdx.z * d.n, from = blockIdx.y * tokens;
    }
};

// Where a gang is in the ring, whose stages it takes in turn with the other. Of an even number of slots each is always
// the same gang's, which so sees every phase of its barrier.
struct Cursor {
    u32 slot, parity, slots;

    DEVICE void advance() {
        slot += GANGS;
        if (slot >= slots) slot -= slots, parity ^= 1;
    }
};

// Moves the stages of all tiles of a block.
template <u32 TOKENS> struct Mover {
    const Room<TOKENS> &room;
    const TensorMap *map;
    const Part &part;
    u32 slots, slot, round, tile, stage;

    DEVICE Mover(const Room<TOKENS> &room, const TensorMap *map, const Shape &d, const Part &part)
        : room(room), map(map), part(part) {
        slots = d.slots, slot = 0, round = 0, tile = part.first_tile, stage = part.stages.first;
    }
    // While there are some, and only without waiting if `ahead`.
    DEVICE void run(bool ahead) {
        while (tile < part.tiles && !(ahead && round > 0)) {
            if (round > 0) barrier_wait(&room.empty[slot], (round - 1) % 2);
            barrier_expect(&room.full[slot], STAGE_BYTES);
            copy_tile(room.ring + slot * STAGE_BYTES, map, &room.full[slot], stage * ROW_BYTES,
                      part.first_row + tile * ROWS);
            if (++slot == slots) slot = 0, round++;
            if (++stage == part.stages.last) stage = part.stages.first, tile += part.step;
        }
    }
};

// The token of an output of a thread, and its row in the tile.
DEVICE u32 token_of(u32 thread, u32 i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }
template <typename Kind> DEVICE u32 row_in_tile(u32 thread, u32 i) {
    return thread / 32 * 16 + Kind::row_of_eight(thread % 32) + i / 2 % 2 * 8;
}

// Whether all of a gang say so. Numbers of barriers that the compiler does not know would count as all there are.
DEVICE bool gang_agrees(u32 gang, bool mine) {
    return gang ? some_agree(GANG_BARRIER + 1, GANG, mine) : some_agree(GANG_BARRIER, GANG, mine);
}

// One thread's share of the products of a tile.
template <typename Kind, u32 TOKENS> struct Worker {
    static constexpr u32 HELD = TOKENS / 2;
    // As many blocks in a group as there are registers for.
    static constexpr u32 EACH = TOKENS <= 8 && Kind::BLOCKS > 2 ? 2 : 1, GROUPS = Kind::BLOCKS / EACH;
    typedef float Parts[EACH][HELD];
    typedef typename Kind::Fragment Fragments[EACH];
    const Room<TOKENS> &room;
    Kind &kind;
    Cursor at;
    float sum[HELD];
    // Of the first group of the stage to come.
    Fragments ahead;

    DEVICE Worker(const Room<TOKENS> &room, Kind &kind, u32 gang, u32 slots)
        : room(room), kind(kind), at{gang, 0, slots} {}

    DEVICE void load(Fragments &a, u32 stage, u32 group) {
#pragma unroll
        for (u32 j = 0; j < EACH; j++) kind.load(a[j], room.ring + at.slot * STAGE_BYTES, stage, group * EACH + j);
    }
    // Waits for a stage of the ring, and begins to load it if it is near.
    DEVICE void enter(u32 stage, bool near) {
        barrier_wait(&room.full[at.slot], at.parity);
        if (near) load(ahead, stage, 0);
    }
    DEVICE void leave() {
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(&room.empty[at.slot]);
        at.advance();
    }

    DEVICE void begin(Parts &part, const Fragments &a, u32 stage, u32 group) const {
        u64 b = operand_128(room.x) + stage * (Kind::BLOCKS / 2 * Room<TOKENS>::COLUMNS_64 / 16);
        mma_fence();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            u32 block = group * EACH + j;
            kind.multiply(part[j], a[j], b + block / 2 * (Room<TOKENS>::COLUMNS_64 / 16) + block % 2 * 4);
        }
        mma_commit();
    }
    // Waits for a group and adds it.
    template <u32 PENDING> DEVICE void end(Parts &part, const Four &scales, u32 group) {
        mma_wait<PENDING>();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) mma_hold(part[j]);
#pragma unroll
        for (u32 j = 0; j < EACH; j++) kind.add(sum, part[j], scales.of[group * EACH + j]);
    }

    // A stage that was entered; enters the next one, if it is there. Two groups are under way within a stage; none from
    // stage to stage, which would make the compiler wait for each.
    DEVICE void multiply(u32 stage, u32 stages) {
        Parts part[2];
        Four scales = kind.scales_of(stage);
        begin(part[0], ahead, stage, 0);
#pragma unroll
        for (u32 group = 1; group < GROUPS; group++) {
            Fragments a;
            load(a, stage, group);
            if (Kind::IN_REGISTERS && group == GROUPS - 1) leave();
            begin(part[group % 2], a, stage, group);
            end<1>(part[(group - 1) % 2], scales, group - 1);
        }
        if (Kind::IN_REGISTERS && stage + GANGS < stages) enter(stage + GANGS, true);
        end<0>(part[(GROUPS - 1) % 2], scales, GROUPS - 1);
        if (!Kind::IN_REGISTERS) {
            leave();
            if (stage + GANGS < stages) enter(stage + GANGS, true);
        }
    }

    // The same for what is rare: a block and 8 tokens at a time, so as to take few registers.
    DEVICE void multiply_far(u32 stage, u32 stages) {
#pragma unroll 1
        for (u32 block = 0; block < Kind::BLOCKS; block++) {
            typename Kind::Fragment a;
            kind.load(a, room.ring + at.slot * STAGE_BYTES, stage, block);
            u64 b = operand_128(room.x) + block % 2 * 4 +
                    (stage * Kind::BLOCKS + block) / 2 * (Room<TOKENS>::COLUMNS_64 / 16);
#pragma unroll
            for (u32 i = 0; i < HELD; i += 4) {
                float some[4];
                mma_fence();
                kind.multiply(some, a, b + i / 4 * (8 * ROW_BYTES / 16));
                mma_commit();
                mma_wait<0>();
                mma_hold(some);
                kind.add_far(&sum[i], some, stage * Kind::BLOCKS + block, i / 4 * 8);
            }
        }
        leave();
        if (stage + GANGS < stages) enter(stage + GANGS, false);
    }

    DEVICE void take(u32 stage, u32 stages, bool near) {
        if constexpr (Kind::ALWAYS_NEAR) {
            multiply(stage, stages);
        } else {
            if (near) multiply(stage, stages);
            else multiply_far(stage, stages);
        }
    }
};

// Adds the sums of both gangs, of even and of odd stages, and sends them to the blocks that add those of all parts. The
// first gang does, with what the second one leaves it, whose next cannot take the place of these: all wait for what is
// sent.
template <u32 TOKENS, u32 HELD>
DEVICE void send(const Room<TOKENS> &room, const Part &part, const float (&sum)[HELD], u32 gang, u32 round) {
    constexpr u32 FOURS = Room<TOKENS>::FOURS;
    u32 share = FOURS >> part.log_parts, thread = forgotten(threadIdx.x % GANG);
    if (gang == 1) {
#pragma unroll
        for (u32 i = 0; i < HELD; i += 4) room.half[i / 4 * GANG + thread] = {sum[i], sum[i + 1], sum[i + 2], sum[i + 3]};
    }
    some_sync(ALL_WORKERS, WORKERS);
    if (gang == 1) return;
    // Those who add have read the sums of the last tile before these take their place.
    if (round > 0) barrier_wait(room.taken, (round - 1) % 2);
#pragma unroll
    for (u32 i = 0; i < HELD; i += 4) {
        u32 at = i / 4 * GANG + thread, words[4];
        Four other = room.half[at];
#pragma unroll
        for (u32 j = 0; j < 4; j++) words[j] = bits_of(sum[i + j] + other.of[j]);
        peer_store_16(room.sums + part.rank * share + (at & (share - 1)), words, room.ready,
                      (at << part.log_parts) / FOURS);
    }
}

DEVICE float one_nan(float x) { return is_nan(x) ? float_of(NAN_BITS) : x; }

// Adds this block's share of the sums of a tile, and stores it.
template <typename Kind, u32 TOKENS>
DEVICE void finish(const Kind &kind, const Room<TOKENS> &room, const Shape &d, const Part &part, u32 tile, u32 round) {
    u32 share = Room<TOKENS>::FOURS >> part.log_parts;
    barrier_wait(room.ready, round % 2);
    // What comes of the next tile.
    if (threadIdx.x == 0 && tile + part.step < part.tiles) barrier_expect(room.ready, Room<TOKENS>::SUMS_BYTES);
    // Two of four, so that all have something to do.
#pragma unroll 1
    for (u32 i = forgotten(threadIdx.x); i < 2 * share; i += WORKERS) {
        Pair total = {};
        const Pair *sums = (const Pair *)room.sums + i;
#pragma unroll 8
        for (u32 p = 0; p < d.parts; p++) {
            Pair one = sums[p * 2 * share];
            total.even += one.even, total.odd += one.odd;
        }
        u32 at = share * part.rank + i / 2, first = i % 2 * 2;
        u32 token = part.from + at / GANG * 8 + token_of(at % GANG, first);
        u32 output = tile * ROWS + row_in_tile<Kind>(at % GANG, first);
        if (output >= d.n) continue;
        // Which of two NaN comes first depends on how many tiles a block has.
        if (token < d.tokens) kind.store(token, output, one_nan(total.even));
        if (token + 1 < d.tokens) kind.store(token + 1, output, one_nan(total.odd));
    }
    __syncwarp();
    if (threadIdx.x % 32 < d.parts) peer_arrive(room.taken, threadIdx.x % 32);
}

template <typename Kind, u32 TOKENS>
DEVICE void work(Kind &kind, const Room<TOKENS> &room, const Shape &d, const Part &part) {
    // The compiler is to know that it is the same for all lanes.
    u32 gang = __shfl_sync(ALL_LANES, threadIdx.x / GANG, 0);
    Worker<Kind, TOKENS> worker(room, kind, gang, d.slots);
    u32 before = 0, round = 0, tile = part.first_tile;
    for (;; tile += part.step, round++) {
        // Which of the tile's stages, odd or even ones: gangs take those of all tiles in turn.
        u32 first = (gang + round * part.own) % GANGS;
        bool more = tile < part.tiles, near = more && kind.is_near(gang, round);
#pragma unroll
        for (float &s : worker.sum) s = 0;
        if (more && first < part.own) worker.enter(first, near);
        // The last tile is finished behind the first stage.
        for (u32 stage = first;; stage += GANGS) {
            if (more && stage < part.own) worker.take(stage, part.own, near);
            if (stage == first && round > 0) finish(kind, room, d, part, before, round - 1);
            if (!more || stage + GANGS >= part.own) break;
        }
        if (!more) break;
        kind.close(worker.sum, near);
        kind.next(tile + part.step);
        send(room, part, worker.sum, gang, round);
        before = tile;
    }
    // All that comes to this block's memory has come before it goes.
    barrier_wait(room.taken, (round - 1) % 2);
}

// The barriers of all blocks are there.
DEVICE void meet_peers() { cluster_wait(); }

// A block, with a kind that `make(room, part)` makes, before what is in front of it has ended.
template <u32 TOKENS, u32 BLOCKS, typename Make>
DEVICE void run(const TensorMap *map, const Shape &d, const Make &make) {
    DYNAMIC_SHARED(shared);
    Part part(d, TOKENS, BLOCKS * 32);
    Room<TOKENS> room(shared, part.most * BLOCKS, d.slots);
    Mover<TOKENS> mover(room, map, d, part);
    bool moves = threadIdx.x == WORKERS;
    let_next_begin();
    if (moves) {
        for (u32 i = 0; i < d.slots; i++) {
            barrier_init(&room.full[i], 1);
            barrier_init(&room.empty[i], GANG / 32);
        }
        barrier_init(room.ready, 1);
        barrier_init(room.taken, d.parts * WARPS);
        barrier_init_fence();
        barrier_expect(room.ready, Room<TOKENS>::SUMS_BYTES);
        // Of what is read only the weight is sure not to be a result of the launch before.
        mover.run(true);
    }
    __syncwarp();
    cluster_arrive();
    if (threadIdx.x < WORKERS) {
        if (TOKENS > 32) more_registers<216>();
        auto kind = make(room, part);
        kind.next(part.first_tile);
        wait_for_previous();
        bool near = kind.prepare();
        async_fence();
        meet_peers();
        kind.near_x = some_agree(ALL_WORKERS, WORKERS, near);
        work(kind, room, d, part);
    } else {
        if (TOKENS > 32) fewer_registers<72>();
        meet_peers();
        if (moves) mover.run(false);
    }
}
}  // namespace narrow
