// clang-format off: a mistake and the words that mark it stand on one line
// Kernels with one mistake each, and (with REPAIRED) the same without it. A line that says FINDS and a kernel's name
// is where the checker must report that kernel, and nowhere else. At the end: correct ones that look suspicious.
#include "planted.h"

// ---- bounds: 64 floats in `in` and `out`, a group of 96

KERNEL(store_past_end) {
  if (LANE EITHER(<=, <) n) out[LANE] = 1.0f;  // FINDS store_past_end
}

KERNEL(load_past_end) {
  if (LANE >= n) return;
  float v = in[LANE + EITHER(1, 0)];  // FINDS load_past_end
  out[LANE] = v;
}

KERNEL(load_before_start) {
  if (LANE >= n) return;
  float v = in[LANE - EITHER(1, 0)];  // FINDS load_before_start
  out[LANE] = v;
}

KERNEL(lds_overflow) {
  __shared__ float lds[64];
  EACH(lds)[LANE + EITHER(1, 0)] = in[LANE];  // FINDS lds_overflow
}

// Eight bytes, of which the first four are inside.
KERNEL(lds_straddles_end) {
  __shared__ float lds[EITHER(63, 64)];
  if (LANE < EITHER(63, 64)) EACH(lds)[LANE] = in[LANE];
  long long v;
  int at = 8 * LANE;
  barrier();
  if (LANE < 32) asm volatile("ds_read_b64 %0, %1\n " LDS_LOADS : "=&v"(v) : "v"(at));  // FINDS lds_straddles_end
}

typedef float float4 __attribute__((ext_vector_type(4)));
KERNEL(lds_atomic_misaligned) {
  __shared__ int lds[64 + 1];
  SHARED char *bytes = (SHARED char *)(SHARED int *)lds;
  ((volatile SHARED int *)lds)[LANE] = 0;
  if (LANE == 0) ((volatile SHARED int *)lds)[64] = 0;
  barrier();
  (void)__hip_atomic_fetch_add((SHARED int *)(bytes + 4 * LANE + EITHER(2, 0)), 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);  // FINDS lds_atomic_misaligned
}

KERNEL(lds_atomic_misaligned_wide) {
  __shared__ unsigned long long lds[64 + 1];
  SHARED char *bytes = (SHARED char *)(SHARED unsigned long long *)lds;
  ((volatile SHARED unsigned long long *)lds)[LANE] = 0;
  if (LANE == 0) ((volatile SHARED unsigned long long *)lds)[64] = 0;
  barrier();
  (void)__hip_atomic_fetch_add((SHARED unsigned long long *)(bytes + 8 * LANE + EITHER(4, 0)), 1ull, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);  // FINDS lds_atomic_misaligned_wide
}

// ---- variables of the code object: 16 floats and their like, each beside the next

#define __constant__ __attribute__((constant))
#define __device__ __attribute__((device))
#define CONSTANT __attribute__((address_space(4)))
#define SIXTEEN {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
struct item {
  float weight;
  int at;
  float bias;
};
__constant__ float first[16] = SIXTEEN, second[16] = SIXTEEN, third[16] = SIXTEEN;
__constant__ struct item items[5] = {{1, 2, 3}, {4, 5, 6}};
__constant__ unsigned char bytes24[24] = SIXTEEN, more_bytes[24] = SIXTEEN;
static __constant__ const int order[16] = SIXTEEN, order_back[16] = SIXTEEN;
__device__ __attribute__((visibility("default"))) int shown[16] = SIXTEEN, shown_too[16] = SIXTEEN;
__device__ int tally[16], tally_too[16];
__constant__ __attribute__((aligned(16))) float three[3] = {1, 2, 3}, five[5] = {1, 2, 3, 4, 5};
__constant__ float behind_five[16] = SIXTEEN;

KERNEL(variable_past_end) {
  out[LANE] = first[LANE & EITHER(31, 15)];  // FINDS variable_past_end
}

KERNEL(variable_before_start) {
  out[LANE] = second[(LANE & 15) - EITHER(1, 0)];  // FINDS variable_before_start
}

KERNEL(variable_counted_past) {
  float sum = 0;
#pragma clang loop unroll(disable)
  for (int i = 0; i < n / 4 + EITHER(1, 0); i++) sum += first[i];  // FINDS variable_counted_past
  out[LANE] = sum;
}

// What is wrong comes before what is right.
KERNEL(variable_counted_down) {
  float sum = 0;
#pragma clang loop unroll(disable)
  for (int i = n / 4 - EITHER(0, 1); i >= 0; i--) sum = sum * 2 + first[i];  // FINDS variable_counted_down
  out[LANE] = sum;
}

KERNEL(variable_counted_before) {
  float sum = 0;
#pragma clang loop unroll(disable)
  for (int i = n / 64 - EITHER(2, 1); i < 16; i++) sum += second[i];  // FINDS variable_counted_before
  out[LANE] = sum;
}

