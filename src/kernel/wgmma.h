/* NVIDIA's asynchronous matrix products (wgmma), of compute capability 9.0 alone: 4 waves, 128 threads, multiply 64
 * rows of A by up to 256 columns of B in shared memory, and may do something else meanwhile.
 *
 * An operand begins at a multiple of 1,024 bytes of shared memory and is made of lines of 128 bytes, 64 values.
 *
 *     along k     a line is 64 values of k of one row of A (column of B); one line for each row
 *     across k    a line is 64 rows of A (columns of B) at one k; a block of 64 rows has one line for each k, and
 *                 blocks begin |block| bytes from one another
 *
 * Within a line, 16-byte chunk c of line r lies at place c ^ (r & 7) (the 128-byte swizzle), to avoid bank conflicts:
 *
 *     line 0   c0 c1 c2 c3 c4 c5 c6 c7
 *     line 1   c1 c0 c3 c2 c5 c4 c7 c6
 *     line 2   c2 c3 c0 c1 c6 c7 c4 c5
 *
 * Wave w of the four has rows 16 w to 16 w + 15 of the sums, each 16 columns in a mma_acc with the layout of mma.h.
 *
 * Source: NVIDIA's PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". */
#ifndef RDNA_KERNEL_WGMMA_H
#define RDNA_KERNEL_WGMMA_H

#include "kernel/mma.h"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define RDNA_WGMMA 1

/* GROUP_MEMORY at a multiple of 1,024 bytes. */
#define WGMMA_MEMORY(name, bytes)                                               \
  extern RDNA_SHARED __attribute__((aligned(1024))) uint4 rdna_wgmma_memory_[]; \
  uint8_t *const name = (uint8_t *)rdna_wgmma_memory_

/* Makes what this thread wrote to shared memory, or has waited for, visible to products that start after the next
 * barrier.
 */
