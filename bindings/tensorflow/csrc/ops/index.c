/* Values at places that other tensors say. */
#include "rdna/op/index.h"

#include <math.h>
#include <string.h>

#include "compose.h"
#include "ops.h"
#include "places.h"
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

/* |indices|, whose last dimension has a place in each of the first |count| dimensions of x, as numbers of x's rows
 * behind those, in scratch memory of i64. What is outside of a dimension, on either side, is row -1, which there is
 * not: it is ignored, and 0 is read, as on TensorFlow's GPUs. */
rdna_status flat_rows(call *c, const rdna_tensor *indices, const rdna_tensor *x, int *count, rdna_tensor *out) {
  int64_t innermost = indices->rank ? indices->shape[indices->rank - 1] : -1;
  if (innermost < 0 || innermost > x->rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "index innermost dimension length must be <= params rank; saw: %lld vs. %d", (long long)innermost,
                     x->rank);
  int columns = (int)innermost;
  rdna_tensor wide, part, wrong, any;
  int64_t n = 1, step = 1;
  for (int i = 0; i < indices->rank - 1; i++) n *= indices->shape[i];
  *count = columns;
  TRY(as_type(c, indices, RDNA_I64, &wide));
  TRY(call_scratch(c, RDNA_I64, 1, &n, out));
  TRY(call_scratch(c, RDNA_I64, 1, &n, &part));
  TRY(call_scratch(c, RDNA_BOOL, 1, &n, &wrong));
  TRY(call_scratch(c, RDNA_BOOL, 1, &n, &any));
  TRY(fill(c, 0, out));
  TRY(fill(c, 0, &any));
  if (n == 0) return RDNA_OK;
  for (int i = columns - 1; i >= 0; step *= x->shape[i], i--) {
    rdna_tensor column = reshaped(&wide, 2, (int64_t[]){n, columns});
    column = narrowed(&column, 1, i, 1);
    column.rank = 1;
    TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, &column, zero, &wrong));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_OR, &any, &wrong, &any));
    TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_GE, &column, rdna_scalar_integer(x->shape[i]), &wrong));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_OR, &any, &wrong, &any));
    TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, &column, rdna_scalar_integer(step), zero, &part));
    TRY(zip(c, RDNA_ZIP_ADD, out, &part, out));
  }
  return rdna_op_masked_fill(c->stream, &any, rdna_scalar_integer(-1), out, out);
}

rdna_status check_places(call *c, const rdna_tensor *places, const int64_t *size) {
  enum { MOST = RDNA_MAX_RANK };
  rdna_tensor ends, wide;
  int64_t found[2 * MOST], columns = places->shape[1];
  if (rdna_tensor_count(places) == 0) return RDNA_OK;
  if (columns > MOST) return call_fail(c, RDNA_UNSUPPORTED, "places in %lld dimensions", (long long)columns);
  TRY(call_scratch(c, places->dtype, 2, (int64_t[]){2, columns}, &ends));
  for (int i = 0; i < 2; i++) {
    rdna_tensor end = narrowed(&ends, 0, i, 1);
    TRY(rdna_op_reduce(c->stream, i ? RDNA_REDUCTION_MAX : RDNA_REDUCTION_MIN, places, 1, 0, &end));
  }
  TRY(as_type(c, &ends, RDNA_I64, &wide));
  TRY(call_read(c, &wide, found));
  for (int i = 0; i < 2 * columns; i++)
    if (found[i] < 0 || found[i] >= size[i % columns])
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Index %lld out of range [0, %lld).", (long long)found[i],
                       (long long)size[i % columns]);
  return RDNA_OK;
}

rdna_status check_indices(call *c, const rdna_tensor *indices, int64_t size) {
  rdna_tensor column = reshaped(indices, 2, (int64_t[]){rdna_tensor_count(indices), 1});
  return check_places(c, &column, &size);
}

/* |x| as (rows, values) with the first |count| dimensions in one. */
static rdna_tensor rows_of(const rdna_tensor *x, int count) {
  return reshaped(x, 2, (int64_t[]){product(x->shape, count), product(x->shape + count, x->rank - count)});
}

/* x(indices): output 0. */
rdna_status gather_places(call *c, const rdna_tensor *x, const rdna_tensor *indices) {
  rdna_tensor list, out;
  int64_t shape[RDNA_MAX_RANK];
  int count;
  TRY(flat_rows(c, indices, x, &count, &list));
  int front = indices->rank - 1, rank = front + x->rank - count;
  if (rank > RDNA_MAX_RANK) return call_fail(c, RDNA_UNSUPPORTED, "a result of %d dimensions", rank);
  memcpy(shape, indices->shape, (size_t)front * sizeof *shape);
  memcpy(shape + front, x->shape + count, (size_t)(rank - front) * sizeof *shape);
  TRY(call_output(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  rdna_tensor from = rows_of(x, count), to = reshaped(&out, 2, (int64_t[]){list.shape[0], from.shape[1]});
  return rdna_op_index_select(c->stream, &from, 0, &list, &to, NULL);
}

rdna_status compute_gather_nd(call *c) {
  rdna_tensor x, indices;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &indices));
  return gather_places(c, &x, &indices);
}

/* |updates| at |indices| of |dst|: number is how they are joined, SCATTER_SUB one that librdna has not. */
rdna_status put_places(call *c, const rdna_tensor *dst, const rdna_tensor *indices, const rdna_tensor *updates) {
  rdna_tensor list, turned;
  int count, mode = c->number;
  if (indices->rank < 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "indices must have at least one dimension");
  TRY(flat_rows(c, indices, dst, &count, &list));
  rdna_tensor to = rows_of(dst, count);
  if (rdna_tensor_count(updates) != list.shape[0] * to.shape[1])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "updates must have the shape of indices' places and of what lies there");
  if (rdna_tensor_count(updates) == 0 || rdna_tensor_count(dst) == 0) return RDNA_OK;
  rdna_tensor from = reshaped(updates, 2, (int64_t[]){list.shape[0], to.shape[1]});
  if (mode == SCATTER_SUB) {
    TRY(like(c, &from, &turned));
    TRY(map(c, RDNA_MAP_NEG, &from, &turned));
    from = turned;
    mode = RDNA_SCATTER_ADD;
  }
  return rdna_op_index_copy(c->stream, &to, 0, &list, &from, (rdna_scatter)mode, true, NULL);
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
  return put_places(c, &out, &indices, &updates);
}

rdna_status compute_tensor_scatter(call *c) { /* (x, indices, updates) */
  rdna_tensor x, indices, updates, out;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &indices));
  TRY(call_input(c, 2, &updates));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  TRY(rdna_op_copy(c->stream, &x, &out));
  return put_places(c, &out, &indices, &updates);
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
