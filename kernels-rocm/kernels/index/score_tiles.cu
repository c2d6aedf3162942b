// index.scores on the matrix units: MXFP4 keys of up to 128 columns against up to 32 heads. A wave has the queries of some
// rows of one sequence in registers and goes over tiles of 32 keys, which come straight from the cache, a tile ahead. A lane
// of the result is a key, its registers are heads: ReLU and the sum over heads need no other lane but one of the other half.
//
// Half h of the wave has blocks 2 h and 2 h + 1 of a head or key. gfx950 takes codes and scales as they are. For gfx942 a
// vector's blocks are brought to one scale, exactly, by the table that makes FP8 of their codes; the vector's own scale goes
// into the head's weight and to the end. Vectors whose scales are too far apart for that, or so large or small that sums of
// f32 might not hold what comes of them, are scored a second time as the page says, a lane a key. Which ones goes by the row
// and the key alone.
//
// loop gfx942: v_mfma_f32_32x32x16_fp8_fp8
// loop gfx950: v_mfma_scale_f32_32x32x64_f8f6f4
// never gfx950: v_cvt_
#include "arguments.h"
#include "dot.cuh"
#include "entry.cuh"
#include "fp4_codes.h"
#include "matrix.h"

constexpr u32 THREADS = 256, WAVES = THREADS / 64;
constexpr u32 KEYS = SIDE, BLOCKS = 4;
// Scales that are near: in reach of 1, and of each other. Then weights are, too: nothing leaves the range of f32.
constexpr u32 NEAR_LEAST = 127 - 32, NEAR_MOST = 127 + 32, NEAR_APART = 11;
constexpr u32 NEAR_WEIGHT_LEAST = (127 - 40) << 23, NEAR_WEIGHT_MOST = (127 + 40) << 23;
constexpr u32 NONE = 0xFF800000u;

// The arguments of a launch, one behind the other.
struct Scored {
    View q, weight, keys, sequence, pages, visible, y;
    Entry entry;
    u64 sequences, table_pages, heads, head_dim;
    float scale;
    u64 entries, tokens, parts;

    DEVICE u32 blocks() const { return (u32)head_dim / (u32)SCALED_COLUMNS; }
};

DEVICE Words<4> load_16(const u8 *from) {
    Words<4> words;
    __builtin_memcpy(&words, from, sizeof words);
    return words;
}

// The block behind the last one is the last one.
DEVICE u32 held_block(const Scored &d, u32 block) { return block < d.blocks() ? block : d.blocks() - 1; }

// A head or a key, as it is: this half's codes and all scales.
struct Vector {
    Words<4> codes[2];
    u32 scales;
};

DEVICE Vector load_vector(const Scored &d, const u8 *codes, const u8 *scales) {
    Vector x;
#pragma unroll
    for (u32 i = 0; i < 2; i++) x.codes[i] = load_16(codes + 16 * held_block(d, 2 * half_of_wave() + i));
    if (d.blocks() == BLOCKS) {
        __builtin_memcpy(&x.scales, scales, 4);
    } else {
        x.scales = 0;
#pragma unroll
        for (u32 i = 0; i < BLOCKS; i++) x.scales |= (u32)scales[held_block(d, i)] << 8 * i;
    }
    return x;
}

DEVICE u32 scale_of(u32 scales, u32 block) { return scales >> 8 * block & 0xFF; }
DEVICE u32 largest_of(u32 scales) {
    u32 largest = 0;
#pragma unroll
    for (u32 i = 0; i < BLOCKS; i++) largest = scale_of(scales, i) > largest ? scale_of(scales, i) : largest;
    return largest;
}
DEVICE bool are_near(u32 scales, u32 largest) {
    u32 least = 255;
#pragma unroll
    for (u32 i = 0; i < BLOCKS; i++) least = scale_of(scales, i) < least ? scale_of(scales, i) : least;
    return least >= NEAR_LEAST && largest <= NEAR_MOST && largest - least <= NEAR_APART;
}

#ifndef __gfx950__
// What the largest scale of a vector is in its codes.
constexpr i32 LARGEST_POWER = 5;
#endif

// As the units take it.
struct Side {
#ifdef __gfx950__
    Words<4> codes[2];
    u32 scales;
#else
    Words<8> codes[2];
#endif
};

