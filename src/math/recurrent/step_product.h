/* Device code: the product of a step, whose left side is rows of states or gradients, each with an address of its own,
 * and whose right side is rows of weights: sums(r, c) = sum over k < depth of row r's k * column c's k, left in group
 * memory in the parts that the group's waves have summed. */
#ifndef RDNA_MATH_RECURRENT_STEP_PRODUCT_H
#define RDNA_MATH_RECURRENT_STEP_PRODUCT_H

#include "kernel/mma.h"
#include "math/common/device/doubles.h"
#include "math/common/device/values.h"
#include "math/recurrent/step_kernels.h"

/* Loads 16 bytes of values, from number k on, of which those from |end| on are zeros; |inside|: there are none. With
 * |vectors| k and |end| are multiples of as many values as that. */
template <bool vectors, bool inside>
RDNA_DEVICE uint4 chunk_at(const uint16_t *row, uint32_t k, uint32_t end) {
  uint4 v = {0, 0, 0, 0};
  if (vectors && inside) return load_global<uint4>(row + k);
  if (vectors) {
    const uint4 there = load_global<uint4>(row + (k < end ? k : 0));
    return k < end ? there : v;
  }
#pragma unroll
  for (uint32_t i = 0; i < 8; i++) {
    const uint32_t there = *global(row + min_u32(k + i, end - 1));
    v[i / 2] |= k + i < end ? there << (i % 2 * 16) : 0;
  }
  return v;
}
template <bool vectors, bool inside>
RDNA_DEVICE float4 chunk_at(const float *row, uint32_t k, uint32_t end) {
  float4 v = {0, 0, 0, 0};
  if (vectors && inside) return load_global<float4>(row + k);
  if (vectors) {
    const float4 there = load_global<float4>(row + (k < end ? k : 0));
    return k < end ? there : v;
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; i++) {
    const float there = *global(row + min_u32(k + i, end - 1));
    v[i] = k + i < end ? there : 0.0f;
  }
  return v;
}

/* What the waves do: |part| of |parts| of the depth, for one band. */
struct share {
  uint32_t band, part, parts, begin, end;
};
RDNA_DEVICE share share_of(uint32_t number, uint32_t count, uint32_t bands_log, uint32_t depth, uint32_t turn) {
  share s;
  s.band = number & ((1u << bands_log) - 1), s.part = number >> bands_log, s.parts = count >> bands_log;
  const uint32_t span = ((depth + s.parts - 1) / s.parts + turn - 1) / turn * turn;
  s.begin = min_u32(s.part * span, depth), s.end = min_u32(s.begin + span, depth);
  return s;
}

/* Adds the products of a share. Operands are loaded several turns ahead, as a turn computes for less time than a load
 * takes. */
template <bool vectors, typename product, typename sums>
RDNA_DEVICE void multiply(sums sum, const typename product::places &from, const share &s) {
  constexpr uint32_t ahead = vectors ? (uint32_t)product::AHEAD : 1, turn = product::TURN;
  typename product::operands o[ahead];
#pragma unroll
  for (uint32_t i = 0; i < ahead; i++)
    if (s.begin + i * turn < s.end) o[i] = product::template load<vectors, false>(from, s.begin + i * turn, s.end);
  uint32_t k = s.begin;
#pragma unroll 1
  for (; k + 2 * ahead * turn <= s.end; k += ahead * turn) {
#pragma unroll
    for (uint32_t i = 0; i < ahead; i++) {
      product::add(sum, o[i]);
      o[i] = product::template load<vectors, true>(from, k + (ahead + i) * turn, s.end);
    }
  }
#pragma unroll 1
  for (; k < s.end; k += ahead * turn) {
#pragma unroll
    for (uint32_t i = 0; i < ahead; i++) {
      const uint32_t at = k + i * turn, next = at + ahead * turn;
      if (at < s.end) product::add(sum, o[i]);
      if (next < s.end) o[i] = product::template load<vectors, false>(from, next, s.end);
    }
  }
}

