#include <stdio.h>

#include "math/common/case/volume.h"
#include "math/upsample/upsample.h"

RDNA_CASE_MAKER(rdna__upsample_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  bool backward = strstr(kernel->name, "backward"), last = n % 2;
  struct upsample_args args = {.kind = n % 3 ? UPSAMPLE_NEAREST : UPSAMPLE_NEAREST_EXACT, .dims = 1 + (uint32_t)n % 3};
  if (strstr(kernel->name, "linear")) args.kind = UPSAMPLE_LINEAR;
  if (strstr(kernel->name, "cubic")) args.kind = UPSAMPLE_CUBIC, args.dims = 2;
  args.align_corners = args.kind >= UPSAMPLE_LINEAR && n % 4 == 3;
  rdna_upsample options = {RDNA_UPSAMPLE_INIT, (rdna_upsample_mode)args.kind, args.align_corners, {0}};
  int64_t samples = n == 1 ? 0 : rdna__random_range(random, 1, 2);
  int64_t channels = n == 2 ? 0 : n % 5 < 3 ? 8 * rdna__random_range(random, 1, 2) : rdna__random_range(random, 1, 11);
  int32_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  for (int d = 0; d < 3; d++) {
    if (d >= 3 - (int)args.dims) {
      in[d] = (int32_t)rdna__random_range(random, 1, args.dims == 3 ? 5 : 9);
      out[d] = n % 7 == 5 ? 2 * in[d] : (int32_t)rdna__random_range(random, 1, args.dims == 3 ? 9 : 21);
    }
    double factor = n % 6 == 4 ? (double)out[d] / (double)in[d] * (0.9 + 0.2 * rdna__random_unit(random)) : 0;
    args.axis[d] = rdna__upsample_axis(&options, d < 3 - (int)args.dims ? 0 : factor, in[d], out[d]);
  }
  rdna_tensor x = volume_case_tensor(dtype, samples, channels, in, n % 8 == 6 ? !last : last);
  rdna_tensor to = volume_case_tensor(dtype, samples, channels, out, last);
  const rdna_tensor *tensors[] = {backward ? &x : &to, backward ? &to : &x};
  args.x = volume_case_of(&x), args.out = volume_case_of(&to), args.channels = (uint32_t)channels;
  RDNA_TRY(rdna__volume_order("case", tensors, 2, 1, &args.order));
  volume_case_block(random, channels, UPSAMPLE_BLOCK, &args.order);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(args.order.shape.count + UPSAMPLE_THREADS - 1) / UPSAMPLE_THREADS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld, %lld, %d, %d, %d) to (%d, %d, %d)%s%s%s",
           (long long)samples, (long long)channels, in[0], in[1], in[2], out[0], out[1], out[2],
           last ? " channels last" : "", args.order.vector ? " vectors" : "", args.align_corners ? " corners" : "");
  size_t x_at = offsetof(struct upsample_args, x), out_at = offsetof(struct upsample_args, out);
  void *data = volume_case_add(out_case, RDNA__IN, tensors[1], backward ? out_at : x_at);
  if (!data) return rdna__case_no_memory(out_case);
  case_fill_doubles(random, dtype, data, rdna_tensor_count(tensors[1]), 0);
  double top = case_top(dtype, data, rdna_tensor_count(tensors[1]));
  if (n % 9 == 8 && rdna_tensor_count(tensors[1]) > 0) store_double(dtype, data, 0, NAN);
  if (!volume_case_add(out_case, RDNA__OUT, tensors[0], backward ? x_at : out_at))
    return rdna__case_no_memory(out_case);
  /* bound of the terms in a sum: a gradient sums at most every output */
  double terms = backward ? (double)(out[0] * out[1] * out[2]) : 16;
  bool exact = args.kind <= UPSAMPLE_NEAREST_EXACT && !backward;
  rdna__case_tolerance(out_case, exact ? 0 : 8 * terms * case_unit(dtype) * top, exact ? 0 : case_step(dtype));
  return RDNA_OK;
}
