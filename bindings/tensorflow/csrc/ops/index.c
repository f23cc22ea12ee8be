/* Values at places that other tensors say. */
#include "rdna/op/index.h"

#include <math.h>
#include <string.h>

#include "ops.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"

static int64_t product(const int64_t *sizes, int count) {
  int64_t n = 1;
  for (int i = 0; i < count; i++) n *= sizes[i];
  return n;
}

/* x(batch…, outer…, indices(batch…, …), inner…); an index that is not there gives 0, as on other GPUs. */
static rdna_status gather(call *c, const rdna_tensor *x, const rdna_tensor *indices, int dim, int batch) {
  rdna_tensor out;
  int64_t shape[RDNA_MAX_RANK];
  int more = indices->rank - batch, rank = x->rank - 1 + more;
  if (rank > RDNA_MAX_RANK) return call_fail(c, RDNA_UNSUPPORTED, "a result of %d dimensions", rank);
  for (int i = 0; i < batch; i++)
    if (x->shape[i] != indices->shape[i])
      return call_fail(c, RDNA_INVALID_ARGUMENT, "params.shape[%d] should be equal to indices.shape[%d]", i, i);
  memcpy(shape, x->shape, (size_t)dim * sizeof *shape);
  memcpy(shape + dim, indices->shape + batch, (size_t)more * sizeof *shape);
  memcpy(shape + dim + more, x->shape + dim + 1, (size_t)(x->rank - dim - 1) * sizeof *shape);
  TRY(call_output(c, 0, rank, shape, &out));
  int64_t batches = product(x->shape, batch), outer = product(x->shape + batch, dim - batch),
          inner = product(x->shape + dim + 1, x->rank - dim - 1), count = product(indices->shape + batch, more);
  if (batches == 1) {
    rdna_tensor from = reshaped(x, 3, (int64_t[]){outer, x->shape[dim], inner}), list = reshaped(indices, 1, &count),
                to = reshaped(&out, 3, (int64_t[]){outer, count, inner});
    return rdna_op_index_select(c->stream, &from, 1, &list, &to, NULL);
  }
  int64_t all[] = {batches, outer, count, inner};
  rdna_tensor from = reshaped(x, 4, (int64_t[]){batches, outer, x->shape[dim], inner}), to = reshaped(&out, 4, all),
              list = reshaped(indices, 4, all);
  list.stride[0] = count;
  list.stride[1] = list.stride[3] = 0;
  list.stride[2] = 1;
  return rdna_op_gather(c->stream, &from, 2, &list, &to, NULL);
}

rdna_status compute_gather(call *c) { /* number 0: of the first dimension; 2: of dimension input 2 */
  rdna_tensor x, indices;
  int dim = 0, batch = (int)c->attributes->batch_dims;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &indices));
  if (x.rank < 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "params must be at least 1 dimensional");
  if (c->number) TRY(call_dim(c, 2, x.rank, &dim));
  if (batch < 0) batch += indices.rank;
  if (batch < 0 || batch > dim || batch > indices.rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "batch_dims must be at most the axis and the rank of indices");
  return gather(c, &x, &indices, dim, batch);
}

/* The columns of |indices|, whose last dimension has one number for each of x's first dimensions. */
struct columns {
  rdna_tensor tensor[RDNA_MAX_RANK];
  const rdna_tensor *list[RDNA_MAX_RANK];
  int count;
};