KERNEL(variable_of_structs) {
  out[LANE] = items[LANE % EITHER(6, 5)].bias;  // FINDS variable_of_structs
}

KERNEL(variable_of_bytes) {
  out[LANE] = (float)bytes24[LANE % EITHER(32, 24)];  // FINDS variable_of_bytes
}

KERNEL(variable_of_static) {
  out[LANE] = (float)order[LANE & EITHER(31, 15)];  // FINDS variable_of_static
}

KERNEL(variable_of_linker) {
  out[LANE] = (float)shown[LANE & EITHER(31, 15)];  // FINDS variable_of_linker
}

KERNEL(variable_stored) {
  if (LANE <= EITHER(16, 15)) tally[LANE] = LANE;  // FINDS variable_stored
}

KERNEL(variable_counted) {
  __hip_atomic_fetch_add(tally + (LANE & EITHER(31, 15)), 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);  // FINDS variable_counted
}

// The first wave stays within, the second without.
KERNEL(variable_of_waves) {
  out[LANE] = first[(LANE & 15) + EITHER(LANE / 32 * 16, 0)];  // FINDS variable_of_waves
}

typedef float float2 __attribute__((ext_vector_type(2), aligned(4)));
KERNEL(variable_straddled) {
  float2 v = *(const CONSTANT float2 *)(first + (LANE & EITHER(15, 7)));  // FINDS variable_straddled
  out[LANE] = v.x + v.y;
}

KERNEL(variable_selected) {
  const float *from = LANE & 1 ? first : third;
  out[LANE] = first[LANE & 15] + from[LANE & EITHER(31, 15)];  // FINDS variable_selected
}

KERNEL(variable_chosen) {
  const float *from = n > 5 ? first : third;
  asm volatile("" : "+s"(from));
  out[LANE] = third[LANE & 15] + from[LANE & EITHER(31, 15)];  // FINDS variable_chosen
}

KERNEL(variable_branched) {
  const float *from = third;
  if (LANE & 1) {
    from = first;
    asm volatile("v_nop" : "+v"(from));
  }
  out[LANE] = from[LANE & EITHER(31, 15)];  // FINDS variable_branched
}

static __device__ __attribute__((noinline)) float element(const float *from, int i) {
  return from[i];  // FINDS variable_passed
}
KERNEL(variable_passed) {
  out[LANE] = element(first, LANE & EITHER(31, 15));
}

// Through registers that move: lanes of a register and back, an exchange.
KERNEL(variable_moved) {
  const float *from = first;
  float v;
  asm volatile("s_mov_b64 s[76:77], %1\n v_writelane_b32 v77, s76, 5\n v_writelane_b32 v77, s77, 6\n"  // FINDS variable_moved
               "s_mov_b64 s[76:77], 0\n"
               "v_readlane_b32 s78, v77, 5\n v_readlane_b32 s79, v77, 6\n v_mov_b32 v76, s78\n v_mov_b32 v75, s79\n"
               "v_mov_b32 v74, 0\n v_swap_b32 v74, v76\n v_readfirstlane_b32 s76, v74\n v_readfirstlane_b32 s77, v75\n"
               "global_load_dword %0, %2, s[76:77]\n " LOADS(0)
               : "=&v"(v) : "s"(from), "v"(4 * (LANE & EITHER(31, 15)))
               : "s76", "s77", "s78", "s79", "v74", "v75", "v76", "v77");
  out[LANE] = v;
}

// ---- values that nobody wrote

KERNEL(lds_read_before_write) {
  __shared__ float lds[64];
  if (LANE < EITHER(32, 64)) lds[LANE] = in[LANE];
  barrier();
  float v = lds[63 - LANE];
  out[LANE] = v + 1.0f;  // FINDS lds_read_before_write
}

KERNEL(memory_never_written) {
  EITHER((void)0, tmp[LANE] = 1.0f);
  float v = tmp[LANE];
  out[LANE] = v * 2.0f;  // FINDS memory_never_written
}

// The host has written 7 bytes of it.
KERNEL(odd_bytes) {
  const unsigned char *bytes = (const unsigned char *)tmp;
  if (LANE < EITHER(8, 7)) out[LANE] = (float)bytes[LANE];  // FINDS odd_bytes
}

// The launch passes the first three arguments.
KERNEL(argument_missing) {
  if (LANE < EITHER(n, 64)) out[LANE] = 1.0f;  // FINDS argument_missing
}

KERNEL(undefined_branch) {
  float x;
  UNDEFINED(x);
  if (x > 0.5f) out[LANE] = 1.0f;  // FINDS undefined_branch
}

// Of packed values the sign of the upper half is undefined alone.
KERNEL(undefined_sign_of_half) {
  int x, most;
  UNDEFINED(x);
  asm("v_pk_max_i16 %0, %1, %1" : "=v"(most) : "v"(x & (int)0x80000000));
  if (most < 0) out[LANE] = 1.0f;  // FINDS undefined_sign_of_half
}

