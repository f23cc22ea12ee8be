/* Operators that move values. The shapes of views are what rdna/array.h makes of arrays without values. */
#include <stdlib.h>

#include "graph/build.h"
#include "rdna/op/movement.h"

static rdna_node *record(rdna_recorder *r, const rdna__operator *op, rdna_node *x, int dim, int count,
                         const int64_t *numbers) {
  return rdna__record(r, op, &(rdna__attributes){.dim = dim, .number_count = count, .numbers = numbers}, &x, 1);
}

/* Refuses numbers that are not there, before they are copied. */
static bool lacks(rdna_recorder *r, const char *name, rdna_node *x, int rank, const void *numbers) {
  if (rdna__record_stopped(r, name, &x, 1)) return true;
  if (rank >= 0 && rank <= RDNA_MAX_RANK && (rank == 0 || numbers)) return false;
  rdna__record_failure(
      r, rdna__fail(RDNA_INVALID_ARGUMENT, "%s: an array has 0 to %d dimensions, not %d", name, RDNA_MAX_RANK, rank));
  return true;
}

static bool is_full(const rdna_node *x) { return x && x->op == &rdna__operator_full; }

static rdna_node *full_of(rdna_recorder *r, const rdna_node *x, const rdna__type *type) {
  return rdna_record_full(r, x->type.dtype, type->rank, type->shape, x->attributes.p);
}

/* A view of numbers is numbers; and where the shape stays as it was, nothing is recorded. */
static rdna_node *shorten(rdna_recorder *r, rdna_node *x, rdna_node *made) {
  if (!made) return NULL;
  if (rdna__same_shape(&made->type, &x->type)) return x;
  return is_full(x) ? full_of(r, x, &made->type) : made;
}

/* ---- reshape: the numbers are the shape; |flag|: nobody has its input, the rows of batches, but operations that see
 * through it ---- */

static rdna_status view_reshape(rdna_array *x, const rdna__attributes *a, rdna_array **out) {
  return rdna_array_reshape(x, a->number_count, a->numbers, out);
}
static rdna_status infer_reshape(const rdna__making *m, rdna__type *out) {
  rdna_array x = rdna__blank(m, &m->inputs[0]->type), *made = NULL;
  return rdna__take_type(view_reshape(&x, m->attributes, &made), &made, out);
}
static rdna_status run_reshape(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return rdna_array_reshape(inputs[0], node->type.rank, node->type.shape, out);
}
static void gradient_reshape(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  const rdna__type *type = &node->inputs[0]->type;
  out[0] = rdna_record_reshape(r, upstream[0], type->rank, type->shape);
}
const rdna__operator rdna__operator_reshape = {
    .name = "reshape", .view = true, .infer = infer_reshape, .run = run_reshape, .gradient = gradient_reshape};

rdna_node *rdna_record_reshape(rdna_recorder *r, rdna_node *x, int rank, const int64_t *shape) {
  if (lacks(r, "reshape", x, rank, shape)) return NULL;
  return shorten(r, x, record(r, &rdna__operator_reshape, x, 0, rank, shape));
}

rdna_node *rdna__record_batches(rdna_recorder *r, rdna_node *rows, const rdna__type *type) {
  rdna__attributes a = {.flag = true, .number_count = type->rank, .numbers = type->shape};
  return rdna__record(r, &rdna__operator_reshape, &a, &rows, 1);
}
rdna_node *rdna__rows_behind(const rdna_node *x) {
  return x->op == &rdna__operator_reshape && x->attributes.flag ? x->inputs[0] : NULL;
}

/* ---- permute: the numbers are dims ---- */

static rdna_status view_permute(rdna_array *x, const rdna__attributes *a, rdna_array **out) {
  int dims[RDNA_MAX_RANK];
  for (int i = 0; i < a->number_count; i++) dims[i] = (int)a->numbers[i];
  return rdna_array_permute(x, dims, out);
}
static rdna_status infer_permute(const rdna__making *m, rdna__type *out) {
  rdna_array x = rdna__blank(m, &m->inputs[0]->type), *made = NULL;
  return rdna__take_type(view_permute(&x, m->attributes, &made), &made, out);
}
static rdna_status run_permute(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return view_permute(inputs[0], &node->attributes, out);
}
static void gradient_permute(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  int back[RDNA_MAX_RANK], rank = node->type.rank;
  for (int i = 0; i < rank; i++) {
    int dim = (int)node->attributes.numbers[i];
    back[dim < 0 ? dim + rank : dim] = i;
  }
  out[0] = rdna_record_permute(r, upstream[0], back);
}
const rdna__operator rdna__operator_permute = {
    .name = "permute", .view = true, .infer = infer_permute, .run = run_permute, .gradient = gradient_permute};