RDNA_DEVICE void mma_of(f16, mma_acc &c, const mma_a &a, const mma_b &b) { mma_f16(c, a, b); }
RDNA_DEVICE void mma_of(bf16, mma_acc &c, const mma_a &a, const mma_b &b) { mma_bf16(c, a, b); }

/* The product of 16-bit values: a wave has a band of 16 rows, in tiles of 16 columns. */
template <typename type, uint32_t columns>
struct step_product {
  enum {
    BAND = STEP_BAND,
    SHARES = STEP_THREADS / WAVE_SIZE, /* of the work: a wave's */
    TILES = (columns + 15) / 16,
    PITCH = 16 * TILES, /* of a row of sums */
    TURN = MMA_K,
#ifdef RDNA_MMA_BY_LANES_ /* whose operands take more registers */
    AHEAD = TILES == 1 ? 4 : 1,
#else
    AHEAD = TILES == 1 ? 4 : 2,
#endif
    SUMS = SHARES * BAND * PITCH
  };
  struct operands {
    mma_a a;
    mma_b b[TILES];
  };
  struct places {
    const uint16_t *row[MMA_CHUNKS_A], *column[TILES][MMA_CHUNKS_B];
  };
  template <bool vectors, bool inside>
  RDNA_DEVICE operands load(const places &from, uint32_t k, uint32_t end) {
    operands o;
#pragma unroll
    for (uint32_t i = 0; i < MMA_CHUNKS_A; i++)
      o.a.chunk[i] = chunk_at<vectors, inside>(from.row[i], k + mma_k(i), end);
#pragma unroll
    for (uint32_t t = 0; t < TILES; t++) {
#pragma unroll
      for (uint32_t i = 0; i < MMA_CHUNKS_B; i++)
        o.b[t].chunk[i] = chunk_at<vectors, inside>(from.column[t][i], k + mma_k(i), end);
    }
    return o;
  }
  RDNA_DEVICE void add(mma_acc *sum, const operands &o) {
#pragma unroll
    for (uint32_t t = 0; t < TILES; t++) mma_of(type(), sum[t], o.a, o.b[t]);
  }
  /* |row_of| and |column_of| give the address of a row of the group and of a column, also of those that are outside:
   * any that may be read. */
  template <typename row_place, typename column_place>
  RDNA_DEVICE void run(float *sums, uint32_t depth, uint32_t bands_log, bool vectors, row_place row_of,
                       column_place column_of) {
    const share s = share_of(wave_id(), SHARES, bands_log, depth, TURN);
    mma_acc sum[TILES];
#pragma unroll
    for (uint32_t t = 0; t < TILES; t++) sum[t] = mma_acc{};
    if (s.begin < s.end) {
      places from;
#pragma unroll
      for (uint32_t i = 0; i < MMA_CHUNKS_A; i++) from.row[i] = row_of(s.band * BAND + mma_a_row(i));
#pragma unroll
      for (uint32_t t = 0; t < TILES; t++) {
#pragma unroll
        for (uint32_t i = 0; i < MMA_CHUNKS_B; i++) from.column[t][i] = column_of(16 * t + mma_b_column(i));
      }
      if (vectors)
        multiply<true, step_product>(sum, from, s);
      else
        multiply<false, step_product>(sum, from, s);
    }
    float *to = sums + (((s.part << bands_log) + s.band) * BAND) * PITCH;
#pragma unroll
    for (uint32_t t = 0; t < TILES; t++) {
#pragma unroll
      for (uint32_t v = 0; v < MMA_VALUES; v++) to[mma_row(v) * PITCH + 16 * t + mma_column(v)] = sum[t][v];
    }
  }
};

/* The product of f32. Eight threads have the same unit and rows, each an eighth of the depth, so that eight lanes read
 * 128 bytes of a row together; what they have summed they exchange until each has one row.
 *
 *     thread   8 u + 0   8 u + 1   ...   8 u + 7     of unit u
 *     values   0..3      4..7            28..31
 *              32..35    36..39          60..63      ... */