KERNEL(undefined_sign_of_low_half) {
  int x, most;
  UNDEFINED(x);
  asm("v_pk_max_i16 %0, %1, %1" : "=v"(most) : "v"(x & 0x8000));
  if ((short)most < 0) out[LANE] = 1.0f;  // FINDS undefined_sign_of_low_half
}

// M0 holds two numbers: one is added to the register that is read, the other to the one that is written.
#define THROUGH_M0 "s_mov_b32 m0, 0x20001\n v_mov_b32 v74, 0\n" EITHER("", "v_mov_b32 v77, 0\n")
KERNEL(undefined_relative) {
  int v;
  asm volatile(THROUGH_M0 "v_movrelsd_2_b32 v72, v76\n v_mov_b32 %0, v74" : "=v"(v) : : "v74", "v77");
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS undefined_relative
}

KERNEL(undefined_swapped) {
  int v;
  asm volatile(THROUGH_M0 "v_swaprel_b32 v72, v76\n v_mov_b32 %0, v74" : "=v"(v) : : "v74", "v77");
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS undefined_swapped
}

KERNEL(undefined_address) {
  int x;
  UNDEFINED(x);
  float *at = out + (x & 31);
  if (LANE == 0) *at = 1.0f;  // FINDS undefined_address
}

KERNEL(undefined_store) {
  float x;
  UNDEFINED(x);
  x = LANE < 8 ? x * 3.0f : 2.0f;
  out[LANE] = x;  // FINDS undefined_store
}

// What lanes exchange is data.
KERNEL(undefined_swizzled) {
  int x;
  UNDEFINED(x);
  out[LANE] = (float)__builtin_amdgcn_ds_swizzle(x, 0x041f);  // FINDS undefined_swizzled
}

KERNEL(undefined_permuted) {
  int x;
  UNDEFINED(x);
  out[LANE] = (float)__builtin_amdgcn_ds_bpermute(x & 124, LANE);  // FINDS undefined_permuted
}

KERNEL(undefined_sent) {
  int x;
  UNDEFINED(x);
  out[LANE] = (float)__builtin_amdgcn_ds_permute(LANE == 3 ? x & 124 : 4 * LANE, LANE);  // FINDS undefined_sent
}

// The lower half of a register is defined, and one bit more is used.
#define HALF "v_add_nc_u16 v77, 3, 4\n v_readfirstlane_b32 s77, v77\n"
KERNEL(undefined_half) {
  int v;
  asm volatile(HALF EITHER("s_bfe_u32 %0, s77, 0x80009", "s_bfe_u32 %0, s77, 0x80008") : "=s"(v) : : "v77", "s77", "scc");
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS undefined_half
}

KERNEL(undefined_sign) {
  int v;
  asm volatile(HALF "s_lshr_b32 s77, s77, 1\n" EITHER("s_sext_i32_i16 %0, s77", "s_sext_i32_i8 %0, s77")
               : "=s"(v) : : "v77", "s77", "scc");
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS undefined_sign
}

KERNEL(undefined_scalar) {
  int x;
  asm volatile(EITHER("s_mov_b32 %0, s77", "s_mov_b32 %0, 5") : "=s"(x) : : "s77");
  int v = x * 3 + 1;
  asm volatile("" : "+s"(v));
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS undefined_scalar
}

// A shift by 32 bits looks at the lowest five of the distance.
KERNEL(undefined_distance) {
  int v;
  asm volatile("s_and_b32 s77, s77, " EITHER("0x1f", "0xe0") "\n s_lshl_b32 %0, 1, s77" : "=s"(v) : : "s77", "scc");
  if (v == 7) __builtin_amdgcn_s_sleep(1);  // FINDS undefined_distance
}

// ---- races

KERNEL(missing_barrier) {
  __shared__ float lds[64];
  EACH(lds)[LANE] = 0.0f;
  barrier();
  EACH(lds)[LANE] = in[LANE];  // FINDS missing_barrier
  EITHER((void)0, barrier());
  out[LANE] = EACH(lds)[63 - LANE];  // FINDS missing_barrier
}

// As if 64 work-items were one wave. The value that was read too early is reported too.
KERNEL(wave64_assumed) {
  __shared__ float lds[64];
  EACH(lds)[LANE] = in[LANE];  // FINDS wave64_assumed
  EITHER((void)0, barrier());
  if (LANE < 32) EACH(lds)[LANE] = EACH(lds)[LANE] + EACH(lds)[LANE + 32];
  if (LANE < 16) EACH(lds)[LANE] = EACH(lds)[LANE] + EACH(lds)[LANE + 16];
  if (LANE < 16) out[LANE] = EACH(lds)[LANE];  // FINDS wave64_assumed
}

