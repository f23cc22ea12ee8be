#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/recurrent/step_kernels.h"

/* rows, units, steps */
static const int64_t edges[][3] = {{2, 3, 2}, {17, 64, 3}, {3, 0, 2}, {1, 65, 2}, {33, 40, 2}, {5, 257, 1}, {70, 9, 2}};
enum { EDGES = sizeof edges / sizeof *edges, MOST_STEPS = 4 };

typedef struct shape {
  int64_t rows, n, steps, tokens, parts;
  bool packed, lstm, gru;
  int32_t begin[MOST_STEPS + 1];
} shape;

static shape pick(rdna__random *random, const char *name, int n) {
  const bool edge = n < EDGES;
  shape s = {.rows = edge ? edges[n][0] : rdna__random_range(random, 1, 40),
             .n = edge ? edges[n][1] : rdna__random_range(random, 1, 100),
             .steps = edge ? edges[n][2] : rdna__random_range(random, 1, MOST_STEPS),
             .packed = n % 2,
             .lstm = !strncmp(name, "lstm", 4),
             .gru = !strncmp(name, "gru", 3)};
  if (!edge && n % 2) s.n = (s.n + 7) / 8 * 8;
  s.parts = s.lstm ? 4 : s.gru ? 3 : 1;
  int64_t rows = s.rows;
  for (int64_t t = 0; t < s.steps; t++) {
    s.begin[t + 1] = s.begin[t] + (int32_t)rows;
    if (s.packed && rows > 1) rows -= (int64_t)rdna__random_below(random, (uint64_t)rows);
  }
  s.tokens = s.begin[s.steps];
  return s;
}

static bool add(rdna__kernel_case *c, rdna__random *random, rdna__buffer_role role, rdna_dtype dtype, int64_t count,
                size_t offset, double scale) {
  void *data = rdna__case_add(c, role, dtype, count, (uint32_t)offset);
  for (int64_t i = 0; data && i < count; i++) store_double(dtype, data, i, scale * rdna__random_normal(random));
  if (data && role != RDNA__IN) {
    const double unit = 0x1p-18 + 4 * case_step(dtype);
    rdna__case_tolerance(c, unit, unit);
  }
  return data;
}
#define ADD(role, member, count, scale) \
  add(out_case, random, role, dtype, count, offsetof(struct step_args, member), scale)

static bool add_begin(rdna__kernel_case *c, const shape *s) {
  if (!s->packed) return true;
  int32_t *begin = rdna__case_add(c, RDNA__IN, RDNA_I32, s->steps + 1, offsetof(struct step_args, layer.begin));
  for (int64_t t = 0; begin && t <= s->steps; t++) begin[t] = s->begin[t];
  return begin;
}

/* Of all steps but one the kernel reads what it will, and writes nothing: so what is written is filled before. */
RDNA_CASE_MAKER(rdna__step_case) {
  const rdna_dtype dtype = case_name_dtype(kernel->name);
  const shape s = pick(random, kernel->name, n);
  const bool gated = s.lstm || s.gru, backward = strstr(kernel->name, "backward");
  struct step_args a = {.layer = {.rows = (int32_t)s.rows,
                                  .steps = (int32_t)s.steps,
                                  .tokens = (int32_t)s.tokens,
                                  .n = (uint32_t)s.n,
                                  .reverse = n / 2 % 2,
                                  .relu = n % 3 == 1},
                        .bands_log = (uint32_t)rdna__random_below(random, STEP_BANDS_LOG + 1),
                        .step = (int32_t)rdna__random_range(random, backward ? -1 : 0, s.steps - !backward),
                        .units = STEP_UNITS_PLAIN >> rdna__random_below(random, 2),
                        .vectors = s.n % (dtype == RDNA_F32 ? 4 : 8) == 0};
  memcpy(out_case->args, &a, sizeof a);
  const int64_t rows = (int64_t)(dtype == RDNA_F32 ? STEP_BAND_F32 : STEP_BAND) << a.bands_log;
  const int64_t units = gated && !backward ? STEP_UNITS : a.units;
  out_case->grid =
      (rdna_grid){(uint32_t)((s.rows + rows - 1) / rows), (uint32_t)((s.n + units - 1) / units + (s.n == 0)), 1};
  snprintf(out_case->label, sizeof out_case->label, "step %d of %d of (%d, %d)%s%s%s, %d rows a group", (int)a.step,
           (int)s.steps, (int)s.rows, (int)s.n, s.packed ? " packed" : "", a.layer.reverse ? " reverse" : "",
           a.layer.relu ? " relu" : "", (int)rows);
  const double weight = s.n ? 0.7 / sqrt((double)s.n) : 0;
  const int64_t of_tokens = s.tokens * s.n, of_rows = s.rows * s.n;
  const rdna__buffer_role made = backward ? RDNA__IN : RDNA__INOUT;
  bool fits = ADD(RDNA__IN, layer.h, of_rows, 0.5) && (!s.lstm || ADD(RDNA__IN, layer.c, of_rows, 0.5)) &&
              add_begin(out_case, &s) && ADD(made, layer.out, of_tokens, 0.5) &&
              (!gated || ADD(made, layer.gates, s.parts * of_tokens, backward ? 0.3 : 1)) &&
              (!s.lstm || ADD(made, layer.cells, of_tokens, 0.5)) && (!s.gru || ADD(made, layer.inner, of_tokens, 0.5));
  if (!backward) {
    fits = fits && ADD(RDNA__IN, layer.weight, s.parts * s.n * s.n, weight) &&
           (!s.gru || n % 3 == 0 || ADD(RDNA__IN, layer.bias, 3 * s.n, 0.5));
  } else {
    fits = fits && ADD(RDNA__IN, transposed, s.parts * s.n * s.n, weight) &&
           (n % 3 == 1 || ADD(RDNA__IN, layer.dout, of_tokens, 0.5)) &&
           (n % 3 == 2 || ADD(RDNA__IN, layer.dh, of_rows, 0.5)) &&
           (!s.lstm || n % 4 == 2 || ADD(RDNA__IN, layer.dc, of_rows, 0.5)) &&
           ADD(RDNA__INOUT, layer.dsums, s.parts * of_tokens, 0.5) &&
           (!s.gru || ADD(RDNA__INOUT, layer.dhidden, s.parts * of_tokens, 0.5)) &&
           ADD(RDNA__INOUT, layer.dfirst, of_rows, 0.5) && (!s.lstm || ADD(RDNA__INOUT, layer.dfirst_c, of_rows, 0.5));
  }
  return fits ? RDNA_OK : rdna__case_no_memory(out_case);
}
