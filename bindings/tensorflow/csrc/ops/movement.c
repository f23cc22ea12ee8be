/* Operators that move values: views of librdna's tensors, copied. */
#include "rdna/op/movement.h"

#include <math.h>
#include <string.h>

#include "compose.h"
#include "ops.h"
#include "places.h"
#include "rdna/memory.h"

static rdna_status copied(call *c, const rdna_tensor *view) {
  rdna_tensor out;
  TRY(call_output(c, 0, view->rank, view->shape, &out));
  return rdna_op_copy(c->stream, view, &out);
}

rdna_status compute_transpose(call *c) {
  rdna_tensor x;
  int64_t order[RDNA_MAX_RANK];
  int count;
  unsigned seen = 0;
  TRY(call_input(c, 0, &x));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, order, &count));
  rdna_tensor view = x;
  for (int i = 0; i < count && count == x.rank; i++) {
    if (order[i] < 0) order[i] += x.rank;
    if (order[i] < 0 || order[i] >= x.rank) break;
    seen |= 1u << order[i];
    view.shape[i] = x.shape[order[i]];
    view.stride[i] = x.stride[order[i]];
  }
  if (count != x.rank || seen != (1u << x.rank) - 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "transpose expects a permutation of %d dimensions", x.rank);
  return copied(c, &view);
}

rdna_status compute_concat(call *c) { /* number 1: the dimension comes first */
  int count = call_inputs(c) - 1, first = c->number, dim;
  rdna_tensor x, out;
  TRY(call_input(c, first, &out));
  TRY(call_dim(c, first ? 0 : count, out.rank, &dim));
  int64_t shape[RDNA_MAX_RANK];
  memcpy(shape, out.shape, sizeof shape);
  for (int i = 1; i < count; i++) {
    TRY(call_input(c, first + i, &x));
    for (int d = 0; d < x.rank && x.rank == out.rank; d++)
      if (d != dim && x.shape[d] != shape[d]) x.rank = -1;
    if (x.rank != out.rank)
      return call_fail(c, RDNA_INVALID_ARGUMENT,
                       "ConcatOp : Dimension mismatch: tensors of one rank, alike but in dimension %d", dim);
    TRY(size_plus(c, &shape[dim], x.shape[dim]));
  }
  TRY(call_output(c, 0, out.rank, shape, &out));
  for (int64_t i = 0, at = 0; i < count; at += x.shape[dim], i++) {
    TRY(call_input(c, first + (int)i, &x));
    rdna_tensor part = narrowed(&out, dim, at, x.shape[dim]);
    TRY(rdna_op_copy(c->stream, &x, &part));
  }
  return RDNA_OK;
}

static rdna_status split_into(call *c, const rdna_tensor *x, int dim, int count, const int64_t *sizes) {
  int64_t at = 0;
  for (int i = 0; i < count; i++) {
    rdna_tensor out, part = narrowed(x, dim, at, sizes[i]);
    TRY(call_output(c, i, part.rank, part.shape, &out));
    TRY(rdna_op_copy(c->stream, &part, &out));
    at += sizes[i];
  }
  return RDNA_OK;
}

enum { MAX_PARTS = 256 };

rdna_status compute_split(call *c) { /* (dimension, x) */
  rdna_tensor x;
  int dim, count = tf.NumOutputs(c->ctx);
  int64_t sizes[MAX_PARTS];
  TRY(call_input(c, 1, &x));
  TRY(call_dim(c, 0, x.rank, &dim));
  if (count > MAX_PARTS) return call_fail(c, RDNA_UNSUPPORTED, "%d parts; up to %d", count, MAX_PARTS);
  if (x.shape[dim] % count)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Number of ways to split should evenly divide the split dimension");
  for (int i = 0; i < count; i++) sizes[i] = x.shape[dim] / count;
  return split_into(c, &x, dim, count, sizes);
}