KERNEL(missing_second_barrier) {
  __shared__ float lds[64];
  float sum = 0.0f;
  for (int k = 0; k < 2; k++) {
    lds[LANE] = in[(LANE + k) & 63];  // FINDS missing_second_barrier
    barrier();
    sum += lds[63 - LANE];  // FINDS missing_second_barrier
    EITHER((void)0, barrier());
  }
  out[LANE] = sum;
}

// Equal values are no race (right_equal_stores); different ones are, be it in one byte, or by chance in no defined one.
KERNEL(stores_differ) {
  __shared__ int lds[64];
  ((volatile SHARED int *)(SHARED int *)lds)[5] = EITHER(LANE / 32, 7);  // FINDS stores_differ
}

KERNEL(stores_differ_in_a_byte) {
  __shared__ int lds[64];
  volatile SHARED char *bytes = (volatile SHARED char *)(SHARED int *)lds;
  if (LANE < 32) {
    ((volatile SHARED int *)(SHARED int *)lds)[5] = 0x01020304;
  } else {
    bytes[22] = EITHER(3, 2);  // FINDS stores_differ_in_a_byte
  }
}

KERNEL(stores_undefined) {
  __shared__ int lds[64];
  int x = 0;
  EITHER(asm volatile("v_mov_b32 %0, v77" : "=v"(x) : : "v77"), (void)0);
  ((volatile SHARED int *)(SHARED int *)lds)[0] = x;  // FINDS stores_undefined
}

// The one that stores another value stored last of them, so that its own store is what the record names.
KERNEL(store_after_equal_ones) {
  __shared__ float lds[64];
  EACH(lds)[0] = 5.0f;
  if (LANE >= 64) EACH(lds)[0] = EITHER(6.0f, 5.0f);  // FINDS store_after_equal_ones
}

// Only stores may be equal: who reads may have read what was there before.
KERNEL(equal_store_read) {
  __shared__ float lds[64];
  EACH(lds)[LANE] = 5.0f;
  barrier();
  float v = 0.0f;
  if (LANE < 32) v = EACH(lds)[LANE];
  EITHER((void)0, barrier());
  if (LANE >= 32) EACH(lds)[LANE - 32] = 5.0f;  // FINDS equal_store_read
  out[LANE] = v;
}

// The second wave reads too, and then the first one, whose read is on record, writes.
KERNEL(store_after_reads) {
  __shared__ float lds[64];
  EACH(lds)[LANE] = 5.0f;
  barrier();
  float v = EACH(lds)[0];
  __builtin_amdgcn_s_sleep(1);  // the other wave's turn
  EITHER((void)0, barrier());
  if (LANE == 0) EACH(lds)[0] = 6.0f;  // FINDS store_after_reads
  out[LANE] = v;
}

// Two lanes of one load share a dword, and the other wave stores into the half that was read first.
KERNEL(store_after_halves_read) {
  __shared__ short lds[64];
  volatile SHARED short *halves = (volatile SHARED short *)(SHARED short *)lds;
  halves[LANE] = 5;
  barrier();
  int v = LANE < 32 ? halves[LANE] : 0;
  EITHER((void)0, barrier());
  if (LANE == 32) halves[0] = 6;  // FINDS store_after_halves_read
  out[LANE] = (float)v;
}

// The same for those of one store, of which the other wave reads the first.
KERNEL(load_after_halves_stored) {
  __shared__ short lds[64];
  volatile SHARED short *halves = (volatile SHARED short *)(SHARED short *)lds;
  if (LANE < 32) halves[LANE] = 5;
  EITHER((void)0, barrier());
  int v = LANE == 32 ? halves[0] : 0;  // FINDS load_after_halves_stored
  out[LANE] = (float)v;
}

// Between groups nothing is silent.
KERNEL(groups_store_equal) {
  tmp[LANE + EITHER(0, 64 * GROUP)] = 1.0f;  // FINDS groups_store_equal
}

KERNEL(counter_race) {
  if (LANE) return;
#if REPAIRED
  __hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#else
  *counter = *counter + 1;  // FINDS counter_race
#endif
}

KERNEL(groups_overlap) {
  tmp[GROUP * EITHER(63, 64) + LANE] = in[LANE];  // FINDS groups_overlap
}

KERNEL(in_place_neighbour) {
  float v = EITHER(tmp, in)[(GROUP * 64 + LANE + 1) & EITHER(255, 63)];  // FINDS in_place_neighbour
  tmp[GROUP * 64 + LANE] = v + 1.0f;  // FINDS in_place_neighbour
}

// ---- barriers

KERNEL(divergent_waves) {
  EITHER(if (LANE < 32), ) __builtin_amdgcn_s_barrier();  // FINDS divergent_waves
}

KERNEL(divergent_lanes) {
  EITHER(if (LANE < 16), ) __builtin_amdgcn_s_barrier();  // FINDS divergent_lanes
}

// The halves of a split barrier: two waves of 32, where the target has it.
#ifdef __gfx1201__
#define SIGNAL asm volatile("s_barrier_signal -1" ::: "memory")
#define AWAIT asm volatile("s_barrier_wait -1" ::: "memory")

