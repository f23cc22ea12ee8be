/* Reverse mode: gradients go from the outputs to the inputs, node by node in the opposite order, and are added up where
 * a value was read several times. */
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "graph/order.h"

typedef struct reverse {
  rdna_recorder *r;
  rdna__order order;
  bool *needed;      /* (count) whether an input lies behind it */
  bool *is_input;    /* (count) */
  rdna_node **given; /* (count, RDNA__MOST_RESULTS) what came to each result so far */
  bool partial;
} reverse;

static rdna_node **given_to(reverse *v, int64_t i, int result) { return &v->given[i * RDNA__MOST_RESULTS + result]; }

static void give(reverse *v, int64_t i, int result, rdna_node *gradient) {
  rdna_node **sum = given_to(v, i, result);
  if (gradient) *sum = *sum ? add(v->r, *sum, gradient) : gradient;
}

static rdna_status prepare(reverse *v, rdna_node *const *inputs, int input_count) {
  int64_t count = v->order.count;
  v->needed = calloc((size_t)count + 1, sizeof *v->needed);
  v->is_input = calloc((size_t)count + 1, sizeof *v->is_input);
  v->given = calloc((size_t)count * RDNA__MOST_RESULTS + 1, sizeof(rdna_node *));
  if (!v->needed || !v->is_input || !v->given)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the gradients of %lld nodes", (long long)count);
  for (int i = 0; i < input_count; i++) {
    int64_t at = rdna__order_find(&v->order, inputs[i]);
    if (at >= 0) v->is_input[at] = v->needed[at] = true;
  }
  for (int64_t i = 0; i < count; i++) {
    const rdna_node *node = v->order.nodes[i];
    if (!rdna__array_is_float(node->type.dtype) || (v->is_input[i] && v->partial)) continue;
    for (int k = 0; k < node->input_count && !v->needed[i]; k++)
      v->needed[i] = v->needed[rdna__order_find(&v->order, node->inputs[k])];
  }
  return RDNA_OK;
}

/* Hands what came to node |i| on to its inputs. */
static rdna_status propagate(reverse *v, int64_t i) {
  rdna_node *node = v->order.nodes[i], *few[8] = {NULL}, **out = few;
  if (node->op == &rdna__operator_part) {
    give(v, rdna__order_find(&v->order, node->inputs[0]), node->attributes.dim, *given_to(v, i, 0));
    return RDNA_OK;
  }
  if (!node->op->gradient)
    return rdna__node_annotate(
        node,
        rdna__fail(RDNA_UNSUPPORTED, "%s has no gradient; rdna_record_stop before it makes it zero", node->op->name));
  if (node->input_count > 8) out = calloc((size_t)node->input_count, sizeof *out);
  if (!out) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for gradients");
  node->op->gradient(v->r, node, given_to(v, i, 0), out);
  for (int k = 0; k < node->input_count; k++) {
    int64_t at = rdna__order_find(&v->order, node->inputs[k]);
    if (v->needed[at]) give(v, at, 0, out[k]);
  }
  if (out != few) free(out);
  return RDNA_OK;
}

static rdna_status walk_back(reverse *v) {
  for (int64_t i = v->order.count - 1; i >= 0; i--) {
    const rdna_node *node = v->order.nodes[i];
    bool any = false;
    for (int k = 0; k < RDNA__MOST_RESULTS; k++) any |= *given_to(v, i, k) != NULL;
    if (any && v->needed[i] && node->input_count > 0 && !(v->is_input[i] && v->partial)) RDNA_TRY(propagate(v, i));
  }
  return RDNA_OK;
}

static rdna_status differentiate(rdna_recorder *r, rdna_node *const *outputs, int output_count, rdna_node *const *seeds,
                                 rdna_node *const *inputs, int input_count, bool partial, rdna_node **out) {
  reverse v = {.r = r, .partial = partial};
  RDNA_TRY(rdna__order_init(&v.order, outputs, output_count, inputs, partial ? input_count : 0));
  rdna_status status = prepare(&v, inputs, input_count);
  for (int i = 0; i < output_count && status == RDNA_OK; i++)
    if (seeds[i]) give(&v, rdna__order_find(&v.order, outputs[i]), 0, seeds[i]);
  if (status == RDNA_OK) status = walk_back(&v);
  for (int i = 0; i < input_count && status == RDNA_OK; i++) {
    int64_t at = rdna__order_find(&v.order, inputs[i]);
    out[i] = at >= 0 ? *given_to(&v, at, 0) : NULL;
  }
  free(v.needed);
  free(v.is_input);
  free(v.given);
  rdna__order_deinit(&v.order);
  return status;
}

