/* Triangular matrices in blocks of LINALG_BLOCK columns. Before a block's turn one product subtracts from it what the
 * blocks before it contribute, so that nearly all work is in products, and nothing is computed twice. */
#include "rdna/op/linalg.h"

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/gemm/gemm.h"
#include "math/linalg/linalg_kernels.h"

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

/* A part of each matrix of a batch; element (i, j) lies at i * row + j * column, and one of these two is 1. */
typedef struct part {
  char *data;
  int64_t rows, columns, row, column, stride;
} part;

typedef struct work {
  rdna_stream *stream;
  const char *name;
  rdna_dtype dtype;
  int64_t batch;
} work;

static part cut(const work *w, part p, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  int64_t value = (int64_t)rdna_dtype_block_bytes(w->dtype);
  return (part){p.data + (row * p.row + column * p.column) * value, rows, columns, p.row, p.column, p.stride};
}
static part turned(part p) { return (part){p.data, p.columns, p.rows, p.column, p.row, p.stride}; }

/* c -= a b. Parts of one matrix lie between each other, which rdna_op_gemm takes for overlap. */
static rdna_status subtract_product(const work *w, part a, part b, part c) {
  if (c.column != 1) {
    part left = turned(b);
    b = turned(a), a = left, c = turned(c);
  }
  const rdna_dtype types[3] = {w->dtype, w->dtype, w->dtype};
  bool a_turned = a.column != 1, b_turned = b.column != 1;
  struct gemm_args args = {.a = a.data, .b = b.data, .c = c.data, .alpha = -1, .beta = 1};
  args.lda = a_turned ? a.column : a.row, args.ldb = b_turned ? b.column : b.row, args.ldc = c.row;
  args.stride_a = a.stride, args.stride_b = b.stride, args.stride_c = c.stride;
  args.flags = (a_turned ? GEMM_A_TRANSPOSED : 0) | (b_turned ? GEMM_B_TRANSPOSED : 0);
  return a.columns == 0 ? RDNA_OK
                        : rdna__gemm_launch(w->stream, w->name, types, args, c.rows, c.columns, a.columns, w->batch);
}

/* l x' = x for a block on the diagonal. */
static rdna_status solve_block(const work *w, part l, bool upper, bool unit, part x) {
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

static rdna_status check(work *w, const char *argument, const rdna_tensor *t, part *out_part) {
  RDNA_TRY(rdna__check_tensor(w->name, argument, t));
  if (t->dtype != RDNA_F32 && t->dtype != RDNA_F64) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; the types offered are f32 and f64", w->name, argument,
                      rdna_dtype_name(t->dtype));
  }
  RDNA_TRY(rdna__check_rank(w->name, argument, t, 3));
  rdna__matrix m;
  RDNA_TRY(rdna__matrix_view(w->name, argument, t, &m));
  w->dtype = t->dtype, w->batch = m.batch;
  *out_part = (part){t->data, m.rows, m.columns, m.turned ? 1 : m.ld, m.turned ? m.ld : 1, m.stride};
  return RDNA_OK;
}

static rdna_status check_written(const work *w, const char *argument, const rdna_tensor *t, part p) {
  if (rdna_tensor_count(t) == 0) return RDNA_OK;
  if (p.column != 1) p = turned(p);
  rdna__matrix m = {.rows = p.rows, .columns = p.columns, .batch = w->batch, .ld = p.row, .stride = p.stride};
  rdna_tensor view = *t;
  view.shape[1] = p.rows, view.shape[2] = p.columns, view.stride[1] = p.row, view.stride[2] = p.column;
  return rdna__matrix_check_written(w->name, argument, &view, &m);
}

rdna_status rdna_op_cholesky(rdna_stream *stream, bool upper, const rdna_tensor *a, const rdna_tensor *info) {
  work w = {.stream = stream, .name = "cholesky"};
  part p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(check(&w, "a", a, &p));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 2, p.rows, "its rows"));
  RDNA_TRY(check_written(&w, "a", a, p));
  RDNA_TRY(rdna__check_tensor(w.name, "info", info));
  RDNA_TRY(rdna__check_dtype(w.name, "info", info, RDNA_I32));
  RDNA_TRY(rdna__check_rank(w.name, "info", info, 1));
  RDNA_TRY(rdna__check_size(w.name, "info", info, 0, w.batch, "the batch"));
  RDNA_TRY(rdna__check_contiguous(w.name, "info", info));
  RDNA_TRY(rdna__check_apart(w.name, "info", info, "a", a));
  if (w.batch == 0) return RDNA_OK;
  int64_t n = p.rows, first = 0;
  if (upper) p = turned(p);
  do { /* once for n 0 too, which sets |info| */
    int64_t columns = n - first < LINALG_BLOCK ? n - first : LINALG_BLOCK, next = first + columns;
    part before = cut(&w, p, first, n - first, 0, first), row = cut(&w, p, first, columns, 0, first);
    RDNA_TRY(subtract_product(&w, before, turned(row), cut(&w, p, first, n - first, first, columns)));
    part block = cut(&w, p, first, columns, first, columns);
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
    RDNA_TRY(solve_block(&w, block, false, false, turned(cut(&w, p, next, n - next, first, columns))));
    first = next;
  } while (first < n);
  return RDNA_OK;
}

rdna_status rdna_op_solve_triangular(rdna_stream *stream, bool upper, bool unit, const rdna_tensor *a,
                                     const rdna_tensor *x) {
  work w = {.stream = stream, .name = "solve_triangular"};
  part l, p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(check(&w, "a", a, &l));
  RDNA_TRY(rdna__check_size(w.name, "a", a, 2, l.rows, "its rows"));
  RDNA_TRY(check(&w, "x", x, &p));
  RDNA_TRY(rdna__check_same_dtype(w.name, "x", x, "a", a));
  RDNA_TRY(rdna__check_size(w.name, "x", x, 0, a->shape[0], "the batch of a"));
  RDNA_TRY(rdna__check_size(w.name, "x", x, 1, l.rows, "the rows of a"));
  RDNA_TRY(check_written(&w, "x", x, p));
  RDNA_TRY(rdna__check_apart(w.name, "x", x, "a", a));
  int64_t n = l.rows;
  for (int64_t done = 0; done < n && w.batch > 0 && p.columns > 0;) {
    int64_t rows = n - done < LINALG_BLOCK ? n - done : LINALG_BLOCK, next = done + rows;
    int64_t at = upper ? n - next : done, solved = upper ? n - done : 0;
    RDNA_TRY(subtract_product(&w, cut(&w, l, at, rows, solved, done), cut(&w, p, solved, done, 0, p.columns),
                              cut(&w, p, at, rows, 0, p.columns)));
    RDNA_TRY(solve_block(&w, cut(&w, l, at, rows, at, rows), upper, unit, cut(&w, p, at, rows, 0, p.columns)));
    done = next;
  }
  return RDNA_OK;
}
