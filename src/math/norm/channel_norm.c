
#include "rdna/op/channel_norm.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/rows_along.h"
#include "math/norm/channel_norm_kernels.h"

/* From an H200; nobody has measured them on AMD's cards. */
enum {
  /* Slices are to give every GPU a few groups for each place it has, and to have enough values to be worth a join. */
  RUN_UNITS = 8192,
  COLUMN_UNITS = 1024,
  FEW_UNITS = 512, /* where there are fewer, slices are short */
  LEAST_SLICE = 4096,
  SLICE_VALUES = 16384, /* so that joining a group's threads costs little beside them */
  WAVE_VALUES = 1024,   /* a slice of fewer is a wave's */
  COLUMN_ROWS = 16,     /* of a thread, at least */
  MAP_VALUES = 16384,   /* of a group, at most where runs are cut */
  MOST_GROUPS = 1 << 20
};

/* The layout decides: a channel's values in runs, or channels side by side. */
enum { MOMENTS, GRADIENTS, SCALE, GRADIENT };
#define LAYOUTS "_{runs|columns}_{real}"
static const rdna__route routes[] = {
    [MOMENTS] = {.name = "moments",
                 .kernels = {"channel_partial_moments" LAYOUTS, "channel_moments_end_{f32|f64}"},
                 .when = "means and variances, in slices that are joined"},
    [GRADIENTS] = {.name = "gradients",
                   .kernels = {"channel_partial_gradients" LAYOUTS, "channel_gradients_end_{f32|f64}"},
                   .when = "the sums of a gradient, in slices that are joined"},
    [SCALE] = {.name = "scale", .kernels = {"channel_map_scale" LAYOUTS}, .when = "the result"},
    [GRADIENT] = {.name = "gradient", .kernels = {"channel_map_gradient" LAYOUTS}, .when = "the gradient of x"},
};
#undef LAYOUTS
RDNA_FIXED_ROUTES(rdna__channel_norm_routes, "batch_norm, group_norm, batch_norm_inference and their gradients", routes)

/* A call: what it is about, then how the kernels see it. */
struct call {
  const char *op_name;
  rdna_stream *stream;
  const rdna_tensor *x;
  int64_t channels, channel_groups; /* 0 of them: batch norm */
  int64_t samples, spatial;
  bool first, last; /* every tensor so far is dense with the channels before, or after, what is spatial */
};
struct view {
  int64_t outer, runs, cols, len, width;
};

static void *data_of(const rdna_tensor *tensor) { return tensor ? tensor->data : NULL; }

/* x itself, or a tensor like it. */
static rdna_status check_like_x(struct call *c, const char *argument, const rdna_tensor *tensor) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_real(c->op_name, argument, tensor));
  RDNA_TRY(rdna__check_same_dtype(c->op_name, argument, tensor, "x", c->x));
  RDNA_TRY(rdna__check_same_shape(c->op_name, argument, tensor, "x", c->x));
  if (rdna_tensor_count(tensor) == 0) return RDNA_OK;
  const rdna_tensor channels_last = rdna__dim_last(tensor, 1);
  c->first = c->first && rdna__is_contiguous(tensor), c->last = c->last && rdna__is_contiguous(&channels_last);
  if (!c->first && !c->last) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: %s is %s with stride %lld between channels; it must be contiguous or channels-last, as x is",
                      c->op_name, argument, rdna__tensor_text(tensor, text), (long long)tensor->stride[1]);
  }
  return RDNA_OK;
}

static rdna_status check_x(struct call *c, rdna_stream *stream) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_stream(c->op_name, stream));
  RDNA_TRY(rdna__check_real(c->op_name, "x", c->x));
  if (c->x->rank < 2) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: x is %s, of rank %d; it must be (n, channels, ...)", c->op_name,
                      rdna__tensor_text(c->x, text), c->x->rank);
  }
  c->stream = stream, c->first = c->last = true;
  c->samples = c->x->shape[0], c->channels = c->x->shape[1], c->spatial = 1;
  for (int i = 2; i < c->x->rank; i++) c->spatial *= c->x->shape[i];
  RDNA_TRY(check_like_x(c, "x", c->x));
  int64_t most = INT32_MAX;
  if (c->samples > most || c->channels > most || c->spatial > most || c->samples * c->channels > most ||
      c->samples * c->spatial > most) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: x is %s; samples times channels, or times what is spatial, are past 2^31",
                      c->op_name, rdna__tensor_text(c->x, text));
  }
  return RDNA_OK;
}