KERNEL(split_second_signal) {
  SIGNAL;
  EITHER(SIGNAL, AWAIT);  // FINDS split_second_signal
  EITHER((void)0, SIGNAL);
  AWAIT;
}

KERNEL(split_no_signal) {
  SIGNAL;
  AWAIT;
  if (LANE < 32) {
    EITHER((void)0, SIGNAL);
    AWAIT;  // FINDS split_no_signal
  } else {
    SIGNAL;
    EITHER(SIGNAL, (void)0);  // FINDS split_no_signal
    AWAIT;
  }
}

KERNEL(split_no_wait) {
  SIGNAL;
  EITHER((void)0, AWAIT);
}  // FINDS split_no_wait

// What lies between the halves is not behind the barrier.
KERNEL(split_early_read) {
  __shared__ float lds[64];
  EACH(lds)[LANE] = 0.0f;
  barrier();
  EACH(lds)[LANE] = in[LANE];  // FINDS split_early_read
  asm volatile(LDS_LOADS ::: "memory");
  SIGNAL;
  EITHER((void)0, AWAIT);
  out[LANE] = EACH(lds)[63 - LANE];  // FINDS split_early_read
  EITHER(AWAIT, (void)0);
}

KERNEL(right_split) {
  __shared__ float lds[64];
  EACH(lds)[LANE] = in[LANE];
  asm volatile(LDS_LOADS ::: "memory");
  SIGNAL;
  float v = in[LANE] * 2.0f;
  AWAIT;
  out[LANE] = v + EACH(lds)[63 - LANE];
}
#endif

// ---- waits: the compiler does not look into assembly, so nothing waits for these loads

KERNEL(missing_vmcnt) {
  float v;
  asm volatile("global_load_dword %0, %1, off\n" EITHER("s_nop 0", LOADS(0)) : "=&v"(v) : "v"(in + LANE));
  v = v + 1.0f;  // FINDS missing_vmcnt
  out[LANE] = v;
}

KERNEL(wait_too_short) {
  float a, b;
  asm volatile("global_load_dword %0, %2, off\n global_load_dword %1, %2, off offset:4\n" EITHER(
                   LOADS(1), LOADS(0))
               : "=&v"(a), "=&v"(b)
               : "v"(in + (LANE & 31)));
  a = a + 1.0f;
  out[LANE] = a;
  b = b + 1.0f;  // FINDS wait_too_short
  out[LANE] = b;
}

// A read of LDS is none of the loads that vmcnt counts.
KERNEL(wait_beside_lds) {
  __shared__ float lds[64];
  float a, b, c;
  EACH(lds)[LANE] = in[LANE];
  int at = LANE * 4;
  asm volatile(LDS_LOADS "\n global_load_dword %0, %3, off\n global_load_dword %1, %3, off offset:4\n"
               "ds_read_b32 %2, %4\n" EITHER(LOADS(1) "\n" LDS_LOADS, LOADS(0) "\n" LDS_LOADS)
               : "=&v"(a), "=&v"(b), "=&v"(c)
               : "v"(in + (LANE & 31)), "v"(at));
  a = a + c;
  out[LANE] = a;
  b = b + 1.0f;  // FINDS wait_beside_lds
  out[LANE] = b;
}

KERNEL(missing_lgkmcnt) {
  __shared__ float lds[64];
  float v;
  EACH(lds)[LANE] = in[LANE];
  int at = LANE * 4;
  asm volatile(LDS_LOADS "\n ds_read_b32 %0, %1\n" EITHER("s_nop 0", LDS_LOADS)
               : "=&v"(v)
               : "v"(at));
  v = v * 2.0f;  // FINDS missing_lgkmcnt
  out[LANE] = v;
}

KERNEL(missing_scalar_wait) {
  int v;
  asm volatile("s_load_dword %0, %1, 0x0\n" EITHER("s_nop 0", SCALAR_LOADS) : "=&s"(v) : "s"(in));
  v = v + 1;  // FINDS missing_scalar_wait
  asm volatile("" : "+s"(v));
  out[LANE] = (float)v;
}

KERNEL(overwritten_in_flight) {
  float v;
  asm volatile("global_load_dword %0, %1, off\n" EITHER("s_nop 0", LOADS(0)) "\n v_mov_b32 %0, 0"  // FINDS overwritten_in_flight
               : "=&v"(v)
               : "v"(in + LANE));
  asm volatile(LOADS(0));
  out[LANE] = v;
}

// ---- defined, and hardly ever meant: a wide pointer made of a narrow one, and values of lanes that are off

KERNEL(lint_cast_store) {
  __shared__ float lds[64 * 4 + 4];
  float4 v = {1.0f, 2.0f, 3.0f, in[LANE]};
  *(volatile SHARED float4 *)(SHARED float *)(lds + 4 * LANE + EITHER(1, 0)) = v;  // FINDS lint_cast_store
}

