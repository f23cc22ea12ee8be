#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/pointwise/contiguous.h"
#include "math/pointwise/pointwise_f64_kernels.h"

/* A row of rdna/op/pointwise.def. */
typedef struct operation {
  const char *name;
  bool real, integer; /* the types that it is offered for */
  bool elementary;    /* in f64 it is in the elementary kernels */
} operation;

#define TYPES_R .real = true
#define TYPES_I .integer = true
#define TYPES_RI .real = true, .integer = true
#define SIMPLE(number, text, types) [number] = {.name = #text, TYPES_##types},
#define ELEMENTARY(number, text, types) [number] = {.name = #text, TYPES_##types, .elementary = true},
#define SIMPLE_MAP(NAME, name, types, ...) SIMPLE(RDNA_MAP_##NAME, name, types)
#define ELEMENTARY_MAP(NAME, name, types, ...) ELEMENTARY(RDNA_MAP_##NAME, name, types)
#define SIMPLE_ZIP(NAME, name, types, ...) SIMPLE(RDNA_ZIP_##NAME, name, types)
#define ELEMENTARY_ZIP(NAME, name, types, ...) ELEMENTARY(RDNA_ZIP_##NAME, name, types)
#define SIMPLE_ZIP3(NAME, name, types, ...) SIMPLE(RDNA_ZIP3_##NAME, name, types)
static const operation maps[RDNA_MAP_COUNT] = {RDNA_POINTWISE_MAPS(SIMPLE_MAP, ELEMENTARY_MAP, , )};
static const operation zips[RDNA_ZIP_COUNT] = {RDNA_POINTWISE_ZIPS(SIMPLE_ZIP, ELEMENTARY_ZIP, )};
static const operation zip3s[RDNA_ZIP3_COUNT] = {RDNA_POINTWISE_ZIP3S(SIMPLE_ZIP3, )};

typedef struct question {
  const char *name;
  int inputs;
} question;
#define QUESTION(NAME, text, count, expression) [RDNA_COMPARE_##NAME] = {.name = #text, .inputs = count},
static const question questions[RDNA_COMPARE_COUNT] = {RDNA_POINTWISE_COMPARES(QUESTION)};

const char *rdna_map_name(rdna_map op) { return (unsigned)op < RDNA_MAP_COUNT ? maps[op].name : "?"; }
const char *rdna_zip_name(rdna_zip op) { return (unsigned)op < RDNA_ZIP_COUNT ? zips[op].name : "?"; }
const char *rdna_zip3_name(rdna_zip3 op) { return (unsigned)op < RDNA_ZIP3_COUNT ? zip3s[op].name : "?"; }
const char *rdna_compare_name(rdna_compare op) { return (unsigned)op < RDNA_COMPARE_COUNT ? questions[op].name : "?"; }

/* The kernels of each type, and how they take it. Other types have none. */
static const struct type_traits {
  const char *map, *zip, *zip3, *compare; /* kernels */
  bool real;
  int64_t values; /* in a vector, or of a thread */
} traits[RDNA_DTYPE_COUNT] = {
#define KERNELS(type) "map_strided_" #type, "zip_strided_" #type, "zip3_strided_" #type, "compare_strided_" #type
    [RDNA_F32] = {KERNELS(f32), true, 4},   [RDNA_F16] = {KERNELS(f16), true, 8},
    [RDNA_BF16] = {KERNELS(bf16), true, 8}, [RDNA_F64] = {KERNELS(f64), true, 4},
    [RDNA_I8] = {KERNELS(int), false, 4},   [RDNA_U8] = {KERNELS(int), false, 4},
    [RDNA_I16] = {KERNELS(int), false, 4},  [RDNA_I32] = {KERNELS(int), false, 4},
    [RDNA_I64] = {KERNELS(int), false, 4},  [RDNA_BOOL] = {KERNELS(int), false, 4},
    [RDNA_U16] = {KERNELS(int), false, 4},  [RDNA_U32] = {KERNELS(int), false, 4},
    [RDNA_U64] = {KERNELS(int), false, 4},
};

