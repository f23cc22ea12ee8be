#include "math/gemm/gemm.h"
#include "base/options.h"

#include <stdlib.h>

#include "math/common/plan/check.h"
#include "math/common/plan/scratch.h"
#include "math/gemm/gemm_activation.h"
#include "math/gemm/gemm_product.h"
#include "rdna/op/gemm.h"
#include "rdna/op/movement.h"

#define NAME(a, b, c, kind, variant) #kind "_" #a "_" #b "_" #c "_" #variant
#define VECTOR_NAMES(a, b, c) NAME(a, b, c, gemv, m1), NAME(a, b, c, gemv, m4), NAME(a, b, c, gemv, m8)
#define PRODUCT_OR(broad, A, B, C, a, b, c)                                                            \
  {{RDNA_##A, RDNA_##B, RDNA_##C},                                                                     \
   {NULL, NAME(a, b, c, gemm, large), broad, NULL, NAME(a, b, c, gemm, small), VECTOR_NAMES(a, b, c)}, \
   0,                                                                                                  \
   NULL}
#define PRODUCT(...) PRODUCT_OR(NULL, __VA_ARGS__)
#define MMA_PRODUCT(A, B, C, a, b, c)                                                         \
  {{RDNA_##A, RDNA_##B, RDNA_##C},                                                            \
   {NAME(a, b, c, gemm, wide), NAME(a, b, c, gemm, large), NULL, NAME(a, b, c, gemm, narrow), \
    NAME(a, b, c, gemm, small), VECTOR_NAMES(a, b, c)},                                       \
   0,                                                                                         \
   NULL}
static const rdna__gemm_product products[] = {
    {{RDNA_F64, RDNA_F64, RDNA_F64}, {[SMALL] = "gemm_f64"}, 0, NULL},
    PRODUCT_OR("gemm_f32_f32_f32_broad", F32, F32, F32, f32, f32, f32),
    PRODUCT(F32, F16, F32, f32, f16, f32),
    PRODUCT(F32, BF16, F32, f32, bf16, f32),
    MMA_PRODUCT(F16, F16, F16, f16, f16, f16),
    MMA_PRODUCT(F16, F16, F32, f16, f16, f32),
    MMA_PRODUCT(BF16, BF16, BF16, bf16, bf16, bf16),
    MMA_PRODUCT(BF16, BF16, F32, bf16, bf16, f32),
};
#undef PRODUCT
#undef PRODUCT_OR
#undef MMA_PRODUCT
#undef VECTOR_NAMES
#undef NAME

const rdna__gemm_product *rdna__gemm_dense_product(const rdna_dtype types[3]) {
  for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
    const rdna__gemm_product *p = &products[i];
    if (p->types[0] == types[0] && p->types[1] == types[1] && p->types[2] == types[2]) return p;
  }
  return NULL;
}

static const char *advance(const void *data, int64_t matrices, int64_t stride, rdna_dtype type) {
  int64_t values = matrices * stride;
  return (const char *)data + values / rdna_dtype_block_values(type) * (int64_t)rdna_dtype_block_bytes(type);
}

static rdna_status check_launch(rdna_stream *stream, const char *op_name, const rdna__gemm_product *product,
                                const rdna_dtype types[3], int64_t m, int64_t n, int64_t k) {
  if (!product) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: there is no kernel for %s times %s into %s; cast one of them", op_name,
                      rdna_dtype_name(types[0]), rdna_dtype_name(types[1]), rdna_dtype_name(types[2]));
  }
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (m > RDNA__GEMM_SIZE_MAX || n > RDNA__GEMM_SIZE_MAX || k > RDNA__GEMM_SIZE_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: m %lld, n %lld, k %lld; each may be at most %d: split it", op_name,
                      (long long)m, (long long)n, (long long)k, RDNA__GEMM_SIZE_MAX);
  }
  return RDNA_OK;
}

/* A product with one column is the transposed one's with one row, which reads the matrix once. */
static bool is_one_column(const struct gemm_args *args, const rdna_dtype types[3], int64_t m, int64_t n,
                          int64_t batch) {
  return n == 1 && m > 1 && batch == 1 && types[0] == types[1] && !(args->flags & GEMM_A_TRANSPOSED) &&
         (args->ldb == 1 || args->flags & GEMM_B_TRANSPOSED) && args->ldc == 1 &&
         (!args->residual || args->ld_residual == 1);
}
static struct gemm_args swap_operands(struct gemm_args args, int64_t m) {
  bool of_rows = args.bias && !(args.flags & GEMM_BIAS_OF_ROWS);
  const void *matrix = args.a;
  args.a = args.b, args.b = matrix;
  args.ldb = args.lda, args.lda = 0, args.ldc = args.ld_residual = m;
  bool more = of_rows || args.activation || args.residual;
  args.flags = GEMM_B_TRANSPOSED | (of_rows ? GEMM_BIAS_OF_ROWS : 0) | (more ? GEMM_MORE : 0);
  return args;
}