static rdna_status check_channel_groups(const struct call *c, int64_t channel_groups) {
  char text[RDNA__TENSOR_TEXT];
  if (channel_groups < 1 || c->channels % channel_groups != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: channel_groups is %lld and x is %s; it must be at least 1 and divide %lld", c->op_name,
                      (long long)channel_groups, rdna__tensor_text(c->x, text), (long long)c->channels);
  }
  return RDNA_OK;
}

/* (channels), of x's type or f32, and of the type of |like| if there is one; NULL is fine. */
static rdna_status check_row(const struct call *c, const char *argument, const rdna_tensor *row, const char *like_name,
                             const rdna_tensor *like) {
  if (!row) return RDNA_OK;
  RDNA_TRY(rdna__check_real(c->op_name, argument, row));
  RDNA_TRY(rdna__check_rank(c->op_name, argument, row, 1));
  RDNA_TRY(rdna__check_size(c->op_name, argument, row, 0, c->channels, "the number of channels"));
  RDNA_TRY(rdna__check_contiguous(c->op_name, argument, row));
  if (row->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(c->op_name, argument, row, "x", c->x));
  return like ? rdna__check_same_dtype(c->op_name, argument, row, like_name, like) : RDNA_OK;
}

/* A saved statistic: (channels), or (n, channel groups). */
static rdna_status check_saved(const struct call *c, const char *argument, const rdna_tensor *saved) {
  RDNA_TRY(rdna__check_tensor(c->op_name, argument, saved));
  RDNA_TRY(rdna__check_dtype(c->op_name, argument, saved, c->x->dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32));
  if (c->channel_groups > 0) {
    RDNA_TRY(rdna__check_rank(c->op_name, argument, saved, 2));
    RDNA_TRY(rdna__check_size(c->op_name, argument, saved, 0, c->samples, "the number of samples"));
    RDNA_TRY(rdna__check_size(c->op_name, argument, saved, 1, c->channel_groups, "the number of channel groups"));
  } else {
    RDNA_TRY(rdna__check_rank(c->op_name, argument, saved, 1));
    RDNA_TRY(rdna__check_size(c->op_name, argument, saved, 0, c->channels, "the number of channels"));
  }
  return rdna__check_contiguous(c->op_name, argument, saved);
}