#define TYPES "{f32|f16|bf16|f64|int}"
static const rdna__route routes[] = {
    {.name = "dense",
     .when = "dense values of f32, f16 and bf16, by the table of contiguous.c, where that has a kernel"},
    {.name = "elementary",
     .kernels = {"{map|zip}_elementary_f64"},
     .when = "elementary functions of f64, which take many registers"},
    {.name = "strided",
     .kernels = {"{map|zip|zip3|compare}_strided_" TYPES, "where_strided_{bits}"},
     .when = "all others: any strides, the operation is an argument"},
};
#undef TYPES
RDNA_FIXED_ROUTES(rdna__pointwise_routes, "map, zip, zip3, compare, where", routes)

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

static rdna_status check_offered(const char *name, const rdna_tensor *x, bool real, bool integer) {
  const struct type_traits *type = &traits[x->dtype];
  if (type->map && (type->real ? real : integer)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: the values are %s; it is offered for%s%s", name, rdna_dtype_name(x->dtype),
                    real ? " f32, f16, bf16, f64" : "",
                    integer ? (real ? ", integers and bool" : " integers and bool") : "");
}

/* Launches one part of the plan, of at most STRIDED_MAX_COUNT values. */
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

/* Checks inputs and out, whose types the caller has checked. |*out_empty|: there is nothing to do. */
static rdna_status check_operands(const request *r, bool *out_empty) {
  RDNA_TRY(rdna__check_distinct(r->name, r->out));
  for (int k = 0; k < r->inputs; k++) {
    if (!r->input[k]) continue;
    RDNA_TRY(rdna__check_broadcast(r->name, r->argument[k], r->input[k], r->out));
    RDNA_TRY(rdna__check_overlap(r->name, "out", r->out, r->argument[k], r->input[k]));
  }
  RDNA_TRY(rdna__check_stream(r->name, r->stream));
  *out_empty = rdna_tensor_count(r->out) == 0;
  return RDNA_OK;
}

/* Launches the strided kernels, on operands that are checked and not empty. */
static rdna_status launch_strided(request *r) {
  rdna__plan_begin(&r->plan, r->out);
  for (int k = 0; k < r->inputs; k++) {
    if (r->input[k]) rdna__plan_add(&r->plan, r->input[k]);
  }
  rdna__plan_merge(&r->plan);
  return rdna__plan_each(&r->plan, launch_part, r);
}

static rdna_status run(request *r) {
  bool empty;
  RDNA_TRY(check_operands(r, &empty));
  return empty ? RDNA_OK : launch_strided(r);
}

/* Fills in what depends on the type of |x|, and checks each input and |out| against it. */
static rdna_status begin(request *r, const rdna_tensor *x, bool compares) {
  for (int k = 0; k < r->inputs; k++) {
    if (r->input[k]) RDNA_TRY(rdna__check_same_dtype(r->name, r->argument[k], r->input[k], r->argument[0], x));
  }
  RDNA_TRY(rdna__check_tensor(r->name, "out", r->out));
  if (compares) {
    RDNA_TRY(rdna__check_dtype(r->name, "out", r->out, RDNA_BOOL));
  } else {
    RDNA_TRY(rdna__check_same_dtype(r->name, "out", r->out, r->argument[0], x));
  }
  r->values = traits[x->dtype].values;
  r->args.dtype = (uint32_t)x->dtype;
  return RDNA_OK;
}

/* As begin, for |op|, and chooses the kernel: |elementary| for elementary operations on f64, else |kernel|. */
static rdna_status begin_operation(request *r, const operation *op, const rdna_tensor *x, const char *kernel,
                                   const char *elementary) {
  RDNA_TRY(check_offered(r->name, x, op->real, op->integer));
  RDNA_TRY(begin(r, x, false));
  r->kernel = kernel;
  r->elementary = op->elementary && x->dtype == RDNA_F64;
  if (!r->elementary) return RDNA_OK;
  r->kernel = elementary;
  r->values = RDNA__ELEMENTARY_VALUES;
  return RDNA_OK;
}

/* ---- u64, which kernels compute in int64_t ---- */

static void turn(rdna_scalar *value) { value->integer ^= INT64_MIN; }

