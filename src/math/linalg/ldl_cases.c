#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/linalg/ldl_kernels.h"

/* Normal numbers, or small integers, of which many are equal and blocks of D may be 0; a NaN. */
RDNA_CASE_MAKER(rdna__ldl_case) {
  static const uint32_t edges[] = {1, 2, 3, 40, 17, 33};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct ldl_args a = {.n = n < 6 ? edges[n] : (uint32_t)rdna__random_range(random, 1, 40),
                       .batch = (uint32_t)rdna__random_range(random, n == 3 ? 0 : 1, 4)};
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of %u rows", a.batch, a.n);
  int64_t count = (int64_t)a.batch * a.n * a.n;
  void *x = rdna__case_add(out_case, RDNA__INOUT, dtype, count, offsetof(struct ldl_args, a));
  if (!x) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < count; i++)
    store_double(dtype, x, i, n % 3 == 2 ? (double)rdna__random_range(random, -1, 1) : rdna__random_normal(random));
  if (n == 7) store_double(dtype, x, count / 2, NAN);
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_I32, (int64_t)a.batch * a.n, offsetof(struct ldl_args, pivots)) ||
      !rdna__case_add(out_case, RDNA__OUT, RDNA_I32, a.batch, offsetof(struct ldl_args, info)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
