/* Host twins of gemm_grouped_kernels.h: a product for each group, by those of gemm_kernels.h. */
#include "kernel/host.h"
#include "math/gemm/gemm_grouped_kernels.h"

static void run(const struct gemm_grouped_args *a, int64_t bytes, void (*multiply)(const void *args, rdna_grid grid)) {
  const struct gemm_args *whole = &a->product;
  bool a_turned = whole->flags & GEMM_A_TRANSPOSED, b_turned = whole->flags & GEMM_B_TRANSPOSED;
  int32_t size = a->cut == GEMM_GROUPED_ROWS ? whole->m : a->cut == GEMM_GROUPED_COLUMNS ? whole->n : whole->k;
  struct gemm_group g = {-1, 0, 0};
  while (g.group < a->groups - (a->cut == GEMM_GROUPED_SUMS)) {
    g = gemm_group_next(a, g, size);
    bool exists = g.group < a->groups;
    struct gemm_args of = *whole;
    int64_t in_a = 0, in_b = 0, in_c = 0, matrix = exists ? g.group : 0;
    if (a->cut == GEMM_GROUPED_ROWS) {
      in_a = g.begin * (a_turned ? 1 : of.lda), in_b = matrix * of.stride_b, in_c = g.begin * of.ldc;
      of.m = g.end - g.begin;
    } else if (a->cut == GEMM_GROUPED_COLUMNS) {
      in_a = matrix * of.stride_a, in_b = g.begin * (b_turned ? of.ldb : 1), in_c = g.begin;
      of.n = g.end - g.begin;
    } else {
      in_a = g.begin * (a_turned ? of.lda : 1), in_b = g.begin * (b_turned ? 1 : of.ldb), in_c = matrix * of.stride_c;
      of.k = g.end - g.begin;
    }
    of.a = (const char *)of.a + in_a * bytes;
    of.b = (const char *)of.b + in_b * bytes;
    of.c = (char *)of.c + in_c * bytes;
    if (!exists) of.k = 0;
    if (of.m > 0 && of.n > 0) multiply(&of, (rdna_grid){1, 1, 1});
  }
}

#define TWIN(type, bytes)                                                                         \
  void RDNA_HOST_KERNEL(gemm_##type##_##type##_##type##_small)(const void *args, rdna_grid grid); \
  void RDNA_HOST_KERNEL(gemm_grouped_##type)(const void *args, rdna_grid grid) {                  \
    run(args, bytes, RDNA_HOST_KERNEL(gemm_##type##_##type##_##type##_small));                    \
  }
TWIN(f32, 4)
TWIN(f16, 2)
TWIN(bf16, 2)
