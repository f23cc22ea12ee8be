/* Layers of recurrent networks, of one direction. |code| is the rdna_cell, |flag| the reverse direction, |dims| which
 * of the inputs in brackets are there:
 *
 *     recurrent       x, weight_ih, weight_hh, h, c?, [bias], [hidden bias]       -> out, second, gates
 *     recurrent_back  [dout], [dc], what recurrent takes, out, second?, gates?    -> dsums, dhidden or dc, dh
 *
 * |second| is an LSTM's cells or a GRU's inner products; the bias of an LSTM and of a plain cell is the sum of both. */
#include "graph/build.h"
#include "graph/operands.h"
#include "graph/recurrent_run.h"
#include "rdna/graph_neural.h"

enum { BIAS = 1, HIDDEN_BIAS = 2, DOUT = 4, DC = 8 };
enum { MOST_FORWARD = 7, OF_SUMS = MOST_FORWARD, OF_HIDDEN };

static const char *const names[] = {"lstm", "gru", "rnn of tanh", "rnn of relu"};
static const char *detail(const rdna_node *node) { return names[node->attributes.code]; }

static rdna_cell cell_of(const rdna__attributes *a) { return (rdna_cell)a->code; }
static bool has_gates(rdna_cell cell) { return cell == RDNA_CELL_LSTM || cell == RDNA_CELL_GRU; }

/* Where what is, behind the gradients that recurrent_back begins with; -1: nowhere. */
typedef struct places {
  int x, weight_ih, weight_hh, h, c, bias, hidden_bias, count;
} places;

static places places_from(const rdna__attributes *a, int first) {
  places p = {first, first + 1, first + 2, first + 3, -1, -1, -1, first + 4};
  if (a->code == RDNA_CELL_LSTM) p.c = p.count++;
  if (a->dims & BIAS) p.bias = p.count++;
  if (a->dims & HIDDEN_BIAS) p.hidden_bias = p.count++;
  return p;
}
static int gradients_before(const rdna__attributes *a) { return (a->dims & DOUT ? 1 : 0) + (a->dims & DC ? 1 : 0); }

static rdna_node *node_at(rdna_node *const *nodes, int place) { return place < 0 ? NULL : nodes[place]; }
static const rdna_tensor *tensor_at(const rdna__operands *o, int place) { return place < 0 ? NULL : o->in[place]; }

/* ---- by operators that have gradients ---- */

static rdna_node *rows_of_step(rdna_recorder *r, rdna_node *x, int64_t t) {
  if (!x) return NULL;
  rdna_node *one = rdna_record_slice(r, x, 0, t, 1, 1);
  return rdna_record_reshape(r, one, 2, x->type.shape + 1);
}
/* Columns |i| of |parts| equal ones. */
static rdna_node *columns(rdna_recorder *r, rdna_node *x, int i, int parts) {
  if (!x) return NULL;
  int64_t n = x->type.shape[1] / parts;
  return rdna_record_slice(r, x, 1, i * n, n, 1);
}
static rdna_node *turned(rdna_recorder *r, rdna_node *x) { return rdna_record_permute(r, x, (int[]){1, 0}); }
static rdna_node *flat(rdna_recorder *r, rdna_node *x) {
  if (!x) return NULL;
  const int64_t *shape = x->type.shape;
  return rdna_record_reshape(r, x, 2, (int64_t[]){shape[0] * shape[1], shape[2]});
}

