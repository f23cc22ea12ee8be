/* Runs the steps of a plan. */
#include <stdlib.h>

#include "graph/replay.h"

enum { FEW_INPUTS = 16 }; /* of one step, that need no memory */

/* ---- steps that are more than one operator ---- */

/* rdna_op_fused takes strides of 31 bits. */
static bool has_long_strides(const rdna_tensor *tensor) {
  for (int i = 0; i < tensor->rank; i++)
    if (tensor->stride[i] > INT32_MAX || tensor->stride[i] < -INT32_MAX) return true;
  return false;
}

static rdna_status run_chain(const rdna_plan *plan, const rdna__step *step, rdna_array *const *inputs,
                             rdna_array **out) {
  const rdna__chain *chain = step->chain;
  const rdna__type *type = &step->node->type;
  const rdna_tensor *tensors[RDNA_FUSED_MAX_INPUTS];
  rdna_array *dense[RDNA_FUSED_MAX_INPUTS] = {NULL}, *made = NULL;
  rdna_status status = rdna__array_make(plan->stream, type->dtype, type->rank, type->shape, &made);
  for (int i = 0; i < chain->input_count && status == RDNA_OK; i++) {
    if (has_long_strides(&inputs[i]->tensor)) status = rdna_array_contiguous(inputs[i], &dense[i]);
    tensors[i] = dense[i] ? &dense[i]->tensor : &inputs[i]->tensor;
  }
  if (status == RDNA_OK)
    status = rdna_op_fused(plan->stream, chain->steps, chain->step_count, tensors, chain->input_count, &made->tensor);
  for (int i = 0; i < chain->input_count; i++) rdna_array_release(dense[i]);
  return rdna__array_finish(status, made, out);
}

/* |inputs| of a product are a, b, the bias or NULL, the residual or NULL. */
static rdna_status run_product(const rdna_plan *plan, const rdna__step *step, rdna_array *const *inputs,
                               rdna_array **out) {
  const rdna__type *type = &step->node->type;
  if (step->node->op->run_activated)
    return step->node->op->run_activated(step->node, inputs, step->epilogue->activation, out);
  rdna_array *bias = NULL, *residual = NULL, *made = NULL;
  rdna_status status = RDNA_OK;
  if (inputs[2]) status = rdna_array_reshape(inputs[2], 1, &type->shape[1], &bias);
  if (bias) {
    rdna_array *given = bias;
    status = rdna_array_contiguous(given, &bias);
    rdna_array_release(given);
  }
  if (status == RDNA_OK && inputs[3]) status = rdna_array_contiguous(inputs[3], &residual);
  if (status == RDNA_OK) status = rdna__array_make(plan->stream, type->dtype, type->rank, type->shape, &made);
  rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .activation = step->epilogue->activation};
  epilogue.bias = bias ? &bias->tensor : NULL;
  epilogue.residual = residual ? &residual->tensor : NULL;
  if (status == RDNA_OK)
    status = rdna_op_gemm_epilogue(plan->stream, &epilogue, &inputs[0]->tensor, &inputs[1]->tensor, &made->tensor);
  rdna_array_release(bias);
  rdna_array_release(residual);
  return rdna__array_finish(status, made, out);
}

/* ---- the run ---- */

static rdna_status check_inputs(const rdna_plan *plan, rdna_array *const *inputs, int input_count) {
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  if (input_count != plan->input_count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_plan_run: the plan has %d inputs, and %d are given",
                      plan->input_count, input_count);
  for (int i = 0; i < input_count; i++) {
    if (!inputs[i]) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_plan_run: input %d is NULL", i);
    const rdna__type *type = &plan->inputs[i]->type;
    const rdna_tensor *tensor = &inputs[i]->tensor;
    rdna__type given = {tensor->dtype, tensor->rank, {0}};
    for (int d = 0; d < tensor->rank; d++) given.shape[d] = tensor->shape[d];
    if (given.dtype != type->dtype || !rdna__same_shape(&given, type))
      return rdna__node_annotate(
          plan->inputs[i], rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_plan_run: input %d is %s, and was recorded as %s", i,
                                      rdna__array_text(tensor, first), rdna__type_text(type, second)));
    if (inputs[i]->stream != plan->stream)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_plan_run: input %d belongs to another stream than the plan", i);
  }
  return RDNA_OK;
}

