/* Columns become orthogonal and symmetric matrices diagonal, block by block: see jacobi_kernels.h. */
#include <math.h>

#include "math/common/plan/scratch.h"
#include "math/linalg/jacobi_kernels.h"
#include "math/linalg/parts.h"
#include "rdna/op/linalg.h"
#include "rdna/op/movement.h"

enum { ONE_SIDE, BOTH, ACROSS };
enum { MOST_ROWS = 1 << 19 }; /* of symmetric matrices, whose tiles are counted in 32 bits */
static const rdna__route routes[] = {
    [ONE_SIDE] = {.name = "one side",
                  .kernels = {"jacobi_{f32|f64}"},
                  .when = "orthogonalize: a group for every two blocks of 16 columns"},
    [BOTH] = {.name = "both sides",
              .kernels = {"jacobi_both_{f32|f64}"},
              .when = "diagonalize: a group for where two blocks of 16 rows and columns cross; up to 32 rows, all"},
    [ACROSS] = {.name = "across",
                .kernels = {"jacobi_across_{f32|f64}"},
                .when = "diagonalize: a group for each other tile of 32 x 32, and for those of the vectors"},
};
RDNA_FIXED_ROUTES(rdna__jacobi_routes, "orthogonalize, diagonalize", routes)

static rdna_status sweep(const rdna__parts *w, struct jacobi_args *args) {
  for (args->round = 0; args->round + 1 < args->blocks; args->round++) {
    RDNA_TRY(rdna__part_launch(w, &routes[ONE_SIDE], args->units, args));
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

static rdna_status sweep_both(const rdna__parts *w, struct jacobi_both_args *args) {
  struct jacobi_args *of = &args->of;
  uint32_t pairs = of->blocks / 2, inner, outer;
  RDNA_TRY(rdna__check_groups(w->name, pairs * w->batch, 1, &inner));
  RDNA_TRY(rdna__check_groups(w->name, (int64_t)jacobi_tiles(pairs, of->m) * w->batch, 1, &outer));
  for (of->round = 0; of->round + 1 < of->blocks; of->round++) {
    of->units = inner;
    RDNA_TRY(rdna__part_launch(w, &routes[BOTH], inner, args));
    of->units = outer;
    if (pairs > 1) RDNA_TRY(rdna__part_launch(w, &routes[ACROSS], outer, args));
  }
  return RDNA_OK;
}

static rdna_status diagonalize(const rdna__parts *w, rdna__scratch *scratch, struct jacobi_both_args *args) {
  struct jacobi_args *of = &args->of;
  int64_t pairs = of->blocks / 2;
  if (pairs > 1) {
    int64_t values = 4 * JACOBI_BLOCK * JACOBI_BLOCK;
    RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(w->dtype, w->batch * pairs * values), &args->turns));
    void *moved;
    RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(RDNA_I32, w->batch * pairs), &moved));
    args->moved = moved;
  }
  of->sweeps = pairs == 1 ? of->total : 1;
  for (of->sweep = 0; of->sweep < of->total; of->sweep += of->sweeps) RDNA_TRY(sweep_both(w, args));
  return RDNA_OK;
}

rdna_status rdna_op_diagonalize(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *v,
                                const rdna_tensor *turned) {
  rdna__parts w = {.stream = stream, .name = "diagonalize"};
  rdna__part p, vectors = {0};
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &p));
  RDNA_TRY(rdna__part_check_written(&w, "a", a, p));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 2, p.rows, "the number of rows"));
  RDNA_TRY(rdna__part_check_beside(&w, "turned", turned, RDNA_I32, 2));
  RDNA_TRY(rdna__check_apart(w.name, "turned", turned, "a", a));
  if (v) {
    rdna__parts of = w;
    RDNA_TRY(rdna__part_check(&of, "v", v, &vectors));
    RDNA_TRY(rdna__check_dtype(w.name, "v", v, w.dtype));
    RDNA_TRY(rdna__check_size(w.name, "v", v, 0, w.batch, "the batch"));
    RDNA_TRY(rdna__check_size(w.name, "v", v, 2, p.columns, "the columns of a"));
    RDNA_TRY(rdna__part_check_written(&w, "v", v, vectors));
    RDNA_TRY(rdna__check_apart(w.name, "v", v, "a", a));
    RDNA_TRY(rdna__check_apart(w.name, "v", v, "turned", turned));
  }
  int64_t sweeps = turned->shape[1], blocks = rdna__divide_up(p.columns, JACOBI_BLOCK);
  if (p.rows > MOST_ROWS || vectors.rows > MOST_ROWS) {
    return rdna__fail(RDNA_UNSUPPORTED, "diagonalize: a has %lld rows, v %lld; up to %d are offered", (long long)p.rows,
                      (long long)vectors.rows, MOST_ROWS);
  }
  if (w.batch == 0 || sweeps == 0) return RDNA_OK;
  RDNA_TRY(rdna_op_fill(stream, rdna_scalar_integer(0), turned));
  if (p.columns == 0) return RDNA_OK;
  double epsilon = w.dtype == RDNA_F64 ? 0x1p-52 : 0x1p-23;
  struct jacobi_both_args args = {
      .of = {.a = p.data,
             .turned = turned->data,
             .stride = p.stride,
             .row = p.column == 1 ? p.row : p.column,
             .column = 1,
             .small = epsilon * (16 + 2 * sqrt((double)p.rows)),
             .smallest = epsilon,
             .negligible = w.dtype == RDNA_F64 ? 0x1p-900 : 0x1p-100,
             .m = (uint32_t)vectors.rows,
             .n = (uint32_t)p.columns,
             .blocks = (uint32_t)(blocks + blocks % 2),
             .total = (uint32_t)sweeps},
      .v = vectors.data,
      .v_stride = vectors.stride,
      .v_row = vectors.row,
      .v_column = vectors.column,
  };
  rdna__scratch scratch = {.stream = stream, .holder = w.name};
  return rdna__scratch_release(&scratch, diagonalize(&w, &scratch, &args));
}
