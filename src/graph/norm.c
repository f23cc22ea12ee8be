/* Normalizations: |code| is which, |dims| says whether there are a weight (1) and a bias (2), p is the epsilon and
 * |dim| the number of groups. Results are the normalized values, and the means and inverse deviations that the gradient
 * takes.
 *
 *     norm       x, weight?, bias?               -> out, mean, inverse, and of batch norm the unbiased variance
 *     norm_back  g, mean, inverse, x, weight?    -> dx, dweight, dbias
 *     norm_by    x, mean, variance, weight?, bias?
 */
#include <string.h>

#include "graph/build.h"
#include "graph/operands.h"
#include "rdna/graph_neural.h"
#include "rdna/op/channel_norm.h"
#include "rdna/op/norm.h"

enum { LAYER, RMS, BATCH, GROUP };
enum { WEIGHT = 1, BIAS = 2 };
enum { VARIANCE = 3 }; /* of batch norm's results */

static const char *const names[] = {"layer_norm", "rms_norm", "batch_norm", "group_norm"};
static const char *detail(const rdna_node *node) { return names[node->attributes.code]; }

static bool by_rows(int code) { return code == LAYER || code == RMS; }

/* Of |node|'s inputs from |first| on the weight and the bias, or NULL. */
static rdna_node *weight_of(const rdna_node *node, rdna_node *const *inputs, int first) {
  return node->attributes.dims & WEIGHT ? inputs[first] : NULL;
}
static rdna_node *bias_of(const rdna_node *node, rdna_node *const *inputs, int first) {
  return node->attributes.dims & BIAS ? inputs[first + (node->attributes.dims & WEIGHT ? 1 : 0)] : NULL;
}

/* ---- by operators that have gradients ---- */