static void lstm_step(rdna_recorder *r, rdna_node *sums, rdna_node **h, rdna_node **c) {
  rdna_node *i = map(r, RDNA_MAP_SIGMOID, columns(r, sums, 0, 4));
  rdna_node *f = map(r, RDNA_MAP_SIGMOID, columns(r, sums, 1, 4));
  rdna_node *g = map(r, RDNA_MAP_TANH, columns(r, sums, 2, 4));
  rdna_node *o = map(r, RDNA_MAP_SIGMOID, columns(r, sums, 3, 4));
  *c = add(r, mul(r, f, *c), mul(r, i, g));
  *h = mul(r, o, map(r, RDNA_MAP_TANH, *c));
}
static void gru_step(rdna_recorder *r, rdna_node *sums, rdna_node *carried, rdna_node **h) {
  rdna_node *reset = map(r, RDNA_MAP_SIGMOID, add(r, columns(r, sums, 0, 3), columns(r, carried, 0, 3)));
  rdna_node *z = map(r, RDNA_MAP_SIGMOID, add(r, columns(r, sums, 1, 3), columns(r, carried, 1, 3)));
  rdna_node *n = map(r, RDNA_MAP_TANH, add(r, columns(r, sums, 2, 3), mul(r, reset, columns(r, carried, 2, 3))));
  *h = add(r, n, mul(r, z, sub(r, *h, n)));
}

/* The layer step by step. |inputs| are recurrent's, and at OF_SUMS and OF_HIDDEN what is added to the sums and to a
 * GRU's products with the states. |out| gets the states of all steps and an LSTM's last c. */
static void compose_steps(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  const rdna__attributes *a = &node->attributes;
  places p = places_from(a, 0);
  rdna_node *x = inputs[p.x], *h = inputs[p.h], *c = node_at(inputs, p.c), *weight = turned(r, inputs[p.weight_hh]);
  int64_t steps = x->type.shape[0], rows = h->type.shape[0], n = h->type.shape[1];
  rdna_node *sums = rdna_record_matmul(r, x, turned(r, inputs[p.weight_ih])), *all = NULL;
  if (p.bias >= 0) sums = add(r, sums, inputs[p.bias]);
  sums = add(r, sums, inputs[OF_SUMS]);
  for (int64_t i = 0; i < steps && sums; i++) {
    int64_t t = a->flag ? steps - 1 - i : i;
    rdna_node *given = rows_of_step(r, sums, t), *carried = rdna_record_matmul(r, h, weight);
    if (p.hidden_bias >= 0) carried = add(r, carried, inputs[p.hidden_bias]);
    if (a->code == RDNA_CELL_GRU)
      gru_step(r, given, add(r, carried, rows_of_step(r, inputs[OF_HIDDEN], t)), &h);
    else if (a->code == RDNA_CELL_LSTM)
      lstm_step(r, add(r, given, carried), &h, &c);
    else
      h = map(r, a->code == RDNA_CELL_TANH ? RDNA_MAP_TANH : RDNA_MAP_RELU, add(r, given, carried));
    rdna_node *made = rdna_record_reshape(r, h, 3, (int64_t[]){1, rows, n});
    rdna_node *both[] = {a->flag ? made : all, a->flag ? all : made};
    all = all ? rdna_record_concat(r, both, 2, 0) : made;
  }
  out[0] = all;
  out[1] = c;
}

/* ---- recurrent ---- */

static rdna_status infer_recurrent(const rdna__making *m, rdna__type *out) {
  places p = places_from(m->attributes, 0);
  const rdna__type *x = &m->inputs[p.x]->type, *h = &m->inputs[p.h]->type, *weight = &m->inputs[p.weight_hh]->type;
  out[0] = (rdna__type){x->dtype, 3, {x->shape[0], x->shape[1], h->shape[1]}};
  out[1] = out[2] = out[0];
  out[2].shape[2] = weight->shape[0];
  return RDNA_OK;
}

/* Of |o|, where the inputs begin at |first|. */
static rdna__recurrent layer_of(const rdna_node *node, const rdna__operands *o, int first) {
  const rdna__attributes *a = &node->attributes;
  places p = places_from(a, first);
  return (rdna__recurrent){.stream = node->stream,
                           .cell = cell_of(a),
                           .reverse = a->flag,
                           .x = o->in[p.x],
                           .weight_ih = o->in[p.weight_ih],
                           .weight_hh = o->in[p.weight_hh],
                           .h = o->in[p.h],
                           .c = tensor_at(o, p.c),
                           .bias = tensor_at(o, p.bias),
                           .hidden_bias = tensor_at(o, p.hidden_bias)};
}

