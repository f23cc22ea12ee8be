#include "math/recurrent/check_sequences.h"

#include "base/options.h"
#include "math/common/plan/check.h"

static rdna_status check_list(const char *op_name, const char *argument, const rdna_tensor *list) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, list));
  RDNA_TRY(rdna__check_dtype(op_name, argument, list, RDNA_I32));
  RDNA_TRY(rdna__check_rank(op_name, argument, list, 1));
  return rdna__check_contiguous(op_name, argument, list);
}

rdna_status rdna__check_sequences(const char *op_name, const rdna_sequences *given, int64_t tokens,
                                  const rdna_tensor *state, rdna_sequences *out_known,
                                  struct sequences *out_sequences) {
  RDNA_TRY(RDNA__OPTIONS(op_name, "sequences", given, out_known));
  const rdna_tensor *starts = out_known->starts, *slots = out_known->slots;
  RDNA_TRY(check_list(op_name, "slots", slots));
  RDNA_TRY(check_list(op_name, "starts", starts));
  RDNA_TRY(rdna__check_size(op_name, "starts", starts, 0, slots->shape[0] + 1, "the number of sequences and one"));
  if (out_known->max_tokens < 1) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: max_tokens is %lld; it must be at least 1", op_name,
                      (long long)out_known->max_tokens);
  }
  if (slots->shape[0] > RDNA__GRID_YZ_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: slots has %lld sequences; up to %d are offered", op_name,
                      (long long)slots->shape[0], RDNA__GRID_YZ_MAX);
  }
  if (tokens > INT32_MAX || state->shape[0] > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: there are %lld tokens, and state has %lld slots; up to %d are offered",
                      op_name, (long long)tokens, (long long)state->shape[0], INT32_MAX);
  }
  *out_sequences = (struct sequences){.starts = starts->data,
                                      .slots = slots->data,
                                      .count = (int32_t)slots->shape[0],
                                      .slot_count = (int32_t)state->shape[0],
                                      .tokens = (int32_t)tokens};
  return RDNA_OK;
}
