/* map, zip and zip3 on each of many tensors. Those that lie as lines share launches; any other tensor has its own. */
#include "math/common/plan/route.h"
#include "math/pointwise/contiguous.h"
#include "math/pointwise/each_kernels.h"

enum { EACH };
static const rdna__route routes[] = {
    [EACH] = {.name = "each",
              .kernels = {"{map|zip|zip3}_each_{float}"},
              .when = "dense values of f32, f16 and bf16, of several tensors; others one by one, as map, zip and zip3"},
};
RDNA_FIXED_ROUTES(rdna__each_routes, "map_each, zip_each, zip_scalar_each, zip3_each", routes)

/* Which operations share launches: those on real numbers that are a few instructions. */
#define NONE_(...)
#define JOINS_R true
#define JOINS_RI true
#define JOINS_I false
#define MAP_JOINS(NAME, name, types, ...) [RDNA_MAP_##NAME] = JOINS_##types,
#define ZIP_JOINS(NAME, name, types, ...) [RDNA_ZIP_##NAME] = JOINS_##types,
static const bool map_joins[RDNA_MAP_COUNT] = {RDNA_POINTWISE_MAPS(MAP_JOINS, NONE_, , )};
static const bool zip_joins[RDNA_ZIP_COUNT] = {RDNA_POINTWISE_ZIPS(ZIP_JOINS, NONE_, )};

/* A call, and the launch in the making. */
struct batch {
  rdna_stream *stream;
  const char *name, *kind; /* for messages; the kernel's */
  uint32_t inputs;
  bool joins; /* tensors may share launches */
  rdna_scalar p, q, constant;
  bool has_constant, constant_first;
  rdna_dtype dtype;           /* of the launch */
  const rdna_pointwise *last; /* the launch's tensor that was added last; the others stand before it */
  struct each_args args;
};

/* Computes one tensor alone. */
static rdna_status alone(const struct batch *b, const rdna_pointwise *x) {
  if (b->inputs == 1) return rdna_op_map(b->stream, (rdna_map)b->args.op, x->a, b->p, b->q, x->out);
  if (b->inputs == 3) return rdna_op_zip3(b->stream, (rdna_zip3)b->args.op, x->a, x->b, x->c, b->p, x->out);
  if (!b->has_constant) return rdna_op_zip(b->stream, (rdna_zip)b->args.op, x->a, x->b, b->p, b->q, x->out);
  return rdna_op_zip_scalar(b->stream, (rdna_zip)b->args.op, x->a, b->constant, b->constant_first, b->p, b->q, x->out);
}

/* What a tensor of a launch takes of memory. */
struct span {
  uintptr_t begin, end;
};

static struct span span_of(const struct batch *b, uint32_t t, uint32_t k) {
  const struct each_args *a = &b->args;
  uintptr_t begin = (uintptr_t)a->pointer[t * (b->inputs + 1) + k];
  bool one = k == 2 && (a->ones >> t & 1);
  return (struct span){begin, begin + (one ? 1 : a->count[t]) * rdna_dtype_block_bytes(b->dtype)};
}

/* Whether no tensor of the launch writes what another reads or writes. Results are sorted by their place, so that each
 * input is looked for in a few steps. */
static bool is_independent(const struct batch *b) {
  struct span outs[EACH_TENSORS];
  const uint32_t tensors = b->args.tensors;
  for (uint32_t t = 0; t < tensors; t++) {
    const struct span out = span_of(b, t, 0);
    uint32_t at = t;
    for (; at > 0 && outs[at - 1].begin > out.begin; at--) outs[at] = outs[at - 1];
    outs[at] = out;
  }
  for (uint32_t t = 1; t < tensors; t++) {
    if (outs[t].begin < outs[t - 1].end) return false;
  }
  for (uint32_t t = 0; t < tensors; t++) {
    for (uint32_t k = 1; k <= b->inputs; k++) {
      const struct span in = span_of(b, t, k);
      uint32_t low = 0, high = tensors; /* the last result that begins before the input ends is at low - 1 */
      while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (outs[middle].begin < in.end)
          low = middle + 1;
        else
          high = middle;
      }
      if (b->args.constants >> k & 1 || low == 0 || outs[low - 1].end <= in.begin) continue;
      if (outs[low - 1].begin != span_of(b, t, 0).begin) return false; /* its own it may be */
    }
  }
  return true;
}

static rdna_status launch(struct batch *b) {
  uint32_t tensors = b->args.tensors;
  rdna_grid grid = {b->args.groups, 1, 1};
  if (tensors > 1 && is_independent(b)) {
    RDNA_TRY(RDNA__ROUTE_LAUNCH(b->stream, &routes[EACH], 0, grid, &b->args, b->kind, rdna_dtype_name(b->dtype)));
  } else {
    for (uint32_t t = 0; t < tensors; t++) RDNA_TRY(alone(b, b->last + 1 - (tensors - t)));
  }
  b->args.tensors = b->args.groups = 0, b->args.ones = 0;
  return RDNA_OK;
}

/* The tensors of |x| in the order of each_args; an input that is the constant is NULL. */
static void operands_of(const struct batch *b, const rdna_pointwise *x, const rdna_tensor *operand[4]) {
  operand[0] = x->out, operand[1] = x->a, operand[2] = x->b, operand[3] = x->c;
  if (!b->has_constant) return;
  operand[2] = b->constant_first ? x->a : NULL;
  if (b->constant_first) operand[1] = NULL;
}

