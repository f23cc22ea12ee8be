/* Random cases of matrix products, dense or with a B in blocks. */
#ifndef RDNA_MATH_GEMM_CASE_H
#define RDNA_MATH_GEMM_CASE_H

#include "kernel/manifest.h"
#include "math/gemm/gemv_kernels.h"

typedef struct rdna__product_case {
  rdna_dtype type_a, type_b, type_c;
  int tile, tile_n; /* rows and columns of a tile, or 0 for a gemv */
  bool aligned;     /* rows of A and B lie at multiples of 16 bytes */
  int columns;      /* of a gemv: rows of A that it takes */
  int vector_rows;  /* of a gemv whose groups take turns: rows of B that each makes at a time; otherwise 0 */
  bool stepped;     /* the kernel takes a gemv_args, whose steps are drawn too */
  bool gated;       /* with a gate among them */
  /* For a B in blocks: fills |count| values, and returns a bound of their magnitude. */
  double (*fill_blocks)(rdna__random *random, rdna_dtype format, void *blocks, int64_t count);
} rdna__product_case;

/* Reads "gemm_<A>_<B>_<C>_<tile>" and "gemv_<A>_<B>_<C>_m<M>". */
rdna_status rdna__product_case_parse(const char *kernel_name, rdna__product_case *out_product);

/* The case with m, n, k, batch, flags, and beta of |args| and the rest drawn at random. */
rdna_status rdna__product_case_make(const rdna__product_case *product, struct gemm_args args, rdna__random *random,
                                    rdna__kernel_case *out_case);

#endif