/* |whole|: a group's channels are one run where they lie so, which is all that its statistics need. */
static struct view view_of(const struct call *c, bool whole) {
  struct view v = {1, c->samples, c->channels, c->spatial, 1};
  if (!c->first) v.runs = c->samples * c->spatial, v.len = 1;
  if (c->channel_groups == 0) return v;
  v.outer = c->samples, v.runs = c->first ? 1 : c->spatial, v.width = c->channels / c->channel_groups;
  if (whole && c->first) v.cols = c->channel_groups, v.len = c->spatial * v.width, v.width = 1;
  return v;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The power of two that covers |count|, from 1 to |most|. */
static uint32_t team_of(int64_t count, uint32_t most) {
  uint32_t team = 1;
  while (team < most && team < count) team *= 2;
  return team;
}

static int64_t values_in_16(const struct call *c) { return 16 / (int64_t)rdna_dtype_block_bytes(c->x->dtype); }

/* Cuts by the shape alone, so that a sum's order is the same on every GPU of a kind. */
static struct channel_partial_args cut(const struct call *c, const struct view *v) {
  struct channel_partial_args a = {.outer = v->outer, .cols = v->cols, .width = v->width};
  struct channel_slices s = {.runs = v->runs, .len = v->len, .slice_runs = v->runs, .parts = 1, .part = v->len};
  int64_t in_16 = values_in_16(c), columns = v->outer * v->cols, values = v->runs * v->len, slices;
  if (v->len == 1) {
    a.team = team_of(rdna__divide_up(v->cols, in_16), CHANNEL_THREADS);
    int64_t tiles = v->outer * rdna__divide_up(rdna__divide_up(v->cols, in_16), a.team);
    slices = least(rdna__divide_up(COLUMN_UNITS, tiles > 0 ? tiles : 1),
                   rdna__divide_up(v->runs, CHANNEL_THREADS / a.team * COLUMN_ROWS));
  } else {
    int64_t few = least(rdna__divide_up(FEW_UNITS, columns > 0 ? columns : 1), rdna__divide_up(values, LEAST_SLICE));
    slices = least(rdna__divide_up(RUN_UNITS, columns > 0 ? columns : 1), rdna__divide_up(values, SLICE_VALUES));
    if (slices < few) slices = few;
  }
  if (slices > 1 && slices <= v->runs) {
    s.slice_runs = rdna__divide_up(v->runs, slices);
  } else if (slices > 1) {
    s.slice_runs = 1;
    s.part = rdna__divide_up(rdna__divide_up(v->len, rdna__divide_up(slices, v->runs)), 64) *
             64; /* whole lines of a cache */
    s.parts = rdna__divide_up(v->len, s.part);
  }
  s.slices = s.slice_runs > 0 ? rdna__divide_up(v->runs, s.slice_runs) * s.parts : 0;
  if (s.slices == 0) s.slices = 1, s.slice_runs = 1; /* of nothing: one slice without values */
  if (v->len != 1) {
    a.wave = s.slice_runs * s.part <= WAVE_VALUES;
    a.team = team_of(rdna__divide_up(s.part, in_16 * CHANNEL_AHEAD), a.wave ? 32 : CHANNEL_THREADS);
  }
  a.slices = s;
  return a;
}

static size_t partial_values(const struct channel_partial_args *a) {
  return (size_t)2 * a->outer * a->slices.slices * a->cols;
}
static size_t keeper_bytes(const struct call *c) { return c->x->dtype == RDNA_F64 ? 8 : 4; }

static rdna_grid grid_of(int64_t groups) { return (rdna_grid){(uint32_t)least(groups, MOST_GROUPS), 1, 1}; }

static rdna_status launch(const struct call *c, int step, bool columns, int64_t groups, const void *args) {
  if (groups == 0) return RDNA_OK;
  return RDNA__ROUTE_LAUNCH(c->stream, &routes[step], 0, grid_of(groups), args, columns ? "columns" : "runs",
                            rdna_dtype_name(c->x->dtype));
}

/* Joins slices. */
static rdna_status launch_end(const struct call *c, int step, int64_t groups, const void *args) {
  return RDNA__ROUTE_LAUNCH(c->stream, &routes[step], 1, grid_of(groups), args,
                            c->x->dtype == RDNA_F64 ? "f64" : "f32");
}

static rdna_status launch_partial(const struct call *c, int step, const struct channel_partial_args *a) {
  int64_t units = (int64_t)a->outer * a->slices.slices * a->cols;
  if (units > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %lld partial sums are more than 2^31; split the tensor", c->op_name,
                      (long long)units);
  }
  if (a->slices.len == 1) {
    units = least(units, rdna__divide_up(units, a->team) + (int64_t)a->outer * a->slices.slices);
  } else if (a->wave) {
    units = rdna__divide_up(units, CHANNEL_THREADS / 64);
  }
  return launch(c, step, a->slices.len == 1, units, a);
}

