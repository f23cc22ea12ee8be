#include "rdna/op/conv.h"

#include <string.h>

#include "math/check.h"
#include "math/conv/conv_miopen.h"
#include "math/gemm/gemm.h"
#include "rdna/memory.h"

/* Groups with fewer channels of the result than this are done value by value. */
enum { DEPTHWISE_COLUMNS = 4 };

typedef struct operands {
  const char *operator;
  const rdna_tensor *x, *weight, *y;
} operands;

static rdna_status check_description(const char *operator, const rdna_convolution * conv) {
  if (!conv || conv->dims < 1 || conv->dims > 3) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the description has %d dimensions; it must have 1, 2 or 3", operator,
                      conv ? conv->dims : 0);
  }
  for (int d = 0; d < conv->dims; d++) {
    bool small = conv->stride[d] <= INT32_MAX && conv->dilation[d] <= INT32_MAX && conv->before[d] <= INT32_MAX &&
                 conv->after[d] <= INT32_MAX;
    if (conv->stride[d] < 1 || conv->dilation[d] < 1 || conv->before[d] < 0 || conv->after[d] < 0 || !small) {
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: dimension %d has stride %lld, dilation %lld, padding %lld and %lld; stride and dilation "
                        "must be at least 1, padding at least 0, and each fit in 31 bits",
                        operator, d, (long long)conv->stride[d], (long long)conv->dilation[d],
                        (long long)conv->before[d], (long long)conv->after[d]);
    }
  }
  if (conv->groups < 1 || conv->groups > RDNA__GRID_YZ_MAX) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: there are %lld groups; there must be 1 to %d", operator,(long long) conv->groups,
                      (int)RDNA__GRID_YZ_MAX);
  }
  return RDNA_OK;
}

/* Every offset fits in 31 bits and is not negative. */
static rdna_status check_strides(const char *operator, const char * argument, const rdna_tensor *tensor) {
  char text[RDNA__TENSOR_TEXT];
  int64_t last = 0;
  for (int d = 0; d < tensor->rank; d++) {
    int64_t stride = tensor->shape[d] > 1 ? tensor->stride[d] : 0;
    if (stride < 0 || stride > INT32_MAX || tensor->shape[d] > INT32_MAX ||
        (tensor->shape[d] > 1 && (tensor->shape[d] - 1) * stride > INT32_MAX - last)) {
      return rdna__fail(RDNA_UNSUPPORTED,
                        "%s: %s is %s with a stride of %lld in dimension %d; strides must be at least 0, and the whole "
                        "tensor fit in 31 bits",
                        operator, argument, rdna__tensor_text(tensor, text), (long long)stride, d);
    }
    if (tensor->shape[d] > 1) last += (tensor->shape[d] - 1) * stride;
  }
  return RDNA_OK;
}

/* No element twice: sorted by stride, each dimension steps over all of those before it. */
static rdna_status check_written(const char *operator, const char * argument, const rdna_tensor *tensor) {
  char text[RDNA__TENSOR_TEXT];
  int64_t reach = 1;
  bool done[RDNA_MAX_RANK] = {false};
  if (rdna_tensor_count(tensor) == 0) return RDNA_OK;
  for (int step = 0; step < tensor->rank; step++) {
    int next = -1;
    for (int d = 0; d < tensor->rank; d++)
      if (!done[d] && tensor->shape[d] > 1 && (next < 0 || tensor->stride[d] < tensor->stride[next])) next = d;
    if (next < 0) break;
    done[next] = true;
    if (tensor->stride[next] < reach) {
      return rdna__fail(
          RDNA_INVALID_ARGUMENT,
          "%s: %s is %s with a stride of %lld in dimension %d, less than %lld; values would overlap", operator,
          argument, rdna__tensor_text(tensor, text), (long long)tensor->stride[next], next, (long long)reach);
    }
    reach += (tensor->shape[next] - 1) * tensor->stride[next];
  }
  return RDNA_OK;
}

