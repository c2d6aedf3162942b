// Products of routed experts' MXFP4 weights by MXFP8 rows as Hopper's matrix units make them: 32 columns at a time, each
// sum then scaled and added in f32. A block makes the outputs of 64 rows of one expert's weight for up to TOKENS rows of
// data at a time, and so reads the weight once for each TOKENS of them.
//
// The weight is the wide side and comes from registers: a code of FP4 moved to the upper end of the smaller mantissa and
// exponent of E4M3 is its value times 2^-6, exactly, so codes need no table and scales stay outside. Gangs of four warps
// take the stages of 256 columns in turn, each through a ring of its own; their sums are added in order. The order of
// every sum follows from the width alone, so that all kernels of this kind agree to the bit, whatever TOKENS.
#pragma once
#include "bf16.cuh"
#include "experts.cuh"
#include "hopper.cuh"
#include "lanes.cuh"
#include "mxfp8_blocks.cuh"

namespace tiles {
constexpr u32 GANG = 128;
constexpr u32 GANGS = 2;
constexpr u32 THREADS = GANGS * GANG, WARPS = THREADS / 32;
// Rows of a tile, in two bands that need not be neighbours.
constexpr u32 ROWS = 64, BAND = 32;
// Blocks of 32 columns in a stage, and its bytes of a row of the weight, which are as many as those of half a stage of
// a row of data.
constexpr u32 DEPTH = 8, ROW_BYTES = 128;
// Between the sums of two rows of data.
constexpr u32 PITCH = ROWS + 4;

// A tile of a weight; no address for a band that is not there.
struct Weight {
    const u8 *codes[2], *scales[2];
    u32 blocks;
};

// A row of data.
struct Row {
    const u8 *codes, *scales;
};

// The pairs of a row and a slot that go to one expert, in order, `first` of them passed over: as many as a tile takes, into
// `list`. How many those are.
template <u32 TOKENS>
DEVICE u32 find(const Experts &d, const View &expert, u64 tokens, i32 wanted, u32 first, u32 *list, u32 *counts) {
    u32 pairs = (u32)(tokens * d.top_k), each = (pairs + THREADS - 1) / THREADS * 32;
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 begin = warp * each < pairs ? warp * each : pairs, end = pairs - begin < each ? pairs : begin + each;
    bool dense = expert.stride == d.top_k;
    auto mine = [&](u32 i) {
        if (i >= end) return false;
        u32 top_k = (u32)d.top_k;
        u64 at = dense ? i : (u64)(i / top_k) * expert.stride + i % top_k;
        return ((const i32 *)expert.codes)[at] == wanted;
    };
    u32 count = 0;
    for (u32 i = begin; i < end; i += 32) count += __popc(__ballot_sync(ALL_LANES, mine(i + lane)));
    if (lane == 0) counts[warp] = count;
    __syncthreads();
    u32 all = 0, rank = 0;
    for (u32 w = 0; w < WARPS; w++) rank = w == warp ? all : rank, all += counts[w];
    for (u32 i = begin; i < end && count > 0; i += 32) {
        bool own = mine(i + lane);
        u32 which = __ballot_sync(ALL_LANES, own), at = rank + __popc(which & ((1u << lane) - 1)) - first;
        if (own && at < TOKENS) list[at] = i + lane;
        rank += __popc(which);
    }
    __syncthreads();
    u32 left = all > first ? all - first : 0;
    return left < TOKENS ? left : TOKENS;
}

// Of the eight bytes of two words, those at even places, or at odd ones.
template <u32 ODD> DEVICE u32 every_other(u32 low, u32 high) {
#ifdef __CUDACC__
    return __byte_perm(low, high, ODD ? 0x7531 : 0x6420);
#else
    low >>= 8 * ODD, high >>= 8 * ODD;
    return (low & 0xFF) | (low >> 16 & 0xFF) << 8 | (high & 0xFF) << 16 | (high >> 16 & 0xFF) << 24;
#endif
}

// The codes in the upper halves of four bytes, as E4M3 of 2^-6 times their values.
DEVICE u32 widened(u32 codes) { return (codes & 0x80808080u) | (codes >> 2 & 0x1C1C1C1Cu); }

// Whether all four scales are within what products of f32 hold, without looking at each: 64 to 191.
DEVICE bool are_tame(u32 scales) { return ((scales ^ scales << 1) & 0x80808080u) == 0x80808080u; }

DEVICE float float_of_scale(u32 scales, u32 i) { return float_of((scales >> 8 * i & 0xFF) << 23); }

// Shared memory of a block: a ring for each gang, and the scales. The sums take the rings' place.
template <u32 TOKENS, u32 SLOTS> struct Room {
    static constexpr u32 CODES = ROWS * ROW_BYTES, STAGE = CODES + 2 * TOKENS * ROW_BYTES, RING = SLOTS * STAGE;
    u8 *rings;
    // Of each row of the weight four blocks a word; of each block each row of data.
    u32 *weight_scales, *scales;
    u32 blocks, pitch;

    DEVICE Room(u8 *shared, u32 columns) {
        rings = shared;
        blocks = (columns + DEPTH - 1) / DEPTH * DEPTH;
        // Odd, so that rows lie in banks of their own.
        pitch = blocks / 4 + 1;
        scales = (u32 *)(shared + GANGS * RING);
        weight_scales = scales + blocks * TOKENS;
    }
    DEVICE u8 *weight(u32 gang, u32 slot) const { return rings + gang * RING + slot * STAGE; }
    DEVICE u8 *x(u32 gang, u32 slot) const { return weight(gang, slot) + CODES; }
    DEVICE float *sums(u32 gang) const { return (float *)rings + gang * TOKENS * PITCH; }
};

// Four scales of a row; those behind the last block, and all of a row that is not there, are 1.
DEVICE u32 scales_or_ones(const u8 *row, u32 block, u32 blocks) {
    if (row == nullptr || block >= blocks) return 0x7F7F7F7Fu;
    if (blocks % 4 == 0 && (u64)row % 4 == 0) return *(const u32 *)(row + block);
    u32 left = blocks - block, word = scales_of(row, block, blocks);
    return left >= STAGE_BLOCKS ? word : word | 0x7F7F7F7Fu << 8 * left;
}

// The weight's scales on their way: four threads take the words of a row in turn, all of whose loads are begun before the
// first is waited for.
struct WeightScales {
    static constexpr u32 EACH = 10, SHARERS = THREADS / ROWS, SPAN = EACH * SHARERS;
    u32 of[EACH];

