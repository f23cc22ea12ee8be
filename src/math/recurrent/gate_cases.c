#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "math/common/case/values.h"
#include "math/recurrent/gate_kernels.h"
#include "math/recurrent/sequences_case.h"

static struct gate_strides pick_strides(rdna__random *random, int n, int64_t heads, int64_t d) {
  int64_t gap = n % 3 == 2 ? 1 : 4;
  struct gate_strides at = {.head = d + gap * (int64_t)rdna__random_below(random, 2)};
  at.token = heads * at.head + gap * (int64_t)rdna__random_below(random, 3);
  return at;
}

static bool add_values(rdna__kernel_case *c, rdna__random *random, int64_t count, size_t offset, bool hard) {
  float *data = rdna__case_add(c, RDNA__IN, RDNA_F32, count, (uint32_t)offset);
  if (!data) return false;
  (hard ? case_fill_hard(random, RDNA_F32, data, count) : case_fill(random, RDNA_F32, data, count, 2));
  return true;
}

RDNA_CASE_MAKER(rdna__gate_case) {
  static const int32_t edges[][3] = {{2, 2, 128}, {0, 2, 8}, {3, 1, 1}, {1, 3, 257}, {2, 0, 4}, {1, 1, 2048}};
  const bool norm = strstr(kernel->name, "rms_norm") != NULL;
  const rdna_dtype dtype = case_name_float(kernel->name);
  int32_t tokens = (int32_t)rdna__random_range(random, 1, 6), heads = (int32_t)rdna__random_range(random, 1, 6);
  struct gate_args a = {.d = (int32_t)rdna__random_range(random, 1, 80) * (n % 2 ? 4 : 1), .epsilon = 1e-6f};
  if (n < 6) tokens = edges[n][0], heads = edges[n][1], a.d = edges[n][2];
  a.heads = heads, a.rows = (int64_t)tokens * heads, a.one_gate = !norm && n % 4 == 3;
  a.x_at = pick_strides(random, n, heads, a.d);
  a.gate_at = pick_strides(random, n, heads, a.one_gate ? 1 : a.d), a.out_at = pick_strides(random, n, heads, a.d);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  const bool weighted = norm && n % 3 != 1, hard = !norm && n % 2;
  snprintf(out_case->label, sizeof out_case->label, "(%d, %d, %d)%s%s, %u groups", tokens, heads, a.d,
           a.one_gate ? " one gate" : "", weighted ? " weight" : "", out_case->grid.x);
  bool fits = add_values(out_case, random, tokens * a.x_at.token, offsetof(struct gate_args, x), hard) &&
              add_values(out_case, random, tokens * a.gate_at.token, offsetof(struct gate_args, gate), hard) &&
              (!weighted || add_values(out_case, random, a.d, offsetof(struct gate_args, weight), false));
  rdna__case_buffer *out =
      fits ? case_add_unwritten(out_case, dtype, tokens * a.out_at.token, offsetof(struct gate_args, out)) : NULL;
  if (!out) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < a.rows; i++) case_written(out, i / heads * a.out_at.token + i % heads * a.out_at.head, a.d);
  rdna__case_tolerance(out_case, case_smallest(dtype),
                       (norm ? 0x1p-23 * (8 + sqrt(a.d)) : 0x1p-20) + case_spacing(dtype));
  return RDNA_OK;
}
