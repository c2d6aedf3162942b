// attn.sparse on Hopper's matrix units, with all scores of a row's list in registers, so that every weight is rounded
// against the largest score of all.
//
// A block takes a row of up to 64 heads at a time. Two teams have half of the list each; of a team, one gang makes bf16 of
// its entries in shared memory, 64 dims of all of them a stage, and one multiplies: first queries by entries, stage after
// stage, then the weights, which stay in registers, by the same stages again. For each stage of values the teams exchange
// halves of their sums. The order of sums follows from the lists' lengths alone.
//
// What bf16 does not hold (NaN, outrageous scales and queries) makes its row again, one product after the other.
//
// SASS: HGMMA USETMAXREG
#include "../device/bf16_keys.cuh"
#include "../device/hopper.cuh"
#include "chunk.cuh"
#include "entry.cuh"
#include "lanes.cuh"

constexpr u32 GANG = 128, TEAMS = 2, ADDERS = TEAMS * GANG, THREADS = 2 * ADDERS, WARPS = GANG / 32;
constexpr u32 HEADS = 64, DIMS = 64, ROW_BYTES = 128, QUERY_BYTES = HEADS * ROW_BYTES, SLOTS = 2;
// Registers of adders and of the others.
constexpr int MORE = 192, FEWER = 64;
// Bytes of an entry's scales at most.
constexpr u32 SCALE_BYTES = 32;
// Number of the barrier of all adders.
constexpr u32 ALL_ADDERS = 1;
// A query's bits of bf16 from 2^60 on, taken from the sign's place: sums of its products might pass f32.
constexpr u32 TO_WILD = 0x80008000u - 0x5D805D80u;

// What is attended, and how.
struct Attention {
    View q, window, window_at, selected, selected_at, sink, y, lse;
    u32 heads, head_dim, window_count, selected_count;
    float scale;
    u32 tokens, groups;

    DEVICE u32 count() const { return window_count + selected_count; }
    DEVICE u32 stages() const { return (head_dim + DIMS - 1) / DIMS; }
};

// The entry that a row lists at `i`, none for an address outside.
DEVICE const u8 *listed_at(const Attention &d, const Entry &window_entry, const Entry &selected_entry, u64 token, u32 i) {
    if (i < d.window_count) return entry_at(window_entry, d.window, row_of<const i32>(d.window_at, token)[i]);
    return entry_at(selected_entry, d.selected, row_of<const i32>(d.selected_at, token)[i - d.window_count]);
}

// Sums of a thread that are moved at once.
struct alignas(16) Four {
    float of[4];
};

// PARTS products of WIDE entries each for the entries of a team.
template <u32 PARTS_, u32 WIDE_> struct Width {
    static constexpr u32 PARTS = PARTS_, WIDE = WIDE_, ENTRIES = PARTS * WIDE, HELD = WIDE / 2, STEPS = ENTRIES / 16;
    static constexpr u32 KEY_BYTES = ENTRIES * ROW_BYTES, SLOT_BYTES = KEY_BYTES + QUERY_BYTES;
    // Pieces of a stage that a maker makes, and those that it loads ahead to registers.
    static constexpr u32 PIECES = ENTRIES * (DIMS / PIECE) / GANG, BATCH = PIECES < 4 ? PIECES : 4;
};

