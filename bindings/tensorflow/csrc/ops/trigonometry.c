/* Inverse trigonometric and hyperbolic functions, of those that librdna has. */
#include <math.h>

#include "compose.h"
#include "ops.h"

static rdna_status begin(call *c, rdna_tensor *x, rdna_tensor *out, rdna_tensor *y) {
  TRY(call_wide_input(c, 0, x));
  return call_wide_output(c, 0, x->rank, x->shape, out, y);
}

/* asin x = atan2(x, sqrt((1 - x) (1 + x))), acos with the two in the other order; atan x = atan2(x, 1). */
rdna_status compute_inverse_trigonometric(call *c) {
  rdna_tensor x, out, y, other, more;
  TRY(begin(c, &x, &out, &y));
  TRY(like(c, &x, &other));
  if (c->number == INVERSE_ATAN) {
    TRY(fill(c, 1, &other));
  } else {
    TRY(like(c, &x, &more));
    TRY(affine(c, &x, -1, 1, &other));
    TRY(affine(c, &x, 1, 1, &more));
    TRY(zip(c, RDNA_ZIP_MUL, &other, &more, &other));
    TRY(map(c, RDNA_MAP_SQRT, &other, &other));
  }
  bool turned = c->number == INVERSE_ACOS;
  TRY(zip(c, RDNA_ZIP_ATAN2, turned ? &other : &x, turned ? &x : &other, &y));
  return call_round(c, &y, &out);
}

/* y where x >= 0, -y else. */
static rdna_status with_sign(call *c, const rdna_tensor *x, const rdna_tensor *value, const rdna_tensor *y) {
  rdna_tensor negative, turned;
  TRY(answers(c, RDNA_COMPARE_LT, x, 0, &negative));
  TRY(like(c, x, &turned));
  TRY(map(c, RDNA_MAP_NEG, value, &turned));
  return rdna_op_where(c->stream, &negative, &turned, value, y);
}

/* With a = |x| and e = exp a - 1: (e + e / (e + 1)) / 2, and beyond 20, where exp a is soon too large, exp(a / 2)^2 / 2
 */
rdna_status compute_sinh(call *c) {
  rdna_tensor x, out, y, a, near, far, is_near;
  TRY(begin(c, &x, &out, &y));
  TRY(like(c, &x, &a));
  TRY(like(c, &x, &near));
  TRY(like(c, &x, &far));
  TRY(map(c, RDNA_MAP_ABS, &x, &a));
  TRY(map(c, RDNA_MAP_EXPM1, &a, &near));
  TRY(affine(c, &near, 1, 1, &far));
  TRY(zip(c, RDNA_ZIP_DIV, &near, &far, &far));
  TRY(zip(c, RDNA_ZIP_ADD, &near, &far, &near));
  TRY(affine(c, &near, 0.5, 0, &near));
  TRY(answers(c, RDNA_COMPARE_LT, &a, 20, &is_near));
  TRY(affine(c, &a, 0.5, 0, &a));
  TRY(map(c, RDNA_MAP_EXP, &a, &a));
  TRY(affine(c, &a, 0.5, 0, &far));
  TRY(zip(c, RDNA_ZIP_MUL, &far, &a, &far));
  TRY(rdna_op_where(c->stream, &is_near, &near, &far, &near));
  TRY(with_sign(c, &x, &near, &y));
  return call_round(c, &y, &out);
}

/* With r = exp(|x| / 2): r^2 / 2 + 1 / (2 r^2), in an order that reaches as far as the result. */
rdna_status compute_cosh(call *c) {
  rdna_tensor x, out, y, r, part;
  TRY(begin(c, &x, &out, &y));
  TRY(like(c, &x, &r));
  TRY(like(c, &x, &part));
  TRY(map(c, RDNA_MAP_ABS, &x, &r));
  TRY(affine(c, &r, 0.5, 0, &r));
  TRY(map(c, RDNA_MAP_EXP, &r, &r));
  TRY(affine(c, &r, 0.5, 0, &part));
  TRY(zip(c, RDNA_ZIP_MUL, &part, &r, &part));
  TRY(map(c, RDNA_MAP_RECIPROCAL, &r, &r));
  TRY(map(c, RDNA_MAP_SQUARE, &r, &r));
  TRY(affine(c, &r, 0.5, 0, &r));
  TRY(zip(c, RDNA_ZIP_ADD, &part, &r, &y));
  return call_round(c, &y, &out);
}

