#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/pool/fold_kernels.h"

RDNA_CASE_MAKER(rdna__fold_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int64_t planes = n == 1 ? 0 : rdna__random_range(random, 1, 4), taps = 1, windows = 1, size = 1;
  struct fold_args a = {0};
  for (int d = 0; d < 3; d++) {
    struct pool_axis *x = &a.axis[d];
    *x = (struct pool_axis){.in = 1, .out = 1, .window = 1, .stride = 1, .dilation = 1};
    if (d >= 2 - n % 3) {
      x->window = (int32_t)rdna__random_range(random, 1, 4), x->stride = (int32_t)rdna__random_range(random, 1, 5);
      x->dilation = (int32_t)rdna__random_range(random, 1, 3), x->out = (int32_t)rdna__random_range(random, 1, 6);
      x->pad_before = (int32_t)rdna__random_range(random, 0, 2);
      x->in = (x->out - 1) * x->stride + (x->window - 1) * x->dilation + 1 - x->pad_before;
      x->in += (int32_t)rdna__random_range(random, 0, 2); /* a rest that no window reaches */
      if (x->in < 1) x->in = 1;
    }
    taps *= x->window, windows *= x->out, size *= x->in;
  }
  a.count = (uint32_t)(planes * size);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(a.count + FOLD_THREADS - 1) / FOLD_THREADS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld planes of (%d, %d, %d), %lld windows of %lld values",
           (long long)planes, a.axis[0].in, a.axis[1].in, a.axis[2].in, (long long)windows, (long long)taps);
  int64_t columns = planes * taps * windows;
  void *in = rdna__case_add(out_case, RDNA__IN, dtype, columns, offsetof(struct fold_args, columns));
  if (!in || !rdna__case_add(out_case, RDNA__OUT, dtype, a.count, offsetof(struct fold_args, out)))
    return rdna__case_no_memory(out_case);
  case_fill_doubles(random, dtype, in, columns, 0);
  rdna__case_tolerance(out_case, 64 * case_unit(dtype) * case_top(dtype, in, columns), case_step(dtype));
  return RDNA_OK;
}
