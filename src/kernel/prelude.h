/* The first include of every .hip file: what differs between vendors and targets, under one name.
 *
 * Freestanding: no vendor header is read. A kernel is written as
 *
 *     RDNA_KERNEL(256) fill_u32(struct fill_args a) { ... thread_id() ... group_id_x() ... }
 *
 * with a one-dimensional work-group whose size is the macro's argument, a power of two from 64 to 1024, and a grid of
 * up to three dimensions. Floating point is not contracted: write fma_f32 where one rounding is wanted, so that the
 * host twin can do the same. */
#ifndef RDNA_KERNEL_PRELUDE_H
#define RDNA_KERNEL_PRELUDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__AMDGCN__) && !defined(__NVPTX__)
#error "prelude.h is for GPU code; a host twin includes kernel/host.h"
#endif

#define RDNA_DEVICE static inline __attribute__((device, always_inline))
/* RDNA_DEVICE is static; this is for member functions that have an object. */
#define RDNA_MEMBER inline __attribute__((device, always_inline))
#define RDNA_SHARED __attribute__((shared))

#ifdef __AMDGCN__
#define RDNA_AMD 1
#if defined(__GFX9__)
#define WAVE_SIZE 64
#define RDNA_REGISTERS_(threads)
#else
#define WAVE_SIZE 32
/* gfx1100 has 1.5 times the registers of its relatives, which run the same code: a group of 1024 threads must fit in
 * theirs. */
#define RDNA_REGISTERS_(threads) , amdgpu_num_vgpr((threads) > 512 ? 128 : 256)
#endif
#define RDNA_KERNEL(threads)                                                       \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads), \
                            visibility("default") RDNA_REGISTERS_(threads))) void
#else
#define RDNA_NVIDIA 1
#define RDNA_KERNEL(threads) extern "C" __attribute__((global, launch_bounds(threads))) void
#define WAVE_SIZE 32
#endif

/* RDNA_KERNEL for which NVIDIA's compiler limits registers so that |groups| work-groups fit on a multiprocessor at
 * once. */
#ifdef RDNA_AMD
#define RDNA_KERNEL_RESIDENT(threads, groups) RDNA_KERNEL(threads)
#else
#define RDNA_KERNEL_RESIDENT(threads, groups) extern "C" __attribute__((global, launch_bounds(threads, groups))) void
#endif

/* Declares |bytes| of group memory named |name|, at a multiple of 16 bytes; at most once in a kernel. NVIDIA's
 * assembler refuses a declaration of more than 48 KiB, so there the memory is requested at launch: the kernel's entry
 * in its family's list says how much. */
#ifdef RDNA_AMD
#define GROUP_MEMORY(name, bytes) RDNA_SHARED __attribute__((aligned(16))) uint8_t name[bytes]
#else
#define GROUP_MEMORY(name, bytes)                \
  extern RDNA_SHARED uint4 rdna_group_memory_[]; \
  uint8_t *const name = (uint8_t *)rdna_group_memory_
#endif

/* Types. Vectors are indexed as arrays or by .x .y .z .w; comparison gives a mask vector. */
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef int32_t int2 __attribute__((ext_vector_type(2)));
typedef int32_t int4 __attribute__((ext_vector_type(4)));
typedef int32_t int8 __attribute__((ext_vector_type(8)));
typedef uint32_t uint2 __attribute__((ext_vector_type(2)));
typedef uint32_t uint4 __attribute__((ext_vector_type(4)));
typedef _Float16 half;
typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
typedef _Float16 half16 __attribute__((ext_vector_type(16)));

template <typename to, typename from>
RDNA_DEVICE to bits_as(from v) {
  static_assert(sizeof(to) == sizeof(from), "bits_as keeps the size");
  return __builtin_bit_cast(to, v);
}

