/* Reductions, and running sums and products. */
#include "rdna/op/reduce.h"

#include <math.h>

#include "ops.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/scan.h"

enum { MOST_DIMS = 20 }; /* of what is reduced: the gradient of a repetition has twice as many as that */

/* The dimensions of input 1, which is in host memory, as bits. */
static rdna_status reduced_dims(call *c, int rank, uint32_t *out_dims) {
  int64_t values[MOST_DIMS];
  int count;
  uint32_t dims = 0;
  TRY(call_integers(c, 1, MOST_DIMS, values, &count));
  for (int i = 0; i < count; i++) {
    if (values[i] < -rank || values[i] >= rank)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Invalid reduction dimension (%lld for input with %d dimension(s)",
                       (long long)values[i], rank);
    uint32_t bit = 1u << (values[i] < 0 ? values[i] + rank : values[i]);
    if (dims & bit)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Invalid reduction arguments: Axes contains duplicate dimension: %lld",
                       (long long)values[i]);
    dims |= bit;
  }
  *out_dims = dims;
  return RDNA_OK;
}

static int reduced_sizes(int count, const int64_t *sizes, uint32_t dims, bool keep, int64_t *shape) {
  int rank = 0;
  for (int i = 0; i < count; i++) {
    bool reduced = dims >> i & 1;
    if (!reduced)
      shape[rank++] = sizes[i];
    else if (keep)
      shape[rank++] = 1;
  }
  return rank;
}

static int reduced_shape(const rdna_tensor *x, uint32_t dims, bool keep, int64_t *shape) {
  return reduced_sizes(x->rank, x->shape, dims, keep, shape);
}

/* Input 0 and which of its dimensions input 1 says, neighbours that both are reduced or both stay as one; and the shape
 * of the result. */
static rdna_status read_reduced(call *c, rdna_tensor *x, uint32_t *dims, int *out_rank, int64_t *out_shape) {
  int64_t shape[MOST_DIMS], merged[MOST_DIMS];
  int rank, count = 0;
  uint32_t given = 0;
  *dims = 0;
  TRY(call_input_of_any_rank(c, 0, MOST_DIMS, x, &rank, shape));
  TRY(reduced_dims(c, rank, &given));
  *out_rank = reduced_sizes(rank, shape, given, c->attributes->keep_dims, out_shape);
  for (int i = 0; i < rank; i++) {
    bool reduced = given >> i & 1, same = count && (*dims >> (count - 1) & 1) == reduced;
    if (shape[i] == 1 && rank > RDNA_MAX_RANK) continue; /* one value is no sum */
    if (same)
      merged[count - 1] *= shape[i];
    else
      *dims |= (uint32_t)reduced << count, merged[count++] = shape[i];
  }
  if (count > RDNA_MAX_RANK || *out_rank > RDNA_MAX_RANK)
    return call_fail(c, RDNA_UNSUPPORTED, "a reduction to %d dimensions; RDNA has up to %d", *out_rank, RDNA_MAX_RANK);
  *x = reshaped(x, count, merged);
  return RDNA_OK;
}

static rdna_scalar of_nothing(rdna_reduction reduction, rdna_dtype dtype) {
  bool largest = reduction == RDNA_REDUCTION_MAX;
  if (dtype <= RDNA_F64) return (rdna_scalar){largest ? -INFINITY : INFINITY, 0};
  if (dtype == RDNA_I32) return rdna_scalar_integer(largest ? INT32_MIN : INT32_MAX);
  return (rdna_scalar){0, largest ? INT64_MIN : INT64_MAX};
}

