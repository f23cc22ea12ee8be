/* Derivatives of the operations of rdna/op/pointwise.def. A row says one of three things: the zip that is the gradient,
 * of upstream and of the input or the result; a function that records it; or one that records the operation again by
 * others, whose gradients are taken. */
#include "graph/derivative.h"

#include <math.h>

#include "graph/build.h"

static const double ln_2 = 0.693147180559945309, ln_10 = 2.302585092994045684;
static const double two_over_root_pi = 1.128379167095512574, root_half = 0.707106781186547524;

static double p_of(const rdna_node *node) { return node->attributes.p.real; }
static double q_of(const rdna_node *node) { return node->attributes.q.real; }

static rdna_node *fail_without(rdna_recorder *r, const char *name) {
  return rdna__record_failure(r, rdna__fail(RDNA_UNSUPPORTED, "%s has no gradient", name));
}

/* ---- maps: g times the derivative at x, where the result was y ---- */

typedef rdna_node *map_rule(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y);
#define MAP_RULE(name, expression)                                                                            \
  static rdna_node *name(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *x, rdna_node *y) { \
    return expression;                                                                                        \
  }

MAP_RULE(zero_map, NULL)
MAP_RULE(same_map, g)
MAP_RULE(abs_map, mul(r, g, map(r, RDNA_MAP_SIGN, x)))
MAP_RULE(neg_map, negative(r, g))
MAP_RULE(square_map, mul(r, g, affine(r, x, 2, 0)))
MAP_RULE(affine_map, affine(r, g, p_of(node), 0))
MAP_RULE(exp_map, mul(r, g, y))
MAP_RULE(exp2_map, affine(r, mul(r, g, y), ln_2, 0))
MAP_RULE(expm1_map, mul(r, g, affine(r, y, 1, 1)))
MAP_RULE(log_map, quotient(r, g, x))
MAP_RULE(log2_map, affine(r, quotient(r, g, x), 1 / ln_2, 0))
MAP_RULE(log10_map, affine(r, quotient(r, g, x), 1 / ln_10, 0))
MAP_RULE(log1p_map, quotient(r, g, affine(r, x, 1, 1)))
MAP_RULE(sin_map, mul(r, g, map(r, RDNA_MAP_COS, x)))
MAP_RULE(cos_map, negative(r, mul(r, g, map(r, RDNA_MAP_SIN, x))))
MAP_RULE(tan_map, mul(r, g, affine(r, square(r, y), 1, 1)))
MAP_RULE(erf_map, mul(r, g, affine(r, map(r, RDNA_MAP_EXP, negative(r, square(r, x))), two_over_root_pi, 0)))
/* of a power of 0 the factor is exact, where 0 to the -1 is not */
MAP_RULE(pow_map, p_of(node) == 0 ? NULL : mul(r, g, affine(r, power(r, x, p_of(node) - 1), p_of(node), 0)))

static rdna_node *mish_by_others(rdna_recorder *r, rdna_node *x) {
  rdna_node *soft = rdna_record_map(r, x, RDNA_MAP_SOFTPLUS, rdna_scalar_real(1), rdna_scalar_real(20));
  return mul(r, x, map(r, RDNA_MAP_TANH, soft));
}
static void compose_mish(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  out[0] = mish_by_others(r, inputs[0]);
}

