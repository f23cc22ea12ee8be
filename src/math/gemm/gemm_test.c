#include "rdna/op/gemm.h"
#include "math/common/test/operand.h"
#include "math/gemm/gemm_aligned.h"
#include "math/gemm/gemm_product.h"

typedef struct problem {
  rdna_dtype a, b, c;
  int64_t m, n, k, batch;      /* batch 0: tensors of rank 2 */
  bool a_turned, b_turned;     /* stored as (k, m), (n, k) */
  int64_t gap_a, gap_b, gap_c; /* values between rows */
  int64_t offset;              /* values before all data */
  bool one_b;                  /* the same B for the whole batch */
  bool with_bias;
  bool whole; /* A and B are small whole numbers, whose sums are exact */
  float alpha, beta;
  int64_t part_bytes; /* not 0: by aligned copies of at most so many bytes */
} problem;

static operand make_matrix(rdna_dtype dtype, const problem *p, int64_t rows, int64_t columns, bool turned, int64_t gap,
                           bool shared) {
  int64_t ld = (turned ? rows : columns) + gap;
  int64_t shape[3] = {p->batch, rows, columns};
  int64_t stride[3] = {shared ? 0 : ld * (turned ? columns : rows), turned ? 1 : ld, turned ? ld : 1};
  return p->batch ? operand_make(dtype, 3, shape, stride, p->offset)
                  : operand_make(dtype, 2, shape + 1, stride + 1, p->offset);
}

static int64_t index_of(const operand *o, int64_t batch, int64_t i, int64_t j) {
  const int64_t *stride = &o->tensor.stride[o->tensor.rank - 2];
  return (o->tensor.rank == 3 ? batch * o->tensor.stride[0] : 0) + i * stride[0] + j * stride[1];
}

/* The sum in double. k products summed in f32 in any order are off by at most k roundings of the sum of magnitudes,
 * whole ones by none; alpha, beta and the bias add a few. */
static void compare(const problem *p, const operand *a, const operand *b, const operand *bias, const double *old_c,
                    const operand *c, int64_t batch, int64_t i, int64_t j) {
  double sum = 0, magnitude = 0;
  for (int64_t q = 0; q < p->k; q++) {
    double v = operand_get(a, index_of(a, batch, i, q)) * operand_get(b, index_of(b, batch, q, j));
    sum += v;
    magnitude += fabs(v);
  }
  int64_t at = index_of(c, batch, i, j);
  double old = p->beta == 0 ? 0 : (double)p->beta * old_c[at], added = bias ? operand_get(bias, j) : 0;
  double scale = fabs((double)p->alpha) * magnitude;
  double error = 0x1p-24 * ((double)(p->whole ? 0 : p->k + 2) * scale + 4 * (scale + fabs(old) + fabs(added)));
  assert_close(p->c, operand_get(c, at), (double)p->alpha * sum + old + added, error, "gemm", at);
}

static void fill_whole(operand *o) {
  for (int64_t i = 0; i < operand_span(o); i++) operand_set(o, i, (double)rdna__random_range(&random_state, -2, 2));
  operand_upload(o);
}

/* The product by copies of A and B, which rdna_op_gemm makes of larger ones only. */
static rdna_status run_aligned(const problem *p, const operand *a, const operand *b, const operand *bias,
                               const operand *c) {
  rdna__gemm_problem by_kernels = {
      .types = {p->a, p->b, p->c},
      .device = rdna_device_get_info(rdna_stream_device(stream)),
      .args = {.a = a->tensor.data,
               .b = b->tensor.data,
               .c = c->tensor.data,
               .bias = bias ? bias->tensor.data : NULL,
               .lda = a->tensor.stride[p->a_turned],
               .ldb = b->tensor.stride[p->b_turned],
               .ldc = c->tensor.stride[0],
               .m = (int32_t)p->m,
               .n = (int32_t)p->n,
               .k = (int32_t)p->k,
               .batch = 1,
               .flags = (p->a_turned ? GEMM_A_TRANSPOSED : 0) | (p->b_turned ? GEMM_B_TRANSPOSED : 0),
               .alpha = p->alpha,
               .beta = p->beta},
  };
  by_kernels.product = rdna__gemm_dense_product(by_kernels.types);
  return rdna__gemm_run_aligned(stream, "gemm", &by_kernels, p->part_bytes);
}

