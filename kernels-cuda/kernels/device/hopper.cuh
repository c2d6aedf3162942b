// What Hopper kernels use beyond the plain language, each behind a name: barriers in shared memory, asynchronous
// copies, matrix products of warpgroups, clusters. Under the emulator the same names have its meaning (emu/hopper.h).
#pragma once
#include "number.cuh"

#ifndef __CUDACC__
#include <hopper.h>
#else

// A tensor map, made by the host.
struct alignas(64) TensorMap {
    u64 words[16];
};

// The launch's dynamic shared memory.
#define DYNAMIC_SHARED(name) extern __shared__ __align__(1024) u8 name[]

DEVICE u32 shared_address(const void *place) { return (u32)__cvta_generic_to_shared(place); }

// Barriers. One phase ends when as many threads have arrived as it was made for and all bytes it expects are there;
// phases count 0, 1, 0, …
DEVICE void barrier_init(u64 *barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
// After the initialisation, by the thread that did it, before copies and other blocks see it.
DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Arrives, and expects so many bytes more.
DEVICE void barrier_expect(u64 *barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}
DEVICE void barrier_arrive(u64 *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Until the phase of this parity has ended.
DEVICE void barrier_wait(u64 *barrier, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}" ::
            "r"(shared_address(barrier)), "r"(parity)
        : "memory");
}

// A box of a two-dimensional tensor, from this column and row on, to shared memory; what lies outside the tensor is
// zeros. Tells `barrier` the bytes of the box.
DEVICE void copy_tile(void *to, const TensorMap *map, u64 *barrier, u64 column, u64 row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
            "r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"((i32)column), "r"((i32)row)
        : "memory");
}
// As above, to the same place of the first `blocks` blocks of the cluster; tells the same barrier of each.
DEVICE void copy_tile_to_all(void *to, const TensorMap *map, u64 *barrier, u64 column, u64 row, u32 blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"((i32)column), "r"((i32)row), "h"((u16)((1u << blocks) - 1))
                 : "memory");
}
// `bytes`, a multiple of 16, between addresses that are.
DEVICE void copy_bulk(void *to, const void *from, u32 bytes, u64 *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}
// 16 bytes by one thread, zeros unless they are `there`; both addresses are multiples of 16.
DEVICE void copy_16(void *to, const void *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}
// 16 bytes that matrix products or bulk copies are to read.
DEVICE void store_16(void *to, const u32 (&words)[4]) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(to)), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
}
// 16 bytes of memory, aligned, if they are `there`, else zeros. No branch: the thread waits where it uses them.
DEVICE void load_16_if(bool there, const void *from, u32 (&to)[4]) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\n"
                 "mov.u32 %3, 0;\n@there ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                 : "=&r"(to[0]), "=&r"(to[1]), "=&r"(to[2]), "=&r"(to[3])
                 : "l"(from), "r"((u32)there));
}
// As above, of what is not read again soon; the compiler may move it.
DEVICE void load_16_once_if(bool there, const void *from, u32 (&to)[4]) {
    uint4 words = {0, 0, 0, 0};
    if (there) words = __ldcs((const uint4 *)from);
    to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
}
DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most PENDING of this thread's groups are not done.
template <int PENDING> DEVICE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }
// Between this thread's own writes to shared memory (`copy_16` and `store_16`) and their reading by matrix products and
// bulk copies.
DEVICE void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Clusters.
DEVICE u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// Of the clusters along x.
DEVICE u32 cluster_number() {
    u32 number;
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(number));
    return number;
}
// All threads of all blocks of the cluster; what was written before is seen after.
DEVICE void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The same place in the shared memory of another block of the cluster.
template <typename T> DEVICE T *peer_shared(T *place, u32 rank) {
    u64 peer;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(peer) : "l"((u64)place), "r"(rank));
    return (T *)peer;
}

