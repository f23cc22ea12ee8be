/* Operators of a user's own: functions that a node calls for its values and for its gradients. */
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "rdna/graph_array.h"

struct rdna__own {
  int count; /* of references */
  rdna_array_operator op;
  char name[];
};

rdna__own *rdna__own_retain(rdna__own *own) {
  if (own) __atomic_add_fetch(&own->count, 1, __ATOMIC_RELAXED);
  return own;
}

void rdna__own_release(rdna__own *own) {
  if (!own || __atomic_sub_fetch(&own->count, 1, __ATOMIC_ACQ_REL) > 0) return;
  if (own->op.release) own->op.release(own->op.data);
  free(own);
}

/* ---- types: the numbers are how many results there are, and of each its type, rank and shape ---- */

enum { MOST_NUMBERS = 1 + RDNA__MOST_RESULTS * (2 + RDNA_MAX_RANK) };

static int write_types(const rdna_tensor *types, int count, int64_t *numbers) {
  int at = 0;
  numbers[at++] = count;
  for (int i = 0; i < count; i++) {
    numbers[at++] = types[i].dtype;
    numbers[at++] = types[i].rank;
    for (int d = 0; d < types[i].rank; d++) numbers[at++] = types[i].shape[d];
  }
  return at;
}

static int read_types(const rdna__attributes *a, rdna__type *out) {
  const int64_t *at = a->numbers;
  int count = (int)*at++;
  for (int i = 0; i < count; i++) {
    out[i] = (rdna__type){(rdna_dtype)at[0], (int)at[1], {0}};
    memcpy(out[i].shape, at + 2, (size_t)out[i].rank * sizeof *at);
    at += 2 + out[i].rank;
  }
  return count;
}

static rdna_status infer_call(const rdna__making *m, rdna__type *out) {
  read_types(m->attributes, out);
  return RDNA_OK;
}

/* ---- values ---- */

static void release_all(rdna_array **arrays, int count) {
  for (int i = 0; i < count; i++) rdna_array_release(arrays[i]);
}

/* Whether |array| is what was recorded, with values. */
static rdna_status check_result(const rdna_node *node, const rdna_array *array, const rdna__type *type, int i) {
  char given[RDNA__ARRAY_TEXT], wanted[RDNA__ARRAY_TEXT];
  const char *name = node->attributes.own->name;
  if (!array || rdna_array_is_lazy(array) || array->stream != node->stream)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: result %d is %s", name, i,
                      !array                      ? "missing"
                      : rdna_array_is_lazy(array) ? "a lazy array"
                                                  : "of another stream than the inputs");
  bool same = array->tensor.dtype == type->dtype && array->tensor.rank == type->rank;
  for (int d = 0; d < type->rank && same; d++) same = array->tensor.shape[d] == type->shape[d];
  if (same) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: result %d is %s, and was recorded as %s", name, i,
                    rdna__array_text(&array->tensor, given), rdna__type_text(type, wanted));
}

static rdna_status run_call(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna_array_operator *op = &node->attributes.own->op;
  rdna__type types[RDNA__MOST_RESULTS];
  rdna_array *results[RDNA__MOST_RESULTS] = {NULL};
  int count = read_types(&node->attributes, types);
  rdna_status status = op->run(op->data, inputs, results);
  for (int i = 0; i < count && status == RDNA_OK; i++) status = check_result(node, results[i], &types[i], i);
  if (status != RDNA_OK) {
    release_all(results, RDNA__MOST_RESULTS);
    return status;
  }
  for (int i = 0; i < count; i++) {
    if (wanted >> i & 1)
      out[i] = results[i];
    else
      rdna_array_release(results[i]);
  }
  return RDNA_OK;
}

/* ---- gradients ---- */

/* Lazy arrays of |nodes|, of a recorder that may be forgotten without harm to the one that differentiates. */
static rdna_status wrap_all(rdna_recorder *r, rdna_node *const *nodes, int count, rdna_array **out) {
  for (int i = 0; i < count; i++)
    if (nodes[i]) RDNA_TRY(rdna__lazy_wrap(r, nodes[i], &out[i]));
  return RDNA_OK;
}

/* The node of a gradient, as one of |r|'s. */
static rdna_status take_gradient(rdna_recorder *r, const rdna_node *node, int i, rdna_array *gradient,
                                 rdna_node **out) {
  char given[RDNA__ARRAY_TEXT], wanted[RDNA__ARRAY_TEXT];
  rdna_recorder *of_gradient;
  rdna_node *found;
  const rdna__type *type = &node->inputs[i]->type;
  RDNA_TRY(rdna_array_record(&gradient, 1, &of_gradient, &found));
  rdna_status status = RDNA_OK;
  if (found->type.dtype != type->dtype || !rdna__same_shape(&found->type, type))
    status =
        rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the gradient by input %d is %s, and the input %s",
                   node->attributes.own->name, i, rdna__type_text(&found->type, given), rdna__type_text(type, wanted));
  if (status == RDNA_OK) *out = rdna__pass(r, found);
  rdna_recorder_release(of_gradient);
  return status;
}

