#include "math/sample/sample.h"

#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "math/common/plan/volume.h"
#include "math/sort/sort_plan.h"
#include "rdna/op/movement.h"

enum { FORWARD, SLOPE, GATHER };
static const rdna__route routes[] = {
    [FORWARD] = {.name = "forward", .kernels = {"sample_{linear|nearest|cubic}_{real}"}, .when = "by the mode"},
    [SLOPE] = {.name = "the grid's gradient",
               .kernels = {"sample_slope_{linear|cubic}_{real}"},
               .when = "by the mode; of nearest it is 0"},
    [GATHER] = {.name = "the image's gradient",
                .kernels = {"sample_corners_{real}", "sample_starts", "sample_gather_{real}"},
                .when = "corners of all places, sorted by the value that they take, then a thread for each value"}};
RDNA_FIXED_ROUTES(rdna__sample_routes, "sample, sample_backward", routes)

static const char *const modes[RDNA_SAMPLE_MODE_COUNT] = {
    [RDNA_SAMPLE_MODE_LINEAR] = "linear", [RDNA_SAMPLE_MODE_NEAREST] = "nearest", [RDNA_SAMPLE_MODE_CUBIC] = "cubic"};

/* |x| is dx where there is no other; |out| is dout in a backward. */
struct call {
  const char *op_name;
  rdna_stream *stream;
  rdna_sample_mode mode;
  rdna_sample_padding padding;
  rdna_sample_units units;
  const char *x_name, *out_name;
  const rdna_tensor *x, *grid, *out, *dx, *dgrid;
  uint32_t dims;
  int32_t size[3], positions[3];     /* z, y, x */
  int64_t n, channels, plane, count; /* values and positions of a sample */
};

void rdna__sample_strides(const rdna_tensor *grid, int64_t out_stride[5]) {
  for (int d = 0; d < 5; d++) out_stride[d] = 0;
  for (int d = 0; d < grid->rank; d++) out_stride[d == 0 ? 0 : d + 5 - grid->rank] = grid->stride[d];
}

struct sample_grid rdna__sample_grid_of(rdna_sample_mode mode, rdna_sample_padding padding, rdna_sample_units units,
                                        const rdna_tensor *grid, uint32_t dims, const int32_t size[3]) {
  struct sample_grid g = {.data = grid->data,
                          .size = {size[0], size[1], size[2]},
                          .dims = dims,
                          .kind = (uint32_t)mode,
                          .padding = (uint32_t)padding,
                          .units = (uint32_t)units,
                          .wide = grid->dtype == RDNA_F32};
  rdna__sample_strides(grid, g.stride);
  return g;
}

struct strided_shape rdna__sample_shape(const int32_t size[3], int64_t last) {
  struct strided_shape shape = {.rank = 4, .count = (uint32_t)last};
  for (uint32_t d = 0; d < 3; d++) {
    strided_set_size(&shape, d, size[2 - d] > 0 ? (uint32_t)size[2 - d] : 1);
    shape.count *= (uint32_t)size[2 - d];
  }
  strided_set_size(&shape, 3, last > 0 ? (uint32_t)last : 1);
  return shape;
}

static rdna_status check_choice(const struct call *c) {
  const struct {
    const char *name;
    int value, count;
  } choices[] = {{"mode", (int)c->mode, RDNA_SAMPLE_MODE_COUNT},
                 {"padding", (int)c->padding, RDNA_SAMPLE_PADDING_COUNT},
                 {"units", (int)c->units, RDNA_SAMPLE_UNITS_COUNT}};
  for (int i = 0; i < 3; i++) {
    if (choices[i].value < 0 || choices[i].value >= choices[i].count) {
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the %s is %d; it must be 0 to %d", c->op_name, choices[i].name,
                        choices[i].value, choices[i].count - 1);
    }
  }
  return RDNA_OK;
}

static rdna_status check_grid(const struct call *c, const char *argument, const rdna_tensor *grid) {
  RDNA_TRY(rdna__check_tensor(c->op_name, argument, grid));
  bool narrow = c->x->dtype == RDNA_F16 || c->x->dtype == RDNA_BF16;
  if (!narrow || grid->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(c->op_name, argument, grid, c->x_name, c->x));
  RDNA_TRY(rdna__check_rank(c->op_name, argument, grid, c->out->rank));
  RDNA_TRY(rdna__check_size(c->op_name, argument, grid, 0, c->n, "the samples"));
  for (int d = 2; d < c->out->rank; d++) {
    RDNA_TRY(rdna__check_size(c->op_name, argument, grid, d - 1, c->out->shape[d], "the positions"));
  }
  return rdna__check_size(c->op_name, argument, grid, grid->rank - 1, c->dims, "a coordinate for each size");
}

