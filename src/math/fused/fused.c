#include "rdna/op/fused.h"

#include <stdlib.h>

#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/fused/chain.h"
#include "math/fused/fused_layout.h"

typedef struct request {
  rdna_stream *stream;
  struct fused_args args;
  rdna_dtype dtype;
} request;

/* A step that moves values; it adds what it keeps to |there|, a bit for each number that a step may take. */
static rdna_status encode_move(const rdna_fused_step *step, int number, int inputs, uint32_t *there,
                               uint32_t *out_word) {
  bool keeps = step->op == RDNA_FUSED_KEEP, fits = step->input >= 0 && step->input < RDNA_FUSED_MAX_INPUTS;
  if (keeps && (!fits || step->input < inputs)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "fused: step %d keeps its value as number %d; %d to %d are free", number,
                      step->input, inputs, RDNA_FUSED_MAX_INPUTS - 1);
  }
  if (!keeps && (!fits || !(*there >> step->input & 1))) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "fused: step %d takes number %d, which is neither an input nor kept before it", number,
                      step->input);
  }
  if (keeps) *there |= 1u << step->input;
  *out_word = (keeps ? FUSED_KEEP : FUSED_TAKE) | FUSED_IS_MOVE | (uint32_t)step->input << FUSED_INPUT_SHIFT;
  return RDNA_OK;
}

static rdna_status encode(const rdna_fused_step *step, int number, int inputs, uint32_t *there, uint32_t *out_word) {
  if (!step->is_zip && (step->op == RDNA_FUSED_KEEP || step->op == RDNA_FUSED_TAKE))
    return encode_move(step, number, inputs, there, out_word);
  int ops = step->is_zip ? RDNA_ZIP_COUNT : RDNA_MAP_COUNT;
  const char *kind = step->is_zip ? "zip" : "map";
  if (step->op < 0 || step->op >= ops) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "fused: the operation of step %d is number %d of rdna_%s; there are 0 to %d", number, step->op,
                      kind, ops - 1);
  }
  if ((step->is_zip ? fused_zip_chain : fused_map_chain)[step->op] == FUSED_NO) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "fused: the operation of step %d is %s, which chains lack; use its own operator", number,
                      step->is_zip ? rdna_zip_name((rdna_zip)step->op) : rdna_map_name((rdna_map)step->op));
  }
  bool fits = step->input >= 0 && step->input < RDNA_FUSED_MAX_INPUTS;
  if (step->is_zip && (!fits || !(*there >> step->input & 1))) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "fused: step %d takes input %d; there are 0 to %d%s", number, step->input,
                      inputs - 1, *there >> inputs ? ", and what is kept before it" : "");
  }
  bool commutes = step->op == RDNA_ZIP_ADD || step->op == RDNA_ZIP_MUL;
  *out_word = (uint32_t)step->op | (step->is_zip ? FUSED_IS_ZIP | (uint32_t)step->input << FUSED_INPUT_SHIFT : 0) |
              (step->is_zip && step->input_first && !commutes ? FUSED_INPUT_FIRST : 0);
  return RDNA_OK;
}

static rdna_status check_count(const char *what, int count, int most) {
  if (count >= 1 && count <= most) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "fused: there are %d %s; it takes 1 to %d", count, what, most);
}

static rdna_status check_plan(const strided_plan *plan) {
  if (plan->rank > FUSED_RANK) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "fused: the tensors have %d dimensions that do not merge; it takes %d: make them "
                      "contiguous",
                      plan->rank, FUSED_RANK);
  }
  for (int k = 0; k < plan->operands; k++) {
    for (int d = 0; d < plan->rank; d++) {
      int64_t stride = plan->operand[k].stride[d];
      if (stride != (int32_t)stride) {
        return rdna__fail(RDNA_UNSUPPORTED, "fused: operand %d has a stride of %lld values; it must fit in 31 bits", k,
                          (long long)stride);
      }
    }
  }
  return RDNA_OK;
}

static const rdna__route route[] = {
    {.name = "chain",
     .kernels = {"fused{|_any}_{float}"},
     .when = "a chain of operations in one pass; _any where there are not few inputs, or not whole vectors"}};
