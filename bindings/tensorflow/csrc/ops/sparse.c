/* Sparse tensors as TensorFlow's operators take them apart: places (count, dimensions) of i64, a value for each place,
 * and the shape in host memory. Places are compared by their numbers in the order of the dense tensor's values. Where
 * the size of a result depends on values, the host waits for it. What is outside of the shape is not looked for, as
 * that would be another wait, unless it is said that it is, or validate_indices asks for it. */
#include <string.h>

#include "compose.h"
#include "ops.h"
#include "places.h"
#include "rdna/op/index.h"
#include "rdna/op/sort.h"

struct sparse {
  rdna_tensor at, values;
  int rank;
  int64_t shape[RDNA_MAX_RANK];
};

static rdna_status check_sparse(call *c, const struct sparse *s) {
  if (s->at.rank != 2 || s->at.shape[1] != s->rank || s->values.rank != 1 || s->values.shape[0] != s->at.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "indices must be (count, rank) and values (count) of a sparse tensor of rank %d", s->rank);
  for (int i = 0; i < s->rank; i++)
    if (s->shape[i] < 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "a negative size, %lld", (long long)s->shape[i]);
  return RDNA_OK;
}

/* Inputs |at|, |values| and |shape|. */
static rdna_status read_sparse(call *c, int at, int values, int shape, struct sparse *out) {
  TRY(call_input(c, at, &out->at));
  TRY(call_input(c, values, &out->values));
  TRY(call_integers(c, shape, RDNA_MAX_RANK, out->shape, &out->rank));
  return check_sparse(c, out);
}

static rdna_tensor column(const rdna_tensor *at, int i) {
  rdna_tensor view = narrowed(at, 1, i, 1);
  view.rank = 1;
  return view;
}

static rdna_status add_number(call *c, const rdna_tensor *x, int64_t number) {
  return rdna_op_map(c->stream, RDNA_MAP_AFFINE, x, rdna_scalar_integer(1), rdna_scalar_integer(number), x);
}

/* The number of each place in a dense tensor of |shape|, in scratch memory. */
static rdna_status number_places(call *c, const rdna_tensor *at, int rank, const int64_t *shape, rdna_tensor *out) {
  rdna_tensor part;
  int64_t step = 1;
  TRY(call_scratch(c, RDNA_I64, 1, at->shape, out));
  TRY(call_scratch(c, RDNA_I64, 1, at->shape, &part));
  TRY(fill(c, 0, out));
  for (int i = rank - 1; i >= 0; i--) {
    rdna_tensor one = column(at, i);
    TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, &one, rdna_scalar_integer(step), zero, &part));
    TRY(zip(c, RDNA_ZIP_ADD, out, &part, out));
    TRY(size_times(c, &step, shape[i])); /* which also refuses numbers of 2^63 or more */
  }
  return RDNA_OK;
}

/* Where each place comes in the order of a dense tensor, equal ones in the order they have. */
static rdna_status order_of(call *c, const struct sparse *s, rdna_tensor *out) {
  rdna_tensor number;
  TRY(number_places(c, &s->at, s->rank, s->shape, &number));
  TRY(like(c, &number, out));
  return rdna_op_sort(c->stream, &number, 0, false, NULL, out);
}

/* Outputs |i| and |k|: the places and values that |rows| names. */
static rdna_status take(call *c, const struct sparse *s, const rdna_tensor *rows, int i, int k, rdna_tensor *at) {
  rdna_tensor values;
  TRY(call_output(c, i, 2, (int64_t[]){rows->shape[0], s->rank}, at));
  TRY(call_output(c, k, 1, rows->shape, &values));
  if (rows->shape[0] == 0) return RDNA_OK;
  if (s->rank) TRY(rdna_op_index_select(c->stream, &s->at, 0, rows, at, NULL));
  return rdna_op_index_select(c->stream, &s->values, 0, rows, &values, NULL);
}

/* Output |i|, which is in host memory. */
static rdna_status put_integers(call *c, int i, int count, const int64_t *values) {
  rdna_tensor out;
  TRY(call_output(c, i, 1, (int64_t[]){count}, &out));
  if (count) memcpy(out.data, values, (size_t)count * sizeof *values);
  return RDNA_OK;
}

