/* Convolutions by our kernels: which of them, in how many parts. The gradient of the image with a stride is done in
 * phases: the positions x with the same x mod stride meet the same few taps of the window, each the next value of y, so
 * that they are a convolution of their own without a stride, and the zeros between positions are never multiplied. */
#include <string.h>

#include "math/common/plan/check.h"
#include "math/common/plan/scratch.h"
#include "math/conv/conv.h"
#include "math/gemm/gemm.h"
#include "rdna/op/movement.h"

/* Groups with fewer channels of the result than this are done value by value. */
enum { DEPTHWISE_COLUMNS = 4 };

/* One way to compute a convolution. */
typedef struct implementation {
  const char *kernels[3]; /* f32, f16, bf16; NULL: there is none */
  bool of_weight;         /* the gradient of the weight, else the image's side */
  bool only_runs;         /* see conv_kernels.h */
  int rows, columns;      /* of a tile */
  int resident;           /* groups that a compute unit has at once */
  double share;           /* of the best one's rate, on a large problem */
  double alone;           /* how little a unit loses with a single group: 0 nothing but what the others would do */
  uint32_t group_bytes;   /* of shared memory on NVIDIA's GPUs */
} implementation;

/* The shares are an H200's. */
#define NAMES(name) {"conv_" #name "_f32", "conv_" #name "_f16", "conv_" #name "_bf16"}
#define MMA_NAMES(name) {NULL, "conv_" #name "_f16", "conv_" #name "_bf16"}
static const implementation implementations[] = {
    {MMA_NAMES(image_large), false, true, 128, 128, 2, 1, 0.2, GEMM_PIPE_BYTES(128, 128, 3) + CONV_IMAGE_TABLE},
    {MMA_NAMES(image_narrow), false, true, 128, 64, 3, 0.83, 0.2, GEMM_PIPE_BYTES(128, 64, 3) + CONV_IMAGE_TABLE},
    {{"conv_image_large_f32", NULL, NULL}, false, false, 128, 128, 2, 1, 0.2, 0},
    {NAMES(image_small), false, false, 64, 64, 4, 0.4, 0.2, GEMM_PIPE_BYTES(64, 64, 3)},
    {MMA_NAMES(weight_large), true, true, 128, 128, 2, 0.85, 0.4, GEMM_PIPE_BYTES(128, 128, 3) + CONV_WEIGHT_TABLE(3)},
    {MMA_NAMES(weight_narrow), true, true, 64, 128, 3, 0.65, 0.4, GEMM_PIPE_BYTES(64, 128, 3) + CONV_WEIGHT_TABLE(3)},
    {{"conv_weight_large_f32", NULL, NULL}, true, true, 128, 128, 2, 1, 0.2, 0},
    {NAMES(weight_small), true, false, 64, 64, 4, 0.4, 0.2, GEMM_PIPE_BYTES(64, 64, 3)},
};
#undef NAMES
#undef MMA_NAMES

static int64_t tiles(const implementation *i, const struct conv_args *args) {
  return rdna__divide_up(args->rows, i->rows) * rdna__divide_up(args->columns, i->columns);
}

/* What the kernels ask for that take nothing but runs. */
static bool is_all_runs(const struct conv_args *args, bool of_weight) {
  if (!(args->flags & CONV_IMAGE_RUNS) || ((uintptr_t)args->image | (uintptr_t)args->other) % 16 != 0) return false;
  uint32_t window = args->tap.size[0] * args->tap.size[1] * args->tap.size[2];
  if (window > CONV_WINDOW_MAX) return false;
  return args->flags & (of_weight ? CONV_OTHER_ROWS : CONV_OTHER_RUNS | CONV_OTHER_ROWS);
}

static bool applies(const implementation *i, rdna_dtype dtype, bool of_weight, const struct conv_args *args,
                    const rdna_device_info *info) {
  if (!i->kernels[dtype] || i->of_weight != of_weight) return false;
  if (i->only_runs && !is_all_runs(args, of_weight)) return false;
  return strcmp(info->driver, "cuda") != 0 || dtype == RDNA_F32 || i->group_bytes <= info->max_group_memory;
}

/* How long the fullest compute unit is busy, in its cycles; |units| is 0 on the host, which cuts its work itself, and
 * gives the same bits for any number of threads. Groups that begin together end together, and their units are given new
 * ones before others are: all units work as long as full ones, unless all groups are there at once. A tile's beginning
 * and end take as long as some values of k; sums of parts are written and read, and another kernel is launched. */
