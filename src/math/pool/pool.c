#include "rdna/op/pool.h"

#include "base/options.h"
#include "math/common/plan/route.h"
#include "math/common/plan/rows_along.h"
#include "math/common/plan/strided.h"
#include "math/common/plan/volume.h"
#include "math/pool/pool_kernels.h"
#include "rdna/op/reduce.h"

/* |x| is dx in a backward, |out| dout. */
struct call {
  const char *op_name;
  rdna_stream *stream;
  const rdna_pooling *pooling; /* NULL: adaptive */
  const char *x_name, *out_name;
  const rdna_tensor *x, *out, *indices;
  bool average, backward;
};

int64_t rdna_pooling_size(const rdna_pooling *given, int d, int64_t size) {
  rdna_pooling known;
  const rdna_pooling *pooling = &known;
  if (RDNA__OPTIONS("pooling_size", "pooling", given, &known) != RDNA_OK) return 0;
  int64_t stride = pooling->stride[d], room = pooling->pad_before[d] + size + pooling->pad_after[d];
  int64_t left = room - pooling->dilation[d] * (pooling->window[d] - 1) - 1;
  if (left < 0 && !(pooling->ceil && left > -stride)) return 0;
  int64_t count = (left + (pooling->ceil ? stride - 1 : 0)) / stride + 1;
  if (pooling->ceil && (count - 1) * stride >= size + pooling->pad_before[d]) count--;
  return count;
}

static rdna_status check_description(const struct call *c) {
  const rdna_pooling *p = c->pooling;
  const int64_t most = 1 << 28; /* so that sums of a few stay in 31 bits */
  if (p->spatial_dims < 1 || p->spatial_dims > 3) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: pooling has spatial_dims %d; it must be 1, 2 or 3", c->op_name,
                      p->spatial_dims);
  }
  for (int d = 0; d < p->spatial_dims; d++) {
    if (p->window[d] < 1 || p->stride[d] < 1 || p->dilation[d] < 1 || p->pad_before[d] < 0 || p->pad_after[d] < 0 ||
        p->window[d] > most || p->stride[d] > most || p->dilation[d] > most || p->pad_before[d] > most ||
        p->pad_after[d] > most || p->window[d] * p->dilation[d] > most) {
      return rdna__fail(
          RDNA_INVALID_ARGUMENT,
          "%s: dimension %d has window %lld, stride %lld, dilation %lld, padding %lld and %lld; the first "
          "three must be at least 1, padding at least 0, and each fit in 28 bits",
          c->op_name, d, (long long)p->window[d], (long long)p->stride[d], (long long)p->dilation[d],
          (long long)p->pad_before[d], (long long)p->pad_after[d]);
    }
    if (c->average && p->dilation[d] != 1) {
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: dimension %d has dilation %lld; it must be 1 for an average",
                        c->op_name, d, (long long)p->dilation[d]);
    }
  }
  if (c->average && (p->divisor < INT32_MIN || p->divisor > INT32_MAX)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the divisor is %lld; it must fit in 32 bits", c->op_name,
                      (long long)p->divisor);
  }
  return RDNA_OK;
}

/* What is spatial agrees, and small enough for the kernels' 32 bits. */
static rdna_status check_spatial(const struct call *c) {
  char text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
  for (int d = 0; d < c->x->rank - 2; d++) {
    int64_t in = c->x->shape[d + 2], out = c->out->shape[d + 2];
    if (!c->pooling) {
      if (in == 0 && out > 0 && rdna_tensor_count(c->out) > 0) {
        return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; spatial sizes must not be 0 for %s %s", c->op_name,
                          c->x_name, rdna__tensor_text(c->x, text), c->out_name, rdna__tensor_text(c->out, out_text));
      }
      if ((in + 1) * (out + 1) > UINT32_MAX) {
        return rdna__fail(RDNA_UNSUPPORTED, "%s: %lld windows over %lld positions; their product must be below 2^32",
                          c->op_name, (long long)out, (long long)in);
      }
      continue;
    }
    int64_t want = rdna_pooling_size(c->pooling, d, in);
    if (want < 1 || out != want) {
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: %s is %s and %s is %s; the description makes %lld windows of size %lld, at least 1",
                        c->op_name, c->x_name, rdna__tensor_text(c->x, text), c->out_name,
                        rdna__tensor_text(c->out, out_text), (long long)want, (long long)in);
    }
    if (in > 1 << 30) {
      return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; spatial sizes must be at most 2^30", c->op_name, c->x_name,
                        rdna__tensor_text(c->x, text));
    }
  }
  return RDNA_OK;
}

