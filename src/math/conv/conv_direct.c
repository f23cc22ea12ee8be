/* Convolutions by our kernels: which of them, in how many parts. The gradient of the image with a stride is done in
 * phases: the positions x with the same x mod stride meet the same few taps of the window, each the next value of y, so
 * that they are a convolution of their own without a stride, and the zeros between positions are never multiplied. */
#include "device/traits.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/conv/conv.h"
#include "math/gemm/gemm.h"
#include "rdna/op/movement.h"

/* Groups with fewer channels of the result than this are done value by value. */
enum { DEPTHWISE_COLUMNS = 4 };

enum { ONLY_F32 = 1 << RDNA_F32, HALVES = 1 << RDNA_F16 | 1 << RDNA_BF16 }; /* sets of types */

/* One way to compute a convolution. */
typedef struct conv_route {
  rdna__route route;    /* of a problem */
  unsigned types;       /* a set */
  bool of_weight;       /* the gradient of the weight, else the image's side */
  bool only_runs;       /* see conv_kernels.h */
  int rows, columns;    /* of a tile */
  int resident;         /* groups that a compute unit has at once */
  double share;         /* of the best one's rate, on a large problem */
  double alone;         /* how little a unit loses with a single group: 0 nothing but what the others would do */
  uint32_t group_bytes; /* of group memory where copies are asynchronous */
} conv_route;

typedef struct problem {
  rdna_dtype dtype;
  bool of_weight;
  const struct conv_args *args;
  const rdna_device_info *info;
  int units; /* 0 where a kernel divides its work itself, with the same bits for any number of threads */
} problem;

static int64_t tiles(const conv_route *route, const struct conv_args *args) {
  return rdna__divide_up(args->rows, route->rows) * rdna__divide_up(args->columns, route->columns);
}

/* What the kernels ask for that take nothing but runs. */
static bool is_all_runs(const struct conv_args *args, bool of_weight) {
  if (!(args->flags & CONV_IMAGE_RUNS) || ((uintptr_t)args->image | (uintptr_t)args->other) % 16 != 0) return false;
  uint32_t window = args->tap.size[0] * args->tap.size[1] * args->tap.size[2];
  if (window > CONV_WINDOW_MAX) return false;
  return args->flags & (of_weight ? CONV_OTHER_ROWS : CONV_OTHER_RUNS | CONV_OTHER_ROWS);
}

static bool applies(const rdna__route *of, const void *which) {
  const conv_route *route = (const conv_route *)of;
  const problem *p = which;
  if (!(route->types >> p->dtype & 1) || route->of_weight != p->of_weight) return false;
  if (route->only_runs && !is_all_runs(p->args, p->of_weight)) return false;
  return !rdna__device_traits_of(p->info)->asynchronous_copies || p->dtype == RDNA_F32 ||
         route->group_bytes <= p->info->max_group_memory;
}

/* An H200's numbers: values that a unit multiplies and adds in a cycle, how much of that a small tile of f32 reaches,
 * the steps of k that a tile's beginning and end take as long as, and cycles for a launch. */
enum { F32_RATE = 92, MATRIX_RATE = 826, F32_ENDS = 32, MATRIX_ENDS = 220, LAUNCH_CYCLES = 15000, BYTES_A_CYCLE = 16 };
static const double small_f32_share = 0.77;

/* How long the fullest compute unit is busy, in its cycles. Groups that begin together end together, and their units
 * are given new ones before others are: all units work as long as full ones, unless all groups are there at once.
 * Sums of parts are written and read, and another kernel is launched. */
static double cost(const conv_route *route, const problem *p, int parts) {
  const struct conv_args *args = p->args;
  int64_t count = tiles(route, args) * args->groups * parts;
  bool is_float = p->dtype == RDNA_F32;
  double share = is_float && route->share < 1 ? small_f32_share : route->share;
  double rate = share * (is_float ? F32_RATE : MATRIX_RATE), ends = is_float ? F32_ENDS : MATRIX_ENDS, tiles_long;
  int units = p->units > 0 ? p->units : 1;
  int64_t slots = (int64_t)units * route->resident, most = (count + units - 1) / units;
  if (count > slots)
    tiles_long = (double)((count + slots - 1) / slots * route->resident);
  else
    tiles_long = route->alone * route->resident + (1 - route->alone) * (double)most;
  double multiply = tiles_long * route->rows * route->columns * ((double)args->k / parts + ends) / rate;
  double sums = (8.0 * parts + 8) * args->rows * args->columns * args->groups / units / BYTES_A_CYCLE;
  return multiply + (parts > 1 ? sums + LAUNCH_CYCLES : 0);
}

