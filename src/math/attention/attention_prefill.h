/* Device code: prefill, many tokens at once.
 *
 * A group owns a tile of 64 rows, each a query head of a token, all of one key head, and walks over tiles of 64
 * positions. Its threads stand 16 by 16, thread (ty, tx) being number 16 ty + tx:
 *
 *                 positions tx, tx + 16, tx + 32, tx + 48          values 64 c + 4 tx .. + 3
 *     row 4 ty    score                                            output
 *      ..  + 3
 *
 * Scores are built from slices of 32 values of Q and K in LDS. Then the tile's probabilities P take the place of those
 * slices, beside slices of 32 positions by 64 values of V:
 *
 *     LDS    | Q slice 64 x 32 | K slice 64 x 32 |
 *            | P 64 x 64               | V slice 32 x 64 |
 *
 * Where values have more than 256 numbers, which is what registers hold, groups of the same scores make 256 each.
 *
 * Rows of Q, K and P in LDS are 4 floats longer, to spread them over the banks. */
#ifndef RDNA_MATH_ATTENTION_ATTENTION_PREFILL_H
#define RDNA_MATH_ATTENTION_ATTENTION_PREFILL_H

#include "math/attention/attention_reach.h"

enum { TILE = 64, SLICE = 32, Q_PITCH = SLICE + 4, P_PITCH = TILE + 4 };
enum { P_VALUES = TILE * P_PITCH, V_VALUES = SLICE * 64 };
static_assert(2 * TILE * Q_PITCH <= P_VALUES + V_VALUES, "the slices of Q and K fit where P and V go");

/* What a thread knows of its rows: two that it copies to LDS, and the four whose scores and output it owns. */
struct tile_rows {
  const float *q[2];       /* the two rows of Q that this thread copies, or NULL past the end */
  int32_t low[4], high[4]; /* positions that the four owned rows may see in the current sequence */
  float m[4], l[4];
};

/* scores s[i][j] of rows 4 ty + i and positions tx + 16 j of a tile of |count| positions from |k| on. */
template <typename type>
RDNA_DEVICE void tile_scores(const attention_args &a, const tile_rows &rows, const type *k, int32_t count, bool wide,
                             float *lds, float s[4][4]) {
  int tid = (int)thread_id(), tx = tid & 15, ty = tid >> 4;
  float *q_slice = lds, *k_slice = lds + TILE * Q_PITCH;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) s[i][j] = 0;
  for (int dim = 0; dim < a.d; dim += SLICE) {
    float values[8];
    int row = tid >> 2, part = (tid & 3) * 8;
#pragma unroll
    for (int i = 0; i < 8; i++) values[i] = 0;
    if (row < count) load_8(k + row * a.k_stride, dim + part, a.d, wide, values);
    float4 q[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int q_dim = dim + (tid & 7) * 4;
      q[i] = rows.q[i] && q_dim < a.d ? load_global<float4>(rows.q[i] + q_dim) * a.scale : float4{0, 0, 0, 0};
    }
    group_barrier(); /* the slices before have been read */
    float *to = k_slice + row * Q_PITCH + part;
    store_f32x4(to, float4{values[0], values[1], values[2], values[3]});
    store_f32x4(to + 4, float4{values[4], values[5], values[6], values[7]});
#pragma unroll
    for (int i = 0; i < 2; i++) store_f32x4(q_slice + ((tid >> 3) + 32 * i) * Q_PITCH + (tid & 7) * 4, q[i]);
    group_barrier();
#pragma unroll 2
    for (int c = 0; c < SLICE; c += 4) {
      float4 qv[4], kv[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        qv[i] = load_f32x4(q_slice + (4 * ty + i) * Q_PITCH + c);
        kv[i] = load_f32x4(k_slice + (tx + 16 * i) * Q_PITCH + c);
      }
#pragma unroll
      for (int e = 0; e < 4; e++)
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < 4; j++) s[i][j] = fma_f32(qv[i][e], kv[j][e], s[i][j]);
    }
  }
}

