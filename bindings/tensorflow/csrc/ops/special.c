/* Special functions. */
#include "rdna/op/special.h"

#include <math.h>

#include "compose.h"
#include "ops.h"
#include "rdna/op/random.h"

/* |out| becomes |value| where |a| stands to |at_a| and, with |b|, that to |at_b| as said. */
static rdna_status rule(call *c, const rdna_tensor *a, rdna_compare to_a, double at_a, const rdna_tensor *b,
                        rdna_compare to_b, double at_b, double value, const rdna_tensor *out) {
  rdna_tensor here, there;
  TRY(answers(c, to_a, a, at_a, &here));
  if (b) {
    TRY(answers(c, to_b, b, at_b, &there));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &here, &there, &here));
  }
  return rdna_op_masked_fill(c->stream, &here, rdna_scalar_real(value), out, out);
}

/* Exact in 64 bits; types of 16 bits by way of f32, as the special functions have no others. */
rdna_status compute_special(call *c) {
  rdna_tensor x, out, y;
  TRY(call_wide_input(c, 0, &x));
  TRY(call_wide_output(c, 0, x.rank, x.shape, &out, &y));
  TRY(rdna_op_special(c->stream, (rdna_special)c->number, 0, &x, &y));
  if (c->number == RDNA_SPECIAL_DIGAMMA) TRY(rule(c, &x, RDNA_COMPARE_EQ, 0, NULL, RDNA_COMPARE_EQ, 0, NAN, &y));
  return call_round(c, &y, &out);
}

/* Inputs 0 and 1, contiguous in the output's shape. */
static rdna_status alike(call *c, rdna_tensor *a, rdna_tensor *b, rdna_tensor *out) {
  rdna_tensor *both[] = {a, b};
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, a));
  TRY(call_input(c, 1, b));
  TRY(call_broadcast(c, a, b, &rank, shape));
  TRY(call_output(c, 0, rank, shape, out));
  for (int i = 0; i < 2; i++) {
    rdna_tensor whole;
    if (same_shape(both[i], rank, shape)) continue;
    TRY(call_scratch(c, both[i]->dtype, rank, shape, &whole));
    TRY(rdna_op_copy(c->stream, both[i], &whole));
    *both[i] = whole;
  }
  return RDNA_OK;
}

/* |out| is whether |x| is whole, of which infinities are. */
static rdna_status is_whole(call *c, const rdna_tensor *x, rdna_tensor *out) {
  rdna_tensor floored;
  TRY(like(c, x, &floored));
  TRY(map(c, RDNA_MAP_FLOOR, x, &floored));
  TRY(call_scratch(c, RDNA_BOOL, x->rank, x->shape, out));
  return rdna_op_compare(c->stream, RDNA_COMPARE_EQ, &floored, x, out);
}

/* Zeta of (s, q). At the poles, q of 0, -1, … and -infinity, TensorFlow says infinity for even s from 2 and else no
 * number; and infinity for s of 1, whatever q is. */
static rdna_status zeta(call *c, const rdna_tensor *s, const rdna_tensor *q, const rdna_tensor *out) {
  rdna_tensor half, pole, even, here;
  TRY(like(c, s, &half));
  TRY(rdna_op_special_pair(c->stream, RDNA_SPECIAL_PAIR_ZETA, s, q, out));
  TRY(is_whole(c, q, &pole));
  TRY(answers(c, RDNA_COMPARE_LE, q, 0, &here));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &pole, &here, &pole));
  TRY(rdna_op_masked_fill(c->stream, &pole, rdna_scalar_real(NAN), out, out));
  TRY(affine(c, s, 0.5, 0, &half));
  TRY(is_whole(c, &half, &even));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &pole, &even, &pole));
  TRY(answers(c, RDNA_COMPARE_GT, s, 1, &here));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &pole, &here, &pole));
  TRY(rdna_op_masked_fill(c->stream, &pole, rdna_scalar_real(INFINITY), out, out));
  return rule(c, s, RDNA_COMPARE_EQ, 1, NULL, RDNA_COMPARE_EQ, 0, INFINITY, out);
}