static void check(problem p) {
  operand a = make_matrix(p.a, &p, p.m, p.k, p.a_turned, p.gap_a, false);
  operand b = make_matrix(p.b, &p, p.k, p.n, p.b_turned, p.gap_b, p.one_b);
  operand c = make_matrix(p.c, &p, p.m, p.n, false, p.gap_c, false);
  operand bias = operand_make(p.c, 1, &p.n, NULL, p.offset);
  if (p.whole) {
    fill_whole(&a);
    fill_whole(&b);
  } else {
    operand_fill(&a, 1);
    operand_fill(&b, 1);
  }
  operand_fill(&bias, 1);
  if (p.beta == 0)
    operand_upload(&c); /* NaN, which may not be read */
  else
    operand_fill(&c, 1);
  double *old_c = malloc((size_t)(operand_span(&c) + 1) * sizeof *old_c);
  assert_non_null(old_c);
  for (int64_t i = 0; i < operand_span(&c); i++) old_c[i] = operand_get(&c, i);

  if (p.part_bytes)
    assert_ok(run_aligned(&p, &a, &b, p.with_bias ? &bias : NULL, &c));
  else
    assert_ok(
        rdna_op_gemm(stream, p.alpha, &a.tensor, &b.tensor, p.beta, p.with_bias ? &bias.tensor : NULL, &c.tensor));
  operand_download(&c);
  for (int64_t batch = 0; batch < (p.batch ? p.batch : 1); batch++)
    for (int64_t i = 0; i < p.m; i++) {
      for (int64_t j = 0; j < p.n; j++) compare(&p, &a, &b, p.with_bias ? &bias : NULL, old_c, &c, batch, i, j);
      if (p.beta == 0 && i + 1 < p.m)
        for (int64_t j = 0; j < p.gap_c; j++) assert_true(operand_is_poison(&c, index_of(&c, batch, i, p.n + j)));
    }
  free(old_c);
  operand_free(&a);
  operand_free(&b);
  operand_free(&c);
  operand_free(&bias);
}

static const rdna_dtype types[][3] = {{RDNA_F32, RDNA_F32, RDNA_F32},  {RDNA_F32, RDNA_F16, RDNA_F32},
                                      {RDNA_F32, RDNA_BF16, RDNA_F32}, {RDNA_F16, RDNA_F16, RDNA_F16},
                                      {RDNA_F16, RDNA_F16, RDNA_F32},  {RDNA_BF16, RDNA_BF16, RDNA_BF16},
                                      {RDNA_BF16, RDNA_BF16, RDNA_F32}};
enum { TYPES = sizeof types / sizeof types[0] };

/* Every type in every layout, with and without each extra. Shapes lie on and beside the edges of tiles of 64 and 128,
 * and of blocks of 144, 192 and 256 values. */
static void all_types_and_layouts(void **state) {
  static const int64_t shapes[][3] = {{1, 1, 1}, {5, 7, 3}, {64, 64, 16}, {65, 33, 40}, {130, 140, 70}};
  int number = 0;
  for (int t = 0; t < TYPES; t++) {
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      for (int layout = 0; layout < 4; layout++, number++) {
        problem p = {.a = types[t][0], .b = types[t][1], .c = types[t][2], .alpha = 1};
        p.m = shapes[s][0], p.n = shapes[s][1], p.k = shapes[s][2];
        p.a_turned = layout & 1, p.b_turned = layout & 2;
        p.with_bias = number % 2;
        if (number % 3 == 1) p.beta = 0.75f, p.alpha = -1.5f;
        if (number % 3 == 2) p.gap_a = 3, p.gap_b = 5, p.gap_c = 1, p.offset = 1;
        check(p);
      }
    }
  }
}