static void drop(rdna_array **values, int32_t at) {
  rdna_array_release(values[at]);
  values[at] = NULL;
}

/* Gives |step| its inputs, of which |inputs| has room. */
static rdna_status call(const rdna_plan *plan, const rdna__step *step, rdna_array **values, rdna_array **inputs,
                        rdna_array **out) {
  int count = rdna__step_input_count(step);
  for (int i = 0; i < count; i++) {
    int32_t at = rdna__step_input(step, i);
    inputs[i] = at < 0 ? NULL : values[at];
  }
  if (step->chain) return run_chain(plan, step, inputs, out);
  if (step->epilogue) return run_product(plan, step, inputs, out);
  return step->node->op->run(step->node, inputs, step->wanted, out);
}

static rdna_status run_step(const rdna_plan *plan, const rdna__step *step, rdna_array **values) {
  rdna_array *few[FEW_INPUTS], **inputs = few, *out[RDNA__MOST_RESULTS] = {NULL};
  if (rdna__step_input_count(step) > FEW_INPUTS) inputs = malloc((size_t)rdna__step_input_count(step) * sizeof *inputs);
  rdna_status status = inputs ? call(plan, step, values, inputs, out)
                              : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a step of a plan");
  if (inputs != few) free(inputs);
  if (status != RDNA_OK) {
    if (step->chain) status = rdna__annotate(status, "a chain of %d operations", step->chain->step_count);
    return rdna__node_annotate(step->node, status);
  }
  for (int i = 0; i < RDNA__MOST_RESULTS; i++)
    if (out[i]) values[step->result + i] = out[i];
  for (int32_t at = step->dead; at >= 0; at = plan->values[at].next_dead) drop(values, at);
  return RDNA_OK;
}

rdna_status rdna__plan_run_steps(const rdna_plan *plan, rdna_array *const *inputs, rdna_array **outputs) {
  rdna_array **values = calloc((size_t)plan->value_count + 1, sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld values", (long long)plan->value_count);
  for (int i = 0; i < plan->input_count; i++)
    if (plan->input_values[i] >= 0) values[plan->input_values[i]] = rdna_array_retain(inputs[i]);
  for (int64_t i = 0; i < plan->value_count; i++)
    if (plan->values[i].node->value) values[i] = rdna_array_retain(plan->values[i].node->value);
  rdna_status status = RDNA_OK;
  for (int64_t i = 0; i < plan->step_count && status == RDNA_OK; i++) status = run_step(plan, &plan->steps[i], values);
  for (int i = 0; i < plan->output_count && status == RDNA_OK; i++)
    outputs[i] = rdna_array_retain(values[plan->output_values[i]]);
  for (int64_t i = 0; i < plan->value_count; i++) rdna_array_release(values[i]);
  free(values);
  return status;
}

rdna_status rdna_plan_run(const rdna_plan *plan, rdna_array *const *inputs, int input_count, rdna_array **outputs) {
  if (!plan || !outputs || (input_count > 0 && !inputs))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_plan_run needs a plan, its inputs and a place for its outputs");
  RDNA_TRY(check_inputs(plan, inputs, input_count));
  bool done = false;
  if (plan->replay) RDNA_TRY(rdna__replay_run(plan, inputs, outputs, &done));
  return done ? RDNA_OK : rdna__plan_run_steps(plan, inputs, outputs);
}

rdna_status rdna_evaluate(rdna_node *const *outputs, int output_count, rdna_array **out_arrays) {
  rdna_plan *plan;
  RDNA_TRY(rdna_plan_create(outputs, output_count, NULL, 0, &plan));
  rdna_status status = rdna_plan_run(plan, NULL, 0, out_arrays);
  rdna_plan_release(plan);
  return status;
}
