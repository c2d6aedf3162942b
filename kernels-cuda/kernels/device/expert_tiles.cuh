// Products of routed experts' MXFP4 weights by MXFP8 rows on Hopper's 16-bit matrix units: both become bf16 with their
// scales in them, exactly, so that sums run on over blocks of 32. The units add 256 columns, which then are added in f32,
// stage after stage: all kernels of this kind agree to the bit, whatever their tiles.
//
// The weight is the wide side and comes from registers. Blocks stay and take items one after the other, an item being a
// tile of rows of one expert's weight and a pass of its rows of data; one warp brings the stages of all of a block's items
// through one ring, gangs of four warps multiply, each thread for a gate's row and an up's (or two rows of a down
// projection) so that it has both of a unit.
#pragma once
#include "e2m1.cuh"
#include "e4m3.cuh"
#include "expert_rows.cuh"
#include "ue8m0.cuh"

namespace tiles {
constexpr u32 GANG = 128, ROW_BYTES = COLUMNS / 2;
// Rows of half of a tile, and a stage of a tile.
constexpr u32 HALF = 32, HALF_BYTES = HALF * ROW_BYTES, TILE_BYTES = 2 * HALF_BYTES;

// TOKENS rows of data, and a tile of 64 rows of the weight for each gang at a time. A block takes a gang more, of which
// warps bring what these need, for the registers that it leaves to the others.
template <u32 TOKENS_, u32 GANGS_, u32 SLOTS_> struct Form {
    static constexpr u32 TOKENS = TOKENS_, GANGS = GANGS_, SLOTS = SLOTS_, HELD = TOKENS / 2;
    static constexpr u32 MULTIPLIERS = GANGS * GANG, THREADS = MULTIPLIERS + GANG;
    static constexpr u32 MORE = GANGS == 3 ? 152 : 104, FEWER = GANGS == 3 ? 56 : 64;
    static constexpr u32 CODES = GANGS * TILE_BYTES, STAGE = CODES + TOKENS * X_BYTES;
};
// Those that there are; the host has the same ones.
typedef Form<8, 4, 4> Wide8;
typedef Form<16, 4, 4> Wide16;
typedef Form<32, 4, 4> Wide32;
typedef Form<48, 3, 4> Wide48;
typedef Form<80, 3, 3> Wide80;

// Half of the rows of a tile: where they lie, and how far behind the tile's first row.
struct Half {
    const TensorMap *map;
    const u8 *codes, *scales;
    u32 behind;
};
// The weights of an expert: rows of it, rows from tile to tile, tiles, and blocks of a row.
struct Weights {
    Half half[2];
    u32 rows, step, tiles, blocks;

    DEVICE u32 stages() const { return (blocks + BLOCKS - 1) / BLOCKS; }
};

// Shared memory of a block: the ring, the scales of its stages, its barriers, for each gang pairs of two items and room to
// exchange, and the groups.
template <typename F> struct Room {
    u8 *ring;
    u64 *scales, *full, *empty;
    u32 *pairs;
    float *exchange;
    Group *groups;

    DEVICE Room(u8 *shared) {
        ring = shared;
        scales = (u64 *)(ring + F::SLOTS * F::STAGE);
        full = scales + F::SLOTS * F::GANGS * 2 * HALF, empty = full + F::SLOTS;
        pairs = (u32 *)(empty + F::SLOTS);
        exchange = (float *)(pairs + 2 * F::GANGS * F::TOKENS);
        groups = (Group *)(exchange + F::GANGS * 4 * F::TOKENS);
    }
    // Halves of the tile of a gang lie one after the other.
    DEVICE u8 *weight(u32 slot, u32 gang, u32 h) const { return ring + slot * F::STAGE + (2 * gang + h) * HALF_BYTES; }
    DEVICE u64 *scale(u32 slot, u32 gang, u32 h) const { return scales + ((slot * F::GANGS + gang) * 2 + h) * HALF; }
    DEVICE u8 *x(u32 slot) const { return ring + slot * F::STAGE + F::CODES; }
};

// Neighbouring tiles of an expert, one for each gang while there are, and a pass: the expert's place, the first tile and how
// many, the first row of data and how many, with room for `padded`.
struct Item {
    u32 place, tile, tiles, first_row, count;
    DEVICE u32 padded() const { return (count + 7) / 8 * 8; }
};

// From tile `i` of all tiles of all passes on, up to `last`.
template <typename F>
DEVICE Item item_of(const Group *groups, u32 local, const Weights &weights, u32 i, u32 last) {
    u32 low = 0, high = local;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        (groups[middle].first_pass * weights.tiles <= i ? low : high) = middle;
    }
    Group group = groups[low];
    u32 at = i - group.first_pass * weights.tiles, pass = at / weights.tiles, tile = at - pass * weights.tiles;
    u32 tiles = weights.tiles - tile < last - i ? weights.tiles - tile : last - i;
    u32 left = group.count - pass * F::TOKENS;
    return {low, tile, tiles < F::GANGS ? tiles : F::GANGS, group.first_row + pass * F::TOKENS,
            left < F::TOKENS ? left : F::TOKENS};
}