    DEVICE void load(const Weight &weight, u32 first) {
        u32 row = threadIdx.x / SHARERS;
        const u8 *band = row < BAND ? weight.scales[0] : weight.scales[1];
        const u8 *from = band ? band + (u64)(row % BAND) * weight.blocks : nullptr;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            u32 word = first + i * SHARERS + threadIdx.x % SHARERS;
            of[i] = scales_or_ones(from, word * 4, weight.blocks);
        }
    }
    // Whether all of them are tame.
    template <u32 TOKENS, u32 SLOTS> DEVICE bool store(const Room<TOKENS, SLOTS> &room, u32 first) const {
        bool tame = true;
        u32 row = threadIdx.x / SHARERS;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            u32 word = first + i * SHARERS + threadIdx.x % SHARERS;
            if (word < room.blocks / 4) room.weight_scales[row * room.pitch + word] = of[i];
            tame &= are_tame(of[i]);
        }
        return tame;
    }
};

constexpr u32 ABSENT = 0xFFFFFFFFu;

// FAR: the codes as they are.
template <bool FAR, u32 TOKENS, u32 SLOTS, typename Find>
DEVICE bool load_scales(const Room<TOKENS, SLOTS> &room, u32 blocks, u32 count, const Find &row) {
    bool tame = true;
    for (u32 i = threadIdx.x; i < room.blocks / 4 * TOKENS; i += THREADS) {
        u32 token = i % TOKENS, first = i / TOKENS * 4;
        bool there = token < count;
        u32 four = there ? scales_or_ones(row(token).scales, first, blocks) : 0;
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 code = four >> 8 * j & 0xFF;
            bool counts = there && first + j < blocks;
            u32 &to = room.scales[(first + j) * TOKENS + token];
            if (FAR) to = counts ? code : ABSENT;
            else to = counts ? code == 0xFF ? NAN_BITS : code << 23 : 0;
            tame &= !counts || is_tame(code);
        }
    }
    return tame;
}

