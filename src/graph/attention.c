/* Attention, and dropout. */
#include "rdna/op/attention.h"

#include <math.h>

#include "graph/build.h"
#include "graph/operands.h"
#include "rdna/graph_neural.h"
#include "rdna/op/random.h"

/* ---- attention, of q, k, v and a mask where |dims| says so: p is the scale, |flag| hides keys behind the query.
 * Results: out, lse ---- */

static rdna_sdpa options_of(const rdna_node *node) {
  return (rdna_sdpa){RDNA_SDPA_INIT, .scale = (float)node->attributes.p.real, .causal = node->attributes.flag};
}

static rdna_status infer_attention(const rdna__making *m, rdna__type *out) {
  const rdna__type *q = &m->inputs[0]->type, *v = &m->inputs[2]->type;
  out[0] = *q;
  out[0].shape[3] = v->shape[3];
  out[1] = (rdna__type){RDNA_F32, 3, {q->shape[0], q->shape[1], q->shape[2]}};
  return RDNA_OK;
}
/* The result lies as q does: where (batch, tokens, heads, d) is seen as (batch, heads, tokens, d), what turns it back
 * costs no copy. */
static rdna_status lay_as_q(const rdna_node *node, rdna__operands *o) {
  const rdna_tensor *q = o->in[0];
  const int64_t *shape = node->type.shape;
  if (q->stride[1] >= q->stride[2] || shape[1] == 1) return RDNA_OK;
  rdna_array *made, *turned;
  RDNA_TRY(
      rdna__array_make(node->stream, node->type.dtype, 4, (int64_t[]){shape[0], shape[2], shape[1], shape[3]}, &made));
  rdna_status status = rdna_array_permute(made, (int[]){0, 2, 1, 3}, &turned);
  rdna_array_release(made);
  if (status != RDNA_OK) return status;
  rdna_array_release(o->made[0]);
  o->made[0] = turned;
  o->out[0] = &turned->tensor;
  return RDNA_OK;
}

static rdna_status run_attention(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  rdna_sdpa options = options_of(node);
  RDNA_TRY(rdna__operands_init_strided(&o, node, inputs, wanted | 1));
  rdna_status laid = lay_as_q(node, &o);
  if (laid != RDNA_OK) return rdna__operands_end(&o, laid, out);
  options.mask = node->attributes.dims ? o.in[3] : NULL;
  return rdna__operands_end(&o, rdna_op_sdpa(node->stream, &options, o.in[0], o.in[1], o.in[2], o.out[0], o.out[1]),
                            out);
}

/* Zeros, and minus infinity where the key is behind the query. */
static rdna_node *hide_later(rdna_recorder *r, rdna_node *scores) {
  const rdna__type *type = &scores->type;
  int64_t queries = type->shape[2], keys = type->shape[3];
  rdna_array *places[2] = {NULL, NULL};
  rdna_status status =
      rdna_array_arange(scores->stream, RDNA_I64, queries, rdna_scalar_integer(0), rdna_scalar_integer(1), &places[0]);
  if (status == RDNA_OK)
    status =
        rdna_array_arange(scores->stream, RDNA_I64, keys, rdna_scalar_integer(0), rdna_scalar_integer(1), &places[1]);
  if (status != RDNA_OK) {
    rdna_array_release(places[0]);
    return rdna__record_failure(r, status);
  }
  rdna_node *query = rdna_record_reshape(r, rdna_record_constant(r, places[0]), 2, (int64_t[]){queries, 1});
  rdna_node *key = rdna_record_reshape(r, rdna_record_constant(r, places[1]), 2, (int64_t[]){1, keys});
  rdna_array_release(places[0]);
  rdna_array_release(places[1]);
  return choose(r, RDNA_COMPARE_LE, key, query, scores, rdna__number(r, scores, -(double)INFINITY));
}

/* Along the keys; of a query that sees nothing zeros, where NaN would come of it to all else that is derived. */
static rdna_node *softmax_of_seen(rdna_recorder *r, rdna_node *scores) {
  rdna_node *most = rdna_record_reduce(r, scores, RDNA_REDUCTION_MAX, 1u << 3, true, 0);
  if (!most) return NULL;
  rdna_node *none = rdna_record_compare(r, most, rdna__number(r, scores, -(double)INFINITY), RDNA_COMPARE_EQ);
  rdna_node *zero = rdna__number(r, scores, 0);
  return rdna_record_where(r, none, zero, rdna_record_softmax(r, rdna_record_where(r, none, zero, scores), -1));
}

