// mhc.mixes on Hopper: the coefficients that a sub-layer's input, output and residual of four streams mix with.
//
// The sixteen blocks of a cluster have the parts of the columns. Each brings its part of the projection to shared memory
// while the kernel before still runs, then takes some tokens at a time: eight warps make products in f32, each six
// coefficients of half of the part's columns, and send a token's sums to the block that has its number, whose last warp adds
// the parts in order in f64, makes Sinkhorn's steps, and lets the next tokens' sums come. Parts follow from the shape alone
// and a lane's columns from its number, so the bits do not depend on the number of tokens.
//
// Bytes: the projection once a cluster (2 MB, from L2 but for the first), the streams once. Floor of 32 tokens of 5120: 0.8 us.
// By instructions: 1,900 clocks of ten tokens' products a block, 4,700 of a token's Sinkhorn. Predicted 6 us up to 64 tokens.
// Measured: 7.5 us for one token, 7.7 for 6, 13.8 for 32, 22.5 for 128, 993 for 8,192 (8.5 for each ten of a cluster).
// SASS: UCGABAR_ARV
#include "../device/hopper.cuh"
#include "../device/mixes.cuh"

constexpr u32 PARTS = 16, COEFFICIENTS = 24, WARPS = 8, WORKERS = WARPS * 32, THREADS = WORKERS + 32;
// Warps of the same coefficients, bands of them that a warp has, and columns that a lane takes at once.
constexpr u32 HALVES = 2, BANDS = 2, QUAD = 4;
static_assert(WARPS / HALVES * BANDS * BAND == COEFFICIENTS, "every coefficient has its warps");
// What a block sends of a token: its coefficients' sums, then the squares, in units of 16 bytes.
constexpr u32 SENT = 28, SENT_UNITS = SENT / 4;
// Tokens' sums that may come before those before are added.
constexpr u32 SLOTS = 2;

struct MixesRoom {
    u64 full[SLOTS], empty[SLOTS];
    alignas(16) float parts[SLOTS][PARTS][SENT];
    // Of this block: sums of halves, and of squares.
    float sums[HALVES][COEFFICIENTS][PARTS], squares[PARTS];
    MixesMemory memory;
};
// Of it and what lies behind, as the host has it.
constexpr u32 ROOM_BYTES = 16 * 1024;
static_assert(sizeof(MixesRoom) <= ROOM_BYTES, "columns follow the room");

// A block's columns of those of all streams side by side, and where they are in shared memory.
struct MixesPart {
    u32 first, columns, all;
    float *weights;
    u16 *x;
};

template <bool WHOLE> DEVICE void bring_weights(const Mixer &mixer, const MixesPart &part) {
    u32 chunks = part.columns / CHUNK;
#pragma unroll 4
    for (u32 i = threadIdx.x; i < COEFFICIENTS * chunks; i += THREADS) {
        u32 row = i / chunks, column = i % chunks * CHUNK;
        Chunk w = {};
        if (part.first + column < part.all) w = any_chunk<WHOLE, float>(mixer.projection, row, part.first + column, part.all);
#pragma unroll
        for (int k = 0; k < CHUNK; k++) part.weights[row * part.columns + column + k] = w.of[k];
    }
}

// Eight bf16 from a column of all on; zeros behind the last.
template <bool WHOLE> DEVICE Words<4> eight_of(const Mixer &mixer, u64 token, u32 at, u32 all) {
    u32 width = (u32)mixer.width;
    if (WHOLE) {
        if (at >= all) return {};
        return *(const Words<4> *)(row_of<const u16>(mixer.streams, token * 4 + at / width) + at % width);
    }
    Words<4> words = {};
#pragma unroll
    for (u32 i = 0; i < CHUNK; i++) {
        if (at + i >= all) break;
        u32 code = row_of<const u16>(mixer.streams, token * 4 + (at + i) / width)[(at + i) % width];
        words.of[i / 2] |= code << i % 2 * 16;
    }
    return words;
}

// A warp brings a token's columns; returns a lane's sum of their squares.
template <bool WHOLE> DEVICE float bring_token(const Mixer &mixer, const MixesPart &part, u64 token, u16 *to) {
    float squares = 0;
#pragma unroll 5
    for (u32 column = threadIdx.x % 32 * CHUNK; column < part.columns; column += 32 * CHUNK) {
        Words<4> words = eight_of<WHOLE>(mixer, token, part.first + column, part.all);
        Chunk x = bf16_chunk(words);
#pragma unroll
        for (int k = 0; k < CHUNK; k++) squares = fmaf(x.of[k], x.of[k], squares);
        *(Words<4> *)(to + column) = words;
    }
    return squares;
}