/* What goes by the order of values has them as kernels see RDNA_U64, constants likewise; else they are any 64 bits. */
static void take_u64(request *r, bool ordered) {
  if (r->args.dtype != RDNA_U64) return;
  r->args.dtype = ordered ? RDNA_U64 : RDNA_I64;
  if (ordered) turn(&r->args.constant);
}

/* Of maps: |x| and relu are x itself, the sign is x but 1 at most. */
static void map_of_u64(request *r) {
  struct pointwise_args *a = &r->args;
  if (a->dtype != RDNA_U64) return;
  bool itself = a->op == RDNA_MAP_ABS || a->op == RDNA_MAP_RELU, sign = a->op == RDNA_MAP_SIGN;
  if (itself || sign) {
    a->p = rdna_scalar_integer(0), a->q = rdna_scalar_integer(sign ? 1 : -1); /* -1: the largest */
    a->op = RDNA_MAP_CLAMP;
  }
  take_u64(r, a->op == RDNA_MAP_CLAMP);
  if (a->dtype == RDNA_U64) turn(&a->p), turn(&a->q);
}

/* Of zips, of integers, |p| tells those that have no use for the caller's whether values are u64. */
static void zip_of_integers(request *r, rdna_dtype dtype) {
  if (traits[dtype].real) return;
  if (r->args.op != RDNA_ZIP_ADD_SCALED) r->args.p = rdna_scalar_integer(dtype == RDNA_U64);
  take_u64(r, r->args.op == RDNA_ZIP_MAXIMUM || r->args.op == RDNA_ZIP_MINIMUM);
}

static bool is_ordered(rdna_compare op) {
  return op == RDNA_COMPARE_LT || op == RDNA_COMPARE_LE || op == RDNA_COMPARE_GT || op == RDNA_COMPARE_GE;
}

rdna_status rdna_op_map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, rdna_scalar p, rdna_scalar q,
                        const rdna_tensor *out) {
  bool done;
  RDNA_TRY(check_op("map", (int)op, RDNA_MAP_COUNT));
  request r = {.name = maps[op].name,
               .stream = stream,
               .out = out,
               .input = {x},
               .argument = {"x"},
               .inputs = 1,
               .args = {.op = (uint32_t)op, .p = p, .q = q}};
  RDNA_TRY(rdna__check_tensor(r.name, "x", x));
  RDNA_TRY(begin_operation(&r, &maps[op], x, traits[x->dtype].map, "map_elementary_f64"));
  if (op == RDNA_MAP_BITWISE_NOT && x->dtype == RDNA_BOOL) {
    return rdna_op_compare(stream, RDNA_COMPARE_LOGICAL_NOT, x, NULL, out);
  }
  map_of_u64(&r);
  RDNA_TRY(check_operands(&r, &done));
  if (!done) RDNA_TRY(rdna__contiguous_map(stream, op, x, p, q, out, &done));
  return done ? RDNA_OK : launch_strided(&r);
}

/* Kernels compute f16 and bf16 in f32: how many bits of its fraction the type lacks. */
static rdna_scalar missing_bits(rdna_dtype dtype) {
  return rdna_scalar_real(dtype == RDNA_F16 ? 13 : dtype == RDNA_BF16 ? 16 : 0);
}

rdna_status rdna_op_zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b, rdna_scalar p,
                        rdna_scalar q, const rdna_tensor *out) {
  bool done;
  RDNA_TRY(check_op("zip", (int)op, RDNA_ZIP_COUNT));
  request r = {.name = zips[op].name,
               .stream = stream,
               .out = out,
               .input = {a, b},
               .argument = {"a", "b"},
               .inputs = 2,
               .args = {.op = (uint32_t)op, .p = p, .q = q}};
  RDNA_TRY(rdna__check_tensor(r.name, "a", a));
  RDNA_TRY(rdna__check_tensor(r.name, "b", b));
  RDNA_TRY(begin_operation(&r, &zips[op], a, traits[a->dtype].zip, "zip_elementary_f64"));
  if (op == RDNA_ZIP_NEXTAFTER) r.args.p = missing_bits(a->dtype);
  zip_of_integers(&r, a->dtype);
  RDNA_TRY(check_operands(&r, &done));
  if (!done) RDNA_TRY(rdna__contiguous_zip(stream, op, a, b, out, &done));
  return done ? RDNA_OK : launch_strided(&r);
}

