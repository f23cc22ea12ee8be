#include "math/gemm/gemm_case.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/common/case/fill.h"
#include "math/common/case/values.h"
#include "math/gemm/gemm_activation.h"

static bool parse_type(const char *name, size_t length, rdna_dtype *out_type) {
  for (int type = 0; type < RDNA_DTYPE_COUNT; type++) {
    const char *known = rdna_dtype_name((rdna_dtype)type);
    if (strlen(known) != length || strncmp(known, name, length) != 0) continue;
    *out_type = (rdna_dtype)type;
    return true;
  }
  return false;
}

rdna_status rdna__product_case_parse(const char *kernel_name, rdna__product_case *out_product) {
  rdna_dtype *types[3] = {&out_product->type_a, &out_product->type_b, &out_product->type_c};
  const char *at = kernel_name + 5; /* "gemm_" or "gemv_" */
  for (int i = 0; i < 3; i++) {
    /* some of the quantized types have an underscore in their names */
    const char *end = strchr(at, '_');
    if (end && !parse_type(at, (size_t)(end - at), types[i])) end = strchr(end + 1, '_');
    if (!end || !parse_type(at, (size_t)(end - at), types[i]))
      return rdna__fail(RDNA_INTERNAL, "'%s' is not the name of a matrix product", kernel_name);
    at = end + 1;
  }
  bool gemv = kernel_name[3] == 'v';
  static const struct {
    const char *name;
    int rows, columns;
  } tiles[] = {{"wide", 128, 256},
               {"large", GEMM_LARGE_TILE, GEMM_LARGE_TILE},
               {"broad", GEMM_LARGE_TILE, GEMM_LARGE_TILE},
               {"narrow", 128, 64},
               {"small", GEMM_SMALL_TILE, GEMM_SMALL_TILE},
               {"rows16", 16, 16},
               {"rows32", 32, 32},
               {"rows64", 64, 32}};
  out_product->tile = out_product->tile_n = out_product->vector_rows = 0;
  out_product->stepped = out_product->gated = false;
  out_product->fill_blocks = NULL;
  out_product->columns = gemv ? atoi(at + 1) : 0;
  for (size_t i = 0; !gemv && i < sizeof tiles / sizeof *tiles; i++)
    if (strcmp(at, tiles[i].name) == 0) out_product->tile = tiles[i].rows, out_product->tile_n = tiles[i].columns;
  out_product->aligned = gemv || (out_product->type_a != RDNA_F32 && strcmp(at, "small") != 0);
  return RDNA_OK;
}

/* Rows of |row_count| times |row_length|, |ld| apart. */
typedef struct matrix {
  int64_t row_count, row_length, ld, stride; /* stride from matrix to matrix of the batch */
} matrix;

/* A dense, an even, or a spread-out placement; |multiple| values is what rows must be a multiple of. */
static matrix place(rdna__random *random, int64_t row_count, int64_t row_length, int64_t multiple) {
  matrix p = {row_count, row_length, row_length, 0};
  if (rdna__random_below(random, 3) == 0) p.ld += rdna__random_range(random, 0, 9) * multiple;
  p.ld = (p.ld + multiple - 1) / multiple * multiple;
  p.stride = p.row_count * p.ld;
  return p;
}

static int64_t matrix_values(const matrix *p, int64_t batch) { return (batch - 1) * p->stride + p->row_count * p->ld; }

/* The largest sum of magnitudes that one row of op(A) has. */
static double largest_row(const struct gemm_args *args, rdna_dtype type, const void *a) {
  double largest = 0;
  for (int64_t b = 0; b < args->batch; b++) {
    for (int64_t i = 0; i < args->m; i++) {
      double sum = 0;
      for (int64_t p = 0; p < args->k; p++) {
        int64_t at = args->flags & GEMM_A_TRANSPOSED ? p * args->lda + i : i * args->lda + p;
        double v = fabs((double)case_get(type, a, b * args->stride_a + at));
        if (isfinite(v)) sum += v;
      }
      if (sum > largest) largest = sum;
    }
  }
  return largest;
}

static double largest_value(rdna_dtype type, const void *values, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; i++) {
    double v = fabs((double)case_get(type, values, i));
    if (isfinite(v) && v > largest) largest = v;
  }
  return largest;
}

/* Bytes of C that lie between its rows must stay as they are. */
static bool mark_gaps(rdna__case_buffer *buffer, const struct gemm_args *args) {
  buffer->untouched = malloc((size_t)buffer->count + 1);
  if (!buffer->untouched) return false;
  memset(buffer->untouched, 1, (size_t)buffer->count + 1);
  for (int64_t b = 0; b < args->batch; b++)
    for (int64_t i = 0; i < args->m; i++)
      memset(buffer->untouched + b * args->stride_c + i * args->ldc, 0, (size_t)args->n);
  return true;
}

