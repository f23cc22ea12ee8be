/* Columns become orthogonal, block by block: see jacobi_kernels.h. */
#include <math.h>

#include "math/linalg/jacobi_kernels.h"
#include "math/linalg/parts.h"
#include "rdna/op/linalg.h"
#include "rdna/op/movement.h"

static const rdna__route routes[] = {
    {.name = "jacobi", .kernels = {"jacobi_{f32|f64}"}, .when = "a group for every two blocks of 16 columns"},
};
RDNA_FIXED_ROUTES(rdna__jacobi_routes, "orthogonalize", routes)

static rdna_status sweep(const rdna__parts *w, struct jacobi_args *args) {
  for (args->round = 0; args->round + 1 < args->blocks; args->round++) {
    RDNA_TRY(rdna__part_launch(w, &routes[0], args->units, args));
  }
  return RDNA_OK;
}

rdna_status rdna_op_orthogonalize(rdna_stream *stream, double negligible, const rdna_tensor *a,
                                  const rdna_tensor *turned) {
  rdna__parts w = {.stream = stream, .name = "orthogonalize"};
  rdna__part p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &p));
  RDNA_TRY(rdna__part_check_written(&w, "a", a, p));
  RDNA_TRY(rdna__part_check_beside(&w, "turned", turned, RDNA_I32, 2));
  RDNA_TRY(rdna__check_apart(w.name, "turned", turned, "a", a));
  if (p.rows > INT32_MAX || p.columns > INT32_MAX - 2 * JACOBI_BLOCK) {
    return rdna__fail(RDNA_UNSUPPORTED, "orthogonalize: a has %lld rows and %lld columns; up to %d are counted",
                      (long long)p.rows, (long long)p.columns, INT32_MAX - 2 * JACOBI_BLOCK);
  }
  int64_t sweeps = turned->shape[1], blocks = rdna__divide_up(p.columns, JACOBI_BLOCK);
  if (w.batch == 0 || sweeps == 0) return RDNA_OK;
  RDNA_TRY(rdna_op_fill(stream, rdna_scalar_integer(0), turned));
  if (p.rows == 0 || p.columns == 0) return RDNA_OK;
  /* Squares of what is shorter have lost digits. */
  double shortest = w.dtype == RDNA_F64 ? 0x1p-450 : 0x1p-50;
  double epsilon = w.dtype == RDNA_F64 ? 0x1p-52 : 0x1p-23;
  struct jacobi_args args = {.a = p.data,
                             .turned = turned->data,
                             .stride = p.stride,
                             .row = p.row,
                             .column = p.column,
                             .small = epsilon * (16 + 2 * sqrt((double)p.rows)),
                             .smallest = epsilon,
                             .negligible = negligible > shortest ? negligible : shortest,
                             .m = (uint32_t)p.rows,
                             .n = (uint32_t)p.columns,
                             .blocks = (uint32_t)(blocks + blocks % 2),
                             .total = (uint32_t)sweeps};
  RDNA_TRY(rdna__check_groups(w.name, args.blocks / 2 * w.batch, 1, &args.units));
  args.sweeps = args.blocks == 2 ? args.total : 1;
  for (args.sweep = 0; args.sweep < args.total; args.sweep += args.sweeps) RDNA_TRY(sweep(&w, &args));
  return RDNA_OK;
}
