/* For operators along one dimension: gives a tensor as contiguous rows of that dimension, copying it to scratch memory
 * if need be:
 *
 *     rdna__dim_last -> rdna__dense_in (or _place, for what is only written) -> launch -> rdna__dense_out
 */
#ifndef RDNA_MATH_COMMON_PLAN_ROWS_ALONG_H
#define RDNA_MATH_COMMON_PLAN_ROWS_ALONG_H

#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "rdna/op/movement.h"

/* Returns a view of the same values with dimension |dim| moved last. */
static inline rdna_tensor rdna__dim_last(const rdna_tensor *x, int dim) {
  rdna_tensor view = *x;
  for (int i = dim; i + 1 < x->rank; i++) view.shape[i] = x->shape[i + 1], view.stride[i] = x->stride[i + 1];
  if (x->rank > 0) view.shape[x->rank - 1] = x->shape[dim], view.stride[x->rank - 1] = x->stride[dim];
  return view;
}

/* Gives a contiguous tensor of |view|'s shape: |view| itself if it is contiguous, else scratch memory, uninitialised.
 */
static inline rdna_status rdna__dense_place(rdna__scratch *scratch, const rdna_tensor *view, rdna_tensor *out_dense) {
  *out_dense = rdna_tensor_contiguous(view->data, view->dtype, view->rank, view->shape);
  if (rdna__is_contiguous(view)) return RDNA_OK;
  return rdna__scratch_tensor(scratch, view->dtype, view->rank, view->shape, out_dense);
}
/* The same, with the values of |view| copied in. */
static inline rdna_status rdna__dense_in(rdna__scratch *scratch, const rdna_tensor *view, rdna_tensor *out_dense) {
  RDNA_TRY(rdna__dense_place(scratch, view, out_dense));
  return out_dense->data == view->data ? RDNA_OK : rdna_op_copy(scratch->stream, view, out_dense);
}
/* Copies the values back to |view| if they are in scratch memory. */
static inline rdna_status rdna__dense_out(rdna__scratch *scratch, const rdna_tensor *dense, const rdna_tensor *view) {
  return dense->data == view->data ? RDNA_OK : rdna_op_copy(scratch->stream, dense, view);
}

#endif
