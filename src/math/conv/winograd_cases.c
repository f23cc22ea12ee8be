/* Random cases of what Winograd's way does before and after the products. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/common/case/values.h"
#include "math/conv/winograd_kernels.h"

/* Sums of nine or sixteen values: the same operations on each side, but for the activation's last bits. */
RDNA_CASE_MAKER(rdna__winograd_case) {
  bool result = strstr(kernel->name, "result"), window = strstr(kernel->name, "window");
  bool weight = window || strstr(kernel->name, "weight"), sums = result || window;
  struct winograd_args a = {.channels = (int32_t)rdna__random_range(random, 1, 9)};
  int32_t images = (int32_t)rdna__random_range(random, n == 1 ? 0 : 1, 3);
  bool last = rdna__random_below(random, 2);
  for (int d = 0; d < 2; d++) {
    a.size[d] = (int32_t)rdna__random_range(random, 1, 20);
    a.pad_before[d] = (int32_t)rdna__random_range(random, -1, 2);
  }
  a.tiles_y = (a.size[0] + 1) / 2, a.tiles_x = (a.size[1] + 1) / 2;
  a.count = weight ? (int32_t)rdna__random_range(random, 1, 300) : images * a.tiles_y * a.tiles_x;
  int64_t ld = (last ? a.channels : a.count) + (int64_t)rdna__random_below(random, 4);
  a.last = last, a.step[last] = ld, a.step[!last] = 1, a.step[2] = (last ? a.count : a.channels) * ld;
  a.turned = (uint32_t)rdna__random_below(random, 2);
  if (result) a.activation = (uint32_t)rdna__random_below(random, RDNA_ACTIVATION_SIGMOID + 1);
  int64_t plane = weight ? 9 : (int64_t)a.size[0] * a.size[1], second = weight ? a.count : a.channels;
  int64_t first = weight ? a.channels : images;
  a.stride[3] = last ? second : 1, a.stride[2] = a.stride[3] * (weight ? 3 : a.size[1]);
  a.stride[1] = last ? 1 : plane, a.stride[0] = second * plane;
  memcpy(out_case->args, &a, sizeof a);
  int64_t threads = last ? (int64_t)a.count * a.channels : a.count;
  out_case->grid =
      (rdna_grid){(uint32_t)((threads + WINOGRAD_THREADS - 1) / WINOGRAD_THREADS), last ? 1 : (uint32_t)a.channels, 1};
  snprintf(out_case->label, sizeof out_case->label, "channels %d count %d size %d x %d last %d", a.channels, a.count,
           a.size[0], a.size[1], last);
  int64_t values = first * second * plane, transformed = 16 * a.step[2];
  float *in =
      rdna__case_add(out_case, RDNA__IN, RDNA_F32, sums ? transformed : values, offsetof(struct winograd_args, in));
  if (!in) return rdna__case_no_memory(out_case);
  case_fill(random, RDNA_F32, in, sums ? transformed : values, 1);
  if (result && rdna__random_below(random, 2)) {
    float *bias = rdna__case_add(out_case, RDNA__IN, RDNA_F32, a.channels, offsetof(struct winograd_args, bias));
    if (!bias) return rdna__case_no_memory(out_case);
    case_fill(random, RDNA_F32, bias, a.channels, 1);
  }
  int64_t written = sums ? values : transformed; /* but for the ends of lines */
  float *out = rdna__case_add(out_case, RDNA__INOUT, RDNA_F32, written, offsetof(struct winograd_args, out));
  if (!out) return rdna__case_no_memory(out_case);
  case_fill(random, RDNA_F32, out, written, 1);
  rdna__case_tolerance(out_case, 0x1p-20 * 64, case_spacing(RDNA_F32));
  return RDNA_OK;
}
