#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/attention/attention_kernels.h"
#include "math/common/case/fill.h"

/* What one probability is off by, in proportion, for scores of about unit size (inputs are normal, scale d^-1/2): the
 * dot product errs like a random walk of d steps of 2^-24 around partial sums of at most about 4, on both sides; the
 * hardware's exponential of s - m, seldom below -16, by (16 + 2) 2^-24, the host's by less. */
static double probability_error(int32_t d) { return 2 * (4 * sqrt(d) + 18) * 0x1p-24; }

/* Of a mean of |count| values, none above 6 deviations: their weights' error twice, for the sum below the line errs
 * too, and the random walk of the additions. */
static double output_error(int32_t d, double count) {
  return 6 * (2 * probability_error(d) + 2 * 2 * sqrt(count) * 0x1p-24);
}

/* Sequences one after the other in the cache, with unused rows between; cache rows that no token may read are NaN. */
struct layout {
  int32_t *cache_base, *position; /* (tokens) */
  uint8_t *used;                  /* (slots) */
  int64_t slots;
  int64_t longest;
};

static rdna_status make_layout(rdna__random *random, int n, int32_t tokens, int32_t run, int32_t history,
                               struct layout *out) {
  int64_t room = 2 * ((int64_t)tokens * (history + 4) + run) + 16;
  *out = (struct layout){.cache_base = malloc(sizeof(int32_t) * (size_t)(tokens + 1)),
                         .position = malloc(sizeof(int32_t) * (size_t)(tokens + 1)),
                         .used = calloc((size_t)room, 1)};
  if (!out->cache_base || !out->position || !out->used) {
    return rdna__fail(RDNA_OUT_OF_MEMORY, "attention case: no memory for %d tokens", tokens);
  }
  for (int32_t t = 0; t < tokens;) {
    int32_t length = (int32_t)rdna__random_range(random, 1, run),
            before = (int32_t)rdna__random_range(random, 0, history);
    if (n == 0) length = tokens, before = 3;
    if (length > tokens - t) length = tokens - t;
    out->slots += rdna__random_range(random, 0, 2);
    for (int32_t i = 0; i < length; i++, t++) {
      out->cache_base[t] = (int32_t)out->slots;
      out->position[t] = before + i;
    }
    memset(out->used + out->slots, 1, (size_t)(before + length));
    out->slots += before + length;
    if (before + length > out->longest) out->longest = before + length;
  }
  if (tokens > 0 && n % 3 == 2) { /* a token that is padding, and some that reach out of the cache */
    out->position[rdna__random_below(random, (uint64_t)tokens)] = -1;
    int32_t outside = (int32_t)rdna__random_below(random, (uint64_t)tokens);
    if (rdna__random_below(random, 2)) {
      out->cache_base[outside] = -1;
      out->position[outside] = 5;
    } else {
      out->position[outside] = (int32_t)(out->slots - out->cache_base[outside]);
    }
  }
  return RDNA_OK;
}

static void layout_free(struct layout *layout) {
  free(layout->cache_base);
  free(layout->position);
  free(layout->used);
}

static void *add_cache(rdna__random *random, rdna__kernel_case *out_case, rdna_dtype dtype,
                       const struct attention_args *args, const struct layout *layout, int64_t stride, int64_t row,
                       size_t offset) {
  void *cache = rdna__case_add(out_case, RDNA__IN, dtype, args->slots * stride, (uint32_t)offset);
  if (!cache) return NULL;
  if (dtype == RDNA_Q8_0) { /* a NaN is one of the scale */
    for (int64_t i = 0; i < args->slots * stride; i += 32) {
      bool readable = layout->used[i / stride] && i % stride < row;
      uint8_t *block = (uint8_t *)cache + i / 32 * 34;
      uint16_t scale = readable ? f32_to_f16((float)rdna__random_normal(random) / 74) : 0x7e00;
      memcpy(block, &scale, sizeof scale);
      for (int k = 0; k < 32; k++) block[2 + k] = (uint8_t)rdna__random_below(random, 256);
    }
    return cache;
  }
  for (int64_t i = 0; i < args->slots * stride; i++) {
    bool readable = layout->used[i / stride] && i % stride < row;
    case_set(dtype, cache, i, readable ? (float)rdna__random_normal(random) : NAN);
  }
  return cache;
}