/* What librdna and TensorFlow say outside of the domain differs: a of 0 and below is none, but x of 0 has no share. */
rdna_status compute_special_pair(call *c) {
  rdna_tensor a, b, out;
  TRY(alike(c, &a, &b, &out));
  if (c->number == RDNA_SPECIAL_PAIR_ZETA) return zeta(c, &a, &b, &out);
  TRY(rdna_op_special_pair(c->stream, (rdna_special_pair)c->number, &a, &b, &out));
  if (c->number != RDNA_SPECIAL_PAIR_IGAMMA && c->number != RDNA_SPECIAL_PAIR_IGAMMAC) return RDNA_OK;
  TRY(rule(c, &a, RDNA_COMPARE_LE, 0, NULL, RDNA_COMPARE_EQ, 0, NAN, &out));
  if (c->number == RDNA_SPECIAL_PAIR_IGAMMA) TRY(rule(c, &b, RDNA_COMPARE_EQ, 0, NULL, RDNA_COMPARE_EQ, 0, 0, &out));
  return rule(c, &a, RDNA_COMPARE_EQ, INFINITY, &b, RDNA_COMPARE_EQ, INFINITY, 0, &out);
}

/* (n, x): digamma of x for n = 0, else (-1)^(n + 1) n! zeta(n + 1, x); no number for an n that is not whole. */
rdna_status compute_polygamma(call *c) {
  rdna_tensor n, x, out, order, sign, value, is_zero, is_wrong;
  TRY(alike(c, &n, &x, &out));
  TRY(like(c, &n, &order));
  TRY(like(c, &n, &sign));
  TRY(like(c, &n, &value));
  TRY(affine(c, &n, 1, 1, &order));
  TRY(zeta(c, &order, &x, &value));
  TRY(rdna_op_special(c->stream, RDNA_SPECIAL_LGAMMA, 0, &order, &order));
  TRY(map(c, RDNA_MAP_EXP, &order, &order));
  TRY(zip(c, RDNA_ZIP_MUL, &value, &order, &value));
  TRY(zip_number(c, RDNA_ZIP_REMAINDER, &n, 2, &sign));
  TRY(affine(c, &sign, 2, -1, &sign));
  TRY(rule(c, &n, RDNA_COMPARE_EQ, INFINITY, NULL, RDNA_COMPARE_EQ, 0, 1, &sign)); /* as TensorFlow has it */
  TRY(zip(c, RDNA_ZIP_MUL, &value, &sign, &value));
  TRY(answers(c, RDNA_COMPARE_EQ, &n, 0, &is_zero));
  TRY(rdna_op_special(c->stream, RDNA_SPECIAL_DIGAMMA, 0, &x, &order));
  TRY(rule(c, &x, RDNA_COMPARE_EQ, 0, NULL, RDNA_COMPARE_EQ, 0, NAN, &order));
  TRY(rdna_op_where(c->stream, &is_zero, &order, &value, &value));
  TRY(map(c, RDNA_MAP_FLOOR, &n, &sign));
  TRY(map(c, RDNA_MAP_ABS, &sign, &sign));
  TRY(call_scratch(c, RDNA_BOOL, n.rank, n.shape, &is_wrong));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_NE, &sign, &n, &is_wrong));
  return rdna_op_masked_fill(c->stream, &is_wrong, rdna_scalar_real(NAN), &value, &out);
}

/* (shape, sample): how a sample moves with its distribution's shape */
rdna_status compute_gamma_gradient(call *c) {
  rdna_tensor a, x, out;
  TRY(alike(c, &a, &x, &out));
  return rdna_op_random_gamma_gradient(c->stream, &a, &x, &out);
}