// Shared memory: for each team its slots, scales and addresses of entries, what adders tell each other of heads, scores of
// a row that is made again, which entries are there in this row and the next, whether it is wild, and barriers.
template <typename F> struct Room {
    u8 *ring, *all_scales;
    const u8 **all_keys;
    float *largest, *mass, *scores;
    u32 *listed, *wild;
    u64 *barriers;

    DEVICE Room(u8 *shared) {
        ring = shared;
        all_scales = ring + TEAMS * SLOTS * F::SLOT_BYTES;
        all_keys = (const u8 **)(all_scales + TEAMS * F::ENTRIES * SCALE_BYTES);
        barriers = (u64 *)(all_keys + TEAMS * F::ENTRIES);
        largest = (float *)(barriers + 2 * TEAMS * SLOTS);
        mass = largest + TEAMS * HEADS;
        scores = mass + TEAMS * HEADS;
        listed = (u32 *)(scores + TEAMS * F::ENTRIES);
        wild = listed + 2 * TEAMS * (F::ENTRIES / 32);
    }
    DEVICE u8 *keys(u32 team, u32 slot) const { return ring + (team * SLOTS + slot) * F::SLOT_BYTES; }
    DEVICE u8 *queries(u32 team, u32 slot) const { return keys(team, slot) + F::KEY_BYTES; }
    DEVICE u8 *scales(u32 team, u32 entry) const { return all_scales + (team * F::ENTRIES + entry) * SCALE_BYTES; }
    DEVICE const u8 *&key(u32 team, u32 entry) const { return all_keys[team * F::ENTRIES + entry]; }
    DEVICE u64 *full(u32 team, u32 slot) const { return barriers + team * 2 * SLOTS + slot; }
    DEVICE u64 *empty(u32 team, u32 slot) const { return full(team, SLOTS + slot); }
    DEVICE u32 *is_listed(u32 row, u32 team) const { return listed + (row % 2 * TEAMS + team) * (F::ENTRIES / 32); }
    DEVICE u32 &is_wild(u32 row, u32 team, u32 warp) const { return wild[(row % 2 * TEAMS + team) * WARPS + warp]; }
};

// What a team has of the list.
struct Share {
    u32 first, count;
    DEVICE Share(const Attention &d, u32 team) {
        u32 half = (d.count() + 1) / 2;
        first = team * half, count = team == 0 ? half : d.count() - half;
    }
};

