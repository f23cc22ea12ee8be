/* Arrays over the memory of others, and copies where no view has the values in order. */
#include "array/array.h"
#include "rdna/op/movement.h"

/* Whether values lie in their order without gaps. */
static bool is_contiguous(const rdna_tensor *tensor) {
  int64_t step = 1;
  if (rdna_tensor_count(tensor) == 0) return true;
  for (int i = tensor->rank - 1; i >= 0; i--) {
    if (tensor->shape[i] != 1 && tensor->stride[i] != step) return false;
    step *= tensor->shape[i];
  }
  return true;
}

rdna_status rdna__array_copy(rdna_array *array, rdna_dtype dtype, rdna_array **out_array) {
  rdna_array *made;
  RDNA_TRY(rdna__array_make(array->stream, dtype, array->tensor.rank, array->tensor.shape, &made));
  return rdna__array_finish(rdna_op_copy(array->stream, &array->tensor, &made->tensor), made, out_array);
}

rdna_status rdna_array_contiguous(rdna_array *array, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_contiguous", &array, 1, out_array));
  if (!is_contiguous(&array->tensor)) return rdna__array_copy(array, array->tensor.dtype, out_array);
  *out_array = rdna_array_retain(array);
  return RDNA_OK;
}

rdna_status rdna_array_cast(rdna_array *array, rdna_dtype dtype, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_cast", &array, 1, out_array));
  if (array->lazy) return array->lazy->functions->cast(array, dtype, out_array);
  if (dtype != array->tensor.dtype) return rdna__array_copy(array, dtype, out_array);
  *out_array = rdna_array_retain(array);
  return RDNA_OK;
}

/* |shape| with what -1 stands for, into |out|. */
static rdna_status complete_shape(const rdna_array *array, int rank, const int64_t *shape, rdna_tensor *out) {
  int64_t count = rdna_tensor_count(&array->tensor), known = 1;
  int open = -1;
  char text[RDNA__ARRAY_TEXT];
  if (rank < 0 || rank > RDNA_MAX_RANK || (rank > 0 && !shape))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_reshape: an array has 0 to %d dimensions, not %d",
                      RDNA_MAX_RANK, rank);
  out->rank = rank;
  for (int i = 0; i < rank; i++) {
    out->shape[i] = shape[i];
    if (shape[i] < -1 || (shape[i] == -1 && open >= 0))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_reshape: size %lld of dimension %d; one of them may be -1",
                        (long long)shape[i], i);
    if (shape[i] == -1)
      open = i;
    else if (known == 0 || shape[i] <= count / (known ? known : 1) || shape[i] == 0)
      known *= shape[i];
    else
      known = INT64_MAX / 2; /* more than there are */
  }
  if (open >= 0 && known > 0 && count % known == 0) {
    out->shape[open] = count / known;
    known = count;
  }
  if (known == count && (open < 0 || out->shape[open] >= 0)) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_reshape: the %lld values of an array %s do not fill that shape",
                    (long long)count, rdna__array_text(&array->tensor, text));
}

/* Strides for |out|'s shape over the same memory; false: there are none. Dimensions of both are matched in groups of
 * equal size, within which the old ones must lie as if they were one:
 *
 *     old   (2, 3, 4)  strides (24, 8, 2)   ->  2 | 12 of stride 2
 *     new   (2, 6, 2)                       ->  2 | 6 of stride 4, 2 of stride 2
 */
static bool find_strides(const rdna_tensor *old, rdna_tensor *out) {
  int64_t size[RDNA_MAX_RANK], stride[RDNA_MAX_RANK];
  int rank = 0, from = 0, to = 0;
  for (int i = 0; i < old->rank; i++)
    if (old->shape[i] != 1) size[rank] = old->shape[i], stride[rank++] = old->stride[i];
  while (from < rank) {
    int64_t here = size[from], there = to < out->rank ? out->shape[to] : 1;
    int last = from + 1, end = to + 1;
    while (here != there) {
      if (here < there)
        here *= size[last++];
      else
        there *= out->shape[end++];
    }
    for (int i = from; i + 1 < last; i++)
      if (stride[i] != stride[i + 1] * size[i + 1]) return false;
    int64_t step = stride[last - 1];
    for (int i = end - 1; i >= to; i--) {
      out->stride[i] = step;
      step *= out->shape[i];
    }
    from = last, to = end;
  }
  for (; to < out->rank; to++) out->stride[to] = 1; /* sizes of 1 */
  return true;
}

