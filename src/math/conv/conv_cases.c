/* Random cases of convolution. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/common/case/values.h"
#include "math/conv/conv.h"

/* A tensor of a case: contiguous, or with channels last. */
static rdna_tensor make_tensor(rdna_dtype dtype, int dims, const int64_t *shape, bool channels_last) {
  rdna_tensor t = rdna_tensor_contiguous(NULL, dtype, dims + 2, shape);
  if (!channels_last) return t;
  int64_t stride = shape[1];
  for (int d = dims + 1; d > 1; stride *= shape[d--]) t.stride[d] = stride;
  t.stride[1] = 1, t.stride[0] = stride;
  return t;
}

typedef struct geometry {
  rdna_convolution conv;
  int64_t x[5], weight[5], y[5];
} geometry;

static void draw_geometry(rdna__random *random, int n, bool depthwise, bool runs, geometry *out) {
  rdna_convolution c = {RDNA_CONVOLUTION_INIT, .spatial_dims = n < 3 ? n + 1 : (int)rdna__random_range(random, 1, 3)};
  c.groups = rdna__random_below(random, 3) && !depthwise ? 1 : rdna__random_range(random, 1, 5);
  int64_t each_in = rdna__random_range(random, 1, depthwise ? 2 : 20), most = c.spatial_dims == 1   ? 60
                                                                              : c.spatial_dims == 2 ? 12
                                                                                                    : 6;
  int64_t each_out = rdna__random_range(random, 1, depthwise ? 3 : 70);
  if (rdna__random_below(random, 2)) each_in = 8 * rdna__random_range(random, 1, 5);
  if (runs) each_in = 8 * rdna__random_range(random, 1, 5), each_out = 8 * rdna__random_range(random, 1, 20);
  if (depthwise && rdna__random_below(random, 2))
    each_in = each_out = 1, c.groups = 8 * rdna__random_range(random, 1, 4);
  if (n == 3) each_in = 64, each_out = 136, c.groups = 1;
  out->x[0] = out->y[0] = n == 4 ? 0 : rdna__random_range(random, 1, 3);
  for (int d = 0; d < c.spatial_dims; d++) {
    int64_t window = rdna__random_range(random, 1, 4);
    c.stride[d] = rdna__random_range(random, 1, 3);
    c.dilation[d] = rdna__random_range(random, 1, 2);
    c.pad_before[d] = rdna__random_range(random, 0, 2);
    c.pad_after[d] = rdna__random_range(random, 0, 2);
    int64_t reach = c.dilation[d] * (window - 1) + 1, least = reach - c.pad_before[d] - c.pad_after[d];
    int64_t size = rdna__random_range(random, least > 1 ? least : 1, most > least ? most : least);
    out->x[2 + d] = size, out->weight[2 + d] = window;
    out->y[2 + d] = (c.pad_before[d] + size + c.pad_after[d] - reach) / c.stride[d] + 1;
  }
  out->x[1] = each_in * c.groups, out->y[1] = each_out * c.groups;
  out->weight[0] = each_out * c.groups, out->weight[1] = each_in;
  out->conv = c;
}

/* A gradient of the image as the operator asks for it, in one phase: without strides, which leaves more of y. */
static void make_phase(rdna__random *random, geometry *g, rdna_dtype dtype, bool last, rdna_tensor *out_y) {
  for (int d = 0; d < g->conv.spatial_dims; d++) {
    int64_t room =
        g->conv.pad_before[d] + g->x[2 + d] + g->conv.pad_after[d] - g->conv.dilation[d] * (g->weight[2 + d] - 1);
    if (g->conv.stride[d] > 1) g->conv.pad_before[d] -= rdna__random_range(random, 0, 3);
    g->conv.stride[d] = 1, g->y[2 + d] = room;
  }
  *out_y = make_tensor(dtype, g->conv.spatial_dims, g->y, last);
}

static rdna_grid case_grid(const char *kernel_name, const struct conv_args *a) {
  uint32_t rows = (uint32_t)a->rows, columns = (uint32_t)a->columns, groups = (uint32_t)a->groups;
  if (strstr(kernel_name, "depthwise")) {
    uint32_t threads = CONV_DEPTHWISE_THREADS;
    uint32_t values = rows * columns * groups / (a->flags & CONV_OCTETS ? 8 : 1);
    return (rdna_grid){(values + threads - 1) / threads, 1, 1};
  }
  bool large = strstr(kernel_name, "large"), narrow = strstr(kernel_name, "narrow"),
       weight = strstr(kernel_name, "weight");
  uint32_t down = large || (narrow && !weight) ? CONV_LARGE_TILE : CONV_SMALL_TILE;
  uint32_t across = large || (narrow && weight) ? CONV_LARGE_TILE : CONV_SMALL_TILE;
  return (rdna_grid){(rows + down - 1) / down * ((columns + across - 1) / across), 1, groups * (uint32_t)a->parts};
}

