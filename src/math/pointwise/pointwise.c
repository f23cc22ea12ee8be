#include "math/common/plan/strided.h"
#include "math/pointwise/pointwise_elementary.h"
#include "math/pointwise/pointwise_f64_kernels.h"
#include "rdna/op/elementwise.h"

enum { CLASSES = 5 }; /* of kernels: f32, f16, bf16, f64, int */

static int class_of(rdna_dtype dtype) { return dtype <= RDNA_F64 ? (int)dtype : 4; }

#define CLASS_NAMES(kind) \
  {kind "_strided_f32", kind "_strided_f16", kind "_strided_bf16", kind "_strided_f64", kind "_strided_int"}
static const char *const map_kernels[CLASSES] = CLASS_NAMES("map");
static const char *const zip_kernels[CLASSES] = CLASS_NAMES("zip");
static const char *const zip3_kernels[CLASSES] = CLASS_NAMES("zip3");
static const char *const compare_kernels[CLASSES] = CLASS_NAMES("compare");

static const char *const map_names[RDNA_MAP_COUNT] = {
    "abs",       "neg",         "sign",  "square",   "affine", "clamp",      "bitwise_not", "ceil",
    "floor",     "round",       "trunc", "sqrt",     "rsqrt",  "reciprocal", "relu",        "leaky_relu",
    "hardswish", "hardsigmoid", "exp",   "exp2",     "expm1",  "log",        "log2",        "log10",
    "log1p",     "sin",         "cos",   "tan",      "tanh",   "erf",        "sigmoid",     "silu",
    "gelu_tanh", "gelu_erf",    "elu",   "softplus", "mish",   "pow"};
static const char *const zip_names[RDNA_ZIP_COUNT] = {"add",
                                                      "sub",
                                                      "mul",
                                                      "div",
                                                      "add_scaled",
                                                      "maximum",
                                                      "minimum",
                                                      "squared_diff",
                                                      "floor_div",
                                                      "fmod",
                                                      "remainder",
                                                      "pow",
                                                      "bitwise_and",
                                                      "bitwise_or",
                                                      "bitwise_xor",
                                                      "shift_left",
                                                      "shift_right",
                                                      "lerp",
                                                      "relu_grad",
                                                      "leaky_relu_grad",
                                                      "clamp_grad",
                                                      "hardswish_grad",
                                                      "hardsigmoid_grad",
                                                      "sigmoid_grad",
                                                      "tanh_grad",
                                                      "sqrt_grad",
                                                      "rsqrt_grad",
                                                      "reciprocal_grad",
                                                      "atan2",
                                                      "silu_grad",
                                                      "gelu_tanh_grad",
                                                      "gelu_erf_grad",
                                                      "elu_grad",
                                                      "softplus_grad"};
static const char *const zip3_names[RDNA_ZIP3_COUNT] = {"fma", "addcmul", "clamp", "addcdiv", "lerp"};
static const char *const compare_names[RDNA_COMPARE_COUNT] = {
    "eq",         "ne",          "lt",          "le",    "gt",    "ge",      "logical_and",
    "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite"};

const char *rdna_map_name(rdna_map op) { return (unsigned)op < RDNA_MAP_COUNT ? map_names[op] : "?"; }
const char *rdna_zip_name(rdna_zip op) { return (unsigned)op < RDNA_ZIP_COUNT ? zip_names[op] : "?"; }
const char *rdna_zip3_name(rdna_zip3 op) { return (unsigned)op < RDNA_ZIP3_COUNT ? zip3_names[op] : "?"; }
const char *rdna_compare_name(rdna_compare op) { return (unsigned)op < RDNA_COMPARE_COUNT ? compare_names[op] : "?"; }

/* Whether an operation is in the list of a kind of types. */
#define MAP_CASE(op, expression) case RDNA_MAP_##op:
#define ZIP_CASE(op, expression) case RDNA_ZIP_##op:
#define ZIP3_CASE(op, expression) case RDNA_ZIP3_##op:
#define HAS(name, CASE, LIST)     \
  static bool name(unsigned op) { \
    switch (op) {                 \
      LIST(CASE) return true;     \
      default:                    \
        return false;             \
    }                             \
  }