/* (a, x): the derivative of igamma by a is less the density x^(a - 1) exp(-x) / Gamma(a) times how x moves with a while
 * igamma stays. */
rdna_status compute_igamma_gradient(call *c) {
  rdna_tensor a, x, out, moves, density, more, is_zero;
  TRY(alike(c, &a, &x, &out));
  TRY(like(c, &a, &moves));
  TRY(like(c, &a, &density));
  TRY(like(c, &a, &more));
  TRY(rdna_op_random_gamma_gradient(c->stream, &a, &x, &moves));
  TRY(map(c, RDNA_MAP_LOG, &x, &density));
  TRY(affine(c, &a, 1, -1, &more));
  TRY(zip(c, RDNA_ZIP_MUL, &density, &more, &density));
  TRY(zip(c, RDNA_ZIP_SUB, &density, &x, &density));
  TRY(rdna_op_special(c->stream, RDNA_SPECIAL_LGAMMA, 0, &a, &more));
  TRY(zip(c, RDNA_ZIP_SUB, &density, &more, &density));
  TRY(map(c, RDNA_MAP_EXP, &density, &density));
  TRY(zip(c, RDNA_ZIP_MUL, &density, &moves, &density));
  TRY(map(c, RDNA_MAP_NEG, &density, &density));
  TRY(answers(c, RDNA_COMPARE_EQ, &x, 0, &is_zero));
  return rdna_op_masked_fill(c->stream, &is_zero, zero, &density, &out);
}

/* Whether values are nearer to each other than |tolerance|. */
rdna_status compute_approximate_equal(call *c) {
  rdna_tensor a, b, out, apart;
  TRY(call_input(c, 0, &a));
  TRY(call_input(c, 1, &b));
  if (!same_shape(&a, b.rank, b.shape)) return call_fail(c, RDNA_INVALID_ARGUMENT, "x and y must be of the same shape");
  TRY(call_output(c, 0, a.rank, a.shape, &out));
  TRY(like(c, &a, &apart));
  TRY(zip(c, RDNA_ZIP_SUB, &a, &b, &apart));
  TRY(map(c, RDNA_MAP_ABS, &apart, &apart));
  return rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, &apart, rdna_scalar_real((double)c->attributes->tolerance),
                                &out);
}

/* The number of ones among a value's bits: sums of neighbouring bits, pairs, nibbles, … of 64 (Knuth, 4A, 7.1.3). */
rdna_status compute_population_count(call *c) {
  static const uint64_t masks[] = {0x5555555555555555u, 0x3333333333333333u, 0x0f0f0f0f0f0f0f0fu,
                                   0x00ff00ff00ff00ffu, 0x0000ffff0000ffffu, 0x00000000ffffffffu};
  rdna_tensor x, out, low, high;
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  TRY(call_scratch(c, RDNA_I64, x.rank, x.shape, &low));
  TRY(call_scratch(c, RDNA_I64, x.rank, x.shape, &high));
  TRY(rdna_op_copy(c->stream, &x, &low));
  uint64_t bits = 8 * rdna_dtype_bytes(x.dtype, 1), own = bits == 64 ? ~0ull : (1ull << bits) - 1;
#define BY(op, from, number, to) \
  rdna_op_zip_scalar(c->stream, op, from, rdna_scalar_integer((int64_t)(number)), false, zero, zero, to)
  TRY(BY(RDNA_ZIP_BITWISE_AND, &low, own, &low)); /* the sign went on to the left */
  for (int i = 0; i < 6; i++) {
    TRY(BY(RDNA_ZIP_SHIFT_RIGHT, &low, 1 << i, &high));
    TRY(BY(RDNA_ZIP_BITWISE_AND, &high, masks[i], &high));
    TRY(BY(RDNA_ZIP_BITWISE_AND, &low, masks[i], &low));
    TRY(zip(c, RDNA_ZIP_ADD, &low, &high, &low));
  }
#undef BY
  return rdna_op_copy(c->stream, &low, &out);
}
