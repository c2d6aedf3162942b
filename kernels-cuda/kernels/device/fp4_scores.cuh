// Index scores of MXFP4 keys by the matrix units of Hopper: 64 keys, the wide side, against the 32 heads of a row of
// queries. Dots are exact where the scales of a key's four blocks, and of each head's, are within a factor of eight: twice
// a code is a whole number, which takes the difference of the scales, and whole numbers are added without loss. Other
// keys and rows take the FP8 units block by block: a code moved right by two is E4M3 times 2^-6, queries take their
// scales within a factor of 2^14, and the sums of a block are too small for the units' 13 fraction bits to cut anything;
// blocks are added in f32. That gives the same bits where both do. Heads are added in f32, those of a lane in order and
// then four lanes. Scales that are no numbers or further apart, or far from one, are computed one product after the
// other. Which way a score is computed depends on its own key and row alone.
#pragma once
#include "chunk.cuh"
#include "hopper.cuh"
#include "lanes.cuh"

constexpr u32 TILE_KEYS = 64, KEY_BYTES = 68, SCORE_HEADS = 32, SCORE_COLUMNS = 128, BLOCKS_OF_HEAD = 4;
constexpr u32 TILE_BYTES = TILE_KEYS * KEY_BYTES, QUERY_BYTES = SCORE_HEADS * SCORE_COLUMNS;
// Twice the magnitudes of the codes.
constexpr u32 LOWER_WHOLE = 0x03020100u, UPPER_WHOLE = 0x0C080604u;
// Steps of two that scales differ by in whole numbers.
constexpr u32 WINDOW = 3;

// Scales of queries and factors of heads that are multiplied in f32: 2^-32 to 2^32.
constexpr u32 NEAR = 32;

// Whole numbers are taken as the floats of their bits, which are 2^-149 times them. Powers of two that keep them within
// f32: that of factors, and that of sums, which takes off the doubled codes and the windows of keys and queries too.
constexpr u32 FACTOR_POWER = 80, SUM_POWER = 149 - FACTOR_POWER - 2 - 2 * WINDOW;

// What scores a row: factors of its heads, entries it sees, whether whole numbers do not hold its queries, and whether
// it is computed plainly.
struct alignas(16) ScoredRow {
    float factor[SCORE_HEADS];
    u32 visible, wide, far;
};

// What is scored; as the operator has it.
struct Scored {
    View q, weight;
    u32 heads;
    float scale;
};

DEVICE float head_weight(const Scored &of, u64 token, u32 head) {
    return bf16_to_f32(bf16_result((double)bf16_to_f32(row_of<const u16>(of.weight, token)[head]) * (double)of.scale));
}

// Whether a power of two, times a weight, is near one; or the weight is none.
DEVICE bool is_near(float x) {
    u32 exponent = magnitude_of(x) >> 23;
    return x == 0 || (exponent >= 127 - NEAR && exponent <= 127 + NEAR);
}

// Four codes of a word as E4M3 times 2^-6: those in the lower halves of its bytes, and in the upper ones.
DEVICE u32 lower_codes(u32 x) { return (x << 4 & 0x80808080u) | (x << 2 & 0x1C1C1C1Cu); }
DEVICE u32 upper_codes(u32 x) { return (x & 0x80808080u) | (x >> 2 & 0x1C1C1C1Cu); }

// The codes of a word as whole numbers, those of its lower and its upper half.
struct Whole {
    u32 lower, upper;
};

// Those of the other sign are zeros.
DEVICE Whole positive_whole(u32 codes, u32 lower_table, u32 upper_table) {
    return {bytes_by_nibbles(lower_table, upper_table, codes), bytes_by_nibbles(lower_table, upper_table, codes >> 16)};
}
DEVICE Whole negative_whole(u32 codes, u32 lower_table, u32 upper_table) {
    return positive_whole(codes ^ 0x88888888u, lower_table, upper_table);
}
// No byte of either is above 127, so none borrows from the next.
DEVICE Whole difference(const Whole &x, const Whole &y) {
    return {(x.lower + 0x80808080u - y.lower) ^ 0x80808080u, (x.upper + 0x80808080u - y.upper) ^ 0x80808080u};
}

