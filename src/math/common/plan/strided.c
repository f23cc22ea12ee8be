#include "math/common/plan/strided.h"

#include <stdlib.h>

#include "kernel/float8.h"
#include "kernel/host.h"

rdna_status rdna__check_broadcast(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                  const rdna_tensor *out) {
  bool fits = tensor->rank <= out->rank;
  for (int i = 1; fits && i <= tensor->rank; i++) {
    int64_t size = tensor->shape[tensor->rank - i];
    fits = size == 1 || size == out->shape[out->rank - i];
  }
  if (!fits) {
    char text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: %s is %s and out is %s; counted from the last dimension, its sizes must be out's or 1",
                      op_name, argument, rdna__tensor_text(tensor, text), rdna__tensor_text(out, out_text));
  }
  return RDNA_OK;
}

/* Sorts dimensions by the magnitude of the output's stride, smallest first. An insertion sort, which is stable. */
static void sort_dimensions(strided_plan *plan) {
  for (int i = 1; i < plan->rank; i++) {
    for (int j = i; j > 0 && llabs(plan->operand[0].stride[j]) < llabs(plan->operand[0].stride[j - 1]); j--) {
      int64_t size = plan->size[j];
      plan->size[j] = plan->size[j - 1];
      plan->size[j - 1] = size;
      for (int k = 0; k < plan->operands; k++) {
        int64_t *stride = plan->operand[k].stride, held = stride[j];
        stride[j] = stride[j - 1];
        stride[j - 1] = held;
      }
    }
  }
}

/* Drops dimensions of size 1. */
static void drop_ones(strided_plan *plan) {
  int rank = 0;
  for (int d = 0; d < plan->rank; d++) {
    if (plan->size[d] == 1) continue;
    plan->size[rank] = plan->size[d];
    for (int k = 0; k < plan->operands; k++) plan->operand[k].stride[rank] = plan->operand[k].stride[d];
    rank++;
  }
  plan->rank = rank;
}

rdna_status rdna__check_distinct(const char *op_name, const rdna_tensor *out) {
  return rdna__check_written(op_name, "out", out);
}

rdna_status rdna__check_written(const char *op_name, const char *argument, const rdna_tensor *out) {
  strided_plan plan;
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna__plan_begin(&plan, out);
  drop_ones(&plan);
  sort_dimensions(&plan);
  int64_t reach = 0;
  for (int d = 0; d < plan.rank; d++) {
    int64_t stride = llabs(plan.operand[0].stride[d]), part;
    if (stride <= reach || __builtin_mul_overflow(stride, plan.size[d] - 1, &part)) {
      char text[RDNA__TENSOR_TEXT];
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: %s is %s with a stride of %lld where the faster dimensions reach %lld; values of %s "
                        "must not share memory",
                        op_name, argument, rdna__tensor_text(out, text), (long long)stride, (long long)reach, argument);
    }
    reach += part;
  }
  return RDNA_OK;
}

uint64_t rdna__scalar_bits(rdna_dtype dtype, rdna_scalar value) {
  uint64_t bits;
  switch (dtype) {
    case RDNA_F32:
      return scalar_bits((float)value.real);
    case RDNA_F16:
      return f32_to_f16((float)value.real);
    case RDNA_BF16:
      return f32_to_bf16((float)value.real);
    case RDNA_F64:
      __builtin_memcpy(&bits, &value.real, sizeof bits);
      return bits;
    case RDNA_F8_E4M3FN:
      return float8_from_f32(RDNA_F8_E4M3FN, (float)value.real);
    case RDNA_F8_E5M2:
      return float8_from_f32(RDNA_F8_E5M2, (float)value.real);
    case RDNA_F8_E4M3FNUZ:
      return float8_from_f32(RDNA_F8_E4M3FNUZ, (float)value.real);
    case RDNA_F8_E5M2FNUZ:
      return float8_from_f32(RDNA_F8_E5M2FNUZ, (float)value.real);
    case RDNA_BOOL:
      return value.integer != 0;
    default:
      return (uint64_t)value.integer;
  }
}

