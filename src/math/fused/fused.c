#include "rdna/op/fused.h"

#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"
#include "math/strided_plan.h"

/* Whether a chain may have an operation. */
#define MAP_CASE(op, expression) case RDNA_MAP_##op:
#define ZIP_CASE(op, expression) case RDNA_ZIP_##op:
static bool has_map(int op) {
  switch (op) {
    FUSED_MAPS(MAP_CASE) return true;
    default:
      return false;
  }
}
static bool has_zip(int op) {
  switch (op) {
    FUSED_ZIPS(ZIP_CASE) return true;
    default:
      return false;
  }
}

typedef struct request {
  rdna_stream *stream;
  struct fused_args args;
  const char *kernel;
  int64_t values; /* in a vector */
} request;

static rdna_status encode(const rdna_fused_step *step, int number, int inputs, uint32_t *out_word) {
  int ops = step->is_zip ? RDNA_ZIP_COUNT : RDNA_MAP_COUNT;
  const char *kind = step->is_zip ? "zip" : "map";
  if (step->op < 0 || step->op >= ops) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "fused: the operation of step %d is number %d of rdna_%s; there are 0 to %d", number, step->op,
                      kind, ops - 1);
  }
  if (!(step->is_zip ? has_zip(step->op) : has_map(step->op))) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "fused: the operation of step %d is %s, which chains lack; use its own operator", number,
                      step->is_zip ? rdna_zip_name((rdna_zip)step->op) : rdna_map_name((rdna_map)step->op));
  }
  if (step->is_zip && (step->input < 0 || step->input >= inputs)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "fused: step %d takes input %d; there are 0 to %d", number, step->input,
                      inputs - 1);
  }
  *out_word = (uint32_t)step->op | (step->is_zip ? FUSED_IS_ZIP | (uint32_t)step->input << FUSED_INPUT_SHIFT : 0) |
              (step->is_zip && step->input_first ? FUSED_INPUT_FIRST : 0);
  return RDNA_OK;
}

static rdna_status check_count(const char *what, int count, int most) {
  if (count >= 1 && count <= most) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "fused: there are %d %s; it takes 1 to %d", count, what, most);
}

static rdna_status launch_part(const strided_plan *part, void *context) {
  request *r = context;
  struct fused_args args = r->args;
  struct strided_shape shape;
  if (part->rank > FUSED_RANK) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "fused: the tensors have %d dimensions that do not merge; it takes %d: make them "
                      "contiguous",
                      part->rank, FUSED_RANK);
  }
  rdna__plan_shape(part, &shape);
  args.shape.rank = shape.rank;
  args.shape.count = shape.count;
  for (uint32_t d = 0; d < shape.rank; d++) {
    args.shape.size[d] = shape.size[d];
    args.shape.magic[d] = shape.magic[d];
    args.shape.shift[d] = shape.shift[d];
  }
  args.together = part->size[0] % r->values == 0;
  for (int k = 0; k < part->operands; k++) {
    args.operand[k].data = part->operand[k].data;
    for (int d = 0; d < part->rank; d++) {
      int64_t stride = part->operand[k].stride[d];
      if (stride != (int32_t)stride) {
        return rdna__fail(RDNA_UNSUPPORTED, "fused: operand %d has a stride of %lld values; it must fit in 31 bits", k,
                          (long long)stride);
      }
      args.operand[k].stride[d] = (int32_t)stride;
    }
    if (rdna__plan_vector(part, k, r->values)) args.vectors |= 1u << k;
  }
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups("fused", args.shape.count, FUSED_VECTORS * r->values * RDNA__FUSED_THREADS, &grid.x));
  return rdna__launch_named(r->stream, r->kernel, grid, &args);
}

rdna_status rdna_op_fused(rdna_stream *stream, const rdna_fused_step *steps, int step_count,
                          const rdna_tensor *const *inputs, int input_count, const rdna_tensor *out) {
  static const char *const kernels[] = {"fused_f32", "fused_f16", "fused_bf16"};
  RDNA_TRY(check_count("steps", step_count, RDNA_FUSED_MAX_STEPS));
  RDNA_TRY(check_count("inputs", input_count, RDNA_FUSED_MAX_INPUTS));
  RDNA_TRY(rdna__check_float("fused", "out", out));
  request r = {.stream = stream, .kernel = kernels[out->dtype], .values = out->dtype == RDNA_F32 ? 4 : 8};
  r.args.steps = (uint32_t)step_count;
  r.args.inputs = (uint32_t)input_count;
  for (int i = 0; i < step_count; i++) {
    RDNA_TRY(encode(&steps[i], i, input_count, &r.args.step[i]));
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
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "fused: the stream is NULL; pass a stream");
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  strided_plan plan;
  rdna__plan_begin(&plan, out);
  for (int k = 0; k < input_count; k++) rdna__plan_add(&plan, inputs[k]);
  rdna__plan_merge(&plan);
  return rdna__plan_each(&plan, launch_part, &r);
}