/* Where this thread is. */
#ifdef RDNA_AMD
RDNA_DEVICE uint32_t thread_id(void) { return __builtin_amdgcn_workitem_id_x(); }
RDNA_DEVICE uint32_t group_id_x(void) { return __builtin_amdgcn_workgroup_id_x(); }
RDNA_DEVICE uint32_t group_id_y(void) { return __builtin_amdgcn_workgroup_id_y(); }
RDNA_DEVICE uint32_t group_id_z(void) { return __builtin_amdgcn_workgroup_id_z(); }
/* The dispatch packet counts threads, not groups. A group has a power of two of them along x, and one along y and z. */
RDNA_DEVICE uint32_t group_count_x(void) {
  return __builtin_amdgcn_grid_size_x() >> __builtin_ctz(__builtin_amdgcn_workgroup_size_x());
}
RDNA_DEVICE uint32_t group_count_y(void) { return __builtin_amdgcn_grid_size_y(); }
RDNA_DEVICE uint32_t group_count_z(void) { return __builtin_amdgcn_grid_size_z(); }
#else
RDNA_DEVICE uint32_t thread_id(void) { return __nvvm_read_ptx_sreg_tid_x(); }
RDNA_DEVICE uint32_t group_id_x(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }
RDNA_DEVICE uint32_t group_id_y(void) { return __nvvm_read_ptx_sreg_ctaid_y(); }
RDNA_DEVICE uint32_t group_id_z(void) { return __nvvm_read_ptx_sreg_ctaid_z(); }
RDNA_DEVICE uint32_t group_count_x(void) { return __nvvm_read_ptx_sreg_nctaid_x(); }
RDNA_DEVICE uint32_t group_count_y(void) { return __nvvm_read_ptx_sreg_nctaid_y(); }
RDNA_DEVICE uint32_t group_count_z(void) { return __nvvm_read_ptx_sreg_nctaid_z(); }
#endif
RDNA_DEVICE uint32_t lane_id(void) { return thread_id() & (WAVE_SIZE - 1); }
RDNA_DEVICE uint32_t wave_uniform_u32(uint32_t v); /* |v|, known to be the same in all lanes, in a scalar register */
RDNA_DEVICE uint32_t wave_id(void) { return wave_uniform_u32(thread_id() / WAVE_SIZE); }

/* Barriers. group_barrier: all threads of the group have arrived and see each other's LDS writes; loads from global
 * memory may stay in flight across it. group_barrier_global: they see each other's global writes too.
 * wave_barrier: the lanes of a wave see each other's writes. Every thread of the group (wave) must reach it. */
#ifdef RDNA_AMD
RDNA_DEVICE void group_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  /* Assembly, since the compiler's own barrier also waits for all global memory on some targets, and since clang 19
   * omits the fence's wait for LDS on gfx12. */
#if defined(__GFX12__)
  asm volatile("s_wait_dscnt 0x0\n\ts_barrier_signal -1\n\ts_barrier_wait -1" ::: "memory");
#else
  asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory");