rdna_status rdna_array_reshape(rdna_array *array, int rank, const int64_t *shape, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_reshape", &array, 1, out_array));
  if (array->lazy) return array->lazy->functions->reshape(array, rank, shape, out_array);
  rdna_tensor view = array->tensor;
  RDNA_TRY(complete_shape(array, rank, shape, &view));
  rdna_array *whole = NULL;
  if (rdna_tensor_count(&view) == 0) {
    view = rdna_tensor_contiguous(NULL, view.dtype, rank, view.shape);
  } else if (!find_strides(&array->tensor, &view)) {
    RDNA_TRY(rdna__array_copy(array, array->tensor.dtype, &whole));
    view = rdna_tensor_contiguous(whole->tensor.data, view.dtype, rank, view.shape);
  }
  rdna_status status = rdna__array_view(whole ? whole : array, &view, out_array);
  rdna_array_release(whole);
  return status;
}

rdna_status rdna_array_permute(rdna_array *array, const int *dims, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_permute", &array, 1, out_array));
  if (array->lazy) return array->lazy->functions->permute(array, dims, out_array);
  rdna_tensor view = array->tensor;
  unsigned seen = 0;
  for (int i = 0; i < view.rank; i++) {
    int dim = dims ? dims[i] : view.rank - 1 - i;
    RDNA_TRY(rdna__array_dim("rdna_array_permute", view.rank, &dim));
    if (seen >> dim & 1) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_permute: dim %d is named twice", dim);
    seen |= 1u << dim;
    view.shape[i] = array->tensor.shape[dim];
    view.stride[i] = array->tensor.stride[dim];
  }
  return rdna__array_view(array, &view, out_array);
}

rdna_status rdna_array_slice(rdna_array *array, int dim, int64_t start, int64_t count, int64_t step,
                             rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_slice", &array, 1, out_array));
  if (array->lazy) return array->lazy->functions->slice(array, dim, start, count, step, out_array);
  RDNA_TRY(rdna__array_dim("rdna_array_slice", array->tensor.rank, &dim));
  rdna_tensor view = array->tensor;
  int64_t size = view.shape[dim];
  bool inside = count >= 0 && step != 0 && (count == 0 || (start >= 0 && start < size));
  /* the last place, without a product that could overflow */
  if (inside && count > 1) inside = step > 0 ? (size - 1 - start) / step >= count - 1 : -(start / step) >= count - 1;
  if (!inside)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_array_slice: %lld places from %lld on, %lld apart, are not all among the %lld of dimension "
                      "%d",
                      (long long)count, (long long)start, (long long)step, (long long)size, dim);
  view.shape[dim] = count;
  if (rdna_tensor_count(&view) == 0) {
    view.data = NULL;
  } else {
    int64_t bytes = (int64_t)rdna_dtype_block_bytes(view.dtype);
    view.data = (char *)view.data + start * view.stride[dim] * bytes;
    view.stride[dim] = count > 1 ? view.stride[dim] * step : view.stride[dim];
  }
  return rdna__array_view(array, &view, out_array);
}

rdna_status rdna_array_broadcast(rdna_array *array, int rank, const int64_t *shape, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_broadcast", &array, 1, out_array));
  if (array->lazy) return array->lazy->functions->broadcast(array, rank, shape, out_array);
  const rdna_tensor *old = &array->tensor;
  char text[RDNA__ARRAY_TEXT], wanted[RDNA__ARRAY_TEXT];
  if (rank < old->rank || rank > RDNA_MAX_RANK || (rank > 0 && !shape))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_array_broadcast: an array %s to %d dimensions; it has %d already, "
                      "and there are %d at most",
                      rdna__array_text(old, text), rank, old->rank, RDNA_MAX_RANK);
  rdna_tensor view = {.data = old->data, .dtype = old->dtype, .rank = rank};
  bool fits = true;
  for (int i = 0; i < rank; i++) {
    int own = i - (rank - old->rank);
    int64_t size = own < 0 ? 1 : old->shape[own];
    view.shape[i] = shape[i];
    view.stride[i] = size == shape[i] && own >= 0 ? old->stride[own] : 0;
    fits &= shape[i] >= 0 && (size == shape[i] || size == 1);
  }
  if (!fits)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_broadcast: an array %s does not repeat to %s",
                      rdna__array_text(old, text), rdna__array_text(&view, wanted));
  if (rdna_tensor_count(&view) == 0) view.data = NULL;
  return rdna__array_view(array, &view, out_array);
}

