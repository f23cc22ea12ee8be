#include <stdio.h>

#include "math/common/case/volume.h"
#include "math/pool/pool_kernels.h"

struct sizes {
  int64_t n, channels;
  int32_t in[3], out[3];
  struct pool_axis axis[3];
};

/* An axis that has at least one window. */
static struct pool_axis pick_axis(rdna__random *random, bool adaptive, bool dilated, bool wide) {
  struct pool_axis a = {.stride = 1, .dilation = 1};
  a.in = (int32_t)rdna__random_range(random, 1, wide ? 17 : 7);
  if (adaptive) {
    a.out = (int32_t)rdna__random_range(random, 1, a.in + 2);
    return a;
  }
  a.window = (int32_t)rdna__random_range(random, 1, 4), a.stride = (int32_t)rdna__random_range(random, 1, 3);
  a.pad_before = (int32_t)rdna__random_range(random, 0, a.window / 2);
  a.pad_after = (int32_t)rdna__random_range(random, 0, a.window / 2);
  if (dilated) a.dilation = (int32_t)rdna__random_range(random, 1, 3);
  int32_t left = a.in + a.pad_before + a.pad_after - a.dilation * (a.window - 1) - 1;
  if (left < 0) a.window = 1, a.pad_before = a.pad_after = 0, left = a.in - 1;
  a.out = left / a.stride + 1;
  /* a last window that is cut off */
  if (left % a.stride != 0 && a.out * a.stride < a.in + a.pad_before && rdna__random_below(random, 2)) a.out++;
  return a;
}

static struct sizes pick_sizes(rdna__random *random, int n, bool dilated) {
  struct sizes s = {.n = n == 1 ? 0 : rdna__random_range(random, 1, 3)};
  s.channels = n == 2 ? 0 : n % 3 ? 8 * rdna__random_range(random, 1, 3) : rdna__random_range(random, 1, 9);
  for (int d = 0; d < 3; d++) {
    s.axis[d] = (struct pool_axis){.in = 1, .out = 1, .window = 1, .stride = 1, .dilation = 1};
    if (d >= 2 - n % 3) s.axis[d] = pick_axis(random, n % 4 == 3, dilated, d == 2);
    s.in[d] = s.axis[d].in, s.out[d] = s.axis[d].out;
  }
  return s;
}

static rdna_status finish(rdna__kernel_case *c, const struct sizes *s, const struct volume_order *order) {
  c->grid = (rdna_grid){(order->shape.count + POOL_THREADS - 1) / POOL_THREADS, 1, 1};
  snprintf(c->label, sizeof c->label, "(%lld, %lld, %d, %d, %d) to (%d, %d, %d)%s%s", (long long)s->n,
           (long long)s->channels, s->in[0], s->in[1], s->in[2], s->out[0], s->out[1], s->out[2],
           order->channels_last ? " channels last" : "", order->vector ? " vectors" : "");
  return RDNA_OK;
}

/* Equals, infinities and, for |nan|, those. */
static void add_special(rdna__random *random, rdna_dtype dtype, void *data, int64_t count, bool nan) {
  static const double special[] = {1, 1, 1, INFINITY, -INFINITY, NAN};
  for (int64_t i = 0; i < count / 8; i++) {
    store_double(dtype, data, (int64_t)rdna__random_below(random, (uint64_t)count),
                 special[rdna__random_below(random, nan ? 6 : 5)]);
  }
}

RDNA_CASE_MAKER(rdna__pool_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  bool largest = strstr(kernel->name, "max"), last = n % 2, indexed = largest && n % 5 != 4;
  struct sizes s = pick_sizes(random, n, largest);
  struct pool_args args = {.padding = n % 4 == 1, .divisor = !largest && n % 6 == 5 ? 3 : 0};
  rdna_tensor x = volume_case_tensor(dtype, s.n, s.channels, s.in, n % 8 == 6 ? !last : last);
  rdna_tensor out = volume_case_tensor(dtype, s.n, s.channels, s.out, last);
  rdna_tensor indices = volume_case_tensor(RDNA_I64, s.n, s.channels, s.out, n % 8 == 5 ? !last : last);
  const rdna_tensor *tensors[] = {&out, &x, &indices};
  RDNA_TRY(rdna__volume_order("case", tensors, indexed ? 3 : 2, 1, &args.order));
  args.channels = (uint32_t)s.channels;
  volume_case_block(random, s.channels, POOL_BLOCK, &args.order);
  args.x = volume_case_of(&x), args.out = volume_case_of(&out), args.indices = volume_case_of(&indices);
  memcpy(args.axis, s.axis, sizeof args.axis);
  memcpy(out_case->args, &args, sizeof args);
  void *data = volume_case_add(out_case, RDNA__IN, &x, offsetof(struct pool_args, x));
  if (!data) return rdna__case_no_memory(out_case);
  int64_t count = rdna_tensor_count(&x);
  case_fill_doubles(random, dtype, data, count, 0);
  if (largest) add_special(random, dtype, data, count, n % 3 == 0);
  if (!volume_case_add(out_case, RDNA__OUT, &out, offsetof(struct pool_args, out)))
    return rdna__case_no_memory(out_case);
  if (!largest) rdna__case_tolerance(out_case, 256 * case_unit(dtype) * case_top(dtype, data, count), case_step(dtype));
  if (indexed && !volume_case_add(out_case, RDNA__OUT, &indices, offsetof(struct pool_args, indices)))
    return rdna__case_no_memory(out_case);
  return finish(out_case, &s, &args.order);
}