static double largest(rdna_dtype dtype, const void *data, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)case_get(dtype, data, i)));
  return most;
}

static void *add_filled(rdna__kernel_case *out_case, rdna__random *random, rdna_dtype dtype, int64_t count,
                        size_t offset, double *out_largest) {
  void *data = rdna__case_add(out_case, RDNA__IN, dtype, count, (uint32_t)offset);
  if (!data) return NULL;
  case_fill(random, dtype, data, count, 1);
  *out_largest = largest(dtype, data, count);
  return data;
}

/* What the operator asks before it chooses a large or narrow kernel. */
static bool taken_by_runs(const struct conv_args *args) {
  return args->tap.size[0] * args->tap.size[1] * args->tap.size[2] <= CONV_WINDOW_MAX;
}

/* Each side sums at most k products in an order of its own: at most k roundings, each of at most 2^-24 of the sum of
 * magnitudes, k max |image| max |other| (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1); a few more for
 * the bias, and one to the type. */
RDNA_CASE_MAKER(rdna__conv_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  geometry g;
  bool narrow = strstr(kernel->name, "narrow"), weight = strstr(kernel->name, "weight");
  bool runs =
      (strstr(kernel->name, "large") || narrow) && (weight || dtype != RDNA_F32); /* they run with nothing else */
  bool last;
  rdna_tensor x, y, w;
  rdna__conv_mode mode;
  struct conv_args args;
  do { /* until the kernel takes it */
    draw_geometry(random, n, strstr(kernel->name, "depthwise") != NULL, runs, &g);
    last = runs || n == 3 || rdna__random_below(random, 2);
    x = make_tensor(dtype, g.conv.spatial_dims, g.x, last), y = make_tensor(dtype, g.conv.spatial_dims, g.y, last);
    w = make_tensor(dtype, g.conv.spatial_dims, g.weight, runs || rdna__random_below(random, 4) ? last : !last);
    mode = RDNA__CONV_FORWARD;
    if (weight)
      mode = RDNA__CONV_WEIGHT;
    else if (!(runs && g.conv.groups > 1) && rdna__random_below(random, 2)) /* groups would part the weight's runs */
      mode = RDNA__CONV_DATA;
    if (runs && mode == RDNA__CONV_DATA &&
        rdna__random_below(random, 2)) { /* channels that are summed over side by side */
      int64_t inner = g.weight[1];
      for (int d = g.conv.spatial_dims + 1; d > 1; d--) w.stride[d] *= g.weight[0], w.stride[d] /= inner;
      w.stride[0] = 1, w.stride[1] = rdna_tensor_count(&w) / inner;
    }
    if (mode == RDNA__CONV_DATA) make_phase(random, &g, dtype, last, &y);
    rdna__conv_args_make(mode, &g.conv, &x, &w, &y, &args);
  } while (runs && !taken_by_runs(&args));
  if (!strstr(kernel->name, "depthwise") && args.k > CONV_PART_STEP && rdna__random_below(random, 2)) {
    args.part_k = CONV_PART_STEP;
    args.parts = (args.k + args.part_k - 1) / args.part_k;
  }
  if (!weight && rdna__random_below(random, 2))
    args.activation = (uint32_t)rdna__random_below(random, RDNA_ACTIVATION_GELU_ERF + 1);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = case_grid(kernel->name, &args);
  snprintf(out_case->label, sizeof out_case->label, "mode %d dims %d groups %d rows %d columns %d k %d flags %u",
           (int)mode, g.conv.spatial_dims, args.groups, args.rows, args.columns, args.k, args.flags);

  const rdna_tensor *image = mode == RDNA__CONV_DATA ? &y : &x, *other = mode == RDNA__CONV_WEIGHT ? &y : &w;
  const rdna_tensor *out = mode == RDNA__CONV_FORWARD ? &y : mode == RDNA__CONV_DATA ? &x : &w;
  double most_image, most_other, most_bias = 0;
  bool made = add_filled(out_case, random, dtype, rdna_tensor_count(image), offsetof(struct conv_args, image),
                         &most_image) != NULL;
  made = made && add_filled(out_case, random, dtype, rdna_tensor_count(other), offsetof(struct conv_args, other),
                            &most_other) != NULL;
  if (made && mode != RDNA__CONV_WEIGHT && rdna__random_below(random, 2))
    made = add_filled(out_case, random, dtype, out->shape[1], offsetof(struct conv_args, bias), &most_bias) != NULL;
  if (args.parts > 1) {
    int64_t sums = (int64_t)args.rows * args.columns * args.groups * args.parts;
    made = made && rdna__case_add(out_case, RDNA__OUT, RDNA_F32, sums, offsetof(struct conv_args, sums));
    dtype = RDNA_F32;
  } else {
    made = made && rdna__case_add(out_case, RDNA__OUT, dtype, rdna_tensor_count(out), offsetof(struct conv_args, out));
  }
  if (!made) return rdna__case_no_memory(out_case);
  double sum = args.k * most_image * most_other;
  rdna__case_tolerance(out_case, 0x1p-24 * (2 * (args.k + 2) * sum + 8 * (sum + most_bias)) + case_smallest(dtype),
                       case_spacing(dtype));
  return RDNA_OK;
}