// Sums over the lanes of a warp, by halves, of COUNT values each, a power of two: lane l gets that of value
// l / (32 / COUNT). The order does not depend on COUNT.
template <u32 COUNT, u32 MASK = 16, u32 SIZE> DEVICE float lanes_sums(float (&values)[SIZE]) {
    bool upper = threadIdx.x & MASK;
    if constexpr (COUNT > 1) {
#pragma unroll
        for (u32 i = 0; i < COUNT / 2; i++) {
            float low = values[i], high = values[i + COUNT / 2];
            values[i] = (upper ? high : low) + __shfl_xor_sync(ALL_LANES, upper ? low : high, MASK);
        }
    } else {
        values[0] += __shfl_xor_sync(ALL_LANES, values[0], MASK);
    }
    if constexpr (MASK > 1) return lanes_sums<(COUNT > 1 ? COUNT / 2 : 1), MASK / 2>(values);
    return values[0];
}

// A warp's coefficients of its half of the columns, of TOKENS tokens.
template <u32 TOKENS> DEVICE void multiply(const MixesPart &part, MixesRoom &room) {
    constexpr u32 COUNT = TOKENS * BAND <= 8 ? 8 : 32;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = warp % HALVES, first = warp / HALVES * BANDS * BAND;
    float sums[BANDS][COUNT] = {};
#pragma unroll 1
    for (u32 at = (half * 32 + lane) * QUAD; at < part.columns; at += HALVES * 32 * QUAD) {
        Words<4> w[BANDS * BAND];
#pragma unroll
        for (u32 j = 0; j < BANDS * BAND; j++) w[j] = *(const Words<4> *)(part.weights + (first + j) * part.columns + at);
#pragma unroll
        for (u32 t = 0; t < TOKENS; t++) {
            Words<2> x = *(const Words<2> *)(part.x + t * part.columns + at);
#pragma unroll
            for (u32 k = 0; k < QUAD; k++) {
                float factor = k % 2 == 0 ? lower_bf16(x.of[k / 2]) : upper_bf16(x.of[k / 2]);
#pragma unroll
                for (u32 j = 0; j < BANDS * BAND; j++) {
                    float &sum = sums[j / BAND][t * BAND + j % BAND];
                    sum = fmaf(factor, float_of(w[j].of[k]), sum);
                }
            }
        }
    }
    u32 value = lane / (32 / COUNT);
    bool has_value = lane % (32 / COUNT) == 0 && value < TOKENS * BAND;
#pragma unroll
    for (u32 band = 0; band < BANDS; band++) {
        float sum = lanes_sums<COUNT>(sums[band]);
        if (has_value) room.sums[half][first + band * BAND + value % BAND][value / BAND] = sum;
    }
}

// Sends what this block has of `tokens` tokens, each to the block of its number. Only who sends waits for the slot: the
// barrier cannot come round again before what that thread sends is taken.
DEVICE void send(MixesRoom &room, u32 round, u32 tokens) {
    u32 token = threadIdx.x / SENT_UNITS, unit = threadIdx.x % SENT_UNITS, slot = round % SLOTS, rank = cluster_rank();
    if (token >= tokens) return;
    if (round >= SLOTS) barrier_wait(&room.empty[slot], (round / SLOTS - 1) % 2);
    u32 words[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 c = unit * 4 + i;
        float sum = c < COEFFICIENTS ? room.sums[0][c][token] + room.sums[1][c][token] : 0;
        words[i] = bits_of(c == COEFFICIENTS ? room.squares[token] : sum);
    }
    peer_store_16(&room.parts[slot][rank][unit * 4], words, &room.full[slot], token);
}

// A sum that left the range of f32 on the way, or is none: all of the token in f64, by a warp.
DEVICE void project_again(const Mixer &mixer, u64 token, MixesMemory &memory) {
#pragma unroll 1
    for (u32 first = 0; first < COEFFICIENTS; first += BAND) {
        double sums[BAND + 1] = {};
#pragma unroll 1
        for (u32 slice = 0; slice < SLICES; slice++) {
            Band<double> band = band_of<false, double>(mixer, token, first, slice);
#pragma unroll
            for (int j = 0; j < BAND; j++) sums[j] += band.of[j];
            sums[BAND] += band.squares;
        }
#pragma unroll
        for (int j = 0; j < BAND; j++) sums[j] = lanes_sum(sums[j], 32);
        sums[BAND] = lanes_sum(sums[BAND], 32);
        if (threadIdx.x % 32 != 0) continue;
#pragma unroll
        for (int j = 0; j < BAND; j++) memory.sums[0][first + j] = sums[j];
        memory.sums[0][COEFFICIENTS] = sums[BAND];
    }
}

// Adds the parts of a token in a slot; whether they are numbers.
DEVICE bool add_parts(MixesRoom &room, u32 slot) {
    u32 lane = threadIdx.x % 32;
    double sum = 0;
    bool in_range = true;
#pragma unroll
    for (u32 i = 0; i < PARTS; i++) {
        float part = lane <= COEFFICIENTS ? room.parts[slot][i][lane] : 0;
        in_range = in_range && is_finite(part), sum += (double)part;
    }
    if (lane <= COEFFICIENTS) room.memory.sums[0][lane] = sum;
    return __ballot_sync(ALL_LANES, !in_range) == 0;
}