rdna_status rdna_op_zip_scalar(rdna_stream *stream, rdna_zip op, const rdna_tensor *x, rdna_scalar scalar,
                               bool scalar_first, rdna_scalar p, rdna_scalar q, const rdna_tensor *out) {
  bool done;
  RDNA_TRY(check_op("zip_scalar", (int)op, RDNA_ZIP_COUNT));
  request r = {.name = zips[op].name,
               .stream = stream,
               .out = out,
               .argument = {"x", "x"},
               .inputs = 2,
               .args = {.op = (uint32_t)op, .p = p, .q = q, .constant = scalar, .constants = scalar_first ? 2 : 4}};
  r.input[scalar_first] = x;
  RDNA_TRY(rdna__check_tensor(r.name, "x", x));
  RDNA_TRY(begin_operation(&r, &zips[op], x, traits[x->dtype].zip, "zip_elementary_f64"));
  if (op == RDNA_ZIP_NEXTAFTER) r.args.p = missing_bits(x->dtype);
  zip_of_integers(&r, x->dtype);
  RDNA_TRY(check_operands(&r, &done));
  if (!done) RDNA_TRY(rdna__contiguous_zip_number(stream, op, x, scalar.real, scalar_first, out, &done));
  return done ? RDNA_OK : launch_strided(&r);
}

rdna_status rdna_op_zip3(rdna_stream *stream, rdna_zip3 op, const rdna_tensor *a, const rdna_tensor *b,
                         const rdna_tensor *c, rdna_scalar p, const rdna_tensor *out) {
  RDNA_TRY(check_op("zip3", (int)op, RDNA_ZIP3_COUNT));
  request r = {.name = zip3s[op].name,
               .stream = stream,
               .out = out,
               .input = {a, b, c},
               .argument = {"a", "b", "c"},
               .inputs = 3,
               .args = {.op = (uint32_t)op, .p = p}};
  for (int k = 0; k < 3; k++) RDNA_TRY(rdna__check_tensor(r.name, r.argument[k], r.input[k]));
  RDNA_TRY(begin_operation(&r, &zip3s[op], a, traits[a->dtype].zip3, NULL));
  take_u64(&r, op == RDNA_ZIP3_CLAMP);
  return run(&r);
}

/* Compares |a| with |b|, or if that is NULL with |scalar|, which operations on |a| alone ignore. */
static rdna_status compare(rdna_stream *stream, rdna_compare op, const rdna_tensor *a, const rdna_tensor *b,
                           rdna_scalar scalar, const rdna_tensor *out) {
  request r = {.name = questions[op].name,
               .stream = stream,
               .out = out,
               .input = {a, b},
               .argument = {"a", "b"},
               .inputs = 2,
               .args = {.op = (uint32_t)op, .constant = scalar, .constants = b ? 0 : 4}};
  RDNA_TRY(rdna__check_tensor(r.name, "a", a));
  if (b) RDNA_TRY(rdna__check_tensor(r.name, "b", b));
  RDNA_TRY(check_offered(r.name, a, true, true));
  RDNA_TRY(begin(&r, a, true));
  r.kernel = traits[a->dtype].compare;
  take_u64(&r, is_ordered(op));
  return run(&r);
}

rdna_status rdna_op_compare(rdna_stream *stream, rdna_compare op, const rdna_tensor *a, const rdna_tensor *b,
                            const rdna_tensor *out) {
  RDNA_TRY(check_op("compare", (int)op, RDNA_COMPARE_COUNT));
  bool two = questions[op].inputs == 2;
  if (!b && two) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: b is NULL; pass a tensor, as it compares two", questions[op].name);
  }
  return compare(stream, op, a, two ? b : NULL, rdna_scalar_integer(0), out);
}

rdna_status rdna_op_compare_scalar(rdna_stream *stream, rdna_compare op, const rdna_tensor *a, rdna_scalar b,
                                   const rdna_tensor *out) {
  RDNA_TRY(check_op("compare_scalar", (int)op, RDNA_COMPARE_COUNT));
  return compare(stream, op, a, NULL, b, out);
}

/* Launches where. If input 1 (|a|) is NULL, its value is r->args.constant, as bits of the type. */
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
