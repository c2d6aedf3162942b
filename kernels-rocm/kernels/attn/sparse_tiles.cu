// attn.sparse on the matrix units, for entries of MXFP8 and NVFP4 and up to 512 dims: a block has 32 heads of a row of data
// and all that the row lists. First every score, which stay in registers: tiles of 32 entries go round among the waves. Then
// the largest of all, against which weights are rounded to bf16, on their way to LDS; then the values, 128 dims a wave.
//
// Entries are made bf16 in registers, exactly but for what is below its numbers. Of 32 dims of an entry or head, lane l has
// those from 16 (l / 32) on, of 16 entries that are weighed the 8 from 8 (l / 32) on, and of 128 dims of a value four
// neighbours, a column in each of four results.
//
// gfx942 knows FP8 codes of half their value alone; the scale makes up for it.
//
// loop gfx942: v_mfma_f32_32x32x8_bf16
// loop gfx950: v_mfma_f32_32x32x16_bf16
#include "arguments.h"
#include "entry.cuh"
#include "fp4_codes.h"
#include "matrix.h"

constexpr u32 THREADS = 256, WAVES = THREADS / 64;
// Dims of a wave's values, a result's columns each, and entries that are weighed at a time.
constexpr u32 SLICE = 128, RESULTS_OF_SLICE = SLICE / SIDE, WEIGHED = 16, WEIGHED_LANE = WEIGHED / 2;
constexpr u32 NONE = 0xFF800000u;
constexpr float LOG2_E = 1.44269504f;

// The arguments of a launch.
struct Sparse {
    View q, window, window_at, selected, selected_at, sink, y, lse;
    Entry window_entry, selected_entry;
    u64 heads, head_dim, window_count, selected_count;
    float scale;
    u64 tokens;
};

#ifdef __gfx950__
// The codes of FP4's values in the dialect that the units know.
constexpr Fp4Table VALUES = {0xBCB8B000u, 0xCCC8C4C0u};
DEVICE Words<4> known_codes(const Words<4> &codes) { return codes; }
#else
constexpr Fp4Table VALUES = FP4_VALUES;
DEVICE Words<4> known_codes(const Words<4> &codes) { return fnuz_chunk(codes); }
#endif

template <int COUNT> DEVICE Words<COUNT> load_bytes_of(const u8 *from) {
    Words<COUNT> words;
    __builtin_memcpy(&words, from, sizeof words);
    return words;
}

// At any address.
typedef u32 __attribute__((aligned(1))) Unaligned;

// What four FP8 codes stand for, as the units have it.
DEVICE F32x4 numbers_of(u32 codes) {
    auto low = __builtin_amdgcn_cvt_pk_f32_fp8((int)codes, false);
    auto high = __builtin_amdgcn_cvt_pk_f32_fp8((int)codes, true);
    return {low[0], low[1], high[0], high[1]};
}

// Two numbers of bf16 as a word.
DEVICE u32 bf16_pair(float low, float high) { return permuted(bits_of(high), bits_of(low), 0x07060302u); }

typedef short I16x4 __attribute__((ext_vector_type(4)));
typedef __bf16 Bf16x8 __attribute__((ext_vector_type(8)));

// Adds the products of 16 columns, 8 of each half.
DEVICE F32x16 multiply_bf16(const Words<4> &left, const Words<4> &right, F32x16 sum) {
#ifdef __gfx950__
    return __builtin_amdgcn_mfma_f32_32x32x16_bf16(__builtin_bit_cast(Bf16x8, left), __builtin_bit_cast(Bf16x8, right), sum,
                                                   0, 0, 0);
#else
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
        Words<2> a = {left.of[2 * i], left.of[2 * i + 1]}, b = {right.of[2 * i], right.of[2 * i + 1]};
        sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(__builtin_bit_cast(I16x4, a), __builtin_bit_cast(I16x4, b), sum, 0, 0, 0);
    }
    return sum;
#endif
}