/* Turns scores into probabilities, in place, and brings m and l up to date; o is to be multiplied by |rescale|. */
RDNA_DEVICE void tile_softmax(const attention_args &a, tile_rows &rows, int32_t first, float s[4][4],
                              float rescale[4]) {
  int tx = (int)thread_id() & 15;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float m = rows.m[i], sum = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int32_t position = first + tx + 16 * j;
      bool seen = position >= rows.low[i] && position <= rows.high[i];
      s[i][j] = seen ? capped(s[i][j], a.softcap) : -infinity_f32();
      m = max_f32(m, s[i][j]);
    }
#pragma unroll
    for (uint32_t mask = 1; mask < 16; mask *= 2) m = max_f32(m, wave_shuffle_xor_f32(m, mask));
#pragma unroll
    for (int j = 0; j < 4; j++) {
      s[i][j] = fast_exp(s[i][j] - m);
      sum += s[i][j];
    }
#pragma unroll
    for (uint32_t mask = 1; mask < 16; mask *= 2) sum += wave_shuffle_xor_f32(sum, mask);
    rescale[i] = fast_exp(rows.m[i] - m);
    rows.l[i] = fma_f32(rows.l[i], rescale[i], sum);
    rows.m[i] = m;
  }
}

/* Adds the probabilities times the tile's values to o. */
template <typename type, int max_d>
RDNA_DEVICE void tile_values(const attention_args &a, const type *v, int32_t dv, int32_t count, bool wide, float *lds,
                             const float p[4][4], float o[4][max_d / 64][4]) {
  int tid = (int)thread_id(), tx = tid & 15, ty = tid >> 4;
  float *p_tile = lds, *v_slice = lds + P_VALUES;
  group_barrier(); /* the slices of Q and K have been read */
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) p_tile[(4 * ty + i) * P_PITCH + tx + 16 * j] = p[i][j];
#pragma unroll
  for (int c = 0; c < max_d / 64; c++) {
    if (c * 64 >= dv) break;
    for (int start = 0; start < TILE && start < count; start += SLICE) {
      int row = tid >> 3, part = (tid & 7) * 8;
      float values[8] = {0, 0, 0, 0, 0, 0, 0, 0};
      if (start + row < count) load_8(v + (start + row) * a.v_stride, c * 64 + part, dv, wide, values);
      group_barrier(); /* the slice before has been read; the first time: P is written */
      float *to = v_slice + row * 64 + part;
      store_f32x4(to, float4{values[0], values[1], values[2], values[3]});
      store_f32x4(to + 4, float4{values[4], values[5], values[6], values[7]});
      group_barrier();
#pragma unroll 2
      for (int e = 0; e < SLICE; e += 4) {
        float4 pv[4];
#pragma unroll
        for (int i = 0; i < 4; i++) pv[i] = load_f32x4(p_tile + (4 * ty + i) * P_PITCH + start + e);
#pragma unroll
        for (int f = 0; f < 4; f++) {
          float4 vv = load_f32x4(v_slice + (e + f) * 64 + tx * 4);
#pragma unroll
          for (int i = 0; i < 4; i++)
#pragma unroll
            for (int g = 0; g < 4; g++) o[i][c][g] = fma_f32(pv[i][f], vv[g], o[i][c][g]);
        }
      }
    }
  }
}

/* Divides o by the sum of its row, to which the head's sink is added, and stores it; NaN where the token's rows are not
 * all in the cache. */
template <int max_d>
RDNA_DEVICE void write_rows(const attention_args &args, const tile_rows &rows, const int32_t token[4],
                            const int32_t head[4], int32_t first_value, const float o[4][max_d / 64][4]) {
  const attention_args &a = arguments_again_wide(args);
  int tx = (int)thread_id() & 15;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (token[i] < 0) continue;
    float sink = a.sinks ? global(a.sinks)[head[i]] : -infinity_f32(), top = max_f32(rows.m[i], sink);
    float share = fast_exp(rows.m[i] - top), sum = fma_f32(rows.l[i], share, fast_exp(sink - top));
    float inverse = sum != 0 ? share / sum : 0;
    if (token_reach(a, token[i]).outside) inverse = __builtin_nanf("");
    float *out = a.out + token[i] * a.out_stride + (int64_t)head[i] * a.dv + first_value;
#pragma unroll
    for (int c = 0; c < max_d / 64; c++) {
      if (first_value + c * 64 + tx * 4 >= a.dv) continue;
      float4 value = {o[i][c][0], o[i][c][1], o[i][c][2], o[i][c][3]};
      store_f32x4(out + c * 64 + tx * 4, value * inverse);
    }
  }
}