/* Rows that begin anywhere: of both operands, of one, of data that does; whole and in parts of 256 rows and columns. */
static void rows_moved_to_multiples_of_16_bytes(void **state) {
  static const int64_t shapes[][3] = {{70, 33, 41}, {300, 9, 24}, {40, 515, 9}, {300, 270, 7}};
  for (int t = 3; t < TYPES; t++) {
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      for (int layout = 0; layout < 4; layout++) {
        problem p = {
            .a = types[t][0], .b = types[t][1], .c = types[t][2], .alpha = 1.5f, .part_bytes = s % 2 ? 1 : 1 << 20};
        p.m = shapes[s][0], p.n = shapes[s][1], p.k = shapes[s][2];
        p.a_turned = layout & 1, p.b_turned = layout & 2;
        p.gap_a = layout % 3, p.gap_b = (layout + 1) % 3, p.gap_c = 1, p.offset = layout == 2;
        p.with_bias = layout % 2, p.beta = s == 2 ? 0.5f : 0;
        check(p);
      }
    }
  }
}

static void larger_than_any_block(void **state) {
  check((problem){.m = 150, .n = 400, .k = 600, .alpha = 1});
  check((problem){.m = 530, .n = 40, .k = 280, .alpha = 1});
  check((problem){.m = 150, .n = 400, .k = 600, .alpha = 1, .a_turned = true, .b_turned = true, .beta = 1});
  check((problem){.b = RDNA_BF16, .m = 12, .n = 200, .k = 1025, .alpha = 1, .b_turned = true, .with_bias = true});
}

/* Of exact sums no error hides a second rounding: beside a bias, an old C, and both, where all is aligned and where it
 * is not. */
static void what_is_added_to_exact_sums(void **state) {
  static const int64_t shapes[][3] = {{65, 33, 40}, {64, 72, 40}, {130, 140, 70}, {24, 16, 1024}, {9, 27, 1}};
  for (int t = 3; t < TYPES; t++) {
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      for (int extra = 1; extra < 4; extra++) {
        problem p = {.a = types[t][0], .b = types[t][1], .c = types[t][2], .whole = true, .alpha = 0.7f};
        p.m = shapes[s][0], p.n = shapes[s][1], p.k = shapes[s][2];
        p.b_turned = (s + (size_t)extra) % 2, p.a_turned = s % 2;
        p.with_bias = extra & 1, p.beta = extra & 2 ? 0.75f : 0;
        check(p);
      }
    }
  }
}

/* The kernels that read B once: up to 8 rows, at and beside what a step of the loop takes. */
static void few_rows(void **state) {
  static const int64_t ks[] = {1, 8, 15, 256, 1003, 4096};
  for (int t = 0; t < TYPES; t++) {
    for (int64_t m = 1; m <= 9; m++) {
      problem p = {.a = types[t][0], .b = types[t][1], .c = types[t][2], .b_turned = true, .alpha = 1, .m = m};
      p.n = 1 + (m * 7 + t) % 40;
      p.k = ks[(m + t) % 6];
      /* rows at multiples of 16 bytes, or the kernels for any shape run */
      p.gap_a = p.gap_b = m % 4 == 3 ? 1 : (8 - p.k % 8) % 8;
      p.gap_c = m % 3;
      p.with_bias = m % 2;
      if (m % 3 == 0) p.beta = 1, p.alpha = 0.5f;
      check(p);
    }
  }
}

static void one_column(void **state) {
  for (int t = 0; t < TYPES; t++) {
    problem p = {.a = types[t][0], .b = types[t][1], .c = types[t][2], .m = 45, .n = 1, .k = 264, .alpha = 0.5f};
    check(p);
    p.with_bias = true, p.beta = 2;
    check(p);
    p.b_turned = true, p.k = 33;
    check(p);
  }
}

static void batches(void **state) {
  problem p = {.m = 17, .n = 21, .k = 19, .batch = 3, .alpha = 1, .gap_c = 2};
  check(p);
  p.one_b = true, p.b_turned = true, p.a = p.b = RDNA_F16;
  check(p);
  p.m = 1, p.one_b = false, p.beta = 1;
  check(p);
}

