/* Cholesky's factors in blocks of CHOLESKY_BLOCK columns: one launch factors a block and the rows below it, one product
 * subtracts what it contributes from all that is right of it. The product writes both sides of the diagonal, which is
 * less than several products would cost. */
#include "math/linalg/cholesky_kernels.h"
#include "math/linalg/parts.h"
#include "rdna/op/linalg.h"

static const rdna__route routes[] = {
    {.name = "blocks",
     .kernels = {"cholesky_{f32|f64}"},
     .when = "128 columns: a group for every 32 rows below the diagonal, one for the diagonal of the block before"},
};
RDNA_FIXED_ROUTES(rdna__cholesky_routes, "cholesky", routes)

static rdna_status factor(const rdna__parts *w, rdna__part p, const rdna_tensor *info) {
  int64_t n = p.rows, first = 0, next;
  do { /* once for n 0 too, which sets |info| */
    next = n - first < CHOLESKY_BLOCK ? n : first + CHOLESKY_BLOCK;
    struct cholesky_args args = {.a = p.data,
                                 .info = info->data,
                                 .stride = p.stride,
                                 .row = p.row,
                                 .column = p.column,
                                 .n = (uint32_t)n,
                                 .first = (uint32_t)first};
    int64_t parts = rdna__divide_up(n - next, CHOLESKY_ROWS) + (first > 0) + (next == n);
    args.parts = (uint32_t)parts;
    RDNA_TRY(rdna__check_groups(w->name, parts * w->batch, 1, &args.units));
    RDNA_TRY(rdna__part_launch(w, routes, args.units, &args));
    rdna__part below = rdna__part_cut(w, p, next, n - next, first, next - first);
    if (next < n) {
      RDNA_TRY(rdna__part_subtract(w, below, rdna__part_transposed(below),
                                   rdna__part_cut(w, p, next, n - next, next, n - next)));
    }
    first = next;
  } while (first < n);
  return RDNA_OK;
}

rdna_status rdna_op_cholesky(rdna_stream *stream, bool upper, const rdna_tensor *a, const rdna_tensor *info) {
  rdna__parts w = {.stream = stream, .name = "cholesky"};
  rdna__part p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &p));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 2, p.rows, "its rows"));
  RDNA_TRY(rdna__part_check_rows(&w, "a", p.rows));
  RDNA_TRY(rdna__part_check_written(&w, "a", a, p));
  RDNA_TRY(rdna__part_check_numbers(&w, "info", info, -1));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "a", a));
  if (w.batch == 0) return RDNA_OK;
  if (upper) p = rdna__part_transposed(p);
  return factor(&w, p, info);
}