rdna_status rdna__differentiate(rdna_recorder *r, rdna_node *const *outputs, int output_count, rdna_node *const *seeds,
                                rdna_node *const *inputs, int input_count, bool partial, rdna_node **out) {
  rdna_node **read = malloc(((size_t)input_count + 1) * sizeof *read); /* in the places of the inputs */
  if (!read) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for gradients");
  for (int i = 0; i < input_count; i++) {
    rdna_node *rows = rdna__rows_behind(inputs[i]);
    read[i] = rows ? rows : inputs[i];
  }
  rdna_status status = differentiate(r, outputs, output_count, seeds, read, input_count, partial, out);
  for (int i = 0; i < input_count && status == RDNA_OK; i++)
    if (out[i] && read[i] != inputs[i])
      out[i] = rdna_record_reshape(r, out[i], inputs[i]->type.rank, inputs[i]->type.shape);
  free(read);
  return status;
}

void rdna__record_backward(rdna__composition *forward, rdna_recorder *r, const rdna_node *node,
                           rdna_node *const *inputs, int input_count, rdna_node *const *seeds, rdna_node **out) {
  rdna_node *outputs[RDNA__MOST_RESULTS] = {NULL}, *results[RDNA__MOST_RESULTS], *given[RDNA__MOST_RESULTS];
  forward(r, node, inputs, outputs);
  int count = 0;
  for (int i = 0; i < RDNA__MOST_RESULTS; i++)
    if (outputs[i] && seeds[i]) results[count] = outputs[i], given[count++] = seeds[i];
  if (rdna__record_stopped(r, node->op->name, inputs, input_count)) return;
  rdna_status status = rdna__differentiate(r, results, count, given, inputs, input_count, true, out);
  if (status != RDNA_OK) rdna__record_failure(r, status);
}

void rdna__gradient_of(rdna__composition *compose, rdna_recorder *r, rdna_node *node, rdna_node *const *upstream,
                       rdna_node **out) {
  /* what is differentiated by has to be a node of its own, as one node may be two inputs */
  rdna_node *stand_ins[RDNA__MOST_OPERANDS];
  for (int i = 0; i < node->input_count; i++) stand_ins[i] = rdna__pass(r, node->inputs[i]);
  rdna__record_backward(compose, r, node, stand_ins, node->input_count, upstream, out);
}

/* ---- the public face ---- */

static rdna_status check_floats(rdna_node *const *nodes, int count, const char *what) {
  char text[RDNA__ARRAY_TEXT];
  for (int i = 0; i < count; i++)
    if (!rdna__array_is_float(nodes[i]->type.dtype))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "gradients are of floats, and %s %d is %s", what, i,
                        rdna__type_text(&nodes[i]->type, text));
  return RDNA_OK;
}

/* |seed|, or ones; cast and broadcast are the caller's. */
static rdna_status check_seed(rdna_recorder *r, const rdna_node *output, rdna_node *seed, int i, rdna_node **out) {
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  *out = seed ? seed : rdna__full_like(r, output, 1);
  if (!seed && rdna__type_count(&output->type) != 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "output %d is %s, not a single value; sum it, or give it a seed of its shape", i,
                      rdna__type_text(&output->type, first));
  if (seed && (!rdna__same_shape(&seed->type, &output->type) || seed->type.dtype != output->type.dtype))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "seed %d is %s, and the output %s", i, rdna__type_text(&seed->type, first),
                      rdna__type_text(&output->type, second));
  return RDNA_OK;
}

rdna_status rdna_record_gradients(rdna_recorder *r, rdna_node *const *outputs, int output_count,
                                  rdna_node *const *seeds, rdna_node *const *inputs, int input_count, rdna_node **out) {
  if (!r) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_record_gradients needs a recorder");
  if (rdna__record_stopped(r, "gradients", outputs, output_count) ||
      rdna__record_stopped(r, "gradients", inputs, input_count))
    return rdna_recorder_status(r);
  RDNA_TRY(check_floats(outputs, output_count, "output"));
  RDNA_TRY(check_floats(inputs, input_count, "input"));
  rdna_node **all = calloc((size_t)output_count + (size_t)input_count + 1, sizeof *all), **found = all + output_count;
  if (!all) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for gradients");
  rdna_status status = RDNA_OK;
  for (int i = 0; i < output_count && status == RDNA_OK; i++)
    status = check_seed(r, outputs[i], seeds ? seeds[i] : NULL, i, &all[i]);
  if (status == RDNA_OK) status = rdna__differentiate(r, outputs, output_count, all, inputs, input_count, false, found);
  for (int i = 0; i < input_count && status == RDNA_OK; i++)
    if (!found[i]) found[i] = rdna__full_like(r, inputs[i], 0);
  if (status == RDNA_OK) status = rdna_recorder_status(r);
  if (status == RDNA_OK) memcpy(out, found, (size_t)input_count * sizeof *out);
  free(all);
  return status;
}