/* The numbers of those that |mask| has, in scratch memory. */
static rdna_status those_of(call *c, const rdna_tensor *mask, rdna_tensor *out) {
  rdna_tensor count, places;
  int64_t n = 0;
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &count));
  TRY(rdna_op_nonzero_count(c->stream, mask, &count));
  TRY(call_read(c, &count, &n));
  TRY(call_scratch(c, RDNA_I64, 2, (int64_t[]){n, 1}, &places));
  if (n) TRY(rdna_op_nonzero(c->stream, mask, &places));
  *out = reshaped(&places, 1, &n);
  return RDNA_OK;
}

/* |list|, numbers of places and -1 of what is outside, must go up. */
static rdna_status check_order(call *c, const rdna_tensor *list) {
  int64_t n = list->shape[0], wrong[2];
  rdna_tensor before = narrowed(list, 0, 0, n - 1), after = narrowed(list, 0, 1, n - 1), outside, falls, counts;
  TRY(call_scratch(c, RDNA_I64, 1, (int64_t[]){2}, &counts));
  rdna_tensor first = narrowed(&counts, 0, 0, 1), second = narrowed(&counts, 0, 1, 1);
  first.rank = second.rank = 0;
  TRY(call_scratch(c, RDNA_BOOL, 1, list->shape, &outside));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, list, zero, &outside));
  TRY(rdna_op_nonzero_count(c->stream, &outside, &first));
  TRY(call_scratch(c, RDNA_BOOL, 1, before.shape, &falls));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_GE, &before, &after, &falls));
  TRY(rdna_op_nonzero_count(c->stream, &falls, &second));
  TRY(call_read(c, &counts, wrong));
  if (wrong[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "%lld of %lld indices are out of bounds of the output",
                     (long long)wrong[0], (long long)n);
  if (wrong[1])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "%lld of %lld indices are repeated or out of order", (long long)wrong[1],
                     (long long)n);
  return RDNA_OK;
}

/* (places, shape, values, default): places may be (count, rank), (count) of a vector, or one of a vector. */
rdna_status compute_sparse_to_dense(call *c) {
  rdna_tensor at, values, otherwise, out, wide, list;
  int64_t shape[RDNA_MAX_RANK];
  int rank;
  TRY(call_input(c, 0, &at));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, shape, &rank));
  TRY(call_input(c, 2, &values));
  TRY(call_input(c, 3, &otherwise));
  int64_t n = at.rank ? at.shape[0] : 1, all = 1;
  if (at.rank > 2 || (at.rank == 2 ? at.shape[1] : 1) != rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "output_shape has incorrect number of elements: %d should be: %lld",
                     rank, (long long)(at.rank == 2 ? at.shape[1] : 1));
  if (values.rank > 1 || (values.rank == 1 && values.shape[0] != n) || rdna_tensor_count(&otherwise) != 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "sparse_values must be one or a vector of %lld, and default_value one",
                     (long long)n);
  TRY(call_output(c, 0, rank, shape, &out));
  for (int i = 0; i < rank; i++) all *= shape[i];
  otherwise = reshaped(&otherwise, 0, NULL);
  rdna_tensor background = repeated(&otherwise, rank, shape);
  TRY(rdna_op_copy(c->stream, &background, &out));
  if (n == 0 || all == 0) return RDNA_OK;
  TRY(as_type(c, &at, RDNA_I64, &wide));
  wide = reshaped(&wide, 2, (int64_t[]){n, rank});
  int count;
  TRY(flat_rows(c, &wide, &out, &count, &list));
  if (c->attributes->validate_indices) TRY(check_order(c, &list));
  rdna_tensor to = reshaped(&out, 1, &all), each = repeated(&values, 1, &n);
  return rdna_op_index_copy(c->stream, &to, 0, &list, &each, RDNA_SCATTER_LAST, false, NULL);
}

/* (places, values, shape) */
rdna_status compute_sparse_reorder(call *c) {
  struct sparse s;
  rdna_tensor order, at;
  TRY(read_sparse(c, 0, 1, 2, &s));
  TRY(order_of(c, &s, &order));
  return take(c, &s, &order, 0, 1, &at);
}

