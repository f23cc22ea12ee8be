/* A product of complex matrices as one of real ones: the left factor and the result are read and written as they lie,
 * rows of reals twice as long, and each value of the right one becomes a block of two rows and columns
 * (complex_kernels.h). That is as much arithmetic as four real products. */
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "math/complex/complex_check.h"
#include "math/complex/complex_kernels.h"
#include "rdna/op/complex.h"
#include "rdna/op/gemm.h"
#include "rdna/op/movement.h"

static const char name[] = "complex_gemm";

static const rdna__route routes[] = {
    {.name = "blocks",
     .kernels = {"complex_blocks_{f32|f64}"},
     .when = "b as a matrix of reals, which gemm multiplies"},
};
RDNA_FIXED_ROUTES(rdna__complex_gemm_routes, "complex_gemm", routes)

/* Sizes and strides, in pairs, of a matrix or a batch of them. */
typedef struct matrix {
  int64_t batch, rows, columns, batch_stride, row_stride, column_stride;
} matrix;

static rdna_status check_matrix(const char *argument, const rdna_tensor *t, int rank, matrix *out) {
  RDNA_TRY(rdna__complex_check(name, argument, t));
  RDNA_TRY(rdna__check_rank(name, argument, t, rank));
  const rdna_tensor v = rdna__complex_values(t);
  int r = v.rank - 2;
  *out = (matrix){r ? v.shape[0] : 1, v.shape[r], v.shape[r + 1], r ? v.stride[0] : 0, v.stride[r], v.stride[r + 1]};
  int64_t most = (INT64_C(1) << 30) - (1 << 15);
  if (out->rows > most || out->columns > most || out->batch > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s has %lld rows and %lld columns; at most %lld are offered", name,
                      argument, (long long)out->rows, (long long)out->columns, (long long)most);
  }
  return RDNA_OK;
}

/* |a| with rows of contiguous pairs, as reals: itself or a copy. */
static rdna_status rows_of_reals(rdna__scratch *scratch, const rdna_tensor *a, const matrix *m, rdna_tensor *out) {
  int k = a->rank - 2;
  *out = *a;
  if (m->column_stride != 1 && m->columns > 1) {
    RDNA_TRY(rdna__scratch_tensor(scratch, a->dtype, a->rank, a->shape, out));
    rdna_tensor once = *a; /* a matrix that the whole batch has in common */
    if (k == 2 && a->stride[0] == 0) once.shape[0] = out->shape[0] = 1;
    RDNA_TRY(rdna_op_copy(scratch->stream, &once, out));
    if (k == 2 && a->stride[0] == 0) out->stride[0] = 0, out->shape[0] = a->shape[0];
  }
  out->rank--;
  out->shape[k] *= 2, out->stride[k] = 1;
  return RDNA_OK;
}

/* Makes the (2 k, 2 n) reals of b. Where b lies by columns, they do too. */
static rdna_status blocks_of(rdna__scratch *scratch, rdna_complex alpha, const rdna_tensor *b, const matrix *m,
                             bool conjugate_a, bool conjugate_b, rdna_tensor *out) {
  bool transposed = m->row_stride == 1 && m->column_stride != 1, shared = b->rank == 4 && m->batch_stride == 0;
  int64_t rows = transposed ? m->columns : m->rows, columns = transposed ? m->rows : m->columns;
  int64_t batch = shared && m->batch > 0 ? 1 : m->batch, shape[3] = {batch, 2 * rows, 2 * columns};
  int64_t count = batch * rows * columns;
  struct complex_blocks_args a = {.x = b->data,
                                  .x_batch = m->batch_stride,
                                  .x_row = transposed ? m->column_stride : m->row_stride,
                                  .x_column = transposed ? m->row_stride : m->column_stride,
                                  .factor = {alpha.real, alpha.imag},
                                  .rows = (uint32_t)rows,
                                  .columns = (uint32_t)columns,
                                  .count = (uint32_t)count};
  if (alpha.real != 1 || alpha.imag != 0) a.flags |= COMPLEX_SCALE;
  if (conjugate_a) a.flags |= COMPLEX_NEGATE_LOW;
  if (count > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: b has %lld values; at most 2^31 - 1 are offered", name, (long long)count);
  }
  RDNA_TRY(rdna__scratch_tensor(scratch, b->dtype, 3, shape, out));
  a.out = out->data;
  if (conjugate_b) a.flags |= COMPLEX_CONJ, a.factor[1] = -a.factor[1]; /* alpha is not conjugated with b */
  /* A transposed block is that of the conjugate; one with its second row negated is symmetric. */
  if (transposed && !conjugate_a) a.flags ^= COMPLEX_CONJ;
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(name, count, COMPLEX_THREADS, &grid.x));
  if (count > 0) {
    RDNA_TRY(RDNA__ROUTE_LAUNCH(scratch->stream, &routes[0], 0, grid, &a, rdna_dtype_name(b->dtype)));
  }
  if (transposed) {
    int64_t stride = out->stride[1];
    out->shape[1] = 2 * columns, out->shape[2] = 2 * rows, out->stride[1] = 1, out->stride[2] = stride;
  }
  if (shared) out->shape[0] = m->batch, out->stride[0] = 0;
  if (b->rank == 3) { /* a matrix, without a batch */
    out->rank = 2;
    for (int d = 0; d < 2; d++) out->shape[d] = out->shape[d + 1], out->stride[d] = out->stride[d + 1];
  }
  return RDNA_OK;
}

