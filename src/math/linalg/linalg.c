/* Triangular matrices in blocks, between which products do the rest. */
#include "rdna/op/linalg.h"

#include "math/linalg/linalg_kernels.h"
#include "math/linalg/parts.h"

enum { CHOLESKY, TRIANGULAR, THIN };
static const rdna__route routes[] = {
    [CHOLESKY] = {.name = "cholesky",
                  .kernels = {"cholesky_{f32|f64}"},
                  .when = "blocks on the diagonal: a group for each"},
    [TRIANGULAR] = {.name = "triangular",
                    .kernels = {"solve_triangular_{f32|f64}"},
                    .when = "systems of up to 128 rows: a group for every 32 columns"},
    [THIN] = {.name = "thin",
              .kernels = {"solve_thin_{f32|f64}"},
              .when = "systems of more than 128 and up to 256 rows, with up to 32 columns: a group for each column"},
};
RDNA_FIXED_ROUTES(rdna__linalg_routes, "cholesky, solve_triangular", routes)

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

/* The block on the diagonal at |first|, which lies in |p|, and what is below it in its columns. */
static rdna_status factor_block(const rdna__parts *w, rdna__part p, int64_t first, int64_t columns,
                                const rdna_tensor *info) {
  rdna__part block = rdna__part_cut(w, p, first, columns, first, columns);
  int64_t next = first + columns;
  struct cholesky_args args = {.a = block.data,
                               .info = info->data,
                               .stride = p.stride,
                               .row = p.row,
                               .column = p.column,
                               .n = (uint32_t)columns,
                               .first = (uint32_t)first};
  RDNA_TRY(rdna__check_groups(w->name, w->batch, 1, &args.batch));
  RDNA_TRY(rdna__part_launch(w, &routes[CHOLESKY], args.batch, &args));
  return rdna__part_solve(w, block, false, false,
                          rdna__part_transposed(rdna__part_cut(w, p, next, p.rows - next, first, columns)));
}

/* A panel of WIDE columns, block by block: before a block's turn a product subtracts from it what the panel's blocks
 * before it contribute. What the panel contributes to all that is right of it, one product subtracts: on both sides of
 * the diagonal, which is less than several products would cost. */
enum { WIDE = 4 * LINALG_BLOCK };

static rdna_status factor(const rdna__parts *w, rdna__part p, const rdna_tensor *info) {
  int64_t n = p.rows, first = 0;
  do { /* once for n 0 too, which sets |info| */
    int64_t end = n - first < WIDE ? n : first + WIDE;
    int64_t at = first;
    do {
      int64_t columns = end - at < LINALG_BLOCK ? end - at : LINALG_BLOCK;
      rdna__part row = rdna__part_cut(w, p, at, columns, first, at - first);
      RDNA_TRY(rdna__part_subtract(w, rdna__part_cut(w, p, at, n - at, first, at - first), rdna__part_transposed(row),
                                   rdna__part_cut(w, p, at, n - at, at, columns)));
      RDNA_TRY(factor_block(w, p, at, columns, info));
      at += columns;
    } while (at < end);
    rdna__part below = rdna__part_cut(w, p, end, n - end, first, end - first);
    if (end < n) {
      RDNA_TRY(rdna__part_subtract(w, below, rdna__part_transposed(below),
                                   rdna__part_cut(w, p, end, n - end, end, n - end)));
    }
    first = end;
  } while (first < n);
  return RDNA_OK;
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
  if (upper) p = rdna__part_transposed(p);
  return factor(&w, p, info);
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
