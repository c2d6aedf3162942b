// gemm.mxfp8 on Hopper with the tokens as the narrow side of the matrix units, for decoding: the weight is read once for
// each 64 tokens, at the speed of the memory.
//
// A block has 64 rows of the weight as the wide side, up to 64 tokens, and one part of the columns; the blocks of a cluster have the parts of the same rows and add them through each other's shared
// memory, in order. One warp moves tiles of 128 columns into a ring; gangs of four warps multiply, each some of the
// tokens. The parts follow from the shape alone, so the bits do not depend on the number of tokens.
// SASS: QGMMA UTMALDG
#include "../device/bf16.cuh"
#include "../device/hopper.cuh"
#include "../device/mxfp8_blocks.cuh"
#include "../device/view.cuh"

constexpr u32 GANG = 128, ROWS = 64;
constexpr u32 ROWS_BYTES = ROWS * STAGE_COLUMNS;

struct NarrowShape {
    u32 n, k, tokens, parts, slots;
};

// The tokens of a block: as many as TOKENS from `first` on.
template <int TOKENS> DEVICE u32 count_from(const NarrowShape &d, u32 first) {
    return d.tokens - first < TOKENS ? d.tokens - first : TOKENS;
}

// Gangs for so many tokens.
template <int TOKENS> constexpr u32 GANGS = TOKENS > 16 ? 2 : 1;
template <int TOKENS> constexpr u32 WORKERS = GANGS<TOKENS> * GANG;

// Shared memory of a block: the ring, barriers, the scales. The partial sums take the ring's place.
template <int TOKENS> struct Room {
    static constexpr u32 STAGE = ROWS_BYTES + TOKENS * STAGE_COLUMNS;
    u8 *ring;
    u64 *full, *empty;
    // For 32 rows of the weight after the other, of each block each token.
    float *scale;
    u32 blocks;

    DEVICE Room(u8 *shared, u32 slots, u32 blocks) : blocks(blocks) {
        ring = shared;
        full = (u64 *)(shared + slots * STAGE);
        empty = full + slots;
        scale = (float *)(empty + slots);
    }
    DEVICE u8 *weight(u32 slot) const { return ring + slot * STAGE; }
    DEVICE u8 *x(u32 slot) const { return ring + slot * STAGE + ROWS_BYTES; }
    DEVICE float *sums() const { return (float *)ring; }
};

template <int TOKENS>
DEVICE void fetch_weight(const Room<TOKENS> &room, const TensorMap *weight, u32 slot, u32 stage, u32 row) {
    barrier_expect(&room.full[slot], Room<TOKENS>::STAGE);
    copy_tile(room.weight(slot), weight, &room.full[slot], stage * STAGE_COLUMNS, row);
}
template <int TOKENS>
DEVICE void fetch_x(const Room<TOKENS> &room, const TensorMap *x, u32 slot, u32 stage, u32 token) {
    copy_tile(room.x(slot), x, &room.full[slot], stage * STAGE_COLUMNS, token);
}

// What the products of the block's columns are scaled by; whether all of it are numbers.
template <int TOKENS>
DEVICE bool load_scales(const Room<TOKENS> &room, const View &x, const View &weight, const NarrowShape &d, u32 row,
                        u32 from, Stages mine) {
    bool tame = true;
    u32 count = count_from<TOKENS>(d, from);
    u32 blocks = d.k / 32, bands = (d.n + 31) / 32;
    for (u32 i = threadIdx.x; i < (mine.last - mine.first) * TOKENS; i += WORKERS<TOKENS>) {
        u32 token = i % TOKENS, stage = i / TOKENS, block = (mine.first + stage) * STAGE_BLOCKS;
        u32 left = token < count ? scales_of(x.scales + (u64)(from + token) * blocks, block, blocks) : 0;
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 band = row / 32 + half;
            bool there = token < count && band < bands;
            u32 right = band < bands ? scales_of(weight.scales + (u64)band * blocks, block, blocks) : 0;
#pragma unroll
            for (u32 j = 0; j < STAGE_BLOCKS; j++) {
                u32 a = left >> 8 * j & 0xFF, b = right >> 8 * j & 0xFF;
                bool counts = there && block + j < blocks;
                // What is not there is zeros, by nothing.
                room.scale[(half * room.blocks + stage * STAGE_BLOCKS + j) * TOKENS + token] =
                    counts ? tame_product(a, b) : 0;
                tame &= !counts || (is_tame(a) && is_tame(b));
            }
        }
    }
    return tame;
}