enum { OF_INPUT = 1, OF_RESULT };
static const struct {
  map_rule *rule;
  rdna__composition *compose;
  rdna_zip zip; /* of g and what |reads| says, with the map's p and q */
  int reads;
} map_rules[RDNA_MAP_COUNT] = {
    [RDNA_MAP_ABS] = {.rule = abs_map},
    [RDNA_MAP_NEG] = {.rule = neg_map},
    [RDNA_MAP_SIGN] = {.rule = zero_map},
    [RDNA_MAP_SQUARE] = {.rule = square_map},
    [RDNA_MAP_AFFINE] = {.rule = affine_map},
    [RDNA_MAP_CLAMP] = {.zip = RDNA_ZIP_CLAMP_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_CEIL] = {.rule = zero_map},
    [RDNA_MAP_FLOOR] = {.rule = zero_map},
    [RDNA_MAP_ROUND] = {.rule = zero_map},
    [RDNA_MAP_TRUNC] = {.rule = zero_map},
    [RDNA_MAP_SQRT] = {.zip = RDNA_ZIP_SQRT_GRAD, .reads = OF_RESULT},
    [RDNA_MAP_RSQRT] = {.zip = RDNA_ZIP_RSQRT_GRAD, .reads = OF_RESULT},
    [RDNA_MAP_RECIPROCAL] = {.zip = RDNA_ZIP_RECIPROCAL_GRAD, .reads = OF_RESULT},
    [RDNA_MAP_RELU] = {.zip = RDNA_ZIP_RELU_GRAD, .reads = OF_RESULT},
    [RDNA_MAP_LEAKY_RELU] = {.zip = RDNA_ZIP_LEAKY_RELU_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_HARDSWISH] = {.zip = RDNA_ZIP_HARDSWISH_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_HARDSIGMOID] = {.zip = RDNA_ZIP_HARDSIGMOID_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_EXP] = {.rule = exp_map},
    [RDNA_MAP_EXP2] = {.rule = exp2_map},
    [RDNA_MAP_EXPM1] = {.rule = expm1_map},
    [RDNA_MAP_LOG] = {.rule = log_map},
    [RDNA_MAP_LOG2] = {.rule = log2_map},
    [RDNA_MAP_LOG10] = {.rule = log10_map},
    [RDNA_MAP_LOG1P] = {.rule = log1p_map},
    [RDNA_MAP_SIN] = {.rule = sin_map},
    [RDNA_MAP_COS] = {.rule = cos_map},
    [RDNA_MAP_TAN] = {.rule = tan_map},
    [RDNA_MAP_TANH] = {.zip = RDNA_ZIP_TANH_GRAD, .reads = OF_RESULT},
    [RDNA_MAP_ERF] = {.rule = erf_map},
    [RDNA_MAP_SIGMOID] = {.zip = RDNA_ZIP_SIGMOID_GRAD, .reads = OF_RESULT},
    [RDNA_MAP_SILU] = {.zip = RDNA_ZIP_SILU_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_GELU_TANH] = {.zip = RDNA_ZIP_GELU_TANH_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_GELU_ERF] = {.zip = RDNA_ZIP_GELU_ERF_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_ELU] = {.zip = RDNA_ZIP_ELU_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_SOFTPLUS] = {.zip = RDNA_ZIP_SOFTPLUS_GRAD, .reads = OF_INPUT},
    [RDNA_MAP_MISH] = {.compose = compose_mish},
    [RDNA_MAP_POW] = {.rule = pow_map},
    [RDNA_MAP_FRAC] = {.rule = same_map},
};

void rdna__map_gradient(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  int code = node->attributes.code;
  rdna_node *x = node->inputs[0];
  if (map_rules[code].rule)
    out[0] = map_rules[code].rule(r, node, upstream[0], x, node);
  else if (map_rules[code].reads)
    out[0] = rdna_record_zip(r, upstream[0], map_rules[code].reads == OF_INPUT ? x : node, map_rules[code].zip,
                             node->attributes.p, node->attributes.q);
  else if (map_rules[code].compose)
    rdna__gradient_of(map_rules[code].compose, r, node, upstream, out);
  else
    fail_without(r, rdna_map_name((rdna_map)code));
}

/* ---- zips: g times the derivatives at a and b, where the result was y ---- */

typedef void zip_rule(rdna_recorder *r, rdna_node *node, rdna_node *g, rdna_node *a, rdna_node *b, rdna_node **out);
#define ZIP_RULE(name, by_a, by_b)                                                                                 \
  static void name(rdna_recorder *r, rdna_node *node, rdna_node *g, rdna_node *a, rdna_node *b, rdna_node **out) { \
    out[0] = by_a;                                                                                                 \
    out[1] = by_b;                                                                                                 \
  }

