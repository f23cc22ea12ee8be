/* Reductions: |code| is an rdna_reduction, |dims| its dimensions, |flag| keeps them, p is the parameter. */
#include <math.h>

#include "graph/build.h"

static rdna_status infer_reduce(const rdna__making *m, rdna__type *out) {
  const rdna__attributes *a = m->attributes;
  const rdna__type *x = &m->inputs[0]->type;
  rdna_dtype in, sum;
  bool none = a->code == RDNA_REDUCTION_MIN || a->code == RDNA_REDUCTION_MAX || a->code == RDNA_REDUCTION_ARGMIN ||
              a->code == RDNA_REDUCTION_ARGMAX;
  char text[RDNA__ARRAY_TEXT];
  if ((unsigned)a->code >= RDNA_REDUCTION_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "there is no reduction %d", a->code);
  if (a->dims >> x->rank)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: dims 0x%x has dimensions that %s has not",
                      rdna_reduction_name((rdna_reduction)a->code), a->dims, rdna__type_text(x, text));
  *out = (rdna__type){.rank = 0};
  rdna__array_reduce_types((rdna_reduction)a->code, x->dtype, &in, &sum, &out->dtype);
  for (int i = 0; i < x->rank; i++) {
    if (none && (a->dims >> i & 1) && x->shape[i] == 0)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s of no values, along dimension %d of %s",
                        rdna_reduction_name((rdna_reduction)a->code), i, rdna__type_text(x, text));
    if (!(a->dims >> i & 1) || a->flag) out->shape[out->rank++] = a->dims >> i & 1 ? 1 : x->shape[i];
  }
  return RDNA_OK;
}

static rdna_status run_reduce(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  return rdna_array_reduce(inputs[0], (rdna_reduction)a->code, a->dims, a->flag, a->p.real, out);
}

/* |x|, of the result's shape, with the reduced dimensions as 1. */
static rdna_node *with_dims(rdna_recorder *r, rdna_node *x, const rdna_node *node) {
  const rdna__type *type = &node->inputs[0]->type;
  int64_t shape[RDNA_MAX_RANK];
  for (int i = 0; i < type->rank; i++) shape[i] = node->attributes.dims >> i & 1 ? 1 : type->shape[i];
  return rdna_record_reshape(r, x, type->rank, shape);
}

/* How many values become one. */
static double reduced_count(const rdna_node *node) {
  const rdna__type *type = &node->inputs[0]->type;
  double count = 1;
  for (int i = 0; i < type->rank; i++)
    if (node->attributes.dims >> i & 1) count *= (double)type->shape[i];
  return count;
}

/* ---- gradients; g and y have the reduced dimensions as 1 ---- */

typedef rdna_node *rule(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y);

static rdna_node *of_none(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  return NULL;
}
static rdna_node *of_sum(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  return g;
}
static rdna_node *of_mean(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  return affine(r, g, 1 / reduced_count(node), 0);
}
/* y / x; at the only 0 of a product the product of the others */
static rdna_node *of_prod(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  rdna_node *zero = rdna__number(r, x, 0), *one = rdna__number(r, x, 1);
  rdna_node *is_zero = rdna_record_compare(r, x, zero, RDNA_COMPARE_EQ);
  rdna_node *others =
      rdna_record_reduce(r, rdna_record_where(r, is_zero, one, x), RDNA_REDUCTION_PROD, node->attributes.dims, true, 0);
  rdna_node *zeros = rdna_record_reduce(r, rdna_record_where(r, is_zero, one, zero), RDNA_REDUCTION_SUM,
                                        node->attributes.dims, true, 0);
  rdna_node *at_zero = choose(r, RDNA_COMPARE_EQ, zeros, one, others, zero);
  return mul(r, g, rdna_record_where(r, is_zero, at_zero, quotient(r, y, rdna_record_where(r, is_zero, one, x))));
}
/* among those that are it, in equal parts */
static rdna_node *shares(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  rdna_node *is_it = choose(r, RDNA_COMPARE_EQ, x, y, rdna__number(r, x, 1), rdna__number(r, x, 0));
  rdna_node *count = rdna_record_reduce(r, is_it, RDNA_REDUCTION_SUM, node->attributes.dims, true, 0);
  return mul(r, is_it, quotient(r, g, count));
}
/* y, but 1 where it is 0: what is divided by it may be left out and is a number nevertheless, also when it is
 * differentiated. */
