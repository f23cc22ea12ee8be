#include "rdna/op/complex.h"

#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/complex/complex_check.h"
#include "math/complex/complex_kernels.h"

#define NAME(NAME, text) #text,
static const char *const map_names[] = {RDNA_COMPLEX_MAPS(NAME)}, *const zip_names[] = {RDNA_COMPLEX_ZIPS(NAME)},
                         *const measure_names[] = {RDNA_COMPLEX_MEASURES(NAME)};

static const rdna__route routes[] = {
    {.name = "map", .kernels = {"complex_map_{f32|f64}"}, .when = "functions of one number"},
    {.name = "zip", .kernels = {"complex_zip_{f32|f64}"}, .when = "sums, products, quotients"},
    {.name = "pow", .kernels = {"complex_pow_{f32|f64}"}, .when = "powers"},
    {.name = "measure", .kernels = {"complex_measure_{f32|f64}"}, .when = "magnitudes and angles"},
    {.name = "polar", .kernels = {"complex_polar_{f32|f64}"}, .when = "numbers of magnitudes and angles"},
};
enum { MAP, ZIP, POW, MEASURE, POLAR };
RDNA_FIXED_ROUTES(rdna__complex_routes, "complex_map, complex_zip, complex_measure, complex_polar", routes)

rdna_status rdna__complex_check(const char *name, const char *argument, const rdna_tensor *t) {
  RDNA_TRY(rdna__check_tensor(name, argument, t));
  char text[RDNA__TENSOR_TEXT];
  if (t->dtype != RDNA_F32 && t->dtype != RDNA_F64) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; the types offered are f32 and f64", name, argument,
                      rdna_dtype_name(t->dtype));
  }
  int last = t->rank - 1;
  if (last < 0 || t->shape[last] != 2) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; a complex tensor has a last dimension of 2", name, argument,
                      rdna__tensor_text(t, text));
  }
  bool aligned = (uintptr_t)t->data % (2 * rdna_dtype_block_bytes(t->dtype)) == 0 && t->stride[last] == 1;
  for (int d = 0; d < last; d++) aligned = aligned && (t->shape[d] < 2 || t->stride[d] % 2 == 0);
  if (!aligned) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: %s, %s, has pairs that are not contiguous or not at multiples of their bytes", name,
                      argument, rdna__tensor_text(t, text));
  }
  return RDNA_OK;
}

rdna_tensor rdna__complex_values(const rdna_tensor *t) {
  rdna_tensor values = *t;
  values.rank--;
  for (int d = 0; d < values.rank; d++) values.stride[d] /= 2;
  return values;
}

typedef struct request {
  const char *name;
  int route; /* a row of |routes| */
  rdna_stream *stream;
  const rdna_tensor *out;
  const rdna_tensor *input[2]; /* NULL: the constant, or none */
  const char *argument[2];
  bool real_out, real_inputs;
  struct complex_args args;
} request;

static rdna_status launch_part(const strided_plan *part, void *context) {
  const request *r = context;
  struct complex_args args = r->args;
  int64_t values = r->route == ZIP ? COMPLEX_ZIP_VALUES : 1;
  rdna__plan_shape(part, &args.shape);
  for (int k = 0, planned = 0; k <= 2; k++) {
    if (k > 0 && !r->input[k - 1]) continue;
    args.operand[k].data = part->operand[planned].data;
    for (int d = 0; d < part->rank; d++) args.operand[k].stride[d] = part->operand[planned].stride[d];
    planned++;
  }
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r->name, args.shape.count, values * COMPLEX_THREADS, &grid.x));
  return RDNA__ROUTE_LAUNCH(r->stream, &routes[r->route], 0, grid, &args, rdna_dtype_name(r->out->dtype));
}

/* Adds |t| to the plan, as values. */
static void plan_values(strided_plan *plan, const rdna_tensor *t, bool real) {
  rdna_tensor values = real ? *t : rdna__complex_values(t);
  int k = plan->operands;
  if (k == 0) {
    rdna__plan_begin(plan, &values);
  } else {
    rdna__plan_add(plan, &values);
  }
  if (!real) plan->operand[k].bytes *= 2;
}

static rdna_status check_real(const char *name, const char *argument, const rdna_tensor *t) {
  RDNA_TRY(rdna__check_tensor(name, argument, t));
  if (t->dtype == RDNA_F32 || t->dtype == RDNA_F64) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; the types offered are f32 and f64", name, argument,
                    rdna_dtype_name(t->dtype));
}

