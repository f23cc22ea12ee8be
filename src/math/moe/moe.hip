/* Routing tokens to experts, and what products with experts need besides; see moe_kernels.h. */
#include "kernel/prelude.h"
#include "math/moe/moe_math.h"

RDNA_DEVICE float over_set_sum(float v) {
#pragma unroll
  for (uint32_t mask = 16; mask > 0; mask /= 2) v += wave_shuffle_xor_f32(v, mask);
  return v;
}
RDNA_DEVICE float over_set_max(float v) {
#pragma unroll
  for (uint32_t mask = 16; mask > 0; mask /= 2) v = max_f32(v, wave_shuffle_xor_f32(v, mask));
  return v;
}
RDNA_DEVICE uint64_t over_set_first(uint64_t key) {
#pragma unroll
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    uint64_t high = wave_shuffle_xor_u32((uint32_t)(key >> 32), mask);
    uint64_t other = high << 32 | wave_shuffle_xor_u32((uint32_t)key, mask);
    key = other > key ? other : key;
  }
  return key;
}

/* The rank of group |group|: the best of its members' values, or the sum of the two best. */
RDNA_DEVICE float group_value(const float *values, int32_t group, int32_t size, int32_t best) {
  uint32_t first_rank = 0, second_rank = 0;
  float first = 0, second = 0;
  for (int32_t i = group * size; i < group * size + size; ++i) {
    float v = values[i];
    uint32_t rank = moe_rank(v);
    bool ahead = rank > first_rank, next = rank > second_rank;
    second = ahead ? first : next ? v : second;
    second_rank = ahead ? first_rank : next ? rank : second_rank;
    first = ahead ? v : first;
    first_rank = ahead ? rank : first_rank;
  }
  return best > 1 && size > 1 ? first + second : first;
}

/* A bit for each group that is kept. */
RDNA_DEVICE uint32_t kept_groups(const struct moe_route_args &a, const float *values, int32_t lane) {
  uint64_t key = 0;
  if (lane < a.groups) key = moe_key(group_value(values, lane, a.experts / a.groups, a.group_best), lane);
  uint32_t kept = 0;
  for (int32_t i = 0; i < a.groups_kept; ++i) {
    int32_t group = moe_number(over_set_first(key));
    kept |= 1u << group;
    if (lane == group) key = 0;
  }
  return kept;
}

/* The best of this lane's experts whose bit in |open| is set: bit i is that of expert lane + 32 i. */
RDNA_DEVICE uint64_t lane_first(const float *values, uint32_t open, int32_t lane) {
  uint64_t key = 0;
  for (uint32_t left = open; left != 0; left &= left - 1) {
    int32_t expert = lane + 32 * (int32_t)__builtin_ctz(left);
    uint64_t mine = moe_key(values[expert], expert);
    key = mine > key ? mine : key;
  }
  return key;
}

/* Each round the lanes offer their best expert, and the one that ranks first is taken; only its lane then looks for
 * another. */
RDNA_KERNEL(MOE_ROUTE_THREADS) moe_route_f32(struct moe_route_args a) {
  RDNA_SHARED float shared[MOE_ROUTE_TOKENS][MOE_EXPERTS];
  int32_t lane = (int32_t)thread_id() % 32, set = (int32_t)thread_id() / 32;
  int32_t token = (int32_t)group_id_x() * MOE_ROUTE_TOKENS + set;
  const float *logits = a.logits + (token < a.tokens ? token : 0) * a.stride;
  float *values = shared[set], largest = -infinity_f32(), sum = 0;
  if (token >= a.tokens) return; /* sets share nothing, so no barrier waits for this one */
  if (a.score == RDNA_MOE_SCORE_SOFTMAX) {
    for (int32_t e = lane; e < a.experts; e += 32) largest = max_f32(largest, logits[e]);
    largest = over_set_max(largest);
    for (int32_t e = lane; e < a.experts; e += 32) sum += scalar_exp(logits[e] - largest);
    sum = over_set_sum(sum);
  }
  uint32_t open = 0;
  for (int32_t e = lane; e < a.experts; e += 32) {
    values[e] = moe_score(a.score, logits[e], largest, sum) + (a.bias ? a.bias[e] : 0);
    open |= 1u << e / 32;
  }
  wave_barrier(); /* group_value reads what other lanes stored */
  if (a.groups > 1) {
    uint32_t kept = kept_groups(a, values, lane);
    for (int32_t e = lane; e < a.experts; e += 32) {
      if (!(kept >> e / (a.experts / a.groups) & 1)) open &= ~(1u << e / 32);
    }
  }

  int32_t mine = 0; /* lane i has the i-th that is chosen */
  uint64_t best = lane_first(values, open, lane);
  for (int32_t i = 0; i < a.chosen; ++i) {
    int32_t expert = moe_number(over_set_first(best));
    mine = lane == i ? expert : mine;
    if (expert % 32 != lane) continue;
    open &= ~(1u << expert / 32);
    best = lane_first(values, open, lane);
  }
  bool has = lane < a.chosen;
  float score = has ? moe_score(a.score, logits[mine], largest, sum) : 0;
  if (a.score == RDNA_MOE_SCORE_CHOSEN) {
    float top = over_set_max(has ? score : -infinity_f32());
    score = has ? scalar_exp(score - top) : 0;
    score /= over_set_sum(score);
  } else if (a.normalised) {
    score /= over_set_sum(score) + 1e-20f;
  }
  if (!has) return;
  a.indices[(int64_t)token * a.chosen + lane] = mine;
  a.weights[(int64_t)token * a.chosen + lane] = score * a.scale;
}