static rdna_status multiply(rdna__scratch *scratch, rdna_complex alpha, const rdna_tensor *a, const matrix *of_a,
                            bool conjugate_a, const rdna_tensor *b, const matrix *of_b, bool conjugate_b, bool add,
                            const rdna_tensor *c) {
  rdna_tensor left, right, to = *c;
  RDNA_TRY(rows_of_reals(scratch, a, of_a, &left));
  RDNA_TRY(blocks_of(scratch, alpha, b, of_b, conjugate_a, conjugate_b, &right));
  to.rank--;
  to.shape[to.rank - 1] *= 2, to.stride[to.rank - 1] = 1;
  return rdna_op_gemm(scratch->stream, 1, &left, &right, add ? 1 : 0, NULL, &to);
}

rdna_status rdna_op_complex_gemm(rdna_stream *stream, rdna_complex alpha, const rdna_tensor *a, bool conjugate_a,
                                 const rdna_tensor *b, bool conjugate_b, bool add, const rdna_tensor *c) {
  matrix of_a, of_b, of_c;
  RDNA_TRY(rdna__complex_check(name, "a", a));
  if (a->rank != 3 && a->rank != 4) {
    char text[RDNA__TENSOR_TEXT];
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: a is %s; it has 2 dimensions or 3, beside that of its pairs", name,
                      rdna__tensor_text(a, text));
  }
  RDNA_TRY(check_matrix("a", a, a->rank, &of_a));
  RDNA_TRY(check_matrix("b", b, a->rank, &of_b));
  RDNA_TRY(check_matrix("c", c, a->rank, &of_c));
  RDNA_TRY(rdna__check_same_dtype(name, "b", b, "a", a));
  RDNA_TRY(rdna__check_same_dtype(name, "c", c, "a", a));
  int r = a->rank - 3;
  if (r) RDNA_TRY(rdna__check_size(name, "b", b, 0, of_a.batch, "a's batch"));
  if (r) RDNA_TRY(rdna__check_size(name, "c", c, 0, of_a.batch, "a's batch"));
  RDNA_TRY(rdna__check_size(name, "b", b, r, of_a.columns, "a's columns"));
  RDNA_TRY(rdna__check_size(name, "c", c, r, of_a.rows, "a's rows"));
  RDNA_TRY(rdna__check_size(name, "c", c, r + 1, of_b.columns, "b's columns"));
  if (of_c.columns > 1 && of_c.column_stride != 1) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: c has pairs %lld from one another along its rows; they must be contiguous",
                      name, (long long)of_c.column_stride);
  }
  RDNA_TRY(rdna__check_written(name, "c", c));
  RDNA_TRY(rdna__check_apart(name, "c", c, "a", a));
  RDNA_TRY(rdna__check_apart(name, "c", c, "b", b));
  RDNA_TRY(rdna__check_stream(name, stream));
  if (rdna_tensor_count(c) == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch,
                               multiply(&scratch, alpha, a, &of_a, conjugate_a, b, &of_b, conjugate_b, add, c));
}