static rdna_node *one_for_zero(rdna_recorder *r, rdna_node *y) {
  return choose(r, RDNA_COMPARE_EQ, y, rdna__number(r, y, 0), rdna__number(r, y, 1), y);
}
static rdna_node *of_norm(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  double p = node->attributes.p.real;
  rdna_node *sign = map(r, RDNA_MAP_SIGN, x), *zero = rdna__number(r, x, 0), *some = one_for_zero(r, y), *slope;
  if (p == 0) return NULL;
  if (p == 1) return mul(r, g, sign);
  if (isinf(p)) return mul(r, sign, shares(r, node, g, map(r, RDNA_MAP_ABS, x), y));
  if (p == 2)
    slope = quotient(r, x, some);
  else
    slope = mul(r, sign, power(r, quotient(r, map(r, RDNA_MAP_ABS, x), some), p - 1));
  return mul(r, g, choose(r, RDNA_COMPARE_EQ, y, zero, zero, slope)); /* the subgradient 0 at 0 */
}
static rdna_node *distance(rdna_recorder *r, const rdna_node *node, rdna_node *x) {
  return sub(r, x, rdna_record_reduce(r, x, RDNA_REDUCTION_MEAN, node->attributes.dims, true, 0));
}
static double freedom(const rdna_node *node) { return fmax(reduced_count(node) - node->attributes.p.real, 0); }
static rdna_node *of_var(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  return mul(r, affine(r, g, 2 / freedom(node), 0), distance(r, node, x));
}
static rdna_node *of_std(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  /* of equal values 0, as PyTorch's */
  rdna_node *zero = rdna__number(r, y, 0);
  rdna_node *slope = mul(r, quotient(r, affine(r, g, 1 / freedom(node), 0), one_for_zero(r, y)), distance(r, node, x));
  return choose(r, RDNA_COMPARE_EQ, y, zero, zero, slope);
}
static rdna_node *of_logsumexp(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) {
  return mul(r, g, map(r, RDNA_MAP_EXP, sub(r, x, y)));
}

static rule *const rules[RDNA_REDUCTION_COUNT] = {
    [RDNA_REDUCTION_SUM] = of_sum,
    [RDNA_REDUCTION_MEAN] = of_mean,
    [RDNA_REDUCTION_PROD] = of_prod,
    [RDNA_REDUCTION_MIN] = shares,
    [RDNA_REDUCTION_MAX] = shares,
    [RDNA_REDUCTION_ARGMIN] = of_none,
    [RDNA_REDUCTION_ARGMAX] = of_none,
    [RDNA_REDUCTION_NORM] = of_norm,
    [RDNA_REDUCTION_ANY] = of_none,
    [RDNA_REDUCTION_ALL] = of_none,
    [RDNA_REDUCTION_VAR] = of_var,
    [RDNA_REDUCTION_STD] = of_std,
    [RDNA_REDUCTION_LOGSUMEXP] = of_logsumexp,
};

static void gradient_reduce(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_node *x = node->inputs[0];
  rdna_node *made = rules[node->attributes.code](r, node, with_dims(r, upstream[0], node), x, with_dims(r, node, node));
  if (made) out[0] = rdna_record_broadcast(r, made, x->type.rank, x->type.shape);
}
static const char *reduce_detail(const rdna_node *node) {
  return rdna_reduction_name((rdna_reduction)node->attributes.code);
}

const rdna__operator rdna__operator_reduce = {
    .name = "reduce", .infer = infer_reduce, .run = run_reduce, .gradient = gradient_reduce, .detail = reduce_detail};

rdna_node *rdna_record_reduce(rdna_recorder *r, rdna_node *x, rdna_reduction reduction, uint32_t dims, bool keep_dims,
                              double parameter) {
  return rdna__record(
      r, &rdna__operator_reduce,
      &(rdna__attributes){.code = (int)reduction, .dims = dims, .flag = keep_dims, .p = rdna_scalar_real(parameter)},
      &x, 1);
}