/* (places, shape, new shape), in which one size may be -1 */
rdna_status compute_sparse_reshape(call *c) {
  struct sparse s;
  rdna_tensor number, out;
  int64_t shape[RDNA_MAX_RANK], known = 1, count = 1;
  int rank, unknown = -1;
  TRY(call_input(c, 0, &s.at));
  TRY(call_integers(c, 1, RDNA_MAX_RANK, s.shape, &s.rank));
  TRY(call_integers(c, 2, RDNA_MAX_RANK, shape, &rank));
  s.values = rdna_tensor_contiguous(NULL, RDNA_I64, 1, s.at.shape);
  TRY(check_sparse(c, &s));
  for (int i = 0; i < s.rank; i++) TRY(size_times(c, &count, s.shape[i]));
  for (int i = 0; i < rank; i++) {
    if (shape[i] == -1 && unknown >= 0)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "only one output dimension may be -1, not both %d and %d", unknown, i);
    if (shape[i] < -1)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "size %d must be non-negative, not %lld", i, (long long)shape[i]);
    if (shape[i] == -1)
      unknown = i;
    else
      TRY(size_times(c, &known, shape[i]));
  }
  if (unknown >= 0 && known > 0) shape[unknown] = count / known;
  if (unknown >= 0 ? known == 0 || count % known : known != count)
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "Input to reshape is a SparseTensor with %lld dense values, but the "
                     "requested shape has %lld or no multiple of it",
                     (long long)count, (long long)known);
  TRY(call_output(c, 0, 2, (int64_t[]){s.at.shape[0], rank}, &out));
  TRY(put_integers(c, 1, rank, shape));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(number_places(c, &s.at, s.rank, s.shape, &number));
  for (int i = rank - 1; i >= 0; i--) {
    rdna_tensor to = column(&out, i);
    rdna_scalar size = rdna_scalar_integer(shape[i]);
    TRY(rdna_op_zip_scalar(c->stream, RDNA_ZIP_REMAINDER, &number, size, false, zero, zero, &to));
    TRY(rdna_op_zip_scalar(c->stream, RDNA_ZIP_FLOOR_DIV, &number, size, false, zero, zero, &number));
  }
  return RDNA_OK;
}

/* (places, values, shape, start, size): outputs the places, values and shape of a part. */
rdna_status compute_sparse_slice(call *c) {
  struct sparse s;
  rdna_tensor inside, test, rows, at;
  int64_t start[RDNA_MAX_RANK], size[RDNA_MAX_RANK], shape[RDNA_MAX_RANK];
  int starts, sizes;
  TRY(read_sparse(c, 0, 1, 2, &s));
  TRY(call_integers(c, 3, RDNA_MAX_RANK, start, &starts));
  TRY(call_integers(c, 4, RDNA_MAX_RANK, size, &sizes));
  if (starts != s.rank || sizes != s.rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "start and size must have the rank of the tensor, %d", s.rank);
  TRY(call_scratch(c, RDNA_BOOL, 1, s.at.shape, &inside));
  TRY(call_scratch(c, RDNA_BOOL, 1, s.at.shape, &test));
  TRY(fill(c, 1, &inside));
  for (int i = 0; i < s.rank; i++) {
    int64_t end;
    if (start[i] < 0 || size[i] < 0 || __builtin_add_overflow(start[i], size[i], &end))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "a slice from %lld, %lld long", (long long)start[i],
                       (long long)size[i]);
    shape[i] = start[i] >= s.shape[i] ? 0 : end > s.shape[i] ? s.shape[i] - start[i] : size[i];
    rdna_tensor one = column(&s.at, i);
    TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_GE, &one, rdna_scalar_integer(start[i]), &test));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &inside, &test, &inside));
    TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, &one, rdna_scalar_integer(end), &test));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &inside, &test, &inside));
  }
  TRY(those_of(c, &inside, &rows));
  TRY(take(c, &s, &rows, 0, 1, &at));
  TRY(put_integers(c, 2, s.rank, shape));
  for (int i = 0; i < s.rank && rows.shape[0]; i++) {
    rdna_tensor one = column(&at, i);
    TRY(add_number(c, &one, -start[i]));
  }
  return RDNA_OK;
}

