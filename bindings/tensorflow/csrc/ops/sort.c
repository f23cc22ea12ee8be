/* Order: the largest values, places in sorted rows, counts. */
#include "rdna/op/sort.h"

#include <string.h>

#include "compose.h"
#include "ops.h"
#include "places.h"
#include "rdna/op/index.h"
#include "rdna/op/vision.h"

static rdna_status top(call *c, int64_t k, int dim, bool largest) {
  rdna_tensor x, values, indices, places;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  if (dim < 0) dim += x.rank;
  if (dim < 0 || dim >= x.rank || k < 0 || k > x.shape[dim])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "input must have at least k columns: k is %lld, the rank %d",
                     (long long)k, x.rank);
  memcpy(shape, x.shape, sizeof shape);
  shape[dim] = k;
  TRY(call_output(c, 0, x.rank, shape, &values));
  TRY(call_output(c, 1, x.rank, shape, &indices));
  if (rdna_tensor_count(&values) == 0) return RDNA_OK;
  TRY(call_scratch(c, RDNA_I64, x.rank, shape, &places));
  TRY(rdna_op_topk(c->stream, &x, dim, largest, &values, &places));
  return rdna_op_copy(c->stream, &places, &indices);
}

rdna_status compute_top_k(call *c) { /* (x, k) */
  int64_t k;
  TRY(call_integer(c, 1, &k));
  return top(c, k, -1, true);
}

/* All of the largest: what is asked for as an approximation may be exact. */
rdna_status compute_approximate_top_k(call *c) {
  const struct attributes *a = c->attributes;
  return top(c, a->k, (int)a->reduction_dimension, a->is_max_k);
}

/* (predictions, classes, k): whether less than k of a row are larger than the one at its class. A row that is not all
 * finite, and a class that there is not, say no. */
rdna_status compute_in_top_k(call *c) {
  rdna_tensor x, classes, out, here, larger, count, fine, there;
  int64_t k;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &classes));
  TRY(call_integer(c, 2, &k));
  if (x.rank != 2 || classes.rank != 1 || classes.shape[0] != x.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "predictions must be 2-dimensional, with a row for each target");
  int64_t rows = x.shape[0];
  TRY(call_output(c, 0, 1, &rows, &out));
  if (rows == 0 || x.shape[1] == 0) return fill(c, 0, &out);
  TRY(call_scratch(c, x.dtype, 2, (int64_t[]){rows, 1}, &here));
  TRY(call_scratch(c, RDNA_BOOL, 2, x.shape, &larger));
  TRY(call_scratch(c, RDNA_I64, 1, &rows, &count));
  TRY(call_scratch(c, RDNA_BOOL, 1, &rows, &fine));
  rdna_tensor column = reshaped(&classes, 2, (int64_t[]){rows, 1});
  TRY(rdna_op_gather(c->stream, &x, 1, &column, &here, NULL));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_GT, &x, &here, &larger));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &larger, 2, 0, &count));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_ISFINITE, &x, NULL, &larger));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_ALL, &larger, 2, 0, &fine));
  TRY(answers(c, RDNA_COMPARE_GE, &classes, 0, &there));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &fine, &there, &fine));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, &classes, rdna_scalar_integer(x.shape[1]), &there));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &fine, &there, &fine));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, &count, rdna_scalar_integer(k), &there));
  return rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &fine, &there, &out);
}

/* (sorted rows, values): LowerBound, or with number 1 UpperBound. */
rdna_status compute_bound(call *c) {
  rdna_tensor sorted, x, out;
  TRY(call_input(c, 0, &sorted));
  TRY(call_input(c, 1, &x));
  if (sorted.rank != 2 || x.rank != 2 || sorted.shape[0] != x.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "sorted_inputs and values must be matrices of as many rows");
  TRY(call_output(c, 0, 2, x.shape, &out));
  return rdna_op_search_sorted(c->stream, &sorted, &x, c->number == 1, &out);
}

/* How many of the attribute's boundaries are at most each value. */
rdna_status compute_bucketize(call *c) {
  const struct reals *list = &c->attributes->boundaries;
  rdna_tensor x, out, values, single, sorted;
  for (int i = 1; i < list->count; i++)
    if (list->values[i] < list->values[i - 1]) return call_fail(c, RDNA_INVALID_ARGUMENT, "Expected sorted boundaries");
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  TRY(as_type(c, &x, x.dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32, &values));
  TRY(call_upload(c, RDNA_F32, list->count, list->values, &single));
  TRY(as_type(c, &single, values.dtype, &sorted));
  return rdna_op_search_sorted(c->stream, &sorted, &values, true, &out);
}

/* ---- counts ---- */

/* Adds |weights|, or one where there are none, to |bins| (rows, size) at |at| (rows, n). What is outside is left out.
 */