// Entries by tiles of 32, those of the window first, so that a tile is of one cache.
struct Tiles {
    u32 window, all;

    DEVICE static Tiles of(const Sparse &d) {
        u32 window = ((u32)d.window_count + SIDE - 1) / SIDE;
        return {window, window + ((u32)d.selected_count + SIDE - 1) / SIDE};
    }
};

// An entry of a tile; none where it is not listed or its address is outside.
DEVICE const u8 *listed(const Sparse &d, const Tiles &tiles, u64 token, u32 tile, u32 at) {
    if (tile < tiles.window) {
        u32 i = tile * SIDE + at;
        if (i >= d.window_count) return nullptr;
        return entry_at(d.window_entry, d.window, row_of<const i32>(d.window_at, token)[i]);
    }
    u32 i = (tile - tiles.window) * SIDE + at;
    if (tile >= tiles.all || i >= d.selected_count) return nullptr;
    return entry_at(d.selected_entry, d.selected, row_of<const i32>(d.selected_at, token)[i]);
}

// Codes of 16 dims and of their scale.
struct Piece {
    Words<4> codes;
    u32 scale;
};

// FP4, or else FP8.
template <bool PACKED> DEVICE Piece load_piece(const u8 *from, u32 dim, u32 dims) {
    Piece x = {};
    if (!from) return x;
    if constexpr (PACKED) {
        Words<2> codes = load_bytes_of<2>(from + dim / 2);
        x.codes.of[0] = codes.of[0], x.codes.of[1] = codes.of[1];
        x.scale = from[dims / 2 + dim / 16];
    } else {
        x.codes = load_bytes_of<4>(from + dim);
        x.scale = from[dims + dim / SCALED_COLUMNS];
    }
    return x;
}

// Of an entry's codes, in the dialect of the units, and the code of their scale.
template <bool PACKED> struct Scale {
    float factor;
    i32 exponent;

    DEVICE explicit Scale(u32 code) : factor(1), exponent(0) {
        if constexpr (PACKED) {
            factor = __builtin_amdgcn_cvt_f32_fp8((int)code, 0);
#ifndef __gfx950__
            // Half its value; minus zero there is NaN, and what is NaN a number.
            factor = (code & 0x7F) == 0 ? 0.0f : 2 * factor;
            factor = (code & 0x7F) == 0x7F ? float_of(NAN_BITS) : factor;
#endif
        } else {
#ifdef __gfx950__
            factor = float_of(code == 0 ? 0x400000u : code == 0xFF ? NAN_BITS : code << 23);
#else
            // Twice for the codes' halves: no number of f32 is twice the largest scale.
            factor = code == 0xFF ? float_of(NAN_BITS) : 1.0f, exponent = (i32)code - 126;
#endif
        }
    }

    DEVICE F32x4 times(u32 codes) const {
        F32x4 x = numbers_of(codes);
        F32x2 factors = {factor, factor}, low = F32x2{x[0], x[1]} * factors, high = F32x2{x[2], x[3]} * factors;
        x = {low[0], low[1], high[0], high[1]};
#ifndef __gfx950__
        if constexpr (!PACKED) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                float half = x[i];
                x[i] = __builtin_amdgcn_ldexpf(half, exponent);
            }
        }
#endif
        return x;
    }
};

template <bool PACKED> DEVICE Words<8> bf16_of_piece(const Piece &x) {
    Scale<PACKED> scale(x.scale);
    Words<4> codes;
    if constexpr (PACKED) codes = fnuz_of_e2m1(Words<2>{x.codes.of[0], x.codes.of[1]}, VALUES);
    else codes = known_codes(x.codes);
    Words<8> made;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        F32x4 values = scale.times(codes.of[i]);
        made.of[2 * i] = bf16_pair(values[0], values[1]), made.of[2 * i + 1] = bf16_pair(values[2], values[3]);
    }
    return made;
}

