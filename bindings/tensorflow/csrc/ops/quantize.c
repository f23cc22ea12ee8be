/* Values rounded to the steps of a few bits and back, with 0 as one of the steps; the range is given, or from the least
 * to the greatest value, of the whole or of each slice along |axis|. */
#include <float.h>
#include <string.h>

#include "compose.h"
#include "ops.h"
#include "rdna/op/index.h"

/* A range, (slices) or (1), as it is and, behind find_steps, as the steps have it; a step is 1 / |scale|, which is 0
 * where all are 0. */
struct range {
  rdna_tensor least, most, scale, step;
};

/* |x| as (before, slices, behind), of which one slice is the whole where the attribute says -1. */
static rdna_status slices_of(call *c, const rdna_tensor *x, rdna_tensor *out) {
  int64_t axis = c->attributes->axis, shape[] = {1, 1, 1};
  if (axis < -1 || axis >= x->rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Axis must be at least -1 and less than %d. Found %lld", x->rank,
                     (long long)axis);
  for (int i = 0; i < x->rank; i++) shape[axis < 0 || i > axis ? 2 : i < axis ? 0 : 1] *= x->shape[i];
  *out = reshaped(x, 3, shape);
  return RDNA_OK;
}

/* Inputs |i| and |i| + 1, a number each or one for each slice. */
static rdna_status given_range(call *c, int i, int64_t slices, struct range *out) {
  rdna_tensor *ends[] = {&out->least, &out->most};
  for (int k = 0; k < 2; k++) {
    TRY(call_input(c, i + k, ends[k]));
    if (c->attributes->axis >= 0 ? ends[k]->rank != 1 || ends[k]->shape[0] != slices : rdna_tensor_count(ends[k]) != 1)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "input_min and input_max must have %lld values", (long long)slices);
    *ends[k] = reshaped(ends[k], 1, &slices);
  }
  return RDNA_OK;
}

static rdna_status check_range(call *c, const struct range *r) {
  rdna_tensor wrong, count;
  int64_t n = 0;
  TRY(call_scratch(c, RDNA_BOOL, 1, r->least.shape, &wrong));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &count));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_GT, &r->least, &r->most, &wrong));
  TRY(rdna_op_nonzero_count(c->stream, &wrong, &count));
  TRY(call_read(c, &count, &n));
  return n ? call_fail(c, RDNA_INVALID_ARGUMENT, "Invalid range: input_min > input_max") : RDNA_OK;
}

static rdna_status own_range(call *c, const rdna_tensor *x, struct range *out) {
  TRY(call_scratch(c, x->dtype, 1, &x->shape[1], &out->least));
  TRY(call_scratch(c, x->dtype, 1, &x->shape[1], &out->most));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_MIN, x, 5, 0, &out->least));
  return rdna_op_reduce(c->stream, RDNA_REDUCTION_MAX, x, 5, 0, &out->most);
}

/* |out| = steps / end where both have the same sign, and the greatest number of the type elsewhere. */
static rdna_status scale_from(call *c, const rdna_tensor *end, double steps, const rdna_tensor *out) {
  rdna_tensor none, has, greatest;
  TRY(answers(c, steps < 0 ? RDNA_COMPARE_LT : RDNA_COMPARE_GT, end, 0, &has));
  TRY(call_scratch(c, end->dtype, 0, NULL, &greatest));
  TRY(fill(c, end->dtype == RDNA_F64 ? DBL_MAX : (double)FLT_MAX, &greatest));
  none = repeated(&greatest, 1, end->shape);
  if (steps == 0) return rdna_op_copy(c->stream, &none, out);
  TRY(rdna_op_zip_scalar(c->stream, RDNA_ZIP_DIV, end, rdna_scalar_real(steps), true, zero, zero, out));
  return rdna_op_where(c->stream, &has, out, &none, out);
}