static rdna_status check_indices(const struct call *c) {
  RDNA_TRY(rdna__check_tensor(c->op_name, "indices", c->indices));
  RDNA_TRY(rdna__check_dtype(c->op_name, "indices", c->indices, RDNA_I64));
  RDNA_TRY(rdna__check_same_shape(c->op_name, "indices", c->indices, c->out_name, c->out));
  if (c->backward) return RDNA_OK;
  RDNA_TRY(rdna__check_written(c->op_name, "indices", c->indices));
  return rdna__check_apart(c->op_name, "indices", c->indices, c->x_name, c->x);
}

static rdna_status check(const struct call *c) {
  RDNA_TRY(rdna__check_stream(c->op_name, c->stream));
  if (c->pooling) RDNA_TRY(check_description(c));
  int dims = c->pooling ? c->pooling->spatial_dims : 0;
  RDNA_TRY(rdna__check_volume(c->op_name, c->x_name, c->x, dims));
  RDNA_TRY(rdna__check_volume(c->op_name, c->out_name, c->out, dims));
  RDNA_TRY(rdna__check_same_dtype(c->op_name, c->out_name, c->out, c->x_name, c->x));
  RDNA_TRY(rdna__check_same_planes(c->op_name, c->out_name, c->out, c->x_name, c->x));
  RDNA_TRY(check_spatial(c));
  if (c->indices || (c->backward && !c->average)) RDNA_TRY(check_indices(c));
  const rdna_tensor *written = c->backward ? c->x : c->out, *read = c->backward ? c->out : c->x;
  const char *written_name = c->backward ? c->x_name : c->out_name, *read_name = c->backward ? c->out_name : c->x_name;
  RDNA_TRY(rdna__check_written(c->op_name, written_name, written));
  RDNA_TRY(rdna__check_apart(c->op_name, written_name, written, read_name, read));
  return c->indices ? rdna__check_apart(c->op_name, written_name, written, "indices", c->indices) : RDNA_OK;
}

static void set_axes(const struct call *c, struct pool_axis axis[3]) {
  int32_t in[3], out[3];
  rdna__volume_sizes(c->x, in);
  rdna__volume_sizes(c->out, out);
  for (int d = 0; d < 3; d++) {
    int from = d + c->x->rank - 5;
    axis[d] = (struct pool_axis){.in = in[d], .out = out[d], .window = 1, .stride = 1, .dilation = 1};
    if (from < 0) continue;
    axis[d].window = c->pooling ? (int32_t)c->pooling->window[from] : 0;
    if (!c->pooling) continue;
    axis[d].stride = (int32_t)c->pooling->stride[from], axis[d].dilation = (int32_t)c->pooling->dilation[from];
    axis[d].pad_before = (int32_t)c->pooling->pad_before[from],
    axis[d].pad_after = (int32_t)c->pooling->pad_after[from];
  }
}

static bool at_multiple(const rdna_tensor *t, uintptr_t bytes) { return (uintptr_t)t->data % bytes == 0; }

struct problem {
  const struct call *call;
  const struct pool_axis *axis;
};

/* Whether max_pool_strip does this; see struct pool_strip_args. */
static bool is_strips(const rdna__route *route, const void *problem) {
  const struct call *c = ((const struct problem *)problem)->call;
  const struct pool_axis *axis = ((const struct problem *)problem)->axis;
  const struct pool_axis *y = &axis[1], *x = &axis[2];
  int64_t count = rdna_tensor_count(c->out);
  return !c->average && !c->backward && c->pooling && c->x->dtype != RDNA_F64 && axis[0].in == 1 && axis[0].out == 1 &&
         count > 0 && count <= INT32_MAX && (x->window == 3 || x->window == 2) && x->pad_before == x->window - 2 &&
         y->window == x->window && x->stride == 2 && y->stride == 2 && x->dilation == 1 && y->dilation == 1 &&
         x->in == 2 * x->out && x->in % (c->x->dtype == RDNA_F32 ? 4 : 8) == 0 && y->pad_before < y->window &&
         2 * (y->out - 1) - y->pad_before < y->in && rdna__is_contiguous(c->x) && rdna__is_contiguous(c->out) &&
         at_multiple(c->x, 16) && at_multiple(c->out, 8) &&
         (!c->indices || (rdna__is_contiguous(c->indices) && at_multiple(c->indices, 16)));
}