/* |inputs| are q, k, v and, where |masked|, the mask. */
static rdna_node *compose_of(rdna_recorder *r, rdna_node *const *inputs, double scale, bool causal, bool masked) {
  rdna_node *transposed = rdna_record_permute(r, inputs[1], (int[]){0, 1, 3, 2});
  rdna_node *scores = affine(r, rdna_record_matmul(r, inputs[0], transposed), scale, 0);
  if (masked && scores && inputs[3]->type.dtype == RDNA_BOOL)
    scores = rdna_record_where(r, inputs[3], scores, rdna__number(r, scores, -(double)INFINITY));
  else if (masked && scores)
    scores = add(r, scores, inputs[3]);
  if (causal && scores) scores = hide_later(r, scores);
  return rdna_record_matmul(r, masked ? softmax_of_seen(r, scores) : rdna_record_softmax(r, scores, -1), inputs[2]);
}
static void compose_attention(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  const rdna__attributes *a = &node->attributes;
  out[0] = compose_of(r, inputs, a->p.real, a->flag, a->dims != 0);
}

static void gradient_attention(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_node *const *in = node->inputs, *mask = node->attributes.dims ? in[3] : NULL;
  if (!upstream[0]) return;
  rdna_node *inputs[] = {upstream[0], in[0], in[1], in[2], rdna__part(r, node, 0), rdna__part(r, node, 1), mask};
  rdna_node *back = rdna__record(r, &rdna__operator_attention_back, &node->attributes, inputs, mask ? 7 : 6);
  for (int i = 0; i < 3; i++) out[i] = rdna__part(r, back, i);
  if (!mask || mask->type.dtype == RDNA_BOOL) return;
  /* that of a mask that is added is computed where somebody asks for it alone */
  rdna_node *seeds[RDNA__MOST_RESULTS] = {upstream[0]}, *all[4] = {NULL};
  /* with a stand-in, as a mask may be an input twice, or a product that operations on values see through */
  rdna_node *forward[] = {in[0], in[1], in[2], rdna__pass(r, mask)};
  rdna__record_backward(compose_attention, r, node, forward, 4, seeds, all);
  out[3] = all[3];
}
const rdna__operator rdna__operator_attention = {
    .name = "attention", .results = 2, .infer = infer_attention, .run = run_attention, .gradient = gradient_attention};

/* ---- of g, q, k, v, out, lse and the mask ---- */

static rdna_status infer_back(const rdna__making *m, rdna__type *out) {
  for (int i = 0; i < 3; i++) out[i] = m->inputs[1 + i]->type;
  return RDNA_OK;
}
static rdna_status run_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  rdna_sdpa options = options_of(node);
  RDNA_TRY(rdna__operands_init_strided(&o, node, inputs, wanted));
  options.mask = node->attributes.dims ? o.in[6] : NULL;
  return rdna__operands_end(&o,
                            rdna_op_sdpa_backward(node->stream, &options, o.in[1], o.in[2], o.in[3], o.in[4], o.in[5],
                                                  o.in[0], o.out[0], o.out[1], o.out[2], NULL),
                            out);
}
static void compose_back(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out) {
  rdna_node *seeds[RDNA__MOST_RESULTS] = {inputs[0]}, *all[4] = {NULL};
  rdna_node *forward[] = {inputs[1], inputs[2], inputs[3], node->attributes.dims ? inputs[6] : NULL};
  rdna__record_backward(compose_attention, r, node, forward, node->attributes.dims ? 4 : 3, seeds, all);
  for (int i = 0; i < 3; i++) out[i] = all[i];
}
static void gradient_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__gradient_of(compose_back, r, node, upstream, out);
}
const rdna__operator rdna__operator_attention_back = {
    .name = "attention_back", .results = 3, .infer = infer_back, .run = run_back, .gradient = gradient_back};

static bool mask_fits(const rdna__type *mask, const rdna__type *q, int64_t keys) {
  bool fits =
      mask->rank == 4 && mask->shape[3] == keys && (mask->dtype == RDNA_BOOL || rdna__array_is_float(mask->dtype));
  for (int i = 0; i < 3 && fits; i++) fits = mask->shape[i] == q->shape[i] || mask->shape[i] == 1;
  return fits;
}

