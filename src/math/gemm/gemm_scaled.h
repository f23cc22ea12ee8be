/* What the products of 8-bit operands have in common: checks, operands as the kernels take them, the choice of a tile.
 */
#ifndef RDNA_MATH_GEMM_SCALED_H
#define RDNA_MATH_GEMM_SCALED_H

#include "math/common/plan/route.h"
#include "math/gemm/gemm.h"
#include "math/gemm/gemm_scaled_args.h"
#include "rdna/op/gemm.h"

typedef struct rdna__gemm_scaled {
  const char *op_name, *holder; /* of scratch memory, in errors */
  rdna_status (*launch)(rdna_stream *stream, const struct gemm_scaled_args *args, const rdna_dtype types[3]);
} rdna__gemm_scaled;

/* Checks all but types, the epilogue's size and that tensors are given, which the caller has seen to, copies operands
 * that the kernels cannot read in place, and launches. */
rdna_status rdna__gemm_scaled_run(rdna_stream *stream, const rdna__gemm_scaled *how, const rdna_gemm_epilogue *epilogue,
                                  const rdna_tensor *a, const rdna_tensor *scale_a, const rdna_tensor *b,
                                  const rdna_tensor *scale_b, const rdna_tensor *c);

/* What is asked of a table of two rows, the large tile and the small one, whose kernels' names have |words|. */
typedef struct rdna__gemm_scaled_problem {
  const struct gemm_args *of;
  int64_t units;
} rdna__gemm_scaled_problem;
enum { RDNA__SCALED_LARGE = 128, RDNA__SCALED_SMALL = 64 }; /* their sides */
bool rdna__gemm_scaled_fills_units(const rdna__route *route, const void *problem);
rdna_status rdna__gemm_scaled_launch(rdna_stream *stream, const char *op_name, const rdna__route_table *routes,
                                     const struct gemm_scaled_args *args, const char *const *words);

#define RDNA__SCALED_ROUTES(prefix)                  \
  {{.name = "tile 128 x 128",                        \
    .kernels = {prefix "_large"},                    \
    .when = "at least a tile for each compute unit", \
    .applies = rdna__gemm_scaled_fills_units},       \
   {.name = "tile 64 x 64", .kernels = {prefix "_small"}, .when = "smaller results"}}

#endif