DEVICE Side side_of(const Vector &x, u32 largest) {
    u32 own = x.scales >> 16 * half_of_wave();
#ifdef __gfx950__
    return {{x.codes[0], x.codes[1]}, own};
#else
    Side side;
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
        i32 power = (i32)scale_of(own, i) - (i32)largest + LARGEST_POWER;
        side.codes[i] = fnuz_of_e2m1(x.codes[i], fp4_times(power));
    }
    return side;
#endif
}

// What a side's codes are to be multiplied with yet.
DEVICE float rest_of([[maybe_unused]] u32 largest) {
#ifdef __gfx950__
    return 1;
#else
    return float_of((largest - LARGEST_POWER) << 23);
#endif
}

DEVICE F32x16 dots_of(const Side &heads, const Side &keys) {
    F32x16 sum = {};
#ifdef __gfx950__
    auto operand = [](const Words<4> &codes) {
        I32x8 words = {};
        for (u32 i = 0; i < 4; i++) words[i] = (int)codes.of[i];
        return words;
    };
    // Both are FP4; the scale is that of byte 0 and then 1.
    I32x8 left = operand(heads.codes[0]), right = operand(keys.codes[0]);
    sum = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(left, right, sum, 4, 4, 0, (int)heads.scales, 0, (int)keys.scales);
    left = operand(heads.codes[1]), right = operand(keys.codes[1]);
    sum = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(left, right, sum, 4, 4, 1, (int)heads.scales, 1, (int)keys.scales);
#else
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
#pragma unroll
        for (u32 j = 0; j < 8; j += 2) {
            long left = (long)((u64)heads.codes[i].of[j + 1] << 32 | heads.codes[i].of[j]);
            long right = (long)((u64)keys.codes[i].of[j + 1] << 32 | keys.codes[i].of[j]);
            sum = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(left, right, sum, 0, 0, 0);
        }
    }
#endif
    return sum;
}

// A row of data.
struct Query {
    Side side;
    // Of the heads that the lane's results are of.
    F32x2 weights[RESULTS / 2];
    u32 visible;
    bool is_far;
};

DEVICE u32 visible_to(const Scored &d, u64 token) {
    i32 counted = row_of<const i32>(d.visible, 0)[token];
    return counted < 0 ? 0 : (u32)counted < (u32)d.entries ? (u32)counted : (u32)d.entries;
}

DEVICE Query load_query(const Scored &d, u64 token) {
    u32 lane = amd::lane() % SIDE, heads = (u32)d.heads, head = lane < heads ? lane : heads - 1;
    const u8 *codes = d.q.codes + token * d.q.stride / 2 + (u64)head * d.blocks() * (SCALED_COLUMNS / 2);
    Vector x = load_vector(d, codes, d.q.scales + (token * d.heads + head) * d.blocks());
    u32 largest = largest_of(x.scales);
    double scaled = (double)bf16_to_f32(row_of<const u16>(d.weight, token)[head]) * (double)d.scale;
    float weight = bf16_to_f32(bf16_result(scaled));
    u32 size = magnitude_of(weight);
    bool is_near = size == 0 || (size >= NEAR_WEIGHT_LEAST && size < NEAR_WEIGHT_MOST);
    Query query;
    query.is_far = __builtin_amdgcn_ballot_w64(!is_near || !are_near(x.scales, largest)) != 0;
    query.visible = visible_to(d, token);
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
        if (2 * half_of_wave() + i >= d.blocks()) x.codes[i] = {};
    }
    query.side = side_of(x, largest);
    float own = lane < d.heads ? weight * rest_of(largest) : 0.0f;
#pragma unroll
    for (u32 r = 0; r < RESULTS; r++) {
        query.weights[r / 2][r % 2] = amd::value_of_lane(own, r / 4 * 8 + 4 * half_of_wave() + r % 4);
    }
    return query;
}

// The score of the lane's key, but for what the key's codes are to be multiplied with. No dot is NaN.
DEVICE float score_of(const Query &query, const Side &key) {
    F32x16 dots = dots_of(query.side, key);
    F32x2 sum = {};
#pragma unroll
    for (u32 r = 0; r < RESULTS; r += 2) {
        // As whole numbers, positive ones order alike, and the others are below zero.
        float low = dots[r], high = dots[r + 1];
        i32 low_bits = (i32)bits_of(low), high_bits = (i32)bits_of(high);
        F32x2 kept = {float_of((u32)(low_bits > 0 ? low_bits : 0)), float_of((u32)(high_bits > 0 ? high_bits : 0))};
        sum = __builtin_elementwise_fma(kept, query.weights[r / 2], sum);
    }
    float own = sum[0] + sum[1];
    return own + amd::value_of_lane(own, amd::lane() ^ SIDE);
}

