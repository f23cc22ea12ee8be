/* Device code of attention forward: what its kernels do to a tile of scores, and who computes which queries. For .hip
 * files only. A plan is the constants of a kernel: tiles of rows, keys and values, and what is kept where. */
#ifndef RDNA_MATH_FLASH_FORWARD_H
#define RDNA_MATH_FLASH_FORWARD_H

#include "math/attention/flash_options.h"

template <typename plan>
struct forward_state {
  mma_acc out[plan::M_TILES][plan::D_TILES];
  float m[plan::M_TILES][plan::unit::STATS], l[plan::M_TILES][plan::unit::STATS];
};

/* Turns the scores of a tile into probabilities, in place, and brings m, l and out up to date. |c| turns scores into
 * units of log 2. */
template <typename plan>
RDNA_DEVICE void forward_softmax(mma_acc (&scores)[plan::M_TILES][plan::N_TILES], float c, forward_state<plan> &state) {
  typedef typename plan::unit unit;
  float factor[plan::M_TILES][unit::STATS];
  bool same = true;
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++) {
    float base[unit::STATS], sum[unit::STATS];
#pragma unroll
    for (int r = 0; r < unit::STATS; r++) {
      float top = state.m[m][r];
#pragma unroll
      for (int n = 0; n < plan::N_TILES; n++)
#pragma unroll
        for (int v = 0; v < MMA_VALUES; v++)
          if (unit::stat_of(v) == r) top = __builtin_fmaxf(top, scores[m][n][v]);
      top = flash_reduce_max(top, unit::REDUCE_FIRST, unit::REDUCE_END);
      base[r] = top == -infinity_f32() ? 0 : top * c;
      factor[m][r] = fast_exp2(fma_f32(state.m[m][r], c, -base[r]));
      same = same && top == state.m[m][r];
      state.m[m][r] = top;
      sum[r] = 0;
    }
#pragma unroll
    for (int n = 0; n < plan::N_TILES; n++)
#pragma unroll
      for (int v = 0; v < MMA_VALUES; v++) {
        constexpr float zero = 0;
        float p = fast_exp2(fma_f32(scores[m][n][v], c, zero - base[unit::stat_of(v)]));
        sum[unit::stat_of(v)] += p;
        scores[m][n][v] = p;
      }
#pragma unroll
    for (int r = 0; r < unit::STATS; r++) state.l[m][r] = fma_f32(state.l[m][r], factor[m][r], sum[r]);
  }
  if (wave_all(same)) return; /* most tiles leave the maximum where it is */
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
    for (int d = 0; d < plan::D_TILES; d++)
#pragma unroll
      for (int v = 0; v < MMA_VALUES; v++) state.out[m][d][v] *= factor[m][unit::stat_of(v)];
}

/* The rows of a wave, and which keys they see. */
struct forward_wave {
  int32_t first, last;         /* rows; none when last < first */
  int32_t any_first, any_last; /* keys that some row sees */
  int32_t all_first, all_last; /* keys that all rows see */
};

RDNA_DEVICE forward_wave forward_wave_of(const flash_args &a, const flash_sequence &s, int32_t first, int32_t rows) {
  forward_wave wave;
  wave.first = first;
  wave.last = first + rows <= s.sq ? first + rows - 1 : s.sq - 1;
  wave.any_first = flash_first_key(&a, &s, wave.first);
  wave.all_first = flash_first_key(&a, &s, wave.last);
  wave.all_last = flash_last_key(&a, &s, wave.first);
  wave.any_last = wave.last < wave.first ? -1 : flash_last_key(&a, &s, wave.last);
  return wave;
}

/* Does what options do to the scores of a tile: mask and slopes, and -inf for keys that a row does not see. */
template <typename type, typename plan>
RDNA_DEVICE void forward_tile(const flash_place &at, const forward_wave &wave, int32_t first_key, float slope,
                              mma_acc (&scores)[plan::M_TILES][plan::N_TILES]) {
  flash_place place = flash_place_again(at);
  typedef typename plan::unit unit;
  if constexpr (plan::KIND == FLASH_MASKED) {
#pragma unroll
    for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
      for (int n = 0; n < plan::N_TILES; n++)
        flash_mask_add<type, false>(place, wave.first + 16 * m, first_key + 16 * n, scores[m][n]);
  }
  if constexpr (plan::KIND == FLASH_ANY) {
    float slack;
#pragma unroll
    for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
      for (int n = 0; n < plan::N_TILES; n++)
#pragma unroll
        for (int v = 0; v < MMA_VALUES; v++)
          scores[m][n][v] = flash_score<type>(place, scores[m][n][v] * place.a->scale, slope,
                                              wave.first + 16 * m + (int32_t)unit::row_of(v),
                                              first_key + 16 * n + (int32_t)unit::key_of(v), slack);
  }
  if (first_key >= wave.all_first && first_key + plan::KEYS - 1 <= wave.all_last) return;
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++) {
    int32_t low[unit::STATS], high[unit::STATS];
#pragma unroll
    for (int v = 0; v < MMA_VALUES; v++) {
      int32_t row = flash_in_turn(wave.first + 16 * m + (int32_t)unit::row_of(v));
      low[unit::stat_of(v)] = flash_first_key(place.a, &place.s, row) - first_key;
      high[unit::stat_of(v)] = flash_last_key(place.a, &place.s, row) - first_key;
    }
#pragma unroll
    for (int n = 0; n < plan::N_TILES; n++)
#pragma unroll
      for (int v = 0; v < MMA_VALUES; v++) {
        int32_t key = 16 * n + (int32_t)unit::key_of(v);
        if (key < low[unit::stat_of(v)] || key > high[unit::stat_of(v)]) scores[m][n][v] = -infinity_f32();
      }
  }
}