/* With as many parts of k as give all units one group, or a few: those of the least cost, which is |*out_cost|. */
static int choose_parts(const conv_route *route, const problem *p, double *out_cost) {
  int64_t most = p->args->k / (4 * CONV_PART_STEP);
  int best = 1;
  *out_cost = cost(route, p, 1);
  if (most > RDNA__GRID_YZ_MAX / p->args->groups) most = RDNA__GRID_YZ_MAX / p->args->groups;
  for (int waves = 1; waves <= 8; waves++) {
    int64_t parts = (int64_t)waves * p->units / (tiles(route, p->args) * p->args->groups);
    if (parts > most) parts = most;
    if (parts < 2) continue;
    double estimate = cost(route, p, (int)parts);
    if (estimate < *out_cost) best = (int)parts, *out_cost = estimate;
  }
  return best;
}

static double least_cost(const rdna__route *of, const void *which) {
  double least;
  (void)choose_parts((const conv_route *)of, which, &least);
  return least;
}

static bool is_depthwise(const rdna__route *of, const void *which) {
  const problem *p = which;
  return !p->of_weight && p->args->columns <= DEPTHWISE_COLUMNS && p->args->groups > 1;
}
static double none(const rdna__route *of, const void *which) { return 0; }

#define BY_COST .applies = applies, .cost = least_cost, .measured_on = "H200"
static const conv_route routes[] = {
    {.route = {.name = "depthwise",
               .kernels = {"conv_depthwise_{float}"},
               .when = "groups with at most 4 channels of the result: value by value",
               .applies = is_depthwise,
               .cost = none}},
    {.route = {.name = "image 128 x 128",
               .kernels = {"conv_image_large_{f16|bf16}", "conv_image_sum_{f16|bf16}"},
               .when = "16-bit types whose channels lie side by side at multiples of 16 bytes",
               BY_COST},
     .types = HALVES,
     .only_runs = true,
     .rows = 128,
     .columns = 128,
     .resident = 2,
     .share = 1,
     .alone = 0.2,
     .group_bytes = GEMM_PIPE_BYTES(128, 128, 3) + CONV_IMAGE_TABLE},
    {.route = {.name = "image 128 x 64",
               .kernels = {"conv_image_narrow_{f16|bf16}", "conv_image_sum_{f16|bf16}"},
               .when = "the same, with few channels of the result",
               BY_COST},
     .types = HALVES,
     .only_runs = true,
     .rows = 128,
     .columns = 64,
     .resident = 3,
     .share = 0.83,
     .alone = 0.2,
     .group_bytes = GEMM_PIPE_BYTES(128, 64, 3) + CONV_IMAGE_TABLE},
    {.route = {.name = "image 128 x 128 f32",
               .kernels = {"conv_image_large_{f32}", "conv_image_sum_{f32}"},
               .when = "f32 in any layout",
               BY_COST},
     .types = ONLY_F32,
     .rows = 128,
     .columns = 128,
     .resident = 2,
     .share = 1,
     .alone = 0.2},
    {.route = {.name = "image 64 x 64",
               .kernels = {"conv_image_small_{float}", "conv_image_sum_{float}"},
               .when = "any type and layout",
               BY_COST},
     .types = ONLY_F32 | HALVES,
     .rows = 64,
     .columns = 64,
     .resident = 4,
     .share = 0.4,
     .alone = 0.2,
     .group_bytes = GEMM_PIPE_BYTES(64, 64, 3)},
    {.route = {.name = "weight 128 x 128",
               .kernels = {"conv_weight_large_{f16|bf16}", "conv_weight_sum_{f16|bf16}"},
               .when =
                   "the gradient of the weight: 16-bit types whose channels lie side by side at multiples of 16 bytes",
               BY_COST},
     .types = HALVES,
     .of_weight = true,
     .only_runs = true,
     .rows = 128,
     .columns = 128,
     .resident = 2,
     .share = 0.85,
     .alone = 0.4,
     .group_bytes = GEMM_PIPE_BYTES(128, 128, 3) + CONV_WEIGHT_TABLE(3)},
    {.route = {.name = "weight 64 x 128",
               .kernels = {"conv_weight_narrow_{f16|bf16}", "conv_weight_sum_{f16|bf16}"},
               .when = "the same, with few channels of the gradient",
               BY_COST},
     .types = HALVES,
     .of_weight = true,
     .only_runs = true,
     .rows = 64,
     .columns = 128,
     .resident = 3,
     .share = 0.65,
     .alone = 0.4,
     .group_bytes = GEMM_PIPE_BYTES(64, 128, 3) + CONV_WEIGHT_TABLE(3)},
    {.route = {.name = "weight 128 x 128 f32",
               .kernels = {"conv_weight_large_{f32}", "conv_weight_sum_{f32}"},
               .when = "the gradient of the weight: f32 whose channels lie side by side at multiples of 16 bytes",
               BY_COST},
     .types = ONLY_F32,
     .of_weight = true,
     .only_runs = true,
     .rows = 128,
     .columns = 128,
     .resident = 2,
     .share = 1,
     .alone = 0.2},
    {.route = {.name = "weight 64 x 64",
               .kernels = {"conv_weight_small_{float}", "conv_weight_sum_{float}"},
               .when = "the gradient of the weight: any type and layout",
               BY_COST},
     .types = ONLY_F32 | HALVES,
     .of_weight = true,
     .rows = 64,
     .columns = 64,
     .resident = 4,
     .share = 0.4,
     .alone = 0.2,
     .group_bytes = GEMM_PIPE_BYTES(64, 64, 3)},
};
#undef BY_COST
RDNA_ROUTES(rdna__conv_direct_routes, "conv, as the tensors lie", routes)

