#include <string.h>

#include "kernel/host.h"
#include "math/moe/moe_math.h"

/* The sum of |count| values in the order of the kernel's 32 lanes, of which lane i adds values i, i + 32, … */
static float sum_lanes(const float *values, int32_t count) {
  float lane[32] = {0};
  for (int32_t i = 0; i < count; i++) lane[i % 32] += values[i];
  for (int half = 16; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) lane[i] += lane[i + half];
  }
  return lane[0];
}

/* The value by which a group ranks. */
static float group_value(const float *values, int32_t size, int32_t best) {
  int32_t first = 0, second = -1;
  for (int32_t i = 1; i < size; i++) {
    if (moe_rank(values[i]) > moe_rank(values[first])) {
      second = first, first = i;
    } else if (second < 0 || moe_rank(values[i]) > moe_rank(values[second])) {
      second = i;
    }
  }
  return best > 1 && second >= 0 ? values[first] + values[second] : values[first];
}

/* The expert that ranks first among those of |count| that are not |taken|. */
static int32_t find_first(const float *values, const bool *taken, int32_t count) {
  uint64_t key = 0;
  for (int32_t i = 0; i < count; i++) {
    if (!taken[i] && moe_key(values[i], i) > key) key = moe_key(values[i], i);
  }
  return moe_number(key);
}

static void close_groups(const struct moe_route_args *a, const float *values, bool *taken) {
  float rank[MOE_GROUPS];
  bool kept[MOE_GROUPS] = {false};
  int32_t size = a->experts / a->groups;
  for (int32_t g = 0; g < a->groups; g++) rank[g] = group_value(values + g * size, size, a->group_best);
  for (int32_t i = 0; i < a->groups_kept; i++) kept[find_first(rank, kept, a->groups)] = true;
  for (int32_t e = 0; e < a->experts; e++) taken[e] = !kept[e / size];
}

static void route_token(const struct moe_route_args *a, int64_t token) {
  const float *logits = a->logits + token * a->stride;
  int32_t *indices = a->indices + token * a->chosen;
  float *weights = a->weights + token * a->chosen;
  float values[MOE_EXPERTS], largest = -__builtin_inff(), sum = 0;
  bool taken[MOE_EXPERTS] = {false};
  if (a->score == RDNA_MOE_SCORE_SOFTMAX) {
    for (int32_t e = 0; e < a->experts; e++) largest = max_f32(largest, logits[e]);
    for (int32_t e = 0; e < a->experts; e++) values[e] = scalar_exp(logits[e] - largest);
    sum = sum_lanes(values, a->experts);
  }
  for (int32_t e = 0; e < a->experts; e++)
    values[e] = moe_score(a->score, logits[e], largest, sum) + (a->bias ? a->bias[e] : 0);
  if (a->groups > 1) close_groups(a, values, taken);
  float top = -__builtin_inff();
  for (int32_t i = 0; i < a->chosen; i++) {
    indices[i] = find_first(values, taken, a->experts);
    taken[indices[i]] = true;
    weights[i] = moe_score(a->score, logits[indices[i]], largest, sum);
    top = max_f32(top, weights[i]);
  }
  float divisor = 1;
  if (a->score == RDNA_MOE_SCORE_CHOSEN) {
    for (int32_t i = 0; i < a->chosen; i++) weights[i] = scalar_exp(weights[i] - top);
    divisor = sum_lanes(weights, a->chosen);
  } else if (a->normalised) {
    divisor = sum_lanes(weights, a->chosen) + 1e-20f;
  }
  for (int32_t i = 0; i < a->chosen; i++) weights[i] = weights[i] / divisor * a->scale;
}

static void route_tokens(void *context, int64_t begin, int64_t end) {
  for (int64_t token = begin; token < end; token++) route_token(context, token);
}

void RDNA_HOST_KERNEL(moe_route_f32)(const void *args, rdna_grid grid) {
  struct moe_route_args a = *(const struct moe_route_args *)args;
  rdna__parallel_for(a.tokens, 4, route_tokens, &a);
}

static uint32_t expert_of(const struct moe_sort_args *a, int32_t slot) {
  return (uint32_t)a->chosen[slot] < (uint32_t)a->experts ? (uint32_t)a->chosen[slot] : (uint32_t)a->experts;
}

void RDNA_HOST_KERNEL(moe_sort)(const void *args, rdna_grid grid) {
  const struct moe_sort_args *a = args;
  int32_t next[MOE_EXPERTS + 1] = {0}, begin = 0, tile = 0;
  for (int32_t i = 0; i < a->slots; i++) next[expert_of(a, i)]++;
  for (int32_t e = 0; e <= a->experts; e++) {
    int32_t count = next[e];
    next[e] = begin;
    for (int32_t i = 0; i < count; i += a->tile_rows, tile++) {
      int32_t *entry = a->tiles + 3 * (int64_t)tile;
      entry[0] = e, entry[1] = begin + i, entry[2] = count - i < a->tile_rows ? count - i : a->tile_rows;
    }
    begin += count;
  }
  memset(a->tiles + 3 * (int64_t)tile, 0, (size_t)(a->most_tiles - tile) * 3 * sizeof *a->tiles);
  for (int32_t i = 0; i < a->slots; i++) a->order[next[expert_of(a, i)]++] = i;
}

static void sum_tokens(void *context, int64_t begin, int64_t end) {
  const struct moe_sum_args *a = context;
  for (int64_t token = begin; token < end; token++) {
    float *out = a->out + token * a->out_stride;
    if (!a->add) memset(out, 0, (size_t)a->n * sizeof *out);
    for (int64_t slot = token * a->top; slot < (token + 1) * a->top; slot++) {
      if ((uint32_t)a->chosen[slot] >= (uint32_t)a->experts) continue;
      for (int64_t j = 0; j < a->n; j++) out[j] = fma_f32(a->shares[slot], a->y[slot * a->n + j], out[j]);
    }
  }
}

void RDNA_HOST_KERNEL(moe_sum_f32)(const void *args, rdna_grid grid) {
  struct moe_sum_args a = *(const struct moe_sum_args *)args;
  rdna__parallel_for(a.tokens, 8, sum_tokens, &a);
}