RDNA_FIXED_ROUTES(rdna__fused_routes, "fused", route)

static rdna_status launch_part(const strided_plan *part, void *context) {
  request *r = context;
  bool done;
  RDNA_TRY(rdna__chain_launch(r->stream, r->dtype, &r->args, part, &done));
  if (done) return RDNA_OK;
  struct fused_args args = r->args;
  fused_extent extent = {.rank = (uint32_t)part->rank, .size = {1, 1, 1, 1}};
  for (int d = 0; d < part->rank; d++) extent.size[d] = part->size[d];
  for (int k = 0; k < part->operands; k++) {
    for (int d = 0; d < part->rank; d++) extent.stride[k][d] = part->operand[k].stride[d];
    if ((uintptr_t)part->operand[k].data % 16 == 0) extent.aligned |= 1u << k;
    args.operand[k].data = part->operand[k].data;
  }
  bool few = fused_lay_out(&args, &extent, r->dtype == RDNA_F32 ? 4 : 8);
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups("fused", args.shape.count, RDNA__FUSED_THREADS, &grid.x));
  return RDNA__ROUTE_LAUNCH(r->stream, route, 0, grid, &args, few ? "" : "_any", rdna_dtype_name(r->dtype));
}

/* The dimension in which to cut the plan: if an operand's values reach 2^31 or more from its first, the dimension that
 * adds most to that; else -1. */
static int too_far(const strided_plan *plan) {
  for (int k = 0; k < plan->operands; k++) {
    int64_t reach = 0, most = 0;
    int which = -1;
    for (int d = 0; d < plan->rank; d++) {
      int64_t along = llabs(plan->operand[k].stride[d]) * (plan->size[d] - 1);
      reach += along;
      if (along > most) most = along, which = d;
    }
    if (reach > INT32_MAX) return which;
  }
  return -1;
}

/* Halves the plan until offsets in each part are less than 2^31, and launches the parts. */
static rdna_status launch_near(const strided_plan *part, void *context) {
  int d = too_far(part);
  return d < 0 ? launch_part(part, context) : rdna__plan_halves(part, d, launch_near, context);
}

rdna_status rdna_op_fused(rdna_stream *stream, const rdna_fused_step *steps, int step_count,
                          const rdna_tensor *const *inputs, int input_count, const rdna_tensor *out) {
  RDNA_TRY(check_count("steps", step_count, RDNA_FUSED_MAX_STEPS));
  RDNA_TRY(check_count("inputs", input_count, RDNA_FUSED_MAX_INPUTS));
  if (!steps || !inputs) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "fused: %s is NULL; pass an array of them", steps ? "inputs" : "steps");
  }
  RDNA_TRY(rdna__check_float("fused", "out", out));
  request r = {.stream = stream, .dtype = out->dtype};
  r.args.steps = (uint32_t)step_count;
  r.args.inputs = (uint32_t)input_count;
  uint32_t there = (1u << input_count) - 1;
  for (int i = 0; i < step_count; i++) {
    RDNA_TRY(encode(&steps[i], i, input_count, &there, &r.args.step[i]));
    r.args.p[i] = steps[i].p;
    r.args.q[i] = steps[i].q;
  }
  for (int k = 0; k < input_count; k++) {
    char name[] = "inputs[0]";
    name[7] = (char)('0' + k);
    RDNA_TRY(rdna__check_tensor("fused", name, inputs[k]));
    RDNA_TRY(rdna__check_same_dtype("fused", name, inputs[k], "out", out));
    RDNA_TRY(rdna__check_broadcast("fused", name, inputs[k], out));
    RDNA_TRY(rdna__check_overlap("fused", "out", out, name, inputs[k]));
  }
  RDNA_TRY(rdna__check_distinct("fused", out));
  RDNA_TRY(rdna__check_stream("fused", stream));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  strided_plan plan;
  rdna__plan_begin(&plan, out);
  for (int k = 0; k < input_count; k++) rdna__plan_add(&plan, inputs[k]);
  rdna__plan_merge(&plan);
  RDNA_TRY(check_plan(&plan));
  return rdna__plan_each(&plan, launch_near, &r);
}