HAS(map_has_float, MAP_CASE, POINTWISE_MAP_F32)
HAS(map_has_real, MAP_CASE, POINTWISE_MAP_F64)
HAS(map_is_elementary, MAP_CASE, POINTWISE_MAP_ELEMENTARY)
HAS(map_has_integer, MAP_CASE, POINTWISE_MAP_I64)
HAS(zip_has_float, ZIP_CASE, POINTWISE_ZIP_F32)
HAS(zip_has_real, ZIP_CASE, POINTWISE_ZIP_F64)
HAS(zip_is_elementary, ZIP_CASE, POINTWISE_ZIP_ELEMENTARY)
HAS(zip_has_integer, ZIP_CASE, POINTWISE_ZIP_I64)
HAS(zip3_has_float, ZIP3_CASE, POINTWISE_ZIP3_F32)
HAS(zip3_has_double, ZIP3_CASE, POINTWISE_ZIP3_F64)
HAS(zip3_has_integer, ZIP3_CASE, POINTWISE_ZIP3_I64)

static bool map_has_double(unsigned op) { return map_has_real(op) || map_is_elementary(op); }
static bool zip_has_double(unsigned op) { return zip_has_real(op) || zip_is_elementary(op); }

typedef struct request {
  const char *name, *kernel;
  rdna_stream *stream;
  const rdna_tensor *out;
  const rdna_tensor *input[3]; /* NULL: the constant */
  const char *argument[3];
  int inputs;
  int64_t values; /* in a vector, or of a thread */
  bool elementary;
  struct pointwise_args args;
  strided_plan plan;
} request;

static rdna_status check_op(const char *what, int op, int count) {
  if ((unsigned)op < (unsigned)count) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the operation is number %d; there are 0 to %d", what, op, count - 1);
}

static rdna_status check_offered(const char *name, const rdna_tensor *x, bool for_float, bool for_double,
                                 bool for_integer) {
  bool offered = x->dtype < RDNA_F64     ? for_float
                 : x->dtype == RDNA_F64  ? for_double
                 : x->dtype <= RDNA_BOOL ? for_integer
                                         : false;
  if (offered) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: the values are %s; it is offered for%s%s%s", name, rdna_dtype_name(x->dtype),
                    for_float ? " f32, f16, bf16" : "", for_double ? " f64" : "",
                    for_integer ? " integers and bool" : "");
}

/* One part of at most STRIDED_MAX_COUNT values. */
static rdna_status launch_part(const strided_plan *part, void *context) {
  request *r = context;
  struct pointwise_args args = r->args;
  rdna__plan_shape(part, &args.shape);
  args.together = r->elementary ? part->rank == 1 : part->size[0] % r->values == 0;
  for (int k = 0, planned = 0; k <= r->inputs; k++) {
    if (args.constants >> k & 1) continue;
    args.operand[k].data = part->operand[planned].data;
    for (int d = 0; d < part->rank; d++) args.operand[k].stride[d] = part->operand[planned].stride[d];
    if (!r->elementary && rdna__plan_vector(part, planned, r->values)) args.vectors |= 1u << k;
    if (r->elementary && part->operand[planned].stride[0] != 1) args.together = 0;
    planned++;
  }
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r->name, args.shape.count, r->values * RDNA__POINTWISE_THREADS, &grid.x));
  return rdna__launch_named(r->stream, r->kernel, grid, &args);
}