rdna_node *rdna_record_attention_masked(rdna_recorder *r, rdna_node *q, rdna_node *k, rdna_node *v, rdna_node *mask,
                                        double scale, bool causal) {
  rdna_node *inputs[] = {q, k, v, mask};
  int count = mask ? 4 : 3;
  if (rdna__record_stopped(r, "attention", inputs, count)) return NULL;
  const rdna__type *of_q = &q->type, *of_k = &k->type, *of_v = &v->type;
  char text[4][RDNA__ARRAY_TEXT];
  bool fits = of_q->rank == 4 && of_k->rank == 4 && of_v->rank == 4 && rdna__array_is_float(of_q->dtype) &&
              of_q->shape[3] == of_k->shape[3] && of_k->shape[2] == of_v->shape[2];
  for (int i = 0; i < 2 && fits; i++) fits = of_q->shape[i] == of_k->shape[i] && of_q->shape[i] == of_v->shape[i];
  if (!fits)
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT,
                      "attention: q %s, k %s and v %s; they are (batch, heads, tokens, d) of floats",
                      rdna__type_text(of_q, text[0]), rdna__type_text(of_k, text[1]), rdna__type_text(of_v, text[2])));
  if (mask && !mask_fits(&mask->type, of_q, of_k->shape[2]))
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT,
                      "attention: a mask %s for q %s and k %s; it is (batch or 1, heads or 1, queries or 1, keys) of "
                      "bool, or of floats that are added",
                      rdna__type_text(&mask->type, text[3]), rdna__type_text(of_q, text[0]),
                      rdna__type_text(of_k, text[1])));
  rdna__cast_to_first(r, inputs, 2);
  if (mask && mask->type.dtype != RDNA_BOOL) inputs[3] = rdna_record_cast(r, mask, of_q->dtype);
  /* the kernel with gradients takes neither f64 nor a d above 256 */
  if (of_q->dtype == RDNA_F64 || of_q->shape[3] > 256 || of_v->shape[3] > 256)
    return compose_of(r, inputs, scale, causal, mask != NULL);
  rdna__attributes a = {.flag = causal, .dims = mask != NULL, .p = rdna_scalar_real(scale)};
  return rdna__part(r, rdna__record(r, &rdna__operator_attention, &a, inputs, count), 0);
}

rdna_node *rdna_record_attention(rdna_recorder *r, rdna_node *q, rdna_node *k, rdna_node *v, double scale,
                                 bool causal) {
  return rdna_record_attention_masked(r, q, k, v, NULL, scale, causal);
}

/* ---- dropout: p is the probability, the numbers are seed and offset. It is its own gradient ---- */

static rdna_status run_dropout(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  rdna_array *mask;
  RDNA_TRY(rdna__array_make(node->stream, RDNA_BOOL, node->type.rank, node->type.shape, &mask));
  rdna__operands o;
  rdna_status status = rdna__operands_init(&o, node, inputs, 1);
  if (status == RDNA_OK)
    status = rdna__operands_end(&o,
                                rdna_op_dropout(node->stream, (uint64_t)a->numbers[0], (uint64_t)a->numbers[1],
                                                (float)a->p.real, o.in[0], o.out[0], &mask->tensor),
                                out);
  rdna_array_release(mask);
  return status;
}
static rdna_node *drop(rdna_recorder *r, rdna_node *x, const rdna__attributes *a) {
  return rdna__record(r, &rdna__operator_dropout, a, &x, 1);
}
static void gradient_dropout(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = drop(r, upstream[0], &node->attributes);
}
const rdna__operator rdna__operator_dropout = {
    .name = "dropout", .infer = rdna__infer_same, .run = run_dropout, .gradient = gradient_dropout};

rdna_node *rdna_record_dropout(rdna_recorder *r, rdna_node *x, double probability, uint64_t seed, uint64_t offset) {
  if (rdna__record_stopped(r, "dropout", &x, 1)) return NULL;
  if (!(probability >= 0 && probability <= 1))
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT, "dropout: a probability is in [0, 1], not %g", probability));
  int64_t numbers[2] = {(int64_t)seed, (int64_t)offset};
  return drop(r, x, &(rdna__attributes){.number_count = 2, .numbers = numbers, .p = rdna_scalar_real(probability)});
}
