/* The number of a type that comes next to x on the way to y: a step of the integer that its bits are. Integers alone
 * are compared, so that the smallest numbers count even where floats of their size are taken for 0. */
#include <math.h>

#include "compose.h"
#include "ops.h"

/* The bits of |x| as integers that rise with the numbers, both zeros 0; and back, as it is its own inverse. */
static rdna_status as_steps(call *c, const rdna_tensor *bits, const rdna_tensor *out) {
  rdna_tensor negative, turned;
  int64_t least = bits->dtype == RDNA_I64 ? INT64_MIN : INT32_MIN;
  TRY(answers(c, RDNA_COMPARE_LT, bits, 0, &negative));
  TRY(like(c, bits, &turned));
  TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, bits, rdna_scalar_integer(-1), rdna_scalar_integer(least), &turned));
  return rdna_op_where(c->stream, &negative, &turned, bits, out);
}

/* |bits| += or -= 1 where |a| is less than |b| */
static rdna_status step(call *c, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *bits) {
  rdna_tensor less, one;
  TRY(call_scratch(c, RDNA_BOOL, a->rank, a->shape, &less));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LT, a, b, &less));
  TRY(as_type(c, &less, bits->dtype, &one));
  return zip(c, op, bits, &one, bits);
}

/* Input |i| repeated to |shape|, as bits. */
static rdna_status bits_of(call *c, int i, int rank, const int64_t *shape, rdna_tensor *out) {
  rdna_tensor x;
  TRY(call_input(c, i, &x));
  x.dtype = x.dtype == RDNA_F64 ? RDNA_I64 : RDNA_I32;
  TRY(call_scratch(c, x.dtype, rank, shape, out));
  return rdna_op_copy(c->stream, &x, out);
}

rdna_status compute_next_after(call *c) {
  rdna_tensor a, b, out, x, y, from, to, next, same, no_number, none;
  int64_t shape[RDNA_MAX_RANK];
  int rank;
  TRY(call_input(c, 0, &a));
  TRY(call_input(c, 1, &b));
  TRY(call_broadcast(c, &a, &b, &rank, shape));
  TRY(call_output(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(bits_of(c, 0, rank, shape, &x));
  TRY(bits_of(c, 1, rank, shape, &y));
  TRY(like(c, &x, &from));
  TRY(like(c, &x, &to));
  TRY(like(c, &x, &next));
  TRY(as_steps(c, &x, &from));
  TRY(as_steps(c, &y, &to));
  TRY(rdna_op_copy(c->stream, &from, &next));
  TRY(step(c, RDNA_ZIP_ADD, &from, &to, &next));
  TRY(step(c, RDNA_ZIP_SUB, &to, &from, &next));
  TRY(as_steps(c, &next, &x));
  rdna_tensor bits = out;
  bits.dtype = x.dtype;
  TRY(call_scratch(c, RDNA_BOOL, rank, shape, &same));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_EQ, &from, &to, &same));
  TRY(rdna_op_where(c->stream, &same, &y, &x, &bits)); /* whose sign of 0 is y's */
  TRY(call_scratch(c, out.dtype, 0, NULL, &none));
  TRY(fill(c, (double)NAN, &none));
  rdna_tensor nothing = repeated(&none, rank, shape);
  const rdna_tensor *operands[] = {&a, &b};
  for (int i = 0; i < 2; i++) {
    rdna_tensor whole = repeated(operands[i], rank, shape);
    TRY(call_scratch(c, RDNA_BOOL, rank, shape, &no_number));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_NE, &whole, &whole, &no_number));
    TRY(rdna_op_where(c->stream, &no_number, &nothing, &out, &out));
  }
  return RDNA_OK;
}
