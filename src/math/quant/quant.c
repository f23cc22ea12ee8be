#include "math/quant/quant.h"

#include "kernel/host.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/quant/quant_encode_kernels.h"
#include "math/quant/quant_pack.h"
#include "math/quant/quant_pack_kernels.h"
#include "rdna/op/quant.h"

enum { DEQUANTIZE, QUANTIZE };
#define WORD(name, NAME) "|" #name
static const rdna__route routes[] = {
    [DEQUANTIZE] = {.name = "dequantize", .kernels = {"dequantize_{blocks}_{float}"}, .when = "dequantize"},
    [QUANTIZE] = {.name = "quantize",
                  .kernels = {"quantize_f32_{q8_0" RDNA_QUANT_PACKED(WORD) RDNA_QUANT_ENCODED(WORD) "}"},
                  .when = "quantize"},
};
#undef WORD
RDNA_FIXED_ROUTES(rdna__quant_routes, "dequantize, quantize", routes)

static rdna_status check_alignment(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                   size_t alignment) {
  char text[RDNA__TENSOR_TEXT];
  if ((uintptr_t)tensor->data % alignment == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s at %p; the address must be a multiple of %zu", op_name, argument,
                    rdna__tensor_text(tensor, text), tensor->data, alignment);
}

int rdna__blocks_alignment(rdna_dtype dtype) { return quant_alignment(dtype); }

rdna_status rdna__check_blocks(const char *op_name, const char *argument, const rdna_tensor *blocks) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_tensor(op_name, argument, blocks));
  int64_t values = rdna_dtype_block_values(blocks->dtype);
  int64_t last = blocks->rank > 0 ? blocks->shape[blocks->rank - 1] : 1;
  if (values == 1) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; it must be a type of blocks, such as q8_0 or q4_K", op_name,
                      argument, rdna_dtype_name(blocks->dtype));
  }
  if (last % values != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: %s is %s; its last size must be a multiple of the block's %lld values", op_name, argument,
                      rdna__tensor_text(blocks, text), (long long)values);
  }
  RDNA_TRY(rdna__check_contiguous(op_name, argument, blocks));
  return check_alignment(op_name, argument, blocks, (size_t)rdna__blocks_alignment(blocks->dtype));
}

rdna_tensor rdna__blocks_as_bytes(const rdna_tensor *blocks) {
  int64_t bytes = (int64_t)rdna_dtype_bytes(blocks->dtype, rdna_tensor_count(blocks));
  return rdna_tensor_contiguous(blocks->data, RDNA_U8, 1, &bytes);
}

/* Checks the two tensors of either direction: valid, contiguous, of the same shape, and not overlapping. */
static rdna_status check_pair(const char *op_name, const char *blocks_argument, const rdna_tensor *blocks,
                              const char *dense_argument, const rdna_tensor *dense) {
  RDNA_TRY(rdna__check_blocks(op_name, blocks_argument, blocks));
  RDNA_TRY(rdna__check_tensor(op_name, dense_argument, dense));
  RDNA_TRY(rdna__check_same_shape(op_name, blocks_argument, blocks, dense_argument, dense));
  RDNA_TRY(rdna__check_contiguous(op_name, dense_argument, dense));
  rdna_tensor bytes = rdna__blocks_as_bytes(blocks);
  return rdna__check_apart(op_name, blocks_argument, &bytes, dense_argument, dense);
}

rdna_status rdna_op_dequantize(rdna_stream *stream, const rdna_tensor *blocks, const rdna_tensor *out) {
  RDNA_TRY(check_pair("dequantize", "blocks", blocks, "out", out));
  RDNA_TRY(rdna__check_float("dequantize", "out", out));
  RDNA_TRY(check_alignment("dequantize", "out", out, 32));
  struct dequantize_args args = {blocks->data, out->data, rdna_tensor_count(out)};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups("dequantize", args.count, QUANT_VALUES_PER_GROUP, &grid.x));
  if (args.count == 0) return RDNA_OK;
  return RDNA__ROUTE_LAUNCH(stream, &routes[DEQUANTIZE], 0, grid, &args, rdna_dtype_name(blocks->dtype),
                            rdna_dtype_name(out->dtype));
}