/* Drops probabilities of a tile, or scales those that are kept; l has been summed up without that. */
template <typename plan>
RDNA_DEVICE void forward_dropout(const flash_place &at, const forward_wave &wave, int32_t first_key,
                                 mma_acc (&scores)[plan::M_TILES][plan::N_TILES]) {
  flash_place place = flash_place_again(at);
  typedef typename plan::unit unit;
  if (place.a->dropout == 0) return;
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
    for (int n = 0; n < plan::N_TILES; n++)
#pragma unroll
      for (int v = 0; v < MMA_VALUES; v++)
        scores[m][n][v] *= flash_kept(place, wave.first + 16 * m + (int32_t)unit::row_of(v),
                                      first_key + 16 * n + (int32_t)unit::key_of(v));
}

/* Stores out and lse of a wave's rows: values from |first_value| on. |c| as above. */
template <typename type, typename plan>
RDNA_DEVICE void forward_store(const flash_place &place, const forward_wave &wave, float c,
                               const forward_state<plan> &state, char *lds, int32_t first_value = 0) {
  typedef typename plan::unit unit;
  const flash_args &now = arguments_again(*place.a);
  char *out = (char *)now.out + (place.batch * now.out_stride[0] + (place.s.q_row + wave.first) * now.out_stride[1] +
                                 place.head * now.out_stride[2] + first_value) *
                                    type::BYTES;
  int64_t out_stride = now.out_stride[1] * type::BYTES;
  float *staging = (float *)lds + wave_id() * (FLASH_STAGE_BYTES / 4);
  float sink = now.sinks ? global(now.sinks)[place.head] * FLASH_LOG2_E : -infinity_f32();
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++) {
    float factor[unit::STATS];
#pragma unroll
    for (int r = 0; r < unit::STATS; r++) {
      float sum = flash_reduce_sum(state.l[m][r], unit::REDUCE_FIRST, unit::REDUCE_END);
      float top = state.m[m][r] * c;
      factor[r] = sum == 0 ? 0 : 1 / sum;
      if (sink != -infinity_f32()) {
        float higher = max_f32(top, sink), share = fast_exp2(top - higher);
        top = higher, sum = fma_f32(sum, share, fast_exp2(sink - higher));
        factor[r] = share / sum;
      }
      if (!now.lse || first_value != 0) continue;
#pragma unroll
      for (int v = 0; v < MMA_VALUES; v++) {
        /* one lane for each row */
        if (unit::stat_of(v) != r || (v > 0 && unit::stat_of(v - 1) == r) || flash_in_turn(unit::key_of(v)) != 0)
          continue;
        int32_t row = wave.first + 16 * m + (int32_t)unit::row_of(v);
        if (row >= place.s.sq) continue;
        now.lse[place.batch * now.lse_stride[0] + place.head * now.lse_stride[1] + place.s.q_row + row] =
            sum == 0 ? -infinity_f32() : (top + fast_log2(sum)) * FLASH_LN_2;
      }
    }
    flash_write<type>(state.out[m], factor, out + 16 * m * out_stride, out_stride, wave.last - wave.first + 1 - 16 * m,
                      now.dv - first_value, staging);
  }
}

/* Groups take blocks of queries; rows_of::run computes ROWS of them at a time. */
template <typename rows_of>
RDNA_DEVICE void forward(const flash_args &a, char *lds, uint32_t group, uint32_t groups) {
  flash_place place;
  place.a = &a;
  place.head = (int32_t)group_id_y();
  place.batch = (int32_t)group_id_z();
  if (place.head >= a.heads || place.batch >= a.batch) return;
  place.s = flash_sequence_of(&a, place.batch);
  int32_t blocks = (place.s.sq + FLASH_ROWS - 1) / FLASH_ROWS;
  /* late queries see the most: they start first */
  int32_t step = (int32_t)groups * FLASH_ROWS;
#pragma unroll 1
  for (int32_t row = (blocks - 1 - (int32_t)group) * FLASH_ROWS; row >= 0;) {
    rows_of::run(place, row, lds);
    row += rows_of::ROWS;
    if (row % FLASH_ROWS != 0 && row < place.s.sq) continue;
    row = (row - 1) / FLASH_ROWS * FLASH_ROWS - step;
  }
}

#endif
