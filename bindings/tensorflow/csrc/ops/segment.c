/* Rows that are joined by the segment they belong to, segments in rising order; number is how. The number of segments
 * is one more than the last row's where no input says it. Rows and segments that are not there, and segments out of
 * order, are refused as by TensorFlow's CPU, for which the host waits; its GPUs leave out what they do not find. */
#include <string.h>

#include "compose.h"
#include "distinct.h"
#include "ops.h"
#include "places.h"
#include "rdna/op/index.h"

/* |rows| (n, row) into |out| (segments, row); a segment without any has 0, or 1 of products. */
static rdna_status join(call *c, int how, const rdna_tensor *rows, const rdna_tensor *segments,
                        const rdna_tensor *out) {
  rdna_scatter mode = how == SEGMENT_SQRT_N ? RDNA_SCATTER_ADD : (rdna_scatter)how;
  bool product = mode == RDNA_SCATTER_PROD, adds = mode == RDNA_SCATTER_ADD;
  TRY(fill(c, product, out));
  if (rdna_tensor_count(rows) == 0 || rdna_tensor_count(out) == 0) return RDNA_OK;
  TRY(rdna_op_index_copy(c->stream, out, 0, segments, rows, mode, product || adds, NULL));
  if (how != SEGMENT_SQRT_N) return RDNA_OK;
  rdna_tensor one, count;
  rdna_dtype wide = out->dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32;
  TRY(call_scratch(c, wide, 0, NULL, &one));
  TRY(fill(c, 1, &one));
  TRY(call_scratch(c, wide, 2, (int64_t[]){out->shape[0], 1}, &count));
  TRY(fill(c, 0, &count));
  rdna_tensor ones = repeated(&one, 2, (int64_t[]){rows->shape[0], 1}), by;
  TRY(rdna_op_index_copy(c->stream, &count, 0, segments, &ones, RDNA_SCATTER_ADD, true, NULL));
  TRY(zip_number(c, RDNA_ZIP_MAXIMUM, &count, 1, &count));
  TRY(map(c, RDNA_MAP_SQRT, &count, &count));
  TRY(as_type(c, &count, out->dtype, &by));
  return zip(c, RDNA_ZIP_DIV, out, &by, out);
}

static rdna_status last_segment(call *c, const rdna_tensor *segments, int64_t *count) {
  int64_t last = 0, n = rdna_tensor_count(segments);
  *count = 0;
  if (n == 0) return RDNA_OK;
  rdna_tensor end = narrowed(segments, 0, n - 1, 1), wide;
  TRY(as_type(c, &end, RDNA_I64, &wide));
  TRY(call_read(c, &wide, &last));
  if (last < 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "segment ids must be >= 0");
  *count = last + 1;
  return RDNA_OK;
}

/* Refuses segments that are not from 0 to |count| - 1 in rising order. */
static rdna_status check_rising(call *c, const rdna_tensor *segments, int64_t count) {
  int64_t n = rdna_tensor_count(segments), wrong = 0;
  TRY(check_indices(c, segments, count));
  if (n < 2) return RDNA_OK;
  rdna_tensor before = narrowed(segments, 0, 0, n - 1), after = narrowed(segments, 0, 1, n - 1), falls, falling;
  TRY(call_scratch(c, RDNA_BOOL, 1, before.shape, &falls));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &falling));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_GT, &before, &after, &falls));
  TRY(rdna_op_nonzero_count(c->stream, &falls, &falling));
  TRY(call_read(c, &falling, &wrong));
  return wrong ? call_fail(c, RDNA_INVALID_ARGUMENT, "segment ids are not increasing") : RDNA_OK;
}

/* Output 0: |x|'s shape with |count| rows. */
static rdna_status rows_out(call *c, const rdna_tensor *x, int64_t count, rdna_tensor *out) {
  int64_t shape[RDNA_MAX_RANK];
  memcpy(shape, x->shape, sizeof shape);
  shape[0] = count;
  return call_output(c, 0, x->rank, shape, out);
}

static rdna_tensor as_rows(const rdna_tensor *x) {
  int64_t row = 1;
  for (int i = 1; i < x->rank; i++) row *= x->shape[i];
  return reshaped(x, 2, (int64_t[]){x->shape[0], row});
}

