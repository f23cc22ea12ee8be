/* Arrays brought together, and values taken by indices. */
#include <stdlib.h>

#include "array/array.h"
#include "rdna/op/index.h"
#include "rdna/op/movement.h"

/* The sizes of the result, of inputs that differ in |dim| alone. */
static rdna_status join_sizes(rdna_array *const *arrays, int count, int dim, rdna_tensor *out) {
  char first[RDNA__ARRAY_TEXT], other[RDNA__ARRAY_TEXT];
  *out = arrays[0]->tensor;
  for (int i = 1; i < count; i++) {
    const rdna_tensor *tensor = &arrays[i]->tensor;
    bool fits = tensor->rank == out->rank;
    for (int d = 0; d < out->rank && fits; d++) fits = d == dim || tensor->shape[d] == out->shape[d];
    if (!fits)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "rdna_array_concat: %s and %s differ in more than the size of dimension %d",
                        rdna__array_text(&arrays[0]->tensor, first), rdna__array_text(tensor, other), dim);
    out->shape[dim] += tensor->shape[dim];
  }
  return RDNA_OK;
}

rdna_status rdna_array_concat(rdna_array *const *arrays, int count, int dim, rdna_array **out_array) {
  if (count < 1 || !arrays)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_concat: one array or more become one, not %d", count);
  RDNA_TRY(rdna__array_check("rdna_array_concat", arrays, count, out_array));
  RDNA_TRY(rdna__array_dim("rdna_array_concat", arrays[0]->tensor.rank, &dim));
  const rdna__recording *recording = rdna__array_recording(arrays, count);
  if (recording) return recording->concat(arrays, count, dim, out_array);
  rdna_tensor sizes;
  RDNA_TRY(join_sizes(arrays, count, dim, &sizes));
  rdna_dtype dtype = sizes.dtype;
  for (int i = 1; i < count; i++) dtype = rdna_dtype_promote(dtype, arrays[i]->tensor.dtype);
  rdna_array *made = NULL, **cast = calloc((size_t)count, sizeof *cast);
  const rdna_tensor **tensors = calloc((size_t)count, sizeof *tensors);
  rdna_status status = RDNA_OK;
  if (!cast || !tensors) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d arrays", count);
  for (int i = 0; i < count && status == RDNA_OK; i++) {
    status = rdna_array_cast(arrays[i], dtype, &cast[i]);
    if (status == RDNA_OK) tensors[i] = &cast[i]->tensor;
  }
  if (status == RDNA_OK) status = rdna__array_make(arrays[0]->stream, dtype, sizes.rank, sizes.shape, &made);
  if (status == RDNA_OK) status = rdna_op_cat(made->stream, tensors, count, dim, &made->tensor);
  for (int i = 0; cast && i < count; i++) rdna_array_release(cast[i]);
  free(cast);
  free(tensors);
  return rdna__array_finish(status, made, out_array);
}

rdna_status rdna_array_gather(rdna_array *x, int dim, rdna_array *indices, rdna_array **out_array) {
  rdna_array *arrays[] = {x, indices}, *made;
  RDNA_TRY(rdna__array_check("rdna_array_gather", arrays, 2, out_array));
  const rdna__recording *recording = rdna__array_recording(arrays, 2);
  if (recording) return recording->gather(x, dim, indices, out_array);
  RDNA_TRY(rdna__array_make(x->stream, x->tensor.dtype, indices->tensor.rank, indices->tensor.shape, &made));
  return rdna__array_finish(rdna_op_gather(x->stream, &x->tensor, dim, &indices->tensor, &made->tensor, NULL), made,
                            out_array);
}