/* g where a |op| b, half of it where they are equal */
static rdna_node *shared(rdna_recorder *r, rdna_compare op, rdna_node *g, rdna_node *a, rdna_node *b) {
  rdna_node *rest = choose(r, op, a, b, g, rdna__number(r, g, 0));
  return choose(r, RDNA_COMPARE_EQ, a, b, affine(r, g, 0.5, 0), rest);
}
/* b a^(b - 1), 0 where b is; and y log(a), 0 where a is and b is not negative */
static rdna_node *power_by_a(rdna_recorder *r, rdna_node *a, rdna_node *b) {
  const rdna_node *number = rdna__number_behind(b);
  if (number && b->type.rank == 0) { /* nothing is left to be asked */
    double n = number->attributes.p.real;
    if (n == 0 || n == 1) return rdna__full_like(r, a, n);
    rdna_node *below = rdna_record_full(r, b->type.dtype, 0, NULL, rdna_scalar_real(n - 1));
    return affine(r, n == 2 ? a : zip(r, RDNA_ZIP_POW, a, below), n, 0);
  }
  rdna_node *zero = rdna__number(r, b, 0), *slope = mul(r, b, zip(r, RDNA_ZIP_POW, a, affine(r, b, 1, -1)));
  return choose(r, RDNA_COMPARE_EQ, b, zero, zero, slope);
}
static rdna_node *power_by_b(rdna_recorder *r, rdna_node *a, rdna_node *b, rdna_node *y) {
  rdna_node *zero = rdna__number(r, a, 0);
  rdna_node *flat = rdna_record_compare(r, rdna_record_compare(r, a, zero, RDNA_COMPARE_EQ),
                                        rdna_record_compare(r, b, zero, RDNA_COMPARE_GE), RDNA_COMPARE_LOGICAL_AND);
  return rdna_record_where(r, flat, zero, mul(r, y, map(r, RDNA_MAP_LOG, a)));
}
static rdna_node *whole(rdna_recorder *r, rdna_map rounding, rdna_node *a, rdna_node *b) {
  return map(r, rounding, quotient(r, a, b));
}
static rdna_node *again(rdna_recorder *r, const rdna_node *node, rdna_node *g, rdna_node *b) {
  return rdna_record_zip(r, g, b, (rdna_zip)node->attributes.code, node->attributes.p, node->attributes.q);
}

ZIP_RULE(zero_zip, NULL, NULL)
ZIP_RULE(first_zip, g, NULL)
ZIP_RULE(heaviside_zip, NULL, choose(r, RDNA_COMPARE_EQ, a, rdna__number(r, a, 0), g, rdna__number(r, g, 0)))
ZIP_RULE(add_zip, g, g)
ZIP_RULE(sub_zip, g, negative(r, g))
ZIP_RULE(mul_zip, mul(r, g, b), mul(r, g, a))
ZIP_RULE(div_zip, quotient(r, g, b), negative(r, quotient(r, mul(r, g, node), b)))
ZIP_RULE(add_scaled_zip, g, affine(r, g, p_of(node), 0))
ZIP_RULE(maximum_zip, shared(r, RDNA_COMPARE_GT, g, a, b), shared(r, RDNA_COMPARE_LT, g, a, b))
ZIP_RULE(minimum_zip, shared(r, RDNA_COMPARE_LT, g, a, b), shared(r, RDNA_COMPARE_GT, g, a, b))
ZIP_RULE(squared_diff_zip, mul(r, g, affine(r, sub(r, a, b), 2, 0)), mul(r, g, affine(r, sub(r, a, b), -2, 0)))
ZIP_RULE(fmod_zip, g, negative(r, mul(r, g, whole(r, RDNA_MAP_TRUNC, a, b))))
ZIP_RULE(remainder_zip, g, negative(r, mul(r, g, whole(r, RDNA_MAP_FLOOR, a, b))))
ZIP_RULE(pow_zip, mul(r, g, power_by_a(r, a, b)), mul(r, g, power_by_b(r, a, b, node)))
ZIP_RULE(atan2_zip, mul(r, g, quotient(r, b, add(r, square(r, a), square(r, b)))),
         negative(r, mul(r, g, quotient(r, a, add(r, square(r, a), square(r, b))))))
ZIP_RULE(lerp_zip, affine(r, g, 1 - p_of(node), 0), affine(r, g, p_of(node), 0))
/* linear in a, and of steps in b */
ZIP_RULE(step_zip, again(r, node, g, b), NULL)