/* |latent|: values are the last of the keys' numbers, here written twice. */
static bool add_inputs(rdna__random *random, rdna__kernel_case *out_case, rdna_dtype dtype,
                       const struct attention_args *args, const struct layout *layout, bool latent) {
  int64_t q_count = args->tokens * args->q_stride;
  float *q = rdna__case_add(out_case, RDNA__IN, RDNA_F32, q_count, offsetof(struct attention_args, q));
  int64_t k_row = (int64_t)args->kv_heads * args->d, v_row = (int64_t)args->kv_heads * args->dv;
  void *k = add_cache(random, out_case, dtype, args, layout, args->k_stride, k_row, offsetof(struct attention_args, k));
  void *v = add_cache(random, out_case, dtype, args, layout, args->v_stride, v_row, offsetof(struct attention_args, v));
  if (!q || !k || !v) return false;
  for (int64_t i = 0, first = k_row - v_row; latent && i < args->slots * args->v_stride; i++)
    if (i % args->v_stride < v_row) case_set(dtype, v, i, case_get(dtype, k, i + first));
  for (int64_t i = 0; i < q_count; i++) q[i] = (float)rdna__random_normal(random);
  int32_t *base =
      rdna__case_add(out_case, RDNA__IN, RDNA_I32, args->tokens, offsetof(struct attention_args, cache_base));
  int32_t *position =
      rdna__case_add(out_case, RDNA__IN, RDNA_I32, args->tokens, offsetof(struct attention_args, position));
  if (!base || !position) return false;
  memcpy(base, layout->cache_base, sizeof(int32_t) * (size_t)args->tokens);
  memcpy(position, layout->position, sizeof(int32_t) * (size_t)args->tokens);
  if (rdna__random_below(random, 2) == 0) return true;
  float *sinks = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args->heads, offsetof(struct attention_args, sinks));
  for (int32_t h = 0; sinks && h < args->heads; h++) {
    sinks[h] = rdna__random_below(random, 8) == 0 ? -INFINITY : 2 * (float)rdna__random_normal(random);
  }
  return sinks != NULL;
}

static bool add_output(rdna__kernel_case *out_case, const struct attention_args *args, double error) {
  int64_t count = args->tokens * args->out_stride, row = (int64_t)args->heads * args->dv;
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, count, offsetof(struct attention_args, out))) return false;
  rdna__case_tolerance(out_case, error, 0);
  if (args->out_stride == row) return true;
  return rdna__case_guard_rows(out_case, args->tokens, row, args->out_stride) == RDNA_OK;
}

/* |unit|: of which heads and strides of caches are multiples. |wide|: heads of any sizes that kernels of wide heads
 * take.
 */