static rdna_grid product_grid(const rdna__product_case *product, const struct gemm_args *args) {
  uint32_t m = (uint32_t)args->m, n = (uint32_t)args->n;
  uint32_t tile_m = (uint32_t)product->tile, tile_n = (uint32_t)product->tile_n;
  if (tile_m == 0) {
    uint32_t rows = product->vector_rows ? (uint32_t)product->vector_rows : GEMV_ROWS_PER_GROUP(product->columns);
    uint32_t groups = ((product->gated ? 2 * n : n) + rows - 1) / rows;
    if (product->vector_rows && groups > 3) groups = 3; /* each takes several turns */
    return (rdna_grid){m ? groups : 0, 1, 1};
  }
  return (rdna_grid){(m + tile_m - 1) / tile_m * ((n + tile_n - 1) / tile_n), 1,
                     (uint32_t)args->batch * (uint32_t)(args->parts > 1 ? args->parts : 1)};
}

/* C and the bound of its error. Each side sums k products in an order of its own: at most k roundings, each of at
 * most 2^-24 of the sum of magnitudes S = max row of |A| times max |B| (Higham, "Accuracy and Stability of Numerical
 * Algorithms", 3.1), then a few more for alpha, beta and the bias, and one to C's type. */
static rdna_status add_c(const rdna__product_case *product, const struct gemm_args *args, const matrix *c, double sum,
                         rdna__random *random, rdna__kernel_case *out_case) {
  if (args->parts > 1) {
    int64_t values = (int64_t)args->batch * args->parts * args->m * args->n;
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, values, offsetof(struct gemm_args, sums)))
      return rdna__case_no_memory(out_case);
    rdna__case_tolerance(out_case, 0x1p-24 * 2 * (args->k + 2) * sum + case_smallest(RDNA_F32), 0x1p-23);
    return RDNA_OK;
  }
  rdna__buffer_role role = args->beta == 0 ? RDNA__OUT : RDNA__INOUT;
  int64_t count = matrix_values(c, args->batch);
  void *data = rdna__case_add(out_case, role, product->type_c, count, offsetof(struct gemm_args, c));
  if (!data) return rdna__case_no_memory(out_case);
  if (role == RDNA__INOUT) case_fill(random, product->type_c, data, count, 1);
  double other =
      fabs((double)args->beta) * largest_value(product->type_c, data, count) + 16; /* the bias, the residual */
  double scaled = fabs((double)args->alpha) * sum;
  double absolute = 0x1p-24 * (2 * (args->k + 2) * scaled + 16 * (scaled + other));
  rdna__case_tolerance(out_case, absolute + case_smallest(product->type_c), case_spacing(product->type_c));
  if (role == RDNA__OUT && !mark_gaps(&out_case->buffers[out_case->buffer_count - 1], args))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}

/* A bias, a residual, and an activation: which there are is in |args|. */
static rdna_status add_more(const rdna__product_case *product, const struct gemm_args *args, rdna__random *random,
                            rdna__kernel_case *out_case) {
  bool of_rows = args->flags & GEMM_BIAS_OF_ROWS;
  if (of_rows || rdna__random_below(random, 2)) {
    int64_t count = of_rows ? args->m : args->n;
    void *bias = rdna__case_add(out_case, RDNA__IN, product->type_c, count, offsetof(struct gemm_args, bias));
    if (!bias) return rdna__case_no_memory(out_case);
    case_fill(random, product->type_c, bias, count, 1);
  }
  if (args->ld_residual) {
    int64_t count = args->batch * args->stride_residual;
    void *residual = rdna__case_add(out_case, RDNA__IN, product->type_c, count, offsetof(struct gemm_args, residual));
    if (!residual) return rdna__case_no_memory(out_case);
    case_fill(random, product->type_c, residual, count, 1);
  }
  return RDNA_OK;
}

static void draw_more(rdna__random *random, struct gemm_args *args) {
  if (rdna__random_below(random, 2)) return;
  args->flags |= GEMM_MORE;
  if (rdna__random_below(random, 2)) args->flags |= GEMM_BIAS_OF_ROWS;
  args->activation = (uint32_t)rdna__random_below(random, RDNA_ACTIVATION_GELU_ERF + 1);
  if (rdna__random_below(random, 2)) {
    args->ld_residual = args->n + rdna__random_range(random, 1, 5);
    args->stride_residual = args->m * args->ld_residual;
  }
}