/* The operation again, of g and x, or of g and y. */
#define COMPOSITION(name, expression)                                                                    \
  static void name(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) { \
    rdna_node *g = inputs[0], *x = inputs[1];                                                            \
    out[0] = expression;                                                                                 \
  }

static rdna_node *hardswish_slope(rdna_recorder *r, rdna_node *x) {
  rdna_node *inner = affine(r, x, 1.0 / 3, 0.5), *zero = rdna__number(r, x, 0), *one = rdna__number(r, x, 1);
  rdna_node *below = choose(r, RDNA_COMPARE_LE, x, rdna__number(r, x, -3), zero, inner);
  return choose(r, RDNA_COMPARE_GE, x, rdna__number(r, x, 3), one, below);
}
static rdna_node *silu_slope(rdna_recorder *r, rdna_node *x) {
  rdna_node *s = map(r, RDNA_MAP_SIGMOID, x);
  return mul(r, s, affine(r, mul(r, x, affine(r, s, -1, 1)), 1, 1));
}
static rdna_node *gelu_tanh_slope(rdna_recorder *r, rdna_node *x) {
  double c = two_over_root_pi * root_half; /* sqrt(2 / pi) */
  rdna_node *x2 = square(r, x), *t = map(r, RDNA_MAP_TANH, mul(r, x, affine(r, x2, 0.044715 * c, c)));
  rdna_node *steep = mul(r, mul(r, x, affine(r, square(r, t), -0.5, 0.5)), affine(r, x2, 3 * 0.044715 * c, c));
  return add(r, affine(r, t, 0.5, 0.5), steep);
}
static rdna_node *gelu_erf_slope(rdna_recorder *r, rdna_node *x) {
  rdna_node *below = affine(r, map(r, RDNA_MAP_ERF, affine(r, x, root_half, 0)), 0.5, 0.5);
  rdna_node *density =
      affine(r, map(r, RDNA_MAP_EXP, affine(r, square(r, x), -0.5, 0)), 0.5 * two_over_root_pi * root_half, 0);
  return add(r, below, mul(r, x, density));
}
static rdna_node *elu_slope(rdna_recorder *r, const rdna_node *node, rdna_node *x) {
  rdna_node *left = affine(r, map(r, RDNA_MAP_EXP, x), p_of(node), 0);
  return choose(r, RDNA_COMPARE_GT, x, rdna__number(r, x, 0), rdna__number(r, x, q_of(node)), left);
}
static rdna_node *softplus_slope(rdna_recorder *r, const rdna_node *node, rdna_node *x) {
  rdna_node *scaled = affine(r, x, p_of(node), 0);
  return choose(r, RDNA_COMPARE_GT, scaled, rdna__number(r, x, q_of(node)), rdna__number(r, x, 1),
                map(r, RDNA_MAP_SIGMOID, scaled));
}
/* a is the gate and b is up */
static rdna_node *swiglu_again(rdna_recorder *r, const rdna_node *node, rdna_node *gate, rdna_node *up) {
  rdna_scalar most = rdna_scalar_real(q_of(node));
  rdna_node *low = rdna_record_map(r, gate, RDNA_MAP_CLAMP, rdna_scalar_real(-INFINITY), most);
  rdna_node *held = rdna_record_map(r, up, RDNA_MAP_CLAMP, rdna_scalar_real(-q_of(node)), most);
  rdna_node *gated = mul(r, low, map(r, RDNA_MAP_SIGMOID, affine(r, low, p_of(node), 0)));
  return mul(r, gated, affine(r, held, 1, 1));
}

COMPOSITION(compose_hardswish, mul(r, g, hardswish_slope(r, x)))
COMPOSITION(compose_sigmoid, mul(r, g, mul(r, affine(r, x, -1, 1), x)))
COMPOSITION(compose_tanh, mul(r, g, affine(r, square(r, x), -1, 1)))
COMPOSITION(compose_sqrt, quotient(r, g, affine(r, x, 2, 0)))
COMPOSITION(compose_rsqrt, mul(r, g, affine(r, mul(r, x, square(r, x)), -0.5, 0)))
COMPOSITION(compose_reciprocal, negative(r, mul(r, g, square(r, x))))
COMPOSITION(compose_silu, mul(r, g, silu_slope(r, x)))
COMPOSITION(compose_gelu_tanh, mul(r, g, gelu_tanh_slope(r, x)))
COMPOSITION(compose_gelu_erf, mul(r, g, gelu_erf_slope(r, x)))
COMPOSITION(compose_elu, mul(r, g, elu_slope(r, node, x)))
COMPOSITION(compose_softplus, mul(r, g, softplus_slope(r, node, x)))
COMPOSITION(compose_swiglu, swiglu_again(r, node, g, x))