/* More matrices than one launch may count. */
static void many_matrices(void **state) {
  if (rdna_device_get_info(device)->emulated)
    return; /* it interprets each of 65,540 groups: minutes for one addition */
  check((problem){.m = 1, .n = 2, .k = 3, .batch = 65540, .alpha = 1});
}

static void nothing_to_sum(void **state) {
  check((problem){.m = 3, .n = 5, .k = 0, .alpha = 1, .beta = 0.5f, .with_bias = true});
  check((problem){.m = 3, .n = 5, .k = 0, .alpha = 1});
  check((problem){.m = 1, .n = 5, .k = 0, .alpha = 1, .b_turned = true, .with_bias = true});
  check((problem){.m = 0, .n = 5, .k = 4, .alpha = 1});
  check((problem){.m = 3, .n = 0, .k = 4, .alpha = 1});
  check((problem){.m = 3, .n = 2, .k = 4, .alpha = 1, .batch = 0});
}

static void nan_stays_in_its_row(void **state) {
  enum { M = 20, N = 30, K = 40 };
  operand a = operand_make(RDNA_F32, 2, (int64_t[]){M, K}, NULL, 0);
  operand b = operand_make(RDNA_F32, 2, (int64_t[]){K, N}, NULL, 0);
  operand c = operand_make(RDNA_F32, 2, (int64_t[]){M, N}, NULL, 0);
  operand_fill(&a, 1);
  operand_fill(&b, 1);
  operand_set(&a, 7 * K + 3, (double)NAN);
  operand_set(&a, 9 * K + 3, (double)INFINITY);
  operand_upload(&a);
  operand_upload(&c);
  assert_ok(rdna_op_gemm(stream, 1, &a.tensor, &b.tensor, 0, NULL, &c.tensor));
  operand_download(&c);
  for (int64_t i = 0; i < M * N; i++) {
    double v = operand_get(&c, i);
    if (i / N == 7)
      assert_true(isnan(v));
    else if (i / N == 9)
      assert_true(isinf(v) && (v > 0) == (operand_get(&b, 3 * N + i % N) > 0));
    else
      assert_true(isfinite(v));
  }
  operand_free(&a);
  operand_free(&b);
  operand_free(&c);
}

/* The functions by their definitions, in double. */
static double activated(rdna_activation activation, double v) {
  switch (activation) {
    case RDNA_ACTIVATION_RELU:
      return v < 0 ? 0 : v;
    case RDNA_ACTIVATION_SIGMOID:
      return 1 / (1 + exp(-v));
    case RDNA_ACTIVATION_TANH:
      return tanh(v);
    case RDNA_ACTIVATION_SILU:
      return v / (1 + exp(-v));
    case RDNA_ACTIVATION_GELU_TANH:
      return v / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v)));
    case RDNA_ACTIVATION_GELU_ERF:
      return v / 2 * (1 + erf(v / sqrt(2)));
    default:
      return v;
  }
}

/* A product of contiguous matrices with all that may follow. The functions' slopes are at most 1.13, and their own
 * errors a few units in the last place. */