RDNA_CASE_MAKER(rdna__pool_strip_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  int32_t in_16 = dtype == RDNA_F32 ? 4 : 8, strips = (int32_t)rdna__random_range(random, 1, n % 4 ? 5 : 70);
  uint32_t planes = n == 1 ? 0 : (uint32_t)rdna__random_range(random, 1, 5);
  struct pool_strip_args args = {.window = n % 2 ? 2 : 3, .in_w = strips * in_16};
  args.in_h = (int32_t)rdna__random_range(random, 1, 11);
  args.pad_before = (int32_t)rdna__random_range(random, 0, args.window - 1);
  int32_t most = (args.in_h + args.pad_before + 1) / 2, out_h = (int32_t)rdna__random_range(random, 1, most);
  strided_set_size(&args.shape, 0, (uint32_t)strips);
  strided_set_size(&args.shape, 1, (uint32_t)out_h);
  strided_set_size(&args.shape, 2, planes > 0 ? planes : 1);
  args.shape.rank = 3, args.shape.count = (uint32_t)(strips * out_h) * planes;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(args.shape.count + POOL_THREADS - 1) / POOL_THREADS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%u, %d, %d) by %d, %d before", planes, args.in_h, args.in_w,
           args.window, args.pad_before);
  int64_t in = (int64_t)planes * args.in_h * args.in_w, out = (int64_t)planes * out_h * (args.in_w / 2);
  void *data = rdna__case_add(out_case, RDNA__IN, dtype, in, offsetof(struct pool_strip_args, x));
  if (!data) return rdna__case_no_memory(out_case);
  case_fill_doubles(random, dtype, data, in, 0);
  add_special(random, dtype, data, in, n % 3 == 0);
  bool there = rdna__case_add(out_case, RDNA__OUT, dtype, out, offsetof(struct pool_strip_args, out));
  if (there && n % 5 != 4)
    there = rdna__case_add(out_case, RDNA__OUT, RDNA_I64, out, offsetof(struct pool_strip_args, indices));
  return there ? RDNA_OK : rdna__case_no_memory(out_case);
}

/* Any position in each window. */
static void fill_indices(rdna__random *random, const struct sizes *s, const struct volume *v, int64_t *indices) {
  for (int32_t n = 0; n < s->n; n++) {
    for (int32_t c = 0; c < s->channels; c++) {
      for (int32_t o = 0; o < s->out[0] * s->out[1] * s->out[2]; o++) {
        int32_t place[3] = {o / (s->out[1] * s->out[2]), o / s->out[2] % s->out[1], o % s->out[2]};
        int64_t number = 0;
        for (int d = 0; d < 3; d++) {
          struct pool_window w = pool_window_at(&s->axis[d], place[d]);
          int32_t count = (w.end - w.begin + s->axis[d].dilation - 1) / s->axis[d].dilation;
          int64_t pick = count > 0 ? (int64_t)rdna__random_below(random, (uint64_t)count) : 0;
          number = number * s->in[d] + w.begin + pick * s->axis[d].dilation;
        }
        indices[volume_channel(v, n, (uint32_t)c) + volume_offset(v, place[0], place[1], place[2])] = number;
      }
    }
  }
}

RDNA_CASE_MAKER(rdna__pool_backward_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  bool largest = strstr(kernel->name, "max"), last = n % 2;
  struct sizes s = pick_sizes(random, n, largest);
  struct pool_backward_args args = {.padding = n % 4 == 1, .divisor = !largest && n % 6 == 5 ? 3 : 0};
  rdna_tensor dx = volume_case_tensor(dtype, s.n, s.channels, s.in, last);
  rdna_tensor dout = volume_case_tensor(dtype, s.n, s.channels, s.out, n % 8 == 6 ? !last : last);
  rdna_tensor indices = volume_case_tensor(RDNA_I64, s.n, s.channels, s.out, last);
  const rdna_tensor *tensors[] = {&dx, &dout, &indices};
  RDNA_TRY(rdna__volume_order("case", tensors, largest ? 3 : 2, 1, &args.order));
  args.channels = (uint32_t)s.channels;
  volume_case_block(random, s.channels, POOL_BLOCK, &args.order);
  args.dx = volume_case_of(&dx), args.dout = volume_case_of(&dout), args.indices = volume_case_of(&indices);
  memcpy(args.axis, s.axis, sizeof args.axis);
  memcpy(out_case->args, &args, sizeof args);
  void *data = volume_case_add(out_case, RDNA__IN, &dout, offsetof(struct pool_backward_args, dout));
  if (!data) return rdna__case_no_memory(out_case);
  case_fill_doubles(random, dtype, data, rdna_tensor_count(&dout), 0);
  double top = case_top(dtype, data, rdna_tensor_count(&dout));
  if (largest) {
    void *numbers = volume_case_add(out_case, RDNA__IN, &indices, offsetof(struct pool_backward_args, indices));
    if (!numbers) return rdna__case_no_memory(out_case);
    fill_indices(random, &s, &args.indices, numbers);
  }
  if (!volume_case_add(out_case, RDNA__OUT, &dx, offsetof(struct pool_backward_args, dx)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, 256 * case_unit(dtype) * top, case_step(dtype));
  return finish(out_case, &s, &args.order);
}
