/* What composed operators are made of, in few words. */
#ifndef RDNA_TENSORFLOW_COMPOSE_H
#define RDNA_TENSORFLOW_COMPOSE_H

#include "kernel.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/reduce.h"

static inline rdna_status zip(call *c, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b,
                              const rdna_tensor *out) {
  return rdna_op_zip(c->stream, op, a, b, zero, zero, out);
}

static inline rdna_status zip_number(call *c, rdna_zip op, const rdna_tensor *a, double b, const rdna_tensor *out) {
  return rdna_op_zip_scalar(c->stream, op, a, rdna_scalar_real(b), false, zero, zero, out);
}

static inline rdna_status map(call *c, rdna_map op, const rdna_tensor *x, const rdna_tensor *out) {
  return rdna_op_map(c->stream, op, x, zero, zero, out);
}

/* out = p x + q */
static inline rdna_status affine(call *c, const rdna_tensor *x, double p, double q, const rdna_tensor *out) {
  return rdna_op_map(c->stream, RDNA_MAP_AFFINE, x, rdna_scalar_real(p), rdna_scalar_real(q), out);
}

static inline rdna_status fill(call *c, double value, const rdna_tensor *out) {
  return rdna_op_fill(c->stream, rdna_scalar_real(value), out);
}

/* |*size| becomes |by| times as large, or larger by it, both not negative; refused where that is no size. */
static inline rdna_status size_times(call *c, int64_t *size, int64_t by) {
  return __builtin_mul_overflow(*size, by, size) ? call_fail(c, RDNA_INVALID_ARGUMENT, "a size of 2**63 or more")
                                                 : RDNA_OK;
}

static inline rdna_status size_plus(call *c, int64_t *size, int64_t by) {
  return __builtin_add_overflow(*size, by, size) ? call_fail(c, RDNA_INVALID_ARGUMENT, "a size of 2**63 or more")
                                                 : RDNA_OK;
}

/* Scratch memory of x's type and shape. */
static inline rdna_status like(call *c, const rdna_tensor *x, rdna_tensor *out) {
  return call_scratch(c, x->dtype, x->rank, x->shape, out);
}

/* Answers of a question about a number, in scratch memory. */
static inline rdna_status answers(call *c, rdna_compare op, const rdna_tensor *x, double number, rdna_tensor *out) {
  TRY(call_scratch(c, RDNA_BOOL, x->rank, x->shape, out));
  return rdna_op_compare_scalar(c->stream, op, x, rdna_scalar_real(number), out);
}

/* |x| in |dtype|: itself or a copy in scratch memory. */
static inline rdna_status as_type(call *c, const rdna_tensor *x, rdna_dtype dtype, rdna_tensor *out) {
  rdna_tensor from = *x;
  *out = from;
  if (from.dtype == dtype) return RDNA_OK;
  TRY(call_scratch(c, dtype, from.rank, from.shape, out));
  return rdna_op_copy(c->stream, &from, out);
}

/* |x| repeated to |shape|, by strides of 0. */
static inline rdna_tensor repeated(const rdna_tensor *x, int rank, const int64_t *shape) {
  rdna_tensor view = *x;
  view.rank = rank;
  for (int i = rank - 1, k = x->rank - 1; i >= 0; i--, k--) {
    view.stride[i] = k >= 0 && x->shape[k] != 1 ? x->stride[k] : 0;
    view.shape[i] = shape[i];
  }
  return view;
}

/* x from |start| on, |count| long, along |dim|. */
static inline rdna_tensor narrowed(const rdna_tensor *x, int dim, int64_t start, int64_t count) {
  rdna_tensor view = *x;
  view.shape[dim] = count;
  if (view.data) view.data = (char *)view.data + start * x->stride[dim] * (int64_t)rdna_dtype_bytes(x->dtype, 1);
  return view;
}

#endif
