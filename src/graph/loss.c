/* Losses. */
#include <math.h>

#include "base/options.h"
#include "graph/build.h"
#include "graph/operands.h"
#include "rdna/graph_neural.h"

static rdna_status one_value(rdna_dtype dtype, rdna__type *out) {
  *out = (rdna__type){dtype, 0, {0}};
  return RDNA_OK;
}

static rdna_node *reduce_all(rdna_recorder *r, rdna_node *x, rdna_loss_reduction how) {
  if (!x || how == RDNA_LOSS_REDUCTION_NONE) return x;
  return rdna_record_reduce(r, x, how == RDNA_LOSS_REDUCTION_MEAN ? RDNA_REDUCTION_MEAN : RDNA_REDUCTION_SUM,
                            (1u << x->type.rank) - 1, false, 0);
}

/* ---- of values: |code| is an rdna_loss, |dim| the rdna_loss_reduction, p is beta ---- */

static rdna_node *clamped_log(rdna_recorder *r, rdna_node *x) {
  return rdna_record_map(r, map(r, RDNA_MAP_LOG, x), RDNA_MAP_CLAMP, rdna_scalar_real(-100),
                         rdna_scalar_real((double)INFINITY));
}

/* (x - t)^2 / (2 beta) below beta, |x - t| - beta / 2 above */
static rdna_node *smooth(rdna_recorder *r, rdna_node *far, double beta) {
  if (beta == 0) return far;
  return choose(r, RDNA_COMPARE_LT, far, rdna__number(r, far, beta), affine(r, square(r, far), 0.5 / beta, 0),
                affine(r, far, 1, -beta / 2));
}

static rdna_node *values_of(rdna_recorder *r, rdna_loss loss, double beta, rdna_node *x, rdna_node *t) {
  rdna_node *zero = rdna__number(r, x, 0), *soft;
  switch (loss) {
    case RDNA_LOSS_MSE:
      return square(r, sub(r, x, t));
    case RDNA_LOSS_L1:
      return map(r, RDNA_MAP_ABS, sub(r, x, t));
    case RDNA_LOSS_SMOOTH_L1:
      return smooth(r, map(r, RDNA_MAP_ABS, sub(r, x, t)), beta);
    case RDNA_LOSS_HUBER:
      return affine(r, smooth(r, map(r, RDNA_MAP_ABS, sub(r, x, t)), beta), beta, 0);
    case RDNA_LOSS_BCE:
      return negative(
          r, add(r, mul(r, t, clamped_log(r, x)), mul(r, affine(r, t, -1, 1), clamped_log(r, affine(r, x, -1, 1)))));
    case RDNA_LOSS_BCE_LOGITS: /* log(1 + exp(x)) - t x */
      soft = rdna_record_map(r, x, RDNA_MAP_SOFTPLUS, rdna_scalar_real(1), rdna_scalar_real(40));
      return sub(r, soft, mul(r, t, x));
    case RDNA_LOSS_KL:
      return choose(r, RDNA_COMPARE_EQ, t, zero, zero, mul(r, t, sub(r, map(r, RDNA_MAP_LOG, t), x)));
    default:
      return mul(r, map(r, RDNA_MAP_EXP, t), sub(r, t, x));
  }
}

static void compose_loss(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  const rdna__attributes *a = &node->attributes;
  out[0] =
      reduce_all(r, values_of(r, (rdna_loss)a->code, a->p.real, inputs[0], inputs[1]), (rdna_loss_reduction)a->dim);
}

static rdna_status infer_loss(const rdna__making *m, rdna__type *out) {
  *out = m->inputs[0]->type;
  return m->attributes->dim == RDNA_LOSS_REDUCTION_NONE ? RDNA_OK : one_value(out->dtype, out);
}
static rdna_status run_loss(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o,
                            rdna_op_loss(node->stream, (rdna_loss)a->code, (float)a->p.real,
                                         (rdna_loss_reduction)a->dim, o.in[0], o.in[1], NULL, o.out[0]),
                            out);
}
static void gradient_loss(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_node *inputs[] = {upstream[0], node->inputs[0], node->inputs[1]};
  rdna__gradient_of(compose_loss, r, node, upstream, out); /* for the target */
  out[0] = rdna__record(r, &rdna__operator_loss_back, &node->attributes, inputs, 3);
}
static const char *detail(const rdna_node *node) {
  static const char *const names[] = {"mse", "l1", "smooth_l1", "huber", "bce", "bce_logits", "kl", "kl_log"};
  return names[node->attributes.code];
}
const rdna__operator rdna__operator_loss = {
    .name = "loss", .infer = infer_loss, .run = run_loss, .gradient = gradient_loss, .detail = detail};