static void make_args(rdna__random *random, int n, int32_t heads_per_kv, int32_t most_d, int32_t unit, bool wide,
                      struct attention_args *args) {
  static const int32_t sizes[] = {64, 4, 128, 80, 96, 84, 20, 256, 160, 132, 252}, wide_sizes[] = {512, 260, 36, 392};
  args->kv_heads = n == 0 ? 1 : (int32_t)rdna__random_range(random, 1, 3);
  args->heads = args->kv_heads * heads_per_kv;
  do {
    args->d = sizes[n == 0 ? 0 : rdna__random_below(random, sizeof sizes / sizeof sizes[0])];
  } while (args->d > most_d || args->d % unit != 0);
  args->dv = args->d;
  if (wide) args->d = wide_sizes[rdna__random_below(random, 4)], args->dv = wide_sizes[rdna__random_below(random, 4)];
  int64_t pad = n % 4 == 1 ? 4 : n % 4 == 3 ? 8 : 0, cache_pad = unit > 4 ? pad / 4 * unit : pad;
  args->q_stride = (int64_t)args->heads * args->d + pad;
  args->out_stride = (int64_t)args->heads * args->dv + 2 * pad;
  args->k_stride = (int64_t)args->kv_heads * args->d + cache_pad;
  args->v_stride = (int64_t)args->kv_heads * args->dv + 2 * cache_pad;
  args->scale = (float)(1 / sqrt(args->d));
  args->softcap = n % 5 == 4 ? 2.5f : 0;
  args->window = n % 3 == 1 ? (int32_t)rdna__random_range(random, 1, 70) : 0;
  args->splits = 1;
}

RDNA_CASE_MAKER(rdna__attention_prefill_case) {
  rdna_dtype dtype = strstr(kernel->name, "_f16_") ? RDNA_F16 : RDNA_F32;
  static const int32_t groups[] = {1, 4, 7, 8};
  int32_t heads_per_kv = groups[rdna__random_below(random, 4)];
  struct attention_args args = {0};
  struct layout layout;
  bool large = strstr(kernel->name, "d256") != NULL;
  make_args(random, n, heads_per_kv, large ? 256 : 128, 4, large && n % 2, &args);
  if (args.dv == 512) args.d = 576; /* the widest keys, which only prefills take with values of their own */
  args.q_stride = (int64_t)args.heads * args.d, args.k_stride = (int64_t)args.kv_heads * args.d + 8 * (n % 2);
  args.tokens = n == 0 ? 5 : n == 1 ? 0 : (int32_t)rdna__random_range(random, 1, 200 / heads_per_kv);
  int32_t run = rdna__random_below(random, 2) ? args.tokens + 1 : 12;
  rdna_status status = make_layout(random, n, args.tokens, run, run > 12 ? 150 : 20, &layout);
  args.slots = layout.slots;
  memcpy(out_case->args, &args, sizeof args);
  uint32_t tiles = ((uint32_t)(args.tokens * heads_per_kv) + ATTENTION_TILE_ROWS - 1) / ATTENTION_TILE_ROWS;
  out_case->grid = (rdna_grid){tiles > 0 ? tiles : 1, (uint32_t)(args.kv_heads * ATTENTION_PARTS(args.dv)), 1};
  snprintf(out_case->label, sizeof out_case->label, "tokens %d heads %d/%d d %d/%d window %d cap %g slots %lld",
           args.tokens, args.heads, args.kv_heads, args.d, args.dv, args.window, (double)args.softcap,
           (long long)args.slots);
  if (status == RDNA_OK && (!add_inputs(random, out_case, dtype, &args, &layout, false) ||
                            !add_output(out_case, &args, output_error(args.d, (double)layout.longest))))
    status = rdna__case_no_memory(out_case);
  layout_free(&layout);
  return status;
}

/* Spreads the sequences of a layout over blocks of a cache in any order: its used rows move to where the table says,
 * and its bases become numbers of sequences. Blocks that no sequence has stay unused; a token that was outside gets a
 * sequence that does not exist. */