rdna_status rdna__gemm_launch(rdna_stream *stream, const char *op_name, const rdna_dtype types[3],
                              struct gemm_args args, int64_t m, int64_t n, int64_t k, int64_t batch) {
  return rdna__gemm_launch_product(stream, op_name, rdna__gemm_dense_product(types), types, args, m, n, k, batch);
}

rdna_status rdna__gemm_launch_product(rdna_stream *stream, const char *op_name, const rdna__gemm_product *product,
                                      const rdna_dtype types[3], struct gemm_args args, int64_t m, int64_t n, int64_t k,
                                      int64_t batch) {
  RDNA_TRY(check_launch(stream, op_name, product, types, m, n, k));
  if (m == 0 || n == 0 || batch == 0) return RDNA_OK;
  if (is_one_column(&args, types, m, n, batch)) args = swap_operands(args, m), n = m, m = 1;
  args.m = (int32_t)m, args.n = (int32_t)n, args.k = (int32_t)k;
  rdna__gemm_problem problem = {.types = {types[0], types[1], types[2]},
                                .device = rdna_device_get_info(rdna_stream_device(stream)),
                                .product = product};
  for (int64_t first = 0; first < batch; first += RDNA__GRID_YZ_MAX) {
    problem.args = args;
    problem.args.batch = (int32_t)(batch - first < RDNA__GRID_YZ_MAX ? batch - first : RDNA__GRID_YZ_MAX);
    problem.args.a = advance(args.a, first, args.stride_a, types[0]);
    problem.args.b = advance(args.b, first, args.stride_b, types[1]);
    problem.args.c = (void *)advance(args.c, first, args.stride_c, types[2]);
    if (args.residual) problem.args.residual = advance(args.residual, first, args.stride_residual, types[2]);
    RDNA_TRY(rdna__gemm_run(stream, op_name, &problem));
  }
  return RDNA_OK;
}

rdna_status rdna__matrix_view(const char *op_name, const char *argument, const rdna_tensor *tensor,
                              rdna__matrix *out_matrix) {
  char text[RDNA__TENSOR_TEXT];
  int rank = tensor->rank;
  if (rank != 2 && rank != 3) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s, of rank %d; it must be 2, or 3 with a batch", op_name,
                      argument, rdna__tensor_text(tensor, text), rank);
  }
  const int64_t *shape = &tensor->shape[rank - 2], *stride = &tensor->stride[rank - 2];
  rdna__matrix m = {.rows = shape[0], .columns = shape[1], .batch = 1, .ld = stride[0]};
  if (rank == 3) m.batch = tensor->shape[0], m.stride = tensor->stride[0];
  if (shape[1] > 1 && stride[1] != 1) {
    if (shape[0] > 1 && stride[0] != 1) {
      return rdna__fail(RDNA_UNSUPPORTED,
                        "%s: %s is %s with strides %lld and %lld; one of the last two must be 1: make it contiguous "
                        "first",
                        op_name, argument, rdna__tensor_text(tensor, text), (long long)stride[0], (long long)stride[1]);
    }
    m.transposed = true;
    m.ld = stride[1];
  }
  *out_matrix = m;
  return RDNA_OK;
}

rdna_status rdna__matrix_check_written(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                       const rdna__matrix *matrix) {
  char text[RDNA__TENSOR_TEXT];
  if (matrix->transposed) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s with a last stride of %lld; it must be 1: swap the operands",
                      op_name, argument, rdna__tensor_text(tensor, text), (long long)matrix->ld);
  }
  int64_t ld = llabs(matrix->ld), stride = llabs(matrix->stride), n = matrix->columns;
  bool rows_apart = matrix->rows <= 1 || ld >= n, matrices_apart = matrix->batch <= 1 || stride >= n;
  if (matrix->rows > 1 && matrix->batch > 1)
    matrices_apart =
        matrices_apart && (stride >= (matrix->rows - 1) * ld + n || ld >= (matrix->batch - 1) * stride + n);
  if (!rows_apart || !matrices_apart) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s with rows %lld and matrices %lld apart; they would overlap",
                      op_name, argument, rdna__tensor_text(tensor, text), (long long)matrix->ld,
                      (long long)matrix->stride);
  }
  return RDNA_OK;
}

rdna_status rdna__check_activation(const char *op_name, rdna_activation activation) {
  if (activation >= RDNA_ACTIVATION_NONE && activation < RDNA_ACTIVATION_COUNT) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: there is no activation %d; they are numbered 0 to %d", op_name,
                    (int)activation, RDNA_ACTIVATION_COUNT - 1);
}

