#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/pointwise/contiguous_kernels.h"

/* Sets the tolerance. Kernels and twins compute the same bits, with two exceptions: elementary functions of 16-bit
 * values use the GPU's own exponential and reciprocal, and may round to a neighbour; sigmoid and silu in f32 are only
 * near. */
static void neighbours(rdna__kernel_case *c, const char *name, rdna_dtype dtype) {
  static const char *const exact[] = {"neg_", "relu_", "add_", "sub_", "mul_", "div_"};
  if (dtype == RDNA_F32) {
    bool near = strncmp(name, "sigmoid_", 8) == 0 || strncmp(name, "silu_", 5) == 0;
    if (near) rdna__case_tolerance(c, 0x1p-142, 0x1p-21);
    return;
  }
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
    if (strncmp(name, exact[i], strlen(exact[i])) == 0) return;
  }
  double absolute = dtype == RDNA_F16 ? 0x1p-24 : 0x1p-126;
  /* in the twins 1 + tanh and 1 + erf cancel; a subnormal sigmoid is off by 2^-149, which is multiplied by |gate| < 2^7
   * and |up| < 2^128 */
  if (strncmp(name, "gelu", 4) == 0) absolute = 0x1p-20;
  if (strncmp(name, "swiglu", 6) == 0 && dtype == RDNA_BF16) absolute = 0x1p-14;
  rdna__case_tolerance(c, absolute, dtype == RDNA_F16 ? 0x1p-10 : 0x1p-7);
}

static uint32_t groups_for(rdna_dtype dtype, int64_t count) {
  int64_t tile = RDNA__CONTIGUOUS_TILE_BYTES / (int64_t)rdna_dtype_block_bytes(dtype);
  return (uint32_t)((count + tile - 1) / tile);
}

static int64_t pick_count(rdna__random *random, int n, rdna_dtype dtype) {
  int64_t tile = RDNA__CONTIGUOUS_TILE_BYTES / (int64_t)rdna_dtype_block_bytes(dtype);
  const int64_t edges[] = {5, 0, 1, 8, tile - 1, tile, tile + 1, tile + 8};
  return n < 8 ? edges[n] : rdna__random_range(random, 1, 3 * tile);
}

static rdna_status add_input(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, int64_t count,
                             size_t offset) {
  void *data = rdna__case_add(c, RDNA__IN, dtype, count, (uint32_t)offset);
  if (!data) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case of %lld values", (long long)count);
  case_fill_hard(random, dtype, data, count);
  return RDNA_OK;
}

static rdna_status add_output(rdna__kernel_case *c, rdna_dtype dtype, int64_t count, size_t offset) {
  if (rdna__case_add(c, RDNA__OUT, dtype, count, (uint32_t)offset)) return RDNA_OK;
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case of %lld values", (long long)count);
}

RDNA_CASE_MAKER(rdna__unary_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct unary_args args = {.count = pick_count(random, n, dtype)};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){groups_for(dtype, args.count), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld)", (long long)args.count);
  RDNA_TRY(add_input(out_case, random, dtype, args.count, offsetof(struct unary_args, x)));
  RDNA_TRY(add_output(out_case, dtype, args.count, offsetof(struct unary_args, out)));
  neighbours(out_case, kernel->name, dtype);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__affine_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct affine_args args = {.count = pick_count(random, n, dtype),
                             .scale = (float)rdna__random_normal(random),
                             .shift = n % 2 ? 0 : (float)rdna__random_normal(random)};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){groups_for(dtype, args.count), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld) * %g + %g", (long long)args.count, (double)args.scale,
           (double)args.shift);
  RDNA_TRY(add_input(out_case, random, dtype, args.count, offsetof(struct affine_args, x)));
  return add_output(out_case, dtype, args.count, offsetof(struct affine_args, out));
}

RDNA_CASE_MAKER(rdna__binary_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct binary_args args = {.count = pick_count(random, n, dtype)};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){groups_for(dtype, args.count), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld)", (long long)args.count);
  RDNA_TRY(add_input(out_case, random, dtype, args.count, offsetof(struct binary_args, a)));
  RDNA_TRY(add_input(out_case, random, dtype, args.count, offsetof(struct binary_args, b)));
  RDNA_TRY(add_output(out_case, dtype, args.count, offsetof(struct binary_args, out)));
  neighbours(out_case, kernel->name, dtype);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__binary_row_case) {
  static const int64_t edges[][2] = {{3, 5},  {0, 7},    {1, 1},    {4, 0},     {9, 8},    {3, 4096},
                                     {5, 16}, {40, 300}, {2, 4104}, {1, 10000}, {2, 8192}, {700, 24}};
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct binary_row_args args = {.rows = rdna__random_range(random, 1, 20), .cols = rdna__random_range(random, 1, 900)};
  if (n < 12) args.rows = edges[n][0], args.cols = edges[n][1];
  if (n >= 12 && n % 2) args.cols = args.cols / 8 * 8 + 8;
  int64_t count = args.rows * args.cols;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){groups_for(dtype, count), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld, %lld)", (long long)args.rows, (long long)args.cols);
  RDNA_TRY(add_input(out_case, random, dtype, count, offsetof(struct binary_row_args, a)));
  RDNA_TRY(add_input(out_case, random, dtype, args.cols, offsetof(struct binary_row_args, b)));
  return add_output(out_case, dtype, count, offsetof(struct binary_row_args, out));
}
