/* Random cases of what an image's values add up. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/conv/conv.h"
#include "math/conv/spread_kernels.h"

RDNA_CASE_MAKER(rdna__spread_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int dims = n < 3 ? n + 1 : (int)rdna__random_range(random, 1, 3);
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = dims, .groups = 1};
  int64_t x[5] = {n == 4 ? 0 : rdna__random_range(random, 1, 3), rdna__random_range(random, 1, 5)};
  int64_t y[5] = {x[0], 2}, w[5] = {y[1], x[1]}, plane = 1, window = 1;
  for (int d = 0; d < dims; d++) {
    w[2 + d] = rdna__random_range(random, 1, 5), y[2 + d] = rdna__random_range(random, 1, dims == 1 ? 90 : 9);
    conv.stride[d] = rdna__random_range(random, 1, 4), conv.dilation[d] = rdna__random_range(random, 1, 3);
    int64_t reach = (y[2 + d] - 1) * conv.stride[d] + conv.dilation[d] * (w[2 + d] - 1) + 1;
    conv.pad_before[d] = rdna__random_range(random, 0, reach < 3 ? reach - 1 : 2);
    x[2 + d] = reach - conv.pad_before[d] + rdna__random_range(random, 0, conv.stride[d] - 1);
    plane *= y[2 + d], window *= w[2 + d];
  }
  rdna_tensor tx = rdna_tensor_contiguous(NULL, dtype, dims + 2, x),
              tw = rdna_tensor_contiguous(NULL, dtype, dims + 2, w);
  rdna_tensor ty = rdna_tensor_contiguous(NULL, dtype, dims + 2, y);
  struct conv_args args;
  rdna__conv_args_make(RDNA__CONV_DATA, &conv, &tx, &tw, &ty, &args);
  rdna__conv_spread_strides(&args, plane, window * x[1], rdna__random_below(random, 2));
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((args.rows + SPREAD_THREADS - 1) / SPREAD_THREADS), (uint32_t)x[1], 1};
  snprintf(out_case->label, sizeof out_case->label, "dims %d rows %d channels %d window %d", dims, args.rows,
           args.columns, (int)window);
  int64_t count = x[0] * plane * window * x[1];
  float *product = rdna__case_add(out_case, RDNA__IN, RDNA_F32, count, offsetof(struct conv_args, image));
  if (!product) return rdna__case_no_memory(out_case);
  case_fill(random, RDNA_F32, product, count, 1);
  if (rdna__random_below(random, 2)) {
    void *bias = rdna__case_add(out_case, RDNA__IN, dtype, x[1], offsetof(struct conv_args, bias));
    if (!bias) return rdna__case_no_memory(out_case);
    case_fill(random, dtype, bias, x[1], 1);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, rdna_tensor_count(&tx), offsetof(struct conv_args, out)))
    return rdna__case_no_memory(out_case);
  /* The same additions on both sides, but for the bias: one rounding of a sum of window + 1 values below 8. */
  rdna__case_tolerance(out_case, 0x1p-24 * 8 * (double)(window + 1) + case_smallest(dtype), case_spacing(dtype));
  return RDNA_OK;
}
