/* Attention forward, in one pass over the keys and values: each row keeps the running maximum m of its scores, the sum
 * l of exp(s - m) and the sum of exp(s - m) * v, and all are scaled down when the maximum grows (Milakov and
 * Gimelshein 2018; Dao 2023). Scores never leave the registers.
 *
 * For each query, key and head 2 (d + dv) floating-point operations, half of that where the diagonal cuts; each key and
 * value is read once for every FLASH_ROWS queries at most. */
#define RDNA_SM_90A_IMAGE /* a second one: cmake/kernels.cmake */
#include "math/attention/flash_options.h"

template <typename type, int max_d, flash_kind kind>
struct forward_plan {
  typedef typename unit_of<type>::is unit;
  static constexpr flash_kind KIND = kind;
  static constexpr bool MATRIX = !unit::THROUGH_LDS, any = kind != FLASH_PLAIN;
  /* with every option 64 keys at once leave no registers for more on waves of 64 lanes without matrix units */
  static constexpr bool FEW = any && !MATRIX && type::BYTES == 2 && max_d == 64;
  static constexpr int M_TILES = (WAVE_SIZE == 64 && !FEW) || (unit::ASYNC && max_d <= 128 && !any) ? 2 : 1;
#ifdef RDNA_MFMA_
  static constexpr int KEYS_128 = 64;
#else
  static constexpr int KEYS_128 = 32;
#endif
  static constexpr int KEYS = type::BYTES == 4 ? (max_d == 256 ? 16 : 32)
                              : max_d == 64    ? 64
                              : max_d == 128   ? KEYS_128
                                               : 32;
  /* the registers have room for the queries too */
  static constexpr bool RESIDENT =
      MATRIX && ((max_d <= 128 && (!any || unit::ASYNC)) || (unit::ASYNC && !any) || (WAVE_SIZE == 64 && max_d <= 128));
  /* and for the next tile while this one is worked on */
  static constexpr bool EARLY = unit::ASYNC || (MATRIX ? max_d <= 128 : max_d == 64 && !any);
  static constexpr int STAGES = unit::ASYNC && max_d <= 128 ? 2 : 1;
  static constexpr int ROWS = FLASH_WAVES * 16 * M_TILES, N_TILES = KEYS / 16, D_TILES = max_d / 16;
  static constexpr int STEPS = max_d / unit::K;
  typedef plain_tile<type, max_d, KEYS> key_tile;
  typedef typename value_tile_of<type, max_d, KEYS, unit::ASYNC>::is value_tile;
  static constexpr int VALUE_BYTES = unit::ASYNC ? key_tile::BYTES : turned_tile<type, max_d, KEYS>::BYTES;
  static constexpr int STAGE_BYTES = key_tile::BYTES + VALUE_BYTES;
  typedef score_strip<type, KEYS> strip;
  static constexpr int TILES_BYTES = STAGES * STAGE_BYTES + FLASH_WAVES * strip::BYTES;
  static constexpr int WRITE_BYTES = FLASH_WAVES * FLASH_STAGE_BYTES;
  static constexpr int LDS_BYTES = TILES_BYTES > WRITE_BYTES ? TILES_BYTES : WRITE_BYTES;
  static_assert(LDS_BYTES <= 48 * 1024, "shared memory that every GPU has");
  static_assert(FLASH_ROWS % ROWS == 0, "whole passes");
};

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

/* Stores out and lse of a wave's rows. |c| as above. */
template <typename type, typename plan>
RDNA_DEVICE void forward_store(const flash_place &place, const forward_wave &wave, float c,
                               const forward_state<plan> &state, char *lds) {
  typedef typename plan::unit unit;
  const flash_args &now = arguments_again(*place.a);
  char *out = (char *)now.out + (place.batch * now.out_stride[0] + (place.s.q_row + wave.first) * now.out_stride[1] +
                                 place.head * now.out_stride[2]) *
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
      if (!now.lse) continue;
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
                      now.dv, staging);
  }
}

/* Computes ROWS queries from |first_row| on: walks over the tiles of keys and values that some of them see. With two
 * STAGES in LDS the next tile is in flight while one is computed; with one stage the values are, and if EARLY the next
 * keys:
 *
 *     one stage    | fetch values, scores | store values | fetch next keys, softmax, out += P V | store keys | */
