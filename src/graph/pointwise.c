/* Operators that compute value by value: how they are recorded and run. Their derivatives are in derivative.c. */
#include "graph/build.h"
#include "graph/derivative.h"

/* ---- maps: |code| is an rdna_map, with p and q ---- */

static rdna_status run_map(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  return rdna_array_map(inputs[0], (rdna_map)a->code, a->p, a->q, out);
}
static const char *map_detail(const rdna_node *node) { return rdna_map_name((rdna_map)node->attributes.code); }

const rdna__operator rdna__operator_map = {
    .name = "map", .infer = rdna__infer_same, .run = run_map, .gradient = rdna__map_gradient, .detail = map_detail};

/* What product.c has shaped into batches of rows, before it was: a product, or one with something added. Operations on
 * values come before the shape, so that they can follow the product in its launch. NULL: |x| is no such thing. */
static rdna_node *flat_rows(const rdna_node *x) {
  rdna_node *flat = rdna__rows_behind(x);
  bool product = flat && flat->op == &rdna__operator_matmul;
  for (int i = 0; flat && i < flat->input_count && flat->op == &rdna__operator_zip; i++)
    product |= flat->inputs[i]->op == &rdna__operator_matmul;
  return product ? flat : NULL;
}

/* |made| in |x|'s shape. */
static rdna_node *shaped_as(rdna_recorder *r, rdna_node *made, const rdna_node *x) {
  return rdna__record_batches(r, made, &x->type);
}

rdna_node *rdna_record_map(rdna_recorder *r, rdna_node *x, rdna_map op, rdna_scalar p, rdna_scalar q) {
  rdna_dtype dtype;
  if (rdna__record_stopped(r, rdna_map_name(op), &x, 1)) return NULL;
  rdna_status status = (unsigned)op >= RDNA_MAP_COUNT ? rdna__fail(RDNA_INVALID_ARGUMENT, "there is no map %d", (int)op)
                                                      : rdna__array_map_type(op, x->type.dtype, &dtype);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  x = rdna_record_cast(r, x, dtype);
  rdna_node *flat = x ? flat_rows(x) : NULL, *input = flat ? flat : x;
  rdna_node *made =
      rdna__record(r, &rdna__operator_map, &(rdna__attributes){.code = (int)op, .p = p, .q = q}, &input, 1);
  return flat ? shaped_as(r, made, x) : made;
}

/* ---- zips: |code| is an rdna_zip ---- */

static rdna_status infer_zip(const rdna__making *m, rdna__type *out) {
  return rdna__join(rdna_zip_name((rdna_zip)m->attributes->code), m, out);
}

static rdna_status run_zip(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  const rdna__attributes *a = &node->attributes;
  if (inputs[0] && inputs[1]) return rdna_array_zip(inputs[0], inputs[1], (rdna_zip)a->code, a->p, a->q, out);
  rdna_array *x = inputs[0] ? inputs[0] : inputs[1], *made;
  rdna_scalar number = rdna__number_behind(node->inputs[inputs[0] ? 1 : 0])->attributes.p;
  RDNA_TRY(rdna__array_make(node->stream, node->type.dtype, node->type.rank, node->type.shape, &made));
  return rdna__array_finish(
      rdna_op_zip_scalar(node->stream, (rdna_zip)a->code, &x->tensor, number, !inputs[0], a->p, a->q, &made->tensor),
      made, out);
}

/* A number stands for an input where the other has the result's shape. */
static bool zip_number(const rdna_node *node, int i) {
  return node->input_count == 2 && !rdna__number_behind(node->inputs[1 - i]) &&
         rdna__same_shape(&node->inputs[1 - i]->type, &node->type);
}
static const char *zip_detail(const rdna_node *node) { return rdna_zip_name((rdna_zip)node->attributes.code); }

const rdna__operator rdna__operator_zip = {.name = "zip",
                                           .infer = infer_zip,
                                           .run = run_zip,
                                           .gradient = rdna__zip_gradient,
                                           .number = zip_number,
                                           .detail = zip_detail};

/* Whether |x| times |one| is |x|: ones of a shape that does not enlarge it, as seeds are. */
static bool is_one(const rdna_node *one, const rdna_node *x) {
  int behind = x->type.rank - one->type.rank;
  if (one->op != &rdna__operator_full || one->attributes.p.real != 1 || behind < 0) return false;
  for (int i = 0; i < one->type.rank; i++)
    if (one->type.shape[i] != 1 && one->type.shape[i] != x->type.shape[behind + i]) return false;
  return true;
}