/* The norm's weights and the bound |*sum| of what is then summed: of sums of x^2 that overflow nothing is left. */
static rdna_status add_norm(const struct gemm_args *args, const float *a, double *sum, rdna__random *random,
                            rdna__kernel_case *out_case) {
  float *norm = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args->k, offsetof(struct gemv_args, steps.norm));
  if (!norm) return rdna__case_no_memory(out_case);
  case_fill(random, RDNA_F32, norm, args->k, 1);
  const float epsilon = 1e-5f;
  memcpy((char *)out_case->args + offsetof(struct gemv_args, steps.epsilon), &epsilon, sizeof epsilon);
  double squares = 0;
  for (int64_t p = 0; p < args->k; p++)
    if (isfinite(a[p])) squares += (double)a[p] * (double)a[p];
  *sum *= largest_value(RDNA_F32, norm, args->k) / sqrt(squares / args->k + (double)epsilon);
  return RDNA_OK;
}

/* The steps around the product of one row. A gate's result is a product of two sums, one of them activated, whose
 * slopes are below 1.2: its error is theirs times the other. */
static rdna_status add_steps(const rdna__product_case *product, const struct gemm_args *args, const void *a,
                             double *sum, rdna__random *random, rdna__kernel_case *out_case) {
  const uint32_t gated = product->gated;
  memcpy((char *)out_case->args + offsetof(struct gemv_args, steps.gated), &gated, sizeof gated);
  if (args->k > 0 && rdna__random_below(random, 2)) RDNA_TRY(add_norm(args, a, sum, random, out_case));
  if (gated) *sum *= 2.4 * *sum + 1;
  return RDNA_OK;
}

rdna_status rdna__product_case_make(const rdna__product_case *product, struct gemm_args args, rdna__random *random,
                                    rdna__kernel_case *out_case) {
  bool quantized = rdna_dtype_block_values(product->type_b) > 1;
  int64_t multiple_a = product->aligned ? 16 / (int64_t)rdna_dtype_block_bytes(product->type_a) : 1;
  int64_t multiple_b = quantized ? rdna_dtype_block_values(product->type_b) : multiple_a;
  if (!quantized && product->aligned && product->type_b != RDNA_F32) multiple_b = 8;
  bool a_transposed = args.flags & GEMM_A_TRANSPOSED, b_transposed = args.flags & GEMM_B_TRANSPOSED;
  matrix a = place(random, a_transposed ? args.k : args.m, a_transposed ? args.m : args.k, multiple_a);
  int64_t rows_of_b = product->gated ? 2 * (int64_t)args.n : args.n;
  matrix b = place(random, b_transposed ? rows_of_b : args.k, b_transposed ? args.k : args.n, multiple_b);
  matrix c = place(random, args.m, args.n, 1);
  if (args.batch > 1 && rdna__random_below(random, 3) == 0) b.stride = 0; /* one B for the whole batch */
  args.lda = a.ld, args.ldb = b.ld, args.ldc = c.ld;
  args.stride_a = a.stride, args.stride_b = b.stride, args.stride_c = c.stride;
  if (args.parts <= 1 && !quantized && !product->gated) draw_more(random, &args);
  static const float alphas[] = {1, 1, 0.5f, -2};
  args.alpha = alphas[rdna__random_below(random, 4)];
  if (product->gated) args.alpha = 1, args.beta = 0;
  if (product->gated) args.activation = (uint32_t)rdna__random_below(random, RDNA_ACTIVATION_GELU_ERF + 1);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = product_grid(product, &args);
  snprintf(out_case->label, sizeof out_case->label,
           "m %d n %d k %d batch %d ld %lld %lld %lld flags %u alpha %g beta %g", args.m, args.n, args.k, args.batch,
           (long long)args.lda, (long long)args.ldb, (long long)args.ldc, args.flags, (double)args.alpha,
           (double)args.beta);

  int64_t a_count = matrix_values(&a, args.batch), b_count = matrix_values(&b, args.batch);
  void *a_data = rdna__case_add(out_case, RDNA__IN, product->type_a, a_count, offsetof(struct gemm_args, a));
  void *b_data = rdna__case_add(out_case, RDNA__IN, product->type_b, b_count, offsetof(struct gemm_args, b));
  if (!a_data || !b_data) return rdna__case_no_memory(out_case);
  case_fill(random, product->type_a, a_data, a_count, 1);
  double largest_b;
  if (quantized) {
    largest_b = product->fill_blocks(random, product->type_b, b_data, b_count);
  } else {
    case_fill(random, product->type_b, b_data, b_count, 1);
    largest_b = largest_value(product->type_b, b_data, b_count);
  }
  double sum = largest_row(&args, product->type_a, a_data) * largest_b;
  if (args.flags & GEMM_MAY_ROUND) /* A is off by up to 2^-15 of its largest, up or down, on either side */
    sum += 0x1p9 * 6 / (args.k + 2.0) * sqrt(args.k) * largest_value(product->type_a, a_data, a_count) * largest_b;
  if (a_count > 0 && rdna__random_below(random, 4) == 0) { /* rounded, an infinity is no number */
    float special = args.flags & GEMM_MAY_ROUND || rdna__random_below(random, 2) ? NAN : INFINITY;
    case_set(product->type_a, a_data, rdna__random_range(random, 0, a_count - 1), special);
  }
  if (product->stepped) RDNA_TRY(add_steps(product, &args, a_data, &sum, random, out_case));
  if (args.parts <= 1 && !product->gated) RDNA_TRY(add_more(product, &args, random, out_case));
  return add_c(product, &args, &c, sum, random, out_case);
}

