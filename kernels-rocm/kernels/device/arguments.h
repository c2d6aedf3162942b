// The arguments of a launch as one structure, read where the runtime put them, anew wherever this stands: kept from the
// beginning of a kernel to its end they would take more scalar registers than there are. `T` lays out what the kernel's
// parameters are, one behind the other.
#pragma once
#include "number.cuh"

template <typename T> DEVICE T arguments() {
    auto at = (const __attribute__((address_space(4))) T *)__builtin_amdgcn_kernarg_segment_ptr();
    asm volatile("" : "+s"(at));
    T all;
    __builtin_memcpy(&all, (const void *)at, sizeof all);
    return all;
}