/* (rows, segments) */
rdna_status compute_sorted_segments(call *c) {
  rdna_tensor x, segments, out;
  int64_t count;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &segments));
  if (x.rank < 1 || segments.rank != 1 || segments.shape[0] != x.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "segment_ids should be the same size as dimension 0 of input.");
  TRY(last_segment(c, &segments, &count));
  TRY(check_rising(c, &segments, count));
  TRY(rows_out(c, &x, count, &out));
  rdna_tensor from = as_rows(&x), to = as_rows(&out);
  return join(c, c->number, &from, &segments, &to);
}

/* (table, indices of its rows, segments), and how many segments where there is an input 3 */
rdna_status compute_sparse_segments(call *c) {
  rdna_tensor table, indices, segments, out, rows;
  int64_t count;
  TRY(call_input(c, 0, &table));
  TRY(call_input(c, 1, &indices));
  TRY(call_input(c, 2, &segments));
  if (table.rank < 1 || indices.rank != 1 || segments.rank != 1 || segments.shape[0] != indices.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "segment_ids and indices should have same size.");
  TRY(call_inputs(c) > 3 ? call_integer(c, 3, &count) : last_segment(c, &segments, &count));
  if (count < 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "num_segments must be >= 0");
  TRY(check_indices(c, &indices, table.shape[0]));
  TRY(check_rising(c, &segments, count));
  TRY(rows_out(c, &table, count, &out));
  rdna_tensor from = as_rows(&table), to = as_rows(&out);
  TRY(call_scratch(c, table.dtype, 2, (int64_t[]){indices.shape[0], from.shape[1]}, &rows));
  if (rdna_tensor_count(&rows)) TRY(rdna_op_index_select(c->stream, &from, 0, &indices, &rows, NULL));
  return join(c, c->number, &rows, &segments, &to);
}

/* Each row of the gradient divided by how many rows its segment has, or the root of that. */
static rdna_status divide_rows(call *c, const rdna_tensor *segments, int64_t count, const rdna_tensor *rows) {
  rdna_tensor one, sizes, each, by;
  rdna_dtype wide = rows->dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32;
  TRY(call_scratch(c, wide, 0, NULL, &one));
  TRY(fill(c, 1, &one));
  TRY(call_scratch(c, wide, 2, (int64_t[]){count, 1}, &sizes));
  TRY(fill(c, 0, &sizes));
  rdna_tensor ones = repeated(&one, 2, (int64_t[]){rows->shape[0], 1});
  TRY(rdna_op_index_copy(c->stream, &sizes, 0, segments, &ones, RDNA_SCATTER_ADD, true, NULL));
  if (c->number == SEGMENT_SQRT_N) TRY(map(c, RDNA_MAP_SQRT, &sizes, &sizes));
  TRY(call_scratch(c, wide, 2, ones.shape, &each));
  TRY(rdna_op_index_select(c->stream, &sizes, 0, segments, &each, NULL));
  TRY(as_type(c, &each, rows->dtype, &by));
  return zip(c, RDNA_ZIP_DIV, rows, &by, rows);
}

/* The rows of the gradient that |segments| name, divided as the row's number says, in scratch memory. */
static rdna_status spread_segments(call *c, const rdna_tensor *gradient, const rdna_tensor *segments,
                                   rdna_tensor *rows) {
  rdna_tensor from = as_rows(gradient);
  TRY(call_scratch(c, gradient->dtype, 2, (int64_t[]){segments->shape[0], from.shape[1]}, rows));
  if (rdna_tensor_count(rows) == 0) return RDNA_OK;
  TRY(rdna_op_index_select(c->stream, &from, 0, segments, rows, NULL));
  return c->number == RDNA_SCATTER_ADD ? RDNA_OK : divide_rows(c, segments, gradient->shape[0], rows);
}

static rdna_status add_rows(call *c, const rdna_tensor *rows, const rdna_tensor *indices, const rdna_tensor *out) {
  rdna_tensor to = as_rows(out);
  TRY(fill(c, 0, out));
  if (rdna_tensor_count(rows) == 0 || out->shape[0] == 0) return RDNA_OK;
  return rdna_op_index_copy(c->stream, &to, 0, indices, rows, RDNA_SCATTER_ADD, true, NULL);
}