template <typename type, int max_d>
RDNA_DEVICE void prefill(const attention_args &a, float *lds) {
  int tid = (int)thread_id(), ty = tid >> 4;
  int32_t heads_per_kv = a.heads / a.kv_heads, row_count = a.tokens * heads_per_kv;
  int32_t tiles = (row_count + TILE - 1) / TILE;
  int32_t tile = tiles - 1 - (int32_t)group_id_x(); /* late tokens see the most: they start first */
  int32_t parts = ATTENTION_PARTS(a.dv), kv_head = (int32_t)group_id_y() / parts;
  int32_t first_value = (int32_t)group_id_y() % parts * ATTENTION_MAX_D;
  if (tile < 0 || kv_head >= a.kv_heads) return;
  bool wide = rows_are_wide<sizeof(type)>(a, a.dv);

  tile_rows rows;
  int32_t token[4], head[4];
  float o[4][max_d / 64][4];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int32_t row = tile * TILE + (tid >> 3) + 32 * i;
    rows.q[i] = row < row_count ? a.q + (row / heads_per_kv) * a.q_stride +
                                      (int64_t)(kv_head * heads_per_kv + row % heads_per_kv) * a.d
                                : nullptr;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int32_t row = tile * TILE + 4 * ty + i;
    token[i] = row < row_count ? row / heads_per_kv : -1;
    head[i] = kv_head * heads_per_kv + row % heads_per_kv;
    rows.m[i] = ATTENTION_LOWEST;
    rows.l[i] = 0;
#pragma unroll
    for (int c = 0; c < max_d / 64; c++)
#pragma unroll
      for (int g = 0; g < 4; g++) o[i][c][g] = 0;
  }

  /* One sequence after the other: its tokens share tiles of K and V. */
  int32_t last_row = tile * TILE + TILE < row_count ? tile * TILE + TILE - 1 : row_count - 1;
  int32_t begin = tile * TILE / heads_per_kv, end = last_row / heads_per_kv + 1, next;
  for (; begin < end; begin = next) {
    const attention_args &now = arguments_again_wide(a);
    reach all = token_reach(now, begin);
    for (next = begin + 1; next < end && now.cache_base[next] == all.base; next++) {
      reach r = token_reach(now, next);
      if (r.high < 0) continue;
      all.low = all.high < 0 || r.low < all.low ? r.low : all.low;
      all.high = r.high > all.high ? r.high : all.high;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      rows.low[i] = 0;
      rows.high[i] = -1;
      if (token[i] >= begin && token[i] < next) {
        reach r = token_reach(now, token[i]);
        rows.low[i] = r.low;
        rows.high[i] = r.high;
      }
    }
    for (int32_t first = all.low; first <= all.high; first += TILE) {
      const type *k = (const type *)now.k + (all.base + first) * now.k_stride + (int64_t)kv_head * now.d;
      const type *v = (const type *)now.v + (all.base + first) * now.v_stride + (int64_t)kv_head * now.dv + first_value;
      int32_t count = all.high - first + 1;
      float s[4][4], rescale[4];
      tile_scores<type>(now, rows, k, count, wide, lds, s);
      tile_softmax(now, rows, first, s, rescale);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int c = 0; c < max_d / 64; c++)
#pragma unroll
          for (int g = 0; g < 4; g++) o[i][c][g] *= rescale[i];
      tile_values<type, max_d>(now, v, now.dv - first_value, count, wide, lds, s, o);
    }
  }
  write_rows<max_d>(a, rows, token, head, first_value, o);
}

#endif
