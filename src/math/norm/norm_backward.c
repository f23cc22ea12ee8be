/* Gradients of layer_norm and rms_norm. */
#include <math.h>

#include "math/check.h"
#include "math/norm/norm_backward_kernels.h"
#include "rdna/memory.h"
#include "rdna/op/norm.h"

enum { TYPES = RDNA_BF16 + 1 }; /* f32, f16, bf16: the first of the enumeration */
enum { LEAST_SLICES = 64, MOST_SLICES = 512, ROWS_OF_A_WAVE_SLICE = 8 };

/* Two groups for each compute unit, as many as its registers hold, while partial sums stay small beside what they
 * sum. */
static int64_t most_slices(rdna_device *device) {
  int64_t slices = 2 * (int64_t)rdna_device_get_info(device)->compute_units;
  return slices < LEAST_SLICES ? LEAST_SLICES : slices > MOST_SLICES ? MOST_SLICES : slices;
}

/* [type of the values][weights are f32] */
static const char *const kernels[TYPES][2] = {{"norm_backward_f32", "norm_backward_f32"},
                                              {"norm_backward_f16", "norm_backward_f16_wf32"},
                                              {"norm_backward_bf16", "norm_backward_bf16_wf32"}};
static const char *const long_kernels[TYPES][2] = {{"norm_backward_long_f32", "norm_backward_long_f32"},
                                                   {"norm_backward_long_f16", "norm_backward_long_f16_wf32"},
                                                   {"norm_backward_long_bf16", "norm_backward_long_bf16_wf32"}};

struct gradients {
  const char *operator;
  const rdna_tensor *dout, *x, *weight, *dx, *dweight, *dbias;
};

static rdna_status check_rows_like_x(const struct gradients *g, const char *argument, const rdna_tensor *tensor,
                                     int64_t *out_stride) {
  int64_t rows, cols;
  RDNA_TRY(rdna__check_float(g->operator, argument, tensor));
  RDNA_TRY(rdna__check_same_dtype(g->operator, argument, tensor, "x", g->x));
  RDNA_TRY(rdna__check_same_shape(g->operator, argument, tensor, "x", g->x));
  return rdna__check_rows(g->operator, argument, tensor, &rows, &cols, out_stride);
}

static rdna_status check_row(const struct gradients *g, const char *argument, const rdna_tensor *row, int64_t cols) {
  if (!row) return RDNA_OK;
  RDNA_TRY(rdna__check_float(g->operator, argument, row));
  RDNA_TRY(rdna__check_rank(g->operator, argument, row, 1));
  RDNA_TRY(rdna__check_size(g->operator, argument, row, 0, cols, "the length of a row"));
  RDNA_TRY(rdna__check_contiguous(g->operator, argument, row));
  if (row->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(g->operator, argument, row, "x", g->x));
  return RDNA_OK;
}

/* What is written may not be what is read, except dx on dout or x value by value. */
static rdna_status check_written_apart(const struct gradients *g) {
  const rdna_tensor *written[] = {g->dx, g->dweight, g->dbias}, *read[] = {g->dout, g->x, g->weight};
  static const char *const written_names[] = {"dx", "dweight", "dbias"}, *const read_names[] = {"dout", "x", "weight"};
  for (int i = 0; i < 3; i++) {
    for (int j = 0; written[i] && j < 3; j++) {
      if (!read[j]) continue;
      RDNA_TRY(i == 0 && j < 2 ? rdna__check_overlap(g->operator, written_names[i], written[i], read_names[j], read[j])
                               : rdna__check_apart(g->operator, written_names[i], written[i], read_names[j], read[j]));
    }
    for (int j = 0; written[i] && j < i; j++) {
      if (written[j]) {
        RDNA_TRY(rdna__check_apart(g->operator, written_names[i], written[i], written_names[j], written[j]));
      }
    }
  }
  return RDNA_OK;
}

