/* For case makers: hard values, which find faults that ordinary numbers do not. */
#ifndef RDNA_MATH_COMMON_CASE_VALUES_H
#define RDNA_MATH_COMMON_CASE_VALUES_H

#include <math.h>
#include <string.h>

#include "math/common/case/fill.h"

/* Returns a float of random bits. A NaN loses its payload, as it could be taken for poison. */
static inline float case_any_bits(rdna__random *random) {
  float v = scalar_from_bits((uint32_t)rdna__random_bits(random));
  return isnan(v) ? NAN : v;
}

/* Fills with normally distributed numbers of which one in eight is replaced: by a zero, infinity, NaN, subnormal or
 * limit of a range, or by random bits. */
static inline void case_fill_hard(rdna__random *random, rdna_dtype dtype, void *data, int64_t count) {
  static const float special[] = {0.0f,     -0.0f,   INFINITY, -INFINITY, NAN,      0x1p-149f,    -0x1p-130f,
                                  0x1p-24f, 6e-6f,   65504.0f, 3e38f,     -3.4e38f, 1.0f,         -1.0f,
                                  88.722f,  -87.34f, -103.98f, 0.6f,      9.1f,     0x1.000002p0f};
  for (int64_t i = 0; i < count; i++) {
    uint64_t pick = rdna__random_below(random, 16);
    float v = pick == 0   ? special[rdna__random_below(random, sizeof special / sizeof *special)]
              : pick == 1 ? case_any_bits(random)
                          : (float)(4 * rdna__random_normal(random));
    case_set(dtype, data, i, v);
  }
}

#endif