/* Fills the sizes and strides of the work in |a| and launches. */
static rdna_status launch_map(const struct call *c, int step, const struct view *v, struct channel_map_args *a) {
  int64_t in_16 = values_in_16(c), groups;
  a->outer = v->outer, a->runs = v->runs, a->cols = v->cols, a->len = v->len, a->width = v->width;
  a->parts = 1, a->part = v->len;
  if (v->len == 1) {
    a->team = team_of(rdna__divide_up(v->cols, in_16), CHANNEL_THREADS);
    a->part = CHANNEL_THREADS / a->team * COLUMN_ROWS;
    groups = v->outer * rdna__divide_up(v->runs, a->part) * rdna__divide_up(rdna__divide_up(v->cols, in_16), a->team);
  } else {
    a->team = team_of(rdna__divide_up(v->len, in_16 * CHANNEL_AHEAD), CHANNEL_THREADS);
    if (v->len > 2 * MAP_VALUES) {
      a->part = rdna__divide_up(rdna__divide_up(v->len, rdna__divide_up(v->len, MAP_VALUES)), 64) * 64;
      a->parts = rdna__divide_up(v->len, a->part);
    }
    groups = rdna__divide_up(v->outer * v->runs * v->cols, CHANNEL_THREADS / a->team) * a->parts;
  }
  if (groups > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %lld pieces of work are more than 2^31; split the tensor", c->op_name,
                      (long long)groups);
  }
  return launch(c, step, a->len == 1, groups, a);
}

/* ---- forward ---- */

struct forward {
  const rdna_tensor *weight, *bias, *running_mean, *running_var, *out, *mean, *inverse;
  double momentum, epsilon;
};

static struct channel_map_args map_args(const struct call *c, const struct forward *f) {
  const rdna_tensor *row = f->weight ? f->weight : f->bias;
  return (struct channel_map_args){.first = c->x->data,
                                   .out = f->out->data,
                                   .mean = f->mean->data,
                                   .spread = f->inverse->data,
                                   .weight = data_of(f->weight),
                                   .bias = data_of(f->bias),
                                   .epsilon = f->epsilon,
                                   .statistic_f32 = f->mean->dtype == RDNA_F32,
                                   .weight_f32 = row && row->dtype == RDNA_F32};
}

static rdna_status launch_statistics(const struct call *c, const struct forward *f, void *partial) {
  struct view v = view_of(c, true);
  struct channel_partial_args a = cut(c, &v);
  a.x = c->x->data, a.partial = partial;
  const rdna_tensor *running = f->running_mean ? f->running_mean : f->running_var;
  struct channel_moments_end_args end = {.partial = partial,
                                         .mean = f->mean->data,
                                         .inverse = f->inverse->data,
                                         .running_mean = data_of(f->running_mean),
                                         .running_var = data_of(f->running_var),
                                         .slices = a.slices,
                                         .outer = v.outer,
                                         .cols = v.cols,
                                         .width = v.width,
                                         .momentum = f->momentum,
                                         .epsilon = f->epsilon,
                                         .running_dtype = running ? (uint32_t)running->dtype : 0};
  int64_t outs = v.outer * (v.cols / v.width);
  if (outs == 0) return RDNA_OK;
  RDNA_TRY(launch_partial(c, MOMENTS, &a));
  return launch_end(c, MOMENTS, rdna__divide_up(outs, CHANNEL_END_OUTS), &end);
}

