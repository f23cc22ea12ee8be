#include "rdna/op/softmax.h"

#include "math/check.h"
#include "math/softmax/softmax_kernels.h"

static rdna_status softmax(const char *operator, rdna_stream * stream, const rdna_tensor *x, float scale, bool log,
                           const rdna_tensor *out) {
  struct softmax_args args = {.scale = scale, .log = log};
  int64_t out_rows, out_cols;
  uint32_t groups;
  RDNA_TRY(rdna__check_float(operator, "x", x));
  RDNA_TRY(rdna__check_float(operator, "out", out));
  RDNA_TRY(rdna__check_same_dtype(operator, "out", out, "x", x));
  RDNA_TRY(rdna__check_same_shape(operator, "out", out, "x", x));
  RDNA_TRY(rdna__check_rows(operator, "x", x, &args.rows, &args.cols, &args.x_stride));
  RDNA_TRY(rdna__check_rows(operator, "out", out, &out_rows, &out_cols, &args.out_stride));
  RDNA_TRY(rdna__check_overlap(operator, "out", out, "x", x));
  if (args.rows == 0) return RDNA_OK;
  args.x = x->data;
  args.out = out->data;
  /* Rows of a wave, or of a group where they may be long: which of the two the kernel sees from the alignment. */
  int64_t row_bytes = args.cols * (int64_t)rdna_dtype_block_bytes(x->dtype);
  bool waves = args.cols <= SOFTMAX_WAVE_COLS || row_bytes <= SOFTMAX_WAVE_BYTES;
  RDNA_TRY(rdna__check_groups(operator, args.rows, 1, &groups));
  if (waves) groups = rdna__groups_of_waves(stream, args.rows, row_bytes, SOFTMAX_THREADS);
  const char *kernel = x->dtype == RDNA_F32 ? "softmax_f32" : x->dtype == RDNA_F16 ? "softmax_f16" : "softmax_bf16";
  return rdna__launch_named(stream, kernel, (rdna_grid){groups, 1, 1}, &args);
}

rdna_status rdna_op_softmax(rdna_stream *stream, const rdna_tensor *x, float scale, const rdna_tensor *out) {
  return softmax("softmax", stream, x, scale, false, out);
}

rdna_status rdna_op_log_softmax(rdna_stream *stream, const rdna_tensor *x, float scale, const rdna_tensor *out) {
  return softmax("log_softmax", stream, x, scale, true, out);
}