static rdna_status differentiate(rdna_recorder *r, rdna_recorder *own, rdna_node *node, rdna_node *const *upstream,
                                 rdna_array **all, rdna_node **out) {
  const rdna_array_operator *op = &node->attributes.own->op;
  int inputs = node->input_count, results = (int)node->attributes.numbers[0];
  rdna_node *made[RDNA__MOST_RESULTS] = {node};
  for (int i = 1; i < results; i++) made[i] = rdna__part(r, node, i);
  RDNA_TRY(wrap_all(own, node->inputs, inputs, all));
  RDNA_TRY(wrap_all(own, made, results, all + inputs));
  RDNA_TRY(wrap_all(own, upstream, results, all + inputs + results));
  rdna_array **gradients = all + inputs + 2 * results;
  RDNA_TRY(op->differentiate(op->data, all, all + inputs, all + inputs + results, gradients));
  for (int i = 0; i < inputs; i++)
    if (gradients[i]) RDNA_TRY(take_gradient(r, node, i, gradients[i], &out[i]));
  return RDNA_OK;
}

static void gradient_call(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  int count = 2 * node->input_count + 2 * RDNA__MOST_RESULTS;
  rdna_array **all = calloc((size_t)count, sizeof(rdna_array *));
  rdna_recorder *own = NULL;
  rdna_status status =
      all ? rdna_recorder_create(node->stream, &own) : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for gradients");
  if (status == RDNA_OK && !node->attributes.own->op.differentiate)
    status = rdna__fail(RDNA_UNSUPPORTED, "%s has no gradient", node->attributes.own->name);
  if (status == RDNA_OK) status = differentiate(r, own, node, upstream, all, out);
  if (all) release_all(all, count);
  rdna_recorder_release(own);
  free(all);
  if (status != RDNA_OK) rdna__record_failure(r, status);
}

static const char *detail(const rdna_node *node) { return node->attributes.own->name; }

const rdna__operator rdna__operator_call = {.name = "call",
                                            .results = RDNA__MOST_RESULTS,
                                            .infer = infer_call,
                                            .run = run_call,
                                            .gradient = gradient_call,
                                            .detail = detail};

/* ---- the public face ---- */

static rdna_status check(const rdna_array_operator *op, rdna_array *const *inputs, int input_count,
                         const rdna_tensor *types, int result_count, rdna_array **out_arrays) {
  if (!op || op->size != sizeof *op || !op->name || !op->run)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_call needs an operator of this version with a name and run");
  if (!inputs || input_count < 1 || !types || result_count < 1 || result_count > RDNA__MOST_RESULTS || !out_arrays)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_array_call: %s needs an input or more and 1 to %d results, not %d and %d", op->name,
                      RDNA__MOST_RESULTS, input_count, result_count);
  for (int i = 0; i < result_count; i++)
    RDNA_TRY(rdna__array_check_shape(types[i].dtype, types[i].rank, types[i].shape));
  return RDNA_OK;
}

rdna_status rdna_array_call(const rdna_array_operator *op, rdna_array *const *inputs, int input_count,
                            const rdna_tensor *types, int result_count, rdna_array **out_arrays) {
  RDNA_TRY(check(op, inputs, input_count, types, result_count, out_arrays));
  size_t length = strlen(op->name) + 1;
  rdna_recorder *r = NULL;
  rdna_node **nodes = calloc((size_t)input_count, sizeof(rdna_node *));
  rdna__own *own = malloc(sizeof *own + length);
  rdna_status status = nodes && own ? rdna_array_record(inputs, input_count, &r, nodes)
                                    : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %s", op->name);
  if (status != RDNA_OK) {
    free(nodes);
    free(own);
    return status;
  }
  *own = (rdna__own){.count = 1, .op = *op};
  memcpy(own->name, op->name, length);
  own->op.name = own->name;
  own->op.release = NULL; /* until it has succeeded */
  int64_t numbers[MOST_NUMBERS];
  rdna__attributes a = {.number_count = write_types(types, result_count, numbers), .numbers = numbers, .own = own};
  rdna_node *node = rdna__record(r, &rdna__operator_call, &a, nodes, input_count);
  int made = 0;
  status = rdna_recorder_status(r);
  while (status == RDNA_OK && made < result_count) {
    rdna_node *result = made ? rdna__part(r, node, made) : node;
    status = result ? rdna__lazy_wrap(r, result, &out_arrays[made]) : rdna_recorder_status(r);
    made += status == RDNA_OK;
  }
  while (status != RDNA_OK && made > 0) rdna_array_release(out_arrays[--made]);
  if (status == RDNA_OK) own->op.release = op->release;
  rdna__recorder_forget(r);
  rdna_recorder_release(r);
  rdna__own_release(own);
  free(nodes);
  return status;
}