template <uint32_t columns>
struct step_product<f32, columns> {
  enum {
    BAND = STEP_BAND_F32,
    SLICES = 8,
    UNITS = 8,
    SHARES = STEP_THREADS / (SLICES * UNITS),
    EACH = columns / UNITS, /* columns of a thread */
    PITCH = columns,
    SUMS = SHARES * BAND * PITCH,
    TURN = 4 * SLICES,
    AHEAD = EACH <= 2 ? 4 : 2
  };
  struct operands {
    float4 a[BAND], b[EACH];
  };
  struct places {
    const float *row[BAND], *column[EACH];
  };
  template <bool vectors, bool inside>
  RDNA_DEVICE operands load(const places &from, uint32_t k, uint32_t end) {
    const uint32_t at = k + 4 * (thread_id() % SLICES);
    operands o;
#pragma unroll
    for (uint32_t i = 0; i < BAND; i++) o.a[i] = chunk_at<vectors, inside>(from.row[i], at, end);
#pragma unroll
    for (uint32_t j = 0; j < EACH; j++) o.b[j] = chunk_at<vectors, inside>(from.column[j], at, end);
    return o;
  }
  RDNA_DEVICE void add(float sum[BAND][EACH], const operands &o) {
#pragma unroll
    for (uint32_t v = 0; v < 4; v++) {
#pragma unroll
      for (uint32_t i = 0; i < BAND; i++) {
#pragma unroll
        for (uint32_t j = 0; j < EACH; j++) sum[i][j] = fused(o.a[i][v], o.b[j][v], sum[i][j]);
      }
    }
  }
  /* Half of the sums goes to the lane with another bit |mask|, which has the same half of the other's. */
  template <uint32_t rows>
  RDNA_DEVICE void exchange(float sum[BAND][EACH], uint32_t mask) {
    const bool upper = thread_id() & mask;
#pragma unroll
    for (uint32_t i = 0; i < rows; i++) {
#pragma unroll
      for (uint32_t j = 0; j < EACH; j++) {
        const float kept = upper ? sum[i + rows][j] : sum[i][j], given = upper ? sum[i][j] : sum[i + rows][j];
        sum[i][j] = kept + wave_shuffle_xor_f32(given, mask);
      }
    }
  }
  template <typename row_place, typename column_place>
  RDNA_DEVICE void run(float *sums, uint32_t depth, uint32_t bands_log, bool vectors, row_place row_of,
                       column_place column_of) {
    const uint32_t slice = thread_id() % SLICES, unit = thread_id() / SLICES % UNITS;
    const share s = share_of(wave_uniform_u32(thread_id() / (SLICES * UNITS)), SHARES, bands_log, depth, TURN);
    float sum[BAND][EACH];
#pragma unroll
    for (uint32_t i = 0; i < BAND; i++) {
#pragma unroll
      for (uint32_t j = 0; j < EACH; j++) sum[i][j] = 0;
    }
    if (s.begin < s.end) {
      places from;
#pragma unroll
      for (uint32_t i = 0; i < BAND; i++) from.row[i] = row_of(s.band * BAND + i);
#pragma unroll
      for (uint32_t j = 0; j < EACH; j++) from.column[j] = column_of(UNITS * j + unit);
      if (vectors)
        multiply<true, step_product>(sum, from, s);
      else
        multiply<false, step_product>(sum, from, s);
    }
    exchange<2>(sum, 1);
    exchange<1>(sum, 2);
    const uint32_t row = slice % 2 * 2 + slice / 2 % 2;
    float *to = sums + (((s.part << bands_log) + s.band) * BAND + row) * PITCH + unit;
#pragma unroll
    for (uint32_t j = 0; j < EACH; j++) {
      const float whole = sum[0][j] + wave_shuffle_xor_f32(sum[0][j], 4);
      if (slice < 4) to[UNITS * j] = whole;
    }
  }
};

#endif
