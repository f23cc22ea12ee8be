/* Values as they would be after quantization to a few bits, and gradients, which pass where a value is within the
 * range. The range is moved a little, so that 0 is one of the steps (Jacob et al., 2018). Its ends are two attributes,
 * or inputs in host memory: numbers, or one for each channel, the last dimension. */
#include <math.h>
#include <stdlib.h>

#include "compose.h"
#include "ops.h"

struct range {
  rdna_tensor least, most, step; /* (channels), or (1), of f32 on the device */
};

/* The least and the most moved to steps of the range, in f32 as TensorFlow does. */
static void nudge(const call *c, float *least, float *most, float *step) {
  float first = c->attributes->narrow_range ? 1 : 0, last = (float)((1ll << c->attributes->num_bits) - 1);
  *step = (*most - *least) / (last - first);
  float zero_at = first - *least / *step;
  float nudged = zero_at < first ? first : zero_at > last ? last : roundf(zero_at);
  *least = (first - nudged) * *step;
  *most = (last - nudged) * *step;
}

/* From the attributes, or from inputs |i| and |i| + 1. */
static rdna_status read_range(call *c, int i, struct range *out) {
  rdna_tensor ends[2];
  int64_t count = 1;
  if (i >= 0) {
    TRY(call_input(c, i, &ends[0]));
    TRY(call_input(c, i + 1, &ends[1]));
    count = rdna_tensor_count(&ends[0]);
    if (rdna_tensor_count(&ends[1]) != count)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "min and max must have the same size");
  }
  float *values = malloc((size_t)(count ? count : 1) * 3 * sizeof *values);
  if (!values) return call_fail(c, RDNA_OUT_OF_MEMORY, "no memory for a range");
  float *least = values, *most = values + count, *step = most + count;
  for (int64_t k = 0; k < count; k++) {
    least[k] = i < 0 ? c->attributes->min : ((const float *)ends[0].data)[k];
    most[k] = i < 0 ? c->attributes->max : ((const float *)ends[1].data)[k];
    nudge(c, &least[k], &most[k], &step[k]);
  }
  rdna_status result = call_upload(c, RDNA_F32, count, least, &out->least);
  if (result == RDNA_OK) result = call_upload(c, RDNA_F32, count, most, &out->most);
  if (result == RDNA_OK) result = call_upload(c, RDNA_F32, count, step, &out->step);
  free(values);
  return result;
}

static rdna_status check_channels(call *c, const rdna_tensor *x, const struct range *range) {
  int64_t count = range->least.shape[0];
  if (count == 1 || (x->rank > 0 && x->shape[x->rank - 1] == count)) return RDNA_OK;
  return call_fail(c, RDNA_INVALID_ARGUMENT, "min has %lld values, the last dimension another size", (long long)count);
}

/* Number: where the inputs of the range begin; -1: attributes. */
rdna_status compute_fake_quant(call *c) {
  rdna_tensor x, out, y;
  struct range range;
  TRY(call_input(c, 0, &x));
  TRY(read_range(c, c->number, &range));
  TRY(check_channels(c, &x, &range));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  TRY(like(c, &x, &y));
  TRY(rdna_op_zip3(c->stream, RDNA_ZIP3_CLAMP, &x, &range.least, &range.most, zero, &y));
  TRY(zip(c, RDNA_ZIP_SUB, &y, &range.least, &y));
  TRY(zip(c, RDNA_ZIP_DIV, &y, &range.step, &y));
  TRY(affine(c, &y, 1, 0.5, &y));
  TRY(map(c, RDNA_MAP_FLOOR, &y, &y));
  TRY(zip(c, RDNA_ZIP_MUL, &y, &range.step, &y));
  return zip(c, RDNA_ZIP_ADD, &y, &range.least, &out);
}

/* The gradient where |here|, added up to one value or one for each channel. */
static rdna_status add_up(call *c, const rdna_tensor *here, const rdna_tensor *dy, bool channels, int output) {
  rdna_tensor outside, none, out;
  TRY(call_output(c, output, channels ? 1 : 0, dy->shape + dy->rank - 1, &out));
  if (rdna_tensor_count(dy) == 0) return fill(c, 0, &out);
  TRY(like(c, dy, &outside));
  TRY(call_scratch(c, dy->dtype, 0, NULL, &none));
  TRY(fill(c, 0, &none));
  TRY(rdna_op_where(c->stream, here, dy, &none, &outside));
  uint32_t all = (1u << dy->rank) - 1;
  return rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &outside, channels ? all >> 1 : all, 0, &out);
}

/* (gradient, x[, least, most]): number -1: of x alone; 0: and of two numbers; 1: and of channels. */
rdna_status compute_fake_quant_gradient(call *c) {
  rdna_tensor dy, x, out, below, above, either;
  struct range range;
  TRY(call_input(c, 0, &dy));
  TRY(call_input(c, 1, &x));
  if (!same_shape(&x, dy.rank, dy.shape))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "gradient and input must be the same size");
  TRY(read_range(c, c->number < 0 ? -1 : 2, &range));
  TRY(check_channels(c, &x, &range));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  TRY(call_scratch(c, RDNA_BOOL, x.rank, x.shape, &below));
  TRY(call_scratch(c, RDNA_BOOL, x.rank, x.shape, &above));
  TRY(call_scratch(c, RDNA_BOOL, x.rank, x.shape, &either));
  if (rdna_tensor_count(&x)) {
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LT, &x, &range.least, &below));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_GT, &x, &range.most, &above));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_OR, &below, &above, &either));
    TRY(rdna_op_masked_fill(c->stream, &either, zero, &dy, &out));
  }
  if (c->number < 0) return RDNA_OK;
  TRY(add_up(c, &below, &dy, c->number == 1, 1));
  return add_up(c, &above, &dy, c->number == 1, 2);
}