static bool is_max(const rdna__route *route, const void *problem) {
  const struct call *c = ((const struct problem *)problem)->call;
  return !c->average && !c->backward;
}
static bool is_max_backward(const rdna__route *route, const void *problem) {
  return !((const struct problem *)problem)->call->average;
}
static bool is_average(const rdna__route *route, const void *problem) {
  return !((const struct problem *)problem)->call->backward;
}

enum { STRIPS, MAX, MAX_BACKWARD, AVERAGE, AVERAGE_BACKWARD };
static const rdna__route routes[] = {
    [STRIPS] = {.name = "strips",
                .kernels = {"max_pool_strip_{float}"},
                .when = "windows of 3 x 3 or 2 x 2 by 2 over dense images whose lines are aligned to 16 bytes",
                .applies = is_strips},
    [MAX] = {.name = "max", .kernels = {"max_pool_{real}"}, .when = "all others", .applies = is_max},
    [MAX_BACKWARD] = {.name = "max backward",
                      .kernels = {"max_pool_backward_{real}"},
                      .when = "the gradient",
                      .applies = is_max_backward},
    [AVERAGE] = {.name = "average",
                 .kernels = {"average_pool_{real}"},
                 .when = "averages; of a whole image by reduce",
                 .applies = is_average},
    [AVERAGE_BACKWARD] = {.name = "average backward",
                          .kernels = {"average_pool_backward_{real}"},
                          .when = "their gradient"},
};
RDNA_ROUTES(rdna__pool_routes, "max_pool, average_pool, adaptive ones and their gradients", routes)

static rdna_status launch(const struct call *c, const rdna__route *route, const struct volume_order *order,
                          const void *args) {
  char kernel[RDNA__ROUTE_NAME];
  const char *type = rdna_dtype_name(c->x->dtype);
  return rdna__volume_launch(c->stream, rdna__route_kernel(kernel, route->kernels[0], &type), order, args);
}

static rdna_status run_strips(const struct call *c, const struct pool_axis axis[3]) {
  struct pool_strip_args a = {.x = c->x->data,
                              .out = c->out->data,
                              .indices = c->indices ? c->indices->data : NULL,
                              .in_h = axis[1].in,
                              .in_w = axis[2].in,
                              .window = axis[1].window,
                              .pad_before = axis[1].pad_before};
  int64_t strips = axis[2].in / (c->x->dtype == RDNA_F32 ? 4 : 8), planes = c->x->shape[0] * c->x->shape[1];
  strided_set_size(&a.shape, 0, (uint32_t)strips);
  strided_set_size(&a.shape, 1, (uint32_t)axis[1].out);
  strided_set_size(&a.shape, 2, (uint32_t)planes);
  a.shape.rank = 3, a.shape.count = (uint32_t)(strips * axis[1].out * planes);
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(c->op_name, a.shape.count, POOL_THREADS, &grid.x));
  return RDNA__ROUTE_LAUNCH(c->stream, &routes[STRIPS], 0, grid, &a, rdna_dtype_name(c->x->dtype));
}