rdna_status compute_split_v(call *c) { /* (x, sizes, dimension) */
  rdna_tensor x;
  int dim, count, rest = -1;
  int64_t sizes[MAX_PARTS], sum = 0;
  TRY(call_input(c, 0, &x));
  TRY(call_integers(c, 1, MAX_PARTS, sizes, &count));
  TRY(call_dim(c, 2, x.rank, &dim));
  if (count != tf.NumOutputs(c->ctx))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "%d sizes of parts; num_split is %d", count, tf.NumOutputs(c->ctx));
  for (int i = 0; i < count; i++)
    if (sizes[i] == -1 && rest < 0)
      rest = i;
    else if (sizes[i] < 0 || sizes[i] > x.shape[dim] - sum)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "a part of size %lld of %lld", (long long)sizes[i],
                       (long long)x.shape[dim]);
    else
      sum += sizes[i];
  if (rest >= 0) sum += sizes[rest] = x.shape[dim] - sum;
  if (sum != x.shape[dim] || (rest >= 0 && sizes[rest] < 0))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "the parts' sizes do not add up to %lld", (long long)x.shape[dim]);
  return split_into(c, &x, dim, count, sizes);
}

rdna_status compute_pack(call *c) {
  rdna_tensor x, out;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  int rank = x.rank + 1, dim = (int)c->attributes->axis, count = call_inputs(c);
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank || rank > RDNA_MAX_RANK)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "axis = %lld not in [%d, %d)", (long long)c->attributes->axis, -rank,
                     rank);
  for (int i = 0; i < rank; i++) shape[i] = i < dim ? x.shape[i] : i == dim ? count : x.shape[i - 1];
  TRY(call_output(c, 0, rank, shape, &out));
  shape[dim] = 1;
  for (int i = 0; i < count; i++) {
    TRY(call_input(c, i, &x));
    if (x.rank != rank - 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "Shapes of all inputs must match");
    rdna_tensor row = reshaped(&x, rank, shape), part = narrowed(&out, dim, i, 1);
    for (int d = 0; d < x.rank; d++)
      if (x.shape[d] != shape[d < dim ? d : d + 1])
        return call_fail(c, RDNA_INVALID_ARGUMENT, "Shapes of all inputs must match");
    TRY(rdna_op_copy(c->stream, &row, &part));
  }
  return RDNA_OK;
}

rdna_status compute_unpack(call *c) {
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  int dim = (int)c->attributes->axis;
  if (dim < 0) dim += x.rank;
  if (dim < 0 || dim >= x.rank || tf.NumOutputs(c->ctx) != x.shape[dim])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "unstack of a tensor that has no dimension %lld of %d",
                     (long long)c->attributes->axis, tf.NumOutputs(c->ctx));
  for (int i = 0; i < x.shape[dim]; i++) {
    rdna_tensor part = narrowed(&x, dim, i, 1);
    for (int d = dim; d < x.rank - 1; d++) part.shape[d] = part.shape[d + 1], part.stride[d] = part.stride[d + 1];
    part.rank--;
    TRY(call_output(c, i, part.rank, part.shape, &out));
    TRY(rdna_op_copy(c->stream, &part, &out));
  }
  return RDNA_OK;
}

rdna_status compute_slice(call *c) {
  rdna_tensor x;
  int64_t begin[RDNA_MAX_RANK], size[RDNA_MAX_RANK];
  int begins, sizes;
  TRY(call_input(c, 0, &x));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, begin, &begins));
  TRY(call_integers(c, 2, RDNA_MAX_RANK, size, &sizes));
  if (begins != x.rank || sizes != x.rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Expected begin and size arguments to be 1-D tensors of size %d",
                     x.rank);
  rdna_tensor view = x;
  for (int i = 0; i < x.rank; i++) {
    if (begin[i] < 0 || begin[i] > x.shape[i] || size[i] < -1 || size[i] > x.shape[i] - begin[i])
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Expected begin[%d] in [0, %lld]", i, (long long)x.shape[i]);
    int64_t count = size[i] == -1 ? x.shape[i] - begin[i] : size[i];
    view = narrowed(&view, i, begin[i], count);
  }
  return copied(c, &view);
}