/* |v|, one value for each channel or column, so that it meets them in |x|'s shape. */
static rdna_node *beside(rdna_recorder *r, rdna_node *v, const rdna_node *x, int code) {
  int64_t shape[RDNA_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
  int at = by_rows(code) ? x->type.rank - 1 : 1;
  shape[at] = x->type.shape[at];
  return rdna_record_reshape(r, v, x->type.rank, shape);
}

static rdna_node *scale_and_shift(rdna_recorder *r, rdna_node *y, rdna_node *weight, rdna_node *bias, int code) {
  if (weight && y) y = mul(r, y, beside(r, weight, y, code));
  if (bias && y) y = add(r, y, beside(r, bias, y, code));
  return y;
}

static rdna_node *compose_of(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias, int code, int groups,
                             double epsilon) {
  rdna__type shape = x->type;
  rdna_node *v = x;
  uint32_t dims = by_rows(code) ? 1u << (shape.rank - 1) : ((1u << shape.rank) - 1) & ~2u;
  if (code == GROUP) {
    int64_t rest = shape.shape[1] / groups;
    for (int i = 2; i < shape.rank; i++) rest *= shape.shape[i];
    v = rdna_record_reshape(r, x, 3, (int64_t[]){shape.shape[0], groups, rest});
    dims = 4;
  }
  if (code != RMS) v = sub(r, v, rdna_record_reduce(r, v, RDNA_REDUCTION_MEAN, dims, true, 0));
  rdna_node *variance = rdna_record_reduce(r, square(r, v), RDNA_REDUCTION_MEAN, dims, true, 0);
  v = mul(r, v, map(r, RDNA_MAP_RSQRT, affine(r, variance, 1, epsilon)));
  v = rdna_record_reshape(r, v, shape.rank, shape.shape);
  return scale_and_shift(r, v, weight, bias, code);
}

/* |inputs| are x, weight?, bias? */
static void compose_norm(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  const rdna__attributes *a = &node->attributes;
  out[0] = compose_of(r, inputs[0], weight_of(node, inputs, 1), bias_of(node, inputs, 1), a->code, a->dim, a->p.real);
}

/* ---- norm ---- */

static rdna_status infer_norm(const rdna__making *m, rdna__type *out) {
  const rdna__attributes *a = m->attributes;
  const rdna__type *x = &m->inputs[0]->type;
  rdna_dtype sums = x->dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32;
  int64_t rows = 1;
  for (int i = 0; i + 1 < x->rank; i++) rows *= x->shape[i];
  out[0] = *x;
  out[1] = (rdna__type){sums, 1, {a->code == BATCH ? x->shape[1] : rows}};
  if (a->code == GROUP) out[1] = (rdna__type){sums, 2, {x->shape[0], a->dim}};
  out[2] = out[3] = out[1];
  return RDNA_OK;
}

static rdna_status row_of(rdna_array *rows, int64_t i, rdna_array **out) {
  rdna_array *row;
  RDNA_TRY(rdna_array_slice(rows, 0, i, 1, 1, &row));
  rdna_status status = rdna_array_squeeze(row, 0, out);
  rdna_array_release(row);
  return status;
}

/* The operator writes the variance into running statistics of weight 1, which have to be numbers before. */
static rdna_status run_batch_norm(const rdna_node *node, const rdna__operands *o, const rdna_tensor *weight,
                                  const rdna_tensor *bias, rdna_array **out_variance) {
  const rdna_tensor *mean = o->out[1];
  rdna_array *both = NULL, *rows[2] = {NULL, NULL};
  rdna_status status = RDNA_OK;
  if (out_variance)
    status = rdna_array_full(node->stream, mean->dtype, 2, (int64_t[]){2, mean->shape[0]}, rdna__nothing, &both);
  for (int i = 0; i < 2 && both && status == RDNA_OK; i++) status = row_of(both, i, &rows[i]);
  if (status == RDNA_OK)
    status = rdna_op_batch_norm(node->stream, o->in[0], weight, bias, both ? &rows[0]->tensor : NULL,
                                both ? &rows[1]->tensor : NULL, 1, node->attributes.p.real, o->out[0], mean, o->out[2]);
  rdna_array_release(both);
  rdna_array_release(rows[0]);
  if (out_variance && status == RDNA_OK)
    *out_variance = rows[1];
  else
    rdna_array_release(rows[1]);
  return status;
}

static rdna_status run_norm(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, by_rows(a->code) ? (wanted & 7) | 1 : 7));
  const rdna_tensor *weight = a->dims & WEIGHT ? o.in[1] : NULL;
  const rdna_tensor *bias = a->dims & BIAS ? o.in[weight ? 2 : 1] : NULL;
  rdna_status status;
  if (a->code == LAYER)
    status = rdna_op_layer_norm(node->stream, o.in[0], weight, bias, a->p.real, o.out[0], o.out[1], o.out[2]);
  else if (a->code == RMS)
    status = rdna_op_rms_norm(node->stream, o.in[0], weight, a->p.real, o.out[0]);
  else if (a->code == BATCH)
    status = run_batch_norm(node, &o, weight, bias, wanted >> VARIANCE & 1 ? &o.made[VARIANCE] : NULL);
  else
    status = rdna_op_group_norm(node->stream, o.in[0], a->dim, weight, bias, a->p.real, o.out[0], o.out[1], o.out[2]);
  return rdna__operands_end(&o, status, out);
}

static void gradient_norm(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_node *weight = weight_of(node, node->inputs, 1), *back_inputs[5];
  int count = 0, at = 1;
  if (!upstream[0]) return;
  back_inputs[count++] = upstream[0];
  if (node->attributes.code != RMS) {
    back_inputs[count++] = rdna__part(r, node, 1);
    back_inputs[count++] = rdna__part(r, node, 2);
  }
  back_inputs[count++] = node->inputs[0];
  if (weight) back_inputs[count++] = weight;
  rdna_node *back = rdna__record(r, &rdna__operator_norm_back, &node->attributes, back_inputs, count);
  out[0] = rdna__part(r, back, 0);
  if (weight) out[at++] = rdna__part(r, back, 1);
  if (node->attributes.dims & BIAS) out[at] = rdna__part(r, back, 2);
}

const rdna__operator rdna__operator_norm = {
    .name = "norm", .results = 4, .infer = infer_norm, .run = run_norm, .gradient = gradient_norm, .detail = detail};

bool rdna__is_batch_norm(const rdna_node *node) {
  return node->op == &rdna__operator_norm && node->attributes.code == BATCH;
}

/* ---- norm_back ---- */

/* Which of the inputs is x: behind the means and inverses, which the root mean square has not. */
static int place_of_x(const rdna__attributes *a) { return a->code == RMS ? 1 : 3; }

