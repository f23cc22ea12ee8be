#include "rdna/op/norm.h"

#include "math/common/plan/check.h"
#include "math/common/plan/scratch.h"
#include "math/norm/long_norm_kernels.h"
#include "math/norm/norm_kernels.h"

enum { TYPES = RDNA_BF16 + 1 }; /* f32, f16, bf16: the first of the enumeration */

enum {
  MANY_ROWS = 16384,  /* from where rows that fit a wave's registers are a wave's */
  ROWS_OF_A_UNIT = 4, /* no more for each compute unit, and long rows are cut */
  PARTS_OF_A_UNIT = 3 /* groups of long_norm that run at once */
};

/* [type of the values][weights are f32] */
#define NORM_NAMES(name) \
  {{#name "_f32", #name "_f32"}, {#name "_f16", #name "_f16_wf32"}, {#name "_bf16", #name "_bf16_wf32"}}
struct kernels {
  const char *of_rows[TYPES][2], *of_waves[TYPES][2], *shifted[TYPES][2];
  int64_t groups_of_unit; /* that run at once, where registers suffice */
};
static const struct kernels rms_norm_kernels = {NORM_NAMES(rms_norm), NORM_NAMES(rms_norm_waves),
                                                NORM_NAMES(rms_norm_shifted), 4};
static const struct kernels add_rms_norm_kernels = {NORM_NAMES(add_rms_norm), NORM_NAMES(add_rms_norm_waves),
                                                    NORM_NAMES(add_rms_norm_shifted), 3};
static const struct kernels layer_norm_kernels = {NORM_NAMES(layer_norm), NORM_NAMES(layer_norm_waves),
                                                  NORM_NAMES(layer_norm_shifted), 3};

static const char *const part_kernels[TYPES] = {"long_norm_part_f32", "long_norm_part_f16", "long_norm_part_bf16"};
static const char *const finish_kernels[TYPES][2] = NORM_NAMES(long_norm_finish);

struct rows {
  int64_t rows, cols;
  int64_t x_stride, residual_stride, out_stride;
};

static rdna_status check_input(const char *op_name, const char *argument, const rdna_tensor *in, int64_t *out_stride,
                               const rdna_tensor *out, struct rows *rows) {
  RDNA_TRY(rdna__check_float(op_name, argument, in));
  RDNA_TRY(rdna__check_same_dtype(op_name, argument, in, "out", out));
  RDNA_TRY(rdna__check_same_shape(op_name, argument, in, "out", out));
  RDNA_TRY(rdna__check_rows(op_name, argument, in, &rows->rows, &rows->cols, out_stride));
  return rdna__check_overlap(op_name, "out", out, argument, in);
}

static rdna_status check_weight(const char *op_name, const char *argument, const rdna_tensor *weight,
                                const rdna_tensor *out, int64_t cols) {
  if (!weight) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(op_name, argument, weight));
  RDNA_TRY(rdna__check_rank(op_name, argument, weight, 1));
  RDNA_TRY(rdna__check_size(op_name, argument, weight, 0, cols, "the length of a row"));
  RDNA_TRY(rdna__check_contiguous(op_name, argument, weight));
  if (weight->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(op_name, argument, weight, "out", out));
  return rdna__check_apart(op_name, "out", out, argument, weight);
}

static rdna_status check_out(const char *op_name, const rdna_tensor *out, double epsilon, struct rows *rows) {
  RDNA_TRY(rdna__check_float(op_name, "out", out));
  RDNA_TRY(rdna__check_rows(op_name, "out", out, &rows->rows, &rows->cols, &rows->out_stride));
  RDNA_TRY(rdna__check_written_rows(op_name, "out", out, rows->rows, rows->cols, rows->out_stride));
  return rdna__check_epsilon(op_name, epsilon);
}

static void *data_of(const rdna_tensor *tensor) { return tensor ? tensor->data : NULL; }
static uintptr_t address_of(const rdna_tensor *tensor) { return (uintptr_t)data_of(tensor); }

struct operands {
  const rdna_tensor *x, *residual, *weight, *bias, *out;
};

/* Parts of long rows. */
static rdna_status launch_parts(rdna_stream *stream, const char *op_name, const struct operands *of,
                                const struct rows *rows, double epsilon, bool centred) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  int64_t step = LONG_NORM_STEP_BYTES / (int64_t)rdna_dtype_block_bytes(of->out->dtype);
  int64_t steps = (rows->cols - 1) / step + 1, steps_of_a_part = (steps - 1) / LONG_NORM_MOST_PARTS + 1;
  int64_t parts = (steps - 1) / steps_of_a_part + 1;
  int64_t units = rdna_device_get_info(rdna_stream_device(stream))->compute_units;
  int64_t most = PARTS_OF_A_UNIT * (units > 0 ? units : 1), items = rows->rows * parts;
  rdna_grid grid = {(uint32_t)(items < most ? items : most), 1, 1};
  const rdna_tensor *factors = of->weight ? of->weight : of->bias;
  const char *finish_kernel = finish_kernels[of->out->dtype][factors && factors->dtype == RDNA_F32];
  void *sums;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)items * 2 * sizeof(float), &sums));
  struct long_norm_part_args part = {.x = of->x->data,
                                     .residual = data_of(of->residual),
                                     .mean = sums,
                                     .squares = (float *)sums + items,
                                     .rows = rows->rows,
                                     .cols = rows->cols,
                                     .parts = parts,
                                     .part_cols = steps_of_a_part * step,
                                     .x_stride = rows->x_stride,
                                     .residual_stride = rows->residual_stride,
                                     .centred = centred};
  struct long_norm_finish_args finish = {.x = of->residual ? of->residual->data : of->x->data,
                                         .weight = data_of(of->weight),
                                         .bias = data_of(of->bias),
                                         .mean = part.mean,
                                         .squares = part.squares,
                                         .out = of->out->data,
                                         .rows = rows->rows,
                                         .cols = rows->cols,
                                         .parts = parts,
                                         .part_cols = part.part_cols,
                                         .x_stride = of->residual ? rows->residual_stride : rows->x_stride,
                                         .out_stride = rows->out_stride,
                                         .epsilon = (float)epsilon};
  rdna_status status = rdna__launch_named(stream, part_kernels[of->out->dtype], grid, &part);
  if (status == RDNA_OK) status = rdna__launch_named(stream, finish_kernel, grid, &finish);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status launch_rows(rdna_stream *stream, const char *op_name, const struct kernels *kernels,
                               const struct operands *of, const struct rows *rows, double epsilon, bool centred,
                               const void *args) {
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the stream is NULL; pass a stream", op_name);
  rdna_grid grid = {rdna__groups_in_turn(rows->rows), 1, 1};
  const rdna_tensor *out = of->out, *weight = of->weight ? of->weight : of->bias;
  int64_t value = (int64_t)rdna_dtype_block_bytes(out->dtype), row_bytes = rows->cols * value;
  uint64_t sizes = (uint64_t)(rows->cols | rows->x_stride | rows->residual_stride | rows->out_stride);
  uintptr_t addresses =
      address_of(of->x) | address_of(of->residual) | address_of(of->weight) | address_of(of->bias) | address_of(out);
  bool aligned = ((addresses | sizes * (uint64_t)value) & 15) == 0, is_short = row_bytes <= NORM_SHORT_BYTES;
  bool is_long = aligned ? rows->cols > NORM_KEPT_COLS : row_bytes > NORM_SHIFTED_BYTES;
  if (is_long && rows->rows > 0) {
    int64_t units = rdna_device_get_info(rdna_stream_device(stream))->compute_units;
    if (!aligned || rows->rows <= ROWS_OF_A_UNIT * units) {
      return launch_parts(stream, op_name, of, rows, epsilon, centred);
    }
  }
  bool waves = aligned && !is_short && row_bytes <= NORM_WAVE_BYTES && rows->rows >= MANY_ROWS;
  bool shifted = !aligned && rows->cols > NORM_WAVE_COLS && row_bytes <= NORM_SHIFTED_BYTES;
  if (waves || rows->cols <= NORM_WAVE_COLS || (is_short && !shifted))
    grid.x = rdna__groups_of_waves(stream, rows->rows, row_bytes, NORM_THREADS);
  bool ahead =
      shifted || (aligned && !waves && (row_bytes <= NORM_LANES_BYTES || (!is_short && row_bytes <= NORM_AHEAD_BYTES)));
  if (ahead) {
    /* no more than run at once, as each has the next of its rows on its way */
    int64_t units = rdna_device_get_info(rdna_stream_device(stream))->compute_units;
    int64_t most = (out->dtype == RDNA_F32 ? 3 : kernels->groups_of_unit) * (units > 0 ? units : 1);
    if (shifted && most >= 8) most = most / 8 * 8; /* so that all rows of a group begin equally far from 16 bytes */
    if (grid.x > most) grid.x = (uint32_t)most;
  }
  bool weight_f32 = weight && weight->dtype == RDNA_F32;
  const char *kernel = (waves     ? kernels->of_waves
                        : shifted ? kernels->shifted
                                  : kernels->of_rows)[out->dtype][weight_f32];
  return rdna__launch_named(stream, kernel, grid, args);
}

