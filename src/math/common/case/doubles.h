/* For case makers of families that take f64 too: buffers of any float type, as doubles. */
#ifndef RDNA_MATH_COMMON_CASE_DOUBLES_H
#define RDNA_MATH_COMMON_CASE_DOUBLES_H

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "math/common/case/fill.h"
#include "math/common/host/doubles.h"

/* Normal numbers about |mean|. */
static inline void case_fill_doubles(rdna__random *random, rdna_dtype dtype, void *data, int64_t count, double mean) {
  for (int64_t i = 0; i < count; i++) store_double(dtype, data, i, mean + rdna__random_normal(random));
}

/* Rounding of one operation in what the type is computed in, and of a value stored. */
static inline double case_unit(rdna_dtype dtype) { return dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24; }
static inline double case_step(rdna_dtype dtype) { return dtype == RDNA_F64 ? 0x1p-52 : case_spacing(dtype); }
static inline double case_tiny(rdna_dtype dtype) { return dtype == RDNA_F64 ? 0x1p-1022 : case_smallest(dtype); }

static inline double case_top(rdna_dtype dtype, const void *data, int64_t count) {
  double top = 0;
  for (int64_t i = 0; data && i < count; i++) top = fmax(top, fabs(load_double(dtype, data, i)));
  return isfinite(top) ? top : 0;
}

#endif
