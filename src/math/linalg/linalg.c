/* Triangular matrices in blocks of LINALG_BLOCK columns. Before a block's turn one product subtracts from it what the
 * blocks before it contribute, so that nearly all work is in products, and nothing is computed twice. */
#include "rdna/op/linalg.h"

#include "math/common/plan/route.h"
#include "math/linalg/linalg_kernels.h"
#include "math/linalg/parts.h"

enum { CHOLESKY, TRIANGULAR };
static const rdna__route routes[] = {
    [CHOLESKY] = {.name = "cholesky",
                  .kernels = {"cholesky_{f32|f64}"},
                  .when = "blocks on the diagonal: a group for each"},
    [TRIANGULAR] = {.name = "triangular",
                    .kernels = {"solve_triangular_{f32|f64}"},
                    .when = "what stands below or beside such a block: a thread for each column"},
};
RDNA_FIXED_ROUTES(rdna__linalg_routes, "cholesky, solve_triangular", routes)

rdna_status rdna__part_solve(const rdna__parts *w, rdna__part l, bool upper, bool unit, rdna__part x) {
  if (x.columns == 0) return RDNA_OK;
  struct triangular_args args = {.l = l.data,
                                 .x = x.data,
                                 .l_stride = l.stride,
                                 .l_row = l.row,
                                 .l_column = l.column,
                                 .x_stride = x.stride,
                                 .x_row = x.row,
                                 .x_column = x.column,
                                 .columns = x.columns,
                                 .n = (uint32_t)l.rows,
                                 .flipped = upper,
                                 .unit = unit};
  int64_t parts = rdna__divide_up(x.columns, TRIANGULAR_THREADS);
  uint32_t ignored;
  RDNA_TRY(rdna__check_groups(w->name, parts, 1, &ignored));
  RDNA_TRY(rdna__check_groups(w->name, parts * w->batch, 1, &args.units));
  args.parts = (uint32_t)parts;
  return RDNA__ROUTE_LAUNCH(w->stream, &routes[TRIANGULAR], 0, ((rdna_grid){args.units, 1, 1}), &args,
                            rdna_dtype_name(w->dtype));
}

rdna_status rdna_op_cholesky(rdna_stream *stream, bool upper, const rdna_tensor *a, const rdna_tensor *info) {
  rdna__parts w = {.stream = stream, .name = "cholesky"};
  rdna__part p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &p));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 2, p.rows, "its rows"));
  RDNA_TRY(rdna__part_check_written(&w, "a", a, p));
  RDNA_TRY(rdna__part_check_numbers(&w, "info", info, -1));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "a", a));
  if (w.batch == 0) return RDNA_OK;
  int64_t n = p.rows, first = 0;
  if (upper) p = rdna__part_turned(p);
  do { /* once for n 0 too, which sets |info| */
    int64_t columns = n - first < LINALG_BLOCK ? n - first : LINALG_BLOCK, next = first + columns;
    rdna__part before = rdna__part_cut(&w, p, first, n - first, 0, first),
               row = rdna__part_cut(&w, p, first, columns, 0, first);
    RDNA_TRY(rdna__part_subtract(&w, before, rdna__part_turned(row),
                                 rdna__part_cut(&w, p, first, n - first, first, columns)));
    rdna__part block = rdna__part_cut(&w, p, first, columns, first, columns);
    struct cholesky_args args = {.a = block.data,
                                 .info = info->data,
                                 .stride = p.stride,
                                 .row = p.row,
                                 .column = p.column,
                                 .n = (uint32_t)columns,
                                 .first = (uint32_t)first};
    RDNA_TRY(rdna__check_groups(w.name, w.batch, 1, &args.batch));
    RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, &routes[CHOLESKY], 0, ((rdna_grid){args.batch, 1, 1}), &args,
                                rdna_dtype_name(w.dtype)));
    RDNA_TRY(rdna__part_solve(&w, block, false, false,
                              rdna__part_turned(rdna__part_cut(&w, p, next, n - next, first, columns))));
    first = next;
  } while (first < n);
  return RDNA_OK;
}

rdna_status rdna_op_solve_triangular(rdna_stream *stream, bool upper, bool unit, const rdna_tensor *a,
                                     const rdna_tensor *x) {
  rdna__parts w = {.stream = stream, .name = "solve_triangular"};
  rdna__part l, p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &l));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 2, l.rows, "its rows"));
  RDNA_TRY(rdna__part_check(&w, "x", x, &p));
  RDNA_TRY(rdna__check_same_dtype(w.name, "x", x, "a", a));
  RDNA_TRY(rdna__check_size(w.name, "x", x, 0, a->shape[0], "the batch of a"));
  RDNA_TRY(rdna__check_size(w.name, "x", x, 1, l.rows, "the rows of a"));
  RDNA_TRY(rdna__part_check_written(&w, "x", x, p));
  RDNA_TRY(rdna__check_apart(w.name, "x", x, "a", a));
  int64_t n = l.rows;
  for (int64_t done = 0; done < n && w.batch > 0 && p.columns > 0;) {
    int64_t rows = n - done < LINALG_BLOCK ? n - done : LINALG_BLOCK, next = done + rows;
    int64_t at = upper ? n - next : done, solved = upper ? n - done : 0;
    RDNA_TRY(rdna__part_subtract(&w, rdna__part_cut(&w, l, at, rows, solved, done),
                                 rdna__part_cut(&w, p, solved, done, 0, p.columns),
                                 rdna__part_cut(&w, p, at, rows, 0, p.columns)));
    RDNA_TRY(rdna__part_solve(&w, rdna__part_cut(&w, l, at, rows, at, rows), upper, unit,
                              rdna__part_cut(&w, p, at, rows, 0, p.columns)));
    done = next;
  }
  return RDNA_OK;
}