// The two halves of a meeting that orders nothing but barriers' initialisations, which their own fence has shown:
// threads may do other things in between, all of them both.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// Arrives at the same barrier of another block of the cluster, or of this one; what was read before is read.
DEVICE void peer_arrive(u64 *barrier, u32 rank) {
    asm volatile("{\n.reg .b32 peer;\nmapa.shared::cluster.u32 peer, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [peer];\n}" ::"r"(shared_address(barrier)),
                 "r"(rank)
                 : "memory");
}
// 16 bytes to the same place of another block of the cluster, or of this one; tells its `barrier` the bytes.
DEVICE void peer_store_16(void *place, const u32 (&words)[4], u64 *barrier, u32 rank) {
    asm volatile("{\n.reg .b32 to, told;\nmapa.shared::cluster.u32 to, %0, %6;\nmapa.shared::cluster.u32 told, %1, %6;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [to], {%2, %3, %4, %5}, [told];\n}" ::
                     "r"(shared_address(place)),
                 "r"(shared_address(barrier)), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(rank)
                 : "memory");
}

// `threads` of a block, those that name the same barrier; 0 is that of all threads.
DEVICE void some_sync(u32 barrier, u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
// As above; whether all say so.
DEVICE bool some_agree(u32 barrier, u32 threads, bool mine) {
    u32 all;
    asm volatile("{\n.reg .pred own, all;\nsetp.ne.u32 own, %3, 0;\nbar.red.and.pred all, %1, %2, own;\n"
                 "selp.u32 %0, 1, 0, all;\n}"
                 : "=r"(all)
                 : "r"(barrier), "r"(threads), "r"((u32)mine)
                 : "memory");
    return all;
}
// Registers of a warpgroup: as many as this from here on.
template <int REGISTERS> DEVICE void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> DEVICE void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
// Under programmatic launches: until the launch before has ended, and that the next may begin.
DEVICE void wait_for_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// The same number, which the compiler does not know any more: what follows from it is not kept from before a loop.
DEVICE u32 forgotten(u32 x) {
    asm volatile("" : "+r"(x));
    return x;
}

// Four of eight bytes, those that the lower nibbles of `nibbles` name by three bits; where the fourth bit is set, all bits
// are the sign of the byte.
DEVICE u32 bytes_by_nibbles(u32 lower, u32 upper, u32 nibbles) {
    u32 bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(lower), "r"(upper), "r"(nibbles));
    return bytes;
}
// The two codes of E4M3 in the lower half of a word as f16, the first in the lower half; NaN stays NaN.
DEVICE u32 halves_of_e4m3(u32 codes) {
    u32 halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((u16)codes));
    return halves;
}
// Products of two pairs of f16, each rounded once.
DEVICE u32 product_of_halves(u32 a, u32 b) {
    u32 product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

// A number of f16, in the lower half of a word.
DEVICE float float_of_half(u32 half) {
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"((u16)half));
    return number;
}
// As above, of bf16.
DEVICE u32 product_of_bf16s(u32 a, u32 b) {
    u32 product;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

// Two numbers of f32 as bf16, the first in the lower half.
DEVICE u32 bf16_pair(float lower, float upper) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
    return pair;
}
// 2^x, to two units in the last place.
DEVICE float power_of_two(float x) {
    float power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// A product of one warp, in registers, done when it returns: d[16, 8] += a[16, 16] b[8, 16]^T of bf16. Lane t holds
// d[2 h + i] = row t / 4 + 8 h, column t % 4 * 2 + i; a[2 k + h] is columns 8 k + t % 4 * 2 and the next of the same
// rows, b[k] the same columns of row t / 4.
DEVICE void mma_bf16_warp(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// As above of f64, d[16, 8] += a[16, K] b[8, K]^T, column after column, each product added with one rounding: a[2 k + h]
// is column 4 k + t % 4 of row t / 4 + 8 h, b[k] the same column of row t / 4.
DEVICE void mma_f64_warp(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}
DEVICE void mma_f64_warp(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
                 "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
                   "d"(b[1]), "d"(b[2]), "d"(b[3]));
}
// Eight rows of eight 16-bit elements, row t / 4 in four lanes, two a lane: the same, rows for columns.
DEVICE u32 turned(u32 pair) {
    u32 other;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(other) : "r"(pair));
    return other;
}

// Matrix products of a warpgroup: d[64, N] = a[64, K] b[N, K]^T, added to d by the forms that say so. Thread t holds, for each 8
// columns j, d[4 j + 2 h + i] = row 16 (t / 32) + t % 32 / 4 + 8 h, column 8 j + t % 4 * 2 + i. Operands in shared
// memory are tiles of 128-byte rows, swizzled, that start at multiples of 1024: `operand_128` of the tile plus the byte
// within the row. `a` in registers is the fragment of the same rows: of 16-bit elements, a[2 k + h] holds columns
// 8 k + t % 4 * 2 and the next; of 8-bit ones, 16 k + t % 4 * 4 and the next three.
DEVICE u64 operand_128(const void *place) {
    return (u64)((shared_address(place) & 0x3FFFF) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}
// Before the first product, and before products whose registers were written otherwise since.
DEVICE void mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most PENDING committed groups are not done.
template <int PENDING> DEVICE void mma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
// The accumulators are not read, written or moved across this point.
template <int COUNT> DEVICE void mma_hold(float (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i])::"memory");
}
template <int COUNT> DEVICE void mma_hold(i32 (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+r"(d[i])::"memory");
}
// Nor are operands in registers: they are there before the fence.
DEVICE void mma_hold(u32 (&a)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) asm volatile("" : "+r"(a[i])::"memory");
}