/* The number of a slot's expert; |experts| for one that is not. */
RDNA_DEVICE uint32_t expert_of(const struct moe_sort_args &a, int32_t slot) {
  return min_u32((uint32_t)global(a.chosen)[slot], (uint32_t)a.experts);
}

RDNA_KERNEL(MOE_SORT_THREADS) moe_sort(struct moe_sort_args a) {
  constexpr int32_t waves = MOE_SORT_THREADS / WAVE_SIZE;
  RDNA_SHARED uint32_t counts[MOE_EXPERTS + 1], scratch[GROUP_SCRATCH(MOE_SORT_THREADS)], of_wave[waves];
  uint32_t own = group_id_x(), experts = (uint32_t)a.experts, rows = (uint32_t)a.tile_rows;
  int32_t thread = (int32_t)thread_id();
  for (uint32_t e = thread_id(); e <= experts; e += MOE_SORT_THREADS) counts[e] = 0;
  group_barrier();
  for (int32_t i = thread; i < a.slots; i += MOE_SORT_THREADS) atomic_add_u32(&counts[expert_of(a, i)], 1);
  group_barrier();
  uint32_t begin = 0, first_tile = 0;
  for (uint32_t e = thread_id(); e < own; e += MOE_SORT_THREADS) {
    begin += counts[e];
    first_tile += (counts[e] + rows - 1) / rows;
  }
  begin = group_sum_u32<MOE_SORT_THREADS>(begin, scratch);
  first_tile = group_sum_u32<MOE_SORT_THREADS>(first_tile, scratch);

  uint32_t count = counts[own], tiles = (count + rows - 1) / rows;
  uint32_t end = own == experts ? (uint32_t)a.most_tiles - first_tile : tiles; /* the last group clears the rest */
  for (uint32_t i = thread_id(); i < end; i += MOE_SORT_THREADS) {
    int32_t *tile = a.tiles + 3 * (first_tile + i);
    tile[0] = i < tiles ? (int32_t)own : 0;
    tile[1] = i < tiles ? (int32_t)(begin + i * rows) : 0;
    tile[2] = i < tiles ? (int32_t)min_u32(rows, count - i * rows) : 0;
  }
  if (count == 0) return;
  for (int32_t first = 0; first < a.slots; first += MOE_SORT_THREADS) {
    bool mine = first + thread < a.slots && expert_of(a, first + thread) == own;
    uint64_t all = wave_ballot(mine), below = all & (((uint64_t)1 << lane_id()) - 1);
    if (lane_id() == 0) of_wave[wave_id()] = (uint32_t)__builtin_popcountll(all);
    group_barrier();
    uint32_t place = begin + (uint32_t)__builtin_popcountll(below);
    for (int32_t w = 0; w < waves; ++w) {
      if (w < (int32_t)wave_id()) place += of_wave[w];
      begin += of_wave[w];
    }
    if (mine) a.order[place] = first + thread;
    group_barrier();
  }
}

RDNA_KERNEL(256) moe_sum_f32(struct moe_sum_args a) {
  int64_t at = (int64_t)group_id_x() * 256 + thread_id();
  if (at >= a.tokens * a.n) return;
  int64_t token = at / a.n, column = at % a.n;
  float *out = a.out + token * a.out_stride + column, sum = a.add ? *out : 0;
  for (int32_t i = 0; i < a.top; ++i) {
    int64_t slot = token * a.top + i;
    if ((uint32_t)a.chosen[slot] >= (uint32_t)a.experts) continue;
    sum = fma_f32(a.shares[slot], a.y[slot * a.n + column], sum);
  }
  *out = sum;
}