static rdna_status split_columns(call *c, const rdna_tensor *indices, int rank, struct columns *out) {
  int count = indices->rank ? (int)indices->shape[indices->rank - 1] : 0;
  if (indices->rank < 1 || count > rank || count < 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "index innermost dimension length must be from 1 to %d", rank);
  /* librdna counts what is below 0 from the end: without its sign it is outside, and ignored as on TensorFlow's GPUs */
  rdna_tensor outside;
  rdna_scalar none = rdna_scalar_integer(0),
              most = rdna_scalar_integer(indices->dtype == RDNA_I32 ? INT32_MAX : INT64_MAX);
  TRY(call_scratch(c, indices->dtype, indices->rank, indices->shape, &outside));
  TRY(rdna_op_zip_scalar(c->stream, RDNA_ZIP_BITWISE_AND, indices, most, false, none, none, &outside));
  memset(out->list, 0, sizeof out->list);
  out->count = count;
  for (int i = 0; i < count; i++) {
    rdna_tensor column = outside;
    column.rank--;
    if (column.data) column.data = (char *)column.data + (size_t)i * rdna_dtype_bytes(column.dtype, 1);
    out->tensor[i] = column;
    out->list[i] = &out->tensor[i];
  }
  return RDNA_OK;
}

rdna_status compute_gather_nd(call *c) {
  rdna_tensor x, indices, out;
  struct columns columns;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &indices));
  TRY(split_columns(c, &indices, x.rank, &columns));
  int front = indices.rank - 1, rank = front + x.rank - columns.count;
  if (rank > RDNA_MAX_RANK) return call_fail(c, RDNA_UNSUPPORTED, "a result of %d dimensions", rank);
  memcpy(shape, indices.shape, (size_t)front * sizeof *shape);
  memcpy(shape + front, x.shape + columns.count, (size_t)(rank - front) * sizeof *shape);
  TRY(call_output(c, 0, rank, shape, &out));
  return rdna_op_index(c->stream, &x, columns.list, &out, NULL);
}

/* |dst| with |updates| at |indices|: number is how they are joined, SCATTER_SUB one that librdna has not. */
static rdna_status put(call *c, const rdna_tensor *dst, const rdna_tensor *indices, const rdna_tensor *updates) {
  struct columns columns;
  rdna_tensor turned;
  if (rdna_tensor_count(updates) == 0) return RDNA_OK;
  TRY(split_columns(c, indices, dst->rank, &columns));
  if (c->number == SCATTER_SUB) {
    TRY(call_scratch(c, updates->dtype, updates->rank, updates->shape, &turned));
    TRY(rdna_op_map(c->stream, RDNA_MAP_NEG, updates, rdna_scalar_real(0), rdna_scalar_real(0), &turned));
    updates = &turned;
  }
  rdna_scatter mode = c->number == RDNA_SCATTER_LAST ? RDNA_SCATTER_LAST : RDNA_SCATTER_ADD;
  return rdna_op_index_put(c->stream, dst, columns.list, updates, mode, NULL);
}

rdna_status compute_scatter_nd(call *c) { /* (indices, updates, shape): into zeros */
  rdna_tensor indices, updates, out;
  int64_t shape[RDNA_MAX_RANK];
  int rank;
  TRY(call_input(c, 0, &indices));
  TRY(call_input(c, 1, &updates));
  TRY(call_integers(c, 2, RDNA_MAX_RANK, shape, &rank));
  TRY(call_output(c, 0, rank, shape, &out));
  TRY(rdna_op_fill(c->stream, rdna_scalar_integer(0), &out));
  return put(c, &out, &indices, &updates);
}

rdna_status compute_tensor_scatter(call *c) { /* (x, indices, updates) */
  rdna_tensor x, indices, updates, out;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &indices));
  TRY(call_input(c, 2, &updates));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  TRY(rdna_op_copy(c->stream, &x, &out));
  return put(c, &out, &indices, &updates);
}

