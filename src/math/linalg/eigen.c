/* Eigenvalues of general matrices: one launch, a group for each matrix. */
#include "math/common/plan/scratch.h"
#include "math/linalg/eigen_kernels.h"
#include "math/linalg/parts.h"
#include "rdna/op/linalg.h"
#include "rdna/op/movement.h"

enum { SMALL, LARGE };
static const rdna__route routes[] = {
    [SMALL] = {.name = "small", .kernels = {"eigen_small_{f32|f64}"}, .when = "up to 64 rows: in group memory"},
    [LARGE] = {.name = "large", .kernels = {"eigen_large_{f32|f64}"}, .when = "65 to 256 rows: in scratch memory"},
};
RDNA_FIXED_ROUTES(rdna__eigen_routes, "eigen", routes)

/* Checks a contiguous tensor of |rank|: batch, n, perhaps n, 2. */
static rdna_status check_pairs(const rdna__parts *w, const char *argument, const rdna_tensor *t, int rank, int64_t n) {
  RDNA_TRY(rdna__part_check_beside(w, argument, t, w->dtype, rank));
  for (int d = 1; d + 1 < rank; d++) RDNA_TRY(rdna__check_size(w->name, argument, t, d, n, "the rows of a"));
  return rdna__check_size(w->name, argument, t, rank - 1, 2, "a pair's");
}

static rdna_status launch(const rdna__parts *w, rdna__scratch *scratch, struct eigen_args *args) {
  int64_t values = w->batch * args->n * args->n;
  bool small = args->n <= EIGEN_SMALL;
  if (!small) RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(w->dtype, values), &args->h));
  if (args->vectors) {
    RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(w->dtype, values), &args->z));
    RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(w->dtype, 2 * values), &args->x));
  }
  return rdna__part_launch(w, &routes[small ? SMALL : LARGE], args->batch, args);
}

rdna_status rdna_op_eigen(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *values,
                          const rdna_tensor *vectors, const rdna_tensor *info) {
  rdna__parts w = {.stream = stream, .name = "eigen"};
  rdna__part p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &p));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 2, p.rows, "the number of rows"));
  RDNA_TRY(check_pairs(&w, "values", values, 3, p.rows));
  RDNA_TRY(rdna__part_check_numbers(&w, "info", info, -1));
  RDNA_TRY(rdna__check_apart(w.name, "values", values, "a", a));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "a", a));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "values", values));
  if (vectors) {
    RDNA_TRY(check_pairs(&w, "vectors", vectors, 4, p.rows));
    RDNA_TRY(rdna__check_apart(w.name, "vectors", vectors, "a", a));
    RDNA_TRY(rdna__check_apart(w.name, "vectors", vectors, "values", values));
    RDNA_TRY(rdna__check_apart(w.name, "vectors", vectors, "info", info));
  }
  if (p.rows > EIGEN_MOST) {
    return rdna__fail(RDNA_UNSUPPORTED, "eigen: a has %lld rows; up to %d are offered", (long long)p.rows, EIGEN_MOST);
  }
  if (w.batch == 0) return RDNA_OK;
  if (p.rows == 0) return rdna_op_fill(stream, rdna_scalar_integer(0), info);
  struct eigen_args args = {.a = p.data,
                            .values = values->data,
                            .vectors = vectors ? vectors->data : NULL,
                            .info = info->data,
                            .stride = p.stride,
                            .row = p.row,
                            .column = p.column,
                            .n = (uint32_t)p.rows};
  RDNA_TRY(rdna__check_groups(w.name, w.batch, 1, &args.batch));
  rdna__scratch scratch = {.stream = stream, .holder = w.name};
  return rdna__scratch_release(&scratch, launch(&w, &scratch, &args));
}