/* Of g, x and the target. */
static rdna_status infer_loss_back(const rdna__making *m, rdna__type *out) {
  *out = m->inputs[1]->type;
  return RDNA_OK;
}
static rdna_status run_loss_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(
      &o,
      rdna_op_loss_backward(node->stream, (rdna_loss)a->code, (float)a->p.real, (rdna_loss_reduction)a->dim, o.in[0],
                            o.in[1], o.in[2], NULL, o.out[0]),
      out);
}
static void compose_loss_back(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  rdna_node *seeds[RDNA__MOST_RESULTS] = {inputs[0]}, *both[2] = {NULL, NULL};
  rdna__record_backward(compose_loss, r, node, inputs + 1, 2, seeds, both);
  out[0] = both[0];
}
static void gradient_loss_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__gradient_of(compose_loss_back, r, node, upstream, out);
}
const rdna__operator rdna__operator_loss_back = {.name = "loss_back",
                                                 .infer = infer_loss_back,
                                                 .run = run_loss_back,
                                                 .gradient = gradient_loss_back,
                                                 .detail = detail};

rdna_node *rdna_record_loss(rdna_recorder *r, rdna_node *x, rdna_node *target, rdna_loss loss, double beta,
                            rdna_loss_reduction reduction) {
  rdna_node *inputs[] = {x, target};
  if (rdna__record_stopped(r, "loss", inputs, 2)) return NULL;
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  rdna_status status = RDNA_OK;
  if ((unsigned)loss >= RDNA_LOSS_COUNT || (unsigned)reduction >= RDNA_LOSS_REDUCTION_COUNT || !(beta >= 0))
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "loss: there is no loss %d with reduction %d and beta %g", (int)loss,
                        (int)reduction, beta);
  else if (!rdna__same_shape(&x->type, &target->type) || !rdna__array_is_float(x->type.dtype))
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "loss: x %s and target %s; they are of one shape, and x of floats",
                        rdna__type_text(&x->type, first), rdna__type_text(&target->type, second));
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  rdna__cast_to_first(r, inputs, 1);
  if (x->type.dtype == RDNA_F64) return reduce_all(r, values_of(r, loss, beta, inputs[0], inputs[1]), reduction);
  rdna__attributes a = {.code = (int)loss, .dim = (int)reduction, .p = rdna_scalar_real(beta)};
  return rdna__record(r, &rdna__operator_loss, &a, inputs, 2);
}

/* ---- of classes. |dim| is the rdna_loss_reduction, |flag| says that x is logarithms of probabilities, p is the
 * smoothing, q the target that is ignored, |dims| bits of node.h. Results: out, lse, total ---- */

static rdna_cross_entropy options_of(const rdna__attributes *a) {
  return (rdna_cross_entropy){RDNA_CROSS_ENTROPY_INIT, .reduction = (rdna_loss_reduction)a->dim,
                              .ignore_index = a->q.integer, .label_smoothing = (float)a->p.real,
                              .log_probabilities = a->flag};
}