static void check_epilogue(rdna_dtype dtype, int64_t m, int64_t n, int64_t k, rdna_activation activation,
                           bool bias_per_row, bool with_residual) {
  operand a = operand_make(dtype, 3, (int64_t[]){2, m, k}, NULL, 0);
  operand b = operand_make(dtype, 3, (int64_t[]){2, k, n}, (int64_t[]){0, n, 1}, 0);
  operand c = operand_make(dtype, 3, (int64_t[]){2, m, n}, NULL, 0);
  operand bias = operand_make(dtype, 1, bias_per_row ? &m : &n, NULL, 0);
  operand residual = operand_make(dtype, 3, (int64_t[]){2, m, n}, (int64_t[]){m * (n + 3), n + 3, 1}, 1);
  operand *filled[] = {&a, &b, &c, &bias, &residual};
  for (int i = 0; i < 5; i++) operand_fill(filled[i], 1);
  double *old = malloc((size_t)(2 * m * n + 1) * sizeof *old);
  assert_non_null(old);
  for (int64_t i = 0; i < 2 * m * n; i++) old[i] = operand_get(&c, i);
  rdna_gemm_epilogue e = {RDNA_GEMM_EPILOGUE_INIT,
                          .alpha = 0.5f,
                          .beta = 2,
                          .bias = &bias.tensor,
                          .bias_per_row = bias_per_row,
                          .activation = activation,
                          .residual = with_residual ? &residual.tensor : NULL};
  assert_ok(rdna_op_gemm_epilogue(stream, &e, &a.tensor, &b.tensor, &c.tensor));
  operand_download(&c);
  for (int64_t batch = 0; batch < 2; batch++)
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0, magnitude = 0;
        for (int64_t p = 0; p < k; p++) {
          double v = operand_get(&a, (batch * m + i) * k + p) * operand_get(&b, p * n + j);
          sum += v, magnitude += fabs(v);
        }
        int64_t at = (batch * m + i) * n + j;
        double added = operand_get(&bias, bias_per_row ? i : j);
        double v = activated(activation, 0.5 * sum + 2 * old[at] + added);
        double more = with_residual ? operand_get(&residual, (batch * m + i) * (n + 3) + j) : 0;
        double scale = magnitude + 2 * fabs(old[at]) + fabs(added) + fabs(more);
        assert_close(dtype, operand_get(&c, at), v + more, 0x1p-24 * (double)(k + 16) * scale, "epilogue", at);
      }
  free(old);
  for (int i = 0; i < 5; i++) operand_free(filled[i]);
}

static void epilogues(void **state) {
  static const rdna_dtype dtypes[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
  for (int t = 0; t < 3; t++)
    for (int activation = 0; activation < RDNA_ACTIVATION_COUNT; activation++) {
      check_epilogue(dtypes[t], 5, 71, 9, (rdna_activation)activation, activation % 2, activation % 3 != 1);
      check_epilogue(dtypes[t], 1, 16, 64, (rdna_activation)activation, !(activation % 2), activation % 3 != 2);
    }
  check_epilogue(RDNA_BF16, 40, 1, 24, RDNA_ACTIVATION_RELU, true, true);
  check_epilogue(RDNA_BF16, 130, 260, 40, RDNA_ACTIVATION_GELU_ERF, true, true);
  check_epilogue(RDNA_F16, 70, 72, 2048, RDNA_ACTIVATION_SILU, false, true); /* in parts, where there are units */
  check_epilogue(RDNA_F32, 33, 20, 4100, RDNA_ACTIVATION_RELU, true, false);
}

/* Operands of which every second value counts along both sides. */
static void spread_operands(void **state) {
  enum { M = 9, N = 21, K = 34 };
  operand a = operand_make(RDNA_F16, 3, (int64_t[]){3, M, K}, (int64_t[]){0, 2 * K + 1, 2}, 0);
  operand b = operand_make(RDNA_F16, 3, (int64_t[]){3, K, N}, (int64_t[]){2 * K * N * 2, 2, 2 * K + 3}, 0);
  operand c = operand_make(RDNA_F32, 3, (int64_t[]){3, M, N}, NULL, 0);
  operand_fill(&a, 1);
  operand_fill(&b, 1);
  operand_upload(&c);
  assert_ok(rdna_op_gemm(stream, 1, &a.tensor, &b.tensor, 0, NULL, &c.tensor));
  operand_download(&c);
  for (int64_t batch = 0; batch < 3; batch++)
    for (int64_t i = 0; i < M; i++)
      for (int64_t j = 0; j < N; j++) {
        double sum = 0, magnitude = 0;
        for (int64_t p = 0; p < K; p++) {
          double v =
              operand_get(&a, i * (2 * K + 1) + 2 * p) * operand_get(&b, batch * 4 * K * N + 2 * p + j * (2 * K + 3));
          sum += v, magnitude += fabs(v);
        }
        int64_t at = (batch * M + i) * N + j;
        assert_close(RDNA_F32, operand_get(&c, at), sum, 0x1p-24 * (K + 2) * magnitude, "spread", at);
      }
  operand_free(&a);
  operand_free(&b);
  operand_free(&c);
}

static void double_precision(void **state) {
  static const int64_t shapes[][3] = {{1, 1, 1}, {65, 33, 40}, {70, 130, 17}, {3, 5, 0}};
  for (int t = 0; t < 16; t++) {
    int64_t m = shapes[t / 4][0], n = shapes[t / 4][1], k = shapes[t / 4][2];
    bool a_turned = t & 1, b_turned = t & 2;
    operand a = operand_make(RDNA_F64, 2, (int64_t[]){m, k}, (int64_t[]){a_turned ? 1 : k + 1, a_turned ? m : 1}, 0);
    operand b = operand_make(RDNA_F64, 2, (int64_t[]){k, n}, (int64_t[]){b_turned ? 1 : n, b_turned ? k + 2 : 1}, 0);
    operand c = operand_make(RDNA_F64, 2, (int64_t[]){m, n}, NULL, 0);
    operand bias = operand_make(RDNA_F64, 1, &n, NULL, 0);
    operand *filled[] = {&a, &b, &c, &bias};
    for (int i = 0; i < 4; i++) {
      for (size_t j = 0; j < filled[i]->bytes / 8; j++)
        ((double *)filled[i]->host)[j] = rdna__random_normal(&random_state);
      operand_upload(filled[i]);
    }
    double old[130 * 70];
    memcpy(old, c.host, c.bytes);
    assert_ok(rdna_op_gemm(stream, 0.5f, &a.tensor, &b.tensor, -2, &bias.tensor, &c.tensor));
    operand_download(&c);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        long double sum = 0;
        for (int64_t p = 0; p < k; p++)
          sum += (long double)((double *)a.host)[index_of(&a, 0, i, p)] * ((double *)b.host)[index_of(&b, 0, p, j)];
        double want = (double)(0.5L * sum - 2 * (long double)old[i * n + j] + ((double *)bias.host)[j]);
        assert_true(fabs(((double *)c.host)[i * n + j] - want) <= 0x1p-53 * (double)(k + 8) * (8 + 16 * (double)k));
      }
    for (int i = 0; i < 4; i++) operand_free(filled[i]);
  }
}

