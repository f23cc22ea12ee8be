/* Operators that work value by value. */
#include "rdna/op/pointwise.h"

#include <float.h>
#include <math.h>

#include "compose.h"
#include "ops.h"
#include "rdna/op/cast.h"
#include "rdna/op/movement.h"

static rdna_scalar real(double v) { return rdna_scalar_real(v); }

/* The one input of an operator and the output, which may be in its place. */
static rdna_status one(call *c, rdna_tensor *x, rdna_tensor *out) {
  TRY(call_input(c, 0, x));
  return call_output_over(c, 1, 0, x->rank, x->shape, out);
}

/* Two inputs and the output of their broadcast shape. */
static rdna_status two(call *c, rdna_tensor *a, rdna_tensor *b, rdna_tensor *out) {
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, a));
  TRY(call_input(c, 1, b));
  TRY(call_broadcast(c, a, b, &rank, shape));
  return call_output_over(c, 2, 0, rank, shape, out);
}

rdna_status compute_map(call *c) {
  rdna_tensor x, out;
  TRY(one(c, &x, &out));
  rdna_scalar p = zero, q = zero;
  switch (c->number) {
    case RDNA_MAP_LEAKY_RELU:
      p = real((double)c->attributes->alpha);
      break;
    case RDNA_MAP_ELU:
      p = q = real(1);
      break;
    case RDNA_MAP_SOFTPLUS:
      p = real(1), q = real(40);
      break; /* beyond, x is the sum's nearest double */
    default:
      break;
  }
  return rdna_op_map(c->stream, (rdna_map)c->number, &x, p, q, &out);
}

/* Klambauer et al., "Self-normalizing neural networks", 2017 */
static const double selu_scale = 1.0507009873554804934, selu_alpha = 1.7580993408473768599; /* scale times alpha */

rdna_status compute_selu(call *c) {
  rdna_tensor x, out;
  TRY(one(c, &x, &out));
  return rdna_op_map(c->stream, RDNA_MAP_ELU, &x, real(selu_alpha), real(selu_scale), &out);
}

rdna_status compute_relu6(call *c) {
  rdna_tensor x, out;
  TRY(one(c, &x, &out));
  return rdna_op_map(c->stream, RDNA_MAP_CLAMP, &x, rdna_scalar_integer(0), rdna_scalar_integer(6), &out);
}

/* x / (1 + |x|) */
rdna_status compute_softsign(call *c) {
  rdna_tensor x, out, below;
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  TRY(call_scratch(c, x.dtype, x.rank, x.shape, &below));
  TRY(rdna_op_map(c->stream, RDNA_MAP_ABS, &x, zero, zero, &below));
  TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, &below, real(1), real(1), &below));
  return rdna_op_zip(c->stream, RDNA_ZIP_DIV, &x, &below, zero, zero, &out);
}

/* Integers' quotients and powers that there are not: the host waits, to say so as TensorFlow's CPU does. */
static rdna_status check_integers(call *c, const rdna_tensor *b) {
  bool power = c->number == RDNA_ZIP_POW;
  unsigned char answer = 0;
  rdna_tensor wrong, any;
  if (b->dtype <= RDNA_F64 || b->dtype == RDNA_BOOL || rdna_tensor_count(b) == 0) return RDNA_OK;
  if (!power && c->number != RDNA_ZIP_DIV && c->number != RDNA_ZIP_FLOOR_DIV && c->number != RDNA_ZIP_REMAINDER &&
      c->number != RDNA_ZIP_FMOD)
    return RDNA_OK;
  TRY(answers(c, power ? RDNA_COMPARE_LT : RDNA_COMPARE_EQ, b, 0, &wrong));
  TRY(call_scratch(c, RDNA_BOOL, 0, NULL, &any));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_ANY, &wrong, (1u << b->rank) - 1, 0, &any));
  TRY(call_read(c, &any, &answer));
  if (!answer) return RDNA_OK;
  return call_fail(c, RDNA_INVALID_ARGUMENT,
                   power ? "Integers to negative integer powers are not allowed" : "Integer division by zero");
}

rdna_status compute_zip(call *c) {
  rdna_tensor a, b, out;
  TRY(call_input(c, 1, &b));
  TRY(check_integers(c, &b)); /* before the output, which may be in its place */
  TRY(two(c, &a, &b, &out));
  if (c->number == RDNA_ZIP_FLOOR_DIV && out.dtype <= RDNA_F64) { /* librdna's is Python's, this the floor of a / b */
    TRY(zip(c, RDNA_ZIP_DIV, &a, &b, &out));
    return map(c, RDNA_MAP_FLOOR, &out, &out);
  }
  return rdna_op_zip(c->stream, (rdna_zip)c->number, &a, &b, zero, zero, &out);
}