/* Which input place each output place was: both lists have the same places, those of the output moved by |start|, and
 * the input's are more, all within |shape|. Refused where one of the output's is none of the input's. */
static rdna_status find_rows(call *c, const rdna_tensor *in, const rdna_tensor *out, const int64_t *start,
                             const int64_t *shape, rdna_tensor *rows) {
  int rank = (int)in->shape[1];
  int64_t missing = 0;
  rdna_tensor moved, numbers, wanted, sorted, order, found, others, differs, count;
  TRY(like(c, out, &moved));
  TRY(rdna_op_copy(c->stream, out, &moved));
  for (int i = 0; i < rank; i++) {
    rdna_tensor one = column(&moved, i);
    TRY(add_number(c, &one, start[i]));
  }
  TRY(check_places(c, &moved, shape));
  TRY(number_places(c, in, rank, shape, &numbers));
  TRY(number_places(c, &moved, rank, shape, &wanted));
  TRY(like(c, &numbers, &sorted));
  TRY(like(c, &numbers, &order));
  TRY(rdna_op_sort(c->stream, &numbers, 0, false, &sorted, &order));
  TRY(like(c, &wanted, &found));
  TRY(like(c, &wanted, rows));
  TRY(rdna_op_search_sorted(c->stream, &sorted, &wanted, false, &found));
  TRY(like(c, &wanted, &others));
  TRY(call_scratch(c, RDNA_BOOL, 1, wanted.shape, &differs));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &count));
  TRY(rdna_op_index_select(c->stream, &sorted, 0, &found, &others, NULL));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_NE, &others, &wanted, &differs));
  TRY(rdna_op_nonzero_count(c->stream, &differs, &count));
  TRY(call_read(c, &count, &missing));
  if (missing)
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "Elements of backprop_val_grad aren't all propagated. Num elements:%lld, not used: %lld",
                     (long long)wanted.shape[0], (long long)missing);
  return rdna_op_index_select(c->stream, &order, 0, &found, rows, NULL);
}

/* (gradient of the part's values, places of the whole, start, places of the part): 0 for values outside of it. */
rdna_status compute_sparse_slice_gradient(call *c) {
  rdna_tensor grad, in, out, result, largest, rows;
  int64_t start[RDNA_MAX_RANK], shape[RDNA_MAX_RANK];
  int starts;
  TRY(call_input(c, 0, &grad));
  TRY(call_input(c, 1, &in));
  TRY(call_integers(c, 2, RDNA_MAX_RANK, start, &starts));
  TRY(call_input(c, 3, &out));
  if (in.rank != 2 || out.rank != 2 || in.shape[1] != starts || out.shape[1] != starts || grad.rank != 1 ||
      grad.shape[0] != out.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "places must be (count, rank), with a gradient for each of the output's");
  TRY(call_output(c, 0, 1, in.shape, &result));
  TRY(fill(c, 0, &result));
  if (rdna_tensor_count(&in) == 0 || rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(call_scratch(c, RDNA_I64, 1, &in.shape[1], &largest));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_MAX, &in, 1, 0, &largest));
  TRY(call_read(c, &largest, shape));
  for (int i = 0; i < starts; i++) TRY(size_plus(c, &shape[i], 1));
  TRY(find_rows(c, &in, &out, start, shape, &rows));
  return rdna_op_index_copy(c->stream, &result, 0, &rows, &grad, RDNA_SCATTER_ASSIGN, true, NULL);
}