rdna_status rdna_array_expand(rdna_array *array, int dim, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_expand", &array, 1, out_array));
  const rdna_tensor *old = &array->tensor;
  if (old->rank == RDNA_MAX_RANK)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_expand: the array has %d dimensions already, the most",
                      RDNA_MAX_RANK);
  RDNA_TRY(rdna__array_dim("rdna_array_expand", old->rank + 1, &dim));
  rdna_tensor view = {.data = old->data, .dtype = old->dtype, .rank = old->rank + 1};
  for (int i = 0; i < view.rank; i++) {
    view.shape[i] = i == dim ? 1 : old->shape[i - (i > dim)];
    view.stride[i] = i == dim ? 1 : old->stride[i - (i > dim)];
  }
  if (array->lazy) return array->lazy->functions->reshape(array, view.rank, view.shape, out_array);
  return rdna__array_view(array, &view, out_array);
}

rdna_status rdna_array_squeeze(rdna_array *array, int dim, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_squeeze", &array, 1, out_array));
  rdna_tensor view = array->tensor;
  RDNA_TRY(rdna__array_dim("rdna_array_squeeze", view.rank, &dim));
  if (view.shape[dim] != 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_squeeze: dimension %d has size %lld, not 1", dim,
                      (long long)view.shape[dim]);
  view.rank--;
  for (int i = dim; i < view.rank; i++) view.shape[i] = view.shape[i + 1], view.stride[i] = view.stride[i + 1];
  if (array->lazy) return array->lazy->functions->reshape(array, view.rank, view.shape, out_array);
  return rdna__array_view(array, &view, out_array);
}

rdna_status rdna_array_diagonal(rdna_array *array, int rows, int columns, int64_t offset, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_diagonal", &array, 1, out_array));
  const rdna_tensor *old = &array->tensor;
  RDNA_TRY(rdna__array_dim("rdna_array_diagonal", old->rank, &rows));
  RDNA_TRY(rdna__array_dim("rdna_array_diagonal", old->rank, &columns));
  if (rows == columns)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_diagonal: dim %d is both rows and columns", rows);
  int64_t row = offset < 0 ? -offset : 0, column = offset > 0 ? offset : 0;
  int64_t below = old->shape[rows] - row, beside = old->shape[columns] - column;
  if (offset == INT64_MIN) below = 0; /* whose negative there is not */
  int64_t count = below < beside ? below : beside;
  int place = rows < columns ? rows : columns, gone = rows < columns ? columns : rows;
  rdna_tensor view = {.data = old->data, .dtype = old->dtype, .rank = old->rank - 1};
  for (int i = 0; i < view.rank; i++) {
    view.shape[i] = old->shape[i + (i >= gone)];
    view.stride[i] = old->stride[i + (i >= gone)];
  }
  view.shape[place] = count > 0 ? count : 0;
  view.stride[place] = old->stride[rows] + old->stride[columns];
  if (rdna_tensor_count(&view) == 0)
    view.data = NULL;
  else
    view.data = (char *)view.data +
                (row * old->stride[rows] + column * old->stride[columns]) * (int64_t)rdna_dtype_block_bytes(old->dtype);
  return rdna__array_view(array, &view, out_array);
}

rdna_status rdna_array_bits(rdna_array *array, rdna_dtype dtype, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_bits", &array, 1, out_array));
  rdna_tensor view = array->tensor;
  if (!rdna__array_is_plain(dtype) || rdna_dtype_block_bytes(dtype) != rdna_dtype_block_bytes(view.dtype))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_bits: values of %s and %s do not take the same bytes",
                      rdna_dtype_name(view.dtype), rdna_dtype_name(dtype));
  view.dtype = dtype;
  return rdna__array_view(array, &view, out_array);
}