rdna_status rdna__check_bias(const char *op_name, const rdna_tensor *bias, const rdna_tensor *out, int64_t size,
                             const char *meaning) {
  if (!bias) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(op_name, "bias", bias));
  RDNA_TRY(rdna__check_same_dtype(op_name, "bias", bias, "the result", out));
  RDNA_TRY(rdna__check_rank(op_name, "bias", bias, 1));
  RDNA_TRY(rdna__check_size(op_name, "bias", bias, 0, size, meaning));
  RDNA_TRY(rdna__check_contiguous(op_name, "bias", bias));
  return rdna__check_apart(op_name, "the result", out, "bias", bias);
}

static rdna_status check_residual(const char *op_name, const rdna_tensor *residual, const rdna_tensor *c,
                                  rdna__matrix *out_matrix) {
  RDNA_TRY(rdna__check_float(op_name, "residual", residual));
  RDNA_TRY(rdna__check_same_dtype(op_name, "residual", residual, "c", c));
  RDNA_TRY(rdna__check_same_shape(op_name, "residual", residual, "c", c));
  RDNA_TRY(rdna__check_dense_tail(op_name, "residual", residual, 1));
  RDNA_TRY(rdna__check_apart(op_name, "c", c, "residual", residual));
  return rdna__matrix_view(op_name, "residual", residual, out_matrix);
}

rdna_status rdna__gemm_check_epilogue(const char *op_name, const rdna_gemm_epilogue *epilogue, const rdna_tensor *c,
                                      rdna__matrix *out_residual) {
  bool of_rows = epilogue->bias_per_row;
  RDNA_TRY(rdna__check_activation(op_name, epilogue->activation));
  RDNA_TRY(rdna__check_bias(op_name, epilogue->bias, c, c->shape[of_rows ? c->rank - 2 : c->rank - 1],
                            of_rows ? "the rows of the result" : "the columns of the result"));
  *out_residual = (rdna__matrix){0};
  return epilogue->residual ? check_residual(op_name, epilogue->residual, c, out_residual) : RDNA_OK;
}

void rdna__gemm_set_epilogue(const rdna_gemm_epilogue *epilogue, const rdna__matrix *residual, struct gemm_args *args) {
  bool of_rows = epilogue->bias && epilogue->bias_per_row;
  args->alpha = epilogue->alpha, args->beta = epilogue->beta;
  args->bias = epilogue->bias ? epilogue->bias->data : NULL;
  args->activation = (uint32_t)epilogue->activation;
  args->residual = epilogue->residual ? epilogue->residual->data : NULL;
  args->ld_residual = residual->ld, args->stride_residual = residual->stride;
  if (of_rows) args->flags |= GEMM_BIAS_OF_ROWS;
  if (of_rows || epilogue->activation || epilogue->residual) args->flags |= GEMM_MORE;
}

static bool is_spread(const rdna_tensor *t) {
  int rank = t->rank;
  return rank >= 2 && t->shape[rank - 1] > 1 && t->stride[rank - 1] != 1 && t->shape[rank - 2] > 1 &&
         t->stride[rank - 2] != 1;
}

/* |operand| itself, or where no stride of its matrices is 1, a contiguous copy in |scratch|. One matrix for the
 * whole batch stays one. */
static rdna_status gather(rdna__scratch *scratch, const rdna_tensor *operand, rdna_tensor *out_operand) {
  rdna_tensor to;
  *out_operand = *operand;
  if (!is_spread(operand)) return RDNA_OK;
  rdna_tensor from = *operand;
  bool one = from.rank == 3 && from.stride[0] == 0 && from.shape[0] > 0;
  if (one) from.shape[0] = 1;
  RDNA_TRY(rdna__scratch_tensor(scratch, from.dtype, from.rank, from.shape, &to));
  RDNA_TRY(rdna_op_copy(scratch->stream, &from, &to));
  if (one) to.shape[0] = operand->shape[0], to.stride[0] = 0;
  *out_operand = to;
  return RDNA_OK;
}

static rdna_status multiply(rdna_stream *stream, const rdna_gemm_epilogue *e, const rdna__matrix *residual,
                            const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *c) {
  rdna__matrix ma, mb, mc;
  RDNA_TRY(rdna__matrix_view("gemm", "a", a, &ma));
  RDNA_TRY(rdna__matrix_view("gemm", "b", b, &mb));
  RDNA_TRY(rdna__matrix_view("gemm", "c", c, &mc));
  struct gemm_args args = {
      .a = a->data,
      .b = b->data,
      .c = c->data,
      .lda = ma.ld,
      .ldb = mb.ld,
      .ldc = mc.ld,
      .stride_a = ma.stride,
      .stride_b = mb.stride,
      .stride_c = mc.stride,
      .flags = (ma.transposed ? GEMM_A_TRANSPOSED : 0) | (mb.transposed ? GEMM_B_TRANSPOSED : 0),
  };
  rdna__gemm_set_epilogue(e, residual, &args);
  rdna_dtype types[3] = {a->dtype, b->dtype, c->dtype};
  return rdna__gemm_launch(stream, "gemm", types, args, mc.rows, mc.columns, ma.columns, mc.batch);
}

