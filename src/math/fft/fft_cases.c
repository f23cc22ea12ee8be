#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/fft/fft_kernels.h"

/* Any product of the radices up to |most|, in any order. */
static uint32_t random_radices(rdna__random *random, uint32_t most, uint64_t *out_radices) {
  static const uint32_t offered[] = {8, 4, 2, 3, 5, 7};
  uint32_t n = 1;
  *out_radices = 0;
  for (int bits = 0; bits < 64; bits += 4) {
    uint32_t radix = offered[rdna__random_range(random, 0, 5)];
    if (n * radix > most) break;
    n *= radix, *out_radices |= (uint64_t)radix << bits;
  }
  return n;
}

static void *add_pairs(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, int64_t count, uint32_t at) {
  void *x = rdna__case_add(c, RDNA__IN, dtype, count, at);
  for (int64_t i = 0; x && i < count; i++) {
    double v = rdna__random_normal(random);
    if (dtype == RDNA_F64) ((double *)x)[i] = v;
    if (dtype == RDNA_F32) ((float *)x)[i] = (float)v;
  }
  return x;
}

/* Which of the steps around the transform there are is free, as is how values lie. */
RDNA_CASE_MAKER(rdna__fft_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  uint32_t points = dtype == RDNA_F64 ? FFT_POINTS_F64 : FFT_POINTS_F32;
  struct fft_args a = {.scale = 0.5, .x_step = 1, .out_step = 1, .columns = 1};
  a.n = random_radices(random, n % 3 ? 100 : points, &a.radices);
  if (n == 1) a.n = 1, a.radices = 0;
  if (n == 2) a.n = points, a.radices = dtype == RDNA_F64 ? 0x4888 : 0x8888;
  a.whole = a.n;
  uint32_t batch = (uint32_t)rdna__random_range(random, n == 4 ? 0 : 1, n % 3 ? 70 : 3), most = points / a.n;
  if (n % 4 == 3) { /* the first pass of two, or the second */
    a.columns = (uint32_t)rdna__random_range(random, 2, 20), a.whole *= a.columns, batch = batch % 4 + 1;
    a.x_step = a.out_step = a.columns, a.x_column = a.out_column = 1;
    if (n % 8 == 3) a.twiddles = 1;
    if (n % 8 == 7) a.x_step = 1, a.x_column = a.n;
  }
  a.x_count = a.out_count = a.whole;
  a.flags = (uint32_t)rdna__random_range(random, 0, FFT_ACROSS_OUT * 2 - 1);
  if (a.flags & FFT_CHIRP || n % 4 != 2) a.flags &= ~(uint32_t)(FFT_CHIRP | FFT_CHIRP_IN | FFT_CHIRP_OUT);
  if (n % 8 == 6) a.flags |= FFT_CHIRP;
  if (a.flags & (FFT_CHIRP | FFT_CHIRP_IN | FFT_CHIRP_OUT)) {
    a.chirp = a.out_count = (a.whole + 1) / 2;
    if (!(a.flags & FFT_CHIRP)) a.x_count = a.chirp;
  }
  if (a.flags & FFT_REAL_IN) a.flags &= ~(uint32_t)FFT_HALF_IN, a.out_count = a.out_count / 2 + 1;
  if (a.out_count > a.whole) a.out_count = a.whole;
  a.lines = batch * a.columns;
  a.per_group = (uint32_t)rdna__random_range(random, 1, most > FFT_LINES ? FFT_LINES : most);
  int64_t in = a.flags & FFT_REAL_IN ? 1 : 2, out = a.flags & FFT_REAL_OUT ? 1 : 2;
  int64_t halves = a.flags & FFT_HALF_IN ? a.x_count / 2 + 1 : a.x_count;
  bool across = n % 2; /* lines are next to each other */
  a.x_stride = across ? in * batch : in, a.out_stride = across ? out * batch : out;
  for (int d = 0; d < FFT_RANK; d++) a.size[d] = 1;
  a.size[0] = batch ? batch : 1, a.x_outer[0] = across ? in : in * halves,
  a.out_outer[0] = across ? out : out * a.out_count;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 3), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of %u in %u columns, flags %x", batch, a.n, a.columns, a.flags);
  if (!(a.flags & FFT_CHIRP) && !add_pairs(out_case, random, dtype, in * batch * halves, offsetof(struct fft_args, x)))
    return rdna__case_no_memory(out_case);
  if (n % 5 == 4 && !add_pairs(out_case, random, dtype, 2 * (int64_t)a.whole, offsetof(struct fft_args, factor)))
    return rdna__case_no_memory(out_case);
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, out * batch * a.out_count, offsetof(struct fft_args, out)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