// Writes one block of a head of a row into the tiles of its queries, as products take them, and the head's factor: a tile
// of whole numbers, if `negated` one of their negatives, and one of E4M3. Four neighbouring lanes have the four blocks
// of a head.
DEVICE void prepare_block(const Scored &of, u64 token, u32 head, u32 block, u8 *wholes, u8 *negated, u8 *tile,
                          ScoredRow &to) {
    u32 codes[4] = {}, scale = 0;
    bool there = head < of.heads;
    u64 column = head * SCORE_COLUMNS + block * 32;
    if (there) {
        Words<4> words = load_words<4>(of.q.codes + (token * of.q.stride + column) / 2);
        scale = of.q.scales[token * (of.heads * BLOCKS_OF_HEAD) + head * BLOCKS_OF_HEAD + block];
#pragma unroll
        for (u32 i = 0; i < 4; i++) codes[i] = words.of[i];
    }
    bool zero = ((codes[0] | codes[1] | codes[2] | codes[3]) & 0x77777777u) == 0 && scale != 0xFF;
    u32 largest = zero ? 0 : scale;
#pragma unroll
    for (u32 mask = 1; mask <= 2; mask *= 2) {
        u32 other = __shfl_xor_sync(ALL_LANES, largest, mask);
        largest = other > largest ? other : largest;
    }
    if (largest == 0) largest = 127;
    // The largest block's 6 is 384 in E4M3; below 2^-8 codes would be lost.
    i32 power = zero ? 0 : (i32)scale - (i32)largest + 6;
    bool far = largest < 127 - NEAR || largest > 127 + NEAR || power < -8;
    float weight = there ? head_weight(of, token, head) : 0.0f, factor = far ? 0.0f : weight * float_of(largest << 23);
    far = far || !is_near(weight) || !is_near(factor);
    if (block == 0) to.factor[head] = factor * float_of((127 + FACTOR_POWER) << 23);
    if (far) atomicOr(&to.far, 1u);
    u32 shift = zero ? 0 : scale + WINDOW - largest;
    if (shift > WINDOW) atomicOr(&to.wide, 1u), shift = 0;
    u64 table = 0;
    float unit = float_of((u32)(127 + (power < -8 ? 0 : power)) << 23);
#pragma unroll
    for (u32 i = 0; i < 8; i++) table |= (u64)e4m3_from_f32(e2m1_to_f32((u8)i) * unit) << 8 * i;
    // Neighbouring columns of a lane are heads one after the other.
    u32 row = head % 8 / 2 * 8 + head / 8 * 2 + head % 2;
    auto place = [=](u32 sixteen, u32 word) { return row * SCORE_COLUMNS + (sixteen ^ row % 8) * 16 + word * 4; };
#pragma unroll
    for (u32 t = 0; t < 4; t++) {
        Whole x = positive_whole(codes[t], LOWER_WHOLE << shift, UPPER_WHOLE << shift);
        Whole y = negative_whole(codes[t], LOWER_WHOLE << shift, UPPER_WHOLE << shift), own = difference(x, y);
        *(u32 *)(wholes + place(t * 2, block)) = own.lower, *(u32 *)(wholes + place(t * 2 + 1, block)) = own.upper;
        if (negated) {
            own = difference(y, x);
            *(u32 *)(negated + place(t * 2, block)) = own.lower, *(u32 *)(negated + place(t * 2 + 1, block)) = own.upper;
        }
#pragma unroll
        for (u32 upper = 0; upper < 2; upper++) {
            u32 word = 0;
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 code = codes[t] >> (8 * i + 4 * upper);
                word |= (((u32)(table >> 8 * (code & 7)) & 0x7Fu) | (code & 8u) << 4) << 8 * i;
            }
            *(u32 *)(tile + place(block * 2 + upper, t)) = word;
        }
    }
}

// What a lane has of a warp's 16 keys of a tile: parts of rows `lane / 4` and that plus 8.
struct KeyWords {
    u32 word[2][BLOCKS_OF_HEAD], scales[2];