/* The side whose steps are larger decides, and the other end moves to where those of its sign end. */
static rdna_status find_steps(call *c, int64_t bits, struct range *r) {
  const struct attributes *a = c->attributes;
  double last = (double)((1ll << (bits - (a->signed_input ? 1 : 0))) - 1),
         first = a->signed_input ? -last - (a->narrow_range ? 0 : 1) : 0;
  rdna_tensor by_most, by_least, low, other, step;
  TRY(like(c, &r->least, &by_most));
  TRY(like(c, &r->least, &by_least));
  TRY(like(c, &r->least, &other));
  TRY(like(c, &r->least, &step));
  TRY(scale_from(c, &r->least, first, &by_least));
  TRY(scale_from(c, &r->most, last, &by_most));
  TRY(call_scratch(c, RDNA_BOOL, 1, r->least.shape, &low));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LT, &by_least, &by_most, &low));
  TRY(zip_number(c, RDNA_ZIP_DIV, &r->most, last, &step));
  if (first < 0) {
    TRY(zip_number(c, RDNA_ZIP_DIV, &r->least, first, &other));
    TRY(rdna_op_where(c->stream, &low, &other, &step, &step));
  }
  TRY(zip(c, RDNA_ZIP_MINIMUM, &by_least, &by_most, &by_most));
  r->scale = by_most;
  r->step = step;
  rdna_tensor least, most;
  TRY(like(c, &step, &least));
  TRY(like(c, &step, &most));
  TRY(affine(c, &step, last, 0, &most));
  TRY(affine(c, &step, first, 0, &least));
  TRY(rdna_op_where(c->stream, &low, &most, &r->most, &most));
  TRY(rdna_op_where(c->stream, &low, &r->least, &least, &least));
  r->least = least;
  r->most = most;
  return RDNA_OK;
}

/* A value for each slice, next to (before, slices, behind). */
static rdna_tensor along(const rdna_tensor *x) { return reshaped(x, 3, (int64_t[]){1, x->shape[0], 1}); }

/* (x, least, most), number 3: and how many bits, in host memory */
rdna_status compute_quantize_and_dequantize(call *c) {
  const struct attributes *a = c->attributes;
  rdna_tensor x, out, from, to;
  struct range r;
  int64_t bits = a->num_bits;
  TRY(call_input(c, 0, &x));
  if (c->number == 3) TRY(call_integer(c, 3, &bits));
  if (bits < 1 || bits >= (a->signed_input ? 62 : 63))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "num_bits is out of range: %lld with signed_input_ %d", (long long)bits,
                     a->signed_input);
  TRY(slices_of(c, &x, &from));
  if (a->range_given) {
    TRY(given_range(c, 1, from.shape[1], &r));
    TRY(check_range(c, &r));
  }
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  if (!a->range_given) TRY(own_range(c, &from, &r));
  TRY(find_steps(c, bits, &r));
  to = reshaped(&out, 3, from.shape);
  rdna_tensor least = along(&r.least), most = along(&r.most), scale = along(&r.scale), step = along(&r.step);
  if (a->range_given) {
    TRY(zip(c, RDNA_ZIP_MINIMUM, &from, &most, &to)); /* in TensorFlow's order: of a range below 0 without signs */
    TRY(zip(c, RDNA_ZIP_MAXIMUM, &to, &least, &to));  /* the least is 0, above the most */
    from = to;
  }
  TRY(zip(c, RDNA_ZIP_MUL, &from, &scale, &to));
  if (strcmp(a->round_mode, "HALF_UP") == 0) {
    TRY(affine(c, &to, 1, 0.5, &to));
    TRY(map(c, RDNA_MAP_FLOOR, &to, &to));
  } else {
    TRY(map(c, RDNA_MAP_ROUND, &to, &to));
  }
  return zip(c, RDNA_ZIP_MUL, &to, &step, &to);
}

/* (gradient, x, least, most): it passes where x is within; none for the range. */
rdna_status compute_quantize_gradient(call *c) {
  rdna_tensor dy, x, out, from, here, late, none, ends[2], shape;
  struct range r;
  TRY(call_input(c, 0, &dy));
  TRY(call_input(c, 1, &x));
  if (!same_shape(&x, dy.rank, dy.shape))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "gradient and input must be the same size");
  TRY(slices_of(c, &x, &from));
  TRY(given_range(c, 2, from.shape[1], &r));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  for (int i = 0; i < 2; i++) {
    TRY(call_input(c, 2 + i, &shape));
    TRY(call_output(c, 1 + i, shape.rank, shape.shape, &ends[i]));
    TRY(fill(c, 0, &ends[i]));
  }
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  rdna_tensor least = along(&r.least), most = along(&r.most), to = reshaped(&out, 3, from.shape),
              gradient = reshaped(&dy, 3, from.shape);
  TRY(call_scratch(c, RDNA_BOOL, 3, from.shape, &here));
  TRY(call_scratch(c, RDNA_BOOL, 3, from.shape, &late));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_GE, &from, &least, &here));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LE, &from, &most, &late));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &here, &late, &here));
  TRY(call_scratch(c, dy.dtype, 0, NULL, &none));
  TRY(fill(c, 0, &none));
  rdna_tensor nothing = repeated(&none, 3, from.shape);
  return rdna_op_where(c->stream, &here, &gradient, &nothing, &to);
}