/* Signed bytes: the sums are exact, with any strides and sizes that take copies and those that do not. */
static void check_bytes(int64_t m, int64_t n, int64_t k, rdna_dtype type, bool b_turned, bool each, int batch) {
  operand a = operand_make(RDNA_I8, 3, (int64_t[]){batch, m, k}, NULL, 0);
  int64_t b_stride[3] = {0, b_turned ? 1 : n, b_turned ? k : 1}; /* one B for the batch */
  operand b = operand_make(RDNA_I8, 3, (int64_t[]){batch, k, n}, b_stride, 0);
  operand c = operand_make(type, 3, (int64_t[]){batch, m, n}, NULL, 0);
  int64_t scales_a = each ? m : 1, scales_b = each ? n : 1;
  operand scale_a = operand_make(RDNA_F32, 1, &scales_a, NULL, 0),
          scale_b = operand_make(RDNA_F32, 1, &scales_b, NULL, 0);
  operand bias = operand_make(type, 1, &m, NULL, 0);
  operand_fill(&scale_a, 0.01);
  operand_fill(&scale_b, 0.01);
  operand *bytes[] = {&a, &b};
  for (int i = 0; i < 2; i++) {
    for (size_t j = 0; j < bytes[i]->bytes; j++) bytes[i]->host[j] = (uint8_t)rdna__random_bits(&random_state);
    operand_upload(bytes[i]);
  }
  operand_upload(&c);
  bool is_sum = type == RDNA_I32;
  rdna_gemm_epilogue e = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .bias = &bias.tensor, .bias_per_row = 1,
                          .activation = RDNA_ACTIVATION_RELU};
  if (!is_sum) operand_fill(&bias, 1);
  assert_ok(rdna_op_gemm_i8(stream, is_sum ? NULL : &e, &a.tensor, is_sum ? NULL : &scale_a.tensor, &b.tensor,
                            is_sum ? NULL : &scale_b.tensor, &c.tensor));
  operand_download(&c);
  for (int64_t at = 0; at < batch * m * n; at++) {
    int64_t z = at / (m * n), i = at / n % m, j = at % n, sum = 0;
    for (int64_t p = 0; p < k; p++)
      sum += (int8_t)a.host[(z * m + i) * k + p] * (int8_t)b.host[p * b_stride[1] + j * b_stride[2]];
    if (is_sum) {
      assert_int_equal(((int32_t *)(void *)c.host)[at], sum);
    } else {
      double scaled = operand_get(&scale_a, each ? i : 0) * operand_get(&scale_b, each ? j : 0) * (double)sum;
      double v = scaled + operand_get(&bias, i);
      assert_close(type, operand_get(&c, at), v < 0 ? 0 : v, 0x1p-21 * (fabs(scaled) + 8), "gemm_i8", at);
    }
  }
  operand *all[] = {&a, &b, &c, &scale_a, &scale_b, &bias};
  for (int i = 0; i < 6; i++) operand_free(all[i]);
}