static rdna_status infer_back(const rdna__making *m, rdna__type *out) {
  const rdna__type *x = &m->inputs[place_of_x(m->attributes)]->type;
  out[0] = *x;
  out[1] = (rdna__type){x->dtype, 1, {by_rows(m->attributes->code) ? x->shape[x->rank - 1] : x->shape[1]}};
  out[2] = out[1];
  return RDNA_OK;
}

static rdna_status run_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, by_rows(a->code) ? wanted | 1 : wanted));
  int at = place_of_x(a);
  const rdna_tensor *g = o.in[0], *mean = o.in[1], *inverse = o.in[2], *x = o.in[at];
  const rdna_tensor *weight = a->dims & WEIGHT ? o.in[at + 1] : NULL, *dx = o.out[0], *dw = o.out[1], *db = o.out[2];
  rdna_status status;
  if (a->code == LAYER)
    status = rdna_op_layer_norm_backward(node->stream, g, x, weight, a->p.real, mean, inverse, dx, dw, db);
  else if (a->code == RMS)
    status = rdna_op_rms_norm_backward(node->stream, g, x, weight, a->p.real, dx, dw);
  else if (a->code == BATCH)
    status = rdna_op_batch_norm_backward(node->stream, g, x, weight, mean, inverse, dx, dw, db);
  else
    status = rdna_op_group_norm_backward(node->stream, g, x, a->dim, weight, mean, inverse, dx, dw, db);
  return rdna__operands_end(&o, status, out);
}

/* Means and inverses are found again from x, through which they have gradients too. */
static void compose_back(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  int at = place_of_x(&node->attributes), count = 1;
  rdna_node *forward[3] = {inputs[at]}, *gradients[3] = {NULL}, *seeds[RDNA__MOST_RESULTS] = {inputs[0]};
  bool weighted = node->attributes.dims & WEIGHT;
  if (weighted) forward[count++] = inputs[at + 1];
  /* a bias of zeros, whose gradient is asked for */
  if (node->attributes.dims & BIAS) {
    rdna__type type = node->type;
    int64_t size = type.shape[by_rows(node->attributes.code) ? type.rank - 1 : 1];
    forward[count++] = rdna__pass(r, rdna_record_full(r, type.dtype, 1, &size, rdna__nothing));
  }
  rdna__record_backward(compose_norm, r, node, forward, count, seeds, gradients);
  out[0] = gradients[0];
  out[1] = weighted ? gradients[1] : NULL;
  out[2] = node->attributes.dims & BIAS ? gradients[weighted ? 2 : 1] : NULL;
}
static void gradient_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__gradient_of(compose_back, r, node, upstream, out);
}

const rdna__operator rdna__operator_norm_back = {.name = "norm_back",
                                                 .results = 3,
                                                 .infer = infer_back,
                                                 .run = run_back,
                                                 .gradient = gradient_back,
                                                 .detail = detail};

/* ---- norm_by ---- */

static rdna_status run_by_activated(const rdna_node *node, rdna_array *const *inputs, rdna_activation activation,
                                    rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  const rdna_tensor *weight = a->dims & WEIGHT ? o.in[3] : NULL;
  const rdna_tensor *bias = a->dims & BIAS ? o.in[weight ? 4 : 3] : NULL;
  return rdna__operands_end(&o,
                            rdna_op_batch_norm_inference(node->stream, o.in[0], weight, bias, o.in[1], o.in[2],
                                                         a->p.real, NULL, activation == RDNA_ACTIVATION_RELU, o.out[0]),
                            out);
}
static rdna_status run_by(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return run_by_activated(node, inputs, RDNA_ACTIVATION_NONE, out);
}
static void compose_by(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  rdna_node *x = inputs[0], *weight = weight_of(node, inputs, 3), *bias = bias_of(node, inputs, 3);
  rdna_node *inverse = map(r, RDNA_MAP_RSQRT, affine(r, inputs[2], 1, node->attributes.p.real));
  rdna_node *v = mul(r, sub(r, x, beside(r, inputs[1], x, BATCH)), beside(r, inverse, x, BATCH));
  out[0] = scale_and_shift(r, v, weight, bias, BATCH);
}
static void gradient_by(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__gradient_of(compose_by, r, node, upstream, out);
}
const rdna__operator rdna__operator_norm_by = {.name = "batch_norm_inference",
                                               .infer = rdna__infer_same,
                                               .run = run_by,
                                               .run_activated = run_by_activated,
                                               .activations = 1u << RDNA_ACTIVATION_RELU,
                                               .gradient = gradient_by};