static double cost(const implementation *i, rdna_dtype dtype, const struct conv_args *args, int units, int parts) {
  int64_t count = tiles(i, args) * args->groups * parts;
  bool is_float = dtype == RDNA_F32;
  double share = is_float && i->share < 1 ? 0.77 : i->share, rate = share * (is_float ? 92 : 826);
  double ends = is_float ? 32 : 220, launch = 15000, tiles_long;
  if (units == 0) units = 1;
  int64_t slots = (int64_t)units * i->resident, most = rdna__divide_up(count, units);
  if (count > slots)
    tiles_long = (double)(rdna__divide_up(count, slots) * i->resident);
  else
    tiles_long = i->alone * i->resident + (1 - i->alone) * (double)most;
  double multiply = tiles_long * i->rows * i->columns * ((double)args->k / parts + ends) / rate;
  double sums = (8.0 * parts + 8) * args->rows * args->columns * args->groups / units / 16;
  return multiply + (parts > 1 ? sums + launch : 0);
}

typedef struct choice {
  const implementation *of;
  int parts;
  double cost;
} choice;

/* With as many parts of k as give all units one group, or a few. */
static choice choose(rdna_dtype dtype, bool of_weight, const struct conv_args *args, const rdna_device_info *info,
                     int units) {
  choice best = {NULL, 1, 0};
  int64_t most = args->k / (4 * CONV_PART_STEP);
  if (most > RDNA__GRID_YZ_MAX / args->groups) most = RDNA__GRID_YZ_MAX / args->groups;
  for (size_t i = 0; i < sizeof implementations / sizeof *implementations; i++) {
    const implementation *one = &implementations[i];
    if (!applies(one, dtype, of_weight, args, info)) continue;
    for (int waves = 0; waves <= 8; waves++) {
      int64_t parts = waves ? (int64_t)waves * units / (tiles(one, args) * args->groups) : 1;
      if (waves && parts > most) parts = most;
      if (waves && parts < 2) continue;
      double estimate = cost(one, dtype, args, units, (int)parts);
      if (!best.of || estimate < best.cost) best = (choice){one, (int)parts, estimate};
    }
  }
  return best;
}

static rdna_status launch_values(rdna_stream *stream, const char *op_name, const char *name, int64_t values,
                                 int a_group, int groups, const struct conv_args *args) {
  rdna_grid grid = {0, 1, (uint32_t)groups};
  RDNA_TRY(rdna__check_groups(op_name, values, a_group, &grid.x));
  return rdna__launch_named(stream, name, grid, args);
}

/* Parts go to scratch memory and are added up from there. */
static rdna_status launch_parts(rdna_stream *stream, const char *op_name, const implementation *of, rdna_grid grid,
                                rdna_dtype dtype, struct conv_args *args) {
  static const char *const names[2][3] = {{"conv_image_sum_f32", "conv_image_sum_f16", "conv_image_sum_bf16"},
                                          {"conv_weight_sum_f32", "conv_weight_sum_f16", "conv_weight_sum_bf16"}};
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  int64_t values = (int64_t)args->rows * args->columns;
  void *sums;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)(values * args->groups * args->parts) * sizeof(float), &sums));
  args->sums = sums;
  rdna_status status = rdna__launch_named(stream, of->kernels[dtype], grid, args);
  if (status == RDNA_OK)
    status = launch_values(stream, op_name, names[of->of_weight][dtype], values, GEMM_SUM_VALUES(args->parts),
                           args->groups, args);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status launch(rdna_stream *stream, const char *op_name, rdna__conv_mode mode, rdna_dtype dtype,
                          struct conv_args *args) {
  static const char *const depthwise[3] = {"conv_depthwise_f32", "conv_depthwise_f16", "conv_depthwise_bf16"};
  if (mode != RDNA__CONV_WEIGHT && args->columns <= DEPTHWISE_COLUMNS && args->groups > 1) {
    if (((uintptr_t)args->image | (uintptr_t)args->out) % 16 != 0) args->flags &= ~CONV_OCTETS;
    int64_t values = (int64_t)args->rows * args->columns * args->groups / (args->flags & CONV_OCTETS ? 8 : 1);
    return launch_values(stream, op_name, depthwise[dtype], values, CONV_DEPTHWISE_THREADS, 1, args);
  }
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  int units = info->compute_units > 0 && strcmp(info->driver, "host") != 0 ? (int)info->compute_units : 0;
  if ((uintptr_t)args->out % 16 != 0) args->flags &= ~CONV_OUT_RUNS;
  choice best = choose(dtype, mode == RDNA__CONV_WEIGHT, args, info, units);
  args->parts = best.parts;
  int64_t steps = rdna__divide_up(args->k, CONV_PART_STEP);
  args->part_k = (int32_t)(rdna__divide_up(steps, args->parts) * CONV_PART_STEP);
  rdna_grid grid = {0, 1, (uint32_t)(args->groups * args->parts)};
  RDNA_TRY(rdna__check_groups(op_name, tiles(best.of, args), 1, &grid.x));
  return args->parts > 1 ? launch_parts(stream, op_name, best.of, grid, dtype, args)
                         : rdna__launch_named(stream, best.of->kernels[dtype], grid, args);
}

