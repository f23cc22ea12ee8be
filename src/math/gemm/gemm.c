#include "math/gemm/gemm.h"

#include <stdlib.h>

#include "math/check.h"
#include "rdna/op/gemm.h"

enum { LARGE, SMALL, M1, M4, M8, VARIANTS };

typedef struct product {
  rdna_dtype types[3]; /* A, B, C */
  const char *kernels[VARIANTS];
} product;

#define PRODUCT(A, B, C, a, b, c)                                                                         \
  {{RDNA_##A, RDNA_##B, RDNA_##C},                                                                        \
   {"gemm_" #a "_" #b "_" #c "_large", "gemm_" #a "_" #b "_" #c "_small", "gemv_" #a "_" #b "_" #c "_m1", \
    "gemv_" #a "_" #b "_" #c "_m4", "gemv_" #a "_" #b "_" #c "_m8"}}
static const product products[] = {
    PRODUCT(F32, F32, F32, f32, f32, f32),     PRODUCT(F32, F16, F32, f32, f16, f32),
    PRODUCT(F32, BF16, F32, f32, bf16, f32),   PRODUCT(F16, F16, F16, f16, f16, f16),
    PRODUCT(F16, F16, F32, f16, f16, f32),     PRODUCT(BF16, BF16, BF16, bf16, bf16, bf16),
    PRODUCT(BF16, BF16, F32, bf16, bf16, f32), PRODUCT(F32, Q8_0, F32, f32, q8_0, f32),
    PRODUCT(F32, Q4_0, F32, f32, q4_0, f32),   PRODUCT(F32, Q4_K, F32, f32, q4_K, f32),
    PRODUCT(F32, Q6_K, F32, f32, q6_K, f32),
};
#undef PRODUCT

static const product *find_product(const rdna_dtype types[3]) {
  for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
    const product *p = &products[i];
    if (p->types[0] == types[0] && p->types[1] == types[1] && p->types[2] == types[2]) return p;
  }
  return NULL;
}

static bool is_16_byte_multiple(const void *data, int64_t ld, rdna_dtype type) {
  return ((uintptr_t)data | (uint64_t)ld * rdna_dtype_block_bytes(type)) % 16 == 0;
}

/* A matrix-vector kernel reads B once, but wants contiguous rows at multiples of 16 bytes. */
static bool fits_gemv(const product *p, const struct gemm_args *args) {
  return args->m <= GEMV_MAX_M && args->batch == 1 &&
         (args->flags & (GEMM_A_TRANSPOSED | GEMM_B_TRANSPOSED)) == GEMM_B_TRANSPOSED &&
         is_16_byte_multiple(args->a, args->lda, p->types[0]) &&
         (rdna_dtype_block_values(p->types[1]) > 1 || is_16_byte_multiple(args->b, args->ldb, p->types[1]));
}

static int64_t tiles(const struct gemm_args *args, int64_t side) {
  return (args->m + side - 1) / side * ((args->n + side - 1) / side);
}

/* Large tiles read each operand less often, small ones give every compute unit something to do. */
static int choose_variant(rdna_stream *stream, const product *p, const struct gemm_args *args) {
  if (fits_gemv(p, args)) return args->m == 1 ? M1 : args->m <= 4 ? M4 : M8;
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  bool enough = tiles(args, GEMM_LARGE_TILE) * args->batch >= info->compute_units;
  return enough && args->m > GEMM_SMALL_TILE && args->n > GEMM_SMALL_TILE ? LARGE : SMALL;
}

static const char *advance(const void *data, int64_t matrices, int64_t stride, rdna_dtype type) {
  int64_t values = matrices * stride;
  return (const char *)data + values / rdna_dtype_block_values(type) * (int64_t)rdna_dtype_block_bytes(type);
}

rdna_status rdna__gemm_launch(rdna_stream *stream, const char *operator, const rdna_dtype types[3],
                              struct gemm_args args, int64_t m, int64_t n, int64_t k, int64_t batch) {
  const product *p = find_product(types);
  if (!p) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: there is no kernel for %s times %s into %s; cast one of them", operator,
                      rdna_dtype_name(types[0]), rdna_dtype_name(types[1]), rdna_dtype_name(types[2]));
  }
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the stream is NULL; pass a stream", operator);
  if (m == 0 || n == 0 || batch == 0) return RDNA_OK;
  if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: m %lld, n %lld, k %lld; each must fit in 31 bits: split it", operator,(long long) m,
                      (long long)n, (long long)k);
  }
  args.m = (int32_t)m, args.n = (int32_t)n, args.k = (int32_t)k;
  for (int64_t first = 0; first < batch; first += RDNA__GRID_YZ_MAX) {
    struct gemm_args part = args;
    part.batch = (int32_t)(batch - first < RDNA__GRID_YZ_MAX ? batch - first : RDNA__GRID_YZ_MAX);
    part.a = advance(args.a, first, args.stride_a, types[0]);
    part.b = advance(args.b, first, args.stride_b, types[1]);
    part.c = (void *)advance(args.c, first, args.stride_c, types[2]);
    int variant = choose_variant(stream, p, &part);
    int64_t groups = variant == LARGE   ? tiles(&part, GEMM_LARGE_TILE)
                     : variant == SMALL ? tiles(&part, GEMM_SMALL_TILE)
                                        : (n + GEMV_ROWS_PER_GROUP(part.m) - 1) / GEMV_ROWS_PER_GROUP(part.m);
    rdna_grid grid = {0, 1, (uint32_t)part.batch};
    RDNA_TRY(rdna__check_groups(operator, groups, 1, &grid.x));
    RDNA_TRY(rdna__launch_named(stream, p->kernels[variant], grid, &part));
  }
  return RDNA_OK;
}