/* Inputs and out, which the caller checked for their types. */
static rdna_status run(request *r) {
  RDNA_TRY(rdna__check_distinct(r->name, r->out));
  for (int k = 0; k < r->inputs; k++) {
    if (!r->input[k]) continue;
    RDNA_TRY(rdna__check_broadcast(r->name, r->argument[k], r->input[k], r->out));
    RDNA_TRY(rdna__check_overlap(r->name, "out", r->out, r->argument[k], r->input[k]));
  }
  if (!r->stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the stream is NULL; pass a stream", r->name);
  if (rdna_tensor_count(r->out) == 0) return RDNA_OK;
  rdna__plan_begin(&r->plan, r->out);
  for (int k = 0; k < r->inputs; k++) {
    if (r->input[k]) rdna__plan_add(&r->plan, r->input[k]);
  }
  rdna__plan_merge(&r->plan);
  return rdna__plan_each(&r->plan, launch_part, r);
}

/* Fills in what depends on the type of |x|, and checks each input and |out| against it. */
static rdna_status begin(request *r, const rdna_tensor *x, const char *const *kernels, bool compares) {
  for (int k = 0; k < r->inputs; k++) {
    if (r->input[k]) RDNA_TRY(rdna__check_same_dtype(r->name, r->argument[k], r->input[k], r->argument[0], x));
  }
  RDNA_TRY(rdna__check_tensor(r->name, "out", r->out));
  if (compares) {
    RDNA_TRY(rdna__check_dtype(r->name, "out", r->out, RDNA_BOOL));
  } else {
    RDNA_TRY(rdna__check_same_dtype(r->name, "out", r->out, r->argument[0], x));
  }
  r->kernel = kernels[class_of(x->dtype)];
  r->values = x->dtype == RDNA_F16 || x->dtype == RDNA_BF16 ? 8 : 4;
  r->args.dtype = (uint32_t)x->dtype;
  return RDNA_OK;
}

/* Elementary operations on f64 have kernels of their own. */
static void begin_elementary(request *r, const rdna_tensor *x, bool elementary, const char *kernel) {
  if (x->dtype != RDNA_F64 || !elementary) return;
  r->kernel = kernel;
  r->elementary = true;
  r->values = RDNA__ELEMENTARY_VALUES;
}

static bool is_dense(const rdna_tensor *t) {
  int64_t want = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    if (t->shape[i] != 1 && t->stride[i] != want) return false;
    want *= t->shape[i];
  }
  return true;
}

/* |tensors|, whose shapes and strides agree and fill a piece of memory in any order of dimensions, as lines: a
 * transposed view of dense values is as good as the values. */
static bool as_lines(const rdna_tensor *const *tensors, int count, rdna_tensor *out_lines) {
  const rdna_tensor *out = tensors[0];
  strided_plan plan;
  for (int k = 1; k < count; k++) {
    if (tensors[k]->rank != out->rank) return false;
    for (int i = 0; i < out->rank; i++) {
      if (tensors[k]->shape[i] != out->shape[i] || tensors[k]->stride[i] != out->stride[i]) return false;
    }
  }
  rdna__plan_begin(&plan, out);
  rdna__plan_merge(&plan);
  if (plan.rank != 1 || plan.operand[0].stride[0] != 1) return false;
  for (int k = 0; k < count; k++) {
    out_lines[k] = rdna_tensor_contiguous(tensors[k]->data, tensors[k]->dtype, 1, plan.size);
  }
  return true;
}

static bool same_shape(const rdna_tensor *a, const rdna_tensor *b) {
  bool same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++) same = a->shape[i] == b->shape[i];
  return same;
}

/* The kernels of the elementwise family take it. */
static bool is_simple(const rdna_tensor *x, const rdna_tensor *out) {
  return x->dtype <= RDNA_BF16 && x->dtype == out->dtype && same_shape(x, out) && is_dense(x) && is_dense(out);
}

static bool simple_map(rdna_map op, rdna_unary *out_op) {
  static const struct {
    rdna_map from;
    rdna_unary to;
  } pairs[] = {{RDNA_MAP_NEG, RDNA_NEG},
               {RDNA_MAP_EXP, RDNA_EXP},
               {RDNA_MAP_RELU, RDNA_RELU},
               {RDNA_MAP_SIGMOID, RDNA_SIGMOID},
               {RDNA_MAP_TANH, RDNA_TANH},
               {RDNA_MAP_SILU, RDNA_SILU},
               {RDNA_MAP_GELU_TANH, RDNA_GELU_TANH},
               {RDNA_MAP_GELU_ERF, RDNA_GELU_ERF}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (pairs[i].from != op) continue;
    *out_op = pairs[i].to;
    return true;
  }
  return false;
}