rdna_status rdna_op_rms_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight, double epsilon,
                             const rdna_tensor *out) {
  struct rows rows = {0};
  RDNA_TRY(check_out("rms_norm", out, epsilon, &rows));
  RDNA_TRY(check_input("rms_norm", "x", x, &rows.x_stride, out, &rows));
  RDNA_TRY(check_weight("rms_norm", "weight", weight, out, rows.cols));
  struct rms_norm_args args = {.x = x->data,
                               .weight = data_of(weight),
                               .out = out->data,
                               .rows = rows.rows,
                               .cols = rows.cols,
                               .x_stride = rows.x_stride,
                               .out_stride = rows.out_stride,
                               .epsilon = (float)epsilon};
  struct operands operands = {.x = x, .weight = weight, .out = out};
  return launch_rows(stream, "rms_norm", &rms_norm_kernels, &operands, &rows, epsilon, false, &args);
}

rdna_status rdna_op_add_rms_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *residual,
                                 const rdna_tensor *weight, double epsilon, const rdna_tensor *out) {
  static const char name[] = "add_rms_norm";
  struct rows rows = {0};
  RDNA_TRY(check_out(name, out, epsilon, &rows));
  RDNA_TRY(check_input(name, "x", x, &rows.x_stride, out, &rows));
  RDNA_TRY(check_input(name, "residual", residual, &rows.residual_stride, out, &rows));
  RDNA_TRY(rdna__check_written_rows(name, "residual", residual, rows.rows, rows.cols, rows.residual_stride));
  RDNA_TRY(check_weight(name, "weight", weight, out, rows.cols));
  RDNA_TRY(rdna__check_apart(name, "residual", residual, "x", x));
  RDNA_TRY(rdna__check_apart(name, "residual", residual, "out", out));
  if (weight) RDNA_TRY(rdna__check_apart(name, "residual", residual, "weight", weight));
  struct add_rms_norm_args args = {.x = x->data,
                                   .residual = residual->data,
                                   .weight = data_of(weight),
                                   .out = out->data,
                                   .rows = rows.rows,
                                   .cols = rows.cols,
                                   .x_stride = rows.x_stride,
                                   .residual_stride = rows.residual_stride,
                                   .out_stride = rows.out_stride,
                                   .epsilon = (float)epsilon};
  struct operands operands = {.x = x, .residual = residual, .weight = weight, .out = out};
  return launch_rows(stream, name, &add_rms_norm_kernels, &operands, &rows, epsilon, false, &args);
}

rdna_status rdna_op_layer_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                               const rdna_tensor *bias, double epsilon, const rdna_tensor *out) {
  struct rows rows = {0};
  RDNA_TRY(check_out("layer_norm", out, epsilon, &rows));
  RDNA_TRY(check_input("layer_norm", "x", x, &rows.x_stride, out, &rows));
  RDNA_TRY(check_weight("layer_norm", "weight", weight, out, rows.cols));
  RDNA_TRY(check_weight("layer_norm", "bias", bias, out, rows.cols));
  if (weight && bias) RDNA_TRY(rdna__check_same_dtype("layer_norm", "bias", bias, "weight", weight));
  struct layer_norm_args args = {.x = x->data,
                                 .weight = data_of(weight),
                                 .bias = data_of(bias),
                                 .out = out->data,
                                 .rows = rows.rows,
                                 .cols = rows.cols,
                                 .x_stride = rows.x_stride,
                                 .out_stride = rows.out_stride,
                                 .epsilon = (float)epsilon};
  struct operands operands = {.x = x, .weight = weight, .bias = bias, .out = out};
  return launch_rows(stream, "layer_norm", &layer_norm_kernels, &operands, &rows, epsilon, true, &args);
}