rdna_status rdna__matrix_view(const char *operator, const char * argument, const rdna_tensor *tensor,
                              rdna__matrix *out_matrix) {
  char text[RDNA__TENSOR_TEXT];
  int rank = tensor->rank;
  if (rank != 2 && rank != 3) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s, of rank %d; it must be 2, or 3 with a batch", operator,
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
                        operator, argument, rdna__tensor_text(tensor, text), (long long)stride[0],
                        (long long)stride[1]);
    }
    m.turned = true;
    m.ld = stride[1];
  }
  *out_matrix = m;
  return RDNA_OK;
}

rdna_status rdna__matrix_check_written(const char *operator, const char * argument, const rdna_tensor *tensor,
                                       const rdna__matrix *matrix) {
  char text[RDNA__TENSOR_TEXT];
  if (matrix->turned) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: %s is %s with a last stride of %lld; it must be 1: swap the operands", operator, argument,
                      rdna__tensor_text(tensor, text), (long long)matrix->ld);
  }
  int64_t ld = llabs(matrix->ld), stride = llabs(matrix->stride), n = matrix->columns;
  bool rows_apart = matrix->rows <= 1 || ld >= n, matrices_apart = matrix->batch <= 1 || stride >= n;
  if (matrix->rows > 1 && matrix->batch > 1)
    matrices_apart =
        matrices_apart && (stride >= (matrix->rows - 1) * ld + n || ld >= (matrix->batch - 1) * stride + n);
  if (!rows_apart || !matrices_apart) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: %s is %s with rows %lld and matrices %lld apart; they would overlap", operator, argument,
                      rdna__tensor_text(tensor, text), (long long)matrix->ld, (long long)matrix->stride);
  }
  return RDNA_OK;
}

rdna_status rdna__check_bias(const char *operator, const rdna_tensor * bias, const rdna_tensor *out, int64_t n) {
  if (!bias) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(operator, "bias", bias));
  RDNA_TRY(rdna__check_same_dtype(operator, "bias", bias, "the result", out));
  RDNA_TRY(rdna__check_rank(operator, "bias", bias, 1));
  RDNA_TRY(rdna__check_size(operator, "bias", bias, 0, n, "the columns of the result"));
  RDNA_TRY(rdna__check_contiguous(operator, "bias", bias));
  return rdna__check_apart(operator, "the result", out, "bias", bias);
}

static rdna_status disagree(const char *argument, const rdna_tensor *tensor, const char *other_argument,
                            const rdna_tensor *other, const char *what) {
  char text[RDNA__TENSOR_TEXT], other_text[RDNA__TENSOR_TEXT];
  return rdna__fail(RDNA_INVALID_ARGUMENT, "gemm: %s is %s and %s is %s; their %s must be equal", argument,
                    rdna__tensor_text(tensor, text), other_argument, rdna__tensor_text(other, other_text), what);
}

rdna_status rdna_op_gemm(rdna_stream *stream, float alpha, const rdna_tensor *a, const rdna_tensor *b, float beta,
                         const rdna_tensor *bias, const rdna_tensor *c) {
  rdna__matrix ma, mb, mc;
  RDNA_TRY(rdna__check_float("gemm", "a", a));
  RDNA_TRY(rdna__check_float("gemm", "b", b));
  RDNA_TRY(rdna__check_float("gemm", "c", c));
  RDNA_TRY(rdna__matrix_view("gemm", "a", a, &ma));
  RDNA_TRY(rdna__matrix_view("gemm", "b", b, &mb));
  RDNA_TRY(rdna__matrix_view("gemm", "c", c, &mc));
  if (a->rank != b->rank) return disagree("a", a, "b", b, "ranks");
  if (a->rank != c->rank) return disagree("a", a, "c", c, "ranks");
  if (ma.batch != mb.batch) return disagree("a", a, "b", b, "first sizes, the batch,");
  if (ma.batch != mc.batch) return disagree("a", a, "c", c, "first sizes, the batch,");
  if (ma.columns != mb.rows) return disagree("a", a, "b", b, "inner sizes, k,");
  if (ma.rows != mc.rows) return disagree("a", a, "c", c, "rows, m,");
  if (mb.columns != mc.columns) return disagree("b", b, "c", c, "columns, n,");
  RDNA_TRY(rdna__check_bias("gemm", bias, c, mc.columns));
  if (rdna_tensor_count(c) > 0) RDNA_TRY(rdna__matrix_check_written("gemm", "c", c, &mc));
  RDNA_TRY(rdna__check_apart("gemm", "c", c, "a", a));
  RDNA_TRY(rdna__check_apart("gemm", "c", c, "b", b));

  struct gemm_args args = {
      .a = a->data,
      .b = b->data,
      .bias = bias ? bias->data : NULL,
      .c = c->data,
      .lda = ma.ld,
      .ldb = mb.ld,
      .ldc = mc.ld,
      .stride_a = ma.stride,
      .stride_b = mb.stride,
      .stride_c = mc.stride,
      .flags = (ma.turned ? GEMM_A_TRANSPOSED : 0) | (mb.turned ? GEMM_B_TRANSPOSED : 0),
      .alpha = alpha,
      .beta = beta,
  };
  rdna_dtype types[3] = {a->dtype, b->dtype, c->dtype};
  return rdna__gemm_launch(stream, "gemm", types, args, mc.rows, mc.columns, ma.columns, mc.batch);
}