rdna_node *rdna_record_permute(rdna_recorder *r, rdna_node *x, const int *dims) {
  if (rdna__record_stopped(r, "permute", &x, 1)) return NULL;
  int64_t numbers[RDNA_MAX_RANK];
  int rank = x->type.rank;
  bool moves = false;
  for (int i = 0; i < rank; i++) {
    numbers[i] = dims ? dims[i] : rank - 1 - i;
    moves |= numbers[i] != i;
  }
  if (!moves) return x;
  rdna_node *made = record(r, &rdna__operator_permute, x, 0, rank, numbers);
  return made && is_full(x) ? full_of(r, x, &made->type) : made;
}

/* ---- slice: the numbers are start, count and step ---- */

static rdna_status view_slice(rdna_array *x, const rdna__attributes *a, rdna_array **out) {
  return rdna_array_slice(x, a->dim, a->numbers[0], a->numbers[1], a->numbers[2], out);
}
static rdna_status infer_slice(const rdna__making *m, rdna__type *out) {
  rdna_array x = rdna__blank(m, &m->inputs[0]->type), *made = NULL;
  return rdna__take_type(view_slice(&x, m->attributes, &made), &made, out);
}
static rdna_status run_slice(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return view_slice(inputs[0], &node->attributes, out);
}
static void gradient_slice(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  const rdna__attributes *a = &node->attributes;
  const rdna__type *type = &node->inputs[0]->type;
  int64_t size = type->shape[a->dim < 0 ? a->dim + type->rank : a->dim];
  out[0] = rdna_record_unslice(r, upstream[0], a->dim, a->numbers[0], a->numbers[2], size);
}
const rdna__operator rdna__operator_slice = {
    .name = "slice", .view = true, .infer = infer_slice, .run = run_slice, .gradient = gradient_slice};

rdna_node *rdna_record_slice(rdna_recorder *r, rdna_node *x, int dim, int64_t start, int64_t count, int64_t step) {
  rdna_node *made = record(r, &rdna__operator_slice, x, dim, 3, (int64_t[]){start, count, step});
  return made && (is_full(x) || step > 0) ? shorten(r, x, made) : made;
}

/* ---- unslice: the numbers are start, step and size ---- */

static rdna_status infer_unslice(const rdna__making *m, rdna__type *out) {
  const rdna__attributes *a = m->attributes;
  int dim = a->dim;
  *out = m->inputs[0]->type;
  RDNA_TRY(rdna__array_dim("unslice", out->rank, &dim));
  int64_t count = out->shape[dim];
  out->shape[dim] = a->numbers[2];
  RDNA_TRY(rdna__array_check_shape(out->dtype, out->rank, out->shape));
  rdna_array whole = rdna__blank(m, out), *part = NULL;
  RDNA_TRY(rdna_array_slice(&whole, dim, a->numbers[0], count, a->numbers[1], &part));
  rdna_array_release(part);
  return RDNA_OK;
}
static rdna_status run_unslice(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  int dim = a->dim < 0 ? a->dim + node->type.rank : a->dim;
  rdna_array *whole, *part = NULL;
  RDNA_TRY(rdna_array_full(node->stream, node->type.dtype, node->type.rank, node->type.shape, rdna__nothing, &whole));
  rdna_status status = rdna_array_slice(whole, dim, a->numbers[0], inputs[0]->tensor.shape[dim], a->numbers[1], &part);
  if (status == RDNA_OK) status = rdna_op_copy(node->stream, &inputs[0]->tensor, &part->tensor);
  rdna_array_release(part);
  return rdna__array_finish(status, whole, out);
}
static void gradient_unslice(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  const rdna__attributes *a = &node->attributes;
  const rdna__type *type = &node->inputs[0]->type;
  int64_t count = type->shape[a->dim < 0 ? a->dim + type->rank : a->dim];
  out[0] = rdna_record_slice(r, upstream[0], a->dim, a->numbers[0], count, a->numbers[1]);
}
const rdna__operator rdna__operator_unslice = {
    .name = "unslice", .infer = infer_unslice, .run = run_unslice, .gradient = gradient_unslice};