/* Adding up the parts of a sum, each in the same order. */
RDNA_CASE_MAKER(rdna__conv_sum_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  geometry g;
  bool weight = strstr(kernel->name, "weight");
  draw_geometry(random, n == 4 ? 5 : n, false, false, &g);
  bool last = rdna__random_below(random, 2);
  rdna_tensor x = make_tensor(dtype, g.conv.spatial_dims, g.x, last),
              y = make_tensor(dtype, g.conv.spatial_dims, g.y, last);
  rdna_tensor w = make_tensor(dtype, g.conv.spatial_dims, g.weight, last);
  struct conv_args args;
  rdna__conv_args_make(weight ? RDNA__CONV_WEIGHT : RDNA__CONV_FORWARD, &g.conv, &x, &w, &y, &args);
  args.parts = (int32_t)rdna__random_range(random, 2, 40), args.part_k = CONV_PART_STEP;
  if (!weight) args.activation = (uint32_t)rdna__random_below(random, RDNA_ACTIVATION_SIGMOID + 1);
  memcpy(out_case->args, &args, sizeof args);
  int64_t values = (int64_t)args.rows * args.columns;
  uint32_t groups =
      (uint32_t)((values + CONV_SUM_VALUES(args.parts, args.columns) - 1) / CONV_SUM_VALUES(args.parts, args.columns));
  out_case->grid = (rdna_grid){groups, 1, (uint32_t)args.groups};
  snprintf(out_case->label, sizeof out_case->label, "groups %d parts %d rows %d columns %d", args.groups, args.parts,
           args.rows, args.columns);
  double most, most_bias = 0;
  const rdna_tensor *out = weight ? &w : &y;
  bool made = add_filled(out_case, random, RDNA_F32, values * args.groups * args.parts,
                         offsetof(struct conv_args, sums), &most) != NULL;
  if (made && !weight && rdna__random_below(random, 2))
    made = add_filled(out_case, random, dtype, out->shape[1], offsetof(struct conv_args, bias), &most_bias) != NULL;
  made = made && rdna__case_add(out_case, RDNA__OUT, dtype, rdna_tensor_count(out), offsetof(struct conv_args, out));
  if (!made) return rdna__case_no_memory(out_case);
  /* Each side rounds as often as there are parts, and a few times in the activation. */
  rdna__case_tolerance(out_case,
                       0x1p-24 * (2 * args.parts + 16) * (args.parts * most + most_bias) + case_smallest(dtype),
                       case_spacing(dtype));
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__conv_turn_case) {
  bool wide = strstr(kernel->name, "32");
  rdna_dtype dtype = wide ? RDNA_F32 : RDNA_F16;
  int32_t in_16 = wide ? 4 : 8, most = CONV_TURN_BYTES / 16;
  struct conv_turn_args args = {.images = (int32_t)rdna__random_range(random, n == 1 ? 0 : 1, 3)};
  args.plane = n == 2 ? most - 1 : n == 3 ? 49 : (int32_t)rdna__random_range(random, 1, 200);
  args.channels = in_16 * (int32_t)rdna__random_range(random, 1, n == 2 ? 3 : 40);
  int32_t runs = most / (args.plane | 1);
  args.block = in_16 * (runs > 1 ? (int32_t)rdna__random_range(random, 1, runs) : 1);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((args.channels + args.block - 1) / args.block), (uint32_t)args.images, 1};
  snprintf(out_case->label, sizeof out_case->label, "images %d channels %d plane %d block %d", args.images,
           args.channels, args.plane, args.block);
  int64_t count = (int64_t)args.images * args.channels * args.plane;
  double most_in;
  bool made = add_filled(out_case, random, dtype, count, offsetof(struct conv_turn_args, in), &most_in) != NULL;
  made = made && rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct conv_turn_args, out));
  return made ? RDNA_OK : rdna__case_no_memory(out_case);
}
