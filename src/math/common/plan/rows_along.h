/* For operators along one dimension: a tensor as contiguous rows of that dimension, copied when it does not lie so. */
#ifndef RDNA_MATH_COMMON_PLAN_ROWS_ALONG_H
#define RDNA_MATH_COMMON_PLAN_ROWS_ALONG_H

#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "rdna/op/movement.h"

/* The same values with dimension |dim| as the last. */
static inline rdna_tensor rdna__dim_last(const rdna_tensor *x, int dim) {
  rdna_tensor view = *x;
  for (int i = dim; i + 1 < x->rank; i++) view.shape[i] = x->shape[i + 1], view.stride[i] = x->stride[i + 1];
  if (x->rank > 0) view.shape[x->rank - 1] = x->shape[dim], view.stride[x->rank - 1] = x->stride[dim];
  return view;
}

/* Where contiguous values of |view| are or will be: its own memory, or scratch. */
static inline rdna_status rdna__dense_place(rdna__scratch *scratch, const rdna_tensor *view, rdna_tensor *out_dense) {
  *out_dense = rdna_tensor_contiguous(view->data, view->dtype, view->rank, view->shape);
  if (rdna__is_contiguous(view)) return RDNA_OK;
  return rdna__scratch_tensor(scratch, view->dtype, view->rank, view->shape, out_dense);
}
/* With the values in it. */
static inline rdna_status rdna__dense_in(rdna__scratch *scratch, const rdna_tensor *view, rdna_tensor *out_dense) {
  RDNA_TRY(rdna__dense_place(scratch, view, out_dense));
  return out_dense->data == view->data ? RDNA_OK : rdna_op_copy(scratch->stream, view, out_dense);
}
/* Brings the values back if they are in scratch. */
static inline rdna_status rdna__dense_out(rdna__scratch *scratch, const rdna_tensor *dense, const rdna_tensor *view) {
  return dense->data == view->data ? RDNA_OK : rdna_op_copy(scratch->stream, dense, view);
}

#endif