    // Of keys one behind the other in shared memory, of the lane's block all: `first` is the lane's first key, `block` its
    // block of that.
    DEVICE void load(const u32 *first, const u32 *block) {
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
#pragma unroll
            for (u32 b = 0; b < BLOCKS_OF_HEAD; b++) word[h][b] = block[h * (8 * KEY_BYTES / 4) + b];
            scales[h] = first[h * (8 * KEY_BYTES / 4) + 16];
        }
    }

    // `key(row)` is where a key of the tile lies, at a multiple of four if `aligned`; zeros if there is none. Of each block
    // one word, or of the lane's block all.
    template <bool ONE_BLOCK, typename Key> DEVICE void load(const Key &key, bool aligned) {
        u32 lane = threadIdx.x % 32, first = threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            const u8 *from = key(first + 8 * h);
            auto word_at = [=](u32 i) { return aligned ? ((const u32 *)from)[i] : load_bytes<u32>(from + 4 * i); };
#pragma unroll
            for (u32 b = 0; b < BLOCKS_OF_HEAD; b++) {
                word[h][b] = from ? word_at(ONE_BLOCK ? lane % 4 * 4 + b : b * 4 + lane % 4) : 0;
            }
            scales[h] = from ? word_at(16) : 0x7F7F7F7Fu;
        }
    }
};

// Whether scales are not all within 2^-63 to 2^64, where the two upper bits of each differ.
DEVICE bool are_far(u32 scales) { return ((scales ^ scales << 1) & 0x80808080u) != 0x80808080u; }

// The largest of four scales.
DEVICE u32 largest_scale(u32 scales) {
    u32 largest = 0;
#pragma unroll
    for (u32 b = 0; b < BLOCKS_OF_HEAD; b++) {
        u32 own = scales >> 8 * b & 0xFFu;
        largest = own > largest ? own : largest;
    }
    return largest;
}
// Steps of two from the largest scale down to each of four, in bytes.
DEVICE u32 scale_steps(u32 scales, u32 largest) { return largest * 0x01010101u - scales; }
// Whether whole numbers do not hold a key of these scales, or it is far.
DEVICE bool are_special(u32 steps, u32 largest) {
    return (steps & ~(WINDOW * 0x01010101u)) != 0 || largest - (64 + WINDOW) > 191 - (64 + WINDOW);
}

// Sums over four lanes of what each has for two keys and two rows: lane l gets that of key `l % 2` and row `l / 2`.
DEVICE float lanes_sum_of(const float (&sum)[2][2]) {
    bool second_key = threadIdx.x % 2, second_row = threadIdx.x % 4 / 2;
    float row[2];
#pragma unroll
    for (u32 r = 0; r < 2; r++) {
        float given = second_key ? sum[r][0] : sum[r][1];
        row[r] = (second_key ? sum[r][1] : sum[r][0]) + __shfl_xor_sync(ALL_LANES, given, 1);
    }
    float given = second_row ? row[0] : row[1];
    return (second_row ? row[1] : row[0]) + __shfl_xor_sync(ALL_LANES, given, 2);
}

// From scores of two keys of which four lanes have parts: lanes 0 and 2 get that of row `lane / 4`, 1 and 3 of that plus 8.
DEVICE float lanes_score(float first, float second) {
    bool odd = threadIdx.x % 2;
    float own = odd ? second : first;
    own += __shfl_xor_sync(ALL_LANES, odd ? first : second, 1);
    return own + __shfl_xor_sync(ALL_LANES, own, 2);
}

// The score of a warpgroup's keys for one row, a block at a time.
DEVICE float block_scores(const KeyWords &words, u64 queries, const ScoredRow &row) {
    float dot[SCORE_HEADS / 2];
#pragma unroll
    for (u32 b = 0; b < BLOCKS_OF_HEAD; b++) {
        float part[SCORE_HEADS / 2], scale[2];
        u32 a[4];
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            u32 word = words.word[h][b], scales = words.scales[h];
            a[h] = lower_codes(word), a[2 + h] = upper_codes(word);
            scale[h] = float_of((b < 3 ? scales << (23 - 8 * b) : scales >> 1) & 0x7F800000u);
        }
        mma_hold(a);
        mma_fence();
        mma_e4m3(part, a, queries + 2 * b);
        mma_commit();
        mma_wait<0>();
        mma_hold(part);
#pragma unroll
        for (u32 i = 0; i < SCORE_HEADS / 2; i++) {
            dot[i] = b == 0 ? scale[i / 2 % 2] * part[i] : fmaf(scale[i / 2 % 2], part[i], dot[i]);
        }
    }
    const float *factors = row.factor + threadIdx.x % 4 * 8;
    float sum[2] = {};
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        float factor = factors[i] * float_of((127 - FACTOR_POWER) << 23);
#pragma unroll
        for (u32 h = 0; h < 2; h++) sum[h] = fmaf(factor, larger(dot[i / 2 * 4 + h * 2 + i % 2], 0.0f), sum[h]);
    }
    return lanes_score(sum[0], sum[1]);
}

