/* Random cases of products in f64, of signed bytes and of 8-bit floats. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/float8.h"
#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/common/case/values.h"
#include "math/gemm/gemm_activation.h"
#include "math/gemm/gemm_case.h"
#include "math/gemm/gemm_scaled_args.h"

static void draw_shape(rdna__random *random, int n, struct gemm_args *args) {
  static const int32_t edges[][3] = {{3, 5, 4}, {0, 4, 4}, {4, 4, 0}, {64, 64, 32}, {65, 129, 34}};
  bool edge = n < (int)(sizeof edges / sizeof *edges);
  args->m = edge ? edges[n][0] : (int32_t)rdna__random_range(random, 1, 150);
  args->n = edge ? edges[n][1] : (int32_t)rdna__random_range(random, 1, 150);
  args->k = edge ? edges[n][2] : (int32_t)rdna__random_range(random, 0, 100);
  args->batch = edge ? 1 : (int32_t)rdna__random_range(random, 1, 2);
}

static rdna_grid grid_of(const struct gemm_args *args, uint32_t tile) {
  uint32_t m = (uint32_t)args->m, n = (uint32_t)args->n;
  return (rdna_grid){(m + tile - 1) / tile * ((n + tile - 1) / tile), 1, (uint32_t)args->batch};
}

static void fill_f64(rdna__random *random, double *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i] = rdna__random_normal(random);
}

/* Normal numbers are below 8 here; each side rounds at most k times, by 2^-53 of the sum of magnitudes. */
RDNA_CASE_MAKER(rdna__gemm_f64_case) {
  struct gemm_args args = {.alpha = 0.5f, .beta = rdna__random_below(random, 2) ? -2 : 0};
  draw_shape(random, n, &args);
  args.flags = (uint32_t)rdna__random_below(random, 4);
  bool of_rows = rdna__random_below(random, 2);
  if (of_rows) args.flags |= GEMM_BIAS_OF_ROWS;
  bool a_transposed = args.flags & GEMM_A_TRANSPOSED, b_transposed = args.flags & GEMM_B_TRANSPOSED;
  args.lda = (a_transposed ? args.m : args.k) + (int64_t)rdna__random_below(random, 3);
  args.ldb = (b_transposed ? args.k : args.n) + (int64_t)rdna__random_below(random, 3);
  args.ldc = args.n;
  args.stride_a = args.lda * (a_transposed ? args.k : args.m),
  args.stride_b = args.ldb * (b_transposed ? args.n : args.k);
  args.stride_c = (int64_t)args.m * args.n;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = grid_of(&args, GEMM_F64_TILE);
  snprintf(out_case->label, sizeof out_case->label, "m %d n %d k %d batch %d flags %u beta %g", args.m, args.n, args.k,
           args.batch, args.flags, (double)args.beta);
  const struct {
    rdna__buffer_role role;
    int64_t count;
    size_t offset;
  } buffers[] = {{RDNA__IN, args.batch * args.stride_a, offsetof(struct gemm_args, a)},
                 {RDNA__IN, args.batch * args.stride_b, offsetof(struct gemm_args, b)},
                 {RDNA__IN, of_rows ? args.m : args.n, offsetof(struct gemm_args, bias)},
                 {args.beta == 0 ? RDNA__OUT : RDNA__INOUT, args.batch * args.stride_c, offsetof(struct gemm_args, c)}};
  for (int i = 0; i < 4; i++) {
    void *data = rdna__case_add(out_case, buffers[i].role, RDNA_F64, buffers[i].count, (uint32_t)buffers[i].offset);
    if (!data) return rdna__case_no_memory(out_case);
    if (buffers[i].role != RDNA__OUT) fill_f64(random, data, buffers[i].count);
  }
  rdna__case_tolerance(out_case, 0x1p-53 * (2.0 * args.k + 8) * (64.0 * args.k + 32), 0x1p-52);
  return RDNA_OK;
}

static int64_t round_16(int64_t value) { return (value + 15) / 16 * 16; }

/* Draws what products of 8-bit operands have in common, all but the operands' values: their storage, which the caller
 * fills, is |out_data|. Returns the type of C, or RDNA_DTYPE_COUNT where memory ran out. */