static float random_beta(rdna__random *random) {
  static const float betas[] = {0, 0, 1, -0.5f};
  return betas[rdna__random_below(random, 4)];
}

RDNA_CASE_MAKER(rdna__gemm_case) {
  static const struct {
    int m, n, k;
  } edges[] = {{3, 5, 4},    {0, 4, 4},     {4, 0, 4},     {4, 4, 0},   {1, 1, 1},
               {64, 64, 16}, {128, 128, 8}, {65, 129, 17}, {9, 200, 33}};
  rdna__product_case product;
  RDNA_TRY(rdna__product_case_parse(kernel->name, &product));
  struct gemm_args args = {.batch = 1, .flags = (uint32_t)n % 4, .beta = random_beta(random)};
  if (n < (int)(sizeof edges / sizeof edges[0])) {
    args.m = edges[n].m, args.n = edges[n].n, args.k = edges[n].k;
  } else {
    args.m = (int32_t)rdna__random_range(random, 1, 200);
    args.n = (int32_t)rdna__random_range(random, 1, 200);
    args.k = (int32_t)rdna__random_range(random, 0, 100);
    args.flags = (uint32_t)rdna__random_below(random, 4);
    args.batch = rdna__random_below(random, 4) ? 1 : 2;
  }
  if (rdna__random_below(random, 4) == 0) {
    args.k += (int32_t)rdna__random_range(random, 0, 150);
    args.part_k = GEMM_PART_STEP, args.parts = args.k / GEMM_PART_STEP + 1;
  }
  return rdna__product_case_make(&product, args, random, out_case);
}

/* Parts of sums, each added up in the same order. */
RDNA_CASE_MAKER(rdna__gemm_sum_case) {
  rdna__product_case product = {.type_c = case_name_dtype(kernel->name)};
  struct gemm_args args = {.batch = 1, .alpha = 0.5f, .beta = random_beta(random), .parts = 2};
  args.m = n == 0 ? 3 : (int32_t)rdna__random_range(random, n == 1 ? 0 : 1, 40);
  args.n = n == 0 ? 5 : (int32_t)rdna__random_range(random, 1, 70);
  if (n > 2)
    args.parts = (int32_t)rdna__random_range(random, 2, 40), args.batch = (int32_t)rdna__random_range(random, 1, 3);
  matrix c = place(random, args.m, args.n, 1);
  args.ldc = c.ld, args.stride_c = c.stride;
  draw_more(random, &args);
  memcpy(out_case->args, &args, sizeof args);
  int64_t values = (int64_t)args.m * args.n;
  int64_t each = GEMM_SUM_VALUES(args.parts);
  out_case->grid = (rdna_grid){(uint32_t)((values + each - 1) / each), 1, (uint32_t)args.batch};
  snprintf(out_case->label, sizeof out_case->label, "m %d n %d batch %d parts %d flags %u", args.m, args.n, args.batch,
           args.parts, args.flags);
  void *sums =
      rdna__case_add(out_case, RDNA__IN, RDNA_F32, values * args.batch * args.parts, offsetof(struct gemm_args, sums));
  if (!sums) return rdna__case_no_memory(out_case);
  case_fill(random, RDNA_F32, sums, values * args.batch * args.parts, 1);
  RDNA_TRY(add_more(&product, &args, random, out_case));
  struct gemm_args whole = args;
  whole.parts = 1;
  return add_c(&product, &whole, &c, 8.0 * args.parts, random, out_case);
}

RDNA_CASE_MAKER(rdna__gemv_case) {
  static const struct {
    int n, k;
  } edges[] = {{5, 64}, {0, 8}, {7, 0}, {1, 1}, {8, 256}, {9, 255}, {4, 257}};
  rdna__product_case product;
  RDNA_TRY(rdna__product_case_parse(kernel->name, &product));
  struct gemm_args args = {.batch = 1, .flags = GEMM_B_TRANSPOSED, .beta = random_beta(random)};
  args.m = (int32_t)rdna__random_range(random, 1, product.columns);
  if (n < (int)(sizeof edges / sizeof edges[0])) {
    args.n = edges[n].n, args.k = edges[n].k;
  } else {
    args.n = (int32_t)rdna__random_range(random, 1, 300);
    args.k = (int32_t)rdna__random_range(random, 0, 1500);
  }
  return rdna__product_case_make(&product, args, random, out_case);
}