// Where an entry of the sequence lies: steps of a block's tiles need no division.
struct Place {
    u32 entry, page, slot;

    DEVICE static Place of(const Scored &d, u32 entry) {
        u32 size = d.entry.page_entries;
        return {entry, entry / size, entry % size};
    }
    DEVICE void advance(const Scored &d, const Place &by) {
        entry += by.entry, page += by.page, slot += by.slot;
        if (slot >= d.entry.page_entries) slot -= d.entry.page_entries, page++;
    }
};

// Its bytes; none for one that nobody sees or that is not there. `pages` are the sequence's, or none.
DEVICE const u8 *key_at(const Scored &d, const i32 *pages, const Place &at, u32 longest) {
    if (at.entry >= longest || at.page >= d.table_pages || !pages) return nullptr;
    i32 page = pages[at.page];
    if (page < 0) return nullptr;
    u64 address = (u64)(u32)page * d.entry.page_entries + at.slot;
    if (address > 0x7FFFFFFFu || address >= d.entry.entries) return nullptr;
    return d.keys.codes + ((u64)(u32)page * d.keys.stride + at.slot) * d.entry.bytes;
}

struct Key {
    Vector of;
    bool is_there;

    DEVICE static Key load(const Scored &d, const u8 *from) {
        if (!from) return {};
        return {load_vector(d, from, from + d.blocks() * (SCALED_COLUMNS / 2)), true};
    }
};

// The score as the page says, by both halves of the wave: every other head in f64.
DEVICE float plain_score(const Scored &d, u64 token, const u8 *key) {
    u64 columns = d.blocks() * SCALED_COLUMNS;
    Mxfp4 queries = {d.q, d.heads * (u64)d.blocks()};
    double sum = 0;
#pragma unroll 1
    for (u32 head = half_of_wave(); head < d.heads; head += 2) {
        double dot = 0;
#pragma unroll 1
        for (u64 at = 0; at < columns; at += CHUNK) {
            dot = add_products(chunk(queries, token, head * columns + at, 0), entry_chunk(d.entry, key, (u32)at), dot);
        }
        float kept = (float)dot < 0 ? 0.0f : (float)dot;
        double scaled = (double)bf16_to_f32(row_of<const u16>(d.weight, token)[head]) * (double)d.scale;
        sum += (double)bf16_to_f32(bf16_result(scaled)) * (double)kept;
    }
    return f32_result(sum + amd::value_of_lane(sum, amd::lane() ^ SIDE));
}

// The tiles of a wave: its share of what a block has, and the sequence's pages.
struct Share {
    u64 token;
    u32 count, begin, end, longest;
    const i32 *pages;
};

// Scores of near vectors; whether there are others.
template <u32 ROWS> DEVICE bool score_near(const Scored &d, const Share &own, const Query (&rows)[ROWS]) {
    u32 lane = amd::lane() % SIDE;
    Place at = Place::of(d, own.begin * KEYS + lane), step = Place::of(d, WAVES * KEYS);
    bool is_lower = half_of_wave() == 0, any_far = false;
    Key next = Key::load(d, key_at(d, own.pages, at, own.longest));
    for (u32 tile = own.begin; tile < own.end; tile += WAVES) {
        Key key = next;
        u32 entry = at.entry;
        at.advance(d, step);
        next = Key::load(d, key_at(d, own.pages, at, tile + WAVES < own.end ? own.longest : 0));
        u32 largest = largest_of(key.of.scales);
        bool is_far = !are_near(key.of.scales, largest);
        Side side = side_of(key.of, largest);
        float factor = rest_of(largest);
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) {
            if (r >= own.count) break;
            float score = score_of(rows[r], side) * factor;
            bool is_seen = key.is_there && entry < rows[r].visible, is_later = is_seen && (is_far || rows[r].is_far);
            any_far = any_far || is_later;
            if (!is_lower || entry >= d.entries || is_later) continue;
            row_of<float>(d.y, own.token + r)[entry] = is_seen ? score : float_of(NONE);
        }
    }
    return __builtin_amdgcn_ballot_w64(any_far) != 0;
}

