/* Arrays that stand for nodes. */
#include "rdna/graph_array.h"

#include <stdlib.h>

#include "graph/build.h"
#include "rdna/graph_neural.h"

typedef struct lazy {
  rdna__lazy base;
  rdna_recorder *recorder; /* counted */
  rdna_node *node;         /* retained */
} lazy;

static const rdna__recording recording;

static lazy *lazy_of(const rdna_array *array) { return (lazy *)array->lazy; }

bool rdna_array_is_lazy(const rdna_array *array) { return array && array->lazy; }

static rdna_status fail_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a lazy array"); }

static void release(rdna__lazy *base) {
  lazy *gone = (lazy *)base;
  rdna_node_release(gone->node);
  rdna_recorder_release(gone->recorder);
  free(gone);
}

rdna_status rdna__lazy_wrap(rdna_recorder *r, rdna_node *node, rdna_array **out_array) {
  lazy *kept = malloc(sizeof *kept);
  rdna_array *made;
  if (!kept) return fail_memory();
  const rdna_array *blank = rdna__recorder_blank(r);
  rdna_tensor shape = rdna__type_tensor(&node->type);
  rdna_status status = rdna__array_view(blank, &shape, &made);
  if (status != RDNA_OK) {
    free(kept);
    return status;
  }
  *kept = (lazy){{&recording}, rdna__recorder_retain(r), rdna_node_retain(node)};
  made->lazy = &kept->base;
  *out_array = made;
  return RDNA_OK;
}

/* ---- between arrays and nodes ---- */

rdna_status rdna_array_record(rdna_array *const *arrays, int count, rdna_recorder **out_recorder,
                              rdna_node **out_nodes) {
  rdna_recorder *r = NULL;
  if (count < 1 || !arrays || !out_recorder || !out_nodes)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_record needs an array or more, and places for what it makes");
  for (int i = 0; i < count; i++) {
    if (!arrays[i]) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_record: array %d of %d is NULL", i + 1, count);
    if (!r && arrays[i]->lazy) r = rdna__recorder_retain(lazy_of(arrays[i])->recorder);
  }
  if (!r) RDNA_TRY(rdna_recorder_create(arrays[0]->stream, &r));
  for (int i = 0; i < count; i++)
    out_nodes[i] = arrays[i]->lazy ? lazy_of(arrays[i])->node : rdna_record_constant(r, arrays[i]);
  rdna_status status = rdna_recorder_status(r);
  if (status == RDNA_OK)
    *out_recorder = r;
  else
    rdna_recorder_release(r);
  return status;
}

/* Nodes that were made on the way and are not part of what is wrapped go. */
static rdna_status give_up(rdna_recorder *r, rdna_status status) {
  rdna__recorder_forget(r);
  rdna_recorder_release(r);
  return status;
}

rdna_status rdna_array_recorded(rdna_recorder *recorder, rdna_node *node, bool is_lazy, rdna_array **out_array) {
  if (!recorder || !out_array)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_recorded needs a recorder and a place for the array");
  rdna_status status = rdna_recorder_status(recorder);
  if (status == RDNA_OK && !node)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_recorded: the node is NULL, and nothing has failed");
  if (status == RDNA_OK)
    status = is_lazy ? rdna__lazy_wrap(recorder, node, out_array) : rdna_evaluate(&node, 1, out_array);
  return give_up(recorder, status);
}

rdna_status rdna_array_lazy(rdna_array *array, rdna_array **out_array) {
  rdna_recorder *r;
  rdna_node *node;
  RDNA_TRY(rdna_array_record(&array, 1, &r, &node));
  return rdna_array_recorded(r, rdna__pass(r, node), true, out_array);
}

rdna_status rdna_array_placeholder(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                                   rdna_array **out_array) {
  rdna_recorder *r;
  RDNA_TRY(rdna_recorder_create(stream, &r));
  return rdna_array_recorded(r, rdna_record_input(r, dtype, rank, shape), true, out_array);
}

/* ---- many at once ---- */

static rdna_status check_lazy(rdna_array *const *arrays, int count, const char *what) {
  for (int i = 0; i < count; i++)
    if (!rdna_array_is_lazy(arrays[i]))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s %d is not a lazy array; rdna_array_lazy makes one", what, i);
  return RDNA_OK;
}