KERNEL(lint_cast_load) {
  __shared__ float lds[64 * 4 + 4];
  for (int i = LANE; i < 64 * 4 + 4; i += 64) EACH(lds)[i] = in[LANE];
  barrier();
  float4 v = *(volatile SHARED float4 *)(SHARED float *)(lds + 4 * LANE + EITHER(3, 0));  // FINDS lint_cast_load
  out[LANE] = v.x + v.w;
}

// Two places in one instruction.
KERNEL(lint_cast_pair) {
  __shared__ float lds[64 * 4];
  for (int i = 0; i < 4; i++) EACH(lds)[64 * i + LANE] = in[LANE];
  barrier();
  float4 v;
  int at = (int)(SHARED float *)lds + 16 * (LANE & 31) + EITHER(4, 0);
  asm volatile("ds_read2_b64 %0, %1 offset0:0 offset1:2\n " LDS_LOADS : "=&v"(v) : "v"(at));  // FINDS lint_cast_pair
  out[LANE] = v.x + v.w;
}

KERNEL(lint_dpp) {
  int v = LANE;
  asm volatile("" : "+v"(v));
  if (EITHER(LANE & 1, 1)) v = __builtin_amdgcn_update_dpp(0, v, 0xb1, 15, 15, true);  // FINDS lint_dpp
  out[LANE] = (float)v;
}

KERNEL(lint_bpermute) {
  int v = LANE;
  asm volatile("" : "+v"(v));
  if (EITHER(LANE < 16, 1)) v = __builtin_amdgcn_ds_bpermute(4 * (LANE ^ 16), v);  // FINDS lint_bpermute
  out[LANE] = (float)v;
}

KERNEL(lint_permlane) {
  int v = LANE;
  asm volatile("" : "+v"(v));
  if (EITHER(LANE < 16, 1)) v = __builtin_amdgcn_permlanex16(v, v, 0x76543210, 0xfedcba98, false, false);  // FINDS lint_permlane
  out[LANE] = (float)v;
}

#ifdef __gfx1100__
typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef float float8 __attribute__((ext_vector_type(8)));
KERNEL(lint_wmma) {
  half16 a;
  float8 c = {};
  for (int i = 0; i < 16; i++) a[i] = (_Float16)LANE;
  asm volatile("" : "+v"(a), "+v"(c));
  if (EITHER(LANE < 16, 1)) asm volatile("v_wmma_f32_16x16x16_f16 %0, %1, %1, %0" : "+v"(c) : "v"(a));  // FINDS lint_wmma
  out[LANE] = c[0];
}
#else
KERNEL(lint_wmma) {  // there is none: a swizzle
  int v = LANE;
  asm volatile("" : "+v"(v));
  if (EITHER(LANE & 1, 1)) v = __builtin_amdgcn_ds_swizzle(v, 0x041f);  // FINDS lint_wmma
  out[LANE] = (float)v;
}
#endif

// ---- nothing wrong here

// The address behind an array is that of the next.
KERNEL(right_from_end) {
  int i = 1 + (LANE & 15);
  asm volatile("" : "+v"(i));
  out[LANE] = (first + 16)[-i];
}

KERNEL(right_to_end) {
  const CONSTANT float *p = (const CONSTANT float *)first, *end = (const CONSTANT float *)first + 16;
  asm volatile("" : "+s"(end));
  float sum = 0;
#pragma clang loop unroll(disable)
  for (; p != end; p++) sum = sum * 2 + *p;
  out[LANE] = sum;
}

// Of an index that begins at 1 or at 16 the compiler makes an address in the array before.
KERNEL(right_from_one) {
  int i = 1 + (LANE & 15), k = 16 + (LANE & 15);
  asm volatile("" : "+v"(i), "+v"(k));
  out[LANE] = second[i - 1] + second[k - 16] + third[k - 16];
}

KERNEL(right_in_turn) {
  float sum = 0;
#pragma clang loop unroll(disable)
  for (int i = 0; i < n / 2; i++) sum += i < 16 ? first[i] : second[i - 16];
  for (int i = 0; i < n / 2; i++) sum += (LANE & 1 ? first : third)[i & 15];
  out[LANE] = sum;
}

// An address plus the distance to another is the other.
KERNEL(right_distance) {
  long long apart = (const CONSTANT char *)second - (const CONSTANT char *)first;
  asm volatile("" : "+s"(apart));
  out[LANE] = *(const CONSTANT float *)((const CONSTANT char *)first + apart + 4 * (LANE & 15)) + first[LANE & 15];
}

// So it is where the distances are the array's own.
extern "C" __constant__ __attribute__((visibility("hidden"))) const int distances[2];
KERNEL(right_distances) {
  asm volatile(".pushsection .rodata\n .p2align 2\n .globl distances\n .hidden distances\n .type distances, @object\n"
               "distances: .long first - distances, second - distances\n .size distances, 8\n .popsection");
  out[LANE] = *(const CONSTANT float *)((const CONSTANT char *)distances + distances[LANE & 1]);
}