// Scores of all others.
template <u32 ROWS> DEVICE void score_far(const Scored &d, const Share &own, const Query (&rows)[ROWS]) {
    Place at = Place::of(d, own.begin * KEYS + amd::lane() % SIDE), step = Place::of(d, WAVES * KEYS);
    for (u32 tile = own.begin; tile < own.end; tile += WAVES, at.advance(d, step)) {
        const u8 *key = key_at(d, own.pages, at, own.longest);
        if (!key) continue;
        u32 scales = load_vector(d, key, key + d.blocks() * (SCALED_COLUMNS / 2)).scales;
        bool is_far = !are_near(scales, largest_of(scales));
#pragma unroll 1
        for (u32 r = 0; r < own.count; r++) {
            bool is_later = is_far, is_seen = true;
#pragma unroll
            for (u32 i = 0; i < ROWS; i++) {
                if (i == r) is_later = is_later || rows[i].is_far, is_seen = at.entry < rows[i].visible;
            }
            if (!is_later || !is_seen) continue;
            float score = plain_score(d, own.token + r, key);
            if (half_of_wave() == 0) row_of<float>(d.y, own.token + r)[at.entry] = score;
        }
    }
}

// A part of the scores of some rows of data, all of a sequence.
template <u32 ROWS> DEVICE void score_rows(u64 token, u32 count, u32 part, u32 parts) {
    Scored d = arguments<Scored>();
    Query rows[ROWS];
    u32 longest = 0;
#pragma unroll
    for (u32 r = 0; r < ROWS; r++) {
        rows[r] = load_query(d, token + (r < count ? r : count - 1));
        longest = rows[r].visible > longest ? rows[r].visible : longest;
    }
    u32 tiles = (longest + KEYS - 1) / KEYS;
    u32 begin = (u32)((u64)tiles * part / parts), end = (u32)((u64)tiles * (part + 1) / parts);
    // Nobody sees what is behind all tiles.
    u32 entries = (u32)d.entries, behind = tiles * KEYS < entries ? tiles * KEYS : entries, rest = entries - behind;
    u32 from = behind + (u32)((u64)rest * part / parts), past = behind + (u32)((u64)rest * (part + 1) / parts);
    for (u32 r = 0; r < count; r++) {
        for (u32 i = from + threadIdx.x; i < past; i += THREADS) row_of<float>(d.y, token + r)[i] = float_of(NONE);
    }
    i64 sequence = row_of<const i32>(d.sequence, 0)[token];
    bool is_known = sequence >= 0 && (u64)sequence < d.sequences;
    const i32 *pages = is_known ? row_of<const i32>(d.pages, (u64)sequence) : nullptr;
    u32 wave = (u32)__builtin_amdgcn_readfirstlane((int)(threadIdx.x / 64));
    Share own = {token, count, begin + wave, end, longest, pages};
    if (score_near(arguments<Scored>(), own, rows)) score_far(arguments<Scored>(), own, rows);
}

// Rows of data by ROWS, in parts; those of a sequence together.
template <u32 ROWS> DEVICE void score(const Scored &d) {
    u64 tokens = d.tokens, parts = d.parts, groups = (tokens + ROWS - 1) / ROWS;
    const i32 *sequence = row_of<const i32>(d.sequence, 0);
    for (u64 item = blockIdx.x; item < groups * parts; item += gridDim.x) {
        u64 token = item / parts * ROWS, past = token + ROWS < tokens ? token + ROWS : tokens;
        while (token < past) {
            u32 count = 1;
            while (token + count < past && sequence[token + count] == sequence[token]) count++;
            score_rows<ROWS>(token, count, (u32)(item % parts), (u32)parts);
            token += count;
        }
    }
}

#define SCORES                                                                                                        \
    (View, View, View, View, View, View, View, const __grid_constant__ Entry, u64, u64, u64, u64, float, u64, u64, u64)
KERNEL(index_scores__matrix_1, THREADS) SCORES { score<1>(arguments<Scored>()); }
KERNEL(index_scores__matrix_4, THREADS) SCORES { score<4>(arguments<Scored>()); }
