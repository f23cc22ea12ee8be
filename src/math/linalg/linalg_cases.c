#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/linalg/linalg_kernels.h"

/* Which systems a maker takes: sizes of the first six, the most rows and columns of the others, how many columns a
 * group has. */
typedef struct systems {
  uint32_t edges[6], rows;
  int64_t columns, of_a_group;
} systems;

static rdna_status system_case(const rdna__kernel_info *kernel, rdna__random *random, int n, const systems *s,
                               rdna__kernel_case *out_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct triangular_args a = {.n = n < 6 ? s->edges[n] : (uint32_t)rdna__random_range(random, 1, s->rows),
                              .columns = rdna__random_range(random, 1, s->columns),
                              .flipped = n % 4 > 1,
                              .unit = n % 3 == 2};
  int64_t batch = rdna__random_range(random, 1, 3), ld = a.n + rdna__random_range(random, 0, 3);
  a.parts = (uint32_t)((a.columns + s->of_a_group - 1) / s->of_a_group), a.units = a.parts * (uint32_t)batch;
  a.l_stride = ld * a.n, a.l_row = n % 5 > 2 ? 1 : ld, a.l_column = n % 5 > 2 ? ld : 1;
  int64_t rows = a.n + rdna__random_range(random, 0, 3), columns = a.columns + rdna__random_range(random, 0, 3);
  a.x_row = n % 2 ? 1 : columns, a.x_column = n % 2 ? rows : 1, a.x_stride = rows * columns;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld of %u, %lld columns, rows %lld and %lld, flipped %u unit %u",
           (long long)batch, a.n, (long long)a.columns, (long long)a.l_row, (long long)a.x_row, a.flipped, a.unit);
  void *l = rdna__case_add(out_case, RDNA__IN, dtype, batch * a.l_stride, offsetof(struct triangular_args, l));
  void *x =
      l ? rdna__case_add(out_case, RDNA__INOUT, dtype, batch * a.x_stride, offsetof(struct triangular_args, x)) : l;
  if (!x) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < batch * a.l_stride; i++) store_double(dtype, l, i, rdna__random_normal(random) / a.n);
  for (int64_t i = 0; i < batch * a.x_stride; i++) store_double(dtype, x, i, rdna__random_normal(random));
  for (int64_t i = 0; i < batch * a.n; i++) {
    double v = 1 + rdna__random_unit(random);
    if (n % 7 == 6 && i == 0) v = 0;
    if (n % 7 == 4 && i == a.n / 2) v = dtype == RDNA_F64 ? 0x1p-1024 : 0x1p-128; /* its inverse is infinite */
    store_double(dtype, l, i / a.n * a.l_stride + i % a.n * (ld + 1), v);
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__triangular_case) {
  const systems s = {{1, 128, 31, 33, 64, 97}, TRIANGULAR_BLOCK, n % 2 ? 9 : 75, TRIANGULAR_COLUMNS};
  return system_case(kernel, random, n, &s, out_case);
}

RDNA_CASE_MAKER(rdna__thin_case) {
  const systems s = {{1, 33, 64, 65, 32, 2}, n == 9 ? 1200 : 200, 4, 1};
  return system_case(kernel, random, n, &s, out_case);
}