/* ---- strided slices: x[a:b:s, …, None, i] ---- */

struct strided {
  int64_t start[RDNA_MAX_RANK], count[RDNA_MAX_RANK], step[RDNA_MAX_RANK]; /* of each dimension of x */
  int rank;                                                                /* of the result */
  int64_t shape[RDNA_MAX_RANK];
};

/* One dimension of |size| from |begin| to |end|, each left out by its mask, as Python counts. */
static rdna_status one_range(call *c, int64_t size, int64_t begin, int64_t end, int64_t step, bool no_begin,
                             bool no_end, bool single, int64_t *start, int64_t *count) {
  if (step == 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "strides must be non-zero");
  if (single) {
    int64_t at = begin < 0 ? begin + size : begin;
    if (at < 0 || at >= size)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "slice index %lld of dimension out of bounds", (long long)begin);
    *start = at;
    *count = 1;
    return RDNA_OK;
  }
  int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  begin = no_begin ? (step > 0 ? least : most) : begin < least ? least : begin > most ? most : begin;
  end = no_end ? (step > 0 ? most : least) : end < least ? least : end > most ? most : end;
  int64_t length = step > 0 ? end - begin : begin - end, stride = step > 0            ? step
                                                                  : step < -INT64_MAX ? INT64_MAX
                                                                                      : -step;
  *start = begin;
  *count = length > 0 ? (length - 1) / stride + 1 : 0;
  return RDNA_OK;
}

/* What inputs |first| to |first| + 2 (begin, end, strides) and the masks mean for a tensor of this shape. */
static rdna_status read_strided(call *c, int first, int rank, const int64_t *shape, struct strided *out) {
  const struct attributes *a = c->attributes;
  enum { MOST = 2 * RDNA_MAX_RANK };
  int64_t begin[MOST], end[MOST], step[MOST];
  int count, ends, steps, dim = 0, taken = 0, ellipsis = -1;
  TRY(call_integers(c, first, MOST, begin, &count));
  TRY(call_integers(c, first + 1, MOST, end, &ends));
  TRY(call_integers(c, first + 2, MOST, step, &steps));
  if (count != ends || count != steps)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "begin, end, and strides must be 1D equal size tensors");
  for (int i = 0; i < count; i++) {
    if (a->ellipsis_mask >> i & 1) {
      if (ellipsis >= 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "Multiple ellipses in slice spec not allowed");
      ellipsis = i;
    } else if (!(a->new_axis_mask >> i & 1)) {
      taken++;
    }
  }
  if (taken > rank) return call_fail(c, RDNA_INVALID_ARGUMENT, "Index out of range using input dim %d", rank);
  out->rank = 0;
  for (int i = 0; i <= count; i++) {
    if (i == ellipsis || (i == count && ellipsis < 0)) { /* dimensions that are not named are whole */
      if (out->rank + rank - taken > RDNA_MAX_RANK)
        return call_fail(c, RDNA_UNSUPPORTED, "more than %d dimensions", RDNA_MAX_RANK);
      for (int k = taken; k < rank; k++, dim++) {
        out->start[dim] = 0;
        out->count[dim] = out->shape[out->rank++] = shape[dim];
        out->step[dim] = 1;
      }
      continue;
    }
    if (i == count) break;
    if (out->rank == RDNA_MAX_RANK) return call_fail(c, RDNA_UNSUPPORTED, "more than %d dimensions", RDNA_MAX_RANK);
    if (a->new_axis_mask >> i & 1) {
      out->shape[out->rank++] = 1;
      continue;
    }
    bool single = a->shrink_axis_mask >> i & 1;
    out->step[dim] = single ? 1 : step[i];
    TRY(one_range(c, shape[dim], begin[i], end[i], step[i], a->begin_mask >> i & 1, a->end_mask >> i & 1, single,
                  &out->start[dim], &out->count[dim]));
    if (out->count[dim] < 2) out->step[dim] = 1; /* of which any is right, and a large one no stride */
    if (!single) out->shape[out->rank++] = out->count[dim];
    dim++;
  }
  return RDNA_OK;
}