static rdna_status check(struct call *c) {
  char text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_stream(c->op_name, c->stream));
  RDNA_TRY(check_choice(c));
  RDNA_TRY(rdna__check_volume(c->op_name, c->x_name, c->x, 0));
  RDNA_TRY(rdna__check_volume(c->op_name, c->out_name, c->out, 0));
  RDNA_TRY(rdna__check_same_dtype(c->op_name, c->out_name, c->out, c->x_name, c->x));
  if (c->x->rank < 4 || (c->mode == RDNA_SAMPLE_MODE_CUBIC && c->x->rank != 4)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; it must be (n, channels, 2 %s)", c->op_name, c->x_name,
                      rdna__tensor_text(c->x, text),
                      c->mode == RDNA_SAMPLE_MODE_CUBIC ? "sizes for cubic" : "or 3 sizes");
  }
  if (c->x->shape[0] != c->out->shape[0] || c->x->shape[1] != c->out->shape[1]) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s and %s is %s; samples and channels must be equal",
                      c->op_name, c->out_name, rdna__tensor_text(c->out, out_text), c->x_name,
                      rdna__tensor_text(c->x, text));
  }
  c->dims = (uint32_t)c->x->rank - 2, c->n = c->x->shape[0], c->channels = c->x->shape[1];
  rdna__volume_sizes(c->x, c->size), rdna__volume_sizes(c->out, c->positions);
  c->plane = c->count = 1;
  for (int d = 0; d < 3; d++) c->plane *= c->size[d], c->count *= c->positions[d];
  if (c->plane < 1) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; its sizes must be at least 1", c->op_name, c->x_name,
                      rdna__tensor_text(c->x, text));
  }
  return check_grid(c, "grid", c->grid);
}

static rdna_status too_many(const struct call *c) {
  char text[RDNA__TENSOR_TEXT];
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; 2^31 values that its positions take, or more, are not offered",
                    c->op_name, c->out_name, rdna__tensor_text(c->out, text));
}

static struct sample_grid grid_of(const struct call *c) {
  return rdna__sample_grid_of(c->mode, c->padding, c->units, c->grid, c->dims, c->size);
}

rdna_status rdna_op_sample(rdna_stream *stream, rdna_sample_mode mode, rdna_sample_padding padding,
                           rdna_sample_units units, const rdna_tensor *x, const rdna_tensor *grid,
                           const rdna_tensor *out) {
  struct call call = {"sample", stream, mode, padding, units, "x", "out", x, grid, out, .dims = 0}, *c = &call;
  char kernel[RDNA__ROUTE_NAME];
  RDNA_TRY(check(c));
  RDNA_TRY(rdna__check_written(c->op_name, "out", out));
  const rdna__named written[] = {{"out", out}}, read[] = {{"x", x}, {"grid", grid}};
  RDNA_TRY(rdna__check_written_apart(c->op_name, written, 1, read, 2, 0));
  struct sample_args a = {
      .x = rdna__volume_of(x), .out = rdna__volume_of(out), .grid = grid_of(c), .channels = (uint32_t)c->channels};
  const rdna_tensor *tensors[] = {out, x};
  RDNA_TRY(rdna__volume_order(c->op_name, tensors, 2, SAMPLE_BLOCK, &a.order));
  const char *words[] = {modes[mode], rdna_dtype_name(x->dtype)};
  return rdna__volume_launch(stream, rdna__route_kernel(kernel, routes[FORWARD].kernels[0], words), &a.order, &a);
}

static rdna_status launch(const struct call *c, int route, int step, int64_t count, const void *args,
                          const char *const *words) {
  rdna_grid grid = {0, 1, 1};
  if (count == 0) return RDNA_OK;
  RDNA_TRY(rdna__check_groups(c->op_name, count, SAMPLE_THREADS, &grid.x));
  return rdna__route_launch(c->stream, routes[route].kernels[step], grid, args, words);
}

static rdna_status find_slopes(const struct call *c) {
  if (c->mode == RDNA_SAMPLE_MODE_NEAREST) return rdna_op_fill(c->stream, rdna_scalar_real(0), c->dgrid);
  struct sample_slope_args a = {.x = rdna__volume_of(c->x),
                                .dout = rdna__volume_of(c->out),
                                .grid = grid_of(c),
                                .dgrid = c->dgrid->data,
                                .shape = rdna__sample_shape(c->positions, c->n),
                                .channels = (uint32_t)c->channels};
  rdna__sample_strides(c->dgrid, a.stride);
  const char *words[] = {modes[c->mode], rdna_dtype_name(c->x->dtype)};
  return launch(c, SLOPE, 0, a.shape.count, &a, words);
}

