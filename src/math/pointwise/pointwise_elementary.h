/* The ELEMENTARY operations of rdna/op/pointwise.def in double. They have kernels of their own, as they need many
 * registers, which a kernel that also has simple operations would take for those too. */
#ifndef RDNA_MATH_POINTWISE_ELEMENTARY_H
#define RDNA_MATH_POINTWISE_ELEMENTARY_H

#include "math/pointwise/pointwise_ops.h"
#include "math/pointwise/pointwise_scalar64.h"

#define POINTWISE_ELEMENTARY_MAP_(NAME, name, types, chain, integer, f32, f64) POINTWISE_MAP_CASE_(NAME, f64)
#define POINTWISE_ELEMENTARY_ZIP_(NAME, name, types, chain, integer, f32, f64) POINTWISE_ZIP_CASE_(NAME, f64)

/* Results replace v[0 .. n - 1]. */
RDNA_SCALAR void pointwise_map_elementary(uint32_t op, double *__restrict v, int n, double p, double q) {
  typedef double pw_value;
  switch (op) { RDNA_POINTWISE_MAPS(POINTWISE_NO_MAP_, POINTWISE_ELEMENTARY_MAP_, , scalar) default : break; }
}
RDNA_SCALAR void pointwise_zip_elementary(uint32_t op, double *__restrict v, const double *__restrict w, int n,
                                          double p, double q) {
  typedef double pw_value;
  switch (op) { RDNA_POINTWISE_ZIPS(POINTWISE_NO_ZIP_, POINTWISE_ELEMENTARY_ZIP_, ) default : break; }
}

#endif