RDNA_DEVICE void wgmma_publish(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* Call before the first product, and after any other use of the registers that hold its sums or operand. */
RDNA_DEVICE void wgmma_begin(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/* wgmma_commit ends a batch of products. wgmma_wait waits until at most |pending| batches are in flight. */
RDNA_DEVICE void wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
RDNA_DEVICE void wgmma_wait(void) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
/* Keeps the compiler from moving reads of |c|, which products may still be adding to, to before this place. */
template <int tiles>
RDNA_DEVICE void wgmma_hold(mma_acc (&c)[tiles]) {
#pragma unroll
  for (int i = 0; i < tiles; i++)
#pragma unroll
    for (int v = 0; v < MMA_VALUES; v++) {
      float one = c[i][v];
      asm volatile("" : "+f"(one)::"memory");
      c[i][v] = one;
    }
}

/* Makes the descriptor of an operand at shared address |at|. The next 16 values of k are 32 bytes further along k, 16
 * lines further across k. */
RDNA_DEVICE uint64_t wgmma_operand(uint32_t at, uint32_t block) {
  constexpr uint32_t high =
      1u << 30 | 1024 >> 4; /* bit 62: the 128-byte swizzle; 1,024 bytes per 8 lines, in units of 16 */
  return (uint64_t)high << 32 | ((block >> 4) << 16 | (at >> 4));
}
RDNA_DEVICE uint64_t wgmma_along_k(uint32_t at) { return wgmma_operand(at, 16); }
RDNA_DEVICE uint64_t wgmma_across_k(uint32_t at, uint32_t block) { return wgmma_operand(at, block); }

#define RDNA_WGMMA_32_                                                     \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define RDNA_WGMMA_64_                                                               \
  RDNA_WGMMA_32_                                                                     \
  ", "                                                                               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define RDNA_WGMMA_128_                                                                          \
  RDNA_WGMMA_64_                                                                                 \
  ", "                                                                                           \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define RDNA_WGMMA_F8_(f, i) \
  f(d[i]), f(d[i + 1]), f(d[i + 2]), f(d[i + 3]), f(d[i + 4]), f(d[i + 5]), f(d[i + 6]), f(d[i + 7])
#define RDNA_WGMMA_F32_(f, i) \
  RDNA_WGMMA_F8_(f, i), RDNA_WGMMA_F8_(f, i + 8), RDNA_WGMMA_F8_(f, i + 16), RDNA_WGMMA_F8_(f, i + 24)
#define RDNA_WGMMA_LIST_32_(f) RDNA_WGMMA_F32_(f, 0)
#define RDNA_WGMMA_F64_(f) RDNA_WGMMA_F32_(f, 0), RDNA_WGMMA_F32_(f, 32)
#define RDNA_WGMMA_F128_(f) RDNA_WGMMA_F64_(f), RDNA_WGMMA_F32_(f, 64), RDNA_WGMMA_F32_(f, 96)

/* The instruction's text. |tail|: its operands after the sums. |adds| "1": adds to the sums, which are inputs too. */
#define RDNA_WGMMA_TEXT_(n, type, sums, tail, adds) \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " adds          \
  ", 0;\n"                                          \
  "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" sums "}, " tail ";\n}"
#define RDNA_WGMMA_SHARED_(n, type, sums, list, a, b, ta, tb)                                   \
  if constexpr (adds)                                                                           \
    asm volatile(RDNA_WGMMA_TEXT_(n, type, sums, "%" a ", %" b ", p, 1, 1, %" ta ", %" tb, "1") \
                 : list("+f")                                                                   \
                 : "l"(desc_a), "l"(desc_b), "n"((int)a_across), "n"((int)b_across));           \
  else                                                                                          \
    asm volatile(RDNA_WGMMA_TEXT_(n, type, sums, "%" a ", %" b ", p, 1, 1, %" ta ", %" tb, "0") \
                 : list("=f")                                                                   \
                 : "l"(desc_a), "l"(desc_b), "n"((int)a_across), "n"((int)b_across))
#define RDNA_WGMMA_OWN_(n, type, sums, list, a0, a1, a2, a3, b, tb)                                                  \
  if constexpr (adds)                                                                                                \
    asm volatile(RDNA_WGMMA_TEXT_(n, type, sums, "{%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" b ", p, 1, 1, %" tb, "1") \
                 : list("+f")                                                                                        \
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(desc_b), "n"((int)b_across));                         \
  else                                                                                                               \
    asm volatile(RDNA_WGMMA_TEXT_(n, type, sums, "{%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" b ", p, 1, 1, %" tb, "0") \
                 : list("=f")                                                                                        \
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(desc_b), "n"((int)b_across))

template <int tiles>
RDNA_DEVICE void wgmma_unpack(const mma_acc (&c)[tiles], float (&d)[8 * tiles]) {
#pragma unroll
  for (int i = 0; i < 8 * tiles; i++) d[i] = c[i / 8][i % 8];
}
template <int tiles>
RDNA_DEVICE void wgmma_pack(mma_acc (&c)[tiles], const float (&d)[8 * tiles]) {
#pragma unroll
  for (int i = 0; i < 8 * tiles; i++) c[i / 8][i % 8] = d[i];
}

/* Starts c(64, 16 |tiles|) += a(64, 16) b(16, 16 |tiles|) with a and b in shared memory; without |adds|, c = a b.
 * wgmma_own_*: a is in registers, this wave's 16 rows as mma_load_quarters gives them. */
#define RDNA_WGMMA_DEFINE_(name, type)                                                                      \
  template <bool a_across, bool b_across, bool adds, int tiles>                                             \
  RDNA_DEVICE void wgmma_##name(mma_acc(&c)[tiles], uint64_t desc_a, uint64_t desc_b) {                     \
    static_assert(tiles == 4 || tiles == 8 || tiles == 16, "64, 128 or 256 columns");                       \
    float d[8 * tiles];                                                                                     \
    if constexpr (adds) wgmma_unpack(c, d);                                                                 \
    if constexpr (tiles == 4) {                                                                             \
      RDNA_WGMMA_SHARED_("64", type, RDNA_WGMMA_32_, RDNA_WGMMA_LIST_32_, "32", "33", "34", "35");          \
    } else if constexpr (tiles == 8) {                                                                      \
      RDNA_WGMMA_SHARED_("128", type, RDNA_WGMMA_64_, RDNA_WGMMA_F64_, "64", "65", "66", "67");             \
    } else {                                                                                                \
      RDNA_WGMMA_SHARED_("256", type, RDNA_WGMMA_128_, RDNA_WGMMA_F128_, "128", "129", "130", "131");       \
    }                                                                                                       \
    wgmma_pack(c, d);                                                                                       \
  }                                                                                                         \
  template <bool b_across, bool adds, int tiles>                                                            \
  RDNA_DEVICE void wgmma_own_##name(mma_acc(&c)[tiles], uint4 a, uint64_t desc_b) {                         \
    static_assert(tiles == 4 || tiles == 8, "64 or 128 columns");                                           \
    float d[8 * tiles];                                                                                     \
    if constexpr (adds) wgmma_unpack(c, d);                                                                 \
    if constexpr (tiles == 4) {                                                                             \
      RDNA_WGMMA_OWN_("64", type, RDNA_WGMMA_32_, RDNA_WGMMA_LIST_32_, "32", "33", "34", "35", "36", "37"); \
    } else {                                                                                                \
      RDNA_WGMMA_OWN_("128", type, RDNA_WGMMA_64_, RDNA_WGMMA_F64_, "64", "65", "66", "67", "68", "69");    \
    }                                                                                                       \
    wgmma_pack(c, d);                                                                                       \
  }
RDNA_WGMMA_DEFINE_(f16, "f16")
RDNA_WGMMA_DEFINE_(bf16, "bf16")
#endif

#endif
