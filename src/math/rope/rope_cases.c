#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/rope/rope_kernels.h"

/* No tolerances here: the kernels and their twins compute the same bits. */

/* tokens, heads, head_dim, n_rot */
static const int32_t edges[][4] = {{2, 1, 4, 4},  {0, 2, 8, 8},   {1, 32, 128, 128}, {3, 2, 64, 32},
                                   {2, 3, 80, 0}, {1, 1, 1, 0},   {3, 5, 33, 20},    {2, 2, 1040, 1040},
                                   {2, 0, 8, 8},  {5, 4, 96, 80}, {1, 1, 700, 602},  {4, 8, 128, 128}};

struct shape {
  int32_t tokens, heads, head_dim, n_rot;
};

static struct shape pick_shape(rdna__random *random, int n) {
  const int edge_count = (int)(sizeof edges / sizeof edges[0]);
  if (n < edge_count) return (struct shape){edges[n][0], edges[n][1], edges[n][2], edges[n][3]};
  int32_t head_dim = (int32_t)rdna__random_range(random, 1, 300);
  if (n % 2) head_dim = head_dim / 16 * 16 + 16;
  int32_t n_rot = n % 3 ? head_dim / 2 * 2 : (int32_t)rdna__random_range(random, 0, head_dim / 2) * 2;
  return (struct shape){(int32_t)rdna__random_range(random, 1, 6), (int32_t)rdna__random_range(random, 1, 9), head_dim,
                        n_rot};
}

/* The strides of a (rows, heads, dim) buffer, perhaps with gaps after heads and after rows; |count| is what it spans.
 */
struct layout {
  int64_t row_stride, head_stride, count;
};

static struct layout pick_layout(rdna__random *random, int n, int64_t rows, int64_t heads, int64_t dim) {
  int64_t gap = n < 12 ? 0 : n % 2 ? 8 : 1;
  struct layout l;
  l.head_stride = dim + gap * (int64_t)rdna__random_below(random, 2);
  l.row_stride = heads * l.head_stride + gap * (int64_t)rdna__random_below(random, 3);
  l.count = rows > 0 && heads > 0 ? (rows - 1) * l.row_stride + (heads - 1) * l.head_stride + dim : 0;
  return l;
}

/* Adds an output whose rows rows[0] to rows[row_count - 1] are written, or the first row_count when |rows| is NULL. All
 * else must stay poison. */
static bool add_output(rdna__kernel_case *c, rdna_dtype dtype, const struct layout *l, int64_t row_count,
                       const int32_t *rows, int64_t slots, int64_t heads, int64_t dim, size_t offset) {
  if (!rdna__case_add(c, RDNA__OUT, dtype, l->count, (uint32_t)offset)) return false;
  rdna__case_buffer *buffer = &c->buffers[c->buffer_count - 1];
  buffer->untouched = malloc((size_t)l->count + 1);
  if (!buffer->untouched) return false;
  memset(buffer->untouched, 1, (size_t)l->count);
  for (int64_t i = 0; i < row_count; i++) {
    int64_t row = rows ? rows[i] : i;
    if (row < 0 || row >= slots) continue;
    for (int64_t h = 0; h < heads; h++) {
      memset(buffer->untouched + row * l->row_stride + h * l->head_stride, 0, (size_t)dim);
    }
  }
  return true;
}

static bool add_values(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, int64_t count, size_t offset) {
  void *data = rdna__case_add(c, RDNA__IN, dtype, count, (uint32_t)offset);
  if (!data) return false;
  case_fill(random, dtype, data, count, 1);
  if (count > 0) case_set(dtype, data, (int64_t)rdna__random_below(random, (uint64_t)count), NAN);
  if (count > 0) case_set(dtype, data, (int64_t)rdna__random_below(random, (uint64_t)count), INFINITY);
  return true;
}

/* Adds a buffer that is rotated in place. */
static bool add_turned(rdna__kernel_case *c, rdna__random *random, int64_t count, size_t offset) {
  void *data = rdna__case_add(c, RDNA__INOUT, RDNA_F32, count, (uint32_t)offset);
  if (data) case_fill(random, RDNA_F32, data, count, 1);
  return data != NULL;
}

/* Adds positions, in one of four cases up to 30 million, where large angles need the long reduction, and frequencies of
 * base 10000 as Llama has. */
