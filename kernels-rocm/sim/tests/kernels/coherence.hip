// One block hands a word to the next, whose die has read it before: rightly, and each time without one thing that
// is needed for it.
#include "device.h"

#define LOAD(p, order, scope) __hip_atomic_load(p, __ATOMIC_##order, __HIP_MEMORY_SCOPE_##scope)
#define STORE(p, x, order, scope) __hip_atomic_store(p, x, __ATOMIC_##order, __HIP_MEMORY_SCOPE_##scope)
// Nothing moves across this in the compiler, and nothing is made for it but the wait.
#define SETTLE() asm volatile("s_waitcnt vmcnt(0) lgkmcnt(0)" ::: "memory")

// `order[0]`: the reader has read; `order[1]`: the word is written. `out` has what was read before and behind that.
#define HANDED(name, released, acquired, scope)                                      \
    KERNEL(64) name(u32 *word, u32 *order, u32 *out) {                               \
        if (thread() != 0) return;                                                   \
        if (block() == 0) {                                                          \
            while (LOAD(&order[0], RELAXED, AGENT) == 0) __builtin_amdgcn_s_sleep(1); \
            SETTLE();                                                                \
            *word = 7;                                                               \
            SETTLE();                                                                \
            STORE(&order[1], 1, released, scope);                                    \
        } else {                                                                     \
            out[0] = *word;                                                          \
            SETTLE();                                                                \
            STORE(&order[0], 1, RELAXED, AGENT);                                     \
            while (LOAD(&order[1], acquired, scope) == 0) __builtin_amdgcn_s_sleep(1); \
            SETTLE();                                                                \
            out[1] = *word;                                                          \
        }                                                                            \
    }

HANDED(handed, RELEASE, ACQUIRE, AGENT)
HANDED(handed_to_all, RELEASE, ACQUIRE, SYSTEM)
HANDED(not_released, RELAXED, ACQUIRE, AGENT)
HANDED(not_acquired, RELEASE, RELAXED, AGENT)

// Two blocks count in neighbouring words of a line, and both in one word by atomic operations.
KERNEL(64) counted(u32 *counts, u32 *together) {
    for (u32 i = 0; i < 10; i++) {
        if (thread() == 0) counts[block()] += i;
        __hip_atomic_fetch_add(together, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    }
}