static const double large = 1e8, log_of_2 = 0.69314718055994530942; /* beyond |large| 1 is nothing beside x^2 */

/* With a = |x| and s = a^2: log1p(a + s / (1 + sqrt(s + 1))), or log a + log 2 of large ones. */
rdna_status compute_asinh(call *c) {
  rdna_tensor x, out, y, a, near, far, is_far;
  TRY(begin(c, &x, &out, &y));
  TRY(like(c, &x, &a));
  TRY(like(c, &x, &near));
  TRY(like(c, &x, &far));
  TRY(map(c, RDNA_MAP_ABS, &x, &a));
  TRY(map(c, RDNA_MAP_SQUARE, &a, &near));
  TRY(affine(c, &near, 1, 1, &far));
  TRY(map(c, RDNA_MAP_SQRT, &far, &far));
  TRY(affine(c, &far, 1, 1, &far));
  TRY(zip(c, RDNA_ZIP_DIV, &near, &far, &near));
  TRY(zip(c, RDNA_ZIP_ADD, &near, &a, &near));
  TRY(map(c, RDNA_MAP_LOG1P, &near, &near));
  TRY(map(c, RDNA_MAP_LOG, &a, &far));
  TRY(affine(c, &far, 1, log_of_2, &far));
  TRY(answers(c, RDNA_COMPARE_GT, &a, large, &is_far));
  TRY(rdna_op_where(c->stream, &is_far, &far, &near, &near));
  TRY(with_sign(c, &x, &near, &y));
  return call_round(c, &y, &out);
}

/* With t = x - 1: log1p(t + sqrt(t) sqrt(t + 2)), which is no number below 1, or log x + log 2 of large ones. */
rdna_status compute_acosh(call *c) {
  rdna_tensor x, out, y, t, near, far, is_far;
  TRY(begin(c, &x, &out, &y));
  TRY(like(c, &x, &t));
  TRY(like(c, &x, &near));
  TRY(like(c, &x, &far));
  TRY(affine(c, &x, 1, -1, &t));
  TRY(affine(c, &x, 1, 1, &far));
  TRY(map(c, RDNA_MAP_SQRT, &t, &near));
  TRY(map(c, RDNA_MAP_SQRT, &far, &far));
  TRY(zip(c, RDNA_ZIP_MUL, &near, &far, &near));
  TRY(zip(c, RDNA_ZIP_ADD, &near, &t, &near));
  TRY(map(c, RDNA_MAP_LOG1P, &near, &near));
  TRY(map(c, RDNA_MAP_LOG, &x, &far));
  TRY(affine(c, &far, 1, log_of_2, &far));
  TRY(answers(c, RDNA_COMPARE_GT, &x, large, &is_far));
  TRY(rdna_op_where(c->stream, &is_far, &far, &near, &y));
  return call_round(c, &y, &out);
}

/* log1p(2 a / (1 - a)) / 2 with a = |x| */
rdna_status compute_atanh(call *c) {
  rdna_tensor x, out, y, a, below;
  TRY(begin(c, &x, &out, &y));
  TRY(like(c, &x, &a));
  TRY(like(c, &x, &below));
  TRY(map(c, RDNA_MAP_ABS, &x, &a));
  TRY(affine(c, &a, -1, 1, &below));
  TRY(affine(c, &a, 2, 0, &a));
  TRY(zip(c, RDNA_ZIP_DIV, &a, &below, &a));
  TRY(map(c, RDNA_MAP_LOG1P, &a, &a));
  TRY(affine(c, &a, 0.5, 0, &a));
  TRY(with_sign(c, &x, &a, &y));
  return call_round(c, &y, &out);
}