#define D4 "%0,%1,%2,%3"
#define D8 D4 ",%4,%5,%6,%7"
#define D16 D8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define D24 D16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define D32 D16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define D40 D32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define D48 D40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define D64                                                                                                           \
    D32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,"     \
        "%58,%59,%60,%61,%62,%63"
#define D80 D64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define D96                                                                                                           \
    D64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,"     \
        "%90,%91,%92,%93,%94,%95"
#define D128                                                                                                          \
    D96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,"  \
        "%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define INOUT4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define OUT4(i) "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3])
#define R4(K, i) K##4(i)
#define R8(K, i) R4(K, i), R4(K, i + 4)
#define R16(K, i) R8(K, i), R8(K, i + 8)
#define R24(K, i) R16(K, i), R8(K, i + 16)
#define R32(K, i) R16(K, i), R16(K, i + 16)
#define R40(K, i) R32(K, i), R8(K, i + 32)
#define R48(K, i) R32(K, i), R16(K, i + 32)
#define R64(K, i) R32(K, i), R32(K, i + 32)
#define R80(K, i) R64(K, i), R16(K, i + 64)
#define R96(K, i) R64(K, i), R32(K, i + 64)
#define R128(K, i) R64(K, i), R64(K, i + 64)

// The forms of a product, with `a` in shared memory or registers, added to d or not: its name, columns, accumulators,
// depth and types, what the instruction says behind its scales for each place of `a`, and the numbers of the operands
// behind the accumulators.
#define MMA(NAME, N, COUNT, TYPES, FROM_SHARED, FROM_REGISTERS, P0, P1, P2, P3, P4)                               \
    MMA_FORM(NAME##_add, INOUT, "1", N, COUNT, TYPES, FROM_SHARED, FROM_REGISTERS, P0, P1, P2, P3, P4)                \
    MMA_FORM(NAME, OUT, "0", N, COUNT, TYPES, FROM_SHARED, FROM_REGISTERS, P0, P1, P2, P3, P4)
#define MMA_FORM(NAME, KIND, ADD, N, COUNT, TYPES, FROM_SHARED, FROM_REGISTERS, P0, P1, P2, P3, P4)                   \
    DEVICE void NAME(float (&d)[COUNT], u64 a, u64 b) {                                                               \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N TYPES   \
                     " {" D##COUNT "}, " P0 ", " P1 ", add, 1, 1" FROM_SHARED ";\n}"                                  \
                     : R##COUNT(KIND, 0)                                                                              \
                     : "l"(a), "l"(b));                                                                               \
    }                                                                                                                 \
    DEVICE void NAME(float (&d)[COUNT], const u32 (&a)[4], u64 b) {                                                   \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N TYPES   \
                     " {" D##COUNT "}, {" P0 "," P1 "," P2 "," P3 "}, " P4 ", add, 1, 1" FROM_REGISTERS ";\n}"        \
                     : R##COUNT(KIND, 0)                                                                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                           \
    }