// A thread of the gang that makes a team's stages. Each of its warps has eight of 32 entries, four lanes an entry, and
// minds nobody else: what lanes find of entries is for their own warp.
template <typename F> struct Maker {
    const Room<F> &room;
    const Attention &d;
    const Entry &window_entry, &selected_entry;
    u32 team, warp, lane, fills = 0;
    // Of its entries those of the window.
    u32 of_window;
    Kind window_kind, selected_kind;
    // Which of its pieces are there and read by words.
    u32 read = 0;
    Codes codes[F::BATCH];

    DEVICE Maker(const Room<F> &room, const Attention &d, const Entry &window_entry, const Entry &selected_entry, u32 team)
        : room(room), d(d), window_entry(window_entry), selected_entry(selected_entry), team(team) {
        warp = __shfl_sync(ALL_LANES, threadIdx.x % GANG / 32, 0), lane = threadIdx.x % 32;
        u32 first = Share(d, team).first;
        of_window = d.window_count > first ? d.window_count - first : 0;
        window_kind = kind_of(window_entry, d.window), selected_kind = kind_of(selected_entry, d.selected);
    }
    DEVICE bool is_of_window(u32 entry) const { return entry < of_window; }
    DEVICE const Entry &entry_of(u32 entry) const { return is_of_window(entry) ? window_entry : selected_entry; }
    DEVICE Kind kind(u32 entry) const { return is_of_window(entry) ? window_kind : selected_kind; }

    // What follows from the lane is not kept in registers from here on.
    DEVICE void forget() { lane = forgotten(lane); }

    // The entry and the column of piece `n` of this thread.
    DEVICE u32 entry(u32 n) const { return 32 * n + 8 * warp + lane / 4; }
    DEVICE u32 column(u32 stage) const { return stage * DIMS + lane % 4 * PIECE; }
    // The entry of a piece, if it is there and has this column.
    DEVICE const u8 *key(u32 stage, u32 n) const {
        return column(stage) < d.head_dim ? room.key(team, entry(n)) : nullptr;
    }

    // Addresses of a row's entries.
    DEVICE void find(u32 row, u64 token) {
        Share share(d, team);
        __syncwarp();
        if (lane == 0) room.is_wild(row, team, warp) = 0;
#pragma unroll 1
        for (u32 i = lane; i < (8 * F::PIECES + 31) / 32 * 32; i += 32) {
            u32 own = i / 8 * 32 + 8 * warp + i % 8;
            const u8 *key = own < share.count ? listed_at(d, window_entry, selected_entry, token, share.first + own) : nullptr;
            u32 there = __ballot_sync(ALL_LANES, key != nullptr);
            if (i >= 8 * F::PIECES) continue;
            room.key(team, own) = key;
            if (i % 8 == 0) ((u8 *)room.is_listed(row, team))[i / 8 * 4 + warp] = (u8)(there >> lane);
        }
        __syncwarp();
        read = 0;
#pragma unroll 1
        for (u32 n = 0; n < F::PIECES; n++) {
            bool reads = room.key(team, entry(n)) != nullptr && kind(entry(n)) != OTHER_PIECES;
            read |= (u32)reads << n;
        }
    }
    // Their scales, half of an entry's a lane.
    DEVICE void copy_scales() const {
#pragma unroll 1
        for (u32 n = 0; n < F::PIECES; n += 2) {
            u32 own = entry(n + lane % 4 / 2), unit = lane % 2 * 16;
            const u8 *key = room.key(team, own);
            Kind of = kind(own);
            u32 bytes = key == nullptr || of == OTHER_PIECES ? 0 : d.head_dim / (of == FP8_PIECES ? 32 : 16);
            u8 *to = room.scales(team, own) + unit;
            const u8 *from = key + scales_of(entry_of(own)) + unit;
            if (unit + 16 <= bytes && (u64)from % 16 == 0) {
                copy_16(to, from, true);
            } else {
#pragma unroll 1
                for (u32 i = 0; i < 16; i++) to[i] = unit + i < bytes ? from[i] : NO_SCALE;
            }
        }
        copy_commit();
    }
    // Where this thread's pieces of a stage are: each some bytes behind the one before.
    struct Places {
        const u8 **key;
        // Scales of entries of the window and of the others.
        const u8 *scale[2];
        // Halves as they are multiplied.
        u8 *half[2];
        // Of an entry, where its codes are.
        u32 unit[2];
        // Pieces of entries of the window, which are the first, and bits of those that are there.
        u32 of_window, there;
    };
    DEVICE Places places(u32 stage, u8 *keys) const {
        u32 own = entry(0), at = column(stage);
        u8 *half = keys + swizzled_unit(own, lane % 4 * 2), *scales = room.scales(team, own);
        const u8 *window = scales + at / (window_kind == FP8_PIECES ? 32 : 16);
        const u8 *selected = scales + at / (selected_kind == FP8_PIECES ? 32 : 16);
        u32 first = own < of_window ? (of_window - own + 31) / 32 : 0;
        return {&room.key(team, own), {window, selected}, {half, (u8 *)((u64)half ^ 16)},
                {unit_of(window_kind, at), unit_of(selected_kind, at)}, first, at < d.head_dim ? read : 0};
    }

    // The codes of piece `n`, of which `from` says where.
    DEVICE const u8 *codes_of(const Places &at, u32 n) const {
        return at.key[32 * n] + (n < at.of_window ? at.unit[0] : at.unit[1]);
    }
    DEVICE u32 scale(const Places &at, u32 n) const {
        return (n < at.of_window ? at.scale[0] : at.scale[1])[32 * SCALE_BYTES * n];
    }

    // The first pieces of a stage, to registers.
    DEVICE void load(u32 stage) {
        Places at = places(stage, nullptr);
#pragma unroll
        for (u32 n = 0; n < F::BATCH; n++) load_16_if(at.there >> n & 1, codes_of(at, n), codes[n].of);
    }
    // The others, each to its own place.
    DEVICE void copy(const Places &at) const {
#pragma unroll
        for (u32 n = F::BATCH; n < F::PIECES; n++) {
            copy_16(at.half[0] + 32 * ROW_BYTES * n, codes_of(at, n), at.there >> n & 1);
        }
    }
    DEVICE Codes copied(const Places &at, u32 n) const {
        Words<4> raw = *(const Words<4> *)(at.half[0] + 32 * ROW_BYTES * n);
        return {raw.of[0], raw.of[1], raw.of[2], raw.of[3]};
    }

    // Whether it is wild.
    DEVICE bool store(const Places &at, const Codes &codes, u32 scale, u32 n) const {
        u32 words[2][4];
        bool wild = false;
        if ((n < at.of_window ? window_kind : selected_kind) == FP8_PIECES) {
            wild = is_wild(codes, scale);
            widen_fp8(codes.of[0], codes.of[1], scale, words[0]);
            widen_fp8(codes.of[2], codes.of[3], scale, words[1]);
        } else {
            // Those that are not read by words are zeros here.
            u32 factors = fp4_factors(scale);
            bool second = lane % 2 != 0;
            widen_fp4(second ? codes.of[2] : codes.of[0], factors, words[0]);
            widen_fp4(second ? codes.of[3] : codes.of[1], factors, words[1]);
        }
#pragma unroll
        for (u32 h = 0; h < 2; h++) store_16(at.half[h] + 32 * ROW_BYTES * n, words[h]);
        return wild;
    }
    // Two neighbouring ones, side by side if they are of FP4 as most are.
    DEVICE bool store_two(const Places &at, const Codes &a, const Codes &b, u32 n) const {
        u32 scales[2] = {scale(at, n), scale(at, n + 1)};
        if (n < at.of_window || selected_kind == FP8_PIECES) return store(at, a, scales[0], n) | store(at, b, scales[1], n + 1);
        u32 words[4][4], factors[2] = {fp4_factors(scales[0]), fp4_factors(scales[1])};
        bool second = lane % 2 != 0;
        widen_fp4(second ? a.of[2] : a.of[0], factors[0], words[0]);
        widen_fp4(second ? a.of[3] : a.of[1], factors[0], words[1]);
        widen_fp4(second ? b.of[2] : b.of[0], factors[1], words[2]);
        widen_fp4(second ? b.of[3] : b.of[1], factors[1], words[3]);
#pragma unroll
        for (u32 i = 0; i < 4; i++) store_16(at.half[i % 2] + 32 * ROW_BYTES * (n + i / 2), words[i]);
        return false;
    }
    // Pieces that are not read by words.
    DEVICE bool store_others(u32 stage, u8 *keys) const {
        bool wild = false;
#pragma unroll 1
        for (u32 i = 0; i < 2 * F::PIECES; i++) {
            u32 words[4];
            const u8 *from = key(stage, i / 2);
            if (from == nullptr || kind(entry(i / 2)) != OTHER_PIECES) continue;
            wild |= widen_any(entry_of(entry(i / 2)), from, column(stage) + i % 2 * CHUNK, words);
            store_16(keys + swizzled_unit(entry(i / 2), lane % 4 * 2 + i % 2), words);
        }
        return wild;
    }

    // This thread's part of a stage's queries, eight dims of each sixteenth head: where they are, and where they go.
    static constexpr u32 HEADS_APART = GANG / 8, QUERIES = HEADS / HEADS_APART;
    struct Queries {
        const u16 *from;
        u8 *to;
        // Of this thread's heads, how many there are; whether they are read by words.
        u32 count;
        bool whole;
    };
    DEVICE Queries queries_of(u64 token, u32 first_head, u32 stage, u8 *queries) const {
        u32 head = 4 * warp + lane / 8, column = stage * DIMS + lane % 8 * CHUNK, past = first_head + head;
        u32 count = past < d.heads && column < d.head_dim ? (d.heads - past + HEADS_APART - 1) / HEADS_APART : 0;
        return {row_of<const u16>(d.q, token * d.heads + past) + column, queries + swizzled_unit(head, lane % 8), count,
                ((u64)d.q.codes | d.q.stride * 2) % 16 == 0};
    }

    DEVICE void copy_queries(const Queries &q) const {
#pragma unroll
        for (u32 i = 0; i < QUERIES; i++) {
            copy_16(q.to + i * HEADS_APART * ROW_BYTES, q.from + i * HEADS_APART * d.q.stride, q.whole && i < q.count);
        }
    }
    // Puts them into the order of the entries'; whether one is wild.
    DEVICE bool turn_queries(const Queries &q) const {
        u32 wild = 0;
#pragma unroll
        for (u32 i = 0; i < QUERIES; i++) {
            u8 *place = q.to + i * HEADS_APART * ROW_BYTES;
            Words<4> x = *(const Words<4> *)place;
            if (!q.whole && i < q.count) x = far_words(q.from + i * HEADS_APART * d.q.stride);
            u32 turned[4];
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                u32 low = x.of[j / 2], high = x.of[2 + j / 2];
                turned[j] = j % 2 == 0 ? (low & 0xFFFFu) | high << 16 : low >> 16 | (high & 0xFFFF0000u);
                wild |= (x.of[j] & 0x7FFF7FFFu) + TO_WILD;
            }
            store_16(place, turned);
        }
        return (wild & 0x80008000u) != 0;
    }
    // Eight numbers at any address.
    static DEVICE Words<4> far_words(const u16 *from) {
        Words<4> x;
#pragma unroll
        for (u32 i = 0; i < 4; i++) x.of[i] = from[2 * i] | (u32)from[2 * i + 1] << 16;
        return x;
    }

    // A stage of a row, whose first pieces are loaded, for scores or for values; loads the first pieces of the next.
    DEVICE void fill(u32 row, u64 token, u32 first_head, u32 stage, u32 next, bool scores) {
        u32 slot = fills % SLOTS;
        u8 *keys = room.keys(team, slot), *queries = room.queries(team, slot);
        if (fills >= SLOTS) barrier_wait(room.empty(team, slot), (fills / SLOTS - 1) % 2);
        Places at = places(stage, keys);
        copy(at);
        if (scores) copy_queries(queries_of(token, first_head, stage, queries));
        copy_commit();
        bool wild = false;
#pragma unroll
        for (u32 n = 0; n < F::BATCH; n += 2) wild |= store_two(at, codes[n], codes[n + 1], n);
        bool others = window_kind == OTHER_PIECES || selected_kind == OTHER_PIECES;
        if (!others) load(next);
        if constexpr (F::PIECES > F::BATCH) {
            copy_wait<0>();
#pragma unroll
            for (u32 n = F::BATCH; n < F::PIECES; n += 2) wild |= store_two(at, copied(at, n), copied(at, n + 1), n);
        }
        forget();
        if (scores) {
            if (F::PIECES == F::BATCH) copy_wait<0>();
            wild |= turn_queries(queries_of(token, first_head, stage, queries));
        }
        if (others) {
            wild |= store_others(stage, keys);
            // Only now, for the registers.
            load(next);
        }
        if (wild) room.is_wild(row, team, warp) = 1;
        async_fence();
        __syncwarp();
        if (lane == 0) barrier_arrive(room.full(team, slot));
        fills++;
    }

    DEVICE void run() {
        u32 row = 0, stages = d.stages();
        for (u32 item = blockIdx.x; item < d.tokens * d.groups; item += gridDim.x, row++) {
            u32 token = item / d.groups, first_head = (item - token * d.groups) * HEADS;
            find(row, token);
            copy_scales();
            load(0);
            copy_wait<0>();
            __syncwarp();
#pragma unroll 1
            for (u32 i = 0; i < 2 * stages; i++) {
                forget();
                u32 stage = i < stages ? i : i - stages;
                fill(row, token, first_head, stage, stage + 1 < stages ? stage + 1 : 0, i < stages);
            }
        }
    }
};