#endif
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}
RDNA_DEVICE void group_barrier_global(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
RDNA_DEVICE void wave_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
#else
RDNA_DEVICE void group_barrier(void) { __syncthreads(); }
RDNA_DEVICE void group_barrier_global(void) { __syncthreads(); }
RDNA_DEVICE void wave_barrier(void) { __nvvm_bar_warp_sync(0xffffffffu); }
#endif

/* Shuffles: all lanes of the wave must be active. */
#ifdef RDNA_AMD
RDNA_DEVICE uint32_t wave_uniform_u32(uint32_t v) { return __builtin_amdgcn_readfirstlane(v); }
RDNA_DEVICE uint32_t wave_shuffle_u32(uint32_t v, uint32_t lane) { return __builtin_amdgcn_ds_bpermute(lane * 4, v); }
RDNA_DEVICE uint32_t wave_shuffle_xor_u32(uint32_t v, uint32_t mask) {
  /* A constant mask folds to one case: data-parallel primitives within 16 lanes (ISA guides, "DPP"), the LDS
   * crossbar beyond. */
  switch (mask) {
    case 1:
      return __builtin_amdgcn_mov_dpp(v, 0xb1, 0xf, 0xf, true); /* quad_perm 1,0,3,2 */
    case 2:
      return __builtin_amdgcn_mov_dpp(v, 0x4e, 0xf, 0xf, true); /* quad_perm 2,3,0,1 */
#if WAVE_SIZE == 32
    case 4:
      return __builtin_amdgcn_mov_dpp(v, 0x164, 0xf, 0xf, true); /* row_xmask:4 */
    case 8:
      return __builtin_amdgcn_mov_dpp(v, 0x168, 0xf, 0xf, true); /* row_xmask:8 */
    case 16: {
      /* clang 19 moves this instruction below a branch that disables the source lanes; the empty asm, which reads its
       * result, keeps it above */
      uint32_t other = __builtin_amdgcn_permlanex16(v, v, 0x76543210, 0xfedcba98, false, false);
      __asm__ volatile("" : "+v"(other));
      return other;
    }
#else
    case 4:
      return __builtin_amdgcn_ds_swizzle(v, 4 << 10 | 0x1f);
    case 8:
      return __builtin_amdgcn_mov_dpp(v, 0x128, 0xf, 0xf, true); /* row_ror:8 */
    case 16:
      return __builtin_amdgcn_ds_swizzle(v, 16 << 10 | 0x1f);
#endif
    default:
      return wave_shuffle_u32(v, lane_id() ^ mask);
  }
}
RDNA_DEVICE uint64_t wave_ballot(bool v) {
#if WAVE_SIZE == 32
  return __builtin_amdgcn_ballot_w32(v);
#else
  return __builtin_amdgcn_ballot_w64(v);
#endif
}
#else
RDNA_DEVICE uint32_t wave_uniform_u32(uint32_t v) { return v; }
RDNA_DEVICE uint32_t wave_shuffle_u32(uint32_t v, uint32_t lane) {
  return __nvvm_shfl_sync_idx_i32(0xffffffffu, v, lane, 31);
}
RDNA_DEVICE uint32_t wave_shuffle_xor_u32(uint32_t v, uint32_t mask) {
  return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, mask, 31);
}
RDNA_DEVICE uint64_t wave_ballot(bool v) { return __nvvm_vote_ballot_sync(0xffffffffu, v); }
#endif
RDNA_DEVICE bool wave_any(bool v) { return wave_ballot(v) != 0; }
RDNA_DEVICE bool wave_all(bool v) { return wave_ballot(!v) == 0; }
RDNA_DEVICE float wave_shuffle_f32(float v, uint32_t lane) {
  return bits_as<float>(wave_shuffle_u32(bits_as<uint32_t>(v), lane));
}
RDNA_DEVICE float wave_shuffle_xor_f32(float v, uint32_t mask) {
  return bits_as<float>(wave_shuffle_xor_u32(bits_as<uint32_t>(v), mask));
}