static rdna_status run(const struct call *c) {
  RDNA_TRY(check(c));
  struct volume indices = c->indices ? rdna__volume_of(c->indices) : (struct volume){0};
  int32_t divisor = c->average && c->pooling ? (int32_t)c->pooling->divisor : 0;
  uint32_t padding = c->average && c->pooling && c->pooling->count_padding;
  if (c->backward) {
    struct pool_backward_args a = {.dout = rdna__volume_of(c->out),
                                   .dx = rdna__volume_of(c->x),
                                   .indices = indices,
                                   .divisor = divisor,
                                   .padding = padding,
                                   .channels = (uint32_t)c->x->shape[1]};
    const rdna_tensor *tensors[] = {c->x, c->out, c->indices};
    RDNA_TRY(rdna__volume_order(c->op_name, tensors, c->indices ? 3 : 2, POOL_BLOCK, &a.order));
    set_axes(c, a.axis);
    return launch(c, rdna__route_choose(&rdna__pool_routes, &(struct problem){c, a.axis}), &a.order, &a);
  }
  struct pool_args a = {.x = rdna__volume_of(c->x),
                        .out = rdna__volume_of(c->out),
                        .indices = indices,
                        .divisor = divisor,
                        .padding = padding,
                        .channels = (uint32_t)c->x->shape[1]};
  set_axes(c, a.axis);
  const rdna__route *route = rdna__route_choose(&rdna__pool_routes, &(struct problem){c, a.axis});
  if (route == &routes[STRIPS]) return run_strips(c, a.axis);
  const rdna_tensor *tensors[] = {c->out, c->x, c->indices};
  RDNA_TRY(rdna__volume_order(c->op_name, tensors, c->indices ? 3 : 2, POOL_BLOCK, &a.order));
  return launch(c, route, &a.order, &a);
}

static rdna_status run_described(struct call c) {
  rdna_pooling known;
  RDNA_TRY(RDNA__OPTIONS(c.op_name, "pooling", c.pooling, &known));
  c.pooling = &known;
  return run(&c);
}

rdna_status rdna_op_max_pool(rdna_stream *stream, const rdna_pooling *pooling, const rdna_tensor *x,
                             const rdna_tensor *out, const rdna_tensor *indices) {
  return run_described((struct call){"max_pool", stream, pooling, "x", "out", x, out, indices, false, false});
}

rdna_status rdna_op_max_pool_backward(rdna_stream *stream, const rdna_pooling *pooling, const rdna_tensor *dout,
                                      const rdna_tensor *indices, const rdna_tensor *dx) {
  return run_described(
      (struct call){"max_pool_backward", stream, pooling, "dx", "dout", dx, dout, indices, false, true});
}

rdna_status rdna_op_average_pool(rdna_stream *stream, const rdna_pooling *pooling, const rdna_tensor *x,
                                 const rdna_tensor *out) {
  return run_described((struct call){"average_pool", stream, pooling, "x", "out", x, out, NULL, true, false});
}

rdna_status rdna_op_average_pool_backward(rdna_stream *stream, const rdna_pooling *pooling, const rdna_tensor *dout,
                                          const rdna_tensor *dx) {
  return run_described(
      (struct call){"average_pool_backward", stream, pooling, "dx", "dout", dx, dout, NULL, true, true});
}

rdna_status rdna_op_adaptive_max_pool(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out,
                                      const rdna_tensor *indices) {
  const struct call c = {"adaptive_max_pool", stream, NULL, "x", "out", x, out, indices, false, false};
  return run(&c);
}

rdna_status rdna_op_adaptive_max_pool_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *indices,
                                               const rdna_tensor *dx) {
  const struct call c = {"adaptive_max_pool_backward", stream, NULL, "dx", "dout", dx, dout, indices, false, true};
  return run(&c);
}

rdna_status rdna_op_adaptive_average_pool(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  const struct call c = {"adaptive_average_pool", stream, NULL, "x", "out", x, out, NULL, true, false};
  RDNA_TRY(check(&c));
  bool whole = rdna_tensor_count(out) > 0;
  int64_t stride = 1;
  for (int d = out->rank - 1; d >= 0; d--) {
    whole = whole && (d < 2 ? out->shape[d] == 1 || out->stride[d] == stride : out->shape[d] == 1);
    stride *= out->shape[d];
  }
  /* The mean of all that is spatial: one thread a window would be too few. */
  if (whole) return rdna_op_reduce(stream, RDNA_REDUCTION_MEAN, x, ((1u << x->rank) - 1) & ~3u, 0, out);
  return run(&c);
}

rdna_status rdna_op_adaptive_average_pool_backward(rdna_stream *stream, const rdna_tensor *dout,
                                                   const rdna_tensor *dx) {
  const struct call c = {"adaptive_average_pool_backward", stream, NULL, "dx", "dout", dx, dout, NULL, true, true};
  return run(&c);
}