rdna_status compute_reduce(call *c) {
  rdna_reduction reduction = (rdna_reduction)c->number;
  rdna_tensor x, out;
  uint32_t dims = 0;
  int64_t shape[MOST_DIMS];
  int rank;
  TRY(read_reduced(c, &x, &dims, &rank, shape));
  TRY(call_output(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  rank = reduced_shape(&x, dims, false, shape);
  out = reshaped(&out, rank, shape);
  if (rdna_tensor_count(&x) == 0 && (reduction == RDNA_REDUCTION_MIN || reduction == RDNA_REDUCTION_MAX))
    return rdna_op_fill(c->stream, of_nothing(reduction, out.dtype), &out);
  bool sums = reduction == RDNA_REDUCTION_SUM || reduction == RDNA_REDUCTION_PROD;
  if (sums && x.dtype > RDNA_F64 && x.dtype != RDNA_I64) { /* integers are added in 64 bits */
    rdna_tensor wide;
    TRY(call_scratch(c, RDNA_I64, rank, shape, &wide));
    TRY(rdna_op_reduce(c->stream, reduction, &x, dims, 0, &wide));
    return rdna_op_copy(c->stream, &wide, &out);
  }
  return rdna_op_reduce(c->stream, reduction, &x, dims, 2, &out);
}

/* Sums and means of pairs: those of their parts. */
rdna_status compute_complex_reduce(call *c) {
  rdna_tensor x, out;
  uint32_t dims = 0;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_pairs(c, 0, &x));
  TRY(reduced_dims(c, x.rank - 1, &dims));
  int rank = reduced_shape(&x, dims, c->attributes->keep_dims, shape) - 1;
  TRY(call_output_pairs(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  return rdna_op_reduce(c->stream, (rdna_reduction)c->number, &x, dims, 0, &out);
}

rdna_status compute_arg(call *c) {
  rdna_tensor x, out;
  int dim;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  TRY(call_dim(c, 1, x.rank, &dim));
  int rank = reduced_shape(&x, 1u << dim, false, shape);
  if (x.shape[dim] == 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "Reduction axis %d is empty", dim);
  TRY(call_output(c, 0, rank, shape, &out));
  return rdna_op_reduce(c->stream, (rdna_reduction)c->number, &x, 1u << dim, 0, &out);
}

/* Half of the sum of squares. */
rdna_status compute_l2_loss(call *c) {
  rdna_tensor x, squares, out;
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, 0, NULL, &out));
  TRY(call_scratch(c, x.dtype, x.rank, x.shape, &squares));
  TRY(rdna_op_map(c->stream, RDNA_MAP_SQUARE, &x, zero, zero, &squares));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &squares, (1u << x.rank) - 1, 0, &out));
  return rdna_op_map(c->stream, RDNA_MAP_AFFINE, &out, rdna_scalar_real(0.5), zero, &out);
}

/* Along dimension input 1: from the end with |reverse|, without a value's own with |exclusive|. Number
 * 0: sums; 1: products; 2: logarithms of sums of exponentials. */
rdna_status compute_scan(call *c) {
  bool product = c->number == 1;
  rdna_scalar nothing = c->number == 2 ? rdna_scalar_real(-INFINITY) : rdna_scalar_integer(product);
  rdna_tensor x, out, turned;
  int dim;
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (x.rank == 0) {
    TRY(rdna_op_copy(c->stream, &x, &out));
    return c->attributes->exclusive ? rdna_op_fill(c->stream, nothing, &out) : RDNA_OK;
  }
  TRY(call_dim(c, 1, x.rank, &dim));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  rdna_tensor *at = &x;
  if (c->attributes->reverse || c->attributes->exclusive) TRY(call_scratch(c, x.dtype, x.rank, x.shape, &turned));
  if (c->attributes->reverse) {
    TRY(rdna_op_flip(c->stream, &x, 1u << dim, &turned));
    TRY(rdna_op_copy(c->stream, &turned, &out));
    at = &out;
  }
  if (c->attributes->exclusive) { /* moved on by one place */
    int64_t before[RDNA_MAX_RANK] = {0};
    before[dim] = 1;
    TRY(rdna_op_pad(c->stream, RDNA_PAD_MODE_CONSTANT, at, before, nothing, &turned));
    at = &turned;
  }
  TRY(c->number == 2 ? rdna_op_logcumsumexp(c->stream, at, dim, &out)
      : product      ? rdna_op_cumprod(c->stream, at, dim, &out)
                     : rdna_op_cumsum(c->stream, at, dim, &out));
  if (!c->attributes->reverse) return RDNA_OK;
  TRY(call_scratch(c, x.dtype, x.rank, x.shape, &turned));
  TRY(rdna_op_copy(c->stream, &out, &turned));
  return rdna_op_flip(c->stream, &turned, 1u << dim, &out);
}