/* f(a, b) where |deciding| is not 0, else 0: of DivNoNan b, of the others a. */
rdna_status compute_zip_or_zero(call *c) {
  rdna_tensor a, b, out, value, is_zero, wide;
  TRY(call_input(c, 0, &a));
  TRY(call_input(c, 1, &b));
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_broadcast(c, &a, &b, &rank, shape));
  TRY(call_output(c, 0, rank, shape, &out));
  TRY(call_scratch(c, out.dtype, rank, shape, &value));
  bool by_b = c->number == OR_ZERO_DIV || c->number == OR_ZERO_MUL;
  const rdna_tensor *deciding = by_b ? &b : &a;
  if (c->number == OR_ZERO_DIV || c->number == OR_ZERO_XDIVY) {
    TRY(rdna_op_zip(c->stream, RDNA_ZIP_DIV, &a, &b, zero, zero, &value));
  } else if (c->number == OR_ZERO_MUL) {
    TRY(rdna_op_zip(c->stream, RDNA_ZIP_MUL, &a, &b, zero, zero, &value));
  } else {
    TRY(call_scratch(c, b.dtype, b.rank, b.shape, &wide));
    TRY(rdna_op_map(c->stream, c->number == OR_ZERO_XLOG1PY ? RDNA_MAP_LOG1P : RDNA_MAP_LOG, &b, zero, zero, &wide));
    TRY(rdna_op_zip(c->stream, RDNA_ZIP_MUL, &a, &wide, zero, zero, &value));
  }
  TRY(call_scratch(c, RDNA_BOOL, deciding->rank, deciding->shape, &is_zero));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_EQ, deciding, zero, &is_zero));
  return rdna_op_masked_fill(c->stream, &is_zero, zero, &value, &out);
}

/* ---- gradients: of one shape ---- */

/* (gradient, x): what librdna's backward forms take */
rdna_status compute_gradient(call *c) {
  rdna_tensor dy, x, out;
  TRY(call_input(c, 0, &dy));
  TRY(call_input(c, 1, &x));
  TRY(call_output_over(c, 2, 0, x.rank, x.shape, &out));
  rdna_scalar p = zero, q = zero;
  if (c->number == RDNA_ZIP_LEAKY_RELU_GRAD) p = real((double)c->attributes->alpha);
  if (c->number == RDNA_ZIP_SOFTPLUS_GRAD) p = real(1), q = real(40);
  return rdna_op_zip(c->stream, (rdna_zip)c->number, &dy, &x, p, q, &out);
}

/* (y, gradient) */
rdna_status compute_gradient_of_result(call *c) {
  rdna_tensor y, dy, out;
  TRY(call_input(c, 0, &y));
  TRY(call_input(c, 1, &dy));
  TRY(call_output_over(c, 2, 0, y.rank, y.shape, &out));
  return rdna_op_zip(c->stream, (rdna_zip)c->number, &dy, &y, zero, zero, &out);
}

/* Between 0 and 6, neither included. */
rdna_status compute_relu6_gradient(call *c) {
  rdna_tensor dy, x, out;
  TRY(call_input(c, 0, &dy));
  TRY(call_input(c, 1, &x));
  TRY(call_output_over(c, 2, 0, x.rank, x.shape, &out));
  bool wide = x.dtype == RDNA_F64;
  return rdna_op_zip(c->stream, RDNA_ZIP_CLAMP_GRAD, &dy, &x, real(wide ? DBL_MIN : (double)FLT_MIN),
                     real(wide ? nextafter(6, 0) : (double)nextafterf(6, 0)), &out);
}

/* Of elu and selu from the result y: where y < 0 dy (y + p), else dy q. */
rdna_status compute_elu_gradient(call *c) {
  rdna_tensor dy, y, out, below, negative, above;
  TRY(call_input(c, 0, &dy));
  TRY(call_input(c, 1, &y));
  TRY(call_output(c, 0, y.rank, y.shape, &out));
  double p = c->number ? selu_alpha : 1, q = c->number ? selu_scale : 1;
  TRY(call_scratch(c, y.dtype, y.rank, y.shape, &below));
  TRY(call_scratch(c, y.dtype, y.rank, y.shape, &above));
  TRY(call_scratch(c, RDNA_BOOL, y.rank, y.shape, &negative));
  TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, &y, real(1), real(p), &below));
  TRY(rdna_op_zip(c->stream, RDNA_ZIP_MUL, &dy, &below, zero, zero, &below));
  TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, &dy, real(q), zero, &above));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, &y, zero, &negative));
  return rdna_op_where(c->stream, &negative, &below, &above, &out);
}

/* dy / (1 + |x|)^2 */
rdna_status compute_softsign_gradient(call *c) {
  rdna_tensor dy, x, out, below;
  TRY(call_input(c, 0, &dy));
  TRY(call_input(c, 1, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  TRY(call_scratch(c, x.dtype, x.rank, x.shape, &below));
  TRY(rdna_op_map(c->stream, RDNA_MAP_ABS, &x, zero, zero, &below));
  TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, &below, real(1), real(1), &below));
  TRY(rdna_op_map(c->stream, RDNA_MAP_SQUARE, &below, zero, zero, &below));
  return rdna_op_zip(c->stream, RDNA_ZIP_DIV, &dy, &below, zero, zero, &out);
}