/* Arithmetic with the hardware's own instructions. */
RDNA_DEVICE float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
/* A NaN in either operand gives NaN (IEEE 754-2019 maximum), unlike fmaxf; the host twin writes it the same. */
#ifdef RDNA_NVIDIA
RDNA_DEVICE float max_f32(float a, float b) {
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
RDNA_DEVICE float min_f32(float a, float b) {
  float c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
#else
RDNA_DEVICE float max_f32(float a, float b) { return a > b || a != a ? a : b; }
RDNA_DEVICE float min_f32(float a, float b) { return a < b || a != a ? a : b; }
#endif
RDNA_DEVICE uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
RDNA_DEVICE uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
RDNA_DEVICE float abs_f32(float a) { return __builtin_fabsf(a); }
RDNA_DEVICE float sqrt_f32(float a) { return __builtin_sqrtf(a); } /* correctly rounded */
RDNA_DEVICE float infinity_f32(void) { return __builtin_inff(); }
/* Right to about 1 ulp; subnormal inputs or results may become zero. For results with a tolerance. */
#ifdef RDNA_AMD
RDNA_DEVICE float fast_exp2(float v) { return __builtin_amdgcn_exp2f(v); }
RDNA_DEVICE float fast_log2(float v) { return __builtin_amdgcn_logf(v); }
RDNA_DEVICE float fast_rsqrt(float v) { return __builtin_amdgcn_rsqf(v); }
RDNA_DEVICE float fast_rcp(float v) { return __builtin_amdgcn_rcpf(v); }
#else
RDNA_DEVICE float fast_exp2(float v) { return __nvvm_ex2_approx_ftz_f(v); }
RDNA_DEVICE float fast_log2(float v) { return __nvvm_lg2_approx_ftz_f(v); }
RDNA_DEVICE float fast_rsqrt(float v) { return __nvvm_rsqrt_approx_ftz_f(v); }
RDNA_DEVICE float fast_rcp(float v) { return __nvvm_rcp_approx_ftz_f(v); }
#endif
RDNA_DEVICE float fast_exp(float v) { return fast_exp2(v * 1.4426950408889634f); }

/* c + sum of the four signed byte products. */
RDNA_DEVICE int32_t dot4_i8(int32_t a, int32_t b, int32_t c) {
#if defined(RDNA_NVIDIA)
  int32_t d;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
#elif defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || \
    defined(__gfx1011__) || defined(__gfx1012__) || defined(__gfx1030__)
  return __builtin_amdgcn_sdot4(a, b, c, false);
#else
  for (int i = 0; i < 32; i += 8) c += (int32_t)(int8_t)(a >> i) * (int32_t)(int8_t)(b >> i);
  return c;
#endif
}
/* c + a.x * b.x + a.y * b.y in f32; products exact, sums rounded in an order that differs between targets. */
RDNA_DEVICE float dot2_f16(half2 a, half2 b, float c) {
#if defined(__GFX11__) || defined(__GFX12__) || defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || \
    defined(__gfx942__) || defined(__gfx1011__) || defined(__gfx1012__) || defined(__gfx1030__)
  return __builtin_amdgcn_fdot2(a, b, c, false);
#else
  return fma_f32((float)a.y, (float)b.y, fma_f32((float)a.x, (float)b.x, c));
#endif
}

/* Atomics on LDS or global memory, of relaxed order, in the scope of the device. They return the old value. */
#ifdef RDNA_AMD
RDNA_DEVICE float atomic_add_f32(float *p, float v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
RDNA_DEVICE uint32_t atomic_add_u32(uint32_t *p, uint32_t v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
RDNA_DEVICE uint32_t atomic_max_u32(uint32_t *p, uint32_t v) {
  return __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
RDNA_DEVICE uint32_t atomic_or_u32(uint32_t *p, uint32_t v) {
  return __hip_atomic_fetch_or(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
/* Stores |v| if *p is |expected|. */
RDNA_DEVICE uint32_t atomic_swap_if_u32(uint32_t *p, uint32_t expected, uint32_t v) {
  __hip_atomic_compare_exchange_strong(p, &expected, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
#else
RDNA_DEVICE float atomic_add_f32(float *p, float v) { return __nvvm_atom_add_gen_f(p, v); }
RDNA_DEVICE uint32_t atomic_add_u32(uint32_t *p, uint32_t v) { return __nvvm_atom_add_gen_i((int *)p, (int)v); }
RDNA_DEVICE uint32_t atomic_max_u32(uint32_t *p, uint32_t v) { return __nvvm_atom_max_gen_ui(p, v); }
RDNA_DEVICE uint32_t atomic_or_u32(uint32_t *p, uint32_t v) { return __nvvm_atom_or_gen_i((int *)p, (int)v); }
RDNA_DEVICE uint32_t atomic_swap_if_u32(uint32_t *p, uint32_t expected, uint32_t v) {
  return __nvvm_atom_cas_gen_i((int *)p, (int)expected, (int)v);
}
#endif

/* 16-bit floats as they lie in memory. */
RDNA_DEVICE float f16_to_f32(uint16_t v) { return (float)bits_as<half>(v); }
/* Rounds to f16. clang 19 folds a product and its rounding into one v_fma_mixlo_f16 that adds +0, which makes 0 of -0;
 * the empty asm hides the product, so that the rounding is a separate instruction. */
RDNA_DEVICE half round_to_half(float v) {
#ifdef RDNA_AMD
  __asm__("" : "+v"(v));
#endif
  return (half)v;
}
RDNA_DEVICE uint16_t f32_to_f16(float v) {
  return bits_as<uint16_t>(round_to_half(v));
} /* to nearest even; overflow is inf */
RDNA_DEVICE float bf16_to_f32(uint16_t v) { return bits_as<float>((uint32_t)v << 16); }
RDNA_DEVICE uint16_t f32_to_bf16(float v) { /* to nearest even; a NaN stays one */
  uint32_t u = bits_as<uint32_t>(v);
  uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return (uint16_t)(v != v ? u >> 16 | 0x40 : rounded);
}
RDNA_DEVICE float2 f16x2_to_f32(uint32_t v) {
  half2 h = bits_as<half2>(v);
  return float2{(float)h.x, (float)h.y};
}
RDNA_DEVICE uint32_t f32_to_f16x2(float low, float high) {
#ifdef RDNA_NVIDIA
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return bits_as<uint32_t>(half2{round_to_half(low), round_to_half(high)});
#endif
}
RDNA_DEVICE float2 bf16x2_to_f32(uint32_t v) {
  return float2{bits_as<float>(v << 16), bits_as<float>(v & 0xffff0000u)};
}
RDNA_DEVICE uint32_t f32_to_bf16x2(float low, float high) {
#ifdef RDNA_NVIDIA
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return (uint32_t)f32_to_bf16(low) | (uint32_t)f32_to_bf16(high) << 16;
#endif
}

/* Returns |p| as a pointer whose type says that it is to global memory: *global(p), global(p)[i]. Needed on AMD where
 * clang 19 cannot infer it from the kernel's arguments: where a pointer is selected from two (one of them NULL, say),
 * read through a reference that a lambda has captured, or kept in a struct in memory. It then emits flat accesses,
 * which also occupy the LDS unit, are waited for on both counters, and take no scalar base address. tools/lean_table.py
 * lists the kernels that have any. */
#ifdef RDNA_AMD
#define RDNA_GLOBAL __attribute__((address_space(1)))
#else
#define RDNA_GLOBAL
#endif
template <typename value>
RDNA_DEVICE RDNA_GLOBAL value *global(value *p) {
  return (RDNA_GLOBAL value *)p;
}

/* Vector access; the address must be a multiple of the vector's size. load_streaming: of what will not be read again
 * soon. */
template <typename vector>
RDNA_DEVICE vector load_as(const void *p) {
  return *(const vector *)p;
}
template <typename vector>
RDNA_DEVICE void store_as(void *p, vector v) {
  *(vector *)p = v;
}
template <typename vector>
RDNA_DEVICE vector load_global(const void *p) {
  return *global((const vector *)p);
}
template <typename vector>
RDNA_DEVICE void store_global(void *p, vector v) {
  *global((vector *)p) = v;
}
template <typename vector>
RDNA_DEVICE vector load_streaming(const void *p) {
  return __builtin_nontemporal_load((const vector *)p);
}
/* Returns |v| as a value that the compiler must take for another: what was computed from it before is computed again,
 * rather than kept in registers. See "Values again" in src/math/README.md. */
RDNA_DEVICE float again(float v) {
#ifdef RDNA_AMD
  __asm__ volatile("" : "+v"(v));
#else
  __asm__ volatile("" : "+f"(v));
#endif
  return v;
}
RDNA_DEVICE uint4 again(uint4 v) {
  uint32_t x = v.x, y = v.y, z = v.z, w = v.w;
#ifdef RDNA_AMD
  __asm__ volatile("" : "+v"(x), "+v"(y), "+v"(z), "+v"(w));
#else
  __asm__ volatile("" : "+r"(x), "+r"(y), "+r"(z), "+r"(w));
#endif
  return uint4{x, y, z, w};
}
RDNA_DEVICE float4 load_f32x4(const float *p) { return load_as<float4>(p); }
RDNA_DEVICE void store_f32x4(float *p, float4 v) { store_as<float4>(p, v); }
RDNA_DEVICE uint4 load_u32x4(const void *p) { return load_as<uint4>(p); }
RDNA_DEVICE void store_u32x4(void *p, uint4 v) { store_as<uint4>(p, v); }

#ifdef RDNA_NVIDIA
/* Returns the shared-memory address of |p|. */
RDNA_DEVICE uint32_t shared_address(const void *p) {
  return (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) void *)p;
}
/* Starts an asynchronous copy of 16 bytes from global to shared memory, or of zeros unless |valid|. In flight until
 * this thread has called copy_to_shared_wait; other threads see it after a barrier. */
RDNA_DEVICE void copy_to_shared_16(uint32_t to, const void *from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
/* Loads 16 bytes by one access; of a plain load the compiler may make several, one for each use of a part. */
RDNA_DEVICE uint4 load_shared_16(uint32_t from) {
  uint32_t x, y, z, w;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(from) : "memory");
  return uint4{x, y, z, w};
}
RDNA_DEVICE void copy_to_shared_wait(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif

/* Reductions over the wave; all lanes get the result. */
#define RDNA_WAVE_REDUCE_(name, type, shuffle, combine)                      \
  RDNA_DEVICE type name(type v) {                                            \
    _Pragma("unroll") for (uint32_t mask = 1; mask < WAVE_SIZE; mask *= 2) { \
      type other = shuffle(v, mask);                                         \
      v = combine;                                                           \
    }                                                                        \
    return v;                                                                \
  }
RDNA_WAVE_REDUCE_(wave_sum_f32, float, wave_shuffle_xor_f32, v + other)
RDNA_WAVE_REDUCE_(wave_max_f32, float, wave_shuffle_xor_f32, max_f32(v, other))
RDNA_WAVE_REDUCE_(wave_min_f32, float, wave_shuffle_xor_f32, min_f32(v, other))
RDNA_WAVE_REDUCE_(wave_sum_u32, uint32_t, wave_shuffle_xor_u32, v + other)
RDNA_WAVE_REDUCE_(wave_max_u32, uint32_t, wave_shuffle_xor_u32, max_u32(v, other))
RDNA_WAVE_REDUCE_(wave_min_u32, uint32_t, wave_shuffle_xor_u32, min_u32(v, other))
#undef RDNA_WAVE_REDUCE_

/* Reductions over the group of |threads|; all threads get the result and all must call. |scratch| is
 * RDNA_SHARED of threads / WAVE_SIZE values (GROUP_SCRATCH(threads)) and may be used again at once. */
#define GROUP_SCRATCH(threads) ((threads) / WAVE_SIZE)
#define RDNA_GROUP_REDUCE_(name, type, wave_reduce, identity)                     \
  template <int threads>                                                          \
  RDNA_DEVICE type name(type v, type *scratch) {                                  \
    constexpr int waves = threads / WAVE_SIZE;                                    \
    static_assert(threads % 64 == 0 && waves <= WAVE_SIZE, "threads of a group"); \
    v = wave_reduce(v);                                                           \
    if (waves == 1) return v;                                                     \
    group_barrier();                                                              \
    if (lane_id() == 0) scratch[wave_id()] = v;                                   \
    group_barrier();                                                              \
    return wave_reduce(lane_id() < waves ? scratch[lane_id()] : (type)identity);  \
  }
RDNA_GROUP_REDUCE_(group_sum_f32, float, wave_sum_f32, 0)
RDNA_GROUP_REDUCE_(group_max_f32, float, wave_max_f32, -__builtin_inff())
RDNA_GROUP_REDUCE_(group_min_f32, float, wave_min_f32, __builtin_inff())
RDNA_GROUP_REDUCE_(group_sum_u32, uint32_t, wave_sum_u32, 0)
RDNA_GROUP_REDUCE_(group_max_u32, uint32_t, wave_max_u32, 0)
RDNA_GROUP_REDUCE_(group_min_u32, uint32_t, wave_min_u32, 0xffffffffu)
#undef RDNA_GROUP_REDUCE_

#endif
