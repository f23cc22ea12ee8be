#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/softmax/softmax_kernels.h"

/* A sum of positive terms is off by at most depth * 2^-24 of itself, depth being the longest chain of additions: 256
 * in a chunk of the host's, or 32 in a thread, then one for each chunk or step; the exponentials and the final product
 * or logarithm add less than 16 roundings. Both sides may be off. */
static void set_tolerance(rdna__kernel_case *out_case, rdna_dtype dtype, int64_t cols, bool is_log) {
  double depth = 256 + 16 + (double)cols / 256, error = 2 * depth * 0x1p-24;
  double rounding = case_spacing(dtype);
  if (is_log) {
    /* the logarithm turns a relative error of the sum into an absolute one, and adds its own of at most log(cols) */
    rdna__case_tolerance(out_case, error + 0x1p-22 * log((double)cols + 1) + case_smallest(dtype), rounding + 0x1p-22);
  } else {
    rdna__case_tolerance(out_case, case_smallest(dtype), rounding + error);
  }
}

/* Rows that have no probabilities, or hardly any. */
static void spoil_row(rdna__random *random, rdna_dtype dtype, void *x, int64_t begin, int64_t cols) {
  int64_t at = begin + (int64_t)rdna__random_below(random, (uint64_t)cols);
  switch (rdna__random_below(random, 6)) {
    case 0:
      case_set(dtype, x, at, NAN);
      break;
    case 1:
      case_set(dtype, x, at, INFINITY);
      break;
    case 2:
      for (int64_t i = 0; i < cols; i++) case_set(dtype, x, begin + i, -INFINITY);
      break;
    case 3: /* one number among -inf */
      for (int64_t i = 0; i < cols; i++) case_set(dtype, x, begin + i, -INFINITY);
      case_set(dtype, x, at, 3);
      break;
    default:
      for (int64_t i = 0; i < cols; i += 3) case_set(dtype, x, begin + i, -INFINITY);
  }
}

static bool add_rows(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, int n, int64_t rows, int64_t cols,
                     int64_t stride, size_t offset) {
  void *x = rdna__case_add(c, RDNA__IN, dtype, rows * stride, (uint32_t)offset);
  if (!x) return false;
  case_fill(random, dtype, x, rows * stride, n % 4 == 3 ? 40 : 2);
  for (int64_t row = 0; row < rows; row++) {
    if (rdna__random_below(random, 4) == 0) spoil_row(random, dtype, x, row * stride, cols);
  }
  return true;
}

static rdna_status add_out(rdna__kernel_case *c, rdna_dtype dtype, int64_t rows, int64_t cols, int64_t stride,
                           bool is_log, size_t offset) {
  if (!rdna__case_add(c, RDNA__OUT, dtype, rows * stride, (uint32_t)offset)) return rdna__case_no_memory(c);
  set_tolerance(c, dtype, cols, is_log);
  if (stride == cols) return RDNA_OK;
  return rdna__case_guard_rows(c, rows, cols, stride);
}

static rdna_status make_rows(const rdna__kernel_info *kernel, rdna__random *random, int n, struct softmax_args *args,
                             bool may_be_waves, rdna__kernel_case *out_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  args->scale = n % 3 ? 1.0f : -0.37f, args->log = (uint32_t)(n / 2 & 1);
  /* rows at several alignments, those of x and of out alike or not */
  int64_t pad = n % 4 == 0 ? 0 : rdna__random_range(random, 0, 3);
  if (n % 2) { /* rows of whole 16 bytes */
    args->cols = (args->cols + 7) / 8 * 8;
    pad *= 8;
  }
  args->x_stride = args->cols + pad;
  args->out_stride = args->cols + (n % 3 ? 1 : 2) * pad;
  args->waves = may_be_waves && rdna__random_below(random, 2);
  memcpy(out_case->args, args, sizeof *args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld pad %lld log %u waves %u grid %u",
           (long long)args->rows, (long long)args->cols, (long long)pad, args->log, args->waves, out_case->grid.x);
  if (!add_rows(out_case, random, dtype, n, args->rows, args->cols, args->x_stride, offsetof(struct softmax_args, x)))
    return rdna__case_no_memory(out_case);
  return add_out(out_case, dtype, args->rows, args->cols, args->out_stride, args->log,
                 offsetof(struct softmax_args, out));
}

static bool fits(const rdna__kernel_info *kernel, int64_t cols, int64_t bytes) {
  return (cols + 7) * (int64_t)rdna_dtype_block_bytes(case_name_float(kernel->name)) <= bytes;
}

RDNA_CASE_MAKER(rdna__softmax_case) {
  /* about the borders between the ways to hold a row */
  static const int64_t edges[][2] = {{2, 5},    {0, 7},     {3, 1},     {5, 1024}, {3, 1025}, {2, 8192},
                                     {2, 8193}, {1, 20000}, {9, 64},    {4, 4104}, {9, 4096}, {3, 2048},
                                     {2, 9000}, {1, 32776}, {150, 128}, {70, 96},  {300, 16}, {3, 3001}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct softmax_args args = {0};
  args.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 40);
  args.cols = n < edge_count ? edges[n][1] : rdna__random_range(random, 1, rdna__random_below(random, 3) ? 600 : 12000);
  return make_rows(kernel, random, n, &args, fits(kernel, args.cols, SOFTMAX_SHORT_BYTES), out_case);
}