static bool add_angles(rdna__kernel_case *c, rdna__random *random, int n, const struct shape *s, size_t positions,
                       size_t inv_freq) {
  int32_t *p = rdna__case_add(c, RDNA__IN, RDNA_I32, s->tokens, (uint32_t)positions);
  float *f = rdna__case_add(c, RDNA__IN, RDNA_F32, s->n_rot / 2, (uint32_t)inv_freq);
  if (!p || !f) return false;
  for (int32_t t = 0; t < s->tokens; t++) {
    p[t] = n % 4 == 3 ? (int32_t)rdna__random_below(random, 30000000) : (int32_t)rdna__random_below(random, 9000);
  }
  for (int32_t i = 0; i < s->n_rot / 2; i++) f[i] = (float)pow(10000, -2.0 * i / s->n_rot);
  return true;
}

static rdna_status no_memory(const struct shape *s) {
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case of (%d, %d, %d)", s->tokens, s->heads, s->head_dim);
}

RDNA_CASE_MAKER(rdna__rope_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct shape s = pick_shape(random, n);
  struct layout x = pick_layout(random, n, s.tokens, s.heads, s.head_dim);
  struct layout out = pick_layout(random, n, s.tokens, s.heads, s.head_dim);
  struct rope_args args = {.x_token_stride = x.row_stride,
                           .x_head_stride = x.head_stride,
                           .out_token_stride = out.row_stride,
                           .out_head_stride = out.head_stride,
                           .tokens = s.tokens,
                           .heads = s.heads,
                           .head_dim = s.head_dim,
                           .n_rot = s.n_rot,
                           .interleaved = n / 2 % 2,
                           .scale = n % 5 == 4 ? 1.25f : 1.0f};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)s.tokens, (uint32_t)rdna__random_range(random, 1, s.heads + 1), 1};
  snprintf(out_case->label, sizeof out_case->label, "(%d, %d, %d) n_rot %d %s parts %u", s.tokens, s.heads, s.head_dim,
           s.n_rot, args.interleaved ? "interleaved" : "halves", out_case->grid.y);
  bool fits =
      add_values(out_case, random, dtype, x.count, offsetof(struct rope_args, x)) &&
      add_angles(out_case, random, n, &s, offsetof(struct rope_args, positions),
                 offsetof(struct rope_args, inv_freq)) &&
      add_output(out_case, dtype, &out, s.tokens, NULL, s.tokens, s.heads, s.head_dim, offsetof(struct rope_args, out));
  return fits ? RDNA_OK : no_memory(&s);
}

/* Gives every token another row of the cache, except some that get one outside of it. */
static void pick_rows(rdna__random *random, int32_t *rows, int32_t tokens, int64_t slots) {
  int64_t next = (int64_t)rdna__random_below(random, (uint64_t)(slots - tokens) + 1);
  for (int32_t t = 0; t < tokens; t++) {
    uint64_t pick = rdna__random_below(random, 8);
    rows[t] = pick == 0 ? -1 : pick == 1 ? (int32_t)slots : (int32_t)(next + t);
  }
  for (int32_t t = tokens - 1; t > 0; t--) {
    int32_t other = (int32_t)rdna__random_below(random, (uint64_t)t + 1), row = rows[t];
    rows[t] = rows[other];
    rows[other] = row;
  }
}

static bool add_norms(rdna__kernel_case *c, rdna__random *random, bool with_q, int32_t k_dim, int32_t v_dim) {
  bool of_k = rdna__random_below(random, 4) > 0, of_v = rdna__random_below(random, 2) > 0;
  return (!with_q || add_values(c, random, RDNA_F32, k_dim, offsetof(struct rope_kv_write_args, q_norm))) &&
         (!of_k || add_values(c, random, RDNA_F32, k_dim, offsetof(struct rope_kv_write_args, k_norm))) &&
         (!of_v || add_values(c, random, RDNA_F32, v_dim, offsetof(struct rope_kv_write_args, v_norm)));
}

