#include <math.h>
#include <stdio.h>

#include "math/common/case/fill.h"
#include "math/recurrent/gated_delta_kernels.h"
#include "math/recurrent/sequences_case.h"

/* Strides of (tokens, heads, repeats, size), key head by key head or repeat by repeat, perhaps with gaps. */
static struct gated_delta_strides pick_strides(rdna__random *random, int64_t heads, int64_t repeats, int64_t size,
                                               int64_t gap) {
  struct gated_delta_strides at = {.token = heads * repeats * size + gap * (int64_t)rdna__random_below(random, 3)};
  bool by_key_heads = rdna__random_below(random, 2);
  at.head = by_key_heads ? repeats * size : size;
  at.repeat = by_key_heads ? size : heads * size;
  return at;
}

static bool add_filled(rdna__kernel_case *c, rdna__random *random, rdna__buffer_role role, int64_t count, size_t offset,
                       double deviation) {
  float *data = rdna__case_add(c, role, RDNA_F32, count, (uint32_t)offset);
  if (data) case_fill(random, RDNA_F32, data, count, deviation);
  return data != NULL;
}

static bool add_inputs(rdna__kernel_case *c, rdna__random *random, const struct gated_delta_args *a) {
  const int64_t tokens = a->sequences.tokens, heads = (int64_t)a->k_heads * a->repeats;
  bool fits = add_filled(c, random, RDNA__IN, tokens * a->q_at.token, offsetof(struct gated_delta_args, q), 1) &&
              add_filled(c, random, RDNA__IN, tokens * a->k_at.token, offsetof(struct gated_delta_args, k), 1) &&
              add_filled(c, random, RDNA__IN, tokens * a->v_at.token, offsetof(struct gated_delta_args, v), 1) &&
              add_filled(c, random, RDNA__IN, tokens * a->a_at.token, offsetof(struct gated_delta_args, a), 3) &&
              add_filled(c, random, RDNA__IN, tokens * a->b_at.token, offsetof(struct gated_delta_args, b), 2) &&
              add_filled(c, random, RDNA__IN, heads, offsetof(struct gated_delta_args, dt), 1);
  float *rate = fits ? rdna__case_add(c, RDNA__IN, RDNA_F32, heads, offsetof(struct gated_delta_args, rate)) : NULL;
  for (int64_t i = 0; rate && i < heads; i++) rate[i] = -(float)exp(rdna__random_normal(random));
  return rate != NULL;
}

static void mark_out(rdna__case_buffer *out, const struct gated_delta_args *a, const int32_t *starts) {
  for (int64_t t = starts[0]; t < starts[a->sequences.count]; t++) {
    for (int64_t h = 0; h < a->k_heads; h++) {
      for (int64_t r = 0; r < a->repeats; r++) {
        case_written(out, t * a->out_at.token + h * a->out_at.head + r * a->out_at.repeat, a->d_v);
      }
    }
  }
}

/* No |v| is larger than about 5, and a state never grows beyond what its tokens ask of it: (I - beta k k^T) has a norm
 * of 1. Each token adds the roundings of a sum of d_k products, which later tokens carry on; roundings go either way,
 * so that n of them come to sqrt(n). */
static double tolerance(const struct gated_delta_args *a, int32_t longest) {
  return 0x1p-23 * (4 + sqrt(a->d_k)) * sqrt(longest);
}

RDNA_CASE_MAKER(rdna__gated_delta_case) {
  static const int32_t keys[] = {4, 256, 20, 128, 36, 64};
  const bool any = strstr(kernel->name, "any") != NULL;
  const int32_t longest = n % 3 == 2 ? 3 : n == 0 ? 9 : 40;
  const int rows = any ? GATED_DELTA_ROWS_ANY : GATED_DELTA_ROWS_128;
  struct gated_delta_args a = {.sequences = case_sequences(random, n, longest),
                               .k_heads = (int32_t)rdna__random_range(random, 1, 3),
                               .repeats = (int32_t)rdna__random_range(random, 1, 3),
                               .d_k = any ? keys[n % 6] : 128,
                               .d_v = n % 2 ? 2 * GATED_DELTA_SLICE(rows) : (int32_t)rdna__random_range(random, 1, 40),
                               .scale = 0.25f,
                               .epsilon = n % 4 == 3 ? 0.5f : 1e-6f};
  const int64_t tokens = a.sequences.tokens, heads = (int64_t)a.k_heads * a.repeats;
  a.q_at = pick_strides(random, a.k_heads, 1, a.d_k, 4), a.k_at = pick_strides(random, a.k_heads, 1, a.d_k, 8);
  a.v_at = pick_strides(random, a.k_heads, a.repeats, a.d_v, 1);
  a.a_at = pick_strides(random, a.k_heads, a.repeats, 1, 1), a.b_at = pick_strides(random, a.k_heads, a.repeats, 1, 5);
  a.rate_at = pick_strides(random, a.k_heads, a.repeats, 1, 0);
  a.dt_at = pick_strides(random, a.k_heads, a.repeats, 1, 0);
  a.out_at = pick_strides(random, a.k_heads, a.repeats, a.d_v, 1);
  memcpy(out_case->args, &a, sizeof a);
  uint32_t slices = (uint32_t)(a.d_v - 1) / GATED_DELTA_SLICE(rows) + 1;
  out_case->grid = (rdna_grid){(uint32_t)heads * slices, (uint32_t)a.sequences.count, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld tokens, %d sequences, %d x %d heads, d %d, %d",
           (long long)tokens, a.sequences.count, a.k_heads, a.repeats, a.d_k, a.d_v);
  if (!add_inputs(out_case, random, &a)) return rdna__case_no_memory(out_case);
  const int32_t *starts =
      case_add_sequences(out_case, random, n, &a.sequences, longest, offsetof(struct gated_delta_args, sequences));
  if (!starts || !add_filled(out_case, random, RDNA__INOUT, a.sequences.slot_count * heads * a.d_v * a.d_k,
                             offsetof(struct gated_delta_args, state), 1)) {
    return rdna__case_no_memory(out_case);
  }
  rdna__case_tolerance(out_case, tolerance(&a, longest), 0);
  rdna__case_buffer *out =
      case_add_unwritten(out_case, RDNA_F32, tokens * a.out_at.token, offsetof(struct gated_delta_args, out));
  if (!out) return rdna__case_no_memory(out_case);
  mark_out(out, &a, starts);
  rdna__case_tolerance(out_case, tolerance(&a, longest), 0);
  return RDNA_OK;
}