static rdna_status check_shapes(const operands *o, const rdna_convolution *conv) {
  const int64_t *x = o->x->shape, *w = o->weight->shape, *y = o->y->shape;
  if (conv->groups * w[1] != x[1] || w[0] % conv->groups != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: x has %lld channels and weight is (%lld, %lld, ...) with %lld groups; the first must be "
                      "groups times the weight's second size, and groups divide its first",
                      o->operator,(long long) x[1], (long long)w[0], (long long)w[1], (long long)conv->groups);
  }
  if (y[1] != w[0] || y[0] != x[0]) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: y is (%lld, %lld, ...); it must be (%lld, %lld, ...), by x and weight",
                      o->operator,(long long) y[0], (long long)y[1], (long long)x[0], (long long)w[0]);
  }
  for (int d = 0; d < conv->dims; d++) {
    int64_t window = w[2 + d] > 0 ? conv->dilation[d] * (w[2 + d] - 1) + 1 : 0;
    int64_t room = conv->before[d] + x[2 + d] + conv->after[d] - window;
    int64_t want = w[2 + d] > 0 && room >= 0 ? room / conv->stride[d] + 1 : 0;
    if (y[2 + d] != want || w[2 + d] == 0) {
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: spatial size %d of y is %lld; size %lld of x, a window of %lld and the description make "
                        "%lld",
                        o->operator, d, (long long)y[2 + d], (long long)x[2 + d], (long long)w[2 + d], (long long)want);
    }
  }
  return RDNA_OK;
}

static rdna_status check(const operands *o, const rdna_convolution *conv, rdna__conv_mode mode) {
  const char *operator= o->operator;
  const struct {
    const char *name;
    const rdna_tensor *tensor;
  } all[3] = {{"y", o->y}, {"x", o->x}, {"weight", o->weight}};
  RDNA_TRY(check_description(operator, conv));
  for (int i = 0; i < 3; i++) {
    RDNA_TRY(rdna__check_float(operator, all[i].name, all[i].tensor));
    RDNA_TRY(rdna__check_rank(operator, all[i].name, all[i].tensor, conv->dims + 2));
    RDNA_TRY(check_strides(operator, all[i].name, all[i].tensor));
    if (i > 0) RDNA_TRY(rdna__check_same_dtype(operator, all[i].name, all[i].tensor, "y", o->y));
  }
  RDNA_TRY(check_shapes(o, conv));
  int out = (int)mode; /* y, x and weight, as modes are ordered */
  RDNA_TRY(check_written(operator, all[out].name, all[out].tensor));
  for (int i = 0; i < 3; i++)
    if (i != out) RDNA_TRY(rdna__check_apart(operator, all[out].name, all[out].tensor, all[i].name, all[i].tensor));
  return RDNA_OK;
}

static rdna_status check_bias(const operands *o, const rdna_tensor *bias, const char *name, const rdna_tensor *out) {
  if (!bias) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(o->operator, "bias", bias));
  RDNA_TRY(rdna__check_same_dtype(o->operator, "bias", bias, name, out));
  RDNA_TRY(rdna__check_rank(o->operator, "bias", bias, 1));
  RDNA_TRY(rdna__check_size(o->operator, "bias", bias, 0, out->shape[1], "the channels of the result"));
  RDNA_TRY(rdna__check_contiguous(o->operator, "bias", bias));
  return rdna__check_apart(o->operator, name, out, "bias", bias);
}

/* One way to compute a convolution. */
typedef struct implementation {
  const char *kernels[3]; /* f32, f16, bf16; NULL: there is none */
  bool of_weight;         /* the gradient of the weight, else the image's side */
  bool only_runs;         /* see conv_kernels.h */
  int rows, columns;      /* of a tile */
  double share;           /* of the best one's rate, on a large problem */
  uint32_t group_bytes;   /* of shared memory on NVIDIA's GPUs */
} implementation;