typedef float float3 __attribute__((ext_vector_type(3)));
typedef float aligned3 __attribute__((ext_vector_type(3), aligned(8)));
// 12 aligned bytes come with the four behind them.
KERNEL(right_widened) {
  float3 v = *(const CONSTANT float3 *)three;
  aligned3 w = *(const CONSTANT aligned3 *)(five + 2);
  out[LANE] = v.x + v.y * v.z + w.x * w.y + w.z;
}

// A register that has held the address of one gets that of another from memory.
KERNEL(right_reused) {
  const float **kept = (const float **)tmp;
  kept[LANE] = second + (LANE & 15);
  float v, w;
  asm volatile("v_mov_b32 v76, %2\n v_mov_b32 v77, %3\n global_load_dword %0, v[76:77], off\n " LOADS(0) "\n"
               STORES "\n global_load_dwordx2 v[76:77], %4, off\n " LOADS(0) "\n"
               "global_load_dword %1, v[76:77], off\n " LOADS(0)
               : "=&v"(v), "=&v"(w)
               : "s"((int)(unsigned long)first), "s"((int)((unsigned long)first >> 32)), "v"(kept + LANE)
               : "v76", "v77", "memory");
  out[LANE] = v + w;
}

// The last group to arrive sums what all have left behind.
KERNEL(right_last_group) {
  __shared__ int arrived;
  tmp[GROUP * 64 + LANE] = in[LANE];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  barrier();
  if (LANE == 0) arrived = __hip_atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
  barrier();
  if (arrived != 3) return;
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  float sum = 0.0f;
  for (int g = 0; g < 4; g++) sum += tmp[g * 64 + LANE];
  out[LANE] = sum;
}