/* How many values a work-group quantizes; 0: there is no kernel. */
static int64_t quantized_by_group(rdna_dtype dtype) {
  switch (dtype) {
#define PACKED(name, NAME) \
  case RDNA_##NAME:        \
    return QUANT_PACK_VALUES(quant_run(RDNA_##NAME));
    RDNA_QUANT_PACKED(PACKED)
#undef PACKED
#define ENCODED(name, NAME) case RDNA_##NAME:
    RDNA_QUANT_ENCODED(ENCODED)
#undef ENCODED
    return 256 * QUANT_ENCODE_BLOCKS;
    case RDNA_Q8_0:
      return 32 * QUANTIZE_BLOCKS_PER_GROUP;
    default:
      return 0;
  }
}

/* |weights| NULL: all values count the same. */
static rdna_status quantize(rdna_stream *stream, const char *op_name, const rdna_tensor *x, const rdna_tensor *weights,
                            const rdna_tensor *blocks) {
  RDNA_TRY(check_pair(op_name, "blocks", blocks, "x", x));
  int64_t values_per_group = quantized_by_group(blocks->dtype);
#define NAMED(name, NAME) ", " #name
  if (x->dtype != RDNA_F32 || values_per_group == 0 || (weights && blocks->dtype == RDNA_Q8_0)) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: x is %s and blocks is %s; offered is f32 to%s" RDNA_QUANT_PACKED(NAMED)
                          RDNA_QUANT_ENCODED(NAMED),
                      op_name, rdna_dtype_name(x->dtype), rdna_dtype_name(blocks->dtype), weights ? "" : " q8_0");
  }
#undef NAMED
  RDNA_TRY(check_alignment(op_name, "x", x, 16));
  struct quantize_args args = {.x = x->data, .blocks = blocks->data, .count = rdna_tensor_count(x)};
  if (weights) {
    args.columns = x->rank > 0 ? x->shape[x->rank - 1] : 1;
    args.weights = weights->data;
  }
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(op_name, args.count, values_per_group, &grid.x));
  if (args.count == 0) return RDNA_OK;
  return RDNA__ROUTE_LAUNCH(stream, &routes[QUANTIZE], 0, grid, &args, rdna_dtype_name(blocks->dtype));
}

rdna_status rdna_op_quantize(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *blocks) {
  return quantize(stream, "quantize", x, NULL, blocks);
}

rdna_status rdna_op_quantize_weighted(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weights,
                                      const rdna_tensor *blocks) {
  static const char op_name[] = "quantize_weighted";
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(check_pair(op_name, "blocks", blocks, "x", x));
  RDNA_TRY(rdna__check_tensor(op_name, "weights", weights));
  int64_t columns = x->rank > 0 ? x->shape[x->rank - 1] : 1;
  if (weights->dtype != RDNA_F32)
    return rdna__fail(RDNA_UNSUPPORTED, "%s: weights is %s; it must be f32", op_name, rdna__tensor_text(weights, text));
  if (weights->rank != 1 || weights->shape[0] != columns)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: weights is %s; it must be (%lld), a number for each column of x",
                      op_name, rdna__tensor_text(weights, text), (long long)columns);
  RDNA_TRY(rdna__check_contiguous(op_name, "weights", weights));
  RDNA_TRY(check_alignment(op_name, "weights", weights, 16));
  rdna_tensor bytes = rdna__blocks_as_bytes(blocks);
  RDNA_TRY(rdna__check_apart(op_name, "blocks", &bytes, "weights", weights));
  return quantize(stream, op_name, x, weights, blocks);
}