/* Whether |x| in another shape is a view, for all that its operator says. */
static bool lies_whole(const rdna_node *x) { return !x->op->view || x->op == &rdna__operator_reshape; }

/* Casts both to one type. */
static bool promote(rdna_recorder *r, rdna_dtype dtype, rdna_node **nodes) {
  nodes[0] = rdna_record_cast(r, nodes[0], dtype);
  nodes[1] = rdna_record_cast(r, nodes[1], dtype);
  return nodes[0] && nodes[1];
}

void rdna__cast_to_first(rdna_recorder *r, rdna_node **nodes, int count) {
  for (int i = 1; i <= count; i++)
    if (nodes[0] && nodes[i]) nodes[i] = rdna_record_cast(r, nodes[i], nodes[0]->type.dtype);
}

rdna_node *rdna_record_zip(rdna_recorder *r, rdna_node *a, rdna_node *b, rdna_zip op, rdna_scalar p, rdna_scalar q) {
  rdna_node *inputs[] = {a, b};
  if (rdna__record_stopped(r, rdna_zip_name(op), inputs, 2)) return NULL;
  rdna_dtype dtype = rdna_dtype_promote(a->type.dtype, b->type.dtype);
  rdna_status status = (unsigned)op >= RDNA_ZIP_COUNT ? rdna__fail(RDNA_INVALID_ARGUMENT, "there is no zip %d", (int)op)
                                                      : rdna__array_zip_type(op, dtype, &dtype);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  if (!promote(r, dtype, inputs)) return NULL;
  if (op == RDNA_ZIP_MUL && is_one(inputs[0], inputs[1])) return inputs[1];
  if (op == RDNA_ZIP_MUL && is_one(inputs[1], inputs[0])) return inputs[0];
  const rdna_node *batches = NULL;
  for (int i = 0; i < 2 && !batches; i++) {
    rdna_node *flat = flat_rows(inputs[i]);
    const rdna__type *beside = &inputs[1 - i]->type;
    if (!flat) continue;
    bool row = beside->rank == 0 || (beside->rank == 1 && beside->shape[0] == flat->type.shape[1]);
    bool residual = op == RDNA_ZIP_ADD && rdna__same_shape(beside, &inputs[i]->type) && lies_whole(inputs[1 - i]);
    if (!row && !residual) continue;
    batches = inputs[i];
    inputs[i] = flat;
    if (residual) inputs[1 - i] = rdna_record_reshape(r, inputs[1 - i], 2, flat->type.shape);
  }
  rdna_node *made =
      rdna__record(r, &rdna__operator_zip, &(rdna__attributes){.code = (int)op, .p = p, .q = q}, inputs, 2);
  return batches ? shaped_as(r, made, batches) : made;
}

/* ---- questions: |code| is an rdna_compare ---- */

static rdna_status infer_compare(const rdna__making *m, rdna__type *out) {
  RDNA_TRY(rdna__join(rdna_compare_name((rdna_compare)m->attributes->code), m, out));
  out->dtype = RDNA_BOOL;
  return RDNA_OK;
}
static rdna_status run_compare(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna_compare op = (rdna_compare)node->attributes.code;
  if (node->input_count == 1 || inputs[1])
    return rdna_array_compare(inputs[0], node->input_count == 1 ? NULL : inputs[1], op, out);
  rdna_array *made;
  RDNA_TRY(rdna__array_make(node->stream, RDNA_BOOL, node->type.rank, node->type.shape, &made));
  return rdna__array_finish(rdna_op_compare_scalar(node->stream, op, &inputs[0]->tensor,
                                                   rdna__number_behind(node->inputs[1])->attributes.p, &made->tensor),
                            made, out);
}
static bool compare_number(const rdna_node *node, int i) { return i == 1 && zip_number(node, i); }
static const char *compare_detail(const rdna_node *node) {
  return rdna_compare_name((rdna_compare)node->attributes.code);
}

const rdna__operator rdna__operator_compare = {.name = "compare",
                                               .infer = infer_compare,
                                               .run = run_compare,
                                               .gradient = rdna__gradient_none,
                                               .number = compare_number,
                                               .detail = compare_detail};