static rdna_status forward(struct call *c, const struct forward *f) {
  RDNA_TRY(rdna__check_epsilon(c->op_name, f->epsilon));
  RDNA_TRY(check_row(c, "weight", f->weight, NULL, NULL));
  RDNA_TRY(check_row(c, "bias", f->bias, "weight", f->weight));
  RDNA_TRY(check_row(c, "running_mean", f->running_mean, NULL, NULL));
  RDNA_TRY(check_row(c, "running_var", f->running_var, "running_mean", f->running_mean));
  RDNA_TRY(check_like_x(c, "out", f->out));
  RDNA_TRY(check_saved(c, "saved_mean", f->mean));
  RDNA_TRY(check_saved(c, "saved_inverse", f->inverse));
  const rdna__named written[] = {{"out", f->out},
                                 {"saved_mean", f->mean},
                                 {"saved_inverse", f->inverse},
                                 {"running_mean", f->running_mean},
                                 {"running_var", f->running_var}};
  const rdna__named read[] = {{"x", c->x}, {"weight", f->weight}, {"bias", f->bias}};
  RDNA_TRY(rdna__check_written_apart(c->op_name, written, 5, read, 3, 1));
  struct view v = view_of(c, true), planes = view_of(c, false);
  struct channel_partial_args a = cut(c, &v);
  struct channel_map_args map = map_args(c, f);
  rdna__scratch scratch = {.stream = c->stream, .holder = c->op_name};
  void *partial;
  RDNA_TRY(rdna__scratch_take(&scratch, partial_values(&a) * keeper_bytes(c), &partial));
  RDNA_TRY(rdna__scratch_release(&scratch, launch_statistics(c, f, partial)));
  return launch_map(c, SCALE, &planes, &map);
}

rdna_status rdna_op_batch_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                               const rdna_tensor *bias, const rdna_tensor *running_mean, const rdna_tensor *running_var,
                               double momentum, double epsilon, const rdna_tensor *out, const rdna_tensor *saved_mean,
                               const rdna_tensor *saved_inverse) {
  struct call c = {.op_name = "batch_norm", .x = x};
  RDNA_TRY(check_x(&c, stream));
  const struct forward f = {weight, bias, running_mean, running_var, out, saved_mean, saved_inverse, momentum, epsilon};
  return forward(&c, &f);
}

rdna_status rdna_op_group_norm(rdna_stream *stream, const rdna_tensor *x, int64_t channel_groups,
                               const rdna_tensor *weight, const rdna_tensor *bias, double epsilon,
                               const rdna_tensor *out, const rdna_tensor *saved_mean,
                               const rdna_tensor *saved_inverse) {
  struct call c = {.op_name = "group_norm", .x = x, .channel_groups = channel_groups};
  RDNA_TRY(check_x(&c, stream));
  RDNA_TRY(check_channel_groups(&c, channel_groups));
  const struct forward f = {weight, bias, NULL, NULL, out, saved_mean, saved_inverse, 0, epsilon};
  return forward(&c, &f);
}

rdna_status rdna_op_batch_norm_inference(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                                         const rdna_tensor *bias, const rdna_tensor *mean, const rdna_tensor *variance,
                                         double epsilon, const rdna_tensor *residual, bool relu,
                                         const rdna_tensor *out) {
  struct call c = {.op_name = "batch_norm_inference", .x = x};
  RDNA_TRY(check_x(&c, stream));
  RDNA_TRY(rdna__check_epsilon(c.op_name, epsilon));
  RDNA_TRY(check_row(&c, "weight", weight, NULL, NULL));
  RDNA_TRY(check_row(&c, "bias", bias, "weight", weight));
  RDNA_TRY(rdna__check_tensor(c.op_name, "mean", mean));
  RDNA_TRY(rdna__check_tensor(c.op_name, "variance", variance));
  RDNA_TRY(check_row(&c, "mean", mean, NULL, NULL));
  RDNA_TRY(check_row(&c, "variance", variance, "mean", mean));
  if (residual) RDNA_TRY(check_like_x(&c, "residual", residual));
  RDNA_TRY(check_like_x(&c, "out", out));
  const rdna__named written[] = {{"out", out}},
                    read[] = {{"x", x},       {"residual", residual}, {"weight", weight},
                              {"bias", bias}, {"mean", mean},         {"variance", variance}};
  RDNA_TRY(rdna__check_written_apart(c.op_name, written, 1, read, 6, 2));
  const struct forward f = {weight, bias, NULL, NULL, out, mean, variance, 0, epsilon};
  struct view planes = view_of(&c, false);
  struct channel_map_args map = map_args(&c, &f);
  map.variance = 1, map.relu = relu, map.second = data_of(residual);
  return launch_map(&c, SCALE, &planes, &map);
}

/* ---- backward ---- */

