/* LU of complex matrices: one launch, a group for each matrix. */
#include "math/linalg/complex_lu_kernels.h"
#include "math/linalg/parts.h"
#include "rdna/op/linalg.h"
#include "rdna/op/movement.h"

static const rdna__route routes[] = {
    {.name = "whole",
     .kernels = {"complex_lu_{f32|f64}"},
     .when = "up to 1024 rows and columns: a group for each matrix"},
};
RDNA_FIXED_ROUTES(rdna__complex_lu_routes, "complex_lu", routes)

rdna_status rdna_op_complex_lu(rdna_stream *stream, bool pivoted, const rdna_tensor *a, const rdna_tensor *pivots,
                               const rdna_tensor *info) {
  rdna__parts w = {.stream = stream, .name = "complex_lu"};
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__check_tensor(w.name, "a", a));
  if (a->dtype != RDNA_F32 && a->dtype != RDNA_F64) {
    return rdna__fail(RDNA_UNSUPPORTED, "complex_lu: a is %s; the types offered are f32 and f64",
                      rdna_dtype_name(a->dtype));
  }
  RDNA_TRY(rdna__check_rank(w.name, "a", a, 4));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 3, 2, "a pair's"));
  RDNA_TRY(rdna__check_contiguous(w.name, "a", a));
  w.dtype = a->dtype, w.batch = a->shape[0];
  int64_t n = a->shape[1], m = a->shape[2];
  RDNA_TRY(rdna__part_check_numbers(&w, "pivots", pivots, m < n ? m : n));
  RDNA_TRY(rdna__part_check_numbers(&w, "info", info, -1));
  RDNA_TRY(rdna__check_apart(w.name, "pivots", pivots, "a", a));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "a", a));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "pivots", pivots));
  if (m > COMPLEX_LU_MOST || n > COMPLEX_LU_MOST) {
    return rdna__fail(RDNA_UNSUPPORTED, "complex_lu: a has %lld rows and %lld columns; up to %d are offered",
                      (long long)m, (long long)n, COMPLEX_LU_MOST);
  }
  if (w.batch == 0) return RDNA_OK;
  if (m == 0 || n == 0) return rdna_op_fill(stream, rdna_scalar_integer(0), info);
  struct complex_lu_args args = {.a = a->data,
                                 .pivots = pivots->data,
                                 .info = info->data,
                                 .m = (uint32_t)m,
                                 .n = (uint32_t)n,
                                 .in_place = !pivoted};
  RDNA_TRY(rdna__check_groups(w.name, w.batch, 1, &args.batch));
  return rdna__part_launch(&w, &routes[0], args.batch, &args);
}