static void signed_bytes(void **state) {
  static const rdna_dtype dtypes[] = {RDNA_I32, RDNA_F32, RDNA_F16, RDNA_BF16};
  for (int t = 0; t < 4; t++) {
    check_bytes(65, 70, 64, dtypes[t], true, true, 1);
    check_bytes(3, 5, 7, dtypes[t], false, false, 2);
    check_bytes(130, 20, 33, dtypes[t], true, false, 2);
    check_bytes(1, 1, 1, dtypes[t], false, true, 1);
    check_bytes(4, 9, 0, dtypes[t], false, true, 1);
  }
  check_bytes(140, 150, 4096, RDNA_I32, true, false, 1);
  operand a = operand_make(RDNA_I8, 2, (int64_t[]){2, 3}, NULL, 0),
          b = operand_make(RDNA_I8, 2, (int64_t[]){3, 4}, NULL, 0);
  operand c = operand_make(RDNA_F32, 2, (int64_t[]){2, 4}, NULL, 0);
  rdna_tensor short_b = b.tensor;
  short_b.shape[0] = 2;
  assert_refused(rdna_op_gemm_i8(stream, NULL, &a.tensor, NULL, &b.tensor, NULL, &c.tensor), RDNA_INVALID_ARGUMENT,
                 "scale_a is NULL", "c is f32 (2, 4)");
  assert_refused(rdna_op_gemm_i8(stream, NULL, &a.tensor, NULL, &short_b, NULL, &c.tensor), RDNA_INVALID_ARGUMENT,
                 "b is i8 (2, 4)", "k");
  assert_refused(rdna_op_gemm_i8(stream, NULL, &a.tensor, &a.tensor, &b.tensor, &a.tensor, &c.tensor),
                 RDNA_INVALID_ARGUMENT, "scale_a", "f32");
  operand_free(&a);
  operand_free(&b);
  operand_free(&c);
}