static rdna_status run_recurrent(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, has_gates(cell_of(&node->attributes)) ? 7 : 1));
  rdna__recurrent layer = layer_of(node, &o, 0);
  layer.out = o.out[0];
  layer.second = o.out[1];
  layer.gates = o.out[2];
  return rdna__operands_end(&o, rdna__recurrent_forward(&layer), out);
}

/* The state before each step, as rows. */
static rdna_node *states_before(rdna_recorder *r, rdna_node *h, rdna_node *out, bool reverse) {
  const int64_t *shape = out->type.shape;
  rdna_node *first = rdna_record_reshape(r, h, 3, (int64_t[]){1, shape[1], shape[2]});
  if (shape[0] == 1) return flat(r, first);
  rdna_node *rest = rdna_record_slice(r, out, 0, reverse ? 1 : 0, shape[0] - 1, 1);
  rdna_node *both[] = {reverse ? rest : first, reverse ? first : rest};
  return flat(r, rdna_record_concat(r, both, 2, 0));
}

static rdna_node *sum_rows(rdna_recorder *r, rdna_node *x) {
  return rdna_record_reduce(r, x, RDNA_REDUCTION_SUM, 1, false, 0);
}

/* Of |cells|, nothing but the last step's is handed out, so that gradients of the others are zeros. */
static rdna_node *last_of(rdna_recorder *r, rdna_node *cells, bool reverse) {
  return cells ? rows_of_step(r, cells, reverse ? 0 : cells->type.shape[0] - 1) : NULL;
}

static void gradient_recurrent(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__attributes a = node->attributes;
  places p = places_from(&a, 0);
  rdna_node *inputs[RDNA__MOST_OPERANDS], *made[] = {rdna__part(r, node, 0), NULL, NULL};
  int count = 0;
  if (upstream[0]) a.dims |= DOUT, inputs[count++] = upstream[0];
  if (upstream[1]) a.dims |= DC, inputs[count++] = last_of(r, upstream[1], a.flag);
  for (int i = 0; i < p.count; i++) inputs[count++] = node->inputs[i];
  for (int i = 0; i < (has_gates(cell_of(&a)) ? 3 : 1); i++) {
    if (i) made[i] = rdna__part(r, node, i);
    inputs[count++] = made[i];
  }
  rdna_node *back = rdna__record(r, &rdna__operator_recurrent_back, &a, inputs, count);
  rdna_node *sums = flat(r, rdna__part(r, back, 0)), *hidden = sums;
  if (a.code == RDNA_CELL_GRU) hidden = flat(r, rdna__part(r, back, 1));
  if (!sums || !hidden || !made[0]) return;
  const rdna__type *x = &node->inputs[p.x]->type;
  out[p.x] = rdna_record_reshape(r, rdna_record_matmul(r, sums, node->inputs[p.weight_ih]), 3, x->shape);
  out[p.weight_ih] = rdna_record_matmul(r, turned(r, sums), flat(r, node->inputs[p.x]));
  out[p.weight_hh] = rdna_record_matmul(r, turned(r, hidden), states_before(r, node->inputs[p.h], made[0], a.flag));
  out[p.h] = rdna__part(r, back, 2);
  if (p.c >= 0) out[p.c] = rdna__part(r, back, 1);
  if (p.bias >= 0) out[p.bias] = sum_rows(r, sums);
  if (p.hidden_bias >= 0) out[p.hidden_bias] = sum_rows(r, hidden);
}

const rdna__operator rdna__operator_recurrent = {.name = "recurrent",
                                                 .results = 3,
                                                 .infer = infer_recurrent,
                                                 .run = run_recurrent,
                                                 .gradient = gradient_recurrent,
                                                 .detail = detail};