static rdna_dtype draw_scaled(const rdna__kernel_info *kernel, rdna__random *random, int n,
                              struct gemm_scaled_args *args, const rdna_dtype types[2], double deviation,
                              rdna__kernel_case *out_case, uint8_t *out_data[2], double *out_scale) {
  struct gemm_args *of = &args->of;
  *args = (struct gemm_scaled_args){.of = {.alpha = 1, .flags = GEMM_B_TRANSPOSED}};
  rdna_dtype type = strstr(kernel->name, "_i32_")    ? RDNA_I32
                    : strstr(kernel->name, "_bf16_") ? RDNA_BF16
                    : strstr(kernel->name, "_f16_")  ? RDNA_F16
                                                     : RDNA_F32;
  bool of_rows = false, scaled = type != RDNA_I32;
  draw_shape(random, n, of);
  of->k = (of->k + 1) / 2 * 2;
  of->lda = round_16(of->k + (int64_t)rdna__random_below(random, 20)), of->ldb = round_16(of->k);
  of->ldc = of->n;
  of->stride_a = of->m * of->lda, of->stride_b = of->n * of->ldb, of->stride_c = (int64_t)of->m * of->n;
  if (scaled) {
    args->each_a = (int32_t)rdna__random_below(random, 2), args->each_b = (int32_t)rdna__random_below(random, 2);
    if (rdna__random_below(random, 2)) {
      of->flags |= GEMM_MORE, of_rows = rdna__random_below(random, 2);
      if (of_rows) of->flags |= GEMM_BIAS_OF_ROWS;
      of->activation = (uint32_t)rdna__random_below(random, RDNA_ACTIVATION_GELU_ERF + 1);
    }
  }
  memcpy(out_case->args, args, sizeof *args);
  out_case->grid = grid_of(of, strstr(kernel->name, "large") ? 128 : 64);
  snprintf(out_case->label, sizeof out_case->label, "m %d n %d k %d batch %d flags %u each %d %d", of->m, of->n, of->k,
           of->batch, of->flags, args->each_a, args->each_b);
  int64_t counts[] = {of->batch * of->stride_a, of->batch * of->stride_b};
  size_t offsets[] = {offsetof(struct gemm_scaled_args, of.a), offsetof(struct gemm_scaled_args, of.b)};
  for (int i = 0; i < 2; i++) {
    out_data[i] = rdna__case_add(out_case, RDNA__IN, types[i], counts[i], (uint32_t)offsets[i]);
    if (!out_data[i]) return RDNA_DTYPE_COUNT;
  }
  int64_t sizes[] = {args->each_a ? of->m : 1, args->each_b ? of->n : 1, of_rows ? of->m : of->n};
  size_t places[] = {offsetof(struct gemm_scaled_args, scale_a), offsetof(struct gemm_scaled_args, scale_b),
                     offsetof(struct gemm_scaled_args, of.bias)};
  *out_scale = 1;
  for (int i = 0; scaled && i < 3; i++) {
    rdna_dtype of_type = i < 2 ? RDNA_F32 : type;
    void *data = rdna__case_add(out_case, RDNA__IN, of_type, sizes[i], (uint32_t)places[i]);
    if (!data) return RDNA_DTYPE_COUNT;
    case_fill(random, of_type, data, sizes[i], i < 2 ? deviation : 1);
    double largest = 0;
    for (int64_t j = 0; i < 2 && j < sizes[i]; j++) largest = fmax(largest, fabs((double)((const float *)data)[j]));
    if (i < 2) *out_scale *= largest;
  }
  return type;
}

static rdna_status add_scaled_c(rdna_dtype type, const struct gemm_args *of, double absolute,
                                rdna__kernel_case *out_case) {
  if (!rdna__case_add(out_case, RDNA__OUT, type, of->batch * of->stride_c, offsetof(struct gemm_scaled_args, of.c)))
    return rdna__case_no_memory(out_case);
  if (type != RDNA_I32) rdna__case_tolerance(out_case, absolute + case_smallest(type), case_spacing(type));
  return RDNA_OK;
}

/* The sums are exact; scales, a bias and a function round a few times. */
RDNA_CASE_MAKER(rdna__gemm_i8_case) {
  static const rdna_dtype types[] = {RDNA_I8, RDNA_I8};
  struct gemm_scaled_args args;
  uint8_t *data[2];
  double scale;
  rdna_dtype type = draw_scaled(kernel, random, n, &args, types, 0.01, out_case, data, &scale);
  if (type == RDNA_DTYPE_COUNT) return rdna__case_no_memory(out_case);
  for (int64_t j = 0; j < args.of.batch * args.of.stride_a; j++) data[0][j] = (uint8_t)rdna__random_bits(random);
  for (int64_t j = 0; j < args.of.batch * args.of.stride_b; j++) data[1][j] = (uint8_t)rdna__random_bits(random);
  return add_scaled_c(type, &args.of, 0x1p-22 * (16384 * scale * args.of.k + 16), out_case);
}

/* Normal numbers, in half of the cases so small that most are subnormal, now and then with one code of any kind.
 * Returns the largest that is finite. */
static double fill_float8(rdna__random *random, rdna_dtype type, uint8_t *codes, int64_t count) {
  double largest = 0, deviation = rdna__random_below(random, 2) ? 1 : ldexp(1, -6 - (int)rdna__random_below(random, 9));
  for (int64_t i = 0; i < count; i++) {
    float v = float8_limit((float)(deviation * rdna__random_normal(random)), float8_largest(type));
    codes[i] = float8_from_f32(type, v);
  }
  if (count > 0 && rdna__random_below(random, 2))
    codes[rdna__random_below(random, (uint64_t)count)] = (uint8_t)rdna__random_bits(random);
  for (int64_t i = 0; i < count; i++) {
    double v = fabs((double)float8_to_f32(type, codes[i]));
    if (isfinite(v)) largest = fmax(largest, v);
  }
  return largest;
}

/* Each side rounds at most k times, by 2^-24 of the sum of magnitudes, and then a few times. */
RDNA_CASE_MAKER(rdna__gemm_f8_case) {
  rdna__product_case product;
  struct gemm_scaled_args args;
  uint8_t *data[2];
  double scale;
  RDNA_TRY(rdna__product_case_parse(kernel->name, &product));
  const rdna_dtype types[] = {product.type_a, product.type_b};
  rdna_dtype type = draw_scaled(kernel, random, n, &args, types, 1, out_case, data, &scale);
  if (type == RDNA_DTYPE_COUNT) return rdna__case_no_memory(out_case);
  double a = fill_float8(random, types[0], data[0], args.of.batch * args.of.stride_a);
  double b = fill_float8(random, types[1], data[1], args.of.batch * args.of.stride_b);
  double sum = scale * a * b * args.of.k;
  return add_scaled_c(type, &args.of, 1.2 * 0x1p-24 * (2 * (args.of.k + 2) * sum + 16 * (sum + 16)), out_case);
}