// Scales of neighbouring tokens.
struct alignas(8) Two {
    float even, odd;
};

// The scales themselves, for the rare products that `Room::scale` has no number for.
struct Far {
    const u8 *x, *weight;
    u32 tokens, bands, blocks, row, first;

    DEVICE float add(float sum, float part, u32 half, u32 block, u32 token) const {
        u32 band = row / 32 + half, at = first + block;
        if (token >= tokens || band >= bands || at >= blocks) return sum;
        return promoted_far(sum, part, x[(u64)token * blocks + at], weight[(u64)band * blocks + at]);
    }
};

// One thread's share of the products of the block, for a gang's tokens.
template <int TOKENS> struct Worker {
    static constexpr int OWN = TOKENS / GANGS<TOKENS>, HELD = OWN / 2;
    // As many in a group as there are registers for.
    static constexpr u32 EACH = OWN <= 16 ? 2 : 1, GROUPS = STAGE_BLOCKS / EACH;
    typedef float Part[EACH][HELD];
    const Room<TOKENS> &room;
    u32 slots, gang, half, lane;
    u64 weight, x;

    DEVICE Worker(const Room<TOKENS> &room, u32 slots) : room(room), slots(slots) {
        gang = threadIdx.x / GANG, half = threadIdx.x % GANG / 64, lane = threadIdx.x % 32;
        weight = operand_128(room.weight(0)), x = operand_128(room.x(0) + gang * OWN * STAGE_COLUMNS);
    }

    // Begins the products of a group. Operands' addresses count in units of 16 bytes.
    DEVICE void begin(Part &part, u32 slot, u32 group) {
        u64 place = slot * (Room<TOKENS>::STAGE / 16) + group * EACH * 2;
        mma_fence();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) mma_e4m3(part[j], weight + place + 2 * j, x + place + 2 * j);
        mma_commit();
    }

    // Waits for a group and adds it.
    template <int PENDING> DEVICE void end(float (&sum)[HELD], Part &part, u32 block) {
        Two scale[EACH][HELD / 4];
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            const float *from = &room.scale[(half * room.blocks + block + j) * TOKENS + gang * OWN + lane % 4 * 2];
#pragma unroll
            for (int c = 0; c < HELD / 4; c++) scale[j][c] = *(const Two *)(from + c * 8);
        }
        mma_wait<PENDING>();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) mma_hold(part[j]);
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
#pragma unroll
            for (int c = 0; c < HELD; c++) {
                // Four results for each 8 tokens: two neighbours, in two rows.
                Two both = scale[j][c / 4];
                sum[c] = promoted(sum[c], part[j][c], c % 2 ? both.odd : both.even);
            }
        }
    }

    DEVICE void leave(u32 slot) {
        __syncwarp();
        if (lane == 0) barrier_arrive(&room.empty[slot]);
    }

    // Two groups are under way within a stage; none from stage to stage, which would make the compiler wait for each.
    DEVICE void run(float (&sum)[HELD], u32 stages) {
        u32 slot = 0, parity = 0;
        for (u32 stage = 0; stage < stages; stage++) {
            Part part[2];
            barrier_wait(&room.full[slot], parity);
            begin(part[0], slot, 0);
#pragma unroll
            for (u32 group = 0; group < GROUPS - 1; group++) {
                begin(part[(group + 1) % 2], slot, group + 1);
                end<1>(sum, part[group % 2], stage * STAGE_BLOCKS + group * EACH);
            }
            end<0>(sum, part[1], stage * STAGE_BLOCKS + (GROUPS - 1) * EACH);
            leave(slot);
            if (++slot == slots) slot = 0, parity ^= 1;
        }
    }

    // One group at a time, scales one by one.
    DEVICE void run_far(float (&sum)[HELD], u32 stages, const Far &far) {
        Part part;
        u32 slot = 0, parity = 0;
        for (u32 stage = 0; stage < stages; stage++) {
            barrier_wait(&room.full[slot], parity);
            for (u32 group = 0; group < GROUPS; group++) {
                begin(part, slot, group);
                mma_wait<0>();
#pragma unroll
                for (u32 j = 0; j < EACH; j++) {
                    mma_hold(part[j]);
                    for (int c = 0; c < HELD; c++) {
                        u32 token = gang * OWN + c / 4 * 8 + lane % 4 * 2 + c % 2;
                        sum[c] = far.add(sum[c], part[j][c], half, stage * STAGE_BLOCKS + group * EACH + j, token);
                    }
                }
            }
            leave(slot);
            if (++slot == slots) slot = 0, parity ^= 1;
        }
    }
};