static rdna_node *compose_of(rdna_recorder *r, rdna_node *x, rdna_node *target, rdna_node *weight,
                             const rdna__attributes *a) {
  const rdna__type *type = &x->type;
  int64_t rows = type->shape[0], cols = type->shape[1];
  rdna_node *logarithms = a->flag ? x : rdna_record_log_softmax(r, x, 1);
  rdna_node *ignored = rdna_record_full(r, target->type.dtype, 0, NULL, a->q), *zero = rdna__number(r, x, 0);
  rdna_node *first = rdna_record_full(r, target->type.dtype, 0, NULL, rdna__nothing);
  rdna_node *counts = rdna_record_compare(r, target, ignored, RDNA_COMPARE_NE);
  rdna_node *places = rdna_record_reshape(r, rdna_record_where(r, counts, target, first), 2, (int64_t[]){rows, 1});
  rdna_node *of_class = weight ? rdna_record_reshape(r, weight, 2, (int64_t[]){1, cols}) : rdna__number(r, x, 1);
  rdna_node *weights = rdna_record_broadcast(r, of_class, 2, type->shape);
  rdna_node *its = rdna_record_reshape(r, rdna_record_gather(r, weights, 1, places), 1, &rows);
  its = rdna_record_where(r, counts, its, zero);
  rdna_node *picked = rdna_record_reshape(r, rdna_record_gather(r, logarithms, 1, places), 1, &rows);
  double smoothing = a->flag ? 0 : a->p.real;
  rdna_node *loss = affine(r, mul(r, picked, its), smoothing - 1, 0);
  if (smoothing > 0) {
    rdna_node *spread = rdna_record_reduce(r, mul(r, logarithms, weights), RDNA_REDUCTION_SUM, 2, false, 0);
    loss = add(r, loss, rdna_record_where(r, counts, affine(r, spread, -smoothing / (double)cols, 0), zero));
  }
  if (a->dim != RDNA_LOSS_REDUCTION_MEAN) return reduce_all(r, loss, (rdna_loss_reduction)a->dim);
  return quotient(r, reduce_all(r, loss, RDNA_LOSS_REDUCTION_SUM), reduce_all(r, its, RDNA_LOSS_REDUCTION_SUM));
}
/* |inputs| are x, the target, and the weight where there is one. */
static void compose_entropy(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  bool weighted = node->attributes.dims & RDNA__ENTROPY_WEIGHT;
  out[0] = compose_of(r, inputs[0], inputs[1], weighted ? inputs[2] : NULL, &node->attributes);
}

static rdna_status infer_entropy(const rdna__making *m, rdna__type *out) {
  const rdna__type *x = &m->inputs[0]->type;
  rdna_dtype dtype = m->attributes->dims & RDNA__ENTROPY_F32 ? RDNA_F32 : x->dtype;
  out[0] = (rdna__type){dtype, m->attributes->dim == RDNA_LOSS_REDUCTION_NONE, {x->shape[0]}};
  out[1] = (rdna__type){RDNA_F32, 1, {x->shape[0]}};
  return one_value(RDNA_F32, &out[2]);
}
static rdna_status run_entropy(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  rdna_cross_entropy options = options_of(&node->attributes);
  RDNA_TRY(rdna__operands_init_rows(&o, node, inputs, 7, 1 << 0));
  return rdna__operands_end(
      &o, rdna_op_cross_entropy(node->stream, &options, o.in[0], o.in[1], o.in[2], o.out[0], o.out[1], o.out[2]), out);
}
static void gradient_entropy(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  if (!upstream[0]) return;
  rdna_node *inputs[6] = {upstream[0], rdna__part(r, node, 1), rdna__part(r, node, 2), node->inputs[0],
                          node->inputs[1]};
  bool weighted = node->attributes.dims & RDNA__ENTROPY_WEIGHT;
  if (weighted) inputs[5] = node->inputs[2];
  out[0] = rdna__record(r, &rdna__operator_cross_entropy_back, &node->attributes, inputs, weighted ? 6 : 5);
}
const rdna__operator rdna__operator_cross_entropy = {
    .name = "cross_entropy", .results = 3, .infer = infer_entropy, .run = run_entropy, .gradient = gradient_entropy};