// A ring's place, and how often it was there.
template <typename F> struct Turn {
    u32 slot = 0, parity = 0;
    DEVICE void next() {
        if (++slot == F::SLOTS) slot = 0, parity ^= 1;
    }
};

// Calls `each(item, stage, slot)` for all stages of tiles [first, last), as soon as there is room for what it brings.
template <typename F>
DEVICE void for_each_stage(const Room<F> &room, const Weights &weights, u32 local, u32 first, u32 last, const auto &each) {
    u32 stages = weights.stages();
    Turn<F> turn;
    bool again = false;
    for (u32 i = first; i < last;) {
        Item item = item_of<F>(room.groups, local, weights, i, last);
        i += item.tiles;
        for (u32 stage = 0; stage < stages; stage++) {
            if (again) barrier_wait(&room.empty[turn.slot], turn.parity ^ 1);
            each(item, stage, turn.slot);
            turn.next();
            again |= turn.slot == 0;
        }
    }
}

// Brings codes of the weight, one thread.
template <typename F>
DEVICE void bring_codes(const Room<F> &room, const Weights &weights, u32 local, u32 first, u32 last) {
    for_each_stage(room, weights, local, first, last, [&](const Item &item, u32 stage, u32 slot) {
        u32 row = item.place * weights.rows + item.tile * weights.step;
        barrier_expect(&room.full[slot], item.tiles * TILE_BYTES);
        for (u32 g = 0; g < item.tiles; g++, row += weights.step) {
#pragma unroll
            for (u32 h = 0; h < 2; h++) {
                const Half &half = weights.half[h];
                copy_tile(room.weight(slot, g, h), half.map, &room.full[slot], stage * ROW_BYTES, row + half.behind);
            }
        }
    });
}

// Brings rows of data, one thread.
template <typename F>
DEVICE void bring_rows(const Room<F> &room, const Weights &weights, const u8 *rows, u32 local, u32 first, u32 last) {
    u32 stages = weights.stages();
    for_each_stage(room, weights, local, first, last, [&](const Item &item, u32 stage, u32 slot) {
        u32 padded = item.padded();
        const u8 *from = rows + (u64)item.first_row * stages * X_BYTES + (u64)stage * padded * X_BYTES;
        barrier_expect(&room.full[slot], item.count * X_BYTES);
#pragma unroll
        for (u32 a = 0; a < ATOMS; a++) {
            u8 *to = room.x(slot) + a * F::TOKENS * ATOM_BYTES;
            copy_bulk(to, from + a * padded * ATOM_BYTES, item.count * ATOM_BYTES, &room.full[slot]);
        }
    });
}

// The scales of a stage's eight blocks; of those behind the last one, 1.
DEVICE u64 eight_scales(const u8 *row, u32 block, u32 blocks) {
    u64 eight = 0;
    for (u32 i = 0; i < BLOCKS; i++) eight |= (u64)(block + i < blocks ? row[block + i] : 0x7F) << 8 * i;
    return eight;
}