static rdna_status count_into(call *c, const rdna_tensor *at, const rdna_tensor *weights, const rdna_tensor *bins) {
  rdna_tensor one, source;
  TRY(fill(c, 0, bins));
  if (rdna_tensor_count(at) == 0 || rdna_tensor_count(bins) == 0) return RDNA_OK;
  if (rdna_tensor_count(weights)) {
    source = reshaped(weights, 2, at->shape);
  } else {
    TRY(call_scratch(c, bins->dtype, 0, NULL, &one));
    TRY(fill(c, 1, &one));
    source = repeated(&one, 2, at->shape);
  }
  return rdna_op_scatter(c->stream, bins, 1, at, &source, RDNA_SCATTER_ADD, true, NULL);
}

/* (values, size, weights): number 1 (DenseBincount) also of rows, and as 0 and 1 if |binary_output|. */
rdna_status compute_bincount(call *c) {
  rdna_tensor x, weights, out, some;
  int64_t size;
  TRY(call_input(c, 0, &x));
  TRY(call_integer(c, 1, &size));
  TRY(call_input(c, 2, &weights));
  bool rows = c->number == 1 && x.rank == 2;
  int64_t count = rdna_tensor_count(&x), given = rdna_tensor_count(&weights);
  if (size < 0 || (c->number == 1 && x.rank > 2) || (given && given != count))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "size (%lld) must be non-negative, and weights as many as values",
                     (long long)size);
  TRY(check_indices(c, &x, INT64_MAX));
  TRY(call_output(c, 0, rows ? 2 : 1, rows ? (int64_t[]){x.shape[0], size} : &size, &out));
  int64_t in[] = {rows ? x.shape[0] : 1, rows ? x.shape[1] : count}, bins[] = {in[0], size};
  rdna_tensor at = reshaped(&x, 2, in), into = reshaped(&out, 2, bins);
  TRY(count_into(c, &at, &weights, &into));
  if (!c->attributes->binary_output) return RDNA_OK;
  TRY(answers(c, RDNA_COMPARE_NE, &out, 0, &some));
  return rdna_op_copy(c->stream, &some, &out);
}

/* (values, range of two, bins): those outside of the range count in the first and the last. */
rdna_status compute_histogram(call *c) {
  rdna_tensor x, range, out, limits, from, ends[2], inside, place, at;
  int64_t bins;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &range));
  TRY(call_integer(c, 2, &bins));
  if (bins <= 0 || rdna_tensor_count(&range) != 2)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "nbins should be a positive number, but got '%lld'", (long long)bins);
  TRY(call_output(c, 0, 1, &bins, &out));
  int64_t count = rdna_tensor_count(&x);
  x = reshaped(&x, 1, &count);
  rdna_tensor none = rdna_tensor_contiguous(NULL, out.dtype, 1, (int64_t[]){0}),
              into = reshaped(&out, 2, (int64_t[]){1, bins});
  if (count == 0) return fill(c, 0, &out);
  TRY(as_type(c, &range, RDNA_F64, &limits));
  TRY(as_type(c, &x, RDNA_F64, &from));
  for (int i = 0; i < 2; i++) ends[i] = narrowed(&limits, 0, i, 1);
  TRY(call_scratch(c, RDNA_F64, 1, &count, &inside));
  TRY(call_scratch(c, RDNA_F64, 1, (int64_t[]){1}, &place));
  TRY(zip(c, RDNA_ZIP_MAXIMUM, &from, &ends[0], &inside));
  TRY(zip(c, RDNA_ZIP_SUB, &inside, &ends[0], &inside));
  TRY(zip(c, RDNA_ZIP_SUB, &ends[1], &ends[0], &place)); /* the width of a bin */
  TRY(zip_number(c, RDNA_ZIP_DIV, &place, (double)bins, &place));
  TRY(zip(c, RDNA_ZIP_DIV, &inside, &place, &inside));
  TRY(zip_number(c, RDNA_ZIP_MINIMUM, &inside, (double)(bins - 1), &inside));
  TRY(call_scratch(c, RDNA_I64, 1, &count, &at));
  TRY(rdna_op_copy(c->stream, &inside, &at));
  rdna_tensor places = reshaped(&at, 2, (int64_t[]){1, count});
  return count_into(c, &places, &none, &into);
}

/* ---- results whose sizes the values decide: the host waits for them ---- */

/* Where values are not 0. */
rdna_status compute_where(call *c) {
  rdna_tensor x, out, count;
  int64_t found = 0;
  TRY(call_input(c, 0, &x));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &count));
  TRY(rdna_op_nonzero_count(c->stream, &x, &count));
  TRY(call_read(c, &count, &found));
  TRY(call_output(c, 0, 2, (int64_t[]){found, x.rank}, &out));
  return rdna_tensor_count(&out) ? rdna_op_nonzero(c->stream, &x, &out) : RDNA_OK;
}

