/* Which kernels multiply which types: gemm.c lists the dense products, and whoever brings others gives a row of its own
 * to rdna__gemm_launch_product. */
#ifndef RDNA_MATH_GEMM_PRODUCT_H
#define RDNA_MATH_GEMM_PRODUCT_H

#include "math/gemm/gemm.h"

enum { WIDE, LARGE, BROAD, NARROW, SMALL, M1, M4, M8, VARIANTS }; /* tiles of C, and the most rows of A of a gemv */

struct rdna__gemm_product {
  rdna_dtype types[3];           /* A, B, C */
  const char *kernels[VARIANTS]; /* NULL: there is none */
  /* Of gemv kernels that are not gemm.hip's: rows of B that a work-group makes, and how many of |groups| work-groups to
   * launch, which take the others' rows too. */
  int vector_rows;
  uint32_t (*vector_groups)(rdna_stream *stream, uint32_t groups);
};

#endif
