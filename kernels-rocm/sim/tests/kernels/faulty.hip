// Kernels that are wrong, each in one way, and one that does the same rightly.
#include "device.h"

// Without optimisation of its own, so that the mistake stays.
#define READ(p) (*(volatile __attribute__((address_space(3))) u32 *)(p))
#define WRITE(p, x) (*(volatile __attribute__((address_space(3))) u32 *)(p) = (x))
#define LDS_LOAD __attribute__((address_space(3))) void

DEVICE void fill(const void *from, u32 bytes, u8 *to, u32 offset) {
    auto buffer = __builtin_amdgcn_make_buffer_rsrc((void *)from, 0, bytes, 0x00020000);
    __builtin_amdgcn_raw_ptr_buffer_load_lds(buffer, (LDS_LOAD *)(to + thread() / 64 * 256), 4, thread() * 4, offset, 0, 0);
}

// A load into LDS and a barrier, but no wait between them.
KERNEL(256) missing_wait(const void *x, u32 *out) {
    SHARED u8 tile[1024];
    fill(x, 1024, tile, 0);
    __builtin_amdgcn_s_barrier();
    out[thread()] = READ(tile + (thread() * 4 + 256) % 1024);
}

// One wave reads what another wrote, without a barrier.
KERNEL(256) missing_barrier(u32 *out) {
    SHARED u32 tile[256];
    WRITE(&tile[thread()], thread());
    __builtin_amdgcn_s_waitcnt(0);
    out[thread()] = READ(&tile[(thread() + 64) % 256]);
}

// The second tile is loaded over the first while others may still read that.
KERNEL(256) refilled(const void *x, u32 *out) {
    SHARED u8 tile[1024];
    u32 sum = 0;
    for (u32 i = 0; i < 2; i++) {
        fill(x, 2048, tile, i * 1024);
        __builtin_amdgcn_s_waitcnt(0);
        __builtin_amdgcn_s_barrier();
        sum += READ(tile + (thread() * 4 + 256) % 1024);
    }
    out[thread()] = sum;
}

// The same with all that it needs.
KERNEL(256) right(const void *x, u32 *out) {
    SHARED u8 tile[1024];
    u32 sum = 0;
    for (u32 i = 0; i < 2; i++) {
        fill(x, 2048, tile, i * 1024);
        __builtin_amdgcn_s_waitcnt(0);
        __builtin_amdgcn_s_barrier();
        sum += READ(tile + (thread() * 4 + 256) % 1024);
        __builtin_amdgcn_s_waitcnt(0);
        __builtin_amdgcn_s_barrier();
    }
    out[thread()] = sum;
}

// One element behind the end.
KERNEL(64) out_of_bounds(const u32 *x, u32 *out) { out[thread()] = x[thread() + 1]; }

// A word of LDS that nothing wrote.
KERNEL(64) uninitialised(u32 *out) {
    SHARED u32 tile[128];
    tile[thread()] = thread();
    barrier();
    out[thread()] = READ(&tile[thread() + 1]);
}

// A load in assembly, where nobody waits for it.
KERNEL(64) missing_load_wait(const u32 *x, u32 *out) {
    u32 word, offset = thread() * 4;
    asm volatile("global_load_dword %0, %1, %2" : "=v"(word) : "v"(offset), "s"(x));
    out[thread()] = word + 1;
}

// A write to what may only be read, when that is given as `out`.
KERNEL(64) writes(u32 *out) { out[thread()] = 1; }

// A wait for what never comes.
KERNEL(64) hangs(u32 *flag) {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) __builtin_amdgcn_s_sleep(1);
}

// A load into LDS that is still on its way when the program ends.
KERNEL(64) ends_in_flight(const void *x) {
    SHARED u8 tile[256];
    fill(x, 256, tile, 0);
}

// More LDS than there is.
KERNEL(64) past_lds(u32 *out) {
    SHARED u32 tile[64];
    WRITE(&tile[thread()], 0);
    WRITE((u32 *)tile + 64 + out[thread()], 1);
}

// Even lanes store to LDS and odd ones to memory, by one instruction; behind a wait and a barrier another wave reads both.
#define STORES_TO_EITHER(name, wait)                                                                                       \
    KERNEL(256) name(u32 *memory, u32 *out) {                                                                              \
        SHARED u32 tile[256];                                                                                              \
        u32 i = thread(), other = (i + 64) % 256;                                                                          \
        u32 *to = i % 2 ? memory + i : tile + i;                                                                           \
        asm volatile("flat_store_dword %0, %1\n" wait "\ns_barrier" : : "v"(to), "v"(i) : "memory");                       \
        out[i] = other % 2 ? *(volatile u32 *)(memory + other) : READ(&tile[other]);                                       \
    }
STORES_TO_EITHER(waits_for_both, "s_waitcnt vmcnt(0) lgkmcnt(0)")
STORES_TO_EITHER(waits_for_lds, "s_waitcnt lgkmcnt(0)")
STORES_TO_EITHER(waits_for_memory, "s_waitcnt vmcnt(0)")