RDNA_CASE_MAKER(rdna__softmax_held_case) {
  static const int64_t edges[][2] = {{9, 5}, {4, 4090}, {2, 16377}, {0, 7}, {5, 2041}, {2, 8190}, {3, 1025}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  struct softmax_args args = {0};
  args.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 20);
  args.cols = n < edge_count ? edges[n][1] : rdna__random_range(random, 1, n % 3 ? 4000 : 16000);
  return make_rows(kernel, random, n, &args, fits(kernel, args.cols, SOFTMAX_WAVE_BYTES), out_case);
}

/* Of rows of one part, of exactly a part's vectors, of several, and of more parts than a group has threads; multiples
 * of 8 where n is odd. */
static int64_t part_cols(rdna__random *random, int n, rdna_dtype dtype, int64_t *part_vectors) {
  *part_vectors = n % 5 == 4 ? 2 * SOFTMAX_PART_VECTORS : SOFTMAX_PART_VECTORS;
  int64_t in_16 = 16 / (int64_t)rdna_dtype_block_bytes(dtype);
  if (n == 0) return 3;
  if (n == 2) return *part_vectors * in_16;
  if (n == 3) {
    *part_vectors = 1;
    return in_16 * 2 * rdna__random_range(random, SOFTMAX_THREADS / 2, SOFTMAX_THREADS);
  }
  return rdna__random_range(random, 1, n % 3 ? 20000 : 3 * *part_vectors * in_16) / (n % 2 ? 8 : 1) * (n % 2 ? 8 : 1);
}
static int64_t parts_of(rdna_dtype dtype, int64_t cols, int64_t part_vectors) {
  return cols / (16 / (int64_t)rdna_dtype_block_bytes(dtype)) / part_vectors + 1;
}

RDNA_CASE_MAKER(rdna__softmax_part_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  struct softmax_part_args args = {.rows = rdna__random_range(random, n == 1 ? 0 : 1, n == 1 ? 0 : 3),
                                   .scale = n % 3 ? 1.0f : -0.37f};
  args.cols = part_cols(random, n, dtype, &args.part_vectors);
  args.parts = parts_of(dtype, args.cols, args.part_vectors);
  args.x_stride = args.cols + rdna__random_range(random, 0, 2) * (n % 2 ? 8 : 1);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld, %lld apart, %lld parts, grid %u",
           (long long)args.rows, (long long)args.cols, (long long)args.x_stride, (long long)args.parts,
           out_case->grid.x);
  if (!add_rows(out_case, random, dtype, n, args.rows, args.cols, args.x_stride, offsetof(struct softmax_part_args, x)))
    return rdna__case_no_memory(out_case);
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 2 * args.rows * args.parts,
                      offsetof(struct softmax_part_args, states)))
    return rdna__case_no_memory(out_case);
  /* exponentials of 16-bit values are the hardware's: an argument of -100 rounds by 2^-18, and they by 2^-22 */
  double error = 2 * (256 + 16 + (double)args.cols / 256) * 0x1p-24;
  rdna__case_tolerance(out_case, 0, error + (dtype == RDNA_F32 ? 0 : 0x1p-16));
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__softmax_finish_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  struct softmax_finish_args args = {.rows = rdna__random_range(random, n == 1 ? 0 : 1, n == 1 ? 0 : 3),
                                     .scale = n % 3 ? 1.0f : -0.37f,
                                     .log = (uint32_t)(n / 2 & 1)};
  args.cols = part_cols(random, n, dtype, &args.part_vectors);
  args.parts = parts_of(dtype, args.cols, args.part_vectors);
  int64_t pad = rdna__random_range(random, 0, 2) * (n % 2 ? 8 : 1);
  args.x_stride = args.cols + pad;
  args.out_stride = args.cols + (n % 3 ? 1 : 2) * pad;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld pad %lld, %lld parts, log %u, grid %u",
           (long long)args.rows, (long long)args.cols, (long long)pad, (long long)args.parts, args.log,
           out_case->grid.x);
  if (!add_rows(out_case, random, dtype, n, args.rows, args.cols, args.x_stride,
                offsetof(struct softmax_finish_args, x)))
    return rdna__case_no_memory(out_case);
  float *states = rdna__case_add(out_case, RDNA__IN, RDNA_F32, 2 * args.rows * args.parts,
                                 offsetof(struct softmax_finish_args, states));
  if (!states) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < args.rows * args.parts; i++) { /* parts of nothing but -inf among them */
    bool none = rdna__random_below(random, 4) == 0;
    states[2 * i] = none ? -INFINITY : (float)(6 + rdna__random_normal(random));
    states[2 * i + 1] = none ? 0 : (float)(1 + 100 * rdna__random_unit(random));
  }
  return add_out(out_case, dtype, args.rows, args.cols, args.out_stride, args.log,
                 offsetof(struct softmax_finish_args, out));
}
