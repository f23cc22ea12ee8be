/* linear and linear_add: products with weights of any type, dense or quantized, behind one call. */
#include "math/linear/linear.h"

#include "math/common/plan/check.h"
#include "math/gemm/gemm.h"
#include "math/quant/quant.h"

static rdna_status check_weight(const char *op_name, const rdna_tensor *weight, const rdna_tensor *out,
                                rdna__matrix *out_matrix) {
  if (rdna_dtype_block_values(weight->dtype) > 1) {
    RDNA_TRY(rdna__check_rank(op_name, "weight", weight, 2));
    RDNA_TRY(rdna__check_blocks(op_name, "weight", weight));
    *out_matrix =
        (rdna__matrix){.rows = weight->shape[0], .columns = weight->shape[1], .batch = 1, .ld = weight->shape[1]};
    rdna_tensor bytes = rdna__blocks_as_bytes(weight);
    return rdna__check_apart(op_name, "out", out, "weight", &bytes);
  }
  RDNA_TRY(rdna__check_float(op_name, "weight", weight));
  RDNA_TRY(rdna__check_rank(op_name, "weight", weight, 2));
  RDNA_TRY(rdna__matrix_view(op_name, "weight", weight, out_matrix));
  return rdna__check_apart(op_name, "out", out, "weight", weight);
}

static rdna_status linear(rdna_stream *stream, const char *op_name, const rdna_tensor *x, const rdna_tensor *weight,
                          const rdna_tensor *bias, const rdna_tensor *out, float beta, uint32_t flags) {
  char text[RDNA__TENSOR_TEXT], other[RDNA__TENSOR_TEXT];
  int64_t rows, k, x_stride, out_rows, n, out_stride;
  rdna__matrix w;
  RDNA_TRY(rdna__check_float(op_name, "x", x));
  RDNA_TRY(rdna__check_tensor(op_name, "weight", weight));
  RDNA_TRY(rdna__check_float(op_name, "out", out));
  RDNA_TRY(rdna__check_rows(op_name, "x", x, &rows, &k, &x_stride));
  RDNA_TRY(rdna__check_rows(op_name, "out", out, &out_rows, &n, &out_stride));
  RDNA_TRY(check_weight(op_name, weight, out, &w));
  if (w.columns != k) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: x is %s and weight is %s; their last sizes, k, must be equal",
                      op_name, rdna__tensor_text(x, text), rdna__tensor_text(weight, other));
  }
  if (w.rows != n) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: weight is %s and out is %s; n, the first and the last size, must be "
                      "equal",
                      op_name, rdna__tensor_text(weight, text), rdna__tensor_text(out, other));
  }
  RDNA_TRY(rdna__check_bias(op_name, bias, out, n, "the columns of the result"));
  if (n == 0) return RDNA_OK;
  /* if k is 0, x has no values, and only out says how many rows there are */
  if (k > 0 && rows != out_rows) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: x is %s and out is %s; they must have the same number of rows",
                      op_name, rdna__tensor_text(x, text), rdna__tensor_text(out, other));
  }
  rdna__matrix written = {.rows = out_rows, .columns = n, .batch = 1, .ld = out_stride};
  RDNA_TRY(rdna__matrix_check_written(op_name, "out", out, &written));
  RDNA_TRY(rdna__check_apart(op_name, "out", out, "x", x));

  /* C (m, n) = A (m, k) B (k, n): the weight (n, k) is B transposed. */
  struct gemm_args args = {
      .a = x->data,
      .b = weight->data,
      .bias = bias ? bias->data : NULL,
      .c = out->data,
      .lda = x_stride,
      .ldb = w.ld,
      .ldc = out_stride,
      .flags = flags | (w.transposed ? 0 : GEMM_B_TRANSPOSED),
      .alpha = 1,
      .beta = beta,
  };
  rdna_dtype types[3] = {x->dtype, weight->dtype, out->dtype};
  if (types[0] != RDNA_F32 && types[0] != types[1])
    return rdna__linear_halves(&(rdna__linear){stream, op_name, x, weight, bias, out, args, out_rows, n, k});
  if (rdna_dtype_block_values(weight->dtype) == 1)
    return rdna__gemm_launch(stream, op_name, types, args, out_rows, n, k, 1);
  return rdna__gemm_launch_product(stream, op_name, rdna__quant_product(types), types, args, out_rows, n, k, 1);
}

rdna_status rdna_op_linear(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                           const rdna_tensor *bias, const rdna_tensor *out) {
  return linear(stream, "linear", x, weight, bias, out, 0, 0);
}

rdna_status rdna_op_linear_add(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                               const rdna_tensor *bias, const rdna_tensor *out) {
  return linear(stream, "linear_add", x, weight, bias, out, 1, 0);
}

rdna_status rdna__linear_rounded(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                                 const rdna_tensor *bias, const rdna_tensor *out, bool add) {
  return linear(stream, add ? "linear_add" : "linear", x, weight, bias, out, add ? 1 : 0, GEMM_MAY_ROUND);
}