#define NAMES(name) {"conv_" #name "_f32", "conv_" #name "_f16", "conv_" #name "_bf16"}
#define MMA_NAMES(name) {NULL, "conv_" #name "_f16", "conv_" #name "_bf16"}
static const implementation implementations[] = {
    {MMA_NAMES(image_large), false, true, 128, 128, 1, GEMM_PIPE_BYTES(128, 128, 3) + CONV_IMAGE_TABLE},
    {MMA_NAMES(image_narrow), false, true, 128, 64, 0.8, GEMM_PIPE_BYTES(128, 64, 4) + CONV_IMAGE_TABLE},
    {{"conv_image_large_f32", NULL, NULL}, false, false, 128, 128, 1, 0},
    {NAMES(image_small), false, false, 64, 64, 0.4, GEMM_PIPE_BYTES(64, 64, 3)},
    {MMA_NAMES(weight_large), true, true, 128, 128, 1, GEMM_PIPE_BYTES(128, 128, 3)},
    {MMA_NAMES(weight_narrow), true, true, 64, 128, 0.8, GEMM_PIPE_BYTES(64, 128, 4)},
    {NAMES(weight_small), true, false, 64, 64, 0.4, GEMM_PIPE_BYTES(64, 64, 3)},
};
#undef NAMES
#undef MMA_NAMES

static int64_t tiles(const implementation *i, const struct conv_args *args) {
  return (int64_t)((args->rows + i->rows - 1) / i->rows) * ((args->columns + i->columns - 1) / i->columns);
}

/* What the kernels ask for that take nothing but runs. */
static bool is_all_runs(const struct conv_args *args, bool of_weight) {
  if (!(args->flags & CONV_IMAGE_RUNS) || ((uintptr_t)args->image | (uintptr_t)args->other) % 16 != 0) return false;
  if (of_weight) return args->flags & CONV_OTHER_ROWS;
  uint32_t window = args->tap.size[0] * args->tap.size[1] * args->tap.size[2];
  return args->flags & (CONV_OTHER_RUNS | CONV_OTHER_ROWS) && args->image_shift >= 0 && window <= CONV_WINDOW_MAX;
}

static bool applies(const implementation *i, rdna_dtype dtype, bool of_weight, const struct conv_args *args,
                    const rdna_device_info *info) {
  if (!i->kernels[dtype] || i->of_weight != of_weight) return false;
  if (i->only_runs && !is_all_runs(args, of_weight)) return false;
  return strcmp(info->driver, "cuda") != 0 || dtype == RDNA_F32 || i->group_bytes <= info->max_group_memory;
}

/* As many parts of k as give every compute unit two tiles, with no fewer than 16 steps in each. With no units one: the
 * host cuts its work itself, and gives the same bits for any number of threads. */
static int parts_for(const implementation *i, const struct conv_args *args, int units) {
  int64_t count = tiles(i, args) * args->groups, parts = (2 * units + count - 1) / count;
  int64_t most = args->k / (16 * CONV_PART_STEP);
  if (!i->of_weight || parts <= 1 || most <= 1) return 1;
  return (int)(parts < most ? parts : most);
}

/* How long the fullest compute unit is busy: see the same of matrix products. */
static double cost(const implementation *i, const struct conv_args *args, int units) {
  int64_t parts = parts_for(i, args, units), count = tiles(i, args) * args->groups * parts;
  if (units == 0) units = 1;
  return (double)((count + units - 1) / units) * i->rows * i->columns / (i->share * (double)parts);
}

static const implementation *choose(rdna_dtype dtype, bool of_weight, const struct conv_args *args,
                                    const rdna_device_info *info, int units) {
  const implementation *best = NULL;
  for (size_t i = 0; i < sizeof implementations / sizeof *implementations; i++) {
    const implementation *one = &implementations[i];
    if (!applies(one, dtype, of_weight, args, info)) continue;
    if (!best || cost(one, args, units) < cost(best, args, units)) best = one;
  }
  return best;
}

static rdna_status launch_values(rdna_stream *stream, const char *operator, const char * name, int64_t values,
                                 int groups, const struct conv_args *args) {
  rdna_grid grid = {0, 1, (uint32_t)groups};
  RDNA_TRY(rdna__check_groups(operator, values, CONV_DEPTHWISE_THREADS, &grid.x));
  return rdna__launch_named(stream, name, grid, args);
}

