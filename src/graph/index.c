/* Values at places that indices say: |dim| is the dimension, counted from 0. */
#include "rdna/op/index.h"
#include "graph/build.h"
#include "graph/operands.h"
#include "rdna/graph_neural.h"
#include "rdna/op/movement.h"

/* ---- gather, of x and indices ---- */

static rdna_status infer_gather(const rdna__making *m, rdna__type *out) {
  *out = m->inputs[1]->type;
  out->dtype = m->inputs[0]->type.dtype;
  return RDNA_OK;
}
static rdna_status run_gather(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return rdna_array_gather(inputs[0], node->attributes.dim, inputs[1], out);
}
static void gradient_gather(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  const rdna__type *x = &node->inputs[0]->type;
  rdna__attributes a = {.dim = node->attributes.dim, .number_count = x->rank, .numbers = x->shape};
  out[0] = rdna__record(r, &rdna__operator_scatter, &a, (rdna_node *[]){upstream[0], node->inputs[1]}, 2);
}
const rdna__operator rdna__operator_gather = {
    .name = "gather", .infer = infer_gather, .run = run_gather, .gradient = gradient_gather};

/* ---- scatter: zeros of the numbers' shape, to which values are added at indices ---- */

static rdna_status infer_scatter(const rdna__making *m, rdna__type *out) {
  *out = (rdna__type){m->inputs[0]->type.dtype, m->attributes->number_count, {0}};
  for (int i = 0; i < out->rank; i++) out->shape[i] = m->attributes->numbers[i];
  return RDNA_OK;
}
static rdna_status run_scatter(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  rdna_status status = rdna_op_fill(node->stream, rdna__nothing, o.out[0]);
  if (status == RDNA_OK)
    status =
        rdna_op_scatter(node->stream, o.out[0], node->attributes.dim, o.in[1], o.in[0], RDNA_SCATTER_ADD, true, NULL);
  return rdna__operands_end(&o, status, out);
}
static void gradient_scatter(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = rdna_record_gather(r, upstream[0], node->attributes.dim, node->inputs[1]);
}
const rdna__operator rdna__operator_scatter = {
    .name = "scatter", .infer = infer_scatter, .run = run_scatter, .gradient = gradient_scatter};

static bool are_indices(const rdna_node *node) { return node->type.dtype == RDNA_I32 || node->type.dtype == RDNA_I64; }

rdna_node *rdna_record_gather(rdna_recorder *r, rdna_node *x, int dim, rdna_node *indices) {
  rdna_node *inputs[] = {x, indices};
  if (rdna__record_stopped(r, "gather", inputs, 2)) return NULL;
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  rdna_status status = rdna__array_dim("gather", x->type.rank, &dim);
  bool fits = are_indices(indices) && indices->type.rank == x->type.rank;
  for (int i = 0; i < x->type.rank && fits; i++) fits = i == dim || indices->type.shape[i] <= x->type.shape[i];
  if (status == RDNA_OK && !fits)
    status = rdna__fail(RDNA_INVALID_ARGUMENT,
                        "gather: indices %s of x %s: they are i32 or i64, of its rank, and no larger but along dim %d",
                        rdna__type_text(&indices->type, second), rdna__type_text(&x->type, first), dim);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  return rdna__record(r, &rdna__operator_gather, &(rdna__attributes){.dim = dim}, inputs, 2);
}

/* ---- embedding, of a table and ids ---- */

static rdna_status infer_embedding(const rdna__making *m, rdna__type *out) {
  const rdna__type *table = &m->inputs[0]->type, *ids = &m->inputs[1]->type;
  *out = *ids;
  out->dtype = table->dtype;
  out->shape[out->rank++] = table->shape[1];
  return RDNA_OK;
}
static rdna_status run_embedding(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_embedding(node->stream, o.in[0], o.in[1], o.out[0], NULL), out);
}
static void gradient_embedding(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__attributes a = {.number_count = 1, .numbers = node->inputs[0]->type.shape};
  out[0] = rdna__record(r, &rdna__operator_embedding_back, &a, (rdna_node *[]){upstream[0], node->inputs[1]}, 2);
}
const rdna__operator rdna__operator_embedding = {
    .name = "embedding", .infer = infer_embedding, .run = run_embedding, .gradient = gradient_embedding};

/* The number is how many rows the table has. */
static rdna_status infer_embedding_back(const rdna__making *m, rdna__type *out) {
  const rdna__type *g = &m->inputs[0]->type;
  *out = (rdna__type){g->dtype, 2, {m->attributes->numbers[0], g->shape[g->rank - 1]}};
  return RDNA_OK;
}
static rdna_status run_embedding_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted,
                                      rdna_array **out) {
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_embedding_backward(node->stream, o.in[0], o.in[1], -1, false, o.out[0], NULL),
                            out);
}
static void gradient_embedding_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = rdna_record_embedding(r, upstream[0], node->inputs[1]);
}
const rdna__operator rdna__operator_embedding_back = {.name = "embedding_back",
                                                      .infer = infer_embedding_back,
                                                      .run = run_embedding_back,
                                                      .gradient = gradient_embedding_back};

rdna_node *rdna_record_embedding(rdna_recorder *r, rdna_node *table, rdna_node *ids) {
  rdna_node *inputs[] = {table, ids};
  if (rdna__record_stopped(r, "embedding", inputs, 2)) return NULL;
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  if (table->type.rank != 2 || !are_indices(ids) || ids->type.rank >= RDNA_MAX_RANK)
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT, "embedding: a table (rows, size) and ids of i32 or i64, not %s and %s",
                      rdna__type_text(&table->type, first), rdna__type_text(&ids->type, second)));
  return rdna__record(r, &rdna__operator_embedding, &(rdna__attributes){0}, inputs, 2);
}