static rdna_status make_paged(rdna__random *random, struct attention_args *args, struct layout *layout,
                              int32_t **out_table) {
  int32_t sequences = 0, blocks;
  args->block_rows = (int32_t)rdna__random_range(random, 1, 20);
  args->table_stride = (layout->longest + args->block_rows - 1) / args->block_rows + 1;
  for (int32_t t = 0; t < args->tokens; t++) { /* every token its own sequence */
    bool outside = layout->cache_base[t] < 0 || layout->cache_base[t] + layout->position[t] >= layout->slots;
    layout->cache_base[t] = outside ? args->tokens : sequences++;
  }
  args->sequences = sequences;
  blocks = sequences * (int32_t)args->table_stride + 1;
  args->slots = (int64_t)blocks * args->block_rows;
  int32_t *table = malloc(sizeof(int32_t) * (size_t)blocks);
  free(layout->used);
  layout->used = calloc((size_t)args->slots + 1, 1);
  layout->slots = args->slots;
  *out_table = table;
  if (!table || !layout->used) return rdna__fail(RDNA_OUT_OF_MEMORY, "attention case: no memory for %d blocks", blocks);
  for (int32_t i = 0; i < blocks; i++) {
    int32_t other = (int32_t)rdna__random_below(random, (uint64_t)i + 1);
    table[i] = table[other];
    table[other] = i;
  }
  for (int32_t t = 0; t < args->tokens; t++) {
    for (int32_t p = 0; p <= layout->position[t] && layout->cache_base[t] < sequences; p++) {
      int32_t block = table[layout->cache_base[t] * args->table_stride + p / args->block_rows];
      layout->used[(int64_t)block * args->block_rows + p % args->block_rows] = 1;
    }
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__attention_decode_case) {
  rdna_dtype dtype = strstr(kernel->name, "_q8_0") ? RDNA_Q8_0 : case_name_float(kernel->name);
  bool latent = strstr(kernel->name, "_latent") != NULL, wide = latent || strstr(kernel->name, "_wide") != NULL;
  int32_t per_group = wide ? 4 : kernel->name[strlen(kernel->name) - 1] - '0';
  /* fewer query heads than a work-group takes, as many, and more than one work-group's */
  static const int32_t groups[][3] = {{1, 1, 2}, {4, 3, 6}, {8, 5, 11}};
  int32_t heads_per_kv = groups[per_group == 1 ? 0 : per_group == 4 ? 1 : 2][rdna__random_below(random, 3)];
  struct attention_args args = {0};
  struct layout layout;
  make_args(random, n, heads_per_kv, 256, dtype == RDNA_Q8_0 ? 32 : 4, wide, &args);
  if (latent) { /* values are the last of the one key's */
    args.kv_heads = 1, args.heads = heads_per_kv;
    args.d = args.dv + 4 * (int32_t)rdna__random_range(random, 0, ATTENTION_LATENT_FIRST / 4);
    args.q_stride = (int64_t)args.heads * args.d, args.out_stride = (int64_t)args.heads * args.dv;
    args.k_stride = args.v_stride = args.d + 4 * (n % 3);
  }
  args.tokens = n == 1 ? 0 : (int32_t)rdna__random_range(random, 1, 8);
  args.splits = n % 2 ? 1 : (int32_t)rdna__random_range(random, 2, 5);
  args.split_positions = n % 3 == 1 ? (int32_t)rdna__random_range(random, 1, 80) : 0;
  rdna_status status = make_layout(random, n, args.tokens, 3, n % 4 ? 90 : 400, &layout);
  args.slots = layout.slots;
  int32_t *table = NULL;
  if (status == RDNA_OK && n % 3 == 2 && n > 2) status = make_paged(random, &args, &layout, &table);
  memcpy(out_case->args, &args, sizeof args);
  uint32_t blocks = (uint32_t)((heads_per_kv + per_group - 1) / per_group);
  out_case->grid = (rdna_grid){(uint32_t)args.splits, blocks * (uint32_t)args.kv_heads, (uint32_t)args.tokens};
  snprintf(out_case->label, sizeof out_case->label,
           "tokens %d heads %d/%d d %d/%d window %d cap %g splits %d slots %lld in blocks of %d", args.tokens,
           args.heads, args.kv_heads, args.d, args.dv, args.window, (double)args.softcap, args.splits,
           (long long)args.slots, args.block_rows);
  double error = output_error(args.d, (double)layout.longest);
  if (status == RDNA_OK && table) {
    int64_t count = args.sequences * args.table_stride;
    int32_t *given = rdna__case_add(out_case, RDNA__IN, RDNA_I32, count, offsetof(struct attention_args, block_table));
    if (given) memcpy(given, table, sizeof(int32_t) * (size_t)count);
    if (!given) status = rdna__case_no_memory(out_case);
  }
  free(table);
  if (status == RDNA_OK && !add_inputs(random, out_case, dtype, &args, &layout, latent))
    status = rdna__case_no_memory(out_case);
  if (status == RDNA_OK && args.splits == 1 && !add_output(out_case, &args, error))
    status = rdna__case_no_memory(out_case);
  if (status == RDNA_OK && args.splits > 1) {
    /* sums that are not yet divided, by as many weights of at most 1 as a split has positions */
    int64_t cells = (int64_t)args.tokens * args.heads * args.splits;
    double weights = (double)layout.longest / args.splits + 1;
    if (weights < args.split_positions) weights = args.split_positions;
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, cells * args.dv, offsetof(struct attention_args, partial)))
      status = rdna__case_no_memory(out_case);
    else
      rdna__case_tolerance(out_case, error * weights, 0);
    if (status == RDNA_OK &&
        !rdna__case_add(out_case, RDNA__OUT, RDNA_F32, cells * 2, offsetof(struct attention_args, stats)))
      status = rdna__case_no_memory(out_case);
    else if (status == RDNA_OK)
      rdna__case_tolerance(out_case, error * weights, 0x1p-22);
  }
  layout_free(&layout);
  return status;
}