static rdna_status run_dense(rdna_stream *stream, const char *op_name, const rdna__conv_call *call) {
  struct conv_args args;
  rdna__conv_args_make(call->mode, call->conv, call->x, call->weight, call->y, &args);
  if (call->bias) args.bias = call->bias->data;
  args.activation = (uint32_t)call->activation;
  return launch(stream, op_name, call->mode, call->x->dtype, &args);
}

static int64_t divisor(int64_t a, int64_t b) { return b ? divisor(b, a % b) : a; }

/* Every |step|th of a dimension, from |first| on. */
static void take_every(rdna_tensor *t, int dim, int64_t first, int64_t step) {
  int64_t size = t->shape[dim] > first ? (t->shape[dim] - first + step - 1) / step : 0;
  if (size > 0) t->data = (char *)t->data + first * t->stride[dim] * (int64_t)rdna_dtype_block_bytes(t->dtype);
  t->shape[dim] = size, t->stride[dim] *= step;
}

/* What there is of a call in one phase. */
typedef struct phase {
  rdna__conv_call call;
  rdna_convolution conv;
  rdna_tensor x, weight;
} phase;

/* One dimension of a phase, the positions x * stride + |number|: a tap counts if number + before - tap * dilation is a
 * multiple of the stride, and so does every (stride / gcd(stride, dilation))th after it. */
static void take_phase(phase *p, int d, int64_t number) {
  rdna_convolution *conv = &p->conv;
  int64_t stride = conv->stride[d], dilation = conv->dilation[d], taps = p->weight.shape[2 + d];
  int64_t tap = 0, at = number + conv->pad_before[d];
  while (tap < taps && (at - tap * dilation) % stride != 0) tap++;
  int64_t common = divisor(stride, dilation);
  take_every(&p->x, 2 + d, number, stride);
  take_every(&p->weight, 2 + d, tap, stride / common);
  conv->pad_before[d] = (at - tap * dilation) / stride, conv->dilation[d] = dilation / common, conv->stride[d] = 1;
}

/* Phases beyond the last position are not counted. */
static int64_t phases_of(const rdna__conv_call *call, int d) {
  return call->conv->stride[d] < call->x->shape[2 + d] ? call->conv->stride[d] : call->x->shape[2 + d];
}

static void make_phase(const rdna__conv_call *call, int64_t number, phase *out) {
  *out = (phase){*call, *call->conv, *call->x, *call->weight};
  out->call.conv = &out->conv, out->call.x = &out->x, out->call.weight = &out->weight;
  for (int d = 0; d < call->conv->spatial_dims; d++) {
    int64_t count = phases_of(call, d);
    take_phase(out, d, number % count);
    number /= count;
  }
}

/* Phases without a tap are zeros: all is filled with them at once, unless something is added to them. */
static rdna_status run_phases(rdna_stream *stream, const char *op_name, const rdna__conv_call *call) {
  int64_t count = 1, empty = 0;
  bool zeros = !call->bias && call->activation == RDNA_ACTIVATION_NONE;
  phase p;
  for (int d = 0; d < call->conv->spatial_dims; d++) count *= phases_of(call, d);
  for (int64_t i = 0; i < count; i++) {
    make_phase(call, i, &p);
    empty += rdna_tensor_count(&p.weight) == 0;
  }
  if (zeros && empty > 0) RDNA_TRY(rdna_op_fill(stream, (rdna_scalar){0, 0}, call->x));
  for (int64_t i = 0; i < count; i++) {
    make_phase(call, i, &p);
    if (zeros && rdna_tensor_count(&p.weight) == 0) continue;
    RDNA_TRY(run_dense(stream, op_name, &p.call));
  }
  return RDNA_OK;
}

rdna_status rdna__conv_direct(rdna_stream *stream, const char *op_name, const rdna__conv_call *call) {
  bool strides = false;
  for (int d = 0; d < call->conv->spatial_dims; d++) strides |= call->conv->stride[d] > 1;
  return call->mode == RDNA__CONV_DATA && strides ? run_phases(stream, op_name, call)
                                                  : run_dense(stream, op_name, call);
}