rdna_status rdna_op_map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, rdna_scalar p, rdna_scalar q,
                        const rdna_tensor *out) {
  RDNA_TRY(check_op("map", (int)op, RDNA_MAP_COUNT));
  request r = {.name = map_names[op], .stream = stream, .out = out, .input = {x}, .argument = {"x"}, .inputs = 1};
  RDNA_TRY(rdna__check_tensor(r.name, "x", x));
  RDNA_TRY(check_offered(r.name, x, map_has_float(op), map_has_double(op), map_has_integer(op)));
  RDNA_TRY(begin(&r, x, map_kernels, false));
  begin_elementary(&r, x, map_is_elementary(op), "map_elementary_f64");
  if (op == RDNA_MAP_BITWISE_NOT && x->dtype == RDNA_BOOL) {
    return rdna_op_compare(stream, RDNA_LOGICAL_NOT, x, NULL, out);
  }
  rdna_unary simple;
  rdna_tensor lines[2];
  if (x->dtype <= RDNA_BF16 && as_lines((const rdna_tensor *const[]){out, x}, 2, lines)) {
    if (simple_map(op, &simple)) return rdna_op_unary(stream, simple, &lines[1], &lines[0]);
    if (op == RDNA_MAP_AFFINE) return rdna_op_affine(stream, &lines[1], (float)p.real, (float)q.real, &lines[0]);
  }
  r.args.op = (uint32_t)op;
  r.args.p = p;
  r.args.q = q;
  return run(&r);
}

rdna_status rdna_op_zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b, rdna_scalar p,
                        rdna_scalar q, const rdna_tensor *out) {
  RDNA_TRY(check_op("zip", (int)op, RDNA_ZIP_COUNT));
  request r = {
      .name = zip_names[op], .stream = stream, .out = out, .input = {a, b}, .argument = {"a", "b"}, .inputs = 2};
  RDNA_TRY(rdna__check_tensor(r.name, "a", a));
  RDNA_TRY(rdna__check_tensor(r.name, "b", b));
  RDNA_TRY(check_offered(r.name, a, zip_has_float(op), zip_has_double(op), zip_has_integer(op)));
  RDNA_TRY(begin(&r, a, zip_kernels, false));
  begin_elementary(&r, a, zip_is_elementary(op), "zip_elementary_f64");
  rdna_binary simple = (rdna_binary)(RDNA_ADD + ((int)op - RDNA_ZIP_ADD));
  rdna_tensor lines[3];
  if (op <= RDNA_ZIP_DIV && a->dtype <= RDNA_BF16) {
    bool row = b->rank == 1 && a->rank > 1 && b->shape[0] == a->shape[a->rank - 1];
    if (row && is_simple(a, out) && is_dense(b)) return rdna_op_binary(stream, simple, a, b, out);
    if (as_lines((const rdna_tensor *const[]){out, a, b}, 3, lines)) {
      return rdna_op_binary(stream, simple, &lines[1], &lines[2], &lines[0]);
    }
  }
  r.args.op = (uint32_t)op;
  r.args.p = p;
  r.args.q = q;
  return run(&r);
}

rdna_status rdna_op_zip_scalar(rdna_stream *stream, rdna_zip op, const rdna_tensor *x, rdna_scalar scalar,
                               bool scalar_first, rdna_scalar p, rdna_scalar q, const rdna_tensor *out) {
  RDNA_TRY(check_op("zip_scalar", (int)op, RDNA_ZIP_COUNT));
  request r = {.name = zip_names[op], .stream = stream, .out = out, .argument = {"x", "x"}, .inputs = 2};
  r.input[scalar_first] = x;
  RDNA_TRY(rdna__check_tensor(r.name, "x", x));
  RDNA_TRY(check_offered(r.name, x, zip_has_float(op), zip_has_double(op), zip_has_integer(op)));
  RDNA_TRY(begin(&r, x, zip_kernels, false));
  begin_elementary(&r, x, zip_is_elementary(op), "zip_elementary_f64");
  r.args.op = (uint32_t)op;
  r.args.p = p;
  r.args.q = q;
  r.args.constant = scalar;
  r.args.constants = scalar_first ? 2 : 4;
  return run(&r);
}

rdna_status rdna_op_zip3(rdna_stream *stream, rdna_zip3 op, const rdna_tensor *a, const rdna_tensor *b,
                         const rdna_tensor *c, rdna_scalar p, const rdna_tensor *out) {
  RDNA_TRY(check_op("zip3", (int)op, RDNA_ZIP3_COUNT));
  request r = {.name = zip3_names[op],
               .stream = stream,
               .out = out,
               .input = {a, b, c},
               .argument = {"a", "b", "c"},
               .inputs = 3};
  for (int k = 0; k < 3; k++) RDNA_TRY(rdna__check_tensor(r.name, r.argument[k], r.input[k]));
  RDNA_TRY(check_offered(r.name, a, zip3_has_float(op), zip3_has_double(op), zip3_has_integer(op)));
  RDNA_TRY(begin(&r, a, zip3_kernels, false));
  r.args.op = (uint32_t)op;
  r.args.p = p;
  return run(&r);
}