/* ---- questions and choices ---- */

rdna_status compute_compare(call *c) {
  rdna_tensor a, b, out;
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &a));
  TRY(call_input(c, 1, &b));
  TRY(call_broadcast(c, &a, &b, &rank, shape));
  TRY(call_output(c, 0, rank, shape, &out));
  return rdna_op_compare(c->stream, (rdna_compare)c->number, &a, &b, &out);
}

rdna_status compute_question(call *c) {
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  return rdna_op_compare(c->stream, (rdna_compare)c->number, &x, NULL, &out);
}

/* The first operand decides, the others have a type of their own. Before version 2 a vector chooses among rows. */
rdna_status compute_select(call *c) {
  rdna_tensor condition, a, b, out;
  TRY(call_input(c, 0, &condition));
  TRY(call_input(c, 1, &a));
  TRY(call_input(c, 2, &b));
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  if (c->number == 1 && condition.rank == 1 && a.rank > 1) {
    condition.rank = a.rank;
    for (int i = 1; i < a.rank; i++) condition.shape[i] = 1, condition.stride[i] = 1;
  }
  TRY(call_broadcast(c, &a, &b, &rank, shape));
  rdna_tensor both = rdna_tensor_contiguous(NULL, a.dtype, rank, shape);
  TRY(call_broadcast(c, &condition, &both, &rank, shape));
  TRY(call_output(c, 0, rank, shape, &out));
  return rdna_op_where(c->stream, &condition, &a, &b, &out);
}

/* (x, least, largest) */
rdna_status compute_clip(call *c) {
  rdna_tensor x, least, largest, out;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &least));
  TRY(call_input(c, 2, &largest));
  TRY(call_output_over(c, 1, 0, x.rank, x.shape, &out));
  return rdna_op_zip3(c->stream, RDNA_ZIP3_CLAMP, &x, &least, &largest, zero, &out);
}

rdna_status compute_add_n(call *c) {
  rdna_tensor x, sum, out;
  TRY(call_input(c, 0, &sum));
  TRY(call_output(c, 0, sum.rank, sum.shape, &out));
  if (call_inputs(c) == 1) return rdna_op_copy(c->stream, &sum, &out);
  for (int i = 1; i < call_inputs(c); i++) {
    TRY(call_input(c, i, &x));
    if (!same_shape(&x, out.rank, out.shape))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Inputs to operation AddN must have the same size and shape");
    TRY(rdna_op_zip(c->stream, RDNA_ZIP_ADD, &sum, &x, zero, zero, &out));
    sum = out;
  }
  return RDNA_OK;
}

rdna_status compute_same_value(call *c) { /* zeros_like, ones_like */
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  return rdna_op_fill(c->stream, rdna_scalar_integer(c->number), &out);
}

/* Input 0, if all of it is finite; else an error that begins with the attribute. The host waits. Number 2: infinities
 * are told by their signs. */
rdna_status compute_check_numerics(call *c) {
  rdna_tensor x, out, here, flags;
  unsigned char found[3] = {0}; /* -infinity, infinity, NaN */
  TRY(call_input(c, 0, &x));
  TRY(call_scratch(c, RDNA_BOOL, 1, (int64_t[]){3}, &flags));
  TRY(call_scratch(c, RDNA_BOOL, x.rank, x.shape, &here));
  TRY(fill(c, 0, &flags));
  for (int i = 0; i < 3 && rdna_tensor_count(&x); i++) {
    rdna_tensor flag = narrowed(&flags, 0, i, 1);
    flag.rank = 0;
    TRY(i == 2 ? rdna_op_compare(c->stream, RDNA_COMPARE_ISNAN, &x, NULL, &here)
               : rdna_op_compare_scalar(c->stream, RDNA_COMPARE_EQ, &x, real(i ? INFINITY : -INFINITY), &here));
    TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_ANY, &here, (1u << x.rank) - 1, 0, &flag));
  }
  TRY(call_read(c, &flags, found));
  const char *minus = c->number == 2 ? "-Inf" : "Inf", *plus = c->number == 2 ? "+Inf" : "Inf", *words[3];
  int count = 0;
  if (found[0]) words[count++] = minus;
  if (found[1] && !(found[0] && c->number != 2)) words[count++] = plus;
  if (found[2]) words[count++] = "NaN";
  if (count)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "%s : Tensor had %s%s%s%s%s values", c->attributes->message, words[0],
                     count == 3 ? ", " : "", count == 3 ? words[1] : "",
                     count == 3   ? ", and "
                     : count == 2 ? " and "
                                  : "",
                     count > 1 ? words[count - 1] : "");
  TRY(call_output_over(c, 1, 0, x.rank, x.shape, &out));
  return x.data == out.data ? RDNA_OK : rdna_op_copy(c->stream, &x, &out);
}
