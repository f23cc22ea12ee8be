#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/recurrent/layer_kernels.h"

static const int64_t edges[][3] = {{2, 3, 4}, {1, 64, 3}, {3, 0, 2}, {2, 5, 0}, {4, 63, 2}, {1, 1, 6}};

/* Sizes of a case: rows, units, steps, and where packed steps begin. */
typedef struct shape {
  int64_t rows, n, steps, tokens, parts;
  bool packed, lstm, gru;
  int32_t begin[16];
} shape;

static shape pick(rdna__random *random, const char *name, int n) {
  shape s = {.rows = n < 6 ? edges[n][0] : rdna__random_range(random, 1, 5),
             .n = n < 6 ? edges[n][1] : rdna__random_range(random, 1, LAYER_UNITS),
             .steps = n < 6 ? edges[n][2] : rdna__random_range(random, 1, 7),
             .packed = n % 2,
             .lstm = !strncmp(name, "lstm", 4),
             .gru = !strncmp(name, "gru", 3)};
  s.parts = s.lstm ? 4 : s.gru ? 3 : 1;
  int64_t rows = s.rows;
  for (int64_t t = 0; t < s.steps; t++) {
    s.begin[t + 1] = s.begin[t] + (int32_t)rows;
    if (s.packed && rows > 1) rows -= (int64_t)rdna__random_below(random, (uint64_t)rows);
  }
  s.tokens = s.begin[s.steps];
  return s;
}

/* States are sums over n, of terms of 1 / sqrt(n): errors of a step fade in the next, and no gate is at its end. */
static bool add(rdna__kernel_case *c, rdna__random *random, rdna__buffer_role role, rdna_dtype dtype, int64_t count,
                size_t offset, double scale) {
  void *data = rdna__case_add(c, role, dtype, count, (uint32_t)offset);
  for (int64_t i = 0; data && role != RDNA__OUT && i < count; i++)
    store_double(dtype, data, i, scale * rdna__random_normal(random));
  if (data && role != RDNA__IN) {
    const double unit = 0x1p-18 + 4 * case_step(dtype);
    rdna__case_tolerance(c, unit, unit);
  }
  return data;
}
#define ADD(role, member, count, scale) \
  add(out_case, random, role, dtype, count, offsetof(struct layer_args, member), scale)

static bool add_begin(rdna__kernel_case *c, const shape *s) {
  if (!s->packed) return true;
  int32_t *begin = rdna__case_add(c, RDNA__IN, RDNA_I32, s->steps + 1, offsetof(struct layer_args, begin));
  for (int64_t t = 0; begin && t <= s->steps; t++) begin[t] = s->begin[t];
  return begin;
}

RDNA_CASE_MAKER(rdna__layer_case) {
  const rdna_dtype dtype = case_name_dtype(kernel->name);
  const shape s = pick(random, kernel->name, n);
  struct layer_args a = {.rows = (int32_t)s.rows,
                         .steps = (int32_t)s.steps,
                         .tokens = (int32_t)s.tokens,
                         .n = (uint32_t)s.n,
                         .reverse = n / 2 % 2,
                         .relu = n % 3 == 1};
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%d steps of (%d, %d)%s%s%s, %u groups", (int)s.steps, (int)s.rows,
           (int)s.n, s.packed ? " packed" : "", a.reverse ? " reverse" : "", a.relu ? " relu" : "", out_case->grid.x);
  const double weight = s.n ? 0.7 / sqrt((double)s.n) : 0;
  const bool gated = s.lstm || s.gru, backward = strstr(kernel->name, "backward");
  const rdna__buffer_role made = backward ? RDNA__IN : RDNA__OUT, summed = backward ? RDNA__IN : RDNA__INOUT;
  const int64_t of_tokens = s.tokens * s.n, of_rows = s.rows * s.n;
  bool fits = ADD(RDNA__IN, weight, s.parts * s.n * s.n, weight) && ADD(RDNA__IN, h, of_rows, 0.5) &&
              (!s.lstm || ADD(RDNA__IN, c, of_rows, 0.5)) && add_begin(out_case, &s) &&
              ADD(gated ? made : summed, out, of_tokens, backward ? 0.3 : 0.5) &&
              (!gated || ADD(summed, gates, s.parts * of_tokens, backward ? 0.3 : 1)) &&
              (!s.lstm || ADD(made, cells, of_tokens, 0.5)) && (!s.gru || ADD(made, inner, of_tokens, 0.5)) &&
              (!s.gru || backward || n % 3 == 0 || ADD(RDNA__IN, bias, 3 * s.n, 0.5));
  if (backward) {
    fits =
        fits && (n % 3 == 1 || ADD(RDNA__IN, dout, of_tokens, 0.5)) &&
        (n % 3 == 2 || ADD(RDNA__IN, dh, of_rows, 0.5)) && (!s.lstm || n % 4 == 2 || ADD(RDNA__IN, dc, of_rows, 0.5)) &&
        ADD(RDNA__OUT, dsums, s.parts * of_tokens, 0) && (!s.gru || ADD(RDNA__OUT, dhidden, s.parts * of_tokens, 0)) &&
        ADD(RDNA__OUT, dfirst, of_rows, 0) && (!s.lstm || ADD(RDNA__OUT, dfirst_c, of_rows, 0));
  }
  return fits ? RDNA_OK : rdna__case_no_memory(out_case);
}