static rdna_status run(request *r) {
  const rdna_tensor *first = r->input[0] ? r->input[0] : r->input[1];
  const char *first_name = r->argument[r->input[0] ? 0 : 1];
  for (int k = 0; k < 2; k++) {
    if (!r->argument[k] || (!r->input[k] && r->args.constants >> (k + 1) & 1)) continue;
    RDNA_TRY((r->real_inputs ? check_real : rdna__complex_check)(r->name, r->argument[k], r->input[k]));
    RDNA_TRY(rdna__check_same_dtype(r->name, r->argument[k], r->input[k], first_name, first));
  }
  RDNA_TRY((r->real_out ? check_real : rdna__complex_check)(r->name, "out", r->out));
  RDNA_TRY(rdna__check_same_dtype(r->name, "out", r->out, first_name, first));
  RDNA_TRY(rdna__check_written(r->name, "out", r->out));
  rdna_tensor to = r->real_out ? *r->out : rdna__complex_values(r->out);
  for (int k = 0; k < 2; k++) {
    if (!r->input[k]) continue;
    rdna_tensor from = r->real_inputs ? *r->input[k] : rdna__complex_values(r->input[k]);
    RDNA_TRY(rdna__check_broadcast(r->name, r->argument[k], &from, &to));
    if (r->real_out == r->real_inputs) {
      RDNA_TRY(rdna__check_overlap(r->name, "out", r->out, r->argument[k], r->input[k]));
    } else {
      RDNA_TRY(rdna__check_apart(r->name, "out", r->out, r->argument[k], r->input[k]));
    }
  }
  RDNA_TRY(rdna__check_stream(r->name, r->stream));
  if (rdna_tensor_count(&to) == 0) return RDNA_OK;
  strided_plan plan = {0};
  plan_values(&plan, r->out, r->real_out);
  for (int k = 0; k < 2; k++) {
    if (r->input[k]) plan_values(&plan, r->input[k], r->real_inputs);
  }
  rdna__plan_merge(&plan);
  return rdna__plan_each(&plan, launch_part, r);
}

static rdna_status check_op(const char *name, int op, int count) {
  if ((unsigned)op < (unsigned)count) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: op is number %d; there are 0 to %d", name, op, count - 1);
}

rdna_status rdna_op_complex_map(rdna_stream *stream, rdna_complex_map op, const rdna_tensor *x,
                                const rdna_tensor *out) {
  RDNA_TRY(check_op("complex_map", (int)op, RDNA_COMPLEX_MAP_COUNT));
  return run(&(request){.name = map_names[op],
                        .route = MAP,
                        .stream = stream,
                        .out = out,
                        .input = {x},
                        .argument = {"x"},
                        .args = {.op = (uint32_t)op}});
}

static request zip(rdna_stream *stream, rdna_complex_zip op, rdna_complex p, const rdna_tensor *out) {
  return (request){.name = (unsigned)op < RDNA_COMPLEX_ZIP_COUNT ? zip_names[op] : "?",
                   .route = op == RDNA_COMPLEX_POW ? POW : ZIP,
                   .stream = stream,
                   .out = out,
                   .args = {.op = (uint32_t)op, .p = {p.real, p.imag}}};
}
rdna_status rdna_op_complex_zip(rdna_stream *stream, rdna_complex_zip op, const rdna_tensor *a, const rdna_tensor *b,
                                rdna_complex p, const rdna_tensor *out) {
  RDNA_TRY(check_op("complex_zip", (int)op, RDNA_COMPLEX_ZIP_COUNT));
  request r = zip(stream, op, p, out);
  r.input[0] = a, r.input[1] = b, r.argument[0] = "a", r.argument[1] = "b";
  RDNA_TRY(rdna__check_tensor(r.name, "a", a));
  return run(&r);
}
rdna_status rdna_op_complex_zip_scalar(rdna_stream *stream, rdna_complex_zip op, const rdna_tensor *x,
                                       rdna_complex scalar, bool scalar_first, rdna_complex p, const rdna_tensor *out) {
  RDNA_TRY(check_op("complex_zip_scalar", (int)op, RDNA_COMPLEX_ZIP_COUNT));
  request r = zip(stream, op, p, out);
  r.input[scalar_first] = x, r.argument[scalar_first] = "x";
  r.args.constants = scalar_first ? 2 : 4;
  r.args.constant[0] = scalar.real, r.args.constant[1] = scalar.imag;
  return run(&r);
}

rdna_status rdna_op_complex_measure(rdna_stream *stream, rdna_complex_measure op, const rdna_tensor *x,
                                    const rdna_tensor *out) {
  RDNA_TRY(check_op("complex_measure", (int)op, RDNA_COMPLEX_MEASURE_COUNT));
  return run(&(request){.name = measure_names[op],
                        .route = MEASURE,
                        .stream = stream,
                        .out = out,
                        .input = {x},
                        .argument = {"x"},
                        .real_out = true,
                        .args = {.op = (uint32_t)op}});
}

rdna_status rdna_op_complex_polar(rdna_stream *stream, const rdna_tensor *abs, const rdna_tensor *angle,
                                  const rdna_tensor *out) {
  RDNA_TRY(check_real("complex_polar", "abs", abs));
  return run(&(request){.name = "complex_polar",
                        .route = POLAR,
                        .stream = stream,
                        .out = out,
                        .input = {abs, angle},
                        .argument = {"abs", "angle"},
                        .real_inputs = true});
}
