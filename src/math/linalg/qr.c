/* QR in panels of QR_BLOCK columns: a panel's reflections together are 1 - v^T t v, so that what is right of it needs
 * three products, and nearly all work is in them. */
#include "math/common/plan/scratch.h"
#include "math/linalg/parts.h"
#include "math/linalg/qr_kernels.h"
#include "rdna/op/linalg.h"

enum { SMALL, TALL };
static const rdna__route routes[] = {
    [SMALL] = {.name = "small", .kernels = {"qr_small_{f32|f64}"}, .when = "panels of up to 128 rows: in group memory"},
    [TALL] = {.name = "tall", .kernels = {"qr_tall_{f32|f64}"}, .when = "panels of more rows: where they are"},
};
RDNA_FIXED_ROUTES(rdna__qr_routes, "qr, reflect", routes)

/* A panel's reflections, and memory for what they make of a matrix. */
typedef struct reflections {
  void *v, *t;
  void *vx, *tvx; /* v^T x, and t times it */
} reflections;

/* Takes memory for panels of a matrix of |rows| that reflect |columns|; none where nothing is to be reflected. */
static rdna_status prepare(const rdna__parts *w, rdna__scratch *scratch, int64_t rows, int64_t columns,
                           reflections *out) {
  *out = (reflections){NULL};
  if (columns == 0 || rows == 0) return RDNA_OK;
  RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(w->dtype, w->batch * rows * QR_BLOCK), &out->v));
  RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(w->dtype, w->batch * QR_BLOCK * QR_BLOCK), &out->t));
  RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(w->dtype, w->batch * QR_BLOCK * columns), &out->vx));
  return rdna__scratch_take(scratch, rdna_dtype_bytes(w->dtype, w->batch * QR_BLOCK * columns), &out->tvx);
}

static rdna_status launch(const rdna__parts *w, rdna__part panel, const rdna_tensor *tau, int64_t first, bool given,
                          const reflections *r) {
  struct qr_args args = {.a = panel.data,
                         .tau = (char *)tau->data + first * (int64_t)rdna_dtype_block_bytes(w->dtype),
                         .v = r->v,
                         .t = r->t,
                         .stride = panel.stride,
                         .row = panel.row,
                         .column = panel.column,
                         .tau_stride = tau->shape[1],
                         .m = (uint32_t)panel.rows,
                         .n = (uint32_t)panel.columns,
                         .given = given};
  RDNA_TRY(rdna__check_groups(w->name, w->batch, 1, &args.batch));
  return rdna__part_launch(w, &routes[panel.rows <= QR_SMALL_ROWS ? SMALL : TALL], args.batch, &args);
}

/* x becomes x - v t (v^T x), with t transposed if |transposed|; v has |rows| rows and |count| columns. */
static rdna_status apply(const rdna__parts *w, const reflections *r, int64_t count, bool transposed, rdna__part x) {
  if (x.columns == 0) return RDNA_OK;
  rdna__part v = {r->v, x.rows, count, 1, x.rows, x.rows * count}, t = {r->t, count, count, count, 1, count * count};
  rdna__part vx = {r->vx, count, x.columns, x.columns, 1, count * x.columns}, tvx = vx;
  tvx.data = r->tvx;
  RDNA_TRY(rdna__part_product(w, 1, rdna__part_transposed(v), x, 0, vx));
  RDNA_TRY(rdna__part_product(w, 1, transposed ? rdna__part_transposed(t) : t, vx, 0, tvx));
  return rdna__part_subtract(w, v, tvx, x);
}

static rdna_status factor(const rdna__parts *w, rdna__scratch *scratch, rdna__part a, const rdna_tensor *tau) {
  int64_t m = a.rows, n = a.columns, least = m < n ? m : n;
  reflections r;
  RDNA_TRY(prepare(w, scratch, m, n > QR_BLOCK || n > m ? n : 0, &r));
  for (int64_t first = 0; first < least; first += QR_BLOCK) {
    int64_t columns = least - first < QR_BLOCK ? least - first : QR_BLOCK, next = first + columns;
    reflections none = {NULL};
    RDNA_TRY(
        launch(w, rdna__part_cut(w, a, first, m - first, first, columns), tau, first, false, next < n ? &r : &none));
    RDNA_TRY(apply(w, &r, columns, true, rdna__part_cut(w, a, first, m - first, next, n - next)));
  }
  return RDNA_OK;
}