/* The nodes of outputs, seeds and inputs in one list. */
static rdna_status differentiate(rdna_array *const *all, int output_count, bool seeded, int input_count,
                                 rdna_node **nodes, rdna_array **out) {
  rdna_recorder *r;
  int seed_count = seeded ? output_count : 0, made = 0;
  RDNA_TRY(rdna_array_record(all, output_count + seed_count + input_count, &r, nodes));
  rdna_node **inputs = nodes + output_count + seed_count, **gradients = inputs + input_count;
  rdna_status status = rdna_record_gradients(r, nodes, output_count, seeded ? nodes + output_count : NULL, inputs,
                                             input_count, gradients);
  while (made < input_count && status == RDNA_OK) {
    status = rdna__lazy_wrap(r, gradients[made], &out[made]);
    made += status == RDNA_OK;
  }
  while (status != RDNA_OK && made > 0) rdna_array_release(out[--made]);
  return give_up(r, status);
}

rdna_status rdna_array_gradients(rdna_array *const *outputs, int output_count, rdna_array *const *seeds,
                                 rdna_array *const *inputs, int input_count, rdna_array **out) {
  if (output_count < 1 || input_count < 1 || !outputs || !inputs || !out)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_array_gradients needs outputs, inputs and a place for the gradients");
  RDNA_TRY(check_lazy(inputs, input_count, "input"));
  RDNA_TRY(check_lazy(outputs, output_count, "output"));
  size_t count = (size_t)output_count * 2 + (size_t)input_count * 2;
  rdna_array **all = calloc(count, sizeof *all);
  rdna_node **nodes = calloc(count, sizeof *nodes);
  int filled = 0;
  for (int i = 0; all && i < output_count; i++) all[filled++] = outputs[i];
  for (int i = 0; all && seeds && i < output_count; i++) all[filled++] = seeds[i];
  for (int i = 0; all && i < input_count; i++) all[filled++] = inputs[i];
  rdna_status status = all && nodes ? differentiate(all, output_count, seeds, input_count, nodes, out) : fail_memory();
  free(all);
  free(nodes);
  return status;
}

static rdna_status make_plan(rdna_array *const *outputs, int output_count, rdna_array *const *inputs, int input_count,
                             rdna_plan **out_plan) {
  rdna_recorder *r;
  size_t count = (size_t)output_count + (size_t)input_count;
  rdna_node **nodes = calloc(count, sizeof *nodes);
  rdna_array **all = calloc(count, sizeof *all);
  rdna_status status = nodes && all ? RDNA_OK : fail_memory();
  for (int i = 0; status == RDNA_OK && i < output_count + input_count; i++)
    all[i] = i < output_count ? outputs[i] : inputs[i - output_count];
  if (status == RDNA_OK) status = rdna_array_record(all, (int)count, &r, nodes);
  if (status == RDNA_OK)
    status = give_up(r, rdna_plan_create(nodes, output_count, nodes + output_count, input_count, out_plan));
  free(nodes);
  free(all);
  return status;
}

rdna_status rdna_array_plan(rdna_array *const *outputs, int output_count, rdna_array *const *inputs, int input_count,
                            rdna_plan **out_plan) {
  if (output_count < 1 || input_count < 0 || !outputs || (input_count > 0 && !inputs) || !out_plan)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_plan needs outputs and a place for the plan");
  RDNA_TRY(check_lazy(inputs, input_count, "input"));
  return make_plan(outputs, output_count, inputs, input_count, out_plan);
}

rdna_status rdna_array_evaluate(rdna_array *const *arrays, int count, rdna_array **out_arrays) {
  if (count < 1 || !arrays || !out_arrays)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_evaluate needs arrays and a place for their values");
  rdna_plan *plan;
  RDNA_TRY(make_plan(arrays, count, NULL, 0, &plan));
  rdna_status status = rdna_plan_run(plan, NULL, 0, out_arrays);
  rdna_plan_release(plan);
  return status;
}

static rdna_status compute(const rdna_array *array, rdna_array **out_array) {
  return rdna_evaluate(&lazy_of(array)->node, 1, out_array);
}

/* ---- the functions of rdna/array.h, recorded ---- */

/* |call| records of the nodes n and the recorder r. */
#define RECORD(count, call, ...)                                            \
  rdna_recorder *r;                                                         \
  rdna_node *n[count];                                                      \
  RDNA_TRY(rdna_array_record((rdna_array *[]){__VA_ARGS__}, count, &r, n)); \
  return rdna_array_recorded(r, call, true, out_array)