static rdna_tensor strided_view(const rdna_tensor *x, const struct strided *at) {
  rdna_tensor view = *x;
  int64_t offset = 0;
  bool empty = false;
  for (int i = 0; i < x->rank; i++) {
    offset += at->start[i] * x->stride[i];
    view.shape[i] = at->count[i];
    view.stride[i] = x->stride[i] * at->step[i];
    empty |= at->count[i] == 0;
  }
  if (!empty) view.data = (char *)view.data + offset * (int64_t)rdna_dtype_bytes(x->dtype, 1);
  return view;
}

rdna_status compute_strided_slice(call *c) {
  rdna_tensor x, out;
  struct strided at;
  TRY(call_input(c, 0, &x));
  TRY(read_strided(c, 1, x.rank, x.shape, &at));
  TRY(call_output(c, 0, at.rank, at.shape, &out));
  rdna_tensor view = strided_view(&x, &at), flat = reshaped(&out, view.rank, view.shape);
  return rdna_op_copy(c->stream, &view, &flat);
}

/* (shape, begin, end, strides, dy): zeros with dy where the slice was. */
rdna_status compute_strided_slice_gradient(call *c) {
  int64_t shape[RDNA_MAX_RANK];
  int rank;
  struct strided at;
  rdna_tensor dy, out;
  TRY(call_integers(c, 0, RDNA_MAX_RANK, shape, &rank));
  TRY(call_output(c, 0, rank, shape, &out));
  TRY(read_strided(c, 1, rank, shape, &at));
  TRY(call_input(c, 4, &dy));
  TRY(rdna_op_fill(c->stream, rdna_scalar_integer(0), &out));
  rdna_tensor view = strided_view(&out, &at), flat = reshaped(&dy, view.rank, view.shape);
  if (rdna_tensor_count(&dy) != rdna_tensor_count(&view))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "the gradient has another shape than the slice");
  return rdna_op_copy(c->stream, &flat, &view);
}

rdna_status write_slice(call *c, const rdna_tensor *x) {
  rdna_tensor value;
  struct strided at;
  TRY(read_strided(c, 1, x->rank, x->shape, &at));
  TRY(call_input(c, 4, &value));
  rdna_tensor view = strided_view(x, &at), whole = rdna_tensor_contiguous(NULL, x->dtype, at.rank, at.shape);
  if (value.dtype != x->dtype) return call_fail(c, RDNA_INVALID_ARGUMENT, "the slice's value has another type");
  if (!same_shape(&value, at.rank, at.shape)) { /* what may be broadcast is */
    rdna_tensor copy;
    int rank;
    int64_t shape[RDNA_MAX_RANK];
    TRY(call_broadcast(c, &value, &whole, &rank, shape));
    if (!same_shape(&whole, rank, shape))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "the value is larger than the slice");
    TRY(call_scratch(c, value.dtype, rank, shape, &copy));
    TRY(rdna_op_copy(c->stream, &value, &copy));
    value = copy;
  }
  rdna_tensor flat = reshaped(&value, view.rank, view.shape);
  return rdna_op_copy(c->stream, &flat, &view);
}

/* (x, begin, end, strides, value) */
rdna_status compute_slice_update(call *c) {
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  TRY(rdna_op_copy(c->stream, &x, &out));
  return write_slice(c, &out);
}

/* ---- larger than before ---- */