// The last warp: the tokens of this block's number, one of each go.
DEVICE void mix_all(const Mixer &mixer, MixesRoom &room, u64 begin, u64 step, u32 each, u64 tokens) {
    u32 lane = threadIdx.x % 32, rank = cluster_rank();
    if (rank >= each) return;
    Affine affine = affine_of(mixer, lane);
    if (lane <= COEFFICIENTS) room.memory.sums[1][lane] = 0;
    u32 round = 0;
#pragma unroll 1
    for (u64 first = begin; first + rank < tokens; first += step, round++) {
        u32 slot = round % SLOTS;
        if (lane == 0) barrier_expect(&room.full[slot], PARTS * SENT * 4);
        barrier_wait(&room.full[slot], round / SLOTS % 2);
        bool in_range = add_parts(room, slot);
        __syncwarp();
        if (lane < PARTS) peer_arrive(&room.empty[slot], lane);
        if (!in_range) project_again(mixer, first + rank, room.memory);
        __syncwarp();
        mix_four(mixer, first + rank, room.memory, affine);
        __syncwarp();
    }
}

// The others: TOKENS tokens at each go.
template <u32 TOKENS, bool WHOLE>
DEVICE void multiply_all(const Mixer &mixer, const MixesPart &part, MixesRoom &room, u64 begin, u64 step, u64 tokens) {
    constexpr u32 EACH = (TOKENS + WARPS - 1) / WARPS;
    u32 warp = threadIdx.x / 32, round = 0;
#pragma unroll 1
    for (u64 first = begin; first < tokens; first += step, round++) {
        u32 left = tokens - first < TOKENS ? (u32)(tokens - first) : TOKENS;
        float squares[EACH] = {};
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            u32 own = warp + i * WARPS;
            if (own < left) squares[i] = bring_token<WHOLE>(mixer, part, first + own, part.x + own * part.columns);
        }
        some_sync(1, WORKERS);
        multiply<TOKENS>(part, room);
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            u32 own = warp + i * WARPS;
            float one[1] = {squares[i]}, sum = lanes_sums<1>(one);
            if (threadIdx.x % 32 == 0 && own < left) room.squares[own] = sum;
        }
        some_sync(1, WORKERS);
        send(room, round, left);
    }
}

template <u32 TOKENS> DEVICE void mixes(const Mixer &mixer, u64 tokens, u32 columns) {
    DYNAMIC_SHARED(shared);
    let_next_begin();
    MixesRoom &room = *(MixesRoom *)shared;
    u32 rank = cluster_rank();
    MixesPart part = {rank * columns, columns, (u32)(4 * mixer.width), (float *)(shared + ROOM_BYTES), nullptr};
    part.x = (u16 *)(part.weights + COEFFICIENTS * columns);
    if (threadIdx.x == 0) {
#pragma unroll
        for (u32 i = 0; i < SLOTS; i++) barrier_init(&room.full[i], 1), barrier_init(&room.empty[i], TOKENS);
        barrier_init_fence();
    }
    bool whole = mixer.width % CHUNK == 0 && is_aligned(Plain<u16>{mixer.streams}, mixer.width) &&
                 is_aligned(Plain<float>{mixer.projection}, mixer.width);
    if (whole) bring_weights<true>(mixer, part);
    else bring_weights<false>(mixer, part);
    // Tokens that are not there are multiplied as zeros, and not sent.
    for (u32 i = threadIdx.x; i < TOKENS * columns / CHUNK; i += THREADS) ((Words<4> *)part.x)[i] = {};
    cluster_sync();
    wait_for_previous();
    u64 begin = (u64)cluster_number() * TOKENS, step = (u64)gridDim.x / PARTS * TOKENS;
    if (threadIdx.x >= WORKERS) mix_all(mixer, room, begin, step, TOKENS, tokens);
    else if (whole) multiply_all<TOKENS, true>(mixer, part, room, begin, step, tokens);
    else multiply_all<TOKENS, false>(mixer, part, room, begin, step, tokens);
    // Others may still send to this block, or tell it that they took what it sent.
    __syncwarp();
    cluster_sync();
}

KERNEL(mhc_mixes__cluster_2, THREADS)(View streams, View projection, View base, View scale, View pre, View post, View comb,
                                      u64 width, u64 iterations, float eps, float norm_eps, u64 tokens,
                                      u32 columns) {
    mixes<2>({streams, projection, base, scale, pre, post, comb, 4, width, iterations, eps, norm_eps}, tokens, columns);
}
KERNEL(mhc_mixes__cluster_6, THREADS)(View streams, View projection, View base, View scale, View pre, View post, View comb,
                                      u64 width, u64 iterations, float eps, float norm_eps, u64 tokens,
                                      u32 columns) {
    mixes<6>({streams, projection, base, scale, pre, post, comb, 4, width, iterations, eps, norm_eps}, tokens, columns);
}
KERNEL(mhc_mixes__cluster_10, THREADS)(View streams, View projection, View base, View scale, View pre, View post, View comb,
                                       u64 width, u64 iterations, float eps, float norm_eps, u64 tokens,
                                       u32 columns) {
    mixes<10>({streams, projection, base, scale, pre, post, comb, 4, width, iterations, eps, norm_eps}, tokens, columns);
}
