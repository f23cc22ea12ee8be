/* Products of matrices with any number of dimensions before the last two. */
#include "array/array.h"
#include "rdna/op/gemm.h"

/* |x| promoted, with a dimension of size 1 where it has but one: a row on the left, a column on the right. */
static rdna_status as_matrix(rdna_array *x, rdna_dtype dtype, bool left, rdna_array **out_array) {
  rdna_array *cast;
  RDNA_TRY(rdna_array_cast(x, dtype, &cast));
  if (cast->tensor.rank > 1) {
    *out_array = cast;
    return RDNA_OK;
  }
  rdna_status status = rdna_array_expand(cast, left ? 0 : 1, out_array);
  rdna_array_release(cast);
  return status;
}

rdna_status rdna__array_join_batches(const rdna_array *a, const rdna_array *b, rdna_tensor *out) {
  int64_t k = a->tensor.shape[a->tensor.rank - 1], other = b->tensor.shape[b->tensor.rank - 2];
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  if (k != other)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_array_matmul: %s by %s: the last dimension of the first and the one before the last of the "
                      "second must be equal",
                      rdna__array_text(&a->tensor, first), rdna__array_text(&b->tensor, second));
  rdna_array of_a = *a, of_b = *b, *both[] = {&of_a, &of_b};
  of_a.tensor.rank -= 2;
  of_b.tensor.rank -= 2;
  return rdna__array_join_shapes("rdna_array_matmul", both, 2, out);
}

/* |x|'s matrices for each of |batches| as rank 3, or as rank 2 where there is one: a view where one stride leads from
 * each to the next, else a copy. */
static rdna_status as_batch(rdna_array *x, const rdna_tensor *batches, rdna_array **out_array) {
  const rdna_tensor *matrix = &x->tensor;
  int64_t shape[RDNA_MAX_RANK], flat[3] = {1, matrix->shape[matrix->rank - 2], matrix->shape[matrix->rank - 1]};
  int rank = batches->rank + 2;
  for (int i = 0; i < batches->rank; i++) {
    shape[i] = batches->shape[i];
    flat[0] *= shape[i];
  }
  shape[rank - 2] = flat[1];
  shape[rank - 1] = flat[2];
  rdna_array *repeated;
  RDNA_TRY(rdna_array_broadcast(x, rank, shape, &repeated));
  rdna_status status = rdna_array_reshape(repeated, batches->rank ? 3 : 2, batches->rank ? flat : flat + 1, out_array);
  rdna_array_release(repeated);
  return status;
}

/* The result without the dimensions that vectors have been given. */
static rdna_status drop_dims(rdna_array *product, const rdna_tensor *batches, bool row, bool column,
                             rdna_array **out_array) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = 0, from = product->tensor.rank - 2;
  for (int i = 0; i < batches->rank; i++) shape[rank++] = batches->shape[i];
  if (!row) shape[rank++] = product->tensor.shape[from];
  if (!column) shape[rank++] = product->tensor.shape[from + 1];
  return rdna_array_reshape(product, rank, shape, out_array);
}

static rdna_status multiply(rdna_array *a, rdna_array *b, const rdna_tensor *batches, rdna_array **out_product) {
  rdna_array *left, *right = NULL, *product = NULL;
  RDNA_TRY(as_batch(a, batches, &left));
  rdna_status status = as_batch(b, batches, &right);
  if (status == RDNA_OK) {
    int rank = left->tensor.rank;
    int64_t shape[3] = {left->tensor.shape[0], left->tensor.shape[rank - 2], right->tensor.shape[rank - 1]};
    status = rdna__array_make(a->stream, a->tensor.dtype, rank, rank == 3 ? shape : shape + 1, &product);
  }
  if (status == RDNA_OK) status = rdna_op_gemm(a->stream, 1, &left->tensor, &right->tensor, 0, NULL, &product->tensor);
  rdna_array_release(left);
  rdna_array_release(right);
  return rdna__array_finish(status, product, out_product);
}

static rdna_status multiply_matrices(rdna_array *a, rdna_array *b, bool row, bool column, rdna_array **out_array) {
  rdna_tensor batches;
  rdna_array *product;
  RDNA_TRY(rdna__array_join_batches(a, b, &batches));
  RDNA_TRY(multiply(a, b, &batches, &product));
  rdna_status status = drop_dims(product, &batches, row, column, out_array);
  rdna_array_release(product);
  return status;
}

rdna_status rdna_array_matmul(rdna_array *a, rdna_array *b, rdna_array **out_array) {
  rdna_array *arrays[] = {a, b}, *left, *right;
  RDNA_TRY(rdna__array_check("rdna_array_matmul", arrays, 2, out_array));
  const rdna__recording *recording = rdna__array_recording(arrays, 2);
  if (recording) return recording->matmul(a, b, out_array);
  rdna_dtype dtype = rdna_dtype_promote(a->tensor.dtype, b->tensor.dtype);
  if (!rdna__array_is_float(dtype))
    return rdna__fail(RDNA_UNSUPPORTED, "rdna_array_matmul of %s: there are products of floats; cast one of the arrays",
                      rdna_dtype_name(dtype));
  if (a->tensor.rank == 0 || b->tensor.rank == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_array_matmul: an array of no dimensions is no matrix; multiply by "
                      "RDNA_ZIP_MUL");
  RDNA_TRY(as_matrix(a, dtype, true, &left));
  rdna_status status = as_matrix(b, dtype, false, &right);
  if (status != RDNA_OK) {
    rdna_array_release(left);
    return status;
  }
  status = multiply_matrices(left, right, a->tensor.rank == 1, b->tensor.rank == 1, out_array);
  rdna_array_release(left);
  rdna_array_release(right);
  return status;
}
