// clang-format off: what planted.hip and planted_gfx9.hip share, written as they are
#ifndef PLANTED_H
#define PLANTED_H

#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
// volatile, and without a flat address
#define SHARED __attribute__((address_space(3)))
#define EACH(array) ((volatile SHARED float *)(SHARED float *)(array))
#if REPAIRED
#define EITHER(mistake, right) right
#else
#define EITHER(mistake, right) mistake
#endif
// GFX9 has 64 registers for a wave of the largest groups, and kernels name later ones.
#ifdef __GFX9__
#define SIZE __attribute__((amdgpu_flat_work_group_size(1, 128)))
#else
#define SIZE
#endif
#define KERNEL(name) extern "C" __global__ SIZE void name(float *out, const float *in, float *tmp, int *counter, int n)

// Waits of the target, in assembly: until so many vector loads are left, for LDS, for scalar loads, for stores.
#ifdef __gfx1201__
#define LOADS(left) "s_wait_loadcnt " #left
#define LDS_LOADS "s_wait_dscnt 0"
#define SCALAR_LOADS "s_wait_kmcnt 0"
#define STORES "s_wait_storecnt 0"
#else
#define LOADS(left) "s_waitcnt vmcnt(" #left ")"
#define LDS_LOADS "s_waitcnt lgkmcnt(0)"
#define SCALAR_LOADS LDS_LOADS
#define STORES "s_waitcnt_vscnt null, 0x0"
#endif

#define LANE ((int)__builtin_amdgcn_workitem_id_x())
#define GROUP ((int)__builtin_amdgcn_workgroup_id_x())

static __attribute__((device)) inline __attribute__((always_inline)) void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#define UNDEFINED(x) asm volatile(EITHER("v_mov_b32 %0, v77", "v_mov_b32 %0, 1.0") : "=v"(x) : : "v77")

#endif
