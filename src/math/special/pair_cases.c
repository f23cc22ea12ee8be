#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/special/pair_kernels.h"
#include "rdna/op/special.h"

RDNA_CASE_MAKER(rdna__pair_case) {
  static const double hard[] = {0, -0.0, 1, -1, 2, -2.5, 0.5, 20, 130, 1e30, -40.25, INFINITY, -INFINITY, NAN, 1e-30};
  enum { HARD = sizeof hard / sizeof *hard };
  rdna_dtype dtype = case_name_dtype(kernel->name);
  bool gamma = strstr(kernel->name, "gamma"), zeta = strstr(kernel->name, "zeta");
  int64_t count = n == 0 ? 1 : n == 1 ? 0 : rdna__random_range(random, 2, 300);
  int functions = RDNA_SPECIAL_PAIR_LOGADDEXP - RDNA_SPECIAL_PAIR_CHEBYSHEV_T;
  bool add = strstr(kernel->name, "add"), log = strstr(kernel->name, "log"), choice = strstr(kernel->name, "choice");
  int function = gamma    ? RDNA_SPECIAL_PAIR_IGAMMA + n % 2
                 : zeta   ? RDNA_SPECIAL_PAIR_ZETA
                 : add    ? RDNA_SPECIAL_PAIR_LOGADDEXP + n % 2
                 : log    ? RDNA_SPECIAL_PAIR_XLOGY + n % 2
                 : choice ? RDNA_SPECIAL_PAIR_HYPOT + n % 4
                          : RDNA_SPECIAL_PAIR_CHEBYSHEV_T + n % functions;
  struct pair_args a = {.count = (uint64_t)count, .function = (uint32_t)function};
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)((count + PAIR_THREADS - 1) / PAIR_THREADS), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%s of %lld", rdna_special_pair_name((rdna_special_pair)function),
           (long long)count);
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct pair_args, x));
  void *y = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct pair_args, y));
  if (!x || !y || !rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct pair_args, out)))
    return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < count; i++) {
    double u = rdna__random_unit(random), v = rdna__random_normal(random);
    double first = gamma ? 30 * u : zeta ? 1 + 9 * u : 2 * v, second = gamma ? 20 * u + fabs(v) : zeta ? 5 * v : 12 * u;
    if (i % 9 == 4) first = hard[rdna__random_below(random, HARD)];
    if (add || choice) second -= 6;
    if (i % 9 == 7 && function > RDNA_SPECIAL_PAIR_LEGENDRE) second = hard[rdna__random_below(random, HARD)];
    if (i % 9 == 7 && (gamma || zeta)) second = hard[rdna__random_below(random, HARD)];
    store_double(dtype, x, i, first), store_double(dtype, y, i, second);
  }
  return RDNA_OK; /* the same operations in the same order: the same bits */
}