static rdna_status disagree(const char *op_name, const char *argument, const rdna_tensor *tensor,
                            const char *other_argument, const rdna_tensor *other, const char *what) {
  char text[RDNA__TENSOR_TEXT], other_text[RDNA__TENSOR_TEXT];
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s and %s is %s; their %s must be equal", op_name, argument,
                    rdna__tensor_text(tensor, text), other_argument, rdna__tensor_text(other, other_text), what);
}

rdna_status rdna__gemm_check_shapes(const char *op_name, const rdna_tensor *a, const rdna_tensor *b,
                                    const rdna_tensor *c) {
  const rdna_tensor *const all[] = {a, b, c};
  static const char *const names[] = {"a", "b", "c"};
  for (int i = 0; i < 3; i++) {
    char text[RDNA__TENSOR_TEXT];
    if (all[i]->rank == 2 || all[i]->rank == 3) continue;
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s, of rank %d; it must be 2, or 3 with a batch", op_name,
                      names[i], rdna__tensor_text(all[i], text), all[i]->rank);
  }
  int rank = c->rank;
  for (int i = 0; i < 2; i++) {
    if (all[i]->rank != rank) return disagree(op_name, names[i], all[i], "c", c, "ranks");
    if (rank == 3 && all[i]->shape[0] != c->shape[0])
      return disagree(op_name, names[i], all[i], "c", c, "first sizes, the batch,");
  }
  const int64_t *sa = &a->shape[rank - 2], *sb = &b->shape[rank - 2], *sc = &c->shape[rank - 2];
  if (sa[1] != sb[0]) return disagree(op_name, "a", a, "b", b, "inner sizes, k,");
  if (sa[0] != sc[0]) return disagree(op_name, "a", a, "c", c, "rows, m,");
  if (sb[1] != sc[1]) return disagree(op_name, "b", b, "c", c, "columns, n,");
  return RDNA_OK;
}

rdna_status rdna_op_gemm_epilogue(rdna_stream *stream, const rdna_gemm_epilogue *epilogue, const rdna_tensor *a,
                                  const rdna_tensor *b, const rdna_tensor *c) {
  rdna_gemm_epilogue known;
  RDNA_TRY(RDNA__OPTIONS("gemm", "epilogue", epilogue, &known));
  epilogue = &known;
  RDNA_TRY(rdna__check_real("gemm", "a", a));
  RDNA_TRY(rdna__check_real("gemm", "b", b));
  RDNA_TRY(rdna__check_real("gemm", "c", c));
  RDNA_TRY(rdna__gemm_check_shapes("gemm", a, b, c));
  if (c->dtype == RDNA_F64 && (epilogue->activation || epilogue->residual)) {
    return rdna__fail(RDNA_UNSUPPORTED, "gemm: c is f64 with %s; only f32, f16 and bf16 have one: apply it after",
                      epilogue->activation ? "an activation" : "a residual");
  }
  rdna__matrix written, added;
  RDNA_TRY(rdna__matrix_view("gemm", "c", c, &written));
  RDNA_TRY(rdna__gemm_check_epilogue("gemm", epilogue, c, &added));
  if (rdna_tensor_count(c) > 0) RDNA_TRY(rdna__matrix_check_written("gemm", "c", c, &written));
  RDNA_TRY(rdna__check_apart("gemm", "c", c, "a", a));
  RDNA_TRY(rdna__check_apart("gemm", "c", c, "b", b));
  rdna_dtype types[3] = {a->dtype, b->dtype, c->dtype};
  RDNA_TRY(check_launch(stream, "gemm", rdna__gemm_dense_product(types), types, c->shape[c->rank - 2],
                        c->shape[c->rank - 1], a->shape[a->rank - 1]));
  if (rdna_tensor_count(c) == 0) return RDNA_OK;

  rdna_tensor ta, tb;
  rdna__scratch scratch = {.stream = stream, .holder = "gemm: an operand"};
  rdna_status status = gather(&scratch, a, &ta);
  if (status == RDNA_OK) status = gather(&scratch, b, &tb);
  if (status == RDNA_OK) status = multiply(stream, epilogue, &added, &ta, &tb, c);
  return rdna__scratch_release(&scratch, status);
}

rdna_status rdna_op_gemm(rdna_stream *stream, float alpha, const rdna_tensor *a, const rdna_tensor *b, float beta,
                         const rdna_tensor *bias, const rdna_tensor *c) {
  rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = alpha, .beta = beta, .bias = bias};
  return rdna_op_gemm_epilogue(stream, &epilogue, a, b, c);
}