// Brings scales likewise, a warp for half of each tile, two stages ahead of where they go.
template <typename F> struct Scales {
    static constexpr u32 EACH = F::GANGS;
    const Room<F> &room;
    const Weights &weights;
    const Half half;
    u32 local, last, ahead, stage_ahead = 0;
    bool second, whole;
    const u8 *from[EACH];
    u64 held[2][EACH];

    DEVICE Scales(const Room<F> &room, const Weights &weights, bool second, u32 local, u32 first, u32 last)
        : room(room), weights(weights), half(second ? weights.half[1] : weights.half[0]), local(local), last(last),
          ahead(first), second(second), whole(weights.blocks % BLOCKS == 0 && (u64)half.scales % BLOCKS == 0) {
        find();
    }
    // The rows of the item ahead.
    DEVICE void find() {
        Item item = item_of<F>(room.groups, local, weights, ahead, last);
        ahead += item.tiles;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            // Tiles behind those of the item, and rows behind the last one, are not used.
            u32 row = (item.tile + (i < item.tiles ? i : 0)) * weights.step + half.behind + threadIdx.x % 32;
            if (row >= weights.rows) row = weights.rows - 1;
            from[i] = half.scales + ((u64)item.place * weights.rows + row) * weights.blocks;
        }
    }
    DEVICE void load(u64 (&to)[EACH]) {
        if (stage_ahead == weights.stages()) {
            if (ahead >= last) return;
            stage_ahead = 0;
            find();
        }
        u32 block = stage_ahead++ * BLOCKS;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            to[i] = whole ? *(const u64 *)(from[i] + block) : eight_scales(from[i], block, weights.blocks);
        }
    }
    DEVICE void bring(u32 first) {
        load(held[0]);
        load(held[1]);
        for_each_stage(room, weights, local, first, last, [&](const Item &, u32, u32 slot) {
#pragma unroll
            for (u32 i = 0; i < EACH; i++) room.scale(slot, i, second)[threadIdx.x % 32] = held[0][i];
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&room.full[slot]);
#pragma unroll
            for (u32 i = 0; i < EACH; i++) held[0][i] = held[1][i];
            load(held[1]);
        });
    }
};

// Eight codes of FP4 as bf16 of 2^-126 times their values, times two equal factors: codes i and i + 4 in word i.
DEVICE void widen(u32 codes, u32 factors, u32 (&to)[4]) {
    constexpr u32 SIGN_AND_MAGNITUDE = 0x81C081C0u;
    u32 upper = codes >> 8;
    // One product moves the sign to bit 15 and the magnitude to bit 6.
    to[0] = product_of_bf16s((codes & 0x000F000Fu) * 0x1040u & SIGN_AND_MAGNITUDE, factors);
    to[1] = product_of_bf16s((codes & 0x00F000F0u) * 0x0104u & SIGN_AND_MAGNITUDE, factors);
    to[2] = product_of_bf16s((upper & 0x000F000Fu) * 0x1040u & SIGN_AND_MAGNITUDE, factors);
    to[3] = product_of_bf16s((upper & 0x00F000F0u) * 0x0104u & SIGN_AND_MAGNITUDE, factors);
}

// 2^(scale - 127 + 63) twice.
DEVICE u32 factors_of(u32 scale) { return (scale + 63) * 0x00800080u; }
// The products are this much too small by the factors of both sides.
constexpr float LEVEL = 128.0f;

// Bits 7 and 15 of it stay set while both scales of each word are tame, or 191.
constexpr u32 ALL_TAME = 0x8080u;
DEVICE u32 tame_bits(u32 two) { return two ^ two << 1; }

// The sum for one row of the weight and one of data, one product after the other.
DEVICE float far_sum(const u8 *codes, const u8 *scales, const Row &x, u32 blocks) {
    double sum = 0;
    for (u32 k = 0; k < blocks * 32; k++) {
        double left = (double)e2m1_to_f32((u8)(codes[k / 2] >> k % 2 * 4)) * ue8m0_to_f32(scales[k / 32]);
        sum += left * ((double)e4m3_to_f32(x.codes[k]) * ue8m0_to_f32(x.scales[k / 32]));
    }
    return f32_to_odd(sum);
}
// Whether a row of the weight holds what the fast way does not.
DEVICE bool is_far(const u8 *codes, const u8 *scales, u32 blocks) {
    for (u32 block = 0; block < blocks; block++) {
        if (is_tame(scales[block])) continue;
        // The factor of 192 is no number.
        if (scales[block] == 192) return true;
        Words<4> c = *(const Words<4> *)(codes + (u64)block * 16);
        if (scales[block] == 0xFF || ((c.of[0] | c.of[1] | c.of[2] | c.of[3]) & 0x77777777u) != 0) return true;
    }
    return false;
}