template <typename type, int max_d, flash_kind kind>
struct forward_rows {
  static constexpr int ROWS = forward_plan<type, max_d, kind>::ROWS;
  RDNA_DEVICE void run(flash_place &place, int32_t first_row, char *lds) {
    typedef forward_plan<type, max_d, kind> plan;
    typedef typename plan::unit unit;
    flash_place_renew(place);
    const flash_args &a = *place.a;
    const flash_sequence &s = place.s;
    int32_t kv_head = place.head / (a.heads / a.kv_heads);
    /* computed again for each tile where scalar registers are short: see "Arguments again" */
    auto queries = [&]() __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again_wide(a);
      return flash_rows_of<type>(now.q, now.q_stride, place.batch, s.q_row, place.head, s.sq, now.d);
    };
    auto keys_from = [&](int32_t first) __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again_wide(a);
      return flash_rows_of<type>(now.k, now.k_stride, place.batch, s.k_row, kv_head, s.sk, now.d).from(first);
    };
    auto values_from = [&](int32_t first) __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again_wide(a);
      return flash_rows_of<type>(now.v, now.v_stride, place.batch, s.k_row, kv_head, s.sk, now.dv).from(first);
    };
    float c = kind == FLASH_ANY ? 1 : kind == FLASH_MASKED ? FLASH_LOG2_E : a.scale * FLASH_LOG2_E;
    float slope = a.slopes ? global(a.slopes)[place.batch * a.slopes_stride + place.head] : 0;
    char *strip = lds + plan::STAGES * plan::STAGE_BYTES + wave_id() * plan::strip::BYTES;

    forward_wave wave = forward_wave_of(a, s, first_row + (int32_t)wave_id() * 16 * plan::M_TILES, 16 * plan::M_TILES);
    int32_t group_last = first_row + plan::ROWS <= s.sq ? first_row + plan::ROWS - 1 : s.sq - 1;
    int32_t tile = flash_first_key(&a, &s, first_row) / plan::KEYS;
    int32_t end = (flash_last_key(&a, &s, group_last) + plan::KEYS) / plan::KEYS;

    wave_rows<type, max_d, plan::M_TILES, plan::RESIDENT, plan::MATRIX || !plan::any> rows;
    rows.init(queries(), wave.first);
    forward_state<plan> state;
#pragma unroll
    for (int m = 0; m < plan::M_TILES; m++) {
#pragma unroll
      for (int d = 0; d < plan::D_TILES; d++) state.out[m][d] = mma_acc{};
#pragma unroll
      for (int r = 0; r < unit::STATS; r++) {
        state.m[m][r] = -infinity_f32();
        state.l[m][r] = 0;
      }
    }

    typename plan::key_tile key_tile;
    typename plan::value_tile value_tile;
    group_barrier(); /* LDS is no more read for the rows before */
    if (tile < end) {
      key_tile.fetch(keys_from(tile * plan::KEYS), lds);
      if (plan::STAGES == 2) value_tile.fetch(values_from(tile * plan::KEYS), lds + plan::key_tile::BYTES);
      key_tile.store(lds);
    }
    group_barrier();
    uint32_t stage = 0;
#pragma unroll 1
    for (; tile < end; tile++) {
      int32_t first_key = tile * plan::KEYS;
      bool busy = first_key <= wave.any_last && first_key + plan::KEYS > wave.any_first;
      char *keys = lds + stage * plan::STAGE_BYTES, *values = keys + plan::key_tile::BYTES;
      mma_acc scores[plan::M_TILES][plan::N_TILES];
      if constexpr (plan::STAGES == 2) {
        stage ^= 1;
        if (tile + 1 < end) {
          key_tile.fetch(keys_from(first_key + plan::KEYS), lds + stage * plan::STAGE_BYTES);
          value_tile.fetch(values_from(first_key + plan::KEYS),
                           lds + stage * plan::STAGE_BYTES + plan::key_tile::BYTES);
        }
      } else if constexpr (plan::EARLY) {
        value_tile.fetch(values_from(first_key), values);
      }
      if (busy) {
        if constexpr (!plan::RESIDENT) rows.init(queries(), wave.first);
        flash_scores<typename plan::key_tile, plan::M_TILES, plan::N_TILES, plan::STEPS>(rows, keys, scores);
        forward_tile<type, plan>(place, wave, first_key, slope, scores);
      }
      if constexpr (plan::STAGES == 1) {
        if constexpr (!plan::EARLY) value_tile.fetch(values_from(first_key), values);
        value_tile.store(values);
        group_barrier();
        if (plan::EARLY && tile + 1 < end) key_tile.fetch(keys_from(first_key + plan::KEYS), keys);
      }
      if (busy) {
        forward_softmax<plan>(scores, c, state);
        if constexpr (kind == FLASH_ANY) forward_dropout<plan>(place, wave, first_key, scores);
        flash_accumulate<type, typename plan::value_tile>(scores, values, strip, state.out);
      }
      if (tile + 1 < end) {
        if constexpr (!plan::EARLY) key_tile.fetch(keys_from(first_key + plan::KEYS), keys);
        key_tile.store(keys);
      }
      group_barrier();
    }

    flash_place_renew(place);
    forward_store<type, plan>(place, wave, c, state, lds);
  }
};