RDNA_CASE_MAKER(rdna__attention_combine_case) {
  struct attention_combine_args args = {.tokens = n == 1 ? 0 : (int32_t)rdna__random_range(random, 1, 5)};
  args.heads = (int32_t)rdna__random_range(random, 1, 6);
  args.splits = n == 0 ? 2 : (int32_t)rdna__random_range(random, 1, 70);
  args.d = 4 * (int32_t)rdna__random_range(random, 1, n % 2 ? 128 : 64);
  args.out_stride = (int64_t)args.heads * args.d;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)args.heads, (uint32_t)args.tokens, 1};
  snprintf(out_case->label, sizeof out_case->label, "tokens %d heads %d splits %d d %d", args.tokens, args.heads,
           args.splits, args.d);
  int64_t cells = (int64_t)args.tokens * args.heads * args.splits;
  float *partial =
      rdna__case_add(out_case, RDNA__IN, RDNA_F32, cells * args.d, offsetof(struct attention_combine_args, partial));
  float *stats =
      rdna__case_add(out_case, RDNA__IN, RDNA_F32, cells * 2, offsetof(struct attention_combine_args, stats));
  if (!partial || !stats ||
      !rdna__case_add(out_case, RDNA__OUT, RDNA_F32, (int64_t)args.tokens * args.out_stride,
                      offsetof(struct attention_combine_args, out)))
    return rdna__case_no_memory(out_case);
  for (int64_t cell = 0; cell < cells; cell++) {
    /* now and then a split, or all of a token, with nothing to see */
    bool empty = rdna__random_below(random, 5) == 0 || cell / args.splits % 7 == 6;
    float sum = empty ? 0 : 1 + 9 * (float)rdna__random_unit(random);
    stats[2 * cell] = empty ? ATTENTION_LOWEST : 3 * (float)rdna__random_normal(random);
    stats[2 * cell + 1] = sum;
    for (int32_t i = 0; i < args.d; i++) partial[cell * args.d + i] = sum * (float)rdna__random_normal(random);
  }
  if (n % 4 == 3 && cells > 0) stats[2 * rdna__random_below(random, (uint64_t)cells)] = NAN;
  /* a mean of values below 6, whose weights err by the exponential (see above) and one rounding a split */
  rdna__case_tolerance(out_case, 6 * 2 * (2 * 18 + 2 * (double)args.splits) * 0x1p-24, 0);
  return RDNA_OK;
}