// One thread's share of a gang's tile.
template <typename F> struct Worker {
    static constexpr u32 HELD = F::HELD;
    typedef float Sum[HELD];
    // Of this thread's two rows, what was seen of their scales.
    typedef u32 Seen[2];
    const Room<F> &room;
    const Weights &weights;
    u32 local, gang, warp, lane;

    DEVICE Worker(const Room<F> &room, const Weights &weights, u32 local) : room(room), weights(weights), local(local) {
        gang = threadIdx.x / GANG, warp = threadIdx.x % GANG / 32, lane = threadIdx.x % 32;
    }

    // This thread's row of half of a tile, and that of an item's first half in the expert's weight.
    DEVICE u32 own_row() const { return 8 * warp + lane / 4; }
    DEVICE u32 row_of(const Item &item) const { return (item.tile + gang) * weights.step + own_row(); }

    // The products of a stage. While those of a group are under way the weight's part of the next is made.
    DEVICE void multiply(Sum &part, Seen &seen, u32 slot) const {
        // Deep enough that few registers are left; 16 columns a product.
        constexpr u32 DEPTH = HELD >= 32 ? 2 : 4, GROUPS = COLUMNS / 16 / DEPTH;
        u32 a[2][DEPTH][4], scales[2];
        Words<4> codes[2];
        // Known to be the same for the warp.
        u64 b = operand_128(room.x(__reduce_max_sync(ALL_LANES, slot)));
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            scales[h] = ((const u16 *)(room.scale(slot, gang, h) + own_row()))[lane % 4];
            seen[h] &= tame_bits(scales[h]);
        }
#pragma unroll
        for (u32 n = 0; n < GROUPS; n++) {
            // Of the two blocks of a thread, the one of this group.
            u32 block = n / (GROUPS / 2);
            if (n >= 2) mma_wait<1>();
#pragma unroll
            for (u32 h = 0; h < 2; h++) {
                if (n % (GROUPS / 2) == 0) {
                    u32 place = (lane % 4 * 2 + block) ^ lane / 4;
                    codes[h] = *(const Words<4> *)(room.weight(slot, gang, h) + own_row() * ROW_BYTES + place * 16);
                }
                u32 factors = factors_of(scales[h] >> block * 8 & 0xFF);
#pragma unroll
                for (u32 w = 0; w < DEPTH / 2; w++) {
                    u32 wide[4];
                    widen(codes[h].of[n % (GROUPS / 2) * (DEPTH / 2) + w], factors, wide);
#pragma unroll
                    for (u32 i = 0; i < 2; i++) {
                        a[n % 2][2 * w + i][h] = wide[2 * i], a[n % 2][2 * w + i][2 + h] = wide[2 * i + 1];
                    }
                }
            }
            mma_fence();
#pragma unroll
            for (u32 s = 0; s < DEPTH; s++) {
                u32 step = n * DEPTH + s;
                u64 at = b + step / 4 * (F::TOKENS * ATOM_BYTES / 16) + step % 4 * 2;
                if (step == 0) mma_bf16(part, a[n % 2][s], at);
                else mma_bf16_add(part, a[n % 2][s], at);
            }
            mma_commit();
        }
        mma_wait<0>();
        mma_hold(part);
    }

    // Sums of this thread that need the slow way are made again by it.
    template <typename Source>
    DEVICE void make_far(Sum &sum, const Item &item, const u32 *pairs, const Seen &wild, const Source &source) const {
        u32 blocks = weights.blocks;
        const Half(&half)[2] = weights.half;
#pragma unroll 1
        for (u32 c = 0; c < HELD; c++) {
            bool second = c / 2 % 2;
            u32 token = c / 4 * 8 + lane % 4 * 2 + c % 2, behind = second ? half[1].behind : half[0].behind;
            u32 row = row_of(item) + behind;
            u32 pair = pairs[token] & ~FAR;
            if (pair == NONE || row >= weights.rows) continue;
            u64 at = ((u64)item.place * weights.rows + row) * blocks;
            const u8 *codes = (second ? half[1].codes : half[0].codes) + at * 16;
            const u8 *scales = (second ? half[1].scales : half[0].scales) + at;
            bool far = (second ? wild[1] : wild[0]) && is_far(codes, scales, blocks);
            if (!far && !(pairs[token] & FAR)) continue;
            float made = far_sum(codes, scales, source(pair), blocks);
#pragma unroll
            for (u32 i = 0; i < HELD; i++) sum[i] = i == c ? made : sum[i];
        }
    }

    // What is left to do with the sums of a tile.
    template <typename Source, typename Store>
    DEVICE void end(Sum &sum, const Seen &seen, const Item &item, const u32 *pairs, const Source &source,
                    const Store &store) const {
        Seen wild;
        bool far = false;
#pragma unroll
        for (u32 c = 0; c < HELD; c++) sum[c] *= LEVEL;
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            // Four lanes have looked at a row's scales.
            u32 lanes = __ballot_sync(ALL_LANES, (seen[h] & ALL_TAME) != ALL_TAME);
            wild[h] = lanes >> lane / 4 * 4 & 0xF;
            far |= wild[h] != 0;
        }