/* Parts go to scratch memory and are added up from there. */
static rdna_status launch_parts(rdna_stream *stream, const char *operator, const char * kernel, rdna_grid grid,
                                rdna_dtype dtype, struct conv_args *args) {
  static const char *const names[3] = {"conv_weight_sum_f32", "conv_weight_sum_f16", "conv_weight_sum_bf16"};
  rdna_device *device = rdna_stream_device(stream);
  int64_t values = (int64_t)args->rows * args->columns;
  void *sums;
  RDNA_TRY(rdna_memory_alloc_named(device, (size_t)(values * args->groups * args->parts) * sizeof(float),
                                   stream, operator, & sums));
  args->sums = sums;
  rdna_status status = rdna__launch_named(stream, kernel, grid, args);
  if (status == RDNA_OK) status = launch_values(stream, operator, names[dtype], values, args->groups, args);
  rdna_status freed = rdna_memory_free(device, sums);
  return status == RDNA_OK ? freed : status;
}

rdna_status rdna__conv_launch(rdna_stream *stream, const char *operator, rdna__conv_mode mode, rdna_dtype dtype,
                              const struct conv_args *given) {
  static const char *const depthwise[3] = {"conv_depthwise_f32", "conv_depthwise_f16", "conv_depthwise_bf16"};
  struct conv_args args = *given;
  if (mode != RDNA__CONV_WEIGHT && args.columns <= DEPTHWISE_COLUMNS && args.groups > 1) {
    if (((uintptr_t)args.image | (uintptr_t)args.out) % 16 != 0) args.flags &= ~CONV_OCTETS;
    int64_t values = (int64_t)args.rows * args.columns * args.groups / (args.flags & CONV_OCTETS ? 8 : 1);
    return launch_values(stream, operator, depthwise[dtype], values, 1, &args);
  }
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  int units = info->compute_units > 0 && strcmp(info->driver, "host") != 0 ? (int)info->compute_units : 0;
  if ((uintptr_t)args.out % 16 != 0) args.flags &= ~CONV_OUT_RUNS;
  const implementation *best = choose(dtype, mode == RDNA__CONV_WEIGHT, &args, info, units);
  args.parts = parts_for(best, &args, units);
  if (args.groups * (int64_t)args.parts > RDNA__GRID_YZ_MAX) args.parts = 1;
  int64_t steps = ((int64_t)args.k + CONV_PART_STEP - 1) / CONV_PART_STEP;
  args.part_k = (int32_t)((steps + args.parts - 1) / args.parts * CONV_PART_STEP);
  rdna_grid grid = {0, 1, (uint32_t)(args.groups * args.parts)};
  RDNA_TRY(rdna__check_groups(operator, tiles(best, &args), 1, &grid.x));
  const char *kernel = best->kernels[dtype];
  return args.parts > 1 ? launch_parts(stream, operator, kernel, grid, dtype, &args)
                        : rdna__launch_named(stream, kernel, grid, &args);
}

/* Positions, all dimensions but the channels, lie evenly, |*out_step| values apart, and channels side by side. */
static bool is_matrix(const rdna_tensor *t, int64_t *out_step) {
  int64_t next = -1;
  if (t->shape[1] > 1 && t->stride[1] != 1) return false;
  *out_step = t->shape[1];
  for (int d = t->rank - 1; d >= 0; d--) {
    if (d == 1 || t->shape[d] == 1) continue;
    if (next >= 0 && t->stride[d] != next) return false;
    if (next < 0) *out_step = t->stride[d];
    next = t->stride[d] * t->shape[d];
  }
  return true;
}

/* A window of one place that stops everywhere once is a plain product of positions by channels. */
static bool is_product(const operands *o, const rdna_convolution *conv, int64_t *out_x_step, int64_t *out_y_step) {
  for (int d = 0; d < conv->dims; d++)
    if (o->weight->shape[2 + d] != 1 || conv->stride[d] != 1 || conv->before[d] != 0 || conv->after[d] != 0)
      return false;
  const rdna_tensor *w = o->weight;
  return conv->groups == 1 && (w->shape[1] == 1 || w->stride[1] == 1) && is_matrix(o->x, out_x_step) &&
         is_matrix(o->y, out_y_step);
}

