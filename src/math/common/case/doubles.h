/* For case makers of families that exist for f64 too: fill buffers of any float type, and tolerances for them. */
#ifndef RDNA_MATH_COMMON_CASE_DOUBLES_H
#define RDNA_MATH_COMMON_CASE_DOUBLES_H

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "math/common/case/fill.h"
#include "math/common/host/doubles.h"

/* Fills with normally distributed numbers of the mean |mean| and the deviation 1. */
static inline void case_fill_doubles(rdna__random *random, rdna_dtype dtype, void *data, int64_t count, double mean) {
  for (int64_t i = 0; i < count; i++) store_double(dtype, data, i, mean + rdna__random_normal(random));
}

/* case_unit: the relative error of one operation in the type that |dtype| is computed in. case_step: the relative
 * distance of its neighbouring values. case_tiny: the distance of its smallest values. */
static inline double case_unit(rdna_dtype dtype) { return dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24; }
static inline double case_step(rdna_dtype dtype) { return dtype == RDNA_F64 ? 0x1p-52 : case_spacing(dtype); }
static inline double case_tiny(rdna_dtype dtype) { return dtype == RDNA_F64 ? 0x1p-1022 : case_smallest(dtype); }

/* Returns the largest magnitude; 0 if it is infinite, or |data| is NULL. */
static inline double case_top(rdna_dtype dtype, const void *data, int64_t count) {
  double top = 0;
  for (int64_t i = 0; data && i < count; i++) top = fmax(top, fabs(load_double(dtype, data, i)));
  return isfinite(top) ? top : 0;
}

#endif