/* x with its own edges, turned round, before and behind it, dimension by dimension. |widths| are two for each. */
static rdna_status pad_symmetric(call *c, const rdna_tensor *x, const int64_t *widths, const rdna_tensor *out) {
  rdna_tensor at = *x, next;
  for (int i = 0; i < x->rank; i++) {
    int64_t before = widths[2 * i], after = widths[2 * i + 1], size = at.shape[i];
    if (before > size || after > size)
      return call_fail(c, RDNA_INVALID_ARGUMENT,
                       "paddings must be no greater than the dimension size: %lld, %lld greater than %lld",
                       (long long)before, (long long)after, (long long)size);
    if (before == 0 && after == 0) continue;
    int64_t shape[RDNA_MAX_RANK];
    memcpy(shape, at.shape, sizeof shape);
    shape[i] += before + after;
    TRY(call_scratch(c, x->dtype, x->rank, shape, &next));
    rdna_tensor from[] = {narrowed(&at, i, 0, before), at, narrowed(&at, i, size - after, after)},
                to[] = {narrowed(&next, i, 0, before), narrowed(&next, i, before, size),
                        narrowed(&next, i, before + size, after)};
    for (int k = 0; k < 3; k++)
      TRY(k == 1 ? rdna_op_copy(c->stream, &from[k], &to[k]) : rdna_op_flip(c->stream, &from[k], 1u << i, &to[k]));
    at = next;
  }
  return rdna_op_copy(c->stream, &at, out);
}

rdna_status compute_pad(call *c) {
  rdna_tensor x, out;
  int64_t widths[2 * RDNA_MAX_RANK], before[RDNA_MAX_RANK], shape[RDNA_MAX_RANK];
  int count;
  TRY(call_input(c, 0, &x));
  TRY(call_integers(c, 1, 2 * RDNA_MAX_RANK, widths, &count));
  if (count != 2 * x.rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "paddings must have 2 numbers for each dimension");
  for (int i = 0; i < x.rank; i++) {
    before[i] = widths[2 * i];
    if (widths[2 * i] < 0 || widths[2 * i + 1] < 0 || __builtin_add_overflow(x.shape[i], widths[2 * i], &shape[i]) ||
        __builtin_add_overflow(shape[i], widths[2 * i + 1], &shape[i]))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Paddings must be non-negative, and a size below 2**63");
  }
  rdna_scalar value = {0, 0};
  if (call_inputs(c) == 3) TRY(call_scalar(c, 2, &value));
  TRY(call_output(c, 0, x.rank, shape, &out));
  rdna_pad_mode mode = RDNA_PAD_MODE_CONSTANT;
  if (strcmp(c->attributes->mode, "REFLECT") == 0) mode = RDNA_PAD_MODE_REFLECT;
  if (strcmp(c->attributes->mode, "SYMMETRIC") == 0) return pad_symmetric(c, &x, widths, &out);
  return rdna_op_pad(c->stream, mode, &x, before, value, &out);
}

rdna_status compute_tile(call *c) {
  rdna_tensor x, out;
  int64_t times[RDNA_MAX_RANK], shape[RDNA_MAX_RANK];
  int count;
  TRY(call_input(c, 0, &x));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, times, &count));
  if (count != x.rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Expected multiples argument to be a vector of length %d", x.rank);
  for (int i = 0; i < x.rank; i++)
    if (times[i] < 0 || __builtin_mul_overflow(x.shape[i], times[i], &shape[i]))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Expected multiples[%d] >= 0 and not %lld", i, (long long)times[i]);
  TRY(call_output(c, 0, x.rank, shape, &out));
  /* Each repetition is a dimension of its own with a stride of 0, where there are dimensions enough. */
  rdna_tensor from = x, to = out;
  from.rank = to.rank = 0;
  int64_t stride = 1;
  for (int i = x.rank - 1, at = RDNA_MAX_RANK; i >= 0; i--) {
    int more = times[i] == 1 || x.shape[i] == 1 ? 1 : 2;
    if (at - more < 0) return call_fail(c, RDNA_UNSUPPORTED, "repetitions in too many dimensions");
    from.shape[--at] = more == 1 ? shape[i] : x.shape[i];
    from.stride[at] = times[i] == 1 || more == 2 ? x.stride[i] : 0;
    to.shape[at] = from.shape[at];
    to.stride[at] = stride;
    if (more == 2) {
      at--;
      from.shape[at] = to.shape[at] = times[i];
      from.stride[at] = 0;
      to.stride[at] = stride * x.shape[i];
    }
    stride *= shape[i];
    from.rank = to.rank = RDNA_MAX_RANK - at;
  }
  for (int i = 0; i < from.rank; i++) {
    from.shape[i] = from.shape[RDNA_MAX_RANK - from.rank + i];
    from.stride[i] = from.stride[RDNA_MAX_RANK - from.rank + i];
    to.shape[i] = to.shape[RDNA_MAX_RANK - from.rank + i];
    to.stride[i] = to.stride[RDNA_MAX_RANK - from.rank + i];
  }
  return rdna_op_copy(c->stream, &from, &to);
}