// What waves tell each other.
template <u32 TILES> struct alignas(16) Memory {
    static constexpr u32 ENTRIES = TILES * WAVES * SIDE;
    // Weights of a head, and so much that heads do not share banks.
    static constexpr u32 ROW = ENTRIES + 8;
    u16 weights[SIDE * ROW];
    const u8 *entries[ENTRIES];
    float largest[WAVES][SIDE], masses[WAVES][SIDE], factors[SIDE];
    u32 any[WAVES];
};

// Where four weights of a head lie: neighbouring halves of 16 bytes change places for every other eight heads, whose banks
// are the same.
template <u32 TILES> DEVICE u32 place_of_weights(u32 head, u32 entry) {
    return head * Memory<TILES>::ROW + (entry ^ (head & 8) / 2);
}

DEVICE float weight_of(float score, float largest) { return exp2f((score - largest) * LOG2_E); }

// Adds the products of 32 dims of 32 entries by those of the heads.
template <bool PACKED>
DEVICE F32x16 add_dots(const u8 *entry, u32 dim, u32 dims, const Words<4> &low, const Words<4> &high, F32x16 dots) {
    Words<8> keys = bf16_of_piece<PACKED>(load_piece<PACKED>(entry, dim, dims));
    dots = multiply_bf16({keys.of[0], keys.of[1], keys.of[2], keys.of[3]}, low, dots);
    return multiply_bf16({keys.of[4], keys.of[5], keys.of[6], keys.of[7]}, high, dots);
}

// Dots of the wave's tiles by the block's heads: registers are entries, lanes heads.
template <u32 TILES>
DEVICE void score_tiles(const u16 *q, const u8 *const (&entries)[TILES], u32 wave, F32x16 (&dots)[TILES]) {
    Sparse d = arguments<Sparse>();
    Tiles tiles = Tiles::of(d);
    u32 dims = (u32)d.head_dim;
    bool is_packed_window = is_packed(d.window_entry.rule), is_packed_selected = is_packed(d.selected_entry.rule);
    for (u32 first = 0; first < dims; first += SCALED_COLUMNS) {
        u32 dim = first + 16 * half_of_wave();
        const u8 *from = (const u8 *)(q + dim);
        Words<4> low = load_bytes_of<4>(from), high = load_bytes_of<4>(from + 16);
#pragma unroll
        for (u32 t = 0; t < TILES; t++) {
            u32 tile = t * WAVES + wave;
            if (tile >= tiles.all) break;
            if (tile < tiles.window ? is_packed_window : is_packed_selected) {
                dots[t] = add_dots<true>(entries[t], dim, dims, low, high, dots[t]);
            } else {
                dots[t] = add_dots<false>(entries[t], dim, dims, low, high, dots[t]);
            }
        }
    }
}

// Four dims of an entry, as f32; those behind the last are zero.
template <bool PACKED> DEVICE F32x4 load_value(const u8 *entry, u32 dim, u32 dims) {
    // A pointer from LDS might be one to LDS for all that the compiler knows.
    auto from = (const __attribute__((address_space(1))) u8 *)entry;
    u32 codes = 0, scale = 0;
    if (entry && dim < dims) {
        if constexpr (PACKED) {
            codes = *(const __attribute__((address_space(1))) u16 *)(from + dim / 2), scale = from[dims / 2 + dim / 16];
        } else {
            codes = *(const __attribute__((address_space(1))) Unaligned *)(from + dim), scale = from[dims + dim / SCALED_COLUMNS];
        }
    }
    if constexpr (PACKED) codes = fnuz_of_e2m1(Words<1>{codes}, VALUES).of[0];
    else codes = known_codes({codes}).of[0];
    return Scale<PACKED>(scale).times(codes);
}