template <int TOKENS>
DEVICE void narrow(const TensorMap *weight_map, const TensorMap *x_map, const View &x, const View &weight, const View &y,
                const NarrowShape &d) {
    DYNAMIC_SHARED(shared);
    u32 rank = blockIdx.x % d.parts, row = blockIdx.x / d.parts * ROWS, from = blockIdx.y * TOKENS;
    Stages mine = part_of((d.k + STAGE_COLUMNS - 1) / STAGE_COLUMNS, d.parts, rank);
    u32 stages = mine.last - mine.first;
    Room<TOKENS> room(shared, d.slots, stages * STAGE_BLOCKS);
    bool mover = threadIdx.x == WORKERS<TOKENS>, works = threadIdx.x < WORKERS<TOKENS>, tame = true;
    let_next_begin();
    // Of what is read only the weight is sure not to be a result of the launch before.
    if (mover) {
        for (u32 i = 0; i < d.slots; i++) {
            barrier_init(&room.full[i], 1);
            barrier_init(&room.empty[i], WORKERS<TOKENS> / 32);
        }
        barrier_init_fence();
        for (u32 i = 0; i < d.slots && i < stages; i++) fetch_weight(room, weight_map, i, mine.first + i, row);
    }
    wait_for_previous();
    if (mover) {
        for (u32 i = 0; i < d.slots && i < stages; i++) fetch_x(room, x_map, i, mine.first + i, from);
    } else if (works) {
        tame = load_scales(room, x, weight, d, row, from, mine);
    }
    tame = __syncthreads_and(tame);
    if (mover) {
        u32 slot = 0, parity = 0;
        for (u32 i = d.slots; i < stages; i++) {
            barrier_wait(&room.empty[slot], parity);
            fetch_weight(room, weight_map, slot, mine.first + i, row);
            fetch_x(room, x_map, slot, mine.first + i, from);
            if (++slot == d.slots) slot = 0, parity ^= 1;
        }
    }
    float sum[Worker<TOKENS>::HELD];
    if (works) {
        for (float &s : sum) s = 0;
        u32 blocks = d.k / 32, count = count_from<TOKENS>(d, from);
        Far far = {x.scales + (u64)from * blocks, weight.scales, count, (d.n + 31) / 32, blocks, row,
                   mine.first * STAGE_BLOCKS};
        Worker<TOKENS> worker(room, d.slots);
        if (tame) worker.run(sum, stages);
        else worker.run_far(sum, stages, far);
    }
    // The ring is read to the end before sums take its place.
    __syncthreads();
    if (works) {
        u32 lane = threadIdx.x % 32, at = threadIdx.x % GANG / 32 * 16 + lane / 4;
        u32 first = threadIdx.x / GANG * Worker<TOKENS>::OWN;
#pragma unroll
        for (int i = 0; i < Worker<TOKENS>::HELD; i++) {
            u32 token = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
            room.sums()[token * ROWS + at + i / 2 % 2 * 8] = sum[i];
        }
    }
    cluster_sync();
    u32 share = TOKENS * ROWS / d.parts;
    for (u32 i = share * rank + threadIdx.x; i < share * (rank + 1); i += WORKERS<TOKENS> + 32) {
        float total = peer_shared(room.sums(), 0)[i];
        for (u32 part = 1; part < d.parts; part++) total += peer_shared(room.sums(), part)[i];
        u32 token = from + i / ROWS, output = row + i % ROWS;
        if (token < d.tokens && output < d.n) row_of<u16>(y, token)[output] = bf16_from_f32(total);
    }
    // Peers have read before this block's memory goes.
    cluster_sync();
}

#define NARROW(TOKENS)                                                                                                   \
    (const __grid_constant__ TensorMap weight_map, const __grid_constant__ TensorMap x_map, View x, View weight,        \
     View y, u32 n, u32 k, u32 tokens, u32 parts, u32 slots) {                                                         \
        narrow<TOKENS>(&weight_map, &x_map, x, weight, y, {n, k, tokens, parts, slots});                                  \
    }

KERNEL(gemm_mxfp8__narrow_8, WORKERS<8> + 32) NARROW(8)
KERNEL(gemm_mxfp8__narrow_16, WORKERS<16> + 32) NARROW(16)
KERNEL(gemm_mxfp8__narrow_32, WORKERS<32> + 32) NARROW(32)
KERNEL(gemm_mxfp8__narrow_64, WORKERS<64> + 32) NARROW(64)
