/* The gradient of an image of few channels from a product: what each of its values adds up; see spread_kernels.h. */
#include "math/common/device/values.h"
#include "math/conv/spread_kernels.h"

template <typename type>
RDNA_DEVICE void spread(const struct conv_args &args) {
  int32_t position = (int32_t)(group_id_x() * SPREAD_THREADS + thread_id()), channel = (int32_t)group_id_y(), at[4];
  if (position >= args.rows) return;
  conv_digits(&args.position, position, at);
  float sum = spread_sum(&args, at, channel);
  if (args.bias) sum += type::load(args.bias, (uint64_t)channel);
  int64_t to = (int64_t)channel * args.out_channel;
#pragma unroll
  for (int d = 0; d < 4; d++) to += (int64_t)at[d] * args.out_digits[d];
  type::store(args.out, (uint64_t)to, sum);
}

RDNA_KERNEL(SPREAD_THREADS) conv_spread_f32(struct conv_args args) { spread<f32>(args); }
RDNA_KERNEL(SPREAD_THREADS) conv_spread_f16(struct conv_args args) { spread<f16>(args); }
RDNA_KERNEL(SPREAD_THREADS) conv_spread_bf16(struct conv_args args) { spread<bf16>(args); }