#pragma unroll
        for (u32 c = 0; c < HELD; c += 4) {
            u32 token = c * 2 + lane % 4 * 2;
            far |= ((pairs[token] | pairs[token + 1]) & FAR) != 0;
        }
        if (far) make_far(sum, item, pairs, wild, source);
        store(*this, item, pairs, sum);
    }

    // Multiplies tiles [first, last); `store(worker, item, pairs, sum)` is called by whole gangs for what they made, a pair
    // being `NONE` where there is none.
    template <typename Source, typename Store>
    DEVICE void run(const Place *places, u32 first, u32 last, const Source &source, const Store &store) {
        u32 stages = weights.stages(), own = threadIdx.x % GANG, *pairs = room.pairs + 2 * gang * F::TOKENS;
        bool odd = false;
        Turn<F> turn;
        for (u32 i = first; i < last;) {
            Item item = item_of<F>(room.groups, local, weights, i, last);
            i += item.tiles;
            bool idle = gang >= item.tiles;
            // Needed at the end.
            u32 pair = own < item.count ? places[item.first_row + own].pair : NONE;
            Sum sum;
            Seen seen = {ALL_TAME, ALL_TAME};
#pragma unroll
            for (u32 c = 0; c < HELD; c++) sum[c] = 0;
            for (u32 stage = 0; stage < stages; stage++) {
                Sum part;
                barrier_wait(&room.full[turn.slot], turn.parity);
                if (!idle) multiply(part, seen, turn.slot);
                __syncwarp();
                if (lane == 0) barrier_arrive(&room.empty[turn.slot]);
                turn.next();
                if (idle) continue;
#pragma unroll
                for (u32 c = 0; c < HELD; c++) sum[c] += part[c];
            }
            if (idle) continue;
            // Slower threads may still read those of the item before, but have met since the one before that.
            u32 *to = pairs + (odd ? F::TOKENS : 0);
            odd = !odd;
            if (own < F::TOKENS) to[own] = pair;
            some_sync(1 + gang, GANG);
            end(sum, seen, item, to, source, store);
        }
    }
};

// All of a launch: `source(pair)` and `store` as above.
template <typename F, typename Source, typename Store>
DEVICE void multiply_groups(const Weights &weights, const View &rows, u32 local, const Source &source, const Store &store) {
    DYNAMIC_SHARED(shared);
    Room<F> room(shared);
    let_next_begin();
    if (threadIdx.x == F::MULTIPLIERS) {
        for (u32 i = 0; i < F::SLOTS; i++) {
            barrier_init(&room.full[i], 4);
            barrier_init(&room.empty[i], F::GANGS * 4);
        }
        barrier_init_fence();
    }
    wait_for_previous();
    for (u32 i = threadIdx.x; i <= local; i += F::THREADS) room.groups[i] = groups_of(rows)[i];
    __syncthreads();
    u32 items = room.groups[local].first_pass * weights.tiles;
    u32 first = (u32)((u64)items * blockIdx.x / gridDim.x), last = (u32)((u64)items * (blockIdx.x + 1) / gridDim.x);
    if (first == last) return;
    if (threadIdx.x < F::MULTIPLIERS) {
        more_registers<F::MORE>();
        Worker<F> worker(room, weights, local);
        worker.run(places_of(rows, local), first, last, source, store);
        return;
    }
    fewer_registers<F::FEWER>();
    u32 helper = threadIdx.x - F::MULTIPLIERS;
    if (helper == 0) bring_codes(room, weights, local, first, last);
    if (helper == 32) bring_rows(room, weights, rows.scales, local, first, last);
    if (helper >= 64) Scales<F>(room, weights, helper >= 96, local, first, last).bring(first);
}

DEVICE u16 rounded(float x) { return is_nan(x) ? (u16)(NAN_BITS >> 16) : bf16_from_f32(x); }
}  // namespace tiles
