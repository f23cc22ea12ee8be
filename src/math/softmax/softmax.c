/* Softmax and log-softmax of rows. */
#include "math/softmax/softmax.h"

#include "math/common/plan/check.h"
#include "math/common/plan/scratch.h"
#include "math/softmax/softmax_kernels.h"

enum { TYPES = RDNA_BF16 + 1 }; /* f32, f16, bf16: the first of the enumeration */
enum {
  MANY_ROWS = 1024,   /* from where rows that fit a wave's registers are a wave's */
  ROWS_OF_A_UNIT = 4, /* no more for each compute unit, and long rows are cut */
};
static const char *const kernels[TYPES] = {"softmax_f32", "softmax_f16", "softmax_bf16"};
static const char *const held_kernels[TYPES] = {"softmax_held_f32", "softmax_held_f16", "softmax_held_bf16"};
static const char *const part_kernels[TYPES] = {"softmax_part_f32", "softmax_part_f16", "softmax_part_bf16"};
static const char *const finish_kernels[TYPES] = {"softmax_finish_f32", "softmax_finish_f16", "softmax_finish_bf16"};

/* Long rows in parts. */
static rdna_status launch_parts(const char *op_name, rdna_stream *stream, const struct softmax_args *args,
                                rdna_dtype dtype) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  struct softmax_part_args part = {
      .x = args->x, .rows = args->rows, .cols = args->cols, .x_stride = args->x_stride, .scale = args->scale};
  int64_t vectors = args->cols / (16 / (int64_t)rdna_dtype_block_bytes(dtype));
  int64_t steps = vectors / SOFTMAX_PART_VECTORS + 1, steps_of_a_part = (steps - 1) / SOFTMAX_MOST_PARTS + 1;
  part.parts = (steps - 1) / steps_of_a_part + 1;
  part.part_vectors = steps_of_a_part * SOFTMAX_PART_VECTORS;
  rdna_grid grid = {rdna__groups_in_turn(part.rows * part.parts), 1, 1};
  void *states;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)(part.rows * part.parts) * 2 * sizeof(float), &states));
  part.states = states;
  struct softmax_finish_args finish = {.x = args->x,
                                       .states = states,
                                       .out = args->out,
                                       .rows = args->rows,
                                       .cols = args->cols,
                                       .x_stride = args->x_stride,
                                       .out_stride = args->out_stride,
                                       .parts = part.parts,
                                       .part_vectors = part.part_vectors,
                                       .scale = args->scale,
                                       .log = args->log};
  rdna_status status = rdna__launch_named(stream, part_kernels[dtype], grid, &part);
  if (status == RDNA_OK) status = rdna__launch_named(stream, finish_kernels[dtype], grid, &finish);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status launch(const char *op_name, rdna_stream *stream, struct softmax_args *args, rdna_dtype dtype) {
  rdna_grid grid = {0, 1, 1};
  int64_t row_bytes = args->cols * (int64_t)rdna_dtype_block_bytes(dtype);
  if (row_bytes > SOFTMAX_HELD_BYTES) {
    int64_t units = rdna_device_get_info(rdna_stream_device(stream))->compute_units;
    if (args->rows <= ROWS_OF_A_UNIT * units) return launch_parts(op_name, stream, args, dtype);
  }
  bool is_short = row_bytes <= SOFTMAX_SHORT_BYTES;
  args->waves = is_short || (row_bytes <= SOFTMAX_WAVE_BYTES && args->rows >= MANY_ROWS);
  bool held = args->waves ? !is_short : row_bytes > SOFTMAX_GROUP_BYTES && row_bytes <= SOFTMAX_HELD_BYTES;
  grid.x = args->waves ? rdna__groups_of_waves(stream, args->rows, row_bytes, SOFTMAX_THREADS)
                       : rdna__groups_in_turn(args->rows);
  return rdna__launch_named(stream, held ? held_kernels[dtype] : kernels[dtype], grid, args);
}

rdna_status rdna__softmax_rows(const char *op_name, rdna_stream *stream, const rdna_tensor *x, float scale, bool log,
                               const rdna_tensor *out) {
  struct softmax_args args = {.x = x->data, .out = out->data, .scale = scale, .log = log};
  int64_t out_rows, out_cols;
  RDNA_TRY(rdna__check_rows(op_name, "x", x, &args.rows, &args.cols, &args.x_stride));
  RDNA_TRY(rdna__check_rows(op_name, "out", out, &out_rows, &out_cols, &args.out_stride));
  RDNA_TRY(rdna__check_written_rows(op_name, "out", out, out_rows, out_cols, args.out_stride));
  return args.rows == 0 ? RDNA_OK : launch(op_name, stream, &args, x->dtype);
}