rdna_status rdna_op_qr(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *tau) {
  rdna__parts w = {.stream = stream, .name = "qr"};
  rdna__part p;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &p));
  RDNA_TRY(rdna__part_check_written(&w, "a", a, p));
  RDNA_TRY(rdna__part_check_beside(&w, "tau", tau, a->dtype, 2));
  int64_t least = p.rows < p.columns ? p.rows : p.columns;
  RDNA_TRY(rdna__check_size(w.name, "tau", tau, 1, least, "the fewer of rows and columns"));
  RDNA_TRY(rdna__check_apart(w.name, "tau", tau, "a", a));
  RDNA_TRY(rdna__part_check_rows(&w, "a", p.rows));
  if (w.batch == 0 || least == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = w.name};
  return rdna__scratch_release(&scratch, factor(&w, &scratch, p, tau));
}

/* The product's last factor comes first, unless it is transposed. */
static rdna_status reflect(const rdna__parts *w, rdna__scratch *scratch, bool transposed, bool upper, rdna__part a,
                           const rdna_tensor *tau, rdna__part x) {
  int64_t count = tau->shape[1], panels = rdna__divide_up(count, QR_BLOCK);
  reflections r;
  RDNA_TRY(prepare(w, scratch, x.rows, x.columns, &r));
  for (int64_t i = 0; i < panels; i++) {
    int64_t first = (transposed ? i : panels - 1 - i) * QR_BLOCK, rows = x.rows - first;
    int64_t columns = count - first < QR_BLOCK ? count - first : QR_BLOCK, skipped = upper ? first : 0;
    if (skipped >= x.columns) continue;
    RDNA_TRY(launch(w, rdna__part_cut(w, a, first, rows, first, columns), tau, first, true, &r));
    RDNA_TRY(apply(w, &r, columns, transposed, rdna__part_cut(w, x, first, rows, skipped, x.columns - skipped)));
  }
  return RDNA_OK;
}

rdna_status rdna_op_reflect(rdna_stream *stream, bool transposed, bool upper, const rdna_tensor *a,
                            const rdna_tensor *tau, const rdna_tensor *x) {
  rdna__parts w = {.stream = stream, .name = "reflect"};
  rdna__part p, to;
  RDNA_TRY(rdna__check_stream(w.name, stream));
  RDNA_TRY(rdna__part_check(&w, "a", a, &p));
  RDNA_TRY(rdna__part_check_beside(&w, "tau", tau, a->dtype, 2));
  RDNA_TRY(rdna__part_check(&w, "x", x, &to));
  RDNA_TRY(rdna__check_same_dtype(w.name, "x", x, "a", a));
  RDNA_TRY(rdna__check_size(w.name, "x", x, 0, a->shape[0], "the batch of a"));
  RDNA_TRY(rdna__check_size(w.name, "x", x, 1, p.rows, "the rows of a"));
  RDNA_TRY(rdna__part_check_written(&w, "x", x, to));
  RDNA_TRY(
      rdna__check_written_apart(w.name, (rdna__named[]){{"x", x}}, 1, (rdna__named[]){{"a", a}, {"tau", tau}}, 2, 0));
  RDNA_TRY(rdna__part_check_rows(&w, "a", p.rows));
  int64_t least = p.rows < p.columns ? p.rows : p.columns;
  if (tau->shape[1] > least) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "reflect: tau has %lld columns; a of %lld x %lld has at most %lld reflections",
                      (long long)tau->shape[1], (long long)p.rows, (long long)p.columns, (long long)least);
  }
  if (upper && transposed) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "reflect: upper needs the product that is not transposed");
  }
  if (rdna_tensor_count(x) == 0 || tau->shape[1] == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = w.name};
  return rdna__scratch_release(&scratch, reflect(&w, &scratch, transposed, upper, p, tau, to));
}
