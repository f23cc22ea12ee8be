#include "math/softmax/softmax.h"

#include "math/common/plan/scratch.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/reduce.h"

static const rdna_scalar zero = {0, 0};

/* A dense tensor like |x|, |size| (or as many as there are) along |dim|. */
static rdna_status take_like(rdna__scratch *scratch, const rdna_tensor *x, int dim, int64_t size, rdna_tensor *out) {
  int64_t shape[RDNA_MAX_RANK];
  for (int i = 0; i < x->rank; i++) shape[i] = i == dim && size ? size : x->shape[i];
  return rdna__scratch_tensor(scratch, RDNA_F64, x->rank, shape, out);
}

static rdna_status zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b,
                       const rdna_tensor *out) {
  return rdna_op_zip(stream, op, a, b, zero, zero, out);
}
static rdna_status map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, const rdna_tensor *out) {
  return rdna_op_map(stream, op, x, zero, zero, out);
}
static rdna_status scaled(rdna_stream *stream, const rdna_tensor *x, double scale, const rdna_tensor *out) {
  return rdna_op_map(stream, RDNA_MAP_AFFINE, x, rdna_scalar_real(scale), zero, out);
}

/* |dim| as rdna_op_reduce takes it; a scalar has none to reduce. */
static uint32_t along(const rdna_tensor *x, int dim) { return x->rank > 0 ? 1u << dim : 0; }

static rdna_status forward(rdna__scratch *scratch, const rdna_tensor *x, int dim, double scale, bool log,
                           const rdna_tensor *out) {
  rdna_stream *stream = scratch->stream;
  rdna_tensor top, sum, powers = *out;
  RDNA_TRY(take_like(scratch, x, dim, 1, &top));
  RDNA_TRY(take_like(scratch, x, dim, 1, &sum));
  if (log) RDNA_TRY(take_like(scratch, x, dim, 0, &powers));
  if (scale != 1) {
    RDNA_TRY(scaled(stream, x, scale, out));
    x = out;
  }
  RDNA_TRY(rdna_op_reduce(stream, RDNA_REDUCTION_MAX, x, along(x, dim), 0, &top));
  RDNA_TRY(zip(stream, RDNA_ZIP_SUB, x, &top, out));
  RDNA_TRY(map(stream, RDNA_MAP_EXP, out, &powers));
  RDNA_TRY(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, &powers, along(x, dim), 0, &sum));
  if (!log) return zip(stream, RDNA_ZIP_DIV, out, &sum, out);
  RDNA_TRY(map(stream, RDNA_MAP_LOG, &sum, &sum));
  return zip(stream, RDNA_ZIP_SUB, out, &sum, out);
}

rdna_status rdna__softmax_f64(const char *op_name, rdna_stream *stream, const rdna_tensor *x, int dim, double scale,
                              bool log, const rdna_tensor *out) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  if (rdna_tensor_count(x) == 0) return RDNA_OK;
  return rdna__scratch_release(&scratch, forward(&scratch, x, dim, scale, log, out));
}

/* With y the result: scale * y * (dout - sum of y * dout), or of the logarithm scale * (dout - exp(y) * sum of dout).
 */
static rdna_status backward(rdna__scratch *scratch, const rdna_tensor *dout, const rdna_tensor *out, int dim,
                            double scale, bool log, const rdna_tensor *dx) {
  rdna_stream *stream = scratch->stream;
  rdna_tensor terms, sum;
  RDNA_TRY(take_like(scratch, dout, dim, 0, &terms));
  RDNA_TRY(take_like(scratch, dout, dim, 1, &sum));
  if (!log) RDNA_TRY(zip(stream, RDNA_ZIP_MUL, dout, out, &terms));
  RDNA_TRY(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, log ? dout : &terms, along(dout, dim), 0, &sum));
  if (log) {
    RDNA_TRY(map(stream, RDNA_MAP_EXP, out, &terms));
    RDNA_TRY(zip(stream, RDNA_ZIP_MUL, &terms, &sum, &terms));
    RDNA_TRY(zip(stream, RDNA_ZIP_SUB, dout, &terms, &terms));
  } else {
    RDNA_TRY(zip(stream, RDNA_ZIP_SUB, dout, &sum, &terms));
    RDNA_TRY(zip(stream, RDNA_ZIP_MUL, &terms, out, &terms));
  }
  return scaled(stream, &terms, scale, dx);
}

rdna_status rdna__softmax_f64_backward(const char *op_name, rdna_stream *stream, const rdna_tensor *dout,
                                       const rdna_tensor *out, int dim, double scale, bool log, const rdna_tensor *dx) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  if (rdna_tensor_count(dx) == 0) return RDNA_OK;
  return rdna__scratch_release(&scratch, backward(&scratch, dout, out, dim, scale, log, dx));
}
