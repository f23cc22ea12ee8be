#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/linalg/qr_kernels.h"

/* Normal numbers, at times near the ends of the range, at times of which many are 0, so that there are columns without
 * a reflection. */
RDNA_CASE_MAKER(rdna__qr_case) {
  static const uint32_t edges[] = {1, 2, 31, 32, 16, 17};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  uint32_t most = strstr(kernel->name, "small") ? QR_SMALL_ROWS : n == 3 ? 1100 : 200;
  struct qr_args a = {.n = n < 6 ? edges[n] : (uint32_t)rdna__random_range(random, 1, QR_BLOCK),
                      .batch = (uint32_t)rdna__random_range(random, n == 3 ? 0 : 1, 4),
                      .given = n % 5 == 4};
  a.m = n % 4 == 3 ? most : n % 4 == 2 ? a.n : (uint32_t)rdna__random_range(random, a.n, most);
  a.row = n % 2 ? 1 : a.n + rdna__random_range(random, 0, 3);
  a.column = n % 2 ? a.m + rdna__random_range(random, 0, 3) : 1;
  a.stride = n % 2 ? a.column * a.n : a.row * a.m;
  a.tau_stride = a.n + rdna__random_range(random, 0, 3);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of %u x %u, rows %lld columns %lld given %u", a.batch, a.m, a.n,
           (long long)a.row, (long long)a.column, a.given);
  rdna__buffer_role role = a.given ? RDNA__IN : RDNA__INOUT;
  void *x = rdna__case_add(out_case, role, dtype, a.batch * a.stride, offsetof(struct qr_args, a));
  if (!x) return rdna__case_no_memory(out_case);
  double size = n % 7 == 5   ? (dtype == RDNA_F64 ? 1e300 : 1e30f)
                : n % 7 == 6 ? (dtype == RDNA_F64 ? 1e-300 : 1e-36)
                             : 1;
  if (a.given) size = 1;
  for (int64_t i = 0; i < a.batch * a.stride; i++)
    store_double(dtype, x, i,
                 n % 3 == 2 ? (double)rdna__random_range(random, 0, 9) / 9 : size * rdna__random_normal(random));
  for (int64_t i = 0; i < a.batch * a.stride && n % 9 == 1; i++)
    if (rdna__random_range(random, 0, 3)) store_double(dtype, x, i, 0);
  for (int64_t i = 0; i < a.batch * a.stride && n % 9 == 2; i++) /* columns of a size of their own */
    store_double(
        dtype, x, i,
        pow(dtype == RDNA_F64 ? 1e-40 : 1e-5, (double)(i % a.stride / a.column % 7)) * rdna__random_normal(random));
  void *tau = rdna__case_add(out_case, role, dtype, a.batch * a.tau_stride, offsetof(struct qr_args, tau));
  if (!tau) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < a.batch * a.tau_stride; i++) store_double(dtype, tau, i, rdna__random_normal(random) / a.m);
  if (n % 6 == 1) return RDNA_OK;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, a.batch * (int64_t)a.m * a.n, offsetof(struct qr_args, v)) ||
      !rdna__case_add(out_case, RDNA__OUT, dtype, a.batch * (int64_t)a.n * a.n, offsetof(struct qr_args, t)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