// Adds the weighted values of 128 dims from `dim` on of 16 entries: registers are heads, lanes dims.
template <bool PACKED, u32 TILES>
DEVICE void weigh_values(const Memory<TILES> &memory, u32 first, u32 past, u32 dim, u32 dims,
                         F32x16 (&sums)[RESULTS_OF_SLICE]) {
    u32 head = amd::lane() % SIDE;
    bool is_swapped = (head & 8) != 0;
#pragma unroll 1
    for (; first < past; first += WEIGHED) {
        u32 entry = first + WEIGHED_LANE * half_of_wave();
        Words<4> held = *(const Words<4> *)&memory.weights[head * Memory<TILES>::ROW + entry], weights;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 here = held.of[i], there = held.of[i ^ 2];
            weights.of[i] = is_swapped ? there : here;
        }
        Words<4> values[RESULTS_OF_SLICE];
#pragma unroll
        for (u32 i = 0; i < WEIGHED_LANE; i += 2) {
            F32x4 low = load_value<PACKED>(memory.entries[entry + i], dim, dims);
            F32x4 high = load_value<PACKED>(memory.entries[entry + i + 1], dim, dims);
#pragma unroll
            for (u32 j = 0; j < RESULTS_OF_SLICE; j++) values[j].of[i / 2] = bf16_pair(low[j], high[j]);
        }
#pragma unroll
        for (u32 j = 0; j < RESULTS_OF_SLICE; j++) sums[j] = multiply_bf16(weights, values[j], sums[j]);
    }
}

// The same of all entries.
template <u32 TILES>
DEVICE void weigh_all(const Memory<TILES> &memory, u32 dim, F32x16 (&sums)[RESULTS_OF_SLICE]) {
    Sparse d = arguments<Sparse>();
    Tiles tiles = Tiles::of(d);
#pragma unroll 1
    for (u32 part = 0; part < 2; part++) {
        u32 first = part ? tiles.window * SIDE : 0, past = (part ? tiles.all : tiles.window) * SIDE;
        u32 dims = (u32)d.head_dim;
        if (is_packed(part ? d.selected_entry.rule : d.window_entry.rule)) {
            weigh_values<true>(memory, first, past, dim, dims, sums);
        } else {
            weigh_values<false>(memory, first, past, dim, dims, sums);
        }
    }
}

