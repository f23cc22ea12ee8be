/* Softmax along |dim|, counted from 0, and its logarithm where |flag|. */
#include "rdna/op/softmax.h"
#include "graph/build.h"
#include "graph/operands.h"
#include "rdna/graph_neural.h"

static rdna_status run_softmax(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  int dim = node->attributes.dim;
  return rdna__operands_end(&o,
                            node->attributes.flag ? rdna_op_log_softmax(node->stream, o.in[0], dim, 1, o.out[0])
                                                  : rdna_op_softmax(node->stream, o.in[0], dim, 1, o.out[0]),
                            out);
}

static rdna_node *record(rdna_recorder *r, const rdna__operator *op, int dim, bool logarithm, rdna_node *const *inputs,
                         int count) {
  return rdna__record(r, op, &(rdna__attributes){.dim = dim, .flag = logarithm}, inputs, count);
}

static void gradient_softmax(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  const rdna__attributes *a = &node->attributes;
  out[0] = record(r, &rdna__operator_softmax_back, a->dim, a->flag, (rdna_node *[]){upstream[0], node}, 2);
}

const rdna__operator rdna__operator_softmax = {
    .name = "softmax", .infer = rdna__infer_same, .run = run_softmax, .gradient = gradient_softmax};

/* ---- its gradient, of g and the result y ---- */

static rdna_status run_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  int dim = node->attributes.dim;
  return rdna__operands_end(&o,
                            node->attributes.flag
                                ? rdna_op_log_softmax_backward(node->stream, o.in[0], o.in[1], dim, 1, o.out[0])
                                : rdna_op_softmax_backward(node->stream, o.in[0], o.in[1], dim, 1, o.out[0]),
                            out);
}

/* y (g - sum(g y)); of the logarithm g - exp(y) sum(g) */
static void compose_back(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  rdna_node *g = inputs[0], *y = inputs[1];
  uint32_t along = 1u << node->attributes.dim;
  if (node->attributes.flag) {
    rdna_node *sum = rdna_record_reduce(r, g, RDNA_REDUCTION_SUM, along, true, 0);
    out[0] = sub(r, g, mul(r, map(r, RDNA_MAP_EXP, y), sum));
    return;
  }
  out[0] = mul(r, y, sub(r, g, rdna_record_reduce(r, mul(r, g, y), RDNA_REDUCTION_SUM, along, true, 0)));
}
static void gradient_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__gradient_of(compose_back, r, node, upstream, out);
}

const rdna__operator rdna__operator_softmax_back = {
    .name = "softmax_back", .infer = rdna__infer_same, .run = run_back, .gradient = gradient_back};

/* ---- the public face ---- */

static rdna_node *record_checked(rdna_recorder *r, rdna_node *x, int dim, bool logarithm) {
  const char *name = logarithm ? "log_softmax" : "softmax";
  rdna_dtype dtype;
  if (rdna__record_stopped(r, name, &x, 1)) return NULL;
  rdna_status status = rdna__array_dim(name, x->type.rank, &dim);
  if (status == RDNA_OK) status = rdna__array_map_type(RDNA_MAP_EXP, x->type.dtype, &dtype);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  x = rdna_record_cast(r, x, dtype);
  return record(r, &rdna__operator_softmax, dim, logarithm, &x, 1);
}

rdna_node *rdna_record_softmax(rdna_recorder *r, rdna_node *x, int dim) { return record_checked(r, x, dim, false); }
rdna_node *rdna_record_log_softmax(rdna_recorder *r, rdna_node *x, int dim) { return record_checked(r, x, dim, true); }