/* (indices, depth, on, off): a new dimension of |depth| in the place |axis|. */
rdna_status compute_one_hot(call *c) {
  rdna_tensor indices, on, off, out, places, here;
  int64_t depth, shape[RDNA_MAX_RANK], ones[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &indices));
  TRY(call_integer(c, 1, &depth));
  TRY(call_input(c, 2, &on));
  TRY(call_input(c, 3, &off));
  int rank = indices.rank + 1, dim = (int)c->attributes->axis;
  if (dim == -1) dim = rank - 1;
  if (dim < 0 || dim >= rank || rank > RDNA_MAX_RANK || depth < 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "one_hot along axis %d of a result of rank %d, depth %lld", dim, rank,
                     (long long)depth);
  for (int i = 0; i < rank; i++) {
    shape[i] = i < dim ? indices.shape[i] : i == dim ? depth : indices.shape[i - 1];
    ones[i] = i == dim ? depth : 1;
  }
  TRY(call_output(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(call_scratch(c, indices.dtype, 1, &depth, &places));
  TRY(call_scratch(c, RDNA_BOOL, rank, shape, &here));
  TRY(rdna_op_arange(c->stream, rdna_scalar_integer(0), rdna_scalar_integer(1), &places));
  places = reshaped(&places, rank, ones);
  shape[dim] = 1;
  indices = reshaped(&indices, rank, shape);
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_EQ, &indices, &places, &here));
  return rdna_op_where(c->stream, &here, &on, &off, &out);
}

/* ---- rows that are joined by the segment they belong to ---- */

static rdna_scalar neutral(rdna_scatter mode, rdna_dtype dtype) {
  if (mode == RDNA_SCATTER_ADD) return rdna_scalar_integer(0);
  if (mode == RDNA_SCATTER_PROD) return rdna_scalar_integer(1);
  bool most = mode == RDNA_SCATTER_MIN;
  switch (dtype) { /* TensorFlow fills with the type's lowest and highest finite value */
    case RDNA_F32:
      return rdna_scalar_real(most ? (double)3.402823466e38f : -(double)3.402823466e38f);
    case RDNA_F64:
      return rdna_scalar_real(most ? 1.7976931348623157e308 : -1.7976931348623157e308);
    case RDNA_F16:
      return rdna_scalar_real(most ? 65504 : -65504);
    case RDNA_BF16:
      return rdna_scalar_real(most ? 0x1.fep127 : -0x1.fep127);
    case RDNA_I8:
      return rdna_scalar_integer(most ? INT8_MAX : INT8_MIN);
    case RDNA_U8:
      return rdna_scalar_integer(most ? UINT8_MAX : 0);
    case RDNA_I16:
      return rdna_scalar_integer(most ? INT16_MAX : INT16_MIN);
    case RDNA_I32:
      return rdna_scalar_integer(most ? INT32_MAX : INT32_MIN);
    default:
      return rdna_scalar_integer(most ? INT64_MAX : INT64_MIN);
  }
}

/* (x, segments, count): the first dimensions of x are those of |segments|; rows of a negative one are left out. */
rdna_status compute_segments(call *c) {
  rdna_tensor x, segments, out;
  int64_t count, shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &segments));
  TRY(call_integer(c, 2, &count));
  bool prefix = segments.rank <= x.rank && count >= 0;
  for (int i = 0; prefix && i < segments.rank; i++) prefix = segments.shape[i] == x.shape[i];
  if (!prefix || x.rank - segments.rank + 1 > RDNA_MAX_RANK)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "data.shape does not start with segment_ids.shape, or %lld segments",
                     (long long)count);
  int rank = x.rank - segments.rank + 1;
  shape[0] = count;
  memcpy(shape + 1, x.shape + segments.rank, (size_t)(rank - 1) * sizeof *shape);
  TRY(call_output(c, 0, rank, shape, &out));
  rdna_scatter mode = (rdna_scatter)c->number;
  TRY(rdna_op_fill(c->stream, neutral(mode, x.dtype), &out));
  if (rdna_tensor_count(&x) == 0 || count == 0) return RDNA_OK;
  int64_t rows = rdna_tensor_count(&segments), row = rdna_tensor_count(&x) / rows;
  rdna_tensor list = reshaped(&segments, 1, &rows), from = reshaped(&x, 2, (int64_t[]){rows, row}),
              to = reshaped(&out, 2, (int64_t[]){count, row});
  return rdna_op_index_copy(c->stream, &to, 0, &list, &from, mode, true, NULL);
}
