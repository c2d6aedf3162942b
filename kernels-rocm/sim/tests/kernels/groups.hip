// What lanes, waves and workgroups do together.
#include "device.h"

// Sums of 32 lanes by exchanging halves; the mask of odd values; lane 5's value; sums of rows of 16 by DPP.
KERNEL(256) lanes(const u32 *x, u32 *sums, u64 *masks, u32 *fifth, u32 *rows) {
    u32 i = block() * 256 + thread(), value = x[i], sum = value;
    for (u32 by = 16; by > 0; by /= 2) sum += from_lane(sum, lane() ^ by);
    sums[i] = sum;
    u64 mask = __builtin_amdgcn_ballot_w64(value & 1);
    if (lane() == 0) masks[i / 64] = mask;
    fifth[i] = __builtin_amdgcn_readlane(value, 5);
    u32 row = value;
    row += __builtin_amdgcn_update_dpp(0, row, 0x128, 0xf, 0xf, true);  // row_ror:8
    row += __builtin_amdgcn_update_dpp(0, row, 0x124, 0xf, 0xf, true);  // row_ror:4
    row += __builtin_amdgcn_update_dpp(0, row, 0x4e, 0xf, 0xf, true);   // quad_perm:[2,3,0,1]
    row += __builtin_amdgcn_update_dpp(0, row, 0xb1, 0xf, 0xf, true);   // quad_perm:[1,0,3,2]
    rows[i] = row;
}

// What each DPP control brings, where nothing comes and where the old value stays.
KERNEL(64) movements(const u32 *x, u32 *out) {
    u32 i = thread(), v = x[i];
    out[i] = __builtin_amdgcn_update_dpp(7, v, 0x101, 0xf, 0xf, false);        // row_shl:1
    out[64 + i] = __builtin_amdgcn_update_dpp(7, v, 0x113, 0xf, 0xf, true);    // row_shr:3
    out[128 + i] = __builtin_amdgcn_update_dpp(7, v, 0x140, 0xf, 0xf, false);  // row_mirror
    out[192 + i] = __builtin_amdgcn_update_dpp(7, v, 0x141, 0x5, 0xf, false);  // row_half_mirror
    out[256 + i] = __builtin_amdgcn_update_dpp(7, v, 0x142, 0xa, 0xf, false);  // row_bcast:15
    out[320 + i] = __builtin_amdgcn_update_dpp(7, v, 0x153, 0xf, 0x3, false);  // row_newbcast:3
    out[384 + i] = __builtin_amdgcn_ds_swizzle(v, 0x401f);                     // SWAP,16
}

// The f64 sum of each row of 1000 by a block of 256.
KERNEL(256) row_sums(const float *x, double *sums) {
    SHARED double of_wave[4];
    double sum = 0;
    for (u32 i = thread(); i < 1000; i += 256) sum += x[(u64)block() * 1000 + i];
    for (u32 by = 32; by > 0; by /= 2) {
        u64 bits = __builtin_bit_cast(u64, sum);
        u64 other = from_lane((u32)bits, lane() ^ by) | (u64)from_lane((u32)(bits >> 32), lane() ^ by) << 32;
        sum += __builtin_bit_cast(double, other);
    }
    if (lane() == 0) of_wave[thread() / 64] = sum;
    barrier();
    if (thread() == 0) sums[block()] = (of_wave[0] + of_wave[1]) + (of_wave[2] + of_wave[3]);
}

// How often each byte occurs: counted in LDS, added up in memory.
KERNEL(256) histogram(const u8 *x, u32 *counts, u32 count) {
    SHARED u32 own[256];
    own[thread()] = 0;
    barrier();
    for (u32 i = block() * 256 + thread(); i < count; i += 1024)
        __hip_atomic_fetch_add(&own[x[i]], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    barrier();
    __hip_atomic_fetch_add(&counts[thread()], own[thread()], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Blocks take turns: each waits for the one before and adds its number to what that left.
KERNEL(64) turns(u32 *turn, u64 *total, u32 *order) {
    if (thread() != 0) return;
    u32 ticket = __hip_atomic_fetch_add(&order[0], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    u32 mine = __builtin_amdgcn_workgroup_id_x();
    order[1 + ticket] = mine;
    while (__hip_atomic_load(turn, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != mine) __builtin_amdgcn_s_sleep(1);
    *total = *total * 3 + mine;
    __hip_atomic_store(turn, mine + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}

// A pointer that is to LDS in some lanes and to memory in others, and a private array with a changing index.
KERNEL(64) pointers(const u32 *x, u32 *out, u32 *spare) {
    SHARED u32 near[64];
    u32 i = thread();
    near[i] = x[i];
    barrier();
    u32 *from = x[i] & 1 ? &near[63 - i] : &spare[i];
    u32 own[16];
    for (u32 k = 0; k < 16; k++) own[k] = x[(i + k) % 64];
    u32 sum = 0;
    for (u32 k = 0; k < 8; k++) {
        own[x[(i + k) % 64] % 16] += k;
        sum = sum * 31 + own[x[i] % 16];
    }
    out[i] = *from + sum;
}

// Three times each byte, where neighbours belong to different blocks.
KERNEL(64) scattered_bytes(const u8 *x, u8 *out) {
    u32 i = thread() * 64 + block();
    u8 value = x[i];
    for (u32 k = 0; k < 200; k++) value = value * 3 + (u8)k;
    for (u32 k = 200; k-- > 0;) value = (u8)(value - (u8)k) * 171;
    out[i] = value * 3;
}