/* ---- recurrent_back ---- */

static rdna_status infer_back(const rdna__making *m, rdna__type *out) {
  places p = places_from(m->attributes, gradients_before(m->attributes));
  const rdna__type *x = &m->inputs[p.x]->type;
  out[0] = (rdna__type){x->dtype, 3, {x->shape[0], x->shape[1], m->inputs[p.weight_hh]->type.shape[0]}};
  out[2] = m->inputs[p.h]->type;
  out[1] = m->attributes->code == RDNA_CELL_GRU ? out[0] : out[2];
  return RDNA_OK;
}

static rdna_status run_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  bool gates = has_gates(cell_of(a)), of_gru = a->code == RDNA_CELL_GRU;
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, gates ? 7 : 5));
  int first = gradients_before(a), behind = places_from(a, first).count;
  rdna__recurrent layer = layer_of(node, &o, first);
  layer.hidden_bias = NULL;
  layer.out = o.in[behind];
  if (gates) layer.second = o.in[behind + 1], layer.gates = o.in[behind + 2];
  const rdna_tensor *dout = a->dims & DOUT ? o.in[0] : NULL, *dc = a->dims & DC ? o.in[first - 1] : NULL;
  rdna_status status = rdna__recurrent_backward(&layer, dout, dc, o.out[0], of_gru ? o.out[1] : NULL, o.out[2],
                                                of_gru ? NULL : o.out[1]);
  return rdna__operands_end(&o, status, out);
}

/* The gradients of the sums are those of zeros that are added to them. */
static rdna_node *added(rdna_recorder *r, const rdna__type *type) {
  return rdna__pass(r, rdna_record_full(r, type->dtype, type->rank, type->shape, rdna__nothing));
}
static void compose_back(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  const rdna__attributes *a = &node->attributes;
  int first = gradients_before(a);
  places p = places_from(a, 0);
  rdna_node *forward[OF_HIDDEN + 1], *gradients[OF_HIDDEN + 1] = {NULL}, *seeds[RDNA__MOST_RESULTS] = {NULL};
  for (int i = 0; i < OF_SUMS; i++) forward[i] = inputs[first + (i < p.count ? i : 0)];
  forward[OF_SUMS] = added(r, &node->type);
  forward[OF_HIDDEN] = added(r, &node->type);
  if (a->dims & DOUT) seeds[0] = inputs[0];
  if (a->dims & DC) seeds[1] = inputs[first - 1];
  rdna__record_backward(compose_steps, r, node, forward, OF_HIDDEN + 1, seeds, gradients);
  out[0] = gradients[OF_SUMS];
  out[1] = a->code == RDNA_CELL_GRU ? gradients[OF_HIDDEN] : node_at(gradients, p.c);
  out[2] = gradients[p.h];
}
static void gradient_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__gradient_of(compose_back, r, node, upstream, out);
}

const rdna__operator rdna__operator_recurrent_back = {.name = "recurrent_back",
                                                      .results = 3,
                                                      .infer = infer_back,
                                                      .run = run_back,
                                                      .gradient = gradient_back,
                                                      .detail = detail};

/* ---- the public face ---- */

static bool is_shape(const rdna_node *node, int rank, int64_t first, int64_t second) {
  return node->type.rank == rank && node->type.shape[0] == first && (rank == 1 || node->type.shape[1] == second);
}