struct backward {
  const rdna_tensor *dout, *weight, *mean, *spread, *dx, *dweight, *dbias;
  double epsilon;
  bool constant; /* mean and spread, which is a variance then, do not depend on x */
};

static rdna_status launch_sums(const struct call *c, const struct backward *b, const struct view *v,
                               struct channel_partial_args *a, void *slope) {
  const rdna_tensor *gradient = b->dweight ? b->dweight : b->dbias;
  int64_t outs = v->outer * (v->cols / v->width), slope_groups = slope ? rdna__divide_up(outs, CHANNEL_END_OUTS) : 0;
  int64_t groups = slope_groups + (gradient ? rdna__divide_up(v->cols, CHANNEL_END_OUTS) : 0);
  a->x = c->x->data, a->dout = b->dout->data, a->mean = b->mean->data, a->mean_f32 = b->mean->dtype == RDNA_F32;
  struct channel_gradients_end_args end = {
      .partial = a->partial,
      .spread = b->spread->data,
      .weight = data_of(b->weight),
      .slope = slope,
      .dweight = data_of(b->dweight),
      .dbias = data_of(b->dbias),
      .slices = a->slices,
      .outer = rdna_tensor_count(c->x) > 0 ? v->outer : 0, /* sums of nothing are 0 */
      .cols = v->cols,
      .width = v->width,
      .epsilon = b->epsilon,
      .variance = b->constant,
      .slope_groups = (uint32_t)slope_groups,
      .spread_dtype = (uint32_t)b->spread->dtype,
      .weight_dtype = b->weight ? (uint32_t)b->weight->dtype : 0,
      .gradient_dtype = gradient ? (uint32_t)gradient->dtype : 0};
  if (groups == 0) return RDNA_OK;
  RDNA_TRY(launch_partial(c, GRADIENTS, a));
  return launch_end(c, GRADIENTS, groups, &end);
}

static rdna_status launch_slopes(const struct call *c, const struct backward *b, const struct view *v,
                                 const void *slope) {
  struct channel_map_args map = {.first = b->dout->data,
                                 .second = slope ? c->x->data : NULL,
                                 .out = b->dx->data,
                                 .mean = b->mean->data,
                                 .spread = b->spread->data,
                                 .slope = slope,
                                 .weight = data_of(b->weight),
                                 .epsilon = b->epsilon,
                                 .variance = b->constant,
                                 .statistic_f32 = b->mean->dtype == RDNA_F32,
                                 .weight_f32 = b->weight && b->weight->dtype == RDNA_F32};
  return launch_map(c, GRADIENT, v, &map);
}

static bool of_one(const struct backward *b, const struct view *v) {
  return !b->constant && v->width * v->runs * v->len == 1;
}

/* A group of one value has no gradient, whereas the terms of the formula would only cancel up to rounding, of values
 * times the inverse deviation. x - mean is that 0, or not a number where x is none. */
static rdna_status launch_nothing(const struct call *c, const struct backward *b, const struct view *v) {
  struct channel_map_args map = {.first = c->x->data,
                                 .out = b->dx->data,
                                 .mean = b->mean->data,
                                 .spread = b->spread->data,
                                 .statistic_f32 = b->mean->dtype == RDNA_F32};
  return launch_map(c, SCALE, v, &map);
}

static rdna_status launch_dx(const struct call *c, const struct backward *b, const struct view *v, const void *slope) {
  return of_one(b, v) ? launch_nothing(c, b, v) : launch_slopes(c, b, v, slope);
}