// Scales of neighbouring rows of data.
struct alignas(8) Two {
    u32 even, odd;
};

// One thread's share of a tile.
template <u32 TOKENS, u32 SLOTS> struct Worker {
    static constexpr u32 HELD = TOKENS / 2;
    // Blocks in a group of products, as many as there are registers for.
    static constexpr u32 EACH = TOKENS <= 8 ? 4 : TOKENS <= 16 ? 2 : 1, GROUPS = DEPTH / EACH;
    static constexpr u32 OWN = TOKENS / 8;
    typedef float Part[EACH][HELD];
    const Room<TOKENS, SLOTS> &room;
    u32 gang, warp, lane, blocks, count;
    // Of the weight: the first of this thread's copies; none for a band that is not there.
    const u8 *codes;
    // Of the rows of data, likewise.
    const u8 *x[OWN];
    Words<4> held[OWN];

    template <typename Find>
    DEVICE Worker(const Room<TOKENS, SLOTS> &room, const Weight &weight, u32 count, const Find &row)
        : room(room), blocks(weight.blocks), count(count) {
        gang = threadIdx.x / GANG, warp = threadIdx.x % GANG / 32, lane = threadIdx.x % 32;
        const u8 *band = warp < 2 ? weight.codes[0] : weight.codes[1];
        codes = band ? band + (u64)(warp % 2 * 16 + lane / 8) * blocks * 16 + lane % 8 * 16 : nullptr;
#pragma unroll
        for (u32 n = 0; n < OWN; n++) x[n] = own(n) < count ? row(own(n)).codes + chunk() * 16 : nullptr;
    }

    // The rows of data whose codes this thread brings, and which 16 of a stage's.
    DEVICE u32 own(u32 n) const { return threadIdx.x % GANG / 16 + 8 * n; }
    DEVICE u32 chunk() const { return threadIdx.x % 16; }
    // Where the even codes of 16 go: columns of a block of 32 stand in the order in which a thread's registers hold
    // those of the weight. The odd ones go to the other half of the block.
    DEVICE u64 *place(u32 slot, u32 n, u32 odd) const {
        u32 t = own(n), c = chunk();
        u32 half = (c % 8 / 2 * 2 + odd) ^ t % 8;
        return (u64 *)(room.x(gang, slot) + c / 8 * TOKENS * ROW_BYTES + t * ROW_BYTES + half * 16 + c % 2 * 8);
    }

    DEVICE void fetch_weight(u32 slot, u32 stage) const {
        u32 block = stage * DEPTH + lane % 8;
        bool there = codes && block < blocks;
        const u8 *from = codes + (u64)stage * ROW_BYTES;
        u8 *to = room.weight(gang, slot) + (warp * 16 + lane / 8) * ROW_BYTES;
#pragma unroll
        for (u32 n = 0; n < 4; n++) {
            u32 row = lane / 8 + 4 * n;
            copy_16(to + n * 4 * ROW_BYTES + (lane % 8 ^ row % 8) * 16, from + (u64)(n * 4) * blocks * 16, there);
        }
    }

    DEVICE void load_x(u32 stage) {
        bool there = stage * DEPTH + chunk() / 2 < blocks;
#pragma unroll
        for (u32 n = 0; n < OWN; n++) {
            held[n] = {};
            if (x[n] && there) held[n] = *(const Words<4> *)(x[n] + (u64)stage * 2 * ROW_BYTES);
        }
    }
    DEVICE void store_x(u32 slot) const {
#pragma unroll
        for (u32 n = 0; n < OWN; n++) {
            if (!x[n]) continue;
            const u32(&w)[4] = held[n].of;
            *place(slot, n, 0) = every_other<0>(w[0], w[1]) | (u64)every_other<0>(w[2], w[3]) << 32;
            *place(slot, n, 1) = every_other<1>(w[0], w[1]) | (u64)every_other<1>(w[2], w[3]) << 32;
        }
    }
    // Rows of data that are not there, of all stages to come.
    DEVICE void clear_x() const {
        for (u32 slot = 0; slot < SLOTS; slot++) {
#pragma unroll
            for (u32 n = 0; n < OWN; n++) {
                if (!x[n]) *place(slot, n, 0) = *place(slot, n, 1) = 0;
            }
        }
    }

    // Begins the products of a group.
    DEVICE void begin(Part &part, u32 slot, u32 group) const {
        u32 a[EACH][4];
        u32 row = lane / 4;
        const u8 *from = room.weight(gang, slot) + (warp * 16 + row) * ROW_BYTES + lane % 4 * 4;
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            const u8 *at = from + (((group * EACH + j) ^ row) * 16);
            u32 low = *(const u32 *)at, high = *(const u32 *)(at + 8 * ROW_BYTES);
            a[j][0] = widened(low << 4), a[j][1] = widened(high << 4), a[j][2] = widened(low), a[j][3] = widened(high);
        }
        u64 b = operand_128(room.x(gang, slot));
        mma_fence();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            u32 block = group * EACH + j;
            mma_e4m3(part[j], a[j], b + block / 4 * (TOKENS * ROW_BYTES / 16) + block % 4 * 2);
        }
        mma_commit();
    }

    // Waits for a group and adds it.
    template <bool FAR, u32 PENDING> DEVICE void end(float (&sum)[HELD], Part &part, u32 stage, u32 group) const {
        mma_wait<PENDING>();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) mma_hold(part[j]);
        u32 first = stage * DEPTH + group * EACH;
        const u32 *of_row = room.weight_scales + (warp * 16 + lane / 4) * room.pitch + first / 4;
        u32 low = of_row[0], high = of_row[8 * room.pitch];
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            u32 at = group * EACH + j;
            const u32 *scales = room.scales + (stage * DEPTH + at) * TOKENS + lane % 4 * 2;