static const struct {
  zip_rule *rule;
  rdna__composition *compose;
} zip_rules[RDNA_ZIP_COUNT] = {
    [RDNA_ZIP_ADD] = {.rule = add_zip},
    [RDNA_ZIP_SUB] = {.rule = sub_zip},
    [RDNA_ZIP_MUL] = {.rule = mul_zip},
    [RDNA_ZIP_DIV] = {.rule = div_zip},
    [RDNA_ZIP_ADD_SCALED] = {.rule = add_scaled_zip},
    [RDNA_ZIP_MAXIMUM] = {.rule = maximum_zip},
    [RDNA_ZIP_MINIMUM] = {.rule = minimum_zip},
    [RDNA_ZIP_SQUARED_DIFF] = {.rule = squared_diff_zip},
    [RDNA_ZIP_FLOOR_DIV] = {.rule = zero_zip},
    [RDNA_ZIP_FMOD] = {.rule = fmod_zip},
    [RDNA_ZIP_REMAINDER] = {.rule = remainder_zip},
    [RDNA_ZIP_POW] = {.rule = pow_zip},
    [RDNA_ZIP_LERP] = {.rule = lerp_zip},
    [RDNA_ZIP_ATAN2] = {.rule = atan2_zip},
    [RDNA_ZIP_RELU_GRAD] = {.rule = step_zip},
    [RDNA_ZIP_LEAKY_RELU_GRAD] = {.rule = step_zip},
    [RDNA_ZIP_CLAMP_GRAD] = {.rule = step_zip},
    [RDNA_ZIP_HARDSIGMOID_GRAD] = {.rule = step_zip},
    [RDNA_ZIP_HARDSWISH_GRAD] = {.compose = compose_hardswish},
    [RDNA_ZIP_SIGMOID_GRAD] = {.compose = compose_sigmoid},
    [RDNA_ZIP_TANH_GRAD] = {.compose = compose_tanh},
    [RDNA_ZIP_SQRT_GRAD] = {.compose = compose_sqrt},
    [RDNA_ZIP_RSQRT_GRAD] = {.compose = compose_rsqrt},
    [RDNA_ZIP_RECIPROCAL_GRAD] = {.compose = compose_reciprocal},
    [RDNA_ZIP_SILU_GRAD] = {.compose = compose_silu},
    [RDNA_ZIP_GELU_TANH_GRAD] = {.compose = compose_gelu_tanh},
    [RDNA_ZIP_GELU_ERF_GRAD] = {.compose = compose_gelu_erf},
    [RDNA_ZIP_ELU_GRAD] = {.compose = compose_elu},
    [RDNA_ZIP_SOFTPLUS_GRAD] = {.compose = compose_softplus},
    [RDNA_ZIP_SWIGLU_CLAMPED] = {.compose = compose_swiglu},
    [RDNA_ZIP_HEAVISIDE] = {.rule = heaviside_zip},
    [RDNA_ZIP_NEXTAFTER] = {.rule = first_zip},
};

void rdna__zip_gradient(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  int code = node->attributes.code;
  if (zip_rules[code].rule) {
    zip_rules[code].rule(r, node, upstream[0], node->inputs[0], node->inputs[1], out);
    for (int i = 0; i < 2; i++)
      if (out[i]) out[i] = rdna__sum_to(r, out[i], node->inputs[i]);
  } else if (zip_rules[code].compose) {
    rdna__gradient_of(zip_rules[code].compose, r, node, upstream, out); /* of which each sums its own */
  } else {
    fail_without(r, rdna_zip_name((rdna_zip)code));
  }
}