rdna_node *rdna_record_compare(rdna_recorder *r, rdna_node *a, rdna_node *b, rdna_compare op) {
  rdna_node *inputs[] = {a, b};
  int count = b ? 2 : 1;
  if (rdna__record_stopped(r, rdna_compare_name(op), inputs, count)) return NULL;
  bool of_one = op == RDNA_COMPARE_LOGICAL_NOT || op == RDNA_COMPARE_ISNAN || op == RDNA_COMPARE_ISINF ||
                op == RDNA_COMPARE_ISFINITE;
  rdna_status status = RDNA_OK;
  if ((unsigned)op >= RDNA_COMPARE_COUNT)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "there is no question %d", (int)op);
  else if (of_one != (count == 1))
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "%s is a question about %s", rdna_compare_name(op),
                        of_one ? "one node" : "two nodes");
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  if (b && !promote(r, rdna_dtype_promote(a->type.dtype, b->type.dtype), inputs)) return NULL;
  return rdna__record(r, &rdna__operator_compare, &(rdna__attributes){.code = (int)op}, inputs, count);
}

/* ---- where ---- */

static rdna_status infer_where(const rdna__making *m, rdna__type *out) { return rdna__join("where", m, out); }
static rdna_status run_where(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return rdna_array_where(inputs[0], inputs[1], inputs[2], out);
}
static void gradient_where(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_node *zero = rdna__number(r, node, 0);
  out[1] = rdna__sum_to(r, rdna_record_where(r, node->inputs[0], upstream[0], zero), node->inputs[1]);
  out[2] = rdna__sum_to(r, rdna_record_where(r, node->inputs[0], zero, upstream[0]), node->inputs[2]);
}

const rdna__operator rdna__operator_where = {
    .name = "where", .infer = infer_where, .run = run_where, .gradient = gradient_where};

rdna_node *rdna_record_where(rdna_recorder *r, rdna_node *condition, rdna_node *a, rdna_node *b) {
  rdna_node *inputs[] = {condition, a, b};
  if (rdna__record_stopped(r, "where", inputs, 3)) return NULL;
  if (condition->type.dtype != RDNA_BOOL)
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT, "where: the condition is %s, not bool; compare it with something",
                      rdna_dtype_name(condition->type.dtype)));
  if (!promote(r, rdna_dtype_promote(a->type.dtype, b->type.dtype), inputs + 1)) return NULL;
  return rdna__record(r, &rdna__operator_where, &(rdna__attributes){0}, inputs, 3);
}

/* ---- casts: |code| is an rdna_dtype ---- */

static rdna_status infer_cast(const rdna__making *m, rdna__type *out) {
  *out = m->inputs[0]->type;
  out->dtype = (rdna_dtype)m->attributes->code;
  return RDNA_OK;
}
static rdna_status run_cast(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return rdna_array_cast(inputs[0], node->type.dtype, out);
}
static void gradient_cast(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  if (rdna__array_is_float(node->inputs[0]->type.dtype))
    out[0] = rdna_record_cast(r, upstream[0], node->inputs[0]->type.dtype);
}
static const char *cast_detail(const rdna_node *node) { return rdna_dtype_name(node->type.dtype); }

const rdna__operator rdna__operator_cast = {
    .name = "cast", .infer = infer_cast, .run = run_cast, .gradient = gradient_cast, .detail = cast_detail};

rdna_node *rdna_record_cast(rdna_recorder *r, rdna_node *x, rdna_dtype dtype) {
  if (rdna__record_stopped(r, "cast", &x, 1)) return NULL;
  if (!rdna__array_is_plain(dtype))
    return rdna__record_failure(
        r, rdna__fail(RDNA_UNSUPPORTED, "arrays hold no values of type %s", rdna_dtype_name(dtype)));
  if (x->type.dtype == dtype) return x;
  bool rounded = x->type.dtype == RDNA_F16 || x->type.dtype == RDNA_BF16; /* the number is not what the type holds */
  if (x->op == &rdna__operator_full && !rounded)
    return rdna_record_full(r, dtype, x->type.rank, x->type.shape, x->attributes.p);
  return rdna__record(r, &rdna__operator_cast, &(rdna__attributes){.code = (int)dtype}, &x, 1);
}