static rdna_status run_product(rdna_stream *stream, const operands *o, rdna__conv_mode mode, int64_t x_step,
                               int64_t y_step, const rdna_tensor *bias, rdna_activation activation) {
  bool forward = mode == RDNA__CONV_FORWARD;
  const rdna_tensor *from = forward ? o->x : o->y, *to = forward ? o->y : o->x;
  struct gemm_args args = {
      .a = from->data,
      .b = o->weight->data,
      .bias = bias ? bias->data : NULL,
      .c = to->data,
      .lda = forward ? x_step : y_step,
      .ldb = o->weight->stride[0],
      .ldc = forward ? y_step : x_step,
      .flags = (forward ? GEMM_B_TRANSPOSED : 0) | (activation ? GEMM_MORE : 0),
      .alpha = 1,
      .activation = (uint32_t)activation,
  };
  rdna_dtype types[3] = {from->dtype, from->dtype, from->dtype};
  int64_t positions = rdna_tensor_count(to) / to->shape[1];
  return rdna__gemm_launch(stream, o->operator, types, args, positions, to->shape[1], from->shape[1], 1);
}

static rdna_status run(rdna_stream *stream, const operands *o, const rdna_convolution *conv, rdna__conv_mode mode,
                       const rdna_tensor *bias, rdna_activation activation) {
  const rdna_tensor *out = mode == RDNA__CONV_FORWARD ? o->y : mode == RDNA__CONV_DATA ? o->x : o->weight;
  RDNA_TRY(check(o, conv, mode));
  RDNA_TRY(check_bias(o, bias, mode == RDNA__CONV_FORWARD ? "y" : "x", out));
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the stream is NULL; pass a stream", o->operator);
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  int64_t x_step, y_step;
  if (mode != RDNA__CONV_WEIGHT && is_product(o, conv, &x_step, &y_step))
    return run_product(stream, o, mode, x_step, y_step, bias, activation);
  int64_t positions = 1, places = 1, taps = 1;
  const rdna_tensor *over = mode == RDNA__CONV_DATA ? o->x : o->y;
  for (int d = 0; d < conv->dims + 2; d++) {
    if (d != 1) positions *= over->shape[d];
    if (d != 0) taps *= o->weight->shape[d];
    if (d > 1) places *= o->weight->shape[d];
  }
  if (mode == RDNA__CONV_DATA) taps = places * (o->weight->shape[0] / conv->groups);
  if (positions > INT32_MAX / 2 || taps > INT32_MAX / 2) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %lld positions and %lld taps; each must fit in 30 bits: split the batch",
                      o->operator,(long long) positions, (long long)taps);
  }
  struct conv_args args;
  rdna__conv_args_make(mode, conv, o->x, o->weight, o->y, &args);
  if (bias) args.bias = bias->data;
  args.activation = (uint32_t)activation;
  rdna__conv_call call = {mode, conv, o->x, o->weight, o->y, bias};
  return rdna__conv_run(stream, o->operator, & call, &args);
}

rdna_status rdna_op_conv(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *x,
                         const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *y) {
  operands o = {"conv", x, weight, y};
  return run(stream, &o, conv, RDNA__CONV_FORWARD, bias, RDNA_ACTIVATION_NONE);
}

rdna_status rdna_op_conv_activate(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *x,
                                  const rdna_tensor *weight, const rdna_tensor *bias, rdna_activation activation,
                                  const rdna_tensor *y) {
  operands o = {"conv_activate", x, weight, y};
  RDNA_TRY(rdna__check_activation(o.operator, activation));
  return run(stream, &o, conv, RDNA__CONV_FORWARD, bias, activation);
}

rdna_status rdna_op_conv_backward_data(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *y,
                                       const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *x) {
  operands o = {"conv_backward_data", x, weight, y};
  return run(stream, &o, conv, RDNA__CONV_DATA, bias, RDNA_ACTIVATION_NONE);
}

rdna_status rdna_op_conv_backward_weight(rdna_stream *stream, const rdna_convolution *conv, const rdna_tensor *y,
                                         const rdna_tensor *x, const rdna_tensor *weight) {
  operands o = {"conv_backward_weight", x, weight, y};
  return run(stream, &o, conv, RDNA__CONV_WEIGHT, NULL, RDNA_ACTIVATION_NONE);
}