static void refuses(void **state) {
  float memory[64];
  int64_t two_three[] = {2, 3}, three_four[] = {3, 4}, two_four[] = {2, 4};
  rdna_tensor a = rdna_tensor_contiguous(memory, RDNA_F32, 2, two_three);
  rdna_tensor b = rdna_tensor_contiguous(memory + 8, RDNA_F32, 2, three_four);
  rdna_tensor c = rdna_tensor_contiguous(memory + 24, RDNA_F32, 2, two_four);
#define CALL rdna_op_gemm(stream, 1, &ta, &tb, 0, NULL, &tc)
  rdna_tensor ta, tb, tc;
#define REFUSED(change, ...) ta = a, tb = b, tc = c, change, assert_refused(CALL, __VA_ARGS__)
  REFUSED(tb.shape[0] = 5, RDNA_INVALID_ARGUMENT, "a is f32 (2, 3)", "b is f32 (5, 4)");
  REFUSED(tc.shape[0] = 3, RDNA_INVALID_ARGUMENT, "a is f32 (2, 3)", "c is f32 (3, 4)");
  REFUSED(tc.shape[1] = 5, RDNA_INVALID_ARGUMENT, "b is f32 (3, 4)", "c is f32 (2, 5)");
  REFUSED(ta.data = NULL, RDNA_INVALID_ARGUMENT, "gemm: a", "NULL");
  REFUSED(tc.data = memory + 10, RDNA_INVALID_ARGUMENT, "c at", "overlap");
  REFUSED(tc.stride[0] = 3, RDNA_INVALID_ARGUMENT, "c is f32 (2, 4)", "rows 3");
  REFUSED((tc.stride[0] = 1, tc.stride[1] = 2), RDNA_UNSUPPORTED, "c is f32 (2, 4)", "last stride of 2");
  REFUSED(ta.rank = 1, RDNA_INVALID_ARGUMENT, "a is f32 (2)", "rank 1");
  /* a row of nothing, of which kernels could not count k in steps */
  ta = a, tb = b, tc = c, ta.shape[0] = tc.shape[0] = 0;
  ta.shape[1] = tb.shape[0] = ta.stride[0] = INT32_MAX - 65535;
  assert_ok(CALL);
  ta.shape[1] = tb.shape[0] = ta.stride[0] = INT32_MAX - 65534;
  assert_refused(CALL, RDNA_UNSUPPORTED, "k 2147418113", "at most 2147418112");
  REFUSED(ta.dtype = RDNA_F16, RDNA_UNSUPPORTED, "f16 times f32", "into f32");
  REFUSED(ta.dtype = RDNA_I32, RDNA_UNSUPPORTED, "a is i32", "f16");
  int64_t batched[] = {2, 2, 3};
  REFUSED((ta = rdna_tensor_contiguous(memory, RDNA_F32, 3, batched)), RDNA_INVALID_ARGUMENT, "(2, 2, 3)", "ranks");
  int64_t three = 3;
  rdna_tensor bias = rdna_tensor_contiguous(memory + 60, RDNA_F32, 1, &three);
  assert_refused(rdna_op_gemm(stream, 1, &a, &b, 0, &bias, &c), RDNA_INVALID_ARGUMENT, "bias is f32 (3)", "4");
  assert_refused(rdna_op_gemm(NULL, 1, &a, &b, 0, NULL, &c), RDNA_INVALID_ARGUMENT, "gemm", "stream is NULL");
  rdna_gemm_epilogue e = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .bias = &bias, .bias_per_row = 1};
  assert_refused(rdna_op_gemm_epilogue(stream, &e, &a, &b, &c), RDNA_INVALID_ARGUMENT, "bias is f32 (3)", "rows");
  e = (rdna_gemm_epilogue){RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .activation = RDNA_ACTIVATION_COUNT};
  assert_refused(rdna_op_gemm_epilogue(stream, &e, &a, &b, &c), RDNA_INVALID_ARGUMENT, "activation 7", "0 to 6");
  e = (rdna_gemm_epilogue){RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .residual = &b};
  assert_refused(rdna_op_gemm_epilogue(stream, &e, &a, &b, &c), RDNA_INVALID_ARGUMENT, "residual is f32 (3, 4)",
                 "c is");
  e.residual = &c;
  assert_refused(rdna_op_gemm_epilogue(stream, &e, &a, &b, &c), RDNA_INVALID_ARGUMENT, "residual", "overlap");
#undef REFUSED
#undef CALL
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_types_and_layouts),
      cmocka_unit_test(rows_moved_to_multiples_of_16_bytes),
      cmocka_unit_test(larger_than_any_block),
      cmocka_unit_test(what_is_added_to_exact_sums),
      cmocka_unit_test(few_rows),
      cmocka_unit_test(one_column),
      cmocka_unit_test(batches),
      cmocka_unit_test(many_matrices),
      cmocka_unit_test(nothing_to_sum),
      cmocka_unit_test(nan_stays_in_its_row),
      cmocka_unit_test(epilogues),
      cmocka_unit_test(spread_operands),
      cmocka_unit_test(double_precision),
      cmocka_unit_test(signed_bytes),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