constexpr float LOG2_E = 1.44269504f;

// A thread of the gang that multiplies a team's stages. It holds sums of two heads, and entries or dims in pairs.
template <typename F> struct Adder {
    typedef float Held[F::HELD];
    const Room<F> &room;
    const Attention &d;
    const Entry &window_entry, &selected_entry;
    u32 team, thread, lane, own_head, fills = 0;

    DEVICE Adder(const Room<F> &room, const Attention &d, const Entry &window_entry, const Entry &selected_entry, u32 team)
        : room(room), d(d), window_entry(window_entry), selected_entry(selected_entry), team(team) {
        thread = threadIdx.x % GANG, lane = thread % 32, own_head = thread / 32 * 16 + lane / 4;
    }
    DEVICE u32 slot() const { return fills % SLOTS; }
    DEVICE void enter() { barrier_wait(room.full(team, slot()), fills / SLOTS % 2); }
    DEVICE void leave() const {
        __syncwarp();
        if (lane == 0) barrier_arrive(room.empty(team, slot()));
    }

    // What sums begin with: minus infinity for entries that are not there, whose products are zeros.
    DEVICE void begin(Held (&sums)[F::PARTS], const u32 *listed) const {
#pragma unroll
        for (u32 p = 0; p < F::PARTS; p++) {
#pragma unroll
            for (u32 word = 0; word < F::WIDE / 32; word++) {
                u32 bits = listed[p * (F::WIDE / 32) + word] >> lane % 4 * 2;
#pragma unroll
                for (u32 c = 0; c < 16; c++) {
                    sums[p][16 * word + c] = bits >> (c / 4 * 8 + c % 2) & 1 ? 0.0f : float_of(0xFF800000u);
                }
            }
        }
    }

    // Queries by entries.
    DEVICE void multiply(Held (&sums)[F::PARTS], u32 row) {
        enter();
        begin(sums, room.is_listed(row, team));
        for (u32 stage = 0; stage < d.stages(); stage++) {
            if (stage > 0) enter();
            u64 q = operand_128(room.queries(team, slot())), keys = operand_128(room.keys(team, slot()));
            mma_fence();
#pragma unroll
            for (u32 k = 0; k < DIMS / 16; k++) {
#pragma unroll
                for (u32 p = 0; p < F::PARTS; p++) {
                    mma_bf16_add(sums[p], q + 2 * k, keys + p * (F::WIDE * ROW_BYTES / 16) + 2 * k);
                }
            }
            mma_commit();
            mma_wait<0>();
#pragma unroll
            for (u32 p = 0; p < F::PARTS; p++) mma_hold(sums[p]);
            leave();
            fills++;
        }
    }

    // The largest sum of each of two heads.
    DEVICE void find_largest(const Held (&sums)[F::PARTS], float (&largest)[2]) const {
        largest[0] = largest[1] = float_of(0xFF800000u);
#pragma unroll
        for (u32 p = 0; p < F::PARTS; p++) {
#pragma unroll
            for (u32 c = 0; c < F::HELD; c++) largest[c / 2 % 2] = larger(largest[c / 2 % 2], sums[p][c]);
        }
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            largest[h] = larger(largest[h], __shfl_xor_sync(ALL_LANES, largest[h], 1));
            largest[h] = larger(largest[h], __shfl_xor_sync(ALL_LANES, largest[h], 2));
            if (lane % 4 == 0) room.largest[team * HEADS + own_head + 8 * h] = largest[h];
        }
    }

    // Weights, as the products take them, and their sums. `largest` is a score.
    DEVICE void weigh(const Held (&sums)[F::PARTS], const float (&largest)[2], u32 (&weights)[F::STEPS][4]) const {
        float mass[2] = {}, scale = d.scale * KEY_LEVEL;
#pragma unroll
        for (u32 k = 0; k < F::STEPS; k++) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                const float *two = &sums[k * 16 / F::WIDE][k * 16 % F::WIDE / 2 + 2 * i];
                float first = power_of_two((two[0] * scale - largest[i % 2]) * LOG2_E);
                float second = power_of_two((two[1] * scale - largest[i % 2]) * LOG2_E);
                mass[i % 2] += first + second;
                weights[k][i] = bf16_pair(first, second);
            }
        }
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            mass[h] += __shfl_xor_sync(ALL_LANES, mass[h], 1);
            mass[h] += __shfl_xor_sync(ALL_LANES, mass[h], 2);
            if (lane % 4 == 0) room.mass[team * HEADS + own_head + 8 * h] = mass[h];
        }
    }

    // What the sums of a head are multiplied with, once all weights are there; nothing for a row that lists nothing.
    DEVICE float factor_of(u64 token, u32 head, u32 h, float largest, bool any, bool stores) const {
        const float *mass = room.mass + own_head + 8 * h;
        bool sinks = d.sink.codes != nullptr && head < d.heads;
        float logit = sinks ? row_of<const float>(d.sink, 0)[head] : float_of(0xFF800000u), whole = mass[0] + mass[HEADS];
        if (sinks) whole += power_of_two((logit - largest) * LOG2_E);
        if (stores && d.lse.codes != nullptr && head < d.heads && team == 0 && lane % 4 == 0) {
            row_of<float>(d.lse, token)[head] = f32_result(any ? largest + log(whole) : logit);
        }
        return KEY_LEVEL / whole;
    }

    // Values of a stage, of which each team finishes half of the dims.
    DEVICE void store(u64 token, u32 first_head, u32 stage, const float (&sums)[16], const float (&factor)[2], bool any) const {
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            u32 h = i / 2 % 2, head = first_head + own_head + 8 * h;
            // Elements i and i + 4 of eight are neighbours.
            u32 dim = stage * DIMS + (4 * team + i / 4) * CHUNK + lane % 4 + i % 2 * 4;
            if (head >= d.heads || dim >= d.head_dim) continue;
            float y = any ? sums[i] * factor[h] : 0.0f;
            row_of<u16>(d.y, token * d.heads + head)[dim] = bf16_result(y);
        }
    }

    // This team's half of both teams' sums of a stage; the other's lies in the place of queries.
    DEVICE void exchange(const float (&sums)[DIMS / 2], float (&kept)[16]) const {
        Four *theirs = (Four *)room.queries(team ^ 1, slot()) + thread;
        const Four *own = (const Four *)room.queries(team, slot()) + thread;
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            kept[i] = team == 0 ? sums[i] : sums[16 + i];
            theirs[i / 4 * GANG].of[i % 4] = team == 0 ? sums[16 + i] : sums[i];
        }
        some_sync(ALL_ADDERS, ADDERS);
