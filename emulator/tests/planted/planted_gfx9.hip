// clang-format off: a mistake and the words that mark it stand on one line
// As planted.hip, for what GFX9 has else: waves of 64 lanes, stores that are counted with loads, 64 KiB of LDS, SDWA, DPP
// over the whole wave, indexed registers and, on the cards that multiply matrices, accumulation registers.
#include "planted.h"

// ---- waves of 64

KERNEL(gfx9_missing_barrier) {
  __shared__ float lds[128];
  EACH(lds)[LANE] = 0.0f;
  barrier();
  EACH(lds)[LANE] = in[LANE & 63];  // FINDS gfx9_missing_barrier
  EITHER((void)0, barrier());
  tmp[LANE] = EACH(lds)[127 - LANE];  // FINDS gfx9_missing_barrier
}

// Its 64 work-items are one wave, which needs no barrier.
KERNEL(gfx9_right_wave) {
  __shared__ float lds[64];
  EACH(lds)[LANE] = in[LANE];
  out[LANE] = EACH(lds)[63 - LANE];
}

KERNEL(gfx9_half_barrier) {
  EITHER(if (LANE < 32), ) __builtin_amdgcn_s_barrier();  // FINDS gfx9_half_barrier
}

KERNEL(gfx9_lds_whole) {
  __shared__ float lds[16384];
  EACH(lds)[256 * LANE + EITHER(256, 255)] = in[LANE];  // FINDS gfx9_lds_whole
}

KERNEL(gfx9_undefined_upper) {
  float x;
  UNDEFINED(x);
  x = LANE < 32 ? 1.0f : x;
  if (x > 0.5f) out[LANE] = 1.0f;  // FINDS gfx9_undefined_upper
}

// To the second half of the wave from lane 31.
KERNEL(gfx9_undefined_broadcast) {
  int x;
  UNDEFINED(x);
  x = LANE == 31 ? x : 2;
  out[LANE] = (float)__builtin_amdgcn_update_dpp(0, x, 0x143, 15, 15, false);  // FINDS gfx9_undefined_broadcast
}

// From the lane before, of which lane 31 is off.
KERNEL(gfx9_lint_shift) {
  int v = LANE;
  asm volatile("" : "+v"(v));
  if (EITHER(LANE >= 32, 1)) v = __builtin_amdgcn_update_dpp(0, v, 0x138, 15, 15, true);  // FINDS gfx9_lint_shift
  out[LANE] = (float)v;
}

// ---- parts of registers, and registers that are chosen

KERNEL(gfx9_undefined_part) {
  int v;
  asm volatile("v_mov_b32 v76, 5\n"
               "v_mov_b32_sdwa v77, v76 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0\n"
               "v_readfirstlane_b32 s77, v77\n" EITHER("s_bfe_u32 %0, s77, 0x80007", "s_bfe_u32 %0, s77, 0x80008")
               : "=s"(v) : : "v76", "v77", "s77", "scc");
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS gfx9_undefined_part
}

KERNEL(gfx9_undefined_indexed) {
  int v;
  asm volatile("v_mov_b32 v76, 1\n" EITHER("", "v_mov_b32 v78, 1\n") "s_mov_b32 s77, 2\n"
               "s_set_gpr_idx_on s77, gpr_idx(SRC0)\n v_mov_b32 %0, v76\n s_set_gpr_idx_off"
               : "=v"(v) : : "v76", "v78", "s77");
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS gfx9_undefined_indexed
}

// Each group waits for the one before it; gfx942 looks at the flag past its caches by sc1, the others by glc.
KERNEL(gfx9_right_chain) {
  if (LANE) return;
  while (__hip_atomic_load(counter, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != GROUP) __builtin_amdgcn_s_sleep(1);
  tmp[0] = (float)GROUP;
  __hip_atomic_store(counter, GROUP + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}

// ---- waits: one store that is under way is one of those that vmcnt counts

KERNEL(gfx9_store_counts) {
  float v;
  asm volatile("global_load_dword %0, %1, off\n global_store_dword %2, %3, off\n " EITHER(LOADS(2), LOADS(1))
               : "=&v"(v) : "v"(in + LANE), "v"(tmp + LANE), "v"(1.0f) : "memory");
  v = v + 1.0f;  // FINDS gfx9_store_counts
  out[LANE] = v;
}

// ---- accumulation registers, products of matrices

#ifdef __gfx942__
KERNEL(gfx9_acc_undefined) {
  int v;
  asm volatile(EITHER("", "v_accvgpr_write_b32 a5, 1\n") "s_nop 4\n v_accvgpr_read_b32 %0, a5" : "=v"(v) : : "a5");
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS gfx9_acc_undefined
}

// Row 3 of A is undefined, and so is row 3 of the product.
typedef float float4 __attribute__((ext_vector_type(4)));
KERNEL(gfx9_acc_product) {
  float x;
  UNDEFINED(x);
  x = LANE == 3 ? x : 1.0f;
  float4 c = {};
  c = __builtin_amdgcn_mfma_f32_16x16x4f32(x, 1.0f, c, 0, 0, 0);
  tmp[LANE] = c[2];
  out[LANE] = c[3];  // FINDS gfx9_acc_product
}

// A result of eight passes that is read behind nine instructions in place of ten; and the addend of four passes that is
// overwritten behind two in place of three.
KERNEL(gfx9_acc_lint_result) {
  float x;
  asm volatile("v_mov_b32 v76, 0\n v_mov_b32 v77, 0\n v_mov_b32 v78, 0\n v_mov_b32 v79, 0\n s_nop 1\n"  // FINDS gfx9_acc_lint_result
               "v_mfma_f32_16x16x4_f32 v[76:79], %1, %1, v[76:79]\n" EITHER("s_nop 8\n", "s_nop 9\n") "v_mov_b32 %0, v77"
               : "=v"(x) : "v"(1.0f) : "v76", "v77", "v78", "v79");
  out[LANE] = x;
}

KERNEL(gfx9_acc_lint_addend) {
  asm volatile("v_mov_b32 v76, 0\n v_mov_b32 v77, 0\n v_mov_b32 v78, 0\n v_mov_b32 v79, 0\n s_nop 1\n"  // FINDS gfx9_acc_lint_addend
               "v_mfma_f32_16x16x16_f16 v[80:83], v[76:77], v[76:77], v[76:79]\n" EITHER("s_nop 1\n", "s_nop 2\n")
               "v_mov_b32 v77, 1" : : : "v76", "v77", "v78", "v79", "v80", "v81", "v82", "v83");
}
#endif
