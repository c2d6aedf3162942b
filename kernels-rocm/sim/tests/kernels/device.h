// The least that device code needs, so that kernels compile with clang alone.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#define DEVICE __attribute__((device)) static inline
#define SHARED __attribute__((shared)) static
#define KERNEL(threads) extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, threads))) void

DEVICE u32 thread() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 block() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u32 lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }

DEVICE void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

DEVICE u32 from_lane(u32 x, u32 lane) { return __builtin_amdgcn_ds_bpermute(4 * lane, x); }
