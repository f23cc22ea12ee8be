/* L D L^T of symmetric matrices: one launch, a group for each matrix. */
#include "math/linalg/ldl_kernels.h"
#include "math/linalg/parts.h"
#include "rdna/op/linalg.h"
#include "rdna/op/movement.h"

static const rdna__route routes[] = {
    {.name = "whole", .kernels = {"ldl_{f32|f64}"}, .when = "up to 1024 rows: a group for each matrix"},
};
RDNA_FIXED_ROUTES(rdna__ldl_routes, "ldl", routes)

rdna_status rdna_op_ldl(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *pivots, const rdna_tensor *info) {
  rdna__parts w = {.stream = stream, .name = "ldl"};
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__check_tensor(w.name, "a", a));
  if (a->dtype != RDNA_F32 && a->dtype != RDNA_F64) {
    return rdna__fail(RDNA_UNSUPPORTED, "ldl: a is %s; the types offered are f32 and f64", rdna_dtype_name(a->dtype));
  }
  RDNA_TRY(rdna__check_rank(w.name, "a", a, 3));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 2, a->shape[1], "its rows"));
  RDNA_TRY(rdna__check_contiguous(w.name, "a", a));
  w.dtype = a->dtype, w.batch = a->shape[0];
  int64_t n = a->shape[1];
  RDNA_TRY(rdna__part_check_numbers(&w, "pivots", pivots, n));
  RDNA_TRY(rdna__part_check_numbers(&w, "info", info, -1));
  RDNA_TRY(rdna__check_apart(w.name, "pivots", pivots, "a", a));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "a", a));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "pivots", pivots));
  if (n > LDL_MOST) {
    return rdna__fail(RDNA_UNSUPPORTED, "ldl: a has %lld rows; up to %d are offered", (long long)n, LDL_MOST);
  }
  if (w.batch == 0) return RDNA_OK;
  if (n == 0) return rdna_op_fill(stream, rdna_scalar_integer(0), info);
  struct ldl_args args = {.a = a->data, .pivots = pivots->data, .info = info->data, .n = (uint32_t)n};
  RDNA_TRY(rdna__check_groups(w.name, w.batch, 1, &args.batch));
  return rdna__part_launch(&w, &routes[0], args.batch, &args);
}
