/* LU in panels of LU_BLOCK columns: a panel is factored, its exchanges of rows are made in all other columns, and one
 * product subtracts what it contributes from what is right of it and below, so that nearly all work is in products. */
#include "math/linalg/lu_kernels.h"
#include "math/linalg/parts.h"
#include "rdna/op/linalg.h"

enum { SMALL, TALL, SWAP };
static const rdna__route routes[] = {
    [SMALL] = {.name = "small", .kernels = {"lu_small_{f32|f64}"}, .when = "panels of up to 128 rows: in group memory"},
    [TALL] = {.name = "tall", .kernels = {"lu_tall_{f32|f64}"}, .when = "panels of more rows: where they are"},
    [SWAP] = {.name = "swap", .kernels = {"swap_rows_{f32|f64}"}, .when = "the other columns: a thread for each"},
};
RDNA_FIXED_ROUTES(rdna__lu_routes, "lu, swap_rows", routes)

/* Rows first to first + count of |x| change places, not in columns |skipped| to |resumed|. */
static rdna_status swap(const rdna__parts *w, rdna__part x, const rdna_tensor *pivots, int64_t first, int64_t count,
                        bool backwards, int64_t skipped, int64_t resumed) {
  struct swap_args args = {.x = x.data,
                           .pivots = pivots->data,
                           .stride = x.stride,
                           .row = x.row,
                           .column = x.column,
                           .pivots_stride = pivots->shape[1],
                           .columns = x.columns - (resumed - skipped),
                           .skipped = skipped,
                           .resumed = resumed,
                           .rows = (uint32_t)x.rows,
                           .first = (uint32_t)first,
                           .count = (uint32_t)count,
                           .backwards = backwards};
  if (args.columns == 0 || count == 0 || w->batch == 0) return RDNA_OK;
  RDNA_TRY(rdna__check_groups(w->name, args.columns, SWAP_THREADS, &args.parts));
  RDNA_TRY(rdna__check_groups(w->name, args.parts * w->batch, 1, &args.units));
  return rdna__part_launch(w, &routes[SWAP], args.units, &args);
}

static rdna_status factor(const rdna__parts *w, rdna__part panel, bool pivoted, int64_t first,
                          const rdna_tensor *pivots, const rdna_tensor *info) {
  struct lu_args args = {.a = panel.data,
                         .pivots = pivots->data,
                         .info = info->data,
                         .stride = panel.stride,
                         .row = panel.row,
                         .column = panel.column,
                         .pivots_stride = pivots->shape[1],
                         .m = (uint32_t)panel.rows,
                         .n = (uint32_t)panel.columns,
                         .first = (uint32_t)first,
                         .in_place = !pivoted};
  RDNA_TRY(rdna__check_groups(w->name, w->batch, 1, &args.batch));
  return rdna__part_launch(w, &routes[panel.rows <= LU_SMALL_ROWS ? SMALL : TALL], args.batch, &args);
}

rdna_status rdna_op_lu(rdna_stream *stream, bool pivoted, const rdna_tensor *a, const rdna_tensor *pivots,
                       const rdna_tensor *info) {
  rdna__parts w = {.stream = stream, .name = "lu"};
  rdna__part p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &p));
  RDNA_TRY(rdna__part_check_written(&w, "a", a, p));
  int64_t m = p.rows, n = p.columns, least = m < n ? m : n, first = 0;
  RDNA_TRY(rdna__part_check_rows(&w, "a", m));
  RDNA_TRY(rdna__part_check_numbers(&w, "pivots", pivots, least));
  RDNA_TRY(rdna__part_check_numbers(&w, "info", info, -1));
  RDNA_TRY(
      rdna__check_written_apart(w.name, (rdna__named[]){{"a", a}, {"pivots", pivots}, {"info", info}}, 3, NULL, 0, 0));
  if (w.batch == 0) return RDNA_OK;
  do { /* once for sizes of 0 too, which sets |info| */
    int64_t columns = least - first < LU_BLOCK ? least - first : LU_BLOCK, next = first + columns;
    RDNA_TRY(
        factor(&w, rdna__part_cut(&w, p, first, least ? m - first : 0, first, columns), pivoted, first, pivots, info));
    if (pivoted) RDNA_TRY(swap(&w, p, pivots, first, columns, false, first, next));
    rdna__part right = rdna__part_cut(&w, p, first, columns, next, n - next);
    RDNA_TRY(rdna__part_solve(&w, rdna__part_cut(&w, p, first, columns, first, columns), false, true, right));
    RDNA_TRY(rdna__part_subtract(&w, rdna__part_cut(&w, p, next, m - next, first, columns), right,
                                 rdna__part_cut(&w, p, next, m - next, next, n - next)));
    first = next;
  } while (first < least);
  return RDNA_OK;
}

rdna_status rdna_op_swap_rows(rdna_stream *stream, bool backwards, const rdna_tensor *pivots, const rdna_tensor *x) {
  rdna__parts w = {.stream = stream, .name = "swap_rows"};
  rdna__part p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "x", x, &p));
  RDNA_TRY(rdna__part_check_written(&w, "x", x, p));
  RDNA_TRY(rdna__part_check_beside(&w, "pivots", pivots, RDNA_I32, 2));
  RDNA_TRY(rdna__check_apart(w.name, "x", x, "pivots", pivots));
  RDNA_TRY(rdna__part_check_rows(&w, "x", p.rows));
  if (pivots->shape[1] > p.rows) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "swap_rows: pivots has %lld columns and x %lld rows; at most one a row",
                      (long long)pivots->shape[1], (long long)p.rows);
  }
  return swap(&w, p, pivots, 0, pivots->shape[1], backwards, 0, 0);
}
