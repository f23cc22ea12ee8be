#include <stdio.h>

#include "math/common/case/values.h"
#include "math/recurrent/causal_conv_kernels.h"
#include "math/recurrent/sequences_case.h"

static bool add_filled(rdna__kernel_case *c, rdna__random *random, rdna__buffer_role role, int64_t count, size_t offset,
                       bool hard) {
  float *data = rdna__case_add(c, role, RDNA_F32, count, (uint32_t)offset);
  if (!data) return false;
  case_fill(random, RDNA_F32, data, count, 1);
  if (hard && count > 0) data[rdna__random_below(random, (uint64_t)count)] = NAN;
  if (hard && count > 0) data[rdna__random_below(random, (uint64_t)count)] = INFINITY;
  return true;
}

RDNA_CASE_MAKER(rdna__causal_conv_case) {
  static const int32_t edges[] = {CAUSAL_CONV_THREADS, 1, 5, CAUSAL_CONV_THREADS + 1, 513};
  const int width = kernel->name[strlen(kernel->name) - 1] - '0';
  const int32_t longest = n % 3 == 2 ? 3 : 2 * CAUSAL_CONV_PIECE + 7;
  const bool hard = n % 4 == 3;
  struct causal_conv_args args = {.channels = n < 5 ? edges[n] : (int32_t)rdna__random_range(random, 1, 200),
                                  .silu = n % 2,
                                  .sequences = case_sequences(random, n, longest)};
  const int64_t tokens = args.sequences.tokens, slots = args.sequences.slot_count;
  args.x_stride = args.channels + (int64_t)rdna__random_below(random, 3);
  args.out_stride = args.channels + (int64_t)rdna__random_below(random, 3);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)(args.channels + CAUSAL_CONV_THREADS - 1) / CAUSAL_CONV_THREADS,
                               (uint32_t)args.sequences.count, (uint32_t)rdna__random_range(random, 1, 5)};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %d, %d sequences, %u parts%s", (long long)tokens,
           args.channels, args.sequences.count, out_case->grid.z, args.silu ? ", silu" : "");
  bool fits =
      add_filled(out_case, random, RDNA__IN, tokens * args.x_stride, offsetof(struct causal_conv_args, x), hard) &&
      add_filled(out_case, random, RDNA__IN, (int64_t)args.channels * width, offsetof(struct causal_conv_args, weight),
                 false) &&
      add_filled(out_case, random, RDNA__INOUT, slots * args.channels * (width - 1),
                 offsetof(struct causal_conv_args, state), hard);
  const int32_t *starts = fits ? case_add_sequences(out_case, random, n, &args.sequences, longest,
                                                    offsetof(struct causal_conv_args, sequences))
                               : NULL;
  rdna__case_buffer *out =
      starts ? case_add_unwritten(out_case, RDNA_F32, tokens * args.out_stride, offsetof(struct causal_conv_args, out))
             : NULL;
  if (!out) return rdna__case_no_memory(out_case);
  for (int32_t t = starts[0]; t < starts[args.sequences.count]; t++) {
    case_written(out, t * args.out_stride, args.channels);
  }
  if (args.silu) rdna__case_tolerance(out_case, 0x1p-120, 0x1p-19); /* close_silu; the sums are the same */
  return RDNA_OK;
}