void rdna__plan_begin(strided_plan *plan, const rdna_tensor *out) {
  *plan = (strided_plan){.rank = out->rank};
  for (int d = 0; d < out->rank; d++) plan->size[d] = out->shape[out->rank - 1 - d];
  rdna__plan_add(plan, out);
}

void rdna__plan_add(strided_plan *plan, const rdna_tensor *input) {
  int k = plan->operands++;
  plan->operand[k].data = input->data;
  plan->operand[k].bytes = (int64_t)rdna_dtype_block_bytes(input->dtype);
  for (int d = 0; d < input->rank; d++) {
    int i = input->rank - 1 - d;
    plan->operand[k].stride[d] = input->shape[i] == 1 ? 0 : input->stride[i];
  }
}

void rdna__plan_merge(strided_plan *plan) {
  drop_ones(plan);
  sort_dimensions(plan);
  int last = 0;
  for (int d = 1; d < plan->rank; d++) {
    bool joins = true;
    for (int k = 0; joins && k < plan->operands; k++) {
      int64_t *stride = plan->operand[k].stride;
      joins = stride[d] == stride[last] * plan->size[last];
    }
    if (joins) {
      plan->size[last] *= plan->size[d];
      continue;
    }
    last++;
    plan->size[last] = plan->size[d];
    for (int k = 0; k < plan->operands; k++) plan->operand[k].stride[last] = plan->operand[k].stride[d];
  }
  if (plan->rank == 0) {
    plan->size[0] = 1;
    for (int k = 0; k < plan->operands; k++) plan->operand[k].stride[0] = 1;
  }
  plan->rank = last + 1;
}

void rdna__plan_shape(const strided_plan *plan, struct strided_shape *out_shape) {
  *out_shape = (struct strided_shape){.rank = (uint32_t)plan->rank, .count = (uint32_t)rdna__plan_count(plan)};
  for (int d = 0; d < plan->rank; d++) strided_set_size(out_shape, (uint32_t)d, (uint32_t)plan->size[d]);
}

int64_t rdna__plan_count(const strided_plan *plan) {
  int64_t count = 1;
  for (int d = 0; d < plan->rank; d++) count *= plan->size[d];
  return count;
}

bool rdna__plan_vector(const strided_plan *plan, int k, int64_t values) {
  int64_t bytes = values * plan->operand[k].bytes;
  int64_t align = bytes < 16 ? bytes : 16;
  if (plan->operand[k].stride[0] != 1 || plan->size[0] % values || (uintptr_t)plan->operand[k].data % (uintptr_t)align)
    return false;
  for (int d = 1; d < plan->rank; d++) {
    if (plan->operand[k].stride[d] * plan->operand[k].bytes % align) return false;
  }
  return true;
}

rdna_status rdna__plan_halves(const strided_plan *plan, int d,
                              rdna_status (*launch)(const strided_plan *part, void *context), void *context) {
  int64_t half = plan->size[d] / 2;
  if (half > 16) half = half / 16 * 16;
  strided_plan part = *plan;
  part.size[d] = half;
  RDNA_TRY(launch(&part, context));
  part.size[d] = plan->size[d] - half;
  for (int k = 0; k < plan->operands; k++) {
    if (part.operand[k].data) part.operand[k].data += half * plan->operand[k].stride[d] * plan->operand[k].bytes;
  }
  return launch(&part, context);
}

typedef struct each_part {
  rdna_status (*launch)(const strided_plan *part, void *context);
  void *context;
} each_part;

static rdna_status launch_each(const strided_plan *part, void *context) {
  const each_part *each = context;
  return rdna__plan_each(part, each->launch, each->context);
}

rdna_status rdna__plan_each(const strided_plan *plan, rdna_status (*launch)(const strided_plan *part, void *context),
                            void *context) {
  if (rdna__plan_count(plan) <= STRIDED_MAX_COUNT) return launch(plan, context);
  int d = plan->rank - 1; /* the slowest dimension that is more than one */
  while (plan->size[d] == 1) d--;
  return rdna__plan_halves(plan, d, launch_each, &(each_part){launch, context});
}
