/* Nodes that have no values of others to compute with: inputs, constants, numbers; and those that hand on what they
 * are given. */
#include "graph/build.h"

#include <string.h>

/* The type that the attributes say: |code| is it, the numbers are the shape. */
static rdna_status infer_told(const rdna__making *m, rdna__type *out) {
  const rdna__attributes *a = m->attributes;
  *out = (rdna__type){(rdna_dtype)a->code, a->number_count, {0}};
  if (a->number_count) memcpy(out->shape, a->numbers, (size_t)a->number_count * sizeof *a->numbers);
  return RDNA_OK;
}

static rdna_node *record_told(rdna_recorder *r, const rdna__operator *op, rdna_dtype dtype, int rank,
                              const int64_t *shape, rdna_scalar value) {
  if (rdna__record_stopped(r, op->name, NULL, 0)) return NULL;
  rdna_status status = rdna__array_check_shape(dtype, rank, shape);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  return rdna__record(
      r, op, &(rdna__attributes){.code = (int)dtype, .number_count = rank, .numbers = shape, .p = value}, NULL, 0);
}

const rdna__operator rdna__operator_input = {.name = "input", .infer = infer_told};

rdna_node *rdna_record_input(rdna_recorder *r, rdna_dtype dtype, int rank, const int64_t *shape) {
  return record_told(r, &rdna__operator_input, dtype, rank, shape, rdna__nothing);
}

const rdna__operator rdna__operator_constant = {.name = "constant", .infer = infer_told};

rdna_node *rdna_record_constant(rdna_recorder *r, rdna_array *array) {
  if (rdna__record_stopped(r, "constant", NULL, 0)) return NULL;
  rdna_status status = RDNA_OK;
  if (!array)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "constant: needs an array");
  else if (array->stream != rdna__recorder_stream(r))
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "constant: the array belongs to another stream than the recorder");
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  const rdna_tensor *tensor = &array->tensor;
  rdna_node *node = record_told(r, &rdna__operator_constant, tensor->dtype, tensor->rank, tensor->shape, rdna__nothing);
  if (node) node->value = rdna_array_retain(array);
  return node;
}

/* ---- numbers ---- */

/* One value, seen as many. */
static rdna_status run_full(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna_array *one;
  RDNA_TRY(rdna_array_full(node->stream, node->type.dtype, 0, NULL, node->attributes.p, &one));
  rdna_status status = rdna_array_broadcast(one, node->type.rank, node->type.shape, out);
  rdna_array_release(one);
  return status;
}

const rdna__operator rdna__operator_full = {.name = "full", .infer = infer_told, .run = run_full};

rdna_node *rdna_record_full(rdna_recorder *r, rdna_dtype dtype, int rank, const int64_t *shape, rdna_scalar value) {
  /* as the type holds it, so that both sides say the same */
  if (!rdna__array_is_float(dtype))
    value.real = (double)value.integer;
  else if (dtype == RDNA_F32)
    value = rdna_scalar_real((double)(float)value.real);
  return record_told(r, &rdna__operator_full, dtype, rank, shape, value);
}

rdna_node *rdna__full_like(rdna_recorder *r, const rdna_node *like, double value) {
  return like ? rdna_record_full(r, like->type.dtype, like->type.rank, like->type.shape, rdna_scalar_real(value))
              : NULL;
}

rdna_node *rdna__number(rdna_recorder *r, const rdna_node *like, double value) {
  return like ? rdna_record_full(r, like->type.dtype, 0, NULL, rdna_scalar_real(value)) : NULL;
}

const rdna_node *rdna__number_behind(const rdna_node *node) {
  while (node->op == &rdna__operator_pass || node->op == &rdna__operator_stop) node = node->inputs[0];
  return node->op == &rdna__operator_full ? node : NULL;
}

/* ---- handing on ---- */

rdna_status rdna__infer_same(const rdna__making *m, rdna__type *out) {
  *out = m->inputs[0]->type;
  return RDNA_OK;
}
rdna_status rdna__run_same(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  *out = rdna_array_retain(inputs[0]);
  return RDNA_OK;
}
static void gradient_same(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = upstream[0];
}
void rdna__gradient_none(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {}

const rdna__operator rdna__operator_pass = {
    .name = "pass", .view = true, .infer = rdna__infer_same, .run = rdna__run_same, .gradient = gradient_same};
const rdna__operator rdna__operator_stop = {
    .name = "stop", .view = true, .infer = rdna__infer_same, .run = rdna__run_same, .gradient = rdna__gradient_none};

rdna_node *rdna__pass(rdna_recorder *r, rdna_node *x) {
  return rdna__record(r, &rdna__operator_pass, &(rdna__attributes){0}, &x, 1);
}
rdna_node *rdna_record_stop(rdna_recorder *r, rdna_node *x) {
  return rdna__record(r, &rdna__operator_stop, &(rdna__attributes){0}, &x, 1);
}

/* One of several results; |dim| says which. Plans read the result itself, and gradients go to it. */
static rdna_status infer_part(const rdna__making *m, rdna__type *out) {
  const rdna_node *of = m->inputs[0];
  rdna__type types[RDNA__MOST_RESULTS];
  rdna__making again = {m->blank, &of->attributes, of->inputs, of->input_count};
  RDNA_TRY(of->op->infer(&again, types));
  *out = types[m->attributes->dim];
  return RDNA_OK;
}
const rdna__operator rdna__operator_part = {.name = "part", .view = true, .infer = infer_part};

rdna_node *rdna__part(rdna_recorder *r, rdna_node *of, int index) {
  return rdna__record(r, &rdna__operator_part, &(rdna__attributes){.dim = index}, &of, 1);
}