/* Of g, lse, total, x, the target and the weight. */
static rdna_status infer_entropy_back(const rdna__making *m, rdna__type *out) {
  *out = m->inputs[3]->type;
  return RDNA_OK;
}
static rdna_status run_entropy_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted,
                                    rdna_array **out) {
  rdna__operands o;
  rdna_cross_entropy options = options_of(&node->attributes);
  bool padded = node->attributes.dims & RDNA__ENTROPY_PADDED;
  RDNA_TRY(rdna__operands_init_rows(&o, node, inputs, padded ? 0 : 1, 1 << 3));
  if (padded) {
    const rdna__type *type = &node->type;
    rdna_status status = rdna__array_make_rows(node->stream, type->dtype, type->shape[0], type->shape[1], &o.made[0]);
    if (status != RDNA_OK) return rdna__operands_end(&o, status, out);
    o.out[0] = &o.made[0]->tensor;
  }
  return rdna__operands_end(&o,
                            rdna_op_cross_entropy_backward(node->stream, &options, o.in[0], o.in[3], o.in[4], o.in[5],
                                                           o.in[1], o.in[2], o.out[0]),
                            out);
}
static void compose_entropy_back(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  rdna_node *seeds[RDNA__MOST_RESULTS] = {inputs[0]}, *all[3] = {NULL};
  rdna__record_backward(compose_entropy, r, node, inputs + 3, node->input_count - 3, seeds, all);
  out[0] = all[0];
}
static void gradient_entropy_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__gradient_of(compose_entropy_back, r, node, upstream, out);
}
static const char *entropy_back_detail(const rdna_node *node) {
  return node->attributes.dims & RDNA__ENTROPY_PADDED ? "cross_entropy_back_padded" : "cross_entropy_back";
}
const rdna__operator rdna__operator_cross_entropy_back = {.name = "cross_entropy_back",
                                                          .detail = entropy_back_detail,
                                                          .infer = infer_entropy_back,
                                                          .run = run_entropy_back,
                                                          .gradient = gradient_entropy_back};

static rdna_status check_entropy(const rdna_node *x, const rdna_node *target, const rdna_node *weight,
                                 const rdna_cross_entropy *options) {
  char text[3][RDNA__ARRAY_TEXT] = {"", "", ""};
  if ((unsigned)options->reduction >= RDNA_LOSS_REDUCTION_COUNT ||
      !(options->label_smoothing >= 0 && options->label_smoothing <= 1) || options->outside)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "cross_entropy: needs a reduction that there is, a smoothing in [0, 1], and no |outside|");
  bool fits = x->type.rank == 2 && rdna__array_is_float(x->type.dtype) && target->type.rank == 1 &&
              target->type.shape[0] == x->type.shape[0] &&
              (target->type.dtype == RDNA_I32 || target->type.dtype == RDNA_I64) &&
              (!weight || (weight->type.rank == 1 && weight->type.shape[0] == x->type.shape[1]));
  if (fits) return RDNA_OK;
  return rdna__fail(
      RDNA_INVALID_ARGUMENT,
      "cross_entropy: x (rows, classes), target (rows) of i32 or i64 and weight (classes), not %s, %s%s%s",
      rdna__type_text(&x->type, text[0]), rdna__type_text(&target->type, text[1]), weight ? " and " : "",
      weight ? rdna__type_text(&weight->type, text[2]) : "");
}

rdna_node *rdna_record_cross_entropy(rdna_recorder *r, rdna_node *x, rdna_node *target, rdna_node *weight,
                                     const rdna_cross_entropy *given) {
  rdna_node *inputs[] = {x, target, weight};
  rdna_cross_entropy known, *options = &known;
  if (rdna__record_stopped(r, "cross_entropy", inputs, weight ? 3 : 2)) return NULL;
  rdna_status status = RDNA__OPTIONS("cross_entropy", "options", given, options);
  if (status == RDNA_OK) status = check_entropy(x, target, weight, options);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  rdna__attributes a = {.dim = (int)options->reduction, .flag = options->log_probabilities, .dims = weight != NULL};
  a.p = rdna_scalar_real((double)options->label_smoothing);
  a.q = rdna_scalar_integer(options->ignore_index);
  bool wide = x->type.dtype == RDNA_F64;
  if (weight) inputs[2] = rdna_record_stop(r, rdna_record_cast(r, weight, wide ? RDNA_F64 : RDNA_F32));
  if (wide) return compose_of(r, x, target, inputs[2], &a);
  return rdna__part(r, rdna__record(r, &rdna__operator_cross_entropy, &a, inputs, weight ? 3 : 2), 0);
}