#pragma unroll
        for (u32 i = 0; i < 16; i++) kept[i] += own[i / 4 * GANG].of[i % 4];
    }

    // The values of a row.
    DEVICE void add(u64 token, u32 first_head, const u32 (&weights)[F::STEPS][4], const float (&largest)[2], bool any,
                    bool stores) {
        float factor[2];
        for (u32 stage = 0; stage < d.stages(); stage++) {
            enter();
            u64 keys = operand_128(room.keys(team, slot()));
            float sums[DIMS / 2], kept[16];
            mma_fence();
#pragma unroll
            for (u32 k = 0; k < F::STEPS; k++) {
                if (k == 0) mma_bf16_turned(sums, weights[k], keys);
                else mma_bf16_turned_add(sums, weights[k], keys + k * (16 * ROW_BYTES / 16));
            }
            mma_commit();
            mma_wait<0>();
            mma_hold(sums);
            // Behind the last stages the next row's queries come to the place where sums are exchanged.
            bool late = stage + SLOTS >= d.stages();
            if (!late) leave();
            exchange(sums, kept);
            if (stage == 0) {
#pragma unroll
                for (u32 h = 0; h < 2; h++) {
                    factor[h] = factor_of(token, first_head + own_head + 8 * h, h, largest[h], any, stores);
                }
            }
            if (stores) store(token, first_head, stage, kept, factor, any);
            if (late) leave();
            fills++;
        }
    }

    // The scores of a head against all that a row lists, a warp an entry.
    DEVICE void score_plainly(u64 token, u32 head) const {
        for (u32 i = threadIdx.x / 32; i < d.count(); i += ADDERS / 32) {
            const u8 *key = listed_at(d, window_entry, selected_entry, token, i);
            const Entry &entry = i < d.window_count ? window_entry : selected_entry;
            double sum = 0;
            for (u32 c = lane; key != nullptr && c < d.head_dim; c += 32) {
                double q = bf16_to_f32(row_of<const u16>(d.q, token * d.heads + head)[c]);
                sum = fma(q, (double)entry_value(entry, key, c), sum);
            }
            sum = lanes_sum(sum, 32);
            if (lane == 0) room.scores[i] = (float)(sum * (double)d.scale);
        }
    }

    // A head of a row, one product after the other.
    DEVICE void attend_plainly(u64 token, u32 head) const {
        score_plainly(token, head);
        some_sync(ALL_ADDERS, ADDERS);
        float found = float_of(0xFF800000u);
        bool any = false;
        auto listed = [&](u32 i) { return listed_at(d, window_entry, selected_entry, token, i); };
        for (u32 i = lane; i < d.count(); i += 32) {
            bool there = listed(i) != nullptr;
            any |= there;
            if (there && room.scores[i] > found) found = room.scores[i];
        }
        double largest = warp_max(found), mass = 0;
        any = __ballot_sync(ALL_LANES, any) != 0;
        auto weight = [&](u32 i) { return (float)exp((double)room.scores[i] - largest); };
        for (u32 i = lane; i < d.count(); i += 32) mass += listed(i) != nullptr ? (double)weight(i) : 0.0;
        mass = lanes_sum(mass, 32);
        float logit = d.sink.codes != nullptr ? row_of<const float>(d.sink, 0)[head] : float_of(0xFF800000u);
        if (d.sink.codes != nullptr) mass += (double)(float)exp((double)logit - largest);
        for (u32 c = threadIdx.x; c < d.head_dim; c += ADDERS) {
            double sum = 0;
            for (u32 i = 0; i < d.count(); i++) {
                const u8 *key = listed(i);
                if (key == nullptr) continue;
                float value = entry_value(i < d.window_count ? window_entry : selected_entry, key, c);
                sum = fma((double)bf16_to_f32(bf16_from_f32(weight(i))), (double)value, sum);
            }
            row_of<u16>(d.y, token * d.heads + head)[c] = any ? bf16_result(sum / mass) : (u16)0;
        }
        if (d.lse.codes != nullptr && threadIdx.x == 0) {
            row_of<float>(d.lse, token)[head] = f32_result(any ? largest + log(mass) : (double)logit);
        }
        some_sync(ALL_ADDERS, ADDERS);
    }

    DEVICE void run() {
        u32 row = 0;
        for (u32 item = blockIdx.x; item < d.tokens * d.groups; item += gridDim.x, row++) {
            u32 token = item / d.groups, first_head = (item - token * d.groups) * HEADS;
            u32 weights[F::STEPS][4];
            float largest[2];
            Held sums[F::PARTS];
            multiply(sums, row);
            find_largest(sums, largest);
            some_sync(ALL_ADDERS, ADDERS);
#pragma unroll
            for (u32 h = 0; h < 2; h++) {
                largest[h] = larger(largest[h], room.largest[(team ^ 1) * HEADS + own_head + 8 * h]) * (d.scale * KEY_LEVEL);
            }
            weigh(sums, largest, weights);
            bool own = lane < TEAMS * (F::ENTRIES / 32) && room.is_listed(row, 0)[lane] != 0;
            bool any = __ballot_sync(ALL_LANES, own) != 0;
            bool wild = __ballot_sync(ALL_LANES, lane < TEAMS * WARPS && room.is_wild(row, 0, lane) != 0) != 0;
            add(token, first_head, weights, largest, any, !wild);
            u32 past = d.heads - first_head < HEADS ? d.heads : first_head + HEADS;
            for (u32 head = first_head; wild && head < past; head++) attend_plainly(token, head);
        }
    }
};