// Rounded, without a branch.
DEVICE u32 bf16_code(float x) {
    u32 bits = bits_of(x), rounded = (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
    return x == x ? rounded : NAN_BITS >> 16;
}

// Everything of 32 heads from `head` on of a row of data.
template <u32 TILES> DEVICE void attend(Memory<TILES> &memory, u64 token, u32 first_head) {
    Sparse d = arguments<Sparse>();
    Tiles tiles = Tiles::of(d);
    u32 lane = amd::lane() % SIDE, half = half_of_wave(), heads = (u32)d.heads;
    u32 wave = (u32)__builtin_amdgcn_readfirstlane((int)(threadIdx.x / 64));
    u32 own = first_head + lane, head = own < heads ? own : heads - 1;
    const u8 *entries[TILES];
    // Whether the entries of the lane's results are there.
    u32 there[TILES], any = 0;
#pragma unroll
    for (u32 t = 0; t < TILES; t++) {
        u32 tile = t * WAVES + wave;
        entries[t] = listed(d, tiles, token, tile, lane);
        u32 all = (u32)__builtin_amdgcn_ballot_w64(entries[t] != nullptr);
        any |= all, there[t] = all >> (4 * half);
        // A register of each lane: scalar ones are few.
        asm volatile("" : "+v"(there[t]));
        if (half == 0) memory.entries[tile * SIDE + lane] = entries[t];
    }
    F32x16 scores[TILES] = {};
    score_tiles<TILES>(row_of<const u16>(d.q, token * heads + head), entries, wave, scores);
    d = arguments<Sparse>();
    float scale = d.scale, largest = float_of(NONE);
#pragma unroll
    for (u32 t = 0; t < TILES; t++) {
#pragma unroll
        for (u32 r = 0; r < RESULTS; r++) {
            float score = (float)((double)scores[t][r] * (double)scale);
            scores[t][r] = score;
            bool is_there = there[t] >> (r / 4 * 8 + r % 4) & 1;
            largest = is_there && score > largest ? score : largest;
        }
    }
    float others = amd::value_of_lane(largest, amd::lane() ^ SIDE);
    memory.largest[wave][lane] = others > largest ? others : largest;
    if (amd::lane() == 0) memory.any[wave] = any;
    __syncthreads();
#pragma unroll
    for (u32 w = 0; w < WAVES; w++) largest = memory.largest[w][lane] > largest ? memory.largest[w][lane] : largest;
    any = memory.any[0] | memory.any[1] | memory.any[2] | memory.any[3];
    float mass = 0;
#pragma unroll
    for (u32 t = 0; t < TILES; t++) {
#pragma unroll
        for (u32 r = 0; r < RESULTS; r += 4) {
            u32 codes[4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                bool is_there = there[t] >> (r / 4 * 8 + i) & 1;
                float weight = is_there ? weight_of(scores[t][r + i], largest) : 0.0f;
                mass += weight, codes[i] = bf16_code(weight);
            }
            u32 entry = (t * WAVES + wave) * SIDE + r / 4 * 8 + 4 * half;
            *(Words<2> *)&memory.weights[place_of_weights<TILES>(lane, entry)] = {codes[1] << 16 | codes[0],
                                                                                codes[3] << 16 | codes[2]};
        }
    }
    mass += amd::value_of_lane(mass, amd::lane() ^ SIDE);
    memory.masses[wave][lane] = mass;
    __syncthreads();
    mass = memory.masses[0][lane] + memory.masses[1][lane] + memory.masses[2][lane] + memory.masses[3][lane];
    d = arguments<Sparse>(), heads = (u32)d.heads;
    float logit = d.sink.codes ? row_of<const float>(d.sink, 0)[head] : float_of(NONE);
    if (d.sink.codes) mass += weight_of(logit, largest);
    if (wave == 0 && half == 0) memory.factors[lane] = 1 / mass;
    if (wave == 0 && half == 0 && d.lse.codes && own < heads) {
        double sum = (double)largest + log((double)mass);
        row_of<float>(d.lse, token)[own] = f32_result(any ? sum : (double)logit);
    }
    __syncthreads();
    u32 slice = wave * SLICE, dim = slice + 4 * lane;
    F32x16 sums[RESULTS_OF_SLICE] = {};
    if (slice < d.head_dim && any) weigh_all<TILES>(memory, dim, sums);
    d = arguments<Sparse>(), heads = (u32)d.heads;
#pragma unroll
    for (u32 r = 0; r < RESULTS; r++) {
        u32 of = r / 4 * 8 + 4 * half + r % 4;
        if (first_head + of >= heads || dim >= d.head_dim) continue;
        u32 codes[4];
#pragma unroll
        for (u32 j = 0; j < RESULTS_OF_SLICE; j++) {
            float sum = sums[j][r];
            codes[j] = any ? bf16_code(sum * memory.factors[of]) : 0;
        }
        u16 *to = row_of<u16>(d.y, token * heads + first_head + of) + dim;
        Words<2> words = {codes[1] << 16 | codes[0], codes[3] << 16 | codes[2]};
        __builtin_memcpy(to, &words, sizeof words);
    }
    __syncthreads();
}

template <u32 TILES> DEVICE void attend_all() {
    __shared__ Memory<TILES> memory;
    for (u32 item = blockIdx.x;; item += gridDim.x) {
        Sparse d = arguments<Sparse>();
        u32 groups = ((u32)d.heads + SIDE - 1) / SIDE;
        if (item >= (u32)d.tokens * groups) return;
        attend<TILES>(memory, item / groups, item % groups * SIDE);
    }
}

#define SPARSE                                                                                                        \
    (View, View, View, View, View, View, View, View, const __grid_constant__ Entry, const __grid_constant__ Entry,    \
     u64, u64, u64, u64, float, u64)
KERNEL(attn_sparse__matrix_128, THREADS) SPARSE { attend_all<1>(); }
KERNEL(attn_sparse__matrix_640, THREADS) SPARSE { attend_all<5>(); }