static rdna_status check(const struct gradients *g, float epsilon, struct norm_backward_args *args) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_float(g->operator, "x", g->x));
  RDNA_TRY(rdna__check_rows(g->operator, "x", g->x, &args->rows, &args->cols, &args->x_stride));
  RDNA_TRY(check_rows_like_x(g, "dout", g->dout, &args->dout_stride));
  RDNA_TRY(check_rows_like_x(g, "dx", g->dx, &args->dx_stride));
  RDNA_TRY(check_row(g, "weight", g->weight, args->cols));
  RDNA_TRY(check_row(g, "dweight", g->dweight, args->cols));
  RDNA_TRY(check_row(g, "dbias", g->dbias, args->cols));
  if (args->rows > 1 && args->dx_stride > -args->cols && args->dx_stride < args->cols) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: dx is %s with rows %lld apart; rows of %lld would overlap",
                      g->operator, rdna__tensor_text(g->dx, text), (long long)args->dx_stride, (long long)args->cols);
  }
  if (!(epsilon >= 0) || isinf(epsilon)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: epsilon is %g; it must be finite and not negative",
                      g->operator,(double) epsilon);
  }
  return check_written_apart(g);
}

static rdna_status sum_columns(rdna_stream *stream, const struct gradients *g, const struct norm_backward_args *of) {
  const rdna_tensor *out[] = {g->dweight, g->dbias};
  struct column_sum_args args = {.partial = of->partial, .rows = of->slices, .cols = of->cols};
  rdna_grid grid = {0, 0, 1};
  for (uint32_t m = 0; m < 2; m++) {
    if (!out[m]) continue;
    args.out[m] = out[m]->data, args.dtype[m] = (uint32_t)out[m]->dtype;
    grid.y = m + 1;
  }
  if (grid.y == 0) return RDNA_OK;
  RDNA_TRY(rdna__check_groups("column_sum", args.cols, COLUMN_SUM_COLS, &grid.x));
  return rdna__launch_named(stream, "column_sum", grid, &args);
}

static rdna_status launch(rdna_stream *stream, const struct gradients *g, const struct norm_backward_args *args) {
  bool weight_f32 = g->weight && g->weight->dtype == RDNA_F32;
  if (args->slices > 0) {
    const char *const(*of)[2] = args->cols > NORM_BACKWARD_HELD_COLS ? long_kernels : kernels;
    RDNA_TRY(rdna__launch_named(stream, of[g->x->dtype][weight_f32], (rdna_grid){(uint32_t)args->slices, 1, 1}, args));
  }
  return sum_columns(stream, g, args);
}

static rdna_status backward(rdna_stream *stream, const struct gradients *g, float epsilon, bool centred) {
  struct norm_backward_args args = {.epsilon = epsilon, .centred = centred};
  void *partial = NULL;
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the stream is NULL; pass a stream", g->operator);
  RDNA_TRY(check(g, epsilon, &args));
  int64_t per_slice = args.cols <= NORM_BACKWARD_WAVE_COLS ? ROWS_OF_A_WAVE_SLICE : 1;
  int64_t slices = (args.rows + per_slice - 1) / per_slice;
  rdna_device *device = rdna_stream_device(stream);
  args.slices = slices < most_slices(device) ? slices : most_slices(device);
  args.dout = g->dout->data, args.x = g->x->data, args.dx = g->dx->data;
  args.weight = g->weight ? g->weight->data : NULL;
  size_t bytes = (size_t)(2 * args.slices * args.cols) * sizeof(float);
  RDNA_TRY(rdna_memory_alloc_named(device, bytes, stream, g->operator, & partial));
  args.partial = partial;
  rdna_status status = launch(stream, g, &args);
  rdna_status freed = rdna_memory_free(device, partial);
  return status != RDNA_OK ? status : freed;
}

rdna_status rdna_op_rms_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                      const rdna_tensor *weight, float epsilon, const rdna_tensor *dx,
                                      const rdna_tensor *dweight) {
  struct gradients g = {"rms_norm_backward", dout, x, weight, dx, dweight, NULL};
  return backward(stream, &g, epsilon, false);
}

rdna_status rdna_op_layer_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                        const rdna_tensor *weight, float epsilon, const rdna_tensor *dx,
                                        const rdna_tensor *dweight, const rdna_tensor *dbias) {
  struct gradients g = {"layer_norm_backward", dout, x, weight, dx, dweight, dbias};
  return backward(stream, &g, epsilon, true);
}
