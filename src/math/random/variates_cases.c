#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/random/variates_kernels.h"

/* A parameter of any size from 1e-3 to 1e6, or an edge. */
static double parameter(rdna__random *random, double most) {
  static const double hard[] = {0, -1, NAN, INFINITY, 1, 10, 9.999, 1e-300, 0.5};
  if (rdna__random_below(random, 8) == 0) return hard[rdna__random_below(random, sizeof hard / sizeof *hard)];
  return 1e-3 * pow(most * 1e3, rdna__random_unit(random));
}

/* No tolerances: kernels and twins compute the same operations in the same order, so the same bits. */
RDNA_CASE_MAKER(rdna__variates_case) {
  static const rdna_dtype dtypes[] = {RDNA_F64, RDNA_F32, RDNA_F16, RDNA_BF16};
  bool gradient = strstr(kernel->name, "gradient"), dirichlet = strstr(kernel->name, "dirichlet");
  bool binomial = strstr(kernel->name, "binomial");
  int64_t count = n == 0 ? 1 : n == 1 ? 0 : rdna__random_range(random, 2, 300);
  rdna_dtype dtype = dtypes[n % 4];
  struct variates_args a = {.count = (uint64_t)count,
                            .seed = rdna__random_bits(random),
                            .offset = n % 3 ? rdna__random_bits(random) : 0xfffffffeu,
                            .least = n % 8 < 4 ? 0x1p-24 : -INFINITY,
                            .dtype = (uint32_t)dtype,
                            .out_dtype = (uint32_t)(n % 5 == 4 ? RDNA_F64 : dtype),
                            .logarithm = n % 8 >= 4};
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)((count + VARIATES_THREADS - 1) / VARIATES_THREADS), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld of %s", (long long)count, rdna_dtype_name(dtype));
  void *v[3] = {0};
  const size_t offsets[] = {offsetof(struct variates_args, first), offsetof(struct variates_args, second),
                            offsetof(struct variates_args, third)};
  for (int k = 0; k < (dirichlet ? 3 : gradient || binomial ? 2 : 1); k++) {
    v[k] = rdna__case_add(out_case, RDNA__IN, dtype, count, (uint32_t)offsets[k]);
    if (!v[k]) return rdna__case_no_memory(out_case);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, (rdna_dtype)a.out_dtype, count, offsetof(struct variates_args, out)))
    return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < count; i++) {
    double first = parameter(random, n % 2 ? 100 : 1e6), u = rdna__random_unit(random);
    if (dirichlet) {
      double a_share = parameter(random, 1e3), rest = parameter(random, 1e3);
      store_double(dtype, v[0], i, i % 2 ? u : a_share / (a_share + rest) * (1 + 0.1 * u));
      store_double(dtype, v[1], i, a_share), store_double(dtype, v[2], i, a_share + rest);
    } else {
      store_double(dtype, v[0], i, binomial ? ceil(first) : first);
      if (gradient) store_double(dtype, v[1], i, first * (0.5 + u));
      if (binomial) store_double(dtype, v[1], i, i % 9 == 5 ? parameter(random, 2) : i % 2 ? u : 10 * u / first);
    }
  }
  return RDNA_OK;
}