static rdna_status lazy_map(rdna_array *x, rdna_map op, rdna_scalar p, rdna_scalar q, rdna_array **out_array) {
  RECORD(1, rdna_record_map(r, n[0], op, p, q), x);
}
static rdna_status lazy_zip(rdna_array *a, rdna_array *b, rdna_zip op, rdna_scalar p, rdna_scalar q,
                            rdna_array **out_array) {
  RECORD(2, rdna_record_zip(r, n[0], n[1], op, p, q), a, b);
}
static rdna_node *record_with_number(rdna_recorder *r, rdna_node *x, rdna_scalar number, bool number_first, rdna_zip op,
                                     rdna_scalar p, rdna_scalar q) {
  rdna_dtype dtype;
  rdna_status status = rdna__array_zip_type(op, x->type.dtype, &dtype);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  rdna_node *full = rdna_record_full(r, dtype, 0, NULL, number);
  return number_first ? rdna_record_zip(r, full, x, op, p, q) : rdna_record_zip(r, x, full, op, p, q);
}
static rdna_status lazy_zip_number(rdna_array *x, rdna_scalar number, bool number_first, rdna_zip op, rdna_scalar p,
                                   rdna_scalar q, rdna_array **out_array) {
  RECORD(1, record_with_number(r, n[0], number, number_first, op, p, q), x);
}
static rdna_status lazy_compare(rdna_array *a, rdna_array *b, rdna_compare op, rdna_array **out_array) {
  if (!b) {
    RECORD(1, rdna_record_compare(r, n[0], NULL, op), a);
  }
  RECORD(2, rdna_record_compare(r, n[0], n[1], op), a, b);
}
static rdna_status lazy_compare_number(rdna_array *a, rdna_scalar number, rdna_compare op, rdna_array **out_array) {
  RECORD(1, rdna_record_compare(r, n[0], rdna_record_full(r, n[0]->type.dtype, 0, NULL, number), op), a);
}
static rdna_status lazy_where(rdna_array *condition, rdna_array *a, rdna_array *b, rdna_array **out_array) {
  RECORD(3, rdna_record_where(r, n[0], n[1], n[2]), condition, a, b);
}
static rdna_status lazy_reduce(rdna_array *x, rdna_reduction reduction, uint32_t dims, bool keep_dims, double parameter,
                               rdna_array **out_array) {
  RECORD(1, rdna_record_reduce(r, n[0], reduction, dims, keep_dims, parameter), x);
}
static rdna_status lazy_matmul(rdna_array *a, rdna_array *b, rdna_array **out_array) {
  RECORD(2, rdna_record_matmul(r, n[0], n[1]), a, b);
}
static rdna_status lazy_cast(rdna_array *array, rdna_dtype dtype, rdna_array **out_array) {
  RECORD(1, rdna_record_cast(r, n[0], dtype), array);
}
static rdna_status lazy_reshape(rdna_array *array, int rank, const int64_t *shape, rdna_array **out_array) {
  RECORD(1, rdna_record_reshape(r, n[0], rank, shape), array);
}
static rdna_status lazy_permute(rdna_array *array, const int *dims, rdna_array **out_array) {
  RECORD(1, rdna_record_permute(r, n[0], dims), array);
}
static rdna_status lazy_slice(rdna_array *array, int dim, int64_t start, int64_t count, int64_t step,
                              rdna_array **out_array) {
  RECORD(1, rdna_record_slice(r, n[0], dim, start, count, step), array);
}
static rdna_status lazy_broadcast(rdna_array *array, int rank, const int64_t *shape, rdna_array **out_array) {
  RECORD(1, rdna_record_broadcast(r, n[0], rank, shape), array);
}
static rdna_status lazy_gather(rdna_array *x, int dim, rdna_array *indices, rdna_array **out_array) {
  RECORD(2, rdna_record_gather(r, n[0], dim, n[1]), x, indices);
}
static rdna_status lazy_concat(rdna_array *const *arrays, int count, int dim, rdna_array **out_array) {
  rdna_recorder *r;
  rdna_node **nodes = calloc((size_t)count, sizeof *nodes);
  if (!nodes) return fail_memory();
  rdna_status status = rdna_array_record(arrays, count, &r, nodes);
  if (status == RDNA_OK) status = rdna_array_recorded(r, rdna_record_concat(r, nodes, count, dim), true, out_array);
  free(nodes);
  return status;
}

static const rdna__recording recording = {
    .release = release,
    .compute = compute,
    .map = lazy_map,
    .zip = lazy_zip,
    .zip_number = lazy_zip_number,
    .compare = lazy_compare,
    .compare_number = lazy_compare_number,
    .where = lazy_where,
    .reduce = lazy_reduce,
    .matmul = lazy_matmul,
    .cast = lazy_cast,
    .reshape = lazy_reshape,
    .permute = lazy_permute,
    .slice = lazy_slice,
    .broadcast = lazy_broadcast,
    .concat = lazy_concat,
    .gather = lazy_gather,
};