template <typename F>
DEVICE void attend(const Attention &d, const Entry &window_entry, const Entry &selected_entry, u8 *shared) {
    Room<F> room(shared);
    wait_for_previous();
    let_next_begin();
    if (threadIdx.x < 2 * TEAMS * SLOTS) barrier_init(room.barriers + threadIdx.x, WARPS);
    __syncthreads();
    // The compiler is to know that it is the same for all lanes.
    u32 gang = __shfl_sync(ALL_LANES, threadIdx.x / GANG, 0);
    if (gang < TEAMS) {
        more_registers<MORE>();
        Adder<F>(room, d, window_entry, selected_entry, gang).run();
    } else {
        fewer_registers<FEWER>();
        Maker<F>(room, d, window_entry, selected_entry, gang - TEAMS).run();
    }
}

#define WHOLE(FORM)                                                                                                   \
    (View q, View window, View window_at, View selected, View selected_at, View sink, View y, View lse,              \
     const __grid_constant__ Entry window_entry, const __grid_constant__ Entry selected_entry, u32 heads,            \
     u32 head_dim, u32 window_count, u32 selected_count, float scale, u32 tokens) {                                  \
        DYNAMIC_SHARED(shared);                                                                                       \
        Attention d = {q,        window,       window_at,      selected, selected_at, sink, y, lse, heads,            \
                       head_dim, window_count, selected_count, scale,    tokens,      (heads + HEADS - 1) / HEADS};   \
        attend<FORM>(d, window_entry, selected_entry, shared);                                                        \
    }
typedef Width<1, 64> Short;
typedef Width<2, 160> Long;
KERNEL(attn_sparse__whole_128, THREADS) WHOLE(Short)
KERNEL(attn_sparse__whole_640, THREADS) WHOLE(Long)