/* (gradient, indices, segments, rows of the table) */
static rdna_status segments_gradient_inputs(call *c, rdna_tensor *gradient, rdna_tensor *indices, rdna_tensor *segments,
                                            int64_t *count) {
  TRY(call_input(c, 0, gradient));
  TRY(call_input(c, 1, indices));
  TRY(call_input(c, 2, segments));
  TRY(call_integer(c, 3, count));
  if (gradient->rank < 1 || indices->rank != 1 || segments->rank != 1 || segments->shape[0] != indices->shape[0] ||
      *count < 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "segment_ids and indices should have same size.");
  TRY(check_indices(c, indices, *count));
  return check_indices(c, segments, gradient->shape[0]);
}

rdna_status compute_sparse_segments_gradient(call *c) {
  rdna_tensor gradient, indices, segments, out, rows;
  int64_t count;
  TRY(segments_gradient_inputs(c, &gradient, &indices, &segments, &count));
  TRY(rows_out(c, &gradient, count, &out));
  TRY(spread_segments(c, &gradient, &segments, &rows));
  return add_rows(c, &rows, &indices, &out);
}

/* The same of those rows of the table alone that the indices name; output 1 is which. */
rdna_status compute_sparse_segments_gradient_rows(call *c) {
  struct distinct d;
  rdna_tensor gradient, indices, segments, out, which, rows, number;
  int64_t count;
  TRY(segments_gradient_inputs(c, &gradient, &indices, &segments, &count));
  TRY(find_distinct(c, &indices, &d));
  TRY(rows_out(c, &gradient, d.count, &out));
  TRY(call_output(c, 1, 1, &d.count, &which));
  if (d.count == 0) return RDNA_OK;
  TRY(rdna_op_masked_select(c->stream, &d.sorted, &d.first, &which));
  TRY(back_in_order(c, &d, &d.number, &number));
  TRY(spread_segments(c, &gradient, &segments, &rows));
  return add_rows(c, &rows, &number, &out);
}

/* (places (count, 2), values, shape, matrix): a sparse matrix times a dense one; each value takes a row of the latter
 * to a row of the result. */
rdna_status compute_sparse_matmul(call *c) {
  bool turn_a = c->attributes->adjoint_a, turn_b = c->attributes->adjoint_b;
  rdna_tensor at, values, b, out, rows, dense;
  int64_t shape[2];
  int count;
  TRY(call_input(c, 0, &at));
  TRY(call_input(c, 1, &values));
  TRY(call_integers(c, 2, 2, shape, &count));
  TRY(call_input(c, 3, &b));
  if (count != 2 || at.rank != 2 || at.shape[1] != 2 || values.rank != 1 || values.shape[0] != at.shape[0] ||
      b.rank != 2)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "a_indices must be (count, 2), a_values (count), a and b matrices");
  int64_t n = at.shape[0], inner = shape[turn_a ? 0 : 1], columns = b.shape[turn_b ? 0 : 1];
  if (inner != b.shape[turn_b ? 1 : 0])
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "Cannot multiply A and B because inner dimension does not match: %lld vs. %lld", (long long)inner,
                     (long long)b.shape[turn_b ? 1 : 0]);
  TRY(check_places(c, &at, shape));
  TRY(call_output(c, 0, 2, (int64_t[]){shape[turn_a ? 1 : 0], columns}, &out));
  TRY(fill(c, 0, &out));
  if (n == 0 || rdna_tensor_count(&out) == 0) return RDNA_OK;
  dense = b;
  if (turn_b) {
    rdna_tensor flipped = transposed(b);
    TRY(call_scratch(c, b.dtype, 2, flipped.shape, &dense));
    TRY(rdna_op_copy(c->stream, &flipped, &dense));
  }
  rdna_tensor to = narrowed(&at, 1, turn_a ? 1 : 0, 1), from = narrowed(&at, 1, turn_a ? 0 : 1, 1);
  to.rank = from.rank = 1;
  TRY(call_scratch(c, b.dtype, 2, (int64_t[]){n, columns}, &rows));
  TRY(rdna_op_index_select(c->stream, &dense, 0, &from, &rows, NULL));
  rdna_tensor each = reshaped(&values, 2, (int64_t[]){n, 1});
  TRY(zip(c, RDNA_ZIP_MUL, &rows, &each, &rows));
  return rdna_op_index_copy(c->stream, &out, 0, &to, &rows, RDNA_SCATTER_ADD, true, NULL);
}
