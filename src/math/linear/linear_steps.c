#include "math/linear/linear_steps.h"

#include "base/status.h"
#include "math/gemm/gemm.h"
#include "math/quant/quant.h"

static bool is_row(const rdna_tensor *t) {
  return t->dtype == RDNA_F32 && t->rank == 2 && t->shape[0] == 1 && t->stride[1] == 1;
}

/* False where shapes are not those of one row. */
static bool describe(rdna_stream *stream, const rdna__linear_steps *steps, const rdna_tensor *x,
                     const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *out,
                     rdna__gemm_problem *problem) {
  if (!is_row(x) || !is_row(out) || weight->rank != 2 || weight->stride[1] != 1) return false;
  int64_t k = x->shape[1], n = out->shape[1];
  if (n == 0 || n > RDNA__GEMM_SIZE_MAX || k > RDNA__GEMM_SIZE_MAX) return false;
  if (weight->shape[1] != k || weight->shape[0] != (steps->gated ? 2 * n : n)) return false;
  if (steps->gated && (bias || steps->add)) return false;
  rdna_dtype types[] = {RDNA_F32, weight->dtype, RDNA_F32};
  bool is_dense = rdna_dtype_block_values(weight->dtype) == 1;
  *problem = (rdna__gemm_problem){.types = {types[0], types[1], types[2]},
                                  .device = rdna_device_get_info(rdna_stream_device(stream)),
                                  .product = is_dense ? rdna__gemm_dense_product(types) : rdna__quant_product(types)};
  problem->args = (struct gemm_args){.a = x->data,
                                     .b = weight->data,
                                     .bias = bias ? bias->data : NULL,
                                     .c = out->data,
                                     .lda = x->stride[0],
                                     .ldb = weight->stride[0],
                                     .ldc = out->stride[0],
                                     .m = 1,
                                     .n = (int32_t)n,
                                     .k = (int32_t)k,
                                     .batch = 1,
                                     .flags = GEMM_B_TRANSPOSED | (steps->may_round ? GEMM_MAY_ROUND : 0),
                                     .alpha = 1,
                                     .beta = steps->add ? 1 : 0,
                                     .activation = steps->gated ? (uint32_t)steps->activation : 0};
  problem->steps = (struct gemv_steps){
      .norm = steps->norm ? steps->norm->data : NULL, .epsilon = (float)steps->epsilon, .gated = steps->gated};
  return true;
}

bool rdna__linear_is_stepped(rdna_stream *stream, const rdna__linear_steps *steps, const rdna_tensor *x,
                             const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *out) {
  rdna__gemm_problem problem;
  return describe(stream, steps, x, weight, bias, out, &problem) && rdna__gemm_is_stepped(&problem);
}

rdna_status rdna__linear_stepped(rdna_stream *stream, const rdna__linear_steps *steps, const rdna_tensor *x,
                                 const rdna_tensor *weight, const rdna_tensor *bias, const rdna_tensor *out) {
  rdna__gemm_problem problem;
  if (!describe(stream, steps, x, weight, bias, out, &problem) || !rdna__gemm_is_stepped(&problem))
    return rdna__fail(RDNA_UNSUPPORTED, "linear: no one launch has these steps around a product of one row");
  return rdna__gemm_run_stepped(stream, "linear", &problem);
}