/* Parts go to scratch memory and are added up from there. */
static rdna_status launch_parts(rdna_stream *stream, const char *op_name, const rdna__route *route, rdna_grid grid,
                                const char *type, struct conv_args *args) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  int64_t values = (int64_t)args->rows * args->columns;
  rdna_grid sum_grid = {0, 1, (uint32_t)args->groups};
  void *sums;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)(values * args->groups * args->parts) * sizeof(float), &sums));
  args->sums = sums;
  rdna_status status = RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, type);
  if (status == RDNA_OK) status = rdna__check_groups(op_name, values, GEMM_SUM_VALUES(args->parts), &sum_grid.x);
  if (status == RDNA_OK) status = RDNA__ROUTE_LAUNCH(stream, route, 1, sum_grid, args, type);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status launch_depthwise(rdna_stream *stream, const char *op_name, const char *type,
                                    struct conv_args *args) {
  if (((uintptr_t)args->image | (uintptr_t)args->out) % 16 != 0) args->flags &= ~CONV_OCTETS;
  int64_t values = (int64_t)args->rows * args->columns * args->groups / (args->flags & CONV_OCTETS ? 8 : 1);
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(op_name, values, CONV_DEPTHWISE_THREADS, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, &routes[0].route, 0, grid, args, type);
}

static rdna_status launch(rdna_stream *stream, const char *op_name, rdna__conv_mode mode, rdna_dtype dtype,
                          struct conv_args *args) {
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  bool divides = rdna__device_traits_of(info)->divides_work;
  problem p = {.dtype = dtype,
               .of_weight = mode == RDNA__CONV_WEIGHT,
               .args = args,
               .info = info,
               .units = info->compute_units > 0 && !divides ? info->compute_units : 0};
  const conv_route *best = (const conv_route *)rdna__route_choose(&rdna__conv_direct_routes, &p);
  const char *type = rdna_dtype_name(dtype);
  if (best == &routes[0]) return launch_depthwise(stream, op_name, type, args);
  if ((uintptr_t)args->out % 16 != 0) args->flags &= ~CONV_OUT_RUNS;
  double least;
  args->parts = choose_parts(best, &p, &least);
  int64_t steps = rdna__divide_up(args->k, CONV_PART_STEP);
  args->part_k = (int32_t)(rdna__divide_up(steps, args->parts) * CONV_PART_STEP);
  rdna_grid grid = {0, 1, (uint32_t)(args->groups * args->parts)};
  RDNA_TRY(rdna__check_groups(op_name, tiles(best, args), 1, &grid.x));
  return args->parts > 1 ? launch_parts(stream, op_name, &best->route, grid, type, args)
                         : RDNA__ROUTE_LAUNCH(stream, &best->route, 0, grid, args, type);
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
