// An operand as kernels get it: the first byte of its codes and of its scales, and the units from one row
// of the last axis to the next. Offsets are 64-bit throughout.
#pragma once
#include "bf16.cuh"

struct View {
    u8 *codes;
    u8 *scales;
    u64 stride;
};

// First element of row `row` of a plain operand; its elements are aligned, its rows to nothing more.
template <typename T> DEVICE T *row_of(const View &view, u64 row) { return (T *)view.codes + row * view.stride; }

// Little-endian, at any address.
template <typename T> DEVICE void store_bytes(u8 *to, T value) {
    for (int i = 0; i < (int)sizeof(T); i++) to[i] = (u8)(value >> 8 * i);
}
template <typename T> DEVICE T load_bytes(const u8 *from) {
    T value = 0;
    for (int i = 0; i < (int)sizeof(T); i++) value |= (T)((T)from[i] << 8 * i);
    return value;
}

// COUNT words of 32 bits.
template <int COUNT> struct alignas(4 * COUNT) Words {
    u32 of[COUNT];
};
// At any address, in one go where that is a multiple of their size.
template <int COUNT> DEVICE Words<COUNT> load_words(const void *from) {
    if ((u64)from % sizeof(Words<COUNT>) == 0) return *(const Words<COUNT> *)from;
    Words<COUNT> words;
#pragma unroll
    for (int i = 0; i < COUNT; i++) words.of[i] = load_bytes<u32>((const u8 *)from + 4 * i);
    return words;
}