#define MMA_ALL(N, COUNT, ...)                                                                                        \
    MMA(mma_e4m3, N, COUNT, "k32.f32.e4m3.e4m3", "", "", __VA_ARGS__)                                                 \
    MMA(mma_bf16, N, COUNT, "k16.f32.bf16.bf16", ", 0, 0", ", 0", __VA_ARGS__)                                        \
    MMA(mma_f16, N, COUNT, "k16.f32.f16.f16", ", 0, 0", ", 0", __VA_ARGS__)

MMA_ALL(8, 4, "%4", "%5", "%6", "%7", "%8")
MMA_ALL(16, 8, "%8", "%9", "%10", "%11", "%12")
MMA_ALL(32, 16, "%16", "%17", "%18", "%19", "%20")
MMA_ALL(48, 24, "%24", "%25", "%26", "%27", "%28")
MMA_ALL(64, 32, "%32", "%33", "%34", "%35", "%36")
MMA_ALL(80, 40, "%40", "%41", "%42", "%43", "%44")
MMA_ALL(96, 48, "%48", "%49", "%50", "%51", "%52")
MMA_ALL(128, 64, "%64", "%65", "%66", "%67", "%68")
MMA_ALL(160, 80, "%80", "%81", "%82", "%83", "%84")
MMA_ALL(192, 96, "%96", "%97", "%98", "%99", "%100")
MMA_ALL(256, 128, "%128", "%129", "%130", "%131", "%132")

// `b` turned: its tile has a row of 64 columns for each of K.
MMA(mma_bf16_turned, 64, 32, "k16.f32.bf16.bf16", ", 0, 1", ", 1", "%32", "%33", "%34", "%35", "%36")

// Of 8-bit integers with signs, into whole numbers; `a` in registers.
#define WHOLE_INOUT4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define WHOLE_OUT4(i) "=r"(d[i]), "=r"(d[i + 1]), "=r"(d[i + 2]), "=r"(d[i + 3])
#define MMA_S8(NAME, KIND, ADD, N, COUNT, P0, P1, P2, P3, P4)                                                         \
    DEVICE void NAME(i32 (&d)[COUNT], const u32 (&a)[4], u64 b) {                                                     \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N        \
                     "k32.s32.s8.s8 {" D##COUNT "}, {" P0 "," P1 "," P2 "," P3 "}, " P4 ", add;\n}"                   \
                     : R##COUNT(KIND, 0)                                                                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                           \
    }
MMA_S8(mma_s8_add, WHOLE_INOUT, "1", 32, 16, "%16", "%17", "%18", "%19", "%20")
MMA_S8(mma_s8, WHOLE_OUT, "0", 32, 16, "%16", "%17", "%18", "%19", "%20")
MMA_S8(mma_s8_add, WHOLE_INOUT, "1", 64, 32, "%32", "%33", "%34", "%35", "%36")
MMA_S8(mma_s8, WHOLE_OUT, "0", 64, 32, "%32", "%33", "%34", "%35", "%36")
#undef WHOLE_INOUT4
#undef WHOLE_OUT4
#undef MMA_S8

#undef D4
#undef D8
#undef D16
#undef D24
#undef D32
#undef D40
#undef D48
#undef D64
#undef D80
#undef D96
#undef D128
#undef INOUT4
#undef OUT4
#undef R4
#undef R8
#undef R16
#undef R32
#undef R64
#undef R80
#undef R96
#undef R128
#undef MMA
#undef MMA_FORM
#undef MMA_ALL
#endif
