/* Values as they would be after quantization to a few bits, and gradients, which pass where a value is within the
 * range. The range is moved a little, so that 0 is one of the steps (Jacob et al., 2018). Its ends are two attributes,
 * or inputs in host memory: numbers, or one for each channel, the last dimension. */
#include <math.h>
#include <stdlib.h>

#include "compose.h"
#include "ops.h"

struct range {
  rdna_tensor least, most, step; /* (channels), or (1), of f32 on the device */
  bool some_empty;               /* from 0 to 0 somewhere, for which least is -infinity: all is 0, and gradients pass */
};

/* The least and the most moved to steps of the range, in f32 as TensorFlow does. */
static void nudge(const call *c, float *least, float *most, float *step) {
  if (*least == 0 && *most == 0) {
    *least = -INFINITY;
    *most = INFINITY;
    *step = 1;
    return;
  }
  float first = c->attributes->narrow_range ? 1 : 0, last = (float)((1ll << c->attributes->num_bits) - 1);
  *step = (*most - *least) / (last - first);
  float zero_at = first - *least / *step;
  float nudged = zero_at < first ? first : zero_at > last ? last : roundf(zero_at);
  *least = (first - nudged) * *step;
  *most = (last - nudged) * *step;
}

/* For |x|, from the attributes, or from inputs |i| and |i| + 1: numbers, or one for each channel. */
static rdna_status read_range(call *c, const rdna_tensor *x, int i, bool channels, struct range *out) {
  rdna_tensor ends[2];
  int64_t count = 1, bits = c->attributes->num_bits;
  if (bits < 2 || bits > 16)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "num_bits must be between 2 and 16, not %lld", (long long)bits);
  if (i >= 0) {
    TRY(call_input(c, i, &ends[0]));
    TRY(call_input(c, i + 1, &ends[1]));
    if (ends[0].rank != (channels ? 1 : 0) || ends[1].rank != ends[0].rank)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "`min` and `max` must be of rank %d, not %d and %d", channels ? 1 : 0,
                       ends[0].rank, ends[1].rank);
    count = rdna_tensor_count(&ends[0]);
    if (rdna_tensor_count(&ends[1]) != count)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "min and max must have the same size");
    if (channels && (x->rank < 1 || x->shape[x->rank - 1] != count))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "min has %lld values, the last dimension another size",
                       (long long)count);
  }
  out->some_empty = false;
  float *values = malloc((size_t)(count ? count : 1) * 3 * sizeof *values);
  if (!values) return call_fail(c, RDNA_OUT_OF_MEMORY, "no memory for a range");
  float *least = values, *most = values + count, *step = most + count;
  for (int64_t k = 0; k < count; k++) {
    least[k] = i < 0 ? c->attributes->min : ((const float *)ends[0].data)[k];
    most[k] = i < 0 ? c->attributes->max : ((const float *)ends[1].data)[k];
    nudge(c, &least[k], &most[k], &step[k]);
    out->some_empty |= isinf(least[k]) && isinf(most[k]);
  }
  rdna_status result = call_upload(c, RDNA_F32, count, least, &out->least);
  if (result == RDNA_OK) result = call_upload(c, RDNA_F32, count, most, &out->most);
  if (result == RDNA_OK) result = call_upload(c, RDNA_F32, count, step, &out->step);
  free(values);
  return result;
}

/* (x[, least, most]): number -1: of the attributes' range; 0: of two numbers; 1: of channels. */
rdna_status compute_fake_quant(call *c) {
  rdna_tensor x, out, y;
  struct range range;
  TRY(call_input(c, 0, &x));
  TRY(read_range(c, &x, c->number < 0 ? -1 : 1, c->number == 1, &range));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  TRY(like(c, &x, &y));
  TRY(rdna_op_zip3(c->stream, RDNA_ZIP3_CLAMP, &x, &range.least, &range.most, zero, &y));
  TRY(zip(c, RDNA_ZIP_SUB, &y, &range.least, &y));
  TRY(zip(c, RDNA_ZIP_DIV, &y, &range.step, &y));
  TRY(affine(c, &y, 1, 0.5, &y));
  TRY(map(c, RDNA_MAP_FLOOR, &y, &y));
  TRY(zip(c, RDNA_ZIP_MUL, &y, &range.step, &y));
  TRY(zip(c, RDNA_ZIP_ADD, &y, &range.least, &out));
  if (!range.some_empty) return RDNA_OK;
  rdna_tensor empty, none;
  TRY(answers(c, RDNA_COMPARE_EQ, &range.least, -INFINITY, &empty));
  TRY(call_scratch(c, RDNA_F32, 0, NULL, &none));
  TRY(fill(c, 0, &none));
  return rdna_op_where(c->stream, &empty, &none, &out, &out);
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
  TRY(read_range(c, &x, c->number < 0 ? -1 : 2, c->number == 1, &range));
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