/* ---- the public face ---- */

/* Whether something does not fit: |rows| are vectors, which may be NULL, of the size of columns or channels. */
static bool stopped(rdna_recorder *r, int code, rdna_node *x, rdna_node *const *rows, int count, int64_t groups) {
  if (rdna__record_stopped(r, names[code], &x, 1)) return true;
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  int needed = by_rows(code) ? 1 : 2;
  rdna_status status = RDNA_OK;
  if (x->type.rank < needed || !rdna__array_is_float(x->type.dtype))
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "%s: of floats with %d dimensions or more, not %s", names[code], needed,
                        rdna__type_text(&x->type, first));
  int64_t size = status != RDNA_OK ? 0 : by_rows(code) ? x->type.shape[x->type.rank - 1] : x->type.shape[1];
  if (status == RDNA_OK && code == GROUP && (groups < 1 || size % groups || groups > INT32_MAX))
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "group_norm: %lld channels are not %lld equal groups", (long long)size,
                        (long long)groups);
  for (int i = 0; i < count && status == RDNA_OK; i++)
    if (rows[i] && (rows[i]->type.rank != 1 || rows[i]->type.shape[0] != size))
      status = rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s beside %s; it has to be of rank 1 and size %lld", names[code],
                          rdna__type_text(&rows[i]->type, second), rdna__type_text(&x->type, first), (long long)size);
  if (status == RDNA_OK) return false;
  rdna__record_failure(r, status);
  return true;
}

static rdna_node *record_norm(rdna_recorder *r, int code, rdna_node *x, rdna_node *weight, rdna_node *bias,
                              int64_t groups, double epsilon) {
  rdna_node *nodes[] = {x, weight, bias}, *inputs[3];
  if (stopped(r, code, x, nodes + 1, 2, groups)) return NULL;
  rdna__cast_to_first(r, nodes, 2);
  if (by_rows(code) && x->type.dtype == RDNA_F64)
    return compose_of(r, x, nodes[1], nodes[2], code, (int)groups, epsilon);
  rdna__attributes a = {.code = code, .dim = (int)groups, .p = rdna_scalar_real(epsilon)};
  a.dims = (uint32_t)((weight ? WEIGHT : 0) | (bias ? BIAS : 0));
  int count = 0;
  for (int i = 0; i < 3; i++)
    if (nodes[i]) inputs[count++] = nodes[i];
  return rdna__part(r, rdna__record(r, &rdna__operator_norm, &a, inputs, count), 0);
}

rdna_node *rdna_record_layer_norm(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias, double epsilon) {
  return record_norm(r, LAYER, x, weight, bias, 1, epsilon);
}
rdna_node *rdna_record_rms_norm(rdna_recorder *r, rdna_node *x, rdna_node *weight, double epsilon) {
  return record_norm(r, RMS, x, weight, NULL, 1, epsilon);
}
rdna_node *rdna_record_batch_norm(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias, double epsilon) {
  return record_norm(r, BATCH, x, weight, bias, 1, epsilon);
}
rdna_node *rdna_record_group_norm(rdna_recorder *r, rdna_node *x, int64_t groups, rdna_node *weight, rdna_node *bias,
                                  double epsilon) {
  return record_norm(r, GROUP, x, weight, bias, groups, epsilon);
}

rdna_node *rdna_record_batch_norm_inference(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias,
                                            rdna_node *mean, rdna_node *variance, double epsilon) {
  rdna_node *nodes[] = {x, mean, variance, weight, bias}, *inputs[5];
  if (rdna__record_stopped(r, "batch_norm_inference", nodes, 3) || stopped(r, BATCH, x, nodes + 1, 4, 1)) return NULL;
  rdna__cast_to_first(r, nodes, 4);
  rdna__attributes a = {.code = BATCH, .p = rdna_scalar_real(epsilon)};
  a.dims = (uint32_t)((weight ? WEIGHT : 0) | (bias ? BIAS : 0));
  int count = 0;
  for (int i = 0; i < 5; i++)
    if (nodes[i]) inputs[count++] = nodes[i];
  return rdna__record(r, &rdna__operator_norm_by, &a, inputs, count);
}