#pragma unroll
            for (u32 c = 0; c < HELD; c += 4) {
                Two x = *(const Two *)(scales + c * 2);
                add<FAR>(sum[c], part[j][c], low, at % 4, x.even);
                add<FAR>(sum[c + 1], part[j][c + 1], low, at % 4, x.odd);
                add<FAR>(sum[c + 2], part[j][c + 2], high, at % 4, x.even);
                add<FAR>(sum[c + 3], part[j][c + 3], high, at % 4, x.odd);
            }
        }
    }
    template <bool FAR> DEVICE static void add(float &sum, float part, u32 weight, u32 i, u32 x) {
        if (FAR) {
            if (x != ABSENT) sum = promoted_far(sum, part, weight >> 8 * i & 0xFF, x);
        } else {
            sum = promoted(sum, part, float_of_scale(weight, i) * float_of(x));
        }
    }

    // No products are under way from stage to stage, which would make the compiler wait for each.
    template <bool FAR> DEVICE void multiply(float (&sum)[HELD], u32 slot, u32 stage) const {
        Part part[2];
        begin(part[0], slot, 0);
#pragma unroll
        for (u32 group = 0; group < GROUPS - 1; group++) {
            begin(part[(group + 1) % 2], slot, group + 1);
            end<FAR, 1>(sum, part[group % 2], stage, group);
        }
        end<FAR, 0>(sum, part[(GROUPS - 1) % 2], stage, GROUPS - 1);
    }

    // The gang's stages are every GANGS-th.
    DEVICE void start() {
        clear_x();
        u32 stages = room.blocks / DEPTH;
#pragma unroll
        for (u32 i = 0; i < SLOTS - 1; i++) {
            if (gang + i * GANGS < stages) fetch_weight(i, gang + i * GANGS);
            copy_commit();
        }
#pragma unroll
        for (u32 i = 0; i < SLOTS - 1; i++) {
            if (gang + i * GANGS < stages) load_x(gang + i * GANGS);
            // What is held last is stored on the way.
            if (i < SLOTS - 2 && gang + i * GANGS < stages) store_x(i);
        }
    }
    template <bool FAR> DEVICE void run(float (&sum)[HELD]) {
        u32 stages = room.blocks / DEPTH, slot = 0;
        for (u32 stage = gang; stage < stages; stage += GANGS) {
            u32 last = slot == 0 ? SLOTS - 1 : slot - 1, before = last == 0 ? SLOTS - 1 : last - 1;
            copy_wait<SLOTS - 2>();
            if (stage + (SLOTS - 2) * GANGS < stages) store_x(SLOTS == 2 ? slot : before);
            async_fence();
            // From here on everyone has what this stage needs, and is done with the one before.
            some_sync(1 + gang, GANG);
            u32 next = stage + (SLOTS - 1) * GANGS;
            if (next < stages) fetch_weight(last, next), load_x(next);
            copy_commit();
            multiply<FAR>(sum, slot, stage);
            if (++slot == SLOTS) slot = 0;
        }
    }

    DEVICE void leave(const float (&sum)[HELD]) const {
#pragma unroll
        for (u32 i = 0; i < HELD; i++) {
            u32 token = i / 4 * 8 + lane % 4 * 2 + i % 2, row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
            room.sums(gang)[token * PITCH + row] = sum[i];
        }
    }
};