// Keys as whole numbers, all of a block by one lane.
template <bool APART> struct WholeKeys {
    // With positive and negative ones apart, these are behind those.
    u32 a[APART ? 8 : 4][4];
    // Of the lane's two rows: what sums are multiplied with, and whether whole numbers do not hold the key or it is far.
    float scale[2];
    bool special[2];

    DEVICE WholeKeys(const KeyWords &words) {
        u32 lane = threadIdx.x % 32;
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            u32 scales = words.scales[h], largest = largest_scale(scales), steps = scale_steps(scales, largest);
            special[h] = are_special(steps, largest);
            u32 shift = WINDOW - (steps >> lane % 4 * 8);
            scale[h] = float_of((largest + SUM_POWER) << 23);
            u32 lower = LOWER_WHOLE << (shift & WINDOW), upper = UPPER_WHOLE << (shift & WINDOW);
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                Whole x = positive_whole(words.word[h][j], lower, upper);
                Whole y = negative_whole(words.word[h][j], lower, upper), own = APART ? x : difference(x, y);
                a[j][h] = own.lower, a[j][2 + h] = own.upper;
                if (APART) a[4 + j][h] = y.lower, a[4 + j][2 + h] = y.upper;
            }
        }
    }
};

// Begins the products of keys with the heads of COUNT / 16 rows; behind their tiles are the negated ones.
template <int COUNT, bool APART> DEVICE void begin_dots(i32 (&dot)[COUNT], WholeKeys<APART> &keys, u64 queries) {
#pragma unroll
    for (u32 j = 0; j < (APART ? 8 : 4); j++) mma_hold(keys.a[j]);
    mma_fence();
    mma_s8(dot, keys.a[0], queries);
#pragma unroll
    for (u32 j = 1; j < (APART ? 8 : 4); j++) {
        mma_s8_add(dot, keys.a[j], queries + 2 * (j % 4) + j / 4 * (COUNT / 16 * QUERY_BYTES / 16));
    }
    mma_commit();
}

// A lane's sums of a row for its two keys from dots, after their products; `first` is the row's place among them.
template <int COUNT> DEVICE void add_heads(const i32 (&dot)[COUNT], u32 first, const ScoredRow &row, float (&sum)[2]) {
    const Words<4> *factors = (const Words<4> *)(row.factor + threadIdx.x % 4 * 8);
    sum[0] = sum[1] = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        float factor = float_of(factors[i / 4].of[i % 4]);
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            i32 own = dot[first + i / 2 * 4 + h * 2 + i % 2];
            sum[h] = fmaf(float_of((u32)(own > 0 ? own : 0)), factor, sum[h]);
        }
    }
}

// A score by a warp, a lane a head: dots in f64, rounded to f32, the heads in order in f64.
DEVICE float plain_score(const Scored &of, u64 token, const u8 *key) {
    u32 lane = threadIdx.x % 32;
    double term = 0, sum = 0;
    if (lane < of.heads) {
        Mxfp4 queries = {of.q, of.heads * BLOCKS_OF_HEAD};
        double dot = 0;
#pragma unroll 1
        for (u32 at = 0; at < SCORE_COLUMNS; at += CHUNK) {
            Chunk query = chunk(queries, token, lane * SCORE_COLUMNS + at, 0);
            Chunk own = e2m1_chunk(load_words<1>(key + at / 2).of[0], ue8m0_to_f32(key[SCORE_COLUMNS / 2 + at / 32]));
#pragma unroll
            for (int i = 0; i < CHUNK; i++) dot = fma((double)query.of[i], (double)own.of[i], dot);
        }
        float rounded = (float)dot;
        // NaN passes.
        term = (double)head_weight(of, token, lane) * (double)(rounded < 0 ? 0.0f : rounded);
    }
#pragma unroll 1
    for (u32 head = 0; head < of.heads; head++) sum += __shfl_sync(ALL_LANES, term, head);
    return f32_result(sum);
}