// Each group waits for the flag of the one before it.
KERNEL(right_chain) {
  if (LANE == 0) {
    while (GROUP && __hip_atomic_load(counter, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != GROUP) {
      __builtin_amdgcn_s_sleep(1);
    }
    tmp[GROUP] = GROUP ? tmp[GROUP - 1] + in[GROUP] : in[0];
    __hip_atomic_store(counter, GROUP + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
}

// The first load of the loop is a plain one.
KERNEL(right_swap_loop) {
  if (LANE & 31) return;
  int seen = *counter;
  while (!__hip_atomic_compare_exchange_strong(counter, &seen, seen + 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_AGENT)) {
  }
}

// The first wave looks at a flag in LDS, which the second then sets by an atomic operation that returns nothing.
KERNEL(right_flag) {
  __shared__ int flag;
  flag = 0;
  barrier();
  if (LANE == 0) {
    while (!__hip_atomic_load(&flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)) __builtin_amdgcn_s_sleep(1);
  } else if (LANE == 32) {
    (void)__hip_atomic_fetch_or(&flag, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  }
}

// GFX11's 16-bit instructions name halves: the low one has come, the high one is in flight.
KERNEL(right_halves) {
#ifdef __gfx1100__
  int v = 0, low;
  asm volatile("global_load_d16_b16 %0, %2, off\n global_load_d16_hi_b16 %0, %2, off\n " LOADS(1) "\n"
               "v_add_nc_u16 %1, %0, 1"
               : "+&v"(v), "=&v"(low)
               : "v"(in + LANE));
  asm volatile(LOADS(0) ::: "memory");
  out[LANE] = (float)((low & 0xffff) + v);
#endif
}

KERNEL(right_lock) {
  if (LANE) return;
  int expected = 0;
  while (!__hip_atomic_compare_exchange_strong(counter, &expected, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_AGENT)) {
    expected = 0;
    __builtin_amdgcn_s_sleep(1);
  }
  counter[1] = counter[1] + 1;
  __hip_atomic_store(counter, 0, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}

KERNEL(right_histogram) {
  __shared__ int bins[8];
  if (LANE < 8) bins[LANE] = 0;
  barrier();
  __hip_atomic_fetch_add(&bins[LANE & 7], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  barrier();
  if (LANE < 8) __hip_atomic_fetch_add(&counter[LANE], bins[LANE], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Bytes of one dword belong to different waves.
KERNEL(right_bytes) {
  unsigned char *bytes = (unsigned char *)tmp;
  bytes[(LANE & 31) * 2 + LANE / 32] = (unsigned char)LANE;
  barrier();
  out[LANE] = (float)bytes[LANE];
}

// Every wave leaves the same, as dwords, as bytes of one and as several at once.
KERNEL(right_equal_stores) {
  __shared__ float lds[64];
  __shared__ float4 wide[32];
  volatile SHARED char *bytes = (volatile SHARED char *)(SHARED float *)lds;
  EACH(lds)[LANE & 31] = 1.0f;
  bytes[4 * (LANE & 31) + 3] = 0x3f;
  *(volatile SHARED float4 *)(SHARED float4 *)(wide + (LANE & 31)) = (float4){1.0f, 2.0f, 3.0f, 4.0f};
  barrier();
  tmp[LANE] = EACH(lds)[LANE & 31];
}

// Structs of 17 bytes are copied with the widest loads and stores of LDS, at whatever byte they begin.
struct packed {
  char tag;
  float values[4];
} __attribute__((packed));
KERNEL(right_packed) {
  __shared__ struct packed lds[15];
  if (LANE < 15) lds[LANE] = ((const struct packed *)in)[LANE];
  barrier();
  if (LANE < 15) ((struct packed *)tmp)[LANE] = lds[14 - LANE];
}

// Compilers address an array that is read backwards with a negative register and an offset; the sum has 32 bits.
KERNEL(right_backwards) {
  __shared__ float lds[64];
  EACH(lds)[LANE] = in[LANE];
  barrier();
  float v;
  long long pair;
  int at = -4 * LANE;
  asm volatile("ds_read_b32 %0, %1 offset:252\n " LDS_LOADS : "=&v"(v) : "v"(at), "v"(EACH(lds)));
  if (LANE < 63)
    asm volatile("ds_read2_b32 %0, %1 offset0:62 offset1:63\n " LDS_LOADS : "=&v"(pair) : "v"(at));
  out[LANE] = v;
}

// The lower half of a register is all that anybody has written, and all that is used.
KERNEL(right_scalar_halves) {
  int a, b, c, d, sum;
  asm volatile(HALF "s_sext_i32_i16 %0, s77\n s_sub_i32 s78, s77, 1\n s_sext_i32_i8 s78, s78\n s_add_u32 %0, %0, s78\n"
               "s_mul_i32 s78, s77, 19\n s_and_b32 s78, s78, 0xffff\n s_add_u32 %0, %0, s78\n"
               "s_pack_ll_b32_b16 s78, s77, s77\n s_add_u32 %0, %0, s78\n s_bfe_u32 s78, s77, 0x80008\n"
               "s_add_u32 %0, %0, s78\n s_brev_b32 s78, s77\n s_lshr_b32 s78, s78, 16\n s_add_u32 %0, %0, s78\n"
               "s_lshl_b32 s78, 1, s77\n s_add_u32 %0, %0, s78\n s_lshl2_add_u32 s78, s77, 1\n"
               "s_bfe_i32 s78, s78, 0x100000\n s_add_u32 %0, %0, s78" : "=&s"(sum) : : "v77", "s77", "s78", "scc");
  if (sum == 7) __builtin_amdgcn_s_sleep(1);
  asm volatile(HALF "v_lshlrev_b32 %0, v77, %2\n v_lshl_or_b32 %1, %2, v77, 1" : "=&v"(a), "=&v"(b)
               : "v"(LANE) : "v77", "s77");
  asm volatile(HALF "v_lshlrev_b32 v77, 8, v77\n v_mul_u32_u24 %0, v77, 5\n v_mad_i32_i24 %1, v77, 5, 1"
               : "=&v"(c), "=&v"(d) : : "v77", "s77");
  out[LANE] = (float)(a + b + c + d);
}

// SCC says "not zero", which a bit that is defined and set settles.
KERNEL(right_not_zero) {
  int v;
  asm volatile(HALF "s_xor_b32 s78, s77, 1\n s_cselect_b32 %0, 1, 2\n s_lshl_b32 s78, s77, 3\n s_cselect_b32 s78, 4, 8\n"
               "s_add_u32 %0, %0, s78" : "=s"(v) : : "v77", "s77", "s78", "scc");
  if (v == 7) __builtin_amdgcn_s_sleep(1);
}

// Lanes exchange what is selected away afterwards, and choose at random whose value they do not use.
KERNEL(right_exchange) {
  int x;
  asm volatile("v_mov_b32 %0, v77" : "=v"(x) : : "v77");
  if (LANE < 16) x = LANE;
  int a = __builtin_amdgcn_ds_swizzle(x, 0x041f), b = __builtin_amdgcn_ds_bpermute(4 * (LANE ^ 1), x);
  int c = __builtin_amdgcn_ds_bpermute(4 * x, LANE), d = __builtin_amdgcn_ds_permute(4 * (LANE ^ 1), x);
  if (LANE < 16) out[LANE] = (float)(a + b + c + d);
}

// Undefined values that never matter: selected away, masked away, moved about.
KERNEL(right_undefined) {
  unsigned x;
  asm volatile("v_mov_b32 %0, v77" : "=v"(x) : : "v77");
  __shared__ unsigned lds[64];
  lds[LANE] = x;
  unsigned y = (lds[LANE] << 8 | 5u) & 0xffu;
  unsigned z = LANE < 64 ? y : x;
  if (z == 5u) out[LANE] = 1.0f;
}