// Makes a tile for `count` rows of data, `row(i)` the i-th; then `store(i, sum)` is called by whole warps for each, where
// `sum(r)` is that of row r of the tile, of any lane.
template <u32 TOKENS, u32 SLOTS, typename Find, typename Store>
DEVICE void make(u8 *shared, const Weight &weight, u32 count, const Find &row, const Store &store) {
    Room<TOKENS, SLOTS> room(shared, weight.blocks);
    Worker<TOKENS, SLOTS> worker(room, weight, count, row);
    WeightScales scales;
    scales.load(weight, 0);
    worker.start();
    bool tame = scales.store(room, 0);
    for (u32 first = WeightScales::SPAN; first < room.blocks / 4; first += WeightScales::SPAN) {
        scales.load(weight, first);
        tame &= scales.store(room, first);
    }
    tame &= load_scales<false>(room, weight.blocks, count, row);
    tame = __syncthreads_and(tame);
    float sum[Worker<TOKENS, SLOTS>::HELD];
    for (float &s : sum) s = 0;
    if (tame) {
        worker.template run<false>(sum);
    } else {
        load_scales<true>(room, weight.blocks, count, row);
        __syncthreads();
        worker.template run<true>(sum);
    }
    copy_wait<0>();
    // The rings are read to the end before sums take their place.
    __syncthreads();
    worker.leave(sum);
    __syncthreads();
    for (u32 token = threadIdx.x / 32; token < count; token += WARPS) {
        store(token, [&](u32 r) {
            float total = 0;
#pragma unroll
            for (u32 gang = 0; gang < GANGS; gang++) total += room.sums(gang)[token * PITCH + r];
            return total * 64.0f;
        });
    }
    __syncthreads();
}

DEVICE u16 rounded(float x) { return is_nan(x) ? (u16)(NAN_BITS >> 16) : bf16_from_f32(x); }
}  // namespace tiles