/* (places…, values…, shapes…), a third of the inputs each, one after another along |concat_dim|, in order. */
rdna_status compute_sparse_concat(call *c) {
  int parts = call_inputs(c) / 3, dim = (int)c->attributes->concat_dim;
  struct sparse whole = {0}, part;
  int64_t n = 0, done = 0;
  for (int i = 0; i < parts; i++) {
    TRY(read_sparse(c, i, parts + i, 2 * parts + i, &part));
    if (i == 0) {
      whole = part;
      if (dim < 0) dim += whole.rank;
      if (dim < 0 || dim >= whole.rank)
        return call_fail(c, RDNA_INVALID_ARGUMENT, "Concat dimension must be one of %d", whole.rank);
      whole.shape[dim] = 0;
    }
    if (part.rank != whole.rank) return call_fail(c, RDNA_INVALID_ARGUMENT, "Ranks of all input tensors must match");
    for (int k = 0; k < part.rank; k++)
      if (k != dim && part.shape[k] != whole.shape[k])
        return call_fail(c, RDNA_INVALID_ARGUMENT,
                         "Input shapes must match: expected %lld for dimension %d but got %lld",
                         (long long)whole.shape[k], k, (long long)part.shape[k]);
    TRY(size_plus(c, &whole.shape[dim], part.shape[dim]));
    n += part.at.shape[0];
  }
  TRY(call_scratch(c, RDNA_I64, 2, (int64_t[]){n, whole.rank}, &whole.at));
  TRY(call_scratch(c, whole.values.dtype, 1, &n, &whole.values));
  int64_t offset = 0;
  for (int i = 0; i < parts; i++) {
    TRY(read_sparse(c, i, parts + i, 2 * parts + i, &part));
    int64_t count = part.at.shape[0];
    rdna_tensor at = narrowed(&whole.at, 0, done, count), values = narrowed(&whole.values, 0, done, count);
    if (count) {
      TRY(rdna_op_copy(c->stream, &part.at, &at));
      TRY(rdna_op_copy(c->stream, &part.values, &values));
      rdna_tensor along = column(&at, dim);
      TRY(add_number(c, &along, offset));
    }
    done += count;
    offset += part.shape[dim];
  }
  TRY(check_sparse(c, &whole));
  rdna_tensor order, at;
  TRY(order_of(c, &whole, &order));
  TRY(take(c, &whole, &order, 0, 1, &at));
  return put_integers(c, 2, whole.rank, whole.shape);
}

/* |out|: into which of |parts| each of |along| goes, of which the first |longer| are |size| + 1 long and the rest
 * |size|.
 */
static rdna_status part_of(call *c, const rdna_tensor *along, int64_t size, int64_t longer, rdna_tensor *out) {
  rdna_tensor late, other;
  int64_t boundary = longer * (size + 1);
  TRY(call_scratch(c, RDNA_I64, 1, along->shape, out));
  TRY(call_scratch(c, RDNA_I64, 1, along->shape, &other));
  rdna_scalar more = rdna_scalar_integer(size + 1);
  TRY(rdna_op_zip_scalar(c->stream, RDNA_ZIP_FLOOR_DIV, along, more, false, zero, zero, out));
  TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, along, rdna_scalar_integer(1), rdna_scalar_integer(-boundary), &other));
  TRY(rdna_op_zip_scalar(c->stream, RDNA_ZIP_FLOOR_DIV, &other, rdna_scalar_integer(size), false, zero, zero, &other));
  TRY(add_number(c, &other, longer));
  TRY(call_scratch(c, RDNA_BOOL, 1, along->shape, &late));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_GE, along, rdna_scalar_integer(boundary), &late));
  return rdna_op_where(c->stream, &late, &other, out, out);
}

/* (dimension, places, values, shape): places…, values… and shapes…, |num_split| of each. */
rdna_status compute_sparse_split(call *c) {
  enum { MOST = 1024 };
  struct sparse s;
  rdna_tensor part, order, counts, one, at;
  int64_t count[MOST], parts = c->attributes->num_split, begin = 0, start = 0;
  int dim;
  TRY(read_sparse(c, 1, 2, 3, &s));
  TRY(call_dim(c, 0, s.rank, &dim));
  int64_t whole = s.shape[dim];
  if (parts < 1 || parts > whole || parts > MOST)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "num_split must be in the interval [1, %lld], and at most %d; got %lld",
                     (long long)whole, MOST, (long long)parts);
  rdna_tensor along = column(&s.at, dim);
  TRY(part_of(c, &along, whole / parts, whole % parts, &part));
  TRY(like(c, &part, &order));
  TRY(rdna_op_sort(c->stream, &part, 0, false, NULL, &order));
  TRY(call_scratch(c, RDNA_I64, 1, &parts, &counts));
  TRY(fill(c, 0, &counts));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &one));
  TRY(fill(c, 1, &one));
  rdna_tensor ones = repeated(&one, 1, part.shape);
  if (part.shape[0]) TRY(rdna_op_index_copy(c->stream, &counts, 0, &part, &ones, RDNA_SCATTER_ADD, true, NULL));
  TRY(call_read(c, &counts, count));
  for (int i = 0; i < (int)parts; i++) {
    rdna_tensor rows = narrowed(&order, 0, begin, count[i]);
    int64_t shape[RDNA_MAX_RANK];
    memcpy(shape, s.shape, sizeof shape);
    shape[dim] = whole / parts + (i < whole % parts);
    TRY(take(c, &s, &rows, i, (int)parts + i, &at));
    TRY(put_integers(c, 2 * (int)parts + i, s.rank, shape));
    rdna_tensor moved = column(&at, dim);
    if (count[i]) TRY(add_number(c, &moved, -start));
    begin += count[i];
    start += shape[dim];
  }
  return RDNA_OK;
}

