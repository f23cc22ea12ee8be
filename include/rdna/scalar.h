/* A number among the arguments of an operator. */
#ifndef RDNA_SCALAR_H
#define RDNA_SCALAR_H

#include <stdint.h>

/* A number that is the same for all values: floating types take |real|, integers and bool |integer|; of u64 that has
 * the bits. */
typedef struct rdna_scalar {
  double real;
  int64_t integer;
} rdna_scalar;

static inline rdna_scalar rdna_scalar_real(double v) {
  rdna_scalar s = {v, v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : 0};
  return s;
}
static inline rdna_scalar rdna_scalar_integer(int64_t v) {
  rdna_scalar s = {(double)v, v};
  return s;
}

#endif