static rdna_status gather(rdna__scratch *scratch, const struct call *c) {
  const char *words[] = {rdna_dtype_name(c->dx->dtype)};
  size_t weight_bytes = c->dx->dtype == RDNA_F64 ? 8 : 4;
  uint32_t corners = rdna__sample_corners((uint32_t)c->mode, c->dims);
  int64_t entries = corners * c->count, all = c->n * entries;
  void *values, *sorted, *places, *weights, *starts;
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)all * sizeof(int32_t), &values));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)all * sizeof(int32_t), &sorted));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)all * sizeof(uint32_t), &places));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)all * weight_bytes, &weights));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)(c->n * (c->plane + 1)) * sizeof(uint32_t), &starts));
  struct sample_corners_args of = {.grid = grid_of(c),
                                   .values = values,
                                   .weights = weights,
                                   .shape = rdna__sample_shape(c->positions, c->n),
                                   .corners = corners,
                                   .positions = (uint32_t)c->count,
                                   .plane = (uint32_t)c->plane};
  RDNA_TRY(launch(c, GATHER, 0, of.shape.count, &of, words));
  rdna__sort_rows sort = {.x = values,
                          .values = sorted,
                          .indices = places,
                          .rows = c->n,
                          .n = entries,
                          .kept = (uint32_t)entries,
                          .value_bytes = 4,
                          .narrow = true,
                          .order = {.ones = UINT32_MAX}};
  while (c->plane >> sort.bits) sort.bits++;
  RDNA_TRY(rdna__sort_rows_queue(scratch, &sort));
  struct sample_starts_args first = {.values = sorted,
                                     .starts = starts,
                                     .samples = (uint32_t)c->n,
                                     .entries = (uint32_t)entries,
                                     .plane = (uint32_t)c->plane};
  RDNA_TRY(launch(c, GATHER, 1, c->n * (c->plane + 1), &first, NULL));
  struct sample_gather_args a = {.dx = rdna__volume_of(c->dx),
                                 .dout = rdna__volume_of(c->out),
                                 .starts = starts,
                                 .places = places,
                                 .weights = weights,
                                 .shape = rdna__sample_shape(c->positions, corners),
                                 .size = {c->size[0], c->size[1], c->size[2]},
                                 .entries = (uint32_t)entries,
                                 .channels = (uint32_t)c->channels};
  const rdna_tensor *tensors[] = {c->dx, c->out};
  RDNA_TRY(rdna__volume_order(c->op_name, tensors, 2, SAMPLE_BLOCK, &a.order));
  return launch(c, GATHER, 2, a.order.shape.count, &a, words);
}

static rdna_status check_backward(struct call *c, const rdna_tensor *x) {
  if (!c->dx && !c->dgrid) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "sample_backward: dx and dgrid are NULL; pass a tensor for one of them");
  }
  RDNA_TRY(check(c));
  if (c->dgrid) {
    RDNA_TRY(rdna__check_tensor(c->op_name, "x", x));
    RDNA_TRY(check_grid(c, "dgrid", c->dgrid));
    RDNA_TRY(rdna__check_same_dtype(c->op_name, "dgrid", c->dgrid, "grid", c->grid));
    RDNA_TRY(rdna__check_written(c->op_name, "dgrid", c->dgrid));
  }
  if (c->dx) {
    if (x) RDNA_TRY(rdna__check_tensor(c->op_name, "dx", c->dx));
    if (x) RDNA_TRY(rdna__check_same_dtype(c->op_name, "dx", c->dx, "x", x));
    if (x) RDNA_TRY(rdna__check_same_shape(c->op_name, "dx", c->dx, "x", x));
    RDNA_TRY(rdna__check_written(c->op_name, "dx", c->dx));
  }
  const rdna__named written[] = {{"dx", c->dx}, {"dgrid", c->dgrid}};
  const rdna__named read[] = {{"dout", c->out}, {"x", x}, {"grid", c->grid}};
  RDNA_TRY(rdna__check_written_apart(c->op_name, written, 2, read, 3, 0));
  if (c->n * c->count > INT32_MAX || (c->count + 1) * rdna__sample_corners((uint32_t)c->mode, c->dims) > INT32_MAX)
    return too_many(c);
  return RDNA_OK;
}

rdna_status rdna_op_sample_backward(rdna_stream *stream, rdna_sample_mode mode, rdna_sample_padding padding,
                                    rdna_sample_units units, const rdna_tensor *dout, const rdna_tensor *x,
                                    const rdna_tensor *grid, const rdna_tensor *dx, const rdna_tensor *dgrid) {
  struct call call = {"sample_backward", stream, mode, padding, units, x ? "x" : "dx", "dout",
                      x ? x : dx,        grid,   dout, dx,      dgrid, .dims = 0};
  RDNA_TRY(check_backward(&call, x));
  if (dgrid && rdna_tensor_count(dgrid) > 0) RDNA_TRY(find_slopes(&call));
  if (!dx || rdna_tensor_count(dx) == 0) return RDNA_OK;
  if (call.count == 0) return rdna_op_fill(stream, rdna_scalar_real(0), dx);
  rdna__scratch scratch = {.stream = stream, .holder = "sample_backward"};
  return rdna__scratch_release(&scratch, gather(&scratch, &call));
}