/* Rows of |x| whose |part| is p, as output p. */
rdna_status compute_partition(call *c) {
  rdna_tensor x, part, out, here, at, counted;
  int count = tf.NumOutputs(c->ctx);
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &part));
  int64_t rows = rdna_tensor_count(&part), row = 1, all = 0, shape[RDNA_MAX_RANK], found[256];
  bool prefix = part.rank <= x.rank;
  for (int i = 0; prefix && i < part.rank; i++) prefix = part.shape[i] == x.shape[i];
  if (!prefix || count > 256)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "data.shape must start with partitions.shape; %d parts of up to 256",
                     count);
  int rank = x.rank - part.rank + 1;
  for (int i = 1; i < rank; i++) row *= shape[i] = x.shape[part.rank + i - 1];
  TRY(call_scratch(c, RDNA_I64, 1, (int64_t[]){count}, &counted));
  rdna_tensor list = reshaped(&part, 2, (int64_t[]){1, rows}), into = reshaped(&counted, 2, (int64_t[]){1, count}),
              none = rdna_tensor_contiguous(NULL, RDNA_I64, 1, (int64_t[]){0});
  TRY(count_into(c, &list, &none, &into));
  TRY(call_read(c, &counted, found));
  for (int i = 0; i < count; i++) all += found[i];
  if (all != rows)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "%lld of %lld partitions are not in [0, %d)", (long long)(rows - all),
                     (long long)rows, count);
  TRY(call_scratch(c, RDNA_BOOL, 1, &rows, &here));
  TRY(call_scratch(c, RDNA_I64, 1, &rows, &at));
  list = reshaped(&part, 1, &rows);
  rdna_tensor from = reshaped(&x, 2, (int64_t[]){rows, row});
  for (int i = 0; i < count; i++) {
    shape[0] = found[i];
    TRY(call_output(c, i, rank, shape, &out));
    if (rdna_tensor_count(&out) == 0) continue;
    rdna_tensor to = reshaped(&out, 2, (int64_t[]){found[i], row}), places = reshaped(&at, 2, (int64_t[]){found[i], 1});
    TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_EQ, &list, rdna_scalar_integer(i), &here));
    TRY(rdna_op_nonzero(c->stream, &here, &places));
    places = reshaped(&places, 1, &found[i]);
    TRY(rdna_op_index_select(c->stream, &from, 0, &places, &to, NULL));
  }
  return RDNA_OK;
}

/* (boxes, scores, most, threshold of overlap, threshold of scores): number 2, 3 or 4 is the operator's version. */
rdna_status compute_nms(call *c) {
  rdna_tensor boxes, scores, out, valid, corners, kept, count, best, good;
  rdna_scalar overlap, lowest = rdna_scalar_real(-1e300);
  int64_t most, n = 0;
  TRY(call_input(c, 0, &boxes));
  TRY(call_input(c, 1, &scores));
  TRY(call_integer(c, 2, &most));
  TRY(call_scalar(c, 3, &overlap));
  if (c->number >= 3) TRY(call_scalar(c, 4, &lowest));
  if (boxes.rank != 2 || boxes.shape[1] != 4 || scores.rank != 1 || scores.shape[0] != boxes.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "boxes must be (n, 4), with a score for each");
  if (most < 0 || overlap.real < 0 || overlap.real > 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "iou_threshold must be in [0, 1], max_output_size non-negative");
  if (boxes.shape[0]) {
    TRY(like(c, &boxes, &corners));
    rdna_tensor from[] = {narrowed(&boxes, 1, 0, 2), narrowed(&boxes, 1, 2, 2)},
                to[] = {narrowed(&corners, 1, 0, 2), narrowed(&corners, 1, 2, 2)};
    TRY(zip(c, RDNA_ZIP_MINIMUM, &from[0], &from[1], &to[0])); /* any two opposite corners are given */
    TRY(zip(c, RDNA_ZIP_MAXIMUM, &from[0], &from[1], &to[1]));
    TRY(call_scratch(c, RDNA_I64, 1, scores.shape, &kept));
    TRY(call_scratch(c, RDNA_I64, 0, NULL, &count));
    TRY(rdna_op_nms(c->stream, &corners, &scores, overlap.real, &kept, &count));
    TRY(call_read(c, &count, &n));
    kept.shape[0] = n;
    TRY(call_scratch(c, scores.dtype, 1, &n,
                     &best)); /* in falling order, so that those above the threshold are first */
    TRY(rdna_op_index_select(c->stream, &scores, 0, &kept, &best, NULL));
    TRY(answers(c, RDNA_COMPARE_GT, &best, lowest.real, &good));
    TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &good, 1, 0, &count));
    TRY(call_read(c, &count, &n));
    if (n > most) n = most;
    kept.shape[0] = n;
  }
  int64_t size = c->number == 4 && c->attributes->pad_to_max_output_size ? most : n;
  TRY(call_output(c, 0, 1, &size, &out));
  if (c->number == 4) {
    TRY(call_output(c, 1, 0, NULL, &valid));
    TRY(rdna_op_fill(c->stream, rdna_scalar_integer(n), &valid));
  }
  if (size > n) TRY(fill(c, 0, &out));
  if (n == 0) return RDNA_OK;
  rdna_tensor part = narrowed(&out, 0, 0, n);
  return rdna_op_copy(c->stream, &kept, &part);
}
