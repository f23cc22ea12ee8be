#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/linalg/eigen_kernels.h"

/* Normal values; small integers, of which some have values that coincide; graded ones, to be balanced; triangular ones;
 * of a size near the ends of the range; one that is not finite. */
RDNA_CASE_MAKER(rdna__eigen_case) {
  static const uint32_t edges[] = {1, 2, 3, 5, 40, 33};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  bool large = strstr(kernel->name, "large");
  struct eigen_args a = {.n = n < 6 ? edges[n] : (uint32_t)rdna__random_range(random, 1, large ? 70 : 40),
                         .batch = (uint32_t)rdna__random_range(random, n == 3 ? 0 : 1, 3)};
  if (n == 4 && !large) a.n = EIGEN_SMALL;
  a.row = n % 2 ? 1 : a.n + rdna__random_range(random, 0, 3);
  a.column = n % 2 ? a.n + rdna__random_range(random, 0, 3) : 1;
  a.stride = (a.row > a.column ? a.row : a.column) * a.n;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of %u x %u, rows %lld columns %lld kind %d", a.batch, a.n, a.n,
           (long long)a.row, (long long)a.column, n % 7);
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, a.batch * a.stride, offsetof(struct eigen_args, a));
  if (!x) return rdna__case_no_memory(out_case);
  double size = n % 7 == 5 ? (dtype == RDNA_F64 ? 1e300 : 1e36) : n % 7 == 6 ? (dtype == RDNA_F64 ? 1e-290 : 1e-30) : 1;
  for (int64_t e = 0; e < a.batch * (int64_t)a.n * a.n; e++) {
    int64_t i = e / a.n % a.n, j = e % a.n;
    double v = n % 7 == 2 ? (double)rdna__random_range(random, -1, 1) : size * rdna__random_normal(random);
    if (n % 7 == 3) v *= exp2((double)(i % 9 - j % 9));
    if (n % 7 == 4 && j < i) v = 0;
    store_double(dtype, x, e / a.n / a.n * a.stride + i * a.row + j * a.column, n == 8 && e == 0 ? NAN : v);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, a.batch * 2 * (int64_t)a.n, offsetof(struct eigen_args, values)) ||
      !rdna__case_add(out_case, RDNA__OUT, RDNA_I32, a.batch, offsetof(struct eigen_args, info)))
    return rdna__case_no_memory(out_case);
  int64_t count = a.batch * (int64_t)a.n * a.n;
  if (large && !rdna__case_add(out_case, RDNA__INOUT, dtype, count, offsetof(struct eigen_args, h)))
    return rdna__case_no_memory(out_case);
  if (n % 3 == 2) return RDNA_OK;
  if (!rdna__case_add(out_case, RDNA__INOUT, dtype, count, offsetof(struct eigen_args, z)) ||
      !rdna__case_add(out_case, RDNA__INOUT, dtype, 2 * count, offsetof(struct eigen_args, x)) ||
      !rdna__case_add(out_case, RDNA__OUT, dtype, 2 * count, offsetof(struct eigen_args, vectors)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