/* ---- rows without a value ---- */

/* |rows| (n) of |count|: a row of |count| that has none gets one, behind all others, in scratch memory; |order| is that
 * of the rows, |empty| which they are. Rows that there are not are refused. */
struct filled {
  rdna_tensor all, order, empty, places;
};

static rdna_status fill_rows(call *c, const rdna_tensor *rows, int64_t count, struct filled *f) {
  rdna_tensor one, sizes, outside, wrong;
  int64_t n = rows->shape[0], bad = 0;
  TRY(call_scratch(c, RDNA_I64, 1, &count, &sizes));
  TRY(fill(c, 0, &sizes));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &one));
  TRY(fill(c, 1, &one));
  if (n) {
    rdna_tensor ones = repeated(&one, 1, rows->shape);
    TRY(rdna_op_index_copy(c->stream, &sizes, 0, rows, &ones, RDNA_SCATTER_ADD, true, NULL));
    TRY(call_scratch(c, RDNA_BOOL, 1, rows->shape, &outside));
    TRY(call_scratch(c, RDNA_BOOL, 1, rows->shape, &wrong));
    TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_GE, rows, rdna_scalar_integer(count), &outside));
    TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, rows, zero, &wrong));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_OR, &outside, &wrong, &outside));
    TRY(rdna_op_nonzero_count(c->stream, &outside, &one));
    TRY(call_read(c, &one, &bad));
    if (bad)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "%lld indices are in no row: there are %lld rows", (long long)bad,
                       (long long)count);
  }
  TRY(call_scratch(c, RDNA_BOOL, 1, &count, &f->empty));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_EQ, &sizes, zero, &f->empty));
  TRY(those_of(c, &f->empty, &f->places));
  int64_t total = n + f->places.shape[0];
  TRY(call_scratch(c, RDNA_I64, 1, &total, &f->all));
  const rdna_tensor *parts[] = {rows, &f->places};
  TRY(rdna_op_cat(c->stream, parts, 2, 0, &f->all));
  TRY(like(c, &f->all, &f->order));
  return rdna_op_sort(c->stream, &f->all, 0, false, NULL, &f->order);
}

/* Outputs 1 to 3: values with the default where there were none, which rows were empty, and where each value went. */
static rdna_status put_filled(call *c, const rdna_tensor *values, const rdna_tensor *otherwise,
                              const struct filled *f) {
  int64_t n = values->shape[0], total = f->all.shape[0];
  rdna_tensor out, empty, map, both, inverse, at;
  TRY(call_output(c, 1, 1, &total, &out));
  TRY(call_output(c, 2, 1, f->empty.shape, &empty));
  TRY(call_output(c, 3, 1, &n, &map));
  TRY(rdna_op_copy(c->stream, &f->empty, &empty));
  if (total == 0) return RDNA_OK;
  TRY(call_scratch(c, values->dtype, 1, &total, &both));
  rdna_tensor value = reshaped(otherwise, 0, NULL), rest = repeated(&value, 1, f->places.shape);
  const rdna_tensor *parts[] = {values, &rest};
  TRY(rdna_op_cat(c->stream, parts, 2, 0, &both));
  TRY(rdna_op_index_select(c->stream, &both, 0, &f->order, &out, NULL));
  TRY(like(c, &f->order, &inverse));
  TRY(like(c, &f->order, &at));
  TRY(rdna_op_arange(c->stream, zero, rdna_scalar_integer(1), &at));
  TRY(rdna_op_index_copy(c->stream, &inverse, 0, &f->order, &at, RDNA_SCATTER_ASSIGN, true, NULL));
  inverse = narrowed(&inverse, 0, 0, n);
  return n ? rdna_op_copy(c->stream, &inverse, &map) : RDNA_OK;
}

