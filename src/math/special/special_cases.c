#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/special/special_kernels.h"
#include "rdna/op/special.h"

/* The function of case |n| of the family in the kernel's name. */
static rdna_special function_of(const char *kernel, int64_t n) {
  static const rdna_special bessel[] = {RDNA_SPECIAL_I0, RDNA_SPECIAL_I0E, RDNA_SPECIAL_I1, RDNA_SPECIAL_I1E};
  static const rdna_special wave[] = {RDNA_SPECIAL_J0, RDNA_SPECIAL_J1, RDNA_SPECIAL_Y0, RDNA_SPECIAL_Y1};
  static const rdna_special decay[] = {RDNA_SPECIAL_K0, RDNA_SPECIAL_K1, RDNA_SPECIAL_K0E, RDNA_SPECIAL_K1E};
  if (strstr(kernel, "arc")) return (rdna_special)(RDNA_SPECIAL_ASIN + n % 3);
  if (strstr(kernel, "hyperbolic")) return n % 2 ? RDNA_SPECIAL_SINH : RDNA_SPECIAL_COSH;
  if (strstr(kernel, "area")) return (rdna_special)(RDNA_SPECIAL_ASINH + n % 3);
  if (strstr(kernel, "complement")) return RDNA_SPECIAL_ERFC;
  if (strstr(kernel, "inverse")) return n % 2 ? RDNA_SPECIAL_NDTRI : RDNA_SPECIAL_ERFINV;
  if (strstr(kernel, "log_gamma")) return RDNA_SPECIAL_LGAMMA;
  if (strstr(kernel, "derivative")) return n % 2 ? RDNA_SPECIAL_POLYGAMMA : RDNA_SPECIAL_DIGAMMA;
  if (strstr(kernel, "wave")) return wave[n % 4];
  if (strstr(kernel, "decay")) return decay[n % 4];
  return strstr(kernel, "airy") ? RDNA_SPECIAL_AIRY_AI : bessel[n % 4];
}

RDNA_CASE_MAKER(rdna__special_case) {
  static const double hard[] = {0, -0.0, 1, -1, 2, -2.5, 0.5, 20, 300, 1e30, -40.25, INFINITY, -INFINITY, NAN, 1e-30};
  enum { HARD = sizeof hard / sizeof *hard };
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int64_t count = n == 0 ? 1 : n == 1 ? 0 : rdna__random_range(random, 2, 700);
  struct special_args a = {.count = (uint64_t)count, .function = (uint32_t)function_of(kernel->name, n)};
  if (a.function == RDNA_SPECIAL_POLYGAMMA) a.order = (uint32_t)rdna__random_range(random, 0, 5);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)((count + SPECIAL_THREADS - 1) / SPECIAL_THREADS), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%s order %u of %lld grid %u",
           rdna_special_name((rdna_special)a.function), a.order, (long long)count, out_case->grid.x);
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct special_args, x));
  if (!x || !rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct special_args, out))) {
    return rdna__case_no_memory(out_case);
  }
  bool within = a.function == RDNA_SPECIAL_ERFINV || a.function == RDNA_SPECIAL_NDTRI ||
                a.function == RDNA_SPECIAL_ATANH || strstr(kernel->name, "arc");
  for (int64_t i = 0; i < count; i++) {
    double v = within ? rdna__random_unit(random) : 8 * rdna__random_normal(random);
    if (i % 9 == 4) v = hard[rdna__random_below(random, HARD)];
    if (dtype == RDNA_F64) ((double *)x)[i] = v;
    if (dtype == RDNA_F32) ((float *)x)[i] = (float)v;
  }
  return RDNA_OK; /* the same operations in the same order: the same bits */
}
