// The emulator's meaning of device/hopper.cuh. What is asynchronous on the device is so here: copies and products
// happen at moments that the schedule picks, what they are to fill holds NaN until then, and only the proper wait
// orders them. Each wait or fence is a site that a test can leave out.
#pragma once
#include "cuda.h"

#define EMU_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// A box of a two-dimensional tensor of bytes, as the host writes it.
struct alignas(64) TensorMap {
    std::uint64_t base, rows, columns, pitch;
    std::uint32_t box_rows, box_columns, swizzled, mark;
    std::uint64_t unused[10];
};

#define DYNAMIC_SHARED(name) unsigned char *name = emu::dynamic_shared()

namespace emu {
unsigned char *dynamic_shared();
void cluster_barrier();
void cluster_come();
void cluster_leave();
// Meetings of the cluster that there were, and that the running thread came from.
unsigned cluster_round();
unsigned cluster_met();
void some_barrier(unsigned barrier, unsigned threads);
bool some_all(unsigned barrier, unsigned threads, bool mine);
void *peer(void *place, unsigned rank);
enum class Format { e4m3, bf16, f16, s8 };
void product(Format format, float *d, unsigned count, const std::uint32_t *registers, std::uint64_t a, std::uint64_t b,
             bool add, bool turned = false);
void product_of_warp(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);
void product_of_warp(double (&d)[4], const double *a, const double *b, unsigned depth);
void products_wait(unsigned pending);
}  // namespace emu

std::uint32_t shared_address(const void *place);
void barrier_init(unsigned long long *barrier, unsigned arrivals);
void barrier_init_fence(EMU_SITE);
void barrier_expect(unsigned long long *barrier, unsigned bytes);
void barrier_arrive(unsigned long long *barrier);
void barrier_wait(unsigned long long *barrier, unsigned parity, EMU_SITE);
void copy_tile(void *to, const TensorMap *map, unsigned long long *barrier, unsigned long long column,
               unsigned long long row);
void copy_tile_to_all(void *to, const TensorMap *map, unsigned long long *barrier, unsigned long long column,
                      unsigned long long row, unsigned blocks);
void copy_bulk(void *to, const void *from, unsigned bytes, unsigned long long *barrier);
void copy_16(void *to, const void *from, bool there);
void store_16(void *to, const unsigned (&words)[4]);
inline void load_16_if(bool there, const void *from, unsigned (&to)[4]) {
    if (there) std::memcpy(to, from, 16);
    else std::memset(to, 0, 16);
}
inline void load_16_once_if(bool there, const void *from, unsigned (&to)[4]) { load_16_if(there, from, to); }
void copy_commit();
void copy_wait_for(unsigned pending, const char *file, int line);
template <int PENDING> void copy_wait(EMU_SITE) { copy_wait_for(PENDING, file, line); }
void async_fence(EMU_SITE);
unsigned cluster_rank();
unsigned cluster_number();
void cluster_sync(EMU_SITE);
template <typename T> T *peer_shared(T *place, unsigned rank) { return (T *)emu::peer((void *)place, rank); }
void cluster_arrive(EMU_SITE);
void cluster_wait(EMU_SITE);
void peer_arrive(unsigned long long *barrier, unsigned rank);
void peer_store_16(void *place, const unsigned (&words)[4], unsigned long long *barrier, unsigned rank);
void some_sync(unsigned barrier, unsigned threads, EMU_SITE);
bool some_agree(unsigned barrier, unsigned threads, bool mine, EMU_SITE);
template <int REGISTERS> void more_registers() {}
template <int REGISTERS> void fewer_registers() {}
inline void wait_for_previous() {}
inline void let_next_begin() {}

inline unsigned forgotten(unsigned x) { return x; }
unsigned halves_of_e4m3(unsigned codes);
unsigned product_of_halves(unsigned a, unsigned b);
unsigned product_of_bf16s(unsigned a, unsigned b);

float float_of_half(std::uint32_t half);

unsigned long long operand_128(const void *place);
void mma_fence(EMU_SITE);
void mma_commit();
void mma_wait_for(unsigned pending, const char *file, int line);
template <int PENDING> void mma_wait(EMU_SITE) { mma_wait_for(PENDING, file, line); }
template <int COUNT> void mma_hold(float (&)[COUNT]) {}
template <int COUNT> void mma_hold(int (&)[COUNT]) {}
inline void mma_hold(unsigned (&)[4]) {}
unsigned bytes_by_nibbles(unsigned lower, unsigned upper, unsigned nibbles);

#define EMU_PRODUCT(NAME, FORMAT, ...)                                                                                \
    template <int COUNT> void NAME(float (&d)[COUNT], unsigned long long a, unsigned long long b) {                   \
        emu::product(emu::Format::FORMAT, d, COUNT, nullptr, a, b, __VA_ARGS__);                                      \
    }                                                                                                                 \
    template <int COUNT> void NAME(float (&d)[COUNT], const unsigned (&a)[4], unsigned long long b) {                 \
        emu::product(emu::Format::FORMAT, d, COUNT, a, 0, b, __VA_ARGS__);                                            \
    }
EMU_PRODUCT(mma_e4m3, e4m3, false)
EMU_PRODUCT(mma_e4m3_add, e4m3, true)
EMU_PRODUCT(mma_bf16, bf16, false)
EMU_PRODUCT(mma_bf16_add, bf16, true)
EMU_PRODUCT(mma_bf16_turned, bf16, false, true)
EMU_PRODUCT(mma_bf16_turned_add, bf16, true, true)
EMU_PRODUCT(mma_f16, f16, false)
EMU_PRODUCT(mma_f16_add, f16, true)
#undef EMU_PRODUCT
inline void mma_bf16_warp(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    emu::product_of_warp(d, a, b);
}
inline void mma_f64_warp(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
    emu::product_of_warp(d, a, b, 8);
}
inline void mma_f64_warp(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
    emu::product_of_warp(d, a, b, 16);
}
unsigned turned(unsigned pair);
unsigned bf16_pair(float lower, float upper);
inline float power_of_two(float x) { return std::exp2(x); }

// Whole numbers lie in the places of floats.
template <int COUNT> void mma_s8(int (&d)[COUNT], const unsigned (&a)[4], unsigned long long b) {
    emu::product(emu::Format::s8, (float *)d, COUNT, a, 0, b, false);
}
template <int COUNT> void mma_s8_add(int (&d)[COUNT], const unsigned (&a)[4], unsigned long long b) {
    emu::product(emu::Format::s8, (float *)d, COUNT, a, 0, b, true);
}
