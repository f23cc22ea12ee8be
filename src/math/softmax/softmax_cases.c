#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/case_fill.h"
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

RDNA_CASE_MAKER(rdna__softmax_case) {
  /* about the borders between the ways to hold a row */
  static const int64_t edges[][2] = {{2, 5},     {0, 7},     {3, 1},     {5, 1024}, {3, 1025}, {2, 8192},
                                     {2, 8193},  {1, 20000}, {9, 64},    {4, 4104}, {9, 4096}, {3, 2048},
                                     {2, 32768}, {1, 32776}, {150, 128}, {70, 96},  {300, 16}};
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  rdna_dtype dtype = strstr(kernel->name, "bf16") ? RDNA_BF16 : strstr(kernel->name, "f16") ? RDNA_F16 : RDNA_F32;
  struct softmax_args args = {.scale = n % 3 ? 1.0f : -0.37f, .log = (uint32_t)(n / 2 & 1)};
  args.rows = n < edge_count ? edges[n][0] : rdna__random_range(random, 1, 40);
  args.cols = n < edge_count ? edges[n][1] : rdna__random_range(random, 1, rdna__random_below(random, 3) ? 600 : 12000);
  int64_t pad = n < edge_count ? 0 : rdna__random_range(random, 0, 1);
  if (n >= edge_count && rdna__random_below(random, 2)) { /* rows of whole 16 bytes */
    args.cols = (args.cols + 7) / 8 * 8;
    pad *= 8;
  }
  args.x_stride = args.cols + pad;
  args.out_stride = args.cols + 2 * pad;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %lld pad %lld log %u grid %u", (long long)args.rows,
           (long long)args.cols, (long long)pad, args.log, out_case->grid.x);

  void *x = rdna__case_add(out_case, RDNA__IN, dtype, args.rows * args.x_stride, offsetof(struct softmax_args, x));
  if (!x) return rdna__fail(RDNA_OUT_OF_MEMORY, "softmax case: no memory for %s", out_case->label);
  case_fill(random, dtype, x, args.rows * args.x_stride, n % 4 == 3 ? 40 : 2);
  for (int64_t row = 0; row < args.rows; row++) {
    if (rdna__random_below(random, 4) == 0) spoil_row(random, dtype, x, row * args.x_stride, args.cols);
  }
  int64_t count = args.rows * args.out_stride;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct softmax_args, out)))
    return rdna__fail(RDNA_OUT_OF_MEMORY, "softmax case: no memory for %s", out_case->label);
  set_tolerance(out_case, dtype, args.cols, args.log);
  if (pad == 0) return RDNA_OK;
  uint8_t *untouched = malloc((size_t)count + 1);
  if (!untouched) return rdna__fail(RDNA_OUT_OF_MEMORY, "softmax case: no memory for %s", out_case->label);
  for (int64_t i = 0; i < count; i++) untouched[i] = i % args.out_stride >= args.cols;
  out_case->buffers[out_case->buffer_count - 1].untouched = untouched;
  return RDNA_OK;
}
