#include "math/quant/quant.h"

#include "math/check.h"
#include "math/quant/quant_kernels.h"
#include "rdna/op/quant.h"

static rdna_status check_alignment(const char *operator, const char * argument, const rdna_tensor *tensor,
                                   size_t alignment) {
  char text[RDNA__TENSOR_TEXT];
  if ((uintptr_t)tensor->data % alignment == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s at %p; the address must be a multiple of %zu", operator, argument,
                    rdna__tensor_text(tensor, text), tensor->data, alignment);
}

rdna_status rdna__check_blocks(const char *operator, const char * argument, const rdna_tensor *blocks) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_tensor(operator, argument, blocks));
  int64_t values = rdna_dtype_block_values(blocks->dtype);
  int64_t last = blocks->rank > 0 ? blocks->shape[blocks->rank - 1] : 1;
  if (values == 1) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; it must be q8_0, q4_0, q4_K or q6_K", operator, argument,
                      rdna_dtype_name(blocks->dtype));
  }
  if (last % values != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: %s is %s; its last size must be a multiple of the block's %lld values", operator, argument,
                      rdna__tensor_text(blocks, text), (long long)values);
  }
  RDNA_TRY(rdna__check_contiguous(operator, argument, blocks));
  return check_alignment(operator, argument, blocks, blocks->dtype == RDNA_Q4_K ? 16 : 2);
}

rdna_tensor rdna__blocks_as_bytes(const rdna_tensor *blocks) {
  int64_t bytes = (int64_t)rdna_dtype_bytes(blocks->dtype, rdna_tensor_count(blocks));
  return rdna_tensor_contiguous(blocks->data, RDNA_U8, 1, &bytes);
}

/* What both directions ask of the two sides. */
static rdna_status check_pair(const char *operator, const char * blocks_argument, const rdna_tensor *blocks,
                              const char *dense_argument, const rdna_tensor *dense) {
  RDNA_TRY(rdna__check_blocks(operator, blocks_argument, blocks));
  RDNA_TRY(rdna__check_tensor(operator, dense_argument, dense));
  RDNA_TRY(rdna__check_same_shape(operator, blocks_argument, blocks, dense_argument, dense));
  RDNA_TRY(rdna__check_contiguous(operator, dense_argument, dense));
  rdna_tensor bytes = rdna__blocks_as_bytes(blocks);
  return rdna__check_apart(operator, blocks_argument, &bytes, dense_argument, dense);
}

rdna_status rdna_op_dequantize(rdna_stream *stream, const rdna_tensor *blocks, const rdna_tensor *out) {
  static const char *const kernels[][2] = {{"dequantize_q8_0_f32", "dequantize_q8_0_f16"},
                                           {"dequantize_q4_0_f32", "dequantize_q4_0_f16"},
                                           {"dequantize_q4_K_f32", "dequantize_q4_K_f16"},
                                           {"dequantize_q6_K_f32", "dequantize_q6_K_f16"}};
  RDNA_TRY(check_pair("dequantize", "blocks", blocks, "out", out));
  if (out->dtype != RDNA_F32 && out->dtype != RDNA_F16) {
    return rdna__fail(RDNA_UNSUPPORTED, "dequantize: out is %s; it must be f32 or f16", rdna_dtype_name(out->dtype));
  }
  RDNA_TRY(check_alignment("dequantize", "out", out, 32));
  struct dequantize_args args = {blocks->data, out->data, rdna_tensor_count(out)};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups("dequantize", args.count, QUANT_VALUES_PER_GROUP, &grid.x));
  if (args.count == 0) return RDNA_OK;
  return rdna__launch_named(stream, kernels[blocks->dtype - RDNA_Q8_0][out->dtype == RDNA_F16], grid, &args);
}

rdna_status rdna_op_quantize(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *blocks) {
  RDNA_TRY(check_pair("quantize", "blocks", blocks, "x", x));
  if (x->dtype != RDNA_F32 || blocks->dtype != RDNA_Q8_0) {
    return rdna__fail(RDNA_UNSUPPORTED, "quantize: x is %s and blocks is %s; offered is f32 to q8_0",
                      rdna_dtype_name(x->dtype), rdna_dtype_name(blocks->dtype));
  }
  RDNA_TRY(check_alignment("quantize", "x", x, 16));
  struct quantize_args args = {x->data, blocks->data, rdna_tensor_count(x)};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups("quantize", args.count / 32, QUANTIZE_BLOCKS_PER_GROUP, &grid.x));
  if (args.count == 0) return RDNA_OK;
  return rdna__launch_named(stream, "quantize_f32_q8_0", grid, &args);
}