rdna_node *rdna_record_unslice(rdna_recorder *r, rdna_node *x, int dim, int64_t start, int64_t step, int64_t size) {
  return record(r, &rdna__operator_unslice, x, dim, 3, (int64_t[]){start, step, size});
}

/* ---- broadcast: the numbers are the shape ---- */

static rdna_status infer_broadcast(const rdna__making *m, rdna__type *out) {
  rdna_array x = rdna__blank(m, &m->inputs[0]->type), *made = NULL;
  return rdna__take_type(rdna_array_broadcast(&x, m->attributes->number_count, m->attributes->numbers, &made), &made,
                         out);
}
static rdna_status run_broadcast(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return rdna_array_broadcast(inputs[0], node->type.rank, node->type.shape, out);
}
static void gradient_broadcast(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = rdna__sum_to(r, upstream[0], node->inputs[0]);
}
const rdna__operator rdna__operator_broadcast = {
    .name = "broadcast", .view = true, .infer = infer_broadcast, .run = run_broadcast, .gradient = gradient_broadcast};

rdna_node *rdna_record_broadcast(rdna_recorder *r, rdna_node *x, int rank, const int64_t *shape) {
  if (lacks(r, "broadcast", x, rank, shape)) return NULL;
  return shorten(r, x, record(r, &rdna__operator_broadcast, x, 0, rank, shape));
}

rdna_node *rdna__sum_to(rdna_recorder *r, rdna_node *x, const rdna_node *like) {
  if (!x || !like || rdna__same_shape(&x->type, &like->type)) return x;
  int front = x->type.rank - like->type.rank;
  uint32_t dims = 0;
  for (int i = 0; i < x->type.rank; i++)
    if (i < front || (like->type.shape[i - front] == 1 && x->type.shape[i] != 1)) dims |= 1u << i;
  rdna_node *sum = dims ? rdna_record_reduce(r, x, RDNA_REDUCTION_SUM, dims, true, 0) : x;
  return rdna_record_reshape(r, sum, like->type.rank, like->type.shape);
}

/* ---- concat ---- */

static rdna_status infer_concat(const rdna__making *m, rdna__type *out) {
  int dim = m->attributes->dim;
  char first[RDNA__ARRAY_TEXT], other[RDNA__ARRAY_TEXT];
  *out = m->inputs[0]->type;
  RDNA_TRY(rdna__array_dim("concat", out->rank, &dim));
  for (int i = 1; i < m->input_count; i++) {
    const rdna__type *type = &m->inputs[i]->type;
    bool fits = type->rank == out->rank;
    for (int d = 0; d < out->rank && fits; d++) fits = d == dim || type->shape[d] == out->shape[d];
    if (!fits)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "concat: %s and %s differ in more than the size of dimension %d",
                        rdna__type_text(&m->inputs[0]->type, first), rdna__type_text(type, other), dim);
    out->shape[dim] += type->shape[dim];
  }
  return rdna__array_check_shape(out->dtype, out->rank, out->shape);
}
static rdna_status run_concat(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return rdna_array_concat(inputs, node->input_count, node->attributes.dim, out);
}
static void gradient_concat(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  int dim = node->attributes.dim < 0 ? node->attributes.dim + node->type.rank : node->attributes.dim;
  int64_t start = 0;
  for (int i = 0; i < node->input_count; i++) {
    int64_t count = node->inputs[i]->type.shape[dim];
    if (count > 0) out[i] = rdna_record_slice(r, upstream[0], dim, start, count, 1);
    start += count;
  }
}
const rdna__operator rdna__operator_concat = {
    .name = "concat", .infer = infer_concat, .run = run_concat, .gradient = gradient_concat};

rdna_node *rdna_record_concat(rdna_recorder *r, rdna_node *const *nodes, int count, int dim) {
  if (rdna__record_stopped(r, "concat", nodes, count < 0 ? 0 : count)) return NULL;
  if (count < 1)
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT, "concat: one node or more become one, not %d", count));
  rdna_dtype dtype = nodes[0]->type.dtype;
  for (int i = 1; i < count; i++) dtype = rdna_dtype_promote(dtype, nodes[i]->type.dtype);
  rdna_node **cast = malloc((size_t)count * sizeof *cast);
  if (!cast) return rdna__record_failure(r, rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d nodes", count));
  for (int i = 0; i < count; i++) cast[i] = rdna_record_cast(r, nodes[i], dtype);
  rdna_node *made = rdna__record(r, &rdna__operator_concat, &(rdna__attributes){.dim = dim}, cast, count);
  free(cast);
  return made;
}