rdna_status compute_broadcast_to(call *c) {
  rdna_tensor x, out;
  int64_t shape[RDNA_MAX_RANK], both[RDNA_MAX_RANK];
  int rank, wide;
  TRY(call_input(c, 0, &x));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, shape, &rank));
  rdna_tensor goal = rdna_tensor_contiguous(NULL, x.dtype, rank, shape);
  TRY(call_broadcast(c, &x, &goal, &wide, both));
  if (wide != rank || memcmp(both, shape, (size_t)rank * sizeof *shape) != 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Incompatible shapes: a tensor of rank %d to one of %d", x.rank, rank);
  TRY(call_output(c, 0, rank, shape, &out));
  return rdna_op_copy(c->stream, &x, &out);
}

/* (dims, value): the value is on the device. */
rdna_status compute_fill(call *c) {
  rdna_tensor value, out;
  int64_t shape[RDNA_MAX_RANK];
  int rank;
  TRY(call_integers(c, 0, RDNA_MAX_RANK, shape, &rank));
  TRY(call_input(c, 1, &value));
  if (value.rank != 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "value must be a scalar");
  TRY(call_output(c, 0, rank, shape, &out));
  return rdna_op_copy(c->stream, &value, &out);
}

rdna_status compute_range(call *c) {
  rdna_tensor out, kind;
  rdna_scalar start, limit, step;
  TRY(call_input(c, 0, &kind));
  TRY(call_scalar(c, 0, &start));
  TRY(call_scalar(c, 1, &limit));
  TRY(call_scalar(c, 2, &step));
  bool floats = kind.dtype <= RDNA_F64;
  if (floats ? step.real == 0 : step.integer == 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "Requires delta != 0");
  bool up = floats ? step.real > 0 : step.integer > 0;
  if (floats ? !(up ? start.real <= limit.real : start.real >= limit.real)
             : !(up ? start.integer <= limit.integer : start.integer >= limit.integer))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Requires start and limit in the direction of delta");
  int64_t count = -1;
  if (floats) {
    double steps = ceil((limit.real - start.real) / step.real);
    if (steps < 0x1p63) count = (int64_t)steps;
  } else { /* of 64 bits without a sign, which any distance fits */
    uint64_t from = (uint64_t)start.integer, to = (uint64_t)limit.integer, by = (uint64_t)step.integer,
             way = up ? to - from : from - to, steps = way ? (way - 1) / (up ? by : -by) + 1 : 0;
    if (steps <= INT64_MAX) count = (int64_t)steps;
  }
  if (count < 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "a range of 2**63 numbers or more");
  TRY(call_output(c, 0, 1, &count, &out));
  return rdna_op_arange(c->stream, start, step, &out);
}