static rdna_status backward(struct call *c, const struct backward *b) {
  RDNA_TRY(rdna__check_epsilon(c->op_name, b->epsilon));
  RDNA_TRY(check_like_x(c, "dout", b->dout));
  RDNA_TRY(check_row(c, "weight", b->weight, NULL, NULL));
  if (b->dx) RDNA_TRY(check_like_x(c, "dx", b->dx));
  RDNA_TRY(check_row(c, "dweight", b->dweight, NULL, NULL));
  RDNA_TRY(check_row(c, "dbias", b->dbias, "dweight", b->dweight));
  const rdna__named written[] = {{"dx", b->dx}, {"dweight", b->dweight}, {"dbias", b->dbias}};
  const rdna__named read[] = {
      {"dout", b->dout}, {"x", c->x}, {"weight", b->weight}, {"mean", b->mean}, {"spread", b->spread}};
  RDNA_TRY(rdna__check_written_apart(c->op_name, written, 3, read, 5, 2));
  struct view v = view_of(c, false);
  bool slopes = b->dx && !b->constant && !of_one(b, &v);
  if (!slopes && !b->dweight && !b->dbias) return b->dx ? launch_dx(c, b, &v, NULL) : RDNA_OK;
  struct channel_partial_args a = cut(c, &v);
  size_t slope_values = slopes ? (size_t)(2 * v.outer * (v.cols / v.width)) : 0;
  rdna__scratch scratch = {.stream = c->stream, .holder = c->op_name};
  void *partial;
  RDNA_TRY(rdna__scratch_take(&scratch, (partial_values(&a) + slope_values) * keeper_bytes(c), &partial));
  a.partial = partial;
  void *slope = slopes ? (char *)partial + partial_values(&a) * keeper_bytes(c) : NULL;
  rdna_status status = launch_sums(c, b, &v, &a, slope);
  if (status == RDNA_OK && b->dx) status = launch_dx(c, b, &v, slope);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status backward_saved(struct call *c, const rdna_tensor *dout, const rdna_tensor *weight,
                                  const rdna_tensor *mean, const rdna_tensor *inverse, const rdna_tensor *dx,
                                  const rdna_tensor *dweight, const rdna_tensor *dbias) {
  const struct backward b = {dout, weight, mean, inverse, dx, dweight, dbias, 0, false};
  RDNA_TRY(check_saved(c, "saved_mean", mean));
  RDNA_TRY(check_saved(c, "saved_inverse", inverse));
  return backward(c, &b);
}

rdna_status rdna_op_batch_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                        const rdna_tensor *weight, const rdna_tensor *saved_mean,
                                        const rdna_tensor *saved_inverse, const rdna_tensor *dx,
                                        const rdna_tensor *dweight, const rdna_tensor *dbias) {
  struct call c = {.op_name = "batch_norm_backward", .x = x};
  RDNA_TRY(check_x(&c, stream));
  return backward_saved(&c, dout, weight, saved_mean, saved_inverse, dx, dweight, dbias);
}

rdna_status rdna_op_group_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                        int64_t channel_groups, const rdna_tensor *weight,
                                        const rdna_tensor *saved_mean, const rdna_tensor *saved_inverse,
                                        const rdna_tensor *dx, const rdna_tensor *dweight, const rdna_tensor *dbias) {
  struct call c = {.op_name = "group_norm_backward", .x = x, .channel_groups = channel_groups};
  RDNA_TRY(check_x(&c, stream));
  RDNA_TRY(check_channel_groups(&c, channel_groups));
  return backward_saved(&c, dout, weight, saved_mean, saved_inverse, dx, dweight, dbias);
}

rdna_status rdna_op_batch_norm_inference_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                                  const rdna_tensor *weight, const rdna_tensor *mean,
                                                  const rdna_tensor *variance, double epsilon, const rdna_tensor *dx,
                                                  const rdna_tensor *dweight, const rdna_tensor *dbias) {
  struct call c = {.op_name = "batch_norm_inference_backward", .x = x};
  RDNA_TRY(check_x(&c, stream));
  RDNA_TRY(rdna__check_tensor(c.op_name, "mean", mean));
  RDNA_TRY(rdna__check_tensor(c.op_name, "variance", variance));
  RDNA_TRY(check_row(&c, "mean", mean, NULL, NULL));
  RDNA_TRY(check_row(&c, "variance", variance, "mean", mean));
  const struct backward b = {dout, weight, mean, variance, dx, dweight, dbias, epsilon, true};
  return backward(&c, &b);
}