/* Whether input |k| is one value for all of the result. */
static bool is_one(const struct batch *b, const rdna_tensor *const operand[4], uint32_t k) {
  const rdna_tensor *t = operand[k], *out = operand[0];
  if (b->inputs != 2 || k != 2 || !t) return false;
  return t->rank <= out->rank && rdna_tensor_count(t) == 1 && rdna_tensor_count(out) > 1;
}

/* Whether a launch for many can compute a tensor of these operands. What overlaps its result without being it, the
 * operator for one tensor refuses. */
static bool fits(const struct batch *b, const rdna_tensor *const operand[4]) {
  const rdna_tensor *out = operand[0], *line[4] = {out};
  int64_t count = rdna_tensor_count(out);
  int lines = 1;
  if (!b->joins || count == 0 || count > STRIDED_MAX_COUNT) return false;
  if (out->dtype != RDNA_F32 && out->dtype != RDNA_F16 && out->dtype != RDNA_BF16) return false;
  for (uint32_t k = 1; k <= b->inputs; k++) {
    const rdna_tensor *t = operand[k];
    if (!t) continue;
    if (!out->data || !t->data || t->dtype != out->dtype) return false;
    bool one = is_one(b, operand, k), in_place = !one && t->data == out->data;
    if (!one) line[lines++] = t;
    if (!in_place && rdna_tensor_overlap(out, t)) return false;
  }
  return rdna__is_line(line, lines);
}

static rdna_status add(struct batch *b, const rdna_pointwise *x) {
  const rdna_tensor *operand[4];
  struct each_args *a = &b->args;
  operands_of(b, x, operand);
  RDNA_TRY(rdna__check_tensor(b->name, "out", x->out));
  RDNA_TRY(rdna__check_tensor(b->name, b->inputs > 1 && !b->has_constant ? "a" : "x", x->a));
  if (b->inputs > 1 && !b->has_constant) RDNA_TRY(rdna__check_tensor(b->name, "b", x->b));
  if (b->inputs > 2) RDNA_TRY(rdna__check_tensor(b->name, "c", x->c));
  bool fit = fits(b, operand);
  if (!fit || (a->tensors > 0 && x->out->dtype != b->dtype)) RDNA_TRY(launch(b));
  if (!fit) return alone(b, x);
  int64_t count = rdna_tensor_count(x->out);
  uint32_t tile = EACH_THREADS * EACH_VECTORS * 16 / (uint32_t)rdna_dtype_block_bytes(x->out->dtype);
  uint32_t t = a->tensors++;
  b->dtype = x->out->dtype, b->last = x;
  for (uint32_t k = 0; k <= b->inputs; k++) {
    a->pointer[t * (b->inputs + 1) + k] = operand[k] ? operand[k]->data : NULL;
  }
  if (is_one(b, operand, 2)) a->ones |= (uint64_t)1 << t;
  a->count[t] = (uint32_t)count;
  a->group[t] = a->groups;
  a->groups += ((uint32_t)count + tile - 1) / tile;
  return a->tensors == EACH_TENSORS || (a->tensors + 1) * (b->inputs + 1) > EACH_POINTERS ? launch(b) : RDNA_OK;
}

static rdna_status run(struct batch *b, const rdna_pointwise *items, int count) {
  b->args.p = (float)b->p.real, b->args.q = (float)b->q.real, b->args.constant = (float)b->constant.real;
  b->args.constants = b->has_constant ? (b->constant_first ? 2 : 4) : 0;
  RDNA_TRY(rdna__check_stream(b->name, b->stream));
  if (count < 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: count is %d; it must not be negative", b->name, count);
  if (count > 0 && !items) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: items is NULL; pass %d of them", b->name, count);
  }
  for (int i = 0; i < count; i++) RDNA_TRY(add(b, &items[i]));
  return launch(b);
}

rdna_status rdna_op_map_each(rdna_stream *stream, rdna_map op, const rdna_pointwise *items, int count, rdna_scalar p,
                             rdna_scalar q) {
  struct batch b = {.stream = stream, .name = "map_each", .kind = "map", .inputs = 1, .p = p, .q = q};
  b.args.op = (uint32_t)op;
  b.joins = (unsigned)op < RDNA_MAP_COUNT && map_joins[op];
  return run(&b, items, count);
}

rdna_status rdna_op_zip_each(rdna_stream *stream, rdna_zip op, const rdna_pointwise *items, int count, rdna_scalar p,
                             rdna_scalar q) {
  struct batch b = {.stream = stream, .name = "zip_each", .kind = "zip", .inputs = 2, .p = p, .q = q};
  b.args.op = (uint32_t)op;
  b.joins = (unsigned)op < RDNA_ZIP_COUNT && zip_joins[op];
  return run(&b, items, count);
}

rdna_status rdna_op_zip_scalar_each(rdna_stream *stream, rdna_zip op, const rdna_pointwise *items, int count,
                                    rdna_scalar scalar, bool scalar_first, rdna_scalar p, rdna_scalar q) {
  struct batch b = {.stream = stream, .name = "zip_scalar_each", .kind = "zip", .inputs = 2, .p = p, .q = q};
  b.args.op = (uint32_t)op;
  b.constant = scalar, b.has_constant = true, b.constant_first = scalar_first;
  b.joins = (unsigned)op < RDNA_ZIP_COUNT && zip_joins[op];
  return run(&b, items, count);
}

rdna_status rdna_op_zip3_each(rdna_stream *stream, rdna_zip3 op, const rdna_pointwise *items, int count,
                              rdna_scalar p) {
  struct batch b = {.stream = stream, .name = "zip3_each", .kind = "zip3", .inputs = 3, .p = p};
  b.args.op = (uint32_t)op;
  b.joins = (unsigned)op < RDNA_ZIP3_COUNT;
  return run(&b, items, count);
}