static rdna_status check_shapes(rdna_cell cell, const rdna_node *x, const rdna_node *weight_ih,
                                const rdna_node *weight_hh, const rdna_node *bias_ih, const rdna_node *bias_hh,
                                const rdna_node *h, const rdna_node *c) {
  const rdna_node *biases[] = {bias_ih, bias_hh};
  char text[4][RDNA__ARRAY_TEXT];
  int64_t n = weight_hh->type.rank == 2 ? weight_hh->type.shape[1] : 0, wide = n * rdna__cell_parts(cell);
  bool fits = x->type.rank == 3 && x->type.shape[0] > 0 && n > 0 && rdna__array_is_float(x->type.dtype) &&
              is_shape(weight_hh, 2, wide, n) && is_shape(weight_ih, 2, wide, x->type.shape[2]) &&
              is_shape(h, 2, x->type.shape[1], n);
  if (!fits)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "recurrent: x %s, weights %s and %s, h %s; of a %s they are (a step or more, rows, inputs) of "
                      "floats, (%d n, inputs), (%d n, n) and (rows, n)",
                      rdna__type_text(&x->type, text[0]), rdna__type_text(&weight_ih->type, text[1]),
                      rdna__type_text(&weight_hh->type, text[2]), rdna__type_text(&h->type, text[3]), names[cell],
                      rdna__cell_parts(cell), rdna__cell_parts(cell));
  for (int i = 0; i < 2; i++)
    if (biases[i] && !is_shape(biases[i], 1, wide, 0))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "recurrent: a bias %s of a %s with weights %s; it has %lld values",
                        rdna__type_text(&biases[i]->type, text[0]), names[cell],
                        rdna__type_text(&weight_hh->type, text[1]), (long long)wide);
  if ((cell == RDNA_CELL_LSTM) != (c != NULL) || (c && !rdna__same_shape(&c->type, &h->type)))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "recurrent: c %s of a %s; an LSTM has one, of h's shape, %s",
                      c ? rdna__type_text(&c->type, text[0]) : "is NULL", names[cell],
                      rdna__type_text(&h->type, text[1]));
  return RDNA_OK;
}

rdna_node *rdna_record_recurrent(rdna_recorder *r, rdna_cell cell, bool reverse, rdna_node *x, rdna_node *weight_ih,
                                 rdna_node *weight_hh, rdna_node *bias_ih, rdna_node *bias_hh, rdna_node *h,
                                 rdna_node *c) {
  rdna_node *nodes[] = {x, weight_ih, weight_hh, h, c, bias_ih, bias_hh}, *inputs[MOST_FORWARD];
  if (rdna__record_stopped(r, "recurrent", nodes, 4)) return NULL;
  if ((int)cell < 0 || cell >= RDNA_CELL_COUNT)
    return rdna__record_failure(r, rdna__fail(RDNA_INVALID_ARGUMENT, "recurrent: there is no cell %d", (int)cell));
  rdna_status status = check_shapes(cell, x, weight_ih, weight_hh, bias_ih, bias_hh, h, c);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  rdna__cast_to_first(r, nodes, MOST_FORWARD - 1);
  if (cell != RDNA_CELL_GRU && nodes[5] && nodes[6]) nodes[5] = add(r, nodes[5], nodes[6]), nodes[6] = NULL;
  if (cell != RDNA_CELL_GRU && nodes[6]) nodes[5] = nodes[6], nodes[6] = NULL;
  rdna__attributes a = {.code = (int)cell, .flag = reverse};
  a.dims = (uint32_t)((nodes[5] ? BIAS : 0) | (nodes[6] ? HIDDEN_BIAS : 0));
  int count = 0;
  for (int i = 0; i < MOST_FORWARD; i++)
    if (nodes[i]) inputs[count++] = nodes[i];
  return rdna__part(r, rdna__record(r, &rdna__operator_recurrent, &a, inputs, count), 0);
}

rdna_node *rdna_record_recurrent_cells(rdna_recorder *r, rdna_node *out) {
  if (rdna__record_stopped(r, "recurrent_cells", &out, 1)) return NULL;
  rdna_node *of = out->op == &rdna__operator_part ? out->inputs[0] : NULL;
  if (!of || of->op != &rdna__operator_recurrent || of->attributes.code != RDNA_CELL_LSTM)
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT, "recurrent_cells: %s is not what rdna_record_recurrent made of an LSTM",
                      out->op->name));
  return last_of(r, rdna__part(r, of, 1), of->attributes.flag);
}