static rdna_status compare(rdna_stream *stream, rdna_compare op, const rdna_tensor *a, const rdna_tensor *b,
                           rdna_scalar scalar, const rdna_tensor *out) {
  request r = {
      .name = compare_names[op], .stream = stream, .out = out, .input = {a, b}, .argument = {"a", "b"}, .inputs = 2};
  RDNA_TRY(rdna__check_tensor(r.name, "a", a));
  if (b) RDNA_TRY(rdna__check_tensor(r.name, "b", b));
  RDNA_TRY(check_offered(r.name, a, true, true, true));
  RDNA_TRY(begin(&r, a, compare_kernels, true));
  r.args.op = (uint32_t)op;
  r.args.constant = scalar;
  r.args.constants = b ? 0 : 4;
  return run(&r);
}

rdna_status rdna_op_compare(rdna_stream *stream, rdna_compare op, const rdna_tensor *a, const rdna_tensor *b,
                            const rdna_tensor *out) {
  RDNA_TRY(check_op("compare", (int)op, RDNA_COMPARE_COUNT));
  if (!b && op < RDNA_LOGICAL_NOT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: b is NULL; pass a tensor, as it compares two", compare_names[op]);
  }
  return compare(stream, op, a, op < RDNA_LOGICAL_NOT ? b : NULL, rdna_scalar_integer(0), out);
}

rdna_status rdna_op_compare_scalar(rdna_stream *stream, rdna_compare op, const rdna_tensor *a, rdna_scalar b,
                                   const rdna_tensor *out) {
  RDNA_TRY(check_op("compare_scalar", (int)op, RDNA_COMPARE_COUNT));
  return compare(stream, op, a, NULL, b, out);
}

/* |a| NULL: r->args.constant, already as the bits of the type. */
static rdna_status where(request *r, const rdna_tensor *b) {
  size_t bytes = rdna_dtype_block_bytes(b->dtype);
  if (rdna_dtype_block_values(b->dtype) > 1) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: the values are %s; quantized types have no values to choose", r->name,
                      rdna_dtype_name(b->dtype));
  }
  RDNA_TRY(rdna__check_dtype(r->name, "condition", r->input[0], RDNA_BOOL));
  if (r->input[1]) RDNA_TRY(rdna__check_same_dtype(r->name, "a", r->input[1], "b", b));
  RDNA_TRY(rdna__check_tensor(r->name, "out", r->out));
  RDNA_TRY(rdna__check_same_dtype(r->name, "out", r->out, "b", b));
  r->kernel = bytes == 1   ? "where_strided_8"
              : bytes == 2 ? "where_strided_16"
              : bytes == 4 ? "where_strided_32"
                           : "where_strided_64";
  r->values = bytes <= 2 ? 8 : 4;
  return run(r);
}

rdna_status rdna_op_where(rdna_stream *stream, const rdna_tensor *condition, const rdna_tensor *a, const rdna_tensor *b,
                          const rdna_tensor *out) {
  request r = {.name = "where",
               .stream = stream,
               .out = out,
               .input = {condition, a, b},
               .argument = {"condition", "a", "b"},
               .inputs = 3};
  for (int k = 0; k < 3; k++) RDNA_TRY(rdna__check_tensor(r.name, r.argument[k], r.input[k]));
  return where(&r, b);
}

rdna_status rdna_op_masked_fill(rdna_stream *stream, const rdna_tensor *condition, rdna_scalar value,
                                const rdna_tensor *b, const rdna_tensor *out) {
  request r = {.name = "masked_fill",
               .stream = stream,
               .out = out,
               .input = {condition, NULL, b},
               .argument = {"condition", "a", "b"},
               .inputs = 3};
  RDNA_TRY(rdna__check_tensor(r.name, "condition", condition));
  RDNA_TRY(rdna__check_tensor(r.name, "b", b));
  r.args.constant.integer = (int64_t)rdna__scalar_bits(b->dtype, value);
  r.args.constants = 4;
  return where(&r, b);
}