#ifdef RDNA_WGMMA
#include "math/attention/nvidia/flash_forward_wgmma.h"
#endif

/* Groups take blocks of queries; rows_of::run computes ROWS of them at a time. */
template <typename rows_of>
RDNA_DEVICE void forward(const flash_args &a, char *lds) {
  flash_place place;
  place.a = &a;
  place.head = (int32_t)group_id_y();
  place.batch = (int32_t)group_id_z();
  if (place.head >= a.heads || place.batch >= a.batch) return;
  place.s = flash_sequence_of(&a, place.batch);
  int32_t blocks = (place.s.sq + FLASH_ROWS - 1) / FLASH_ROWS;
  /* late queries see the most: they start first */
  int32_t step = (int32_t)group_count_x() * FLASH_ROWS;
#pragma unroll 1
  for (int32_t row = (blocks - 1 - (int32_t)group_id_x()) * FLASH_ROWS; row >= 0;) {
    rows_of::run(place, row, lds);
    row += rows_of::ROWS;
    if (row % FLASH_ROWS != 0 && row < place.s.sq) continue;
    row = (row - 1) / FLASH_ROWS * FLASH_ROWS - step;
  }
}

#define FORWARD(name, type, max_d, kind)                                                                    \
  RDNA_KERNEL(FLASH_THREADS) name(struct flash_args a) {                                                    \
    RDNA_SHARED static __attribute__((aligned(1024))) char lds[forward_plan<type, max_d, kind>::LDS_BYTES]; \
    forward<forward_rows<type, max_d, kind>>(a, lds);                                                       \
  }
#ifdef RDNA_WGMMA
#define FORWARD_MATRIX(name, type, max_d, kind)                                                               \
  RDNA_KERNEL_RESIDENT(FLASH_THREADS, 2) name(struct flash_args a) {                                          \
    WGMMA_MEMORY(lds, kind == FLASH_MASKED ? FLASH_FORWARD_MASKED_BYTES(max_d) : FLASH_FORWARD_BYTES(max_d)); \
    forward<wgmma_rows<type, max_d, kind>>(a, (char *)lds);                                                   \
  }
#else
#define FORWARD_MATRIX(name, type, max_d, kind) FORWARD(name, type, max_d, kind)
#endif
#define FORWARD_ANY(type)                                       \
  FORWARD(flash_forward_any_##type##_64, type, 64, FLASH_ANY)   \
  FORWARD(flash_forward_any_##type##_128, type, 128, FLASH_ANY) \
  FORWARD(flash_forward_any_##type##_256, type, 256, FLASH_ANY)
#define FORWARD_16_BITS(type)                                              \
  FORWARD_MATRIX(flash_forward_##type##_64, type, 64, FLASH_PLAIN)         \
  FORWARD_MATRIX(flash_forward_##type##_128, type, 128, FLASH_PLAIN)       \
  FORWARD(flash_forward_##type##_256, type, 256, FLASH_PLAIN)              \
  FORWARD_MATRIX(flash_forward_masked_##type##_64, type, 64, FLASH_MASKED) \
  FORWARD_MATRIX(flash_forward_masked_##type##_128, type, 128, FLASH_MASKED)

FORWARD_ANY(f32)
FORWARD_ANY(f16)
FORWARD_ANY(bf16)
FORWARD(flash_forward_f32_64, f32, 64, FLASH_PLAIN)
FORWARD(flash_forward_f32_128, f32, 128, FLASH_PLAIN)
FORWARD(flash_forward_f32_256, f32, 256, FLASH_PLAIN)
FORWARD_16_BITS(f16)
FORWARD_16_BITS(bf16)