rdna_status compute_reverse(call *c) {
  rdna_tensor x, out;
  int64_t dims[RDNA_MAX_RANK];
  int count;
  uint32_t bits = 0;
  TRY(call_input(c, 0, &x));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, dims, &count));
  for (int i = 0; i < count; i++) {
    int64_t dim = dims[i] < 0 ? dims[i] + x.rank : dims[i];
    if (dim < 0 || dim >= x.rank || bits >> dim & 1)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "'axis'[%d] = %lld is no dimension, or named twice", i,
                       (long long)dims[i]);
    bits |= 1u << dim;
  }
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  return rdna_op_flip(c->stream, &x, bits, &out);
}

/* What is moved past an end comes back at the other. */
rdna_status compute_roll(call *c) {
  rdna_tensor x, out;
  int64_t shifts[RDNA_MAX_RANK], dims[RDNA_MAX_RANK], before[RDNA_MAX_RANK] = {0};
  int count, named;
  TRY(call_input(c, 0, &x));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, shifts, &count));
  TRY(call_integers(c, 2, RDNA_MAX_RANK, dims, &named));
  if (count != named) return call_fail(c, RDNA_INVALID_ARGUMENT, "shift and axis must have the same size");
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  for (int i = 0; i < count; i++) {
    int64_t dim = dims[i] < 0 ? dims[i] + x.rank : dims[i];
    if (dim < 0 || dim >= x.rank)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "axis %lld is out of range", (long long)dim);
    int64_t shift = shifts[i] % x.shape[dim];
    before[dim] = (before[dim] + shift + x.shape[dim]) % x.shape[dim];
  }
  return rdna_op_pad(c->stream, RDNA_PAD_MODE_CIRCULAR, &x, before, rdna_scalar_integer(0), &out);
}

/* The band of |lower| diagonals below and |upper| above the main one; a negative number is all. */
rdna_status compute_band(call *c) {
  rdna_tensor x, out, half;
  int64_t lower, upper;
  TRY(call_input(c, 0, &x));
  TRY(call_integer(c, 1, &lower));
  TRY(call_integer(c, 2, &upper));
  if (x.rank < 2) return call_fail(c, RDNA_INVALID_ARGUMENT, "input must be at least 2-dim");
  int64_t rows = x.shape[x.rank - 2], columns = x.shape[x.rank - 1];
  if (lower > rows || upper > columns)
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "num_lower and num_upper must be negative or at most the rows (%lld) and columns (%lld), not %lld "
                     "and %lld",
                     (long long)rows, (long long)columns, (long long)lower, (long long)upper);
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (upper < 0) upper = columns;
  if (lower < 0) lower = rows;
  TRY(call_scratch(c, x.dtype, x.rank, x.shape, &half));
  TRY(rdna_op_triangle(c->stream, &x, true, -lower, &half));
  return rdna_op_triangle(c->stream, &half, false, upper, &out);
}

/* The same bytes as another type: a size is added or taken off where the values' sizes differ. */
rdna_status compute_bitcast(call *c) {
  rdna_tensor x, out;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  int64_t from = (int64_t)rdna_dtype_bytes(x.dtype, 1),
          to = (int64_t)rdna_dtype_bytes(dtype_of(tf.ExpectedOutputDataType(c->ctx, 0)), 1);
  if (!to) return call_fail(c, RDNA_UNSUPPORTED, "Bitcast to a type that RDNA does not have");
  int rank = x.rank + (from > to) - (from < to);
  if (rank > RDNA_MAX_RANK || (from < to && (x.rank == 0 || x.shape[x.rank - 1] != to / from)))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Cannot bitcast values of %lld bytes into such of %lld", (long long)from,
                     (long long)to);
  memcpy(shape, x.shape, sizeof shape);
  if (from > to) shape[x.rank] = from / to;
  TRY(call_output(c, 0, rank, shape, &out));
  size_t bytes = rdna_dtype_bytes(x.dtype, rdna_tensor_count(&x));
  return bytes ? rdna_copy_on_device(c->stream, out.data, x.data, bytes) : RDNA_OK;
}