/* (places, values, shape, default) */
rdna_status compute_sparse_fill_empty_rows(call *c) {
  struct sparse s;
  struct filled f;
  rdna_tensor otherwise, out, both;
  TRY(read_sparse(c, 0, 1, 2, &s));
  TRY(call_input(c, 3, &otherwise));
  if (s.rank < 1 || rdna_tensor_count(&otherwise) != 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "dense_shape must have a row, and default_value must be one");
  rdna_tensor rows = column(&s.at, 0);
  TRY(fill_rows(c, &rows, s.shape[0], &f));
  int64_t n = s.at.shape[0], total = f.all.shape[0];
  TRY(call_output(c, 0, 2, (int64_t[]){total, s.rank}, &out));
  if (total) {
    TRY(call_scratch(c, RDNA_I64, 2, out.shape, &both));
    TRY(fill(c, 0, &both));
    rdna_tensor first = narrowed(&both, 0, 0, n), numbers = column(&both, 0);
    if (n) TRY(rdna_op_copy(c->stream, &s.at, &first));
    TRY(rdna_op_copy(c->stream, &f.all, &numbers));
    TRY(rdna_op_index_select(c->stream, &both, 0, &f.order, &out, NULL));
  }
  return put_filled(c, &s.values, &otherwise, &f);
}

/* (rows, values, how many rows, default) */
rdna_status compute_ragged_fill_empty_rows(call *c) {
  struct filled f;
  rdna_tensor rows, values, otherwise, out;
  int64_t count;
  TRY(call_input(c, 0, &rows));
  TRY(call_input(c, 1, &values));
  TRY(call_integer(c, 2, &count));
  TRY(call_input(c, 3, &otherwise));
  if (rows.rank != 1 || values.rank != 1 || rows.shape[0] != values.shape[0] || count < 0 ||
      rdna_tensor_count(&otherwise) != 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "value_rowids and values must be vectors of one size, nrows and "
                     "default_value one");
  TRY(fill_rows(c, &rows, count, &f));
  TRY(call_output(c, 0, 1, f.all.shape, &out));
  if (out.shape[0]) TRY(rdna_op_index_select(c->stream, &f.all, 0, &f.order, &out, NULL));
  return put_filled(c, &values, &otherwise, &f);
}

/* (where each value went, gradient): that of the values, and of the default the sum of all others. */
rdna_status compute_fill_empty_rows_gradient(call *c) {
  rdna_tensor map, grad, values, otherwise, rest;
  TRY(call_input(c, 0, &map));
  TRY(call_input(c, 1, &grad));
  if (map.rank != 1 || grad.rank != 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "reverse_index_map and grad_values must be vectors");
  TRY(check_indices(c, &map, grad.shape[0]));
  TRY(call_output(c, 0, 1, map.shape, &values));
  TRY(call_output(c, 1, 0, NULL, &otherwise));
  TRY(fill(c, 0, &otherwise));
  if (grad.shape[0] == 0) return fill(c, 0, &values);
  TRY(like(c, &grad, &rest));
  TRY(rdna_op_copy(c->stream, &grad, &rest));
  if (map.shape[0]) {
    TRY(rdna_op_index_select(c->stream, &grad, 0, &map, &values, NULL));
    rdna_tensor zeros;
    TRY(call_scratch(c, grad.dtype, 0, NULL, &zeros));
    TRY(fill(c, 0, &zeros));
    rdna_tensor each = repeated(&zeros, 1, map.shape);
    TRY(rdna_op_index_copy(c->stream, &rest, 0, &map, &each, RDNA_SCATTER_ASSIGN, true, NULL));
  }
  return rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &rest, 1, 0, &otherwise);
}
