#include "distinct.h"

#include "compose.h"
#include "ops.h"
#include "rdna/op/index.h"
#include "rdna/op/scan.h"
#include "rdna/op/sort.h"

rdna_status find_distinct(call *c, const rdna_tensor *x, struct distinct *d) {
  int64_t n = x->shape[0];
  rdna_tensor one;
  *d = (struct distinct){.count = 0};
  TRY(call_scratch(c, x->dtype, 1, &n, &d->sorted));
  TRY(call_scratch(c, RDNA_I64, 1, &n, &d->order));
  TRY(call_scratch(c, RDNA_BOOL, 1, &n, &d->first));
  TRY(call_scratch(c, RDNA_I64, 1, &n, &d->number));
  TRY(call_scratch(c, RDNA_I64, 1, &n, &one));
  if (n == 0) return RDNA_OK;
  TRY(rdna_op_sort(c->stream, x, 0, false, &d->sorted, &d->order));
  TRY(fill(c, 1, &d->first));
  rdna_tensor before = narrowed(&d->sorted, 0, 0, n - 1), after = narrowed(&d->sorted, 0, 1, n - 1),
              behind = narrowed(&d->first, 0, 1, n - 1), last = narrowed(&d->number, 0, n - 1, 1);
  if (n > 1) TRY(rdna_op_compare(c->stream, RDNA_COMPARE_NE, &before, &after, &behind));
  TRY(rdna_op_copy(c->stream, &d->first, &one));
  TRY(rdna_op_cumsum(c->stream, &one, 0, &d->number));
  TRY(call_read(c, &last, &d->count));
  return rdna_op_map(c->stream, RDNA_MAP_AFFINE, &d->number, rdna_scalar_integer(1), rdna_scalar_integer(-1),
                     &d->number);
}

rdna_status back_in_order(call *c, const struct distinct *d, const rdna_tensor *number, rdna_tensor *out) {
  TRY(call_scratch(c, RDNA_I64, 1, number->shape, out));
  if (number->shape[0] == 0) return RDNA_OK;
  return rdna_op_index_copy(c->stream, out, 0, &d->order, number, RDNA_SCATTER_ASSIGN, true, NULL);
}

/* (x): the different values in the order of their first places, the number of each of x's values, how many there are of
 * each. */
rdna_status compute_unique_with_counts(call *c) {
  struct distinct d;
  rdna_tensor x, y, indices, counts, first, sorted, turn, at, renamed, sorted_renamed, one, wide;
  TRY(call_input(c, 0, &x));
  if (x.rank != 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "unique expects a 1D vector.");
  TRY(find_distinct(c, &x, &d));
  TRY(call_output(c, 0, 1, &d.count, &y));
  TRY(call_output(c, 1, 1, x.shape, &indices));
  TRY(call_output(c, 2, 1, &d.count, &counts));
  if (d.count == 0) return RDNA_OK;
  TRY(call_scratch(c, RDNA_I64, 1, &d.count, &first));
  TRY(like(c, &first, &sorted));
  TRY(like(c, &first, &turn));
  TRY(like(c, &first, &at));
  TRY(like(c, &first, &renamed));
  TRY(like(c, &first, &wide));
  TRY(like(c, &d.number, &sorted_renamed));
  /* where each value came first, these in rising order, and the number that each value so gets */
  TRY(rdna_op_masked_select(c->stream, &d.order, &d.first, &first));
  TRY(rdna_op_sort(c->stream, &first, 0, false, &sorted, &turn));
  TRY(rdna_op_index_select(c->stream, &x, 0, &sorted, &y, NULL));
  TRY(rdna_op_arange(c->stream, zero, rdna_scalar_integer(1), &at));
  TRY(rdna_op_index_copy(c->stream, &renamed, 0, &turn, &at, RDNA_SCATTER_ASSIGN, true, NULL));
  TRY(rdna_op_index_select(c->stream, &renamed, 0, &d.number, &sorted_renamed, NULL));
  rdna_tensor number;
  TRY(back_in_order(c, &d, &sorted_renamed, &number));
  TRY(rdna_op_copy(c->stream, &number, &indices));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &one));
  TRY(fill(c, 1, &one));
  TRY(fill(c, 0, &wide));
  rdna_tensor ones = repeated(&one, 1, x.shape);
  TRY(rdna_op_index_copy(c->stream, &wide, 0, &number, &ones, RDNA_SCATTER_ADD, true, NULL));
  return rdna_op_copy(c->stream, &wide, &counts);
}
