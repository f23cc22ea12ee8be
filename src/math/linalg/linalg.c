/* Triangular matrices in blocks, between which products do the rest. */
#include "rdna/op/linalg.h"

#include "math/linalg/linalg_kernels.h"
#include "math/linalg/parts.h"

enum { TRIANGULAR, THIN };
static const rdna__route routes[] = {
    [TRIANGULAR] = {.name = "triangular",
                    .kernels = {"solve_triangular_{f32|f64}"},
                    .when = "systems of up to 128 rows: a group for every 32 columns"},
    [THIN] = {.name = "thin",
              .kernels = {"solve_thin_{f32|f64}"},
              .when = "systems of more than 128 and up to 256 rows, with up to 32 columns: a group for each column"},
};
RDNA_FIXED_ROUTES(rdna__linalg_routes, "solve_triangular", routes)

/* Solves by kernel |which|, of which a group has |columns| of x. */
static rdna_status launch(const rdna__parts *w, int which, int64_t columns, rdna__part l, bool upper, bool unit,
                          rdna__part x) {
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
  RDNA_TRY(rdna__check_groups(w->name, x.columns, columns, &args.parts));
  RDNA_TRY(rdna__check_groups(w->name, args.parts * w->batch, 1, &args.units));
  return rdna__part_launch(w, &routes[which], args.units, &args);
}

rdna_status rdna__part_solve(const rdna__parts *w, rdna__part l, bool upper, bool unit, rdna__part x) {
  return x.columns == 0 ? RDNA_OK : launch(w, TRIANGULAR, TRIANGULAR_COLUMNS, l, upper, unit, x);
}

/* Halves: what one solves is subtracted from the other's right sides by one product, so that nearly all work is in
 * products of which no side is short. */
static rdna_status solve(const rdna__parts *w, rdna__part l, bool upper, bool unit, rdna__part x) {
  if (l.rows <= TRIANGULAR_BLOCK) return rdna__part_solve(w, l, upper, unit, x);
  int64_t n = l.rows, half = rdna__divide_up(rdna__divide_up(n, TRIANGULAR_BLOCK), 2) * TRIANGULAR_BLOCK;
  rdna__part top = rdna__part_cut(w, l, 0, half, 0, half),
             bottom = rdna__part_cut(w, l, half, n - half, half, n - half);
  rdna__part above = rdna__part_cut(w, x, 0, half, 0, x.columns),
             below = rdna__part_cut(w, x, half, n - half, 0, x.columns);
  RDNA_TRY(solve(w, upper ? bottom : top, upper, unit, upper ? below : above));
  if (upper) RDNA_TRY(rdna__part_subtract(w, rdna__part_cut(w, l, 0, half, half, n - half), below, above));
  if (!upper) RDNA_TRY(rdna__part_subtract(w, rdna__part_cut(w, l, half, n - half, 0, half), above, below));
  return solve(w, upper ? top : bottom, upper, unit, upper ? above : below);
}

/* A group reads all of l for its column, which for few rows takes less time than launches would. */
enum { THIN_COLUMNS = 32, THIN_ROWS = 2 * TRIANGULAR_BLOCK };

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
  if (w.batch == 0 || l.rows == 0 || p.columns == 0) return RDNA_OK;
  bool thin = l.rows > TRIANGULAR_BLOCK && l.rows <= THIN_ROWS && p.columns <= THIN_COLUMNS;
  return thin ? launch(&w, THIN, 1, l, upper, unit, p) : solve(&w, l, upper, unit, p);
}