RDNA_CASE_MAKER(rdna__rope_kv_write_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct shape s = pick_shape(random, n);
  int32_t v_dim = n % 3 == 2 ? s.head_dim + 16 : s.head_dim;
  int64_t slots = s.tokens + (int64_t)rdna__random_below(random, 8);
  struct layout k = pick_layout(random, n, s.tokens, s.heads, s.head_dim);
  struct layout v = pick_layout(random, n, s.tokens, s.heads, v_dim);
  struct layout k_cache = pick_layout(random, n, slots, s.heads, s.head_dim);
  struct layout v_cache = pick_layout(random, n, slots, s.heads, v_dim);
  struct rope_kv_write_args args = {.k_token_stride = k.row_stride,
                                    .k_head_stride = k.head_stride,
                                    .v_token_stride = v.row_stride,
                                    .v_head_stride = v.head_stride,
                                    .k_slot_stride = k_cache.row_stride,
                                    .k_cache_head_stride = k_cache.head_stride,
                                    .v_slot_stride = v_cache.row_stride,
                                    .v_cache_head_stride = v_cache.head_stride,
                                    .slots = slots,
                                    .tokens = s.tokens,
                                    .heads = s.heads,
                                    .k_dim = s.head_dim,
                                    .v_dim = v_dim,
                                    .n_rot = s.n_rot,
                                    .interleaved = n / 2 % 2,
                                    .scale = n % 5 == 4 ? 1.25f : 1.0f};
  struct layout q = {0}, q_out = {0};
  const bool apart = n % 4 == 1; /* q to a place of its own */
  if (n % 2 == 1) {
    args.q_heads = (int32_t)rdna__random_range(random, 1, 9);
    args.q_parts = (int32_t)rdna__random_range(random, 1, args.q_heads + 1);
    q = pick_layout(random, n, s.tokens, args.q_heads, s.head_dim);
    args.q_token_stride = q.row_stride, args.q_head_stride = q.head_stride;
    if (apart) q_out = pick_layout(random, n, s.tokens, args.q_heads, s.head_dim);
    args.q_out_token_stride = q_out.row_stride, args.q_out_head_stride = q_out.head_stride;
  }
  bool normed = n % 4 > 1 && s.head_dim <= ROPE_NORM_DIM; /* of heads few enough for one group */
  uint32_t parts = (uint32_t)(args.q_parts + rdna__random_range(random, 1, s.heads + 1));
  args.epsilon = 1e-5f;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)s.tokens, parts, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%d, %d, %d + %d) n_rot %d %s slots %lld parts %u, %d of q%s%s",
           s.tokens, s.heads, s.head_dim, v_dim, s.n_rot, args.interleaved ? "interleaved" : "halves", (long long)slots,
           parts, args.q_parts, apart ? " apart" : "", normed ? ", normed" : "");
  int32_t *rows =
      rdna__case_add(out_case, RDNA__IN, RDNA_I32, s.tokens, offsetof(struct rope_kv_write_args, cache_row));
  if (!rows) return no_memory(&s);
  pick_rows(random, rows, s.tokens, slots);
  bool fits =
      add_values(out_case, random, RDNA_F32, k.count, offsetof(struct rope_kv_write_args, k)) &&
      add_values(out_case, random, RDNA_F32, v.count, offsetof(struct rope_kv_write_args, v)) &&
      add_angles(out_case, random, n, &s, offsetof(struct rope_kv_write_args, positions),
                 offsetof(struct rope_kv_write_args, inv_freq)) &&
      (!normed || add_norms(out_case, random, args.q_parts > 0, s.head_dim, v_dim)) &&
      (!args.q_parts || apart || add_turned(out_case, random, q.count, offsetof(struct rope_kv_write_args, q))) &&
      (!apart || (add_values(out_case, random, RDNA_F32, q.count, offsetof(struct rope_kv_write_args, q)) &&
                  add_output(out_case, dtype, &q_out, s.tokens, NULL, s.tokens, args.q_heads, s.head_dim,
                             offsetof(struct rope_kv_write_args, q_out)))) &&
      add_output(out_case, dtype, &k_cache, s.tokens, rows, slots, s.heads, s.head_dim,
                 offsetof(struct rope_kv_write_args, k_cache)) &&
      add_output(out_case, dtype, &v_cache, s.tokens, rows, slots, s.heads, v_dim,
                 offsetof(struct rope_kv_write_args, v_cache));
  return fits ? RDNA_OK : no_memory(&s);
}
