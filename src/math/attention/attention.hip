/* Attention over a KV cache, in one pass over the keys and values: each row of scores keeps its running maximum m,
 * the sum l of exp(s - m) and the sum o of exp(s - m) * v, and all three are scaled down when the maximum grows
 * (Milakov and Gimelshein 2018; Dao et al. 2022). */
#include "kernel/arguments.h"
#include "kernel/scalar.h"
#include "math/attention/attention_kernels.h"
#include "math/common/device/values.h"

/* What a token may see: positions low..high of the cache rows from base on; none when high < low. */
struct reach {
  int64_t base;
  int32_t low, high;
  bool outside; /* its rows are not all in the cache */
};

RDNA_DEVICE reach token_reach(const attention_args &a, int32_t token) {
  reach r;
  r.base = a.cache_base[token];
  r.high = a.position[token];
  r.low = a.window > 0 && r.high >= a.window ? r.high - a.window + 1 : 0;
  if (a.block_table)
    r.outside = r.high >= 0 && (r.base < 0 || r.base >= a.sequences || r.high / a.block_rows >= a.table_stride);
  else
    r.outside = r.high >= 0 && (r.base < 0 || r.base + r.high >= a.slots);
  if (r.outside || r.high < 0) r.high = -1;
  return r;
}

/* Values dim..dim+7 of a row of d, zeros past its end. |wide| says that 8 halves are aligned to 16 bytes. */
RDNA_DEVICE void load_8(const float *row, int dim, int d, bool wide, float out[8]) {
  float4 zero = {0, 0, 0, 0};
  float4 low = dim < d ? load_f32x4(row + dim) : zero;
  float4 high = dim + 4 < d ? load_f32x4(row + dim + 4) : zero;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    out[i] = low[i];
    out[i + 4] = high[i];
  }
}
RDNA_DEVICE void load_8(const half *row, int dim, int d, bool wide, float out[8]) {
  uint4 bits = {0, 0, 0, 0};
  if (wide) {
    if (dim < d) bits = load_u32x4(row + dim);
  } else {
    uint2 low = {0, 0}, high = {0, 0};
    if (dim < d) low = load_as<uint2>(row + dim);
    if (dim + 4 < d) high = load_as<uint2>(row + dim + 4);
    bits = uint4{low.x, low.y, high.x, high.y};
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 pair = f16x2_to_f32(bits[i]);
    out[2 * i] = pair.x;
    out[2 * i + 1] = pair.y;
  }
}

template <int bytes>
RDNA_DEVICE bool rows_are_wide(const attention_args &a) {
  return bytes == 2 && ((a.d | a.k_stride | a.v_stride) & 7) == 0 && (((uintptr_t)a.k | (uintptr_t)a.v) & 15) == 0;
}

RDNA_DEVICE float capped(float s, float softcap) { return softcap != 0 ? softcap * scalar_tanh(s / softcap) : s; }

/* --- prefill ------------------------------------------------------------------------------------------------
 * A group owns 64 rows, each a query head of a token, all of one key head, and walks over tiles of 64 positions.
 * Thread (ty, tx) of 16 x 16 owns rows 4 ty..4 ty + 3; of the scores columns tx + 16 j, of the output the
 * values 64 c + 4 tx.. + 3. Scores are built from slices of 32 values of Q and K in LDS; then the tile's
 * probabilities take the place of those slices, beside slices of 32 positions x 64 values of V. */
enum { TILE = 64, SLICE = 32, Q_PITCH = SLICE + 4, P_PITCH = TILE + 4 };
enum { P_VALUES = TILE * P_PITCH, V_VALUES = SLICE * 64 };
static_assert(2 * TILE * Q_PITCH <= P_VALUES + V_VALUES, "the slices of Q and K fit where P and V go");

/* The rows of one thread. */
struct tile_rows {
  const float *q[2];       /* the two rows of Q that this thread copies, or NULL past the end */
  int32_t low[4], high[4]; /* positions that the four owned rows may see in the current sequence */
  float m[4], l[4];
};

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
    group_barrier(); /* the slices before are used up */
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

/* Turns scores into probabilities, in place, and brings m and l up to date; |rescale| is what o is to be
 * multiplied with. */
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

template <typename type, int max_d>
RDNA_DEVICE void tile_values(const attention_args &a, const type *v, int32_t count, bool wide, float *lds,
                             const float p[4][4], float o[4][max_d / 64][4]) {
  int tid = (int)thread_id(), tx = tid & 15, ty = tid >> 4;
  float *p_tile = lds, *v_slice = lds + P_VALUES;
  group_barrier(); /* the slices of Q and K are used up */
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) p_tile[(4 * ty + i) * P_PITCH + tx + 16 * j] = p[i][j];
#pragma unroll
  for (int c = 0; c < max_d / 64; c++) {
    if (c * 64 >= a.d) break;
    for (int start = 0; start < TILE && start < count; start += SLICE) {
      int row = tid >> 3, part = (tid & 7) * 8;
      float values[8] = {0, 0, 0, 0, 0, 0, 0, 0};
      if (start + row < count) load_8(v + (start + row) * a.v_stride, c * 64 + part, a.d, wide, values);
      group_barrier(); /* the slice before is used up; first time: P is written */
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

template <int max_d>
RDNA_DEVICE void write_rows(const attention_args &args, const tile_rows &rows, const int32_t token[4],
                            const int32_t head[4], const float o[4][max_d / 64][4]) {
  const attention_args &a = arguments_again_wide(args);
  int tx = (int)thread_id() & 15;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (token[i] < 0) continue;
    float inverse = rows.l[i] != 0 ? 1 / rows.l[i] : 0;
    if (token_reach(a, token[i]).outside) inverse = __builtin_nanf("");
    float *out = a.out + token[i] * a.out_stride + (int64_t)head[i] * a.d;
#pragma unroll
    for (int c = 0; c < max_d / 64; c++) {
      if (c * 64 + tx * 4 >= a.d) continue;
      float4 value = {o[i][c][0], o[i][c][1], o[i][c][2], o[i][c][3]};
      store_f32x4(out + c * 64 + tx * 4, value * inverse);
    }
  }
}

template <typename type, int max_d>
RDNA_DEVICE void prefill(const attention_args &a, float *lds) {
  int tid = (int)thread_id(), ty = tid >> 4;
  int32_t group = a.heads / a.kv_heads, row_count = a.tokens * group;
  int32_t tiles = (row_count + TILE - 1) / TILE;
  int32_t tile = tiles - 1 - (int32_t)group_id_x(); /* late tokens see the most: they start first */
  int32_t kv_head = (int32_t)group_id_y();
  if (tile < 0 || kv_head >= a.kv_heads) return;
  bool wide = rows_are_wide<sizeof(type)>(a);

  tile_rows rows;
  int32_t token[4], head[4];
  float o[4][max_d / 64][4];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int32_t row = tile * TILE + (tid >> 3) + 32 * i;
    rows.q[i] =
        row < row_count ? a.q + (row / group) * a.q_stride + (int64_t)(kv_head * group + row % group) * a.d : nullptr;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int32_t row = tile * TILE + 4 * ty + i;
    token[i] = row < row_count ? row / group : -1;
    head[i] = kv_head * group + row % group;
    rows.m[i] = ATTENTION_LOWEST;
    rows.l[i] = 0;
#pragma unroll
    for (int c = 0; c < max_d / 64; c++)
#pragma unroll
      for (int g = 0; g < 4; g++) o[i][c][g] = 0;
  }

  /* Tokens of one sequence after the other share their tiles of K and V. */
  int32_t last_row = tile * TILE + TILE < row_count ? tile * TILE + TILE - 1 : row_count - 1;
  int32_t begin = tile * TILE / group, end = last_row / group + 1, next;
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
      const type *v = (const type *)now.v + (all.base + first) * now.v_stride + (int64_t)kv_head * now.d;
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
      tile_values<type, max_d>(now, v, count, wide, lds, s, o);
    }
  }
  write_rows<max_d>(a, rows, token, head, o);
}

#define PREFILL(name, type, max_d)                               \
  RDNA_KERNEL(ATTENTION_THREADS) name(struct attention_args a) { \
    RDNA_SHARED static float lds[P_VALUES + V_VALUES];           \
    prefill<type, max_d>(a, lds);                                \
  }
PREFILL(attention_prefill_f16_d128, half, 128)
PREFILL(attention_prefill_f16_d256, half, 256)
PREFILL(attention_prefill_f32_d128, float, 128)
PREFILL(attention_prefill_f32_d256, float, 256)

/* --- decode -------------------------------------------------------------------------------------------------
 * A group owns one split of the positions that one token sees, and |heads| query heads of one key head. A team of
 * 8, 16 or 32 lanes reads a row of K and of V, 8 values a lane; teams take rows in turn. */
template <int heads>
struct decode_state {
  float m[heads], l[heads], o[heads][8];
};

/* Scores of several heads and positions are shared out to the lanes of a team while they are added up, so that an
 * exponential is worked out once: of |n| scores of a round, numbered by position and then by head, this lane has the
 * one whose number is the lower bits of its own in reverse, as has every lane with the same bits. A lane thus stays
 * with one head, whose running maximum, the same in all teams of the wave, and sum it keeps. */
template <int heads, int at_once>
struct decode_shares {
  static constexpr int scores = heads * at_once, n = scores < 8 ? scores : 8, rounds = scores / n;
  static_assert(scores % n == 0 && n % heads == 0 && (n == 4 || n == 8), "whole rounds");
  float m, l;

  RDNA_DEVICE uint32_t turned(uint32_t bits) {
    return n == 8 ? (bits & 1) << 2 | (bits & 2) | (bits >> 2 & 1) : (bits & 1) << 1 | (bits >> 1 & 1);
  }
  /* Of score |number| of a round, from a lane of this team that has it. */
  RDNA_DEVICE float from(float v, uint32_t number) {
    return wave_shuffle_f32(v, (lane_id() & ~(uint32_t)(n - 1)) | turned(number));
  }
  /* Lanes with the bit |mask| add up and keep the upper half of the scores, the others the lower one. */
  template <int half>
  RDNA_DEVICE void halve(float (&v)[n], uint32_t mask) {
    bool upper = lane_id() & mask;
#pragma unroll
    for (int i = 0; i < half; i++) {
      float low = v[i], high = v[i + half];
      v[i] = (upper ? high : low) + wave_shuffle_xor_f32(upper ? low : high, mask);
    }
  }
  RDNA_DEVICE float add_up(const float *part, uint32_t team) {
    float v[n];
#pragma unroll
    for (int i = 0; i < n; i++) v[i] = part[i];
    if constexpr (n == 8) {
      halve<4>(v, 1);
      halve<2>(v, 2);
      halve<1>(v, 4);
    } else {
      halve<2>(v, 1);
      halve<1>(v, 2);
    }
    if (n == 4) v[0] += wave_shuffle_xor_f32(v[0], 4);
    if (team > 8) v[0] += wave_shuffle_xor_f32(v[0], 8);
    if (team > 16) v[0] += wave_shuffle_xor_f32(v[0], 16);
    return v[0];
  }
};

/* The sum over the teams of a wave. */
RDNA_DEVICE float over_teams(float v, uint32_t team) {
  if (team <= 8) v += wave_shuffle_xor_f32(v, 8);
  if (team <= 16) v += wave_shuffle_xor_f32(v, 16);
#if WAVE_SIZE == 64
  v += wave_shuffle_xor_f32(v, 32);
#endif
  return v;
}

RDNA_DEVICE void decode_merge_lanes(decode_state<1> &state, uint32_t mask) {
  float m = wave_shuffle_xor_f32(state.m[0], mask);
  float top = max_f32(state.m[0], m), mine = fast_exp(state.m[0] - top), theirs = fast_exp(m - top);
  state.l[0] = fma_f32(state.l[0], mine, wave_shuffle_xor_f32(state.l[0], mask) * theirs);
#pragma unroll
  for (int i = 0; i < 8; i++)
    state.o[0][i] = fma_f32(state.o[0][i], mine, wave_shuffle_xor_f32(state.o[0][i], mask) * theirs);
  state.m[0] = top;
}

/* 8 values of the cache as they lie in memory, so that many may be on their way. */
struct decode_raw {
  uint4 low, high; /* high: f32 only */
};
template <typename type>
RDNA_DEVICE decode_raw decode_load(const char *row, int dim, int d, bool wide) {
  decode_raw raw = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  if (type::BYTES == 4) {
    if (dim < d) raw.low = load_u32x4(row + dim * 4);
    if (dim + 4 < d) raw.high = load_u32x4(row + dim * 4 + 16);
  } else if (wide) {
    if (dim < d) raw.low = load_u32x4(row + dim * 2);
  } else {
    uint2 low = {0, 0}, high = {0, 0};
    if (dim < d) low = load_as<uint2>(row + dim * 2);
    if (dim + 4 < d) high = load_as<uint2>(row + dim * 2 + 8);
    raw.low = uint4{low.x, low.y, high.x, high.y};
  }
  return raw;
}
template <typename type>
RDNA_DEVICE void decode_unpack(const decode_raw &raw, float out[8]) {
  type::unpack(raw.low, out);
  if (type::BYTES == 4) type::unpack(raw.high, out + 4);
}

/* Where positions are, of one sequence and key head. */
template <typename type>
struct decode_cache {
  const char *k, *v;
  const int32_t *blocks; /* or NULL: positions are rows */
  int32_t block_count;
  /* The row of a position, or -1. */
  inline __attribute__((device, always_inline)) int64_t row(const attention_args &a, int32_t position) const {
    if (!blocks) return position;
    int32_t block = global(blocks)[position / a.block_rows];
    return block < 0 || block >= block_count ? -1 : (int64_t)block * a.block_rows + position % a.block_rows;
  }
};

/* Positions first..first+at_once-1 of a team, on their way; those from |end| on are none. */
template <int at_once>
struct decode_batch {
  decode_raw k[at_once], v[at_once];
  bool there[at_once], exists[at_once];
};
template <typename type, int at_once>
RDNA_DEVICE void decode_fetch(const attention_args &a, const decode_cache<type> &cache, int32_t first, int32_t end,
                              int dim, bool wide, decode_batch<at_once> &batch) {
  int64_t row[at_once];
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    batch.there[u] = first + u < end;
    row[u] = batch.there[u] ? cache.row(a, first + u) : -1;
    batch.exists[u] = row[u] >= 0;
  }
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    batch.k[u] = batch.v[u] = decode_raw{{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (batch.exists[u]) {
      batch.k[u] = decode_load<type>(cache.k + row[u] * (a.k_stride * type::BYTES), dim, a.d, wide);
      batch.v[u] = decode_load<type>(cache.v + row[u] * (a.v_stride * type::BYTES), dim, a.d, wide);
    }
  }
}

/* Adds a batch of one head; positions that are none count for nothing, but all lanes take part in the shuffles. A
 * block that does not exist makes NaN. */
template <typename type, int at_once>
RDNA_DEVICE void decode_row(const attention_args &a, const decode_batch<at_once> &batch, uint32_t team,
                            const float q[8], decode_state<1> &state) {
  float s[at_once], m = state.m[0];
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    float k[8], sum = 0;
    decode_unpack<type>(batch.k[u], k);
#pragma unroll
    for (int i = 0; i < 8; i++) sum = fma_f32(q[i], k[i], sum);
    sum += wave_shuffle_xor_f32(sum, 1);
    sum += wave_shuffle_xor_f32(sum, 2);
    sum += wave_shuffle_xor_f32(sum, 4);
    if (team > 8) sum += wave_shuffle_xor_f32(sum, 8);
    if (team > 16) sum += wave_shuffle_xor_f32(sum, 16);
    s[u] = !batch.there[u] ? -infinity_f32() : !batch.exists[u] ? __builtin_nanf("") : capped(sum, a.softcap);
    m = max_f32(m, s[u]);
  }
  float rescale = fast_exp(state.m[0] - m);
  state.m[0] = m;
  state.l[0] *= rescale;
#pragma unroll
  for (int i = 0; i < 8; i++) state.o[0][i] *= rescale;
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    float v[8], p = fast_exp(s[u] - m);
    state.l[0] += p;
    decode_unpack<type>(batch.v[u], v);
#pragma unroll
    for (int i = 0; i < 8; i++) state.o[0][i] = fma_f32(p, v[i], state.o[0][i]);
  }
}

/* The same of several heads. */
template <typename type, int heads, int at_once>
RDNA_DEVICE void decode_rows(const attention_args &a, const decode_batch<at_once> &batch, uint32_t team,
                             const float q[heads][8], decode_shares<heads, at_once> &own, decode_state<heads> &state) {
  typedef decode_shares<heads, at_once> shares;
  float part[shares::scores], mine[shares::rounds];
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    float k[8];
    decode_unpack<type>(batch.k[u], k);
#pragma unroll
    for (int h = 0; h < heads; h++) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < 8; i++) sum = fma_f32(q[h][i], k[i], sum);
      part[u * heads + h] = sum;
    }
  }
  bool second = shares::n > heads && (lane_id() & 1); /* this lane's score is of the round's second position */
  float m = own.m;
#pragma unroll
  for (int r = 0; r < shares::rounds; r++) {
    constexpr int next = shares::n > heads ? 1 : 0;
    int u = r * shares::n / heads;
    float s = shares::add_up(part + r * shares::n, team);
    bool there = second ? batch.there[u + next] : batch.there[u];
    bool exists = second ? batch.exists[u + next] : batch.exists[u];
    mine[r] = !there ? -infinity_f32() : !exists ? __builtin_nanf("") : capped(s, a.softcap);
    m = max_f32(m, mine[r]);
  }
  if (shares::n > heads) m = max_f32(m, wave_shuffle_xor_f32(m, 1));
  if (team <= 8) m = max_f32(m, wave_shuffle_xor_f32(m, 8));
  if (team <= 16) m = max_f32(m, wave_shuffle_xor_f32(m, 16));
#if WAVE_SIZE == 64
  m = max_f32(m, wave_shuffle_xor_f32(m, 32));
#endif
  if (wave_any(m != own.m)) {
    float rescale = fast_exp(own.m - m);
    own.m = m;
    own.l *= rescale;
#pragma unroll
    for (int h = 0; h < heads; h++) {
      float of_head = shares::from(rescale, (uint32_t)h);
#pragma unroll
      for (int i = 0; i < 8; i++) state.o[h][i] *= of_head;
    }
  }
#pragma unroll
  for (int r = 0; r < shares::rounds; r++) {
    mine[r] = fast_exp(mine[r] - m);
    own.l += mine[r];
  }
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    float v[8];
    decode_unpack<type>(batch.v[u], v);
#pragma unroll
    for (int h = 0; h < heads; h++) {
      int number = u * heads + h;
      float p = shares::from(mine[number / shares::n], (uint32_t)(number % shares::n));
#pragma unroll
      for (int i = 0; i < 8; i++) state.o[h][i] = fma_f32(p, v[i], state.o[h][i]);
    }
  }
}

/* Waves meet in LDS, as many heads at a time as have room there, and a thread makes a value of the result. */
template <int heads>
struct decode_room {
  static constexpr int waves = ATTENTION_THREADS / WAVE_SIZE;
  static constexpr int sums = waves * ATTENTION_MAX_D *
                              (heads > 4   ? 4
                               : heads > 1 ? 2
                                           : 1),
                       floats = sums + 2 * waves * heads;
};
template <int heads>
RDNA_DEVICE void decode_finish(const attention_args &args, int32_t token, int32_t head, int32_t split, bool outside,
                               int dim, const decode_state<heads> &state, float *lds) {
  const attention_args &a = arguments_again_wide(args);
  constexpr int waves = decode_room<heads>::waves;
  /* (waves, at_once, d), then (waves, heads) twice */
  float *o = lds, *m = lds + decode_room<heads>::sums, *l = m + waves * heads;
  int32_t last_head = (head / (a.heads / a.kv_heads) + 1) * (a.heads / a.kv_heads);
  int count = head + heads < last_head ? heads : last_head - head, at_once = decode_room<heads>::sums / (waves * a.d);
  if (lane_id() == 0) {
#pragma unroll
    for (int h = 0; h < heads; h++) {
      m[wave_id() * heads + h] = state.m[h];
      l[wave_id() * heads + h] = state.l[h];
    }
  }
#pragma unroll 1
  for (int first = 0; first < count; first += at_once) {
    int values = (count - first < at_once ? count - first : at_once) * a.d;
    if (first > 0) group_barrier();
    if ((int)lane_id() * 8 == dim && dim < a.d) {
#pragma unroll
      for (int h = 0; h < heads; h++) {
        if (h < first || h >= first + at_once) continue;
        float *to = o + (wave_id() * at_once + h - first) * a.d + dim;
        store_f32x4(to, float4{state.o[h][0], state.o[h][1], state.o[h][2], state.o[h][3]});
        if (dim + 4 < a.d) store_f32x4(to + 4, float4{state.o[h][4], state.o[h][5], state.o[h][6], state.o[h][7]});
      }
    }
    group_barrier();
#pragma unroll 1
    for (int i = (int)thread_id(); i < values; i += ATTENTION_THREADS) {
      const attention_args &a = arguments_again_wide(args);
      int h = i / a.d, of_head = i - h * a.d;
      float top = m[first + h], sum = 0, value = 0;
#pragma unroll
      for (int w = 1; w < waves; w++) top = max_f32(top, m[w * heads + first + h]);
#pragma unroll
      for (int w = 0; w < waves; w++) {
        float share = fast_exp(m[w * heads + first + h] - top);
        sum = fma_f32(l[w * heads + first + h], share, sum);
        value = fma_f32(o[(w * at_once + h) * a.d + of_head], share, value);
      }
      if (outside) top = sum = value = __builtin_nanf("");
      int64_t of_token = (int64_t)(head + first + h);
      if (a.splits == 1) {
        a.out[token * a.out_stride + of_token * a.d + of_head] = sum != 0 ? value / sum : 0;
      } else {
        int64_t cell = ((int64_t)token * a.heads + of_token) * a.splits + split;
        a.partial[cell * a.d + of_head] = value;
        if (of_head == 0) {
          a.stats[2 * cell] = top;
          a.stats[2 * cell + 1] = sum;
        }
      }
    }
  }
}

template <typename type, int heads, int at_once>
RDNA_DEVICE void decode(const attention_args &a, float *lds) {
  int32_t group = a.heads / a.kv_heads, blocks = (group + heads - 1) / heads;
  int32_t split = (int32_t)group_id_x(), token = (int32_t)group_id_z();
  int32_t kv_head = (int32_t)group_id_y() / blocks, block = (int32_t)group_id_y() % blocks;
  if (split >= a.splits || token >= a.tokens || kv_head >= a.kv_heads) return;
  int32_t head = kv_head * group + block * heads;
  uint32_t team = a.d <= 64 ? 8 : a.d <= 128 ? 16 : 32, teams = ATTENTION_THREADS / team;
  int dim = (int)(thread_id() & (team - 1)) * 8;
  bool wide = rows_are_wide<type::BYTES>(a);

  float q[heads][8];
  decode_state<heads> state;
#pragma unroll
  for (int h = 0; h < heads; h++) {
    bool used = block * heads + h < group;
    const float *row = a.q + token * a.q_stride + (int64_t)(used ? head + h : head) * a.d;
    load_8(row, dim, a.d, false, q[h]);
    state.m[h] = ATTENTION_LOWEST;
    state.l[h] = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      q[h][i] *= a.scale;
      state.o[h][i] = 0;
    }
  }

  reach r = token_reach(a, token);
  int64_t seen = r.high < r.low ? 0 : (int64_t)r.high - r.low + 1;
  int64_t per_split = (seen + a.splits - 1) / a.splits;
  int64_t begin = split * per_split, end = begin + per_split < seen ? begin + per_split : seen;
  int64_t first_row = a.block_table ? 0 : r.base;
  decode_cache<type> cache = {(const char *)a.k + (first_row * a.k_stride + (int64_t)kv_head * a.d) * type::BYTES,
                              (const char *)a.v + (first_row * a.v_stride + (int64_t)kv_head * a.d) * type::BYTES,
                              a.block_table ? a.block_table + r.base * a.table_stride : nullptr,
                              a.block_table ? (int32_t)(a.slots / a.block_rows) : 0};
  /* two batches: the next is on its way while one is added */
  int32_t mine = r.low + (int32_t)(thread_id() / team) * at_once, last = r.low + (int32_t)end;
  decode_batch<at_once> batch, next;
  decode_shares<heads == 1 ? 8 : heads, heads == 1 ? 1 : at_once> own = {ATTENTION_LOWEST, 0};
  decode_fetch<type>(a, cache, mine + (int32_t)begin, last, dim, wide, next);
  for (int64_t row = begin; row < end; row += teams * at_once) {
    const attention_args &now = arguments_again_wide(a);
    int64_t following = row + teams * at_once;
    batch = next;
    decode_fetch<type>(now, cache, following < end ? mine + (int32_t)following : last, last, dim, wide, next);
    if constexpr (heads == 1)
      decode_row<type, at_once>(now, batch, team, q[0], state);
    else
      decode_rows<type, heads, at_once>(now, batch, team, q, own, state);
  }
  if constexpr (heads == 1) {
    if (team <= 8) decode_merge_lanes(state, 8);
    if (team <= 16) decode_merge_lanes(state, 16);
#if WAVE_SIZE == 64
    decode_merge_lanes(state, 32);
#endif
  } else {
    typedef decode_shares<heads, at_once> shares;
    if (shares::n > heads) own.l += wave_shuffle_xor_f32(own.l, 1);
    own.l = over_teams(own.l, team);
#pragma unroll
    for (int h = 0; h < heads; h++) {
      state.m[h] = shares::from(own.m, (uint32_t)h);
      state.l[h] = shares::from(own.l, (uint32_t)h);
#pragma unroll
      for (int i = 0; i < 8; i++) state.o[h][i] = over_teams(state.o[h][i], team);
    }
  }
  decode_finish<heads>(a, token, head, split, r.outside, dim, state, lds);
}

/* Two groups share an NVIDIA multiprocessor where their registers, which bound what is on its way, suffice. */
#ifdef RDNA_NVIDIA
#define DECODE_AT_ONCE(amd, nvidia) nvidia
#else
#define DECODE_AT_ONCE(amd, nvidia) amd
#endif
#define DECODE(name, type, heads, at_once, groups)                                         \
  RDNA_KERNEL_RESIDENT(ATTENTION_THREADS, groups) name(struct attention_args a) {          \
    RDNA_SHARED static __attribute__((aligned(16))) float lds[decode_room<heads>::floats]; \
    decode<type, heads, at_once>(a, lds);                                                  \
  }
DECODE(attention_decode_f16_h1, f16, 1, DECODE_AT_ONCE(4, 3), 2)
DECODE(attention_decode_f16_h4, f16, 4, DECODE_AT_ONCE(4, 2), 2)
DECODE(attention_decode_f16_h8, f16, 8, 2, 1)
DECODE(attention_decode_bf16_h1, bf16, 1, DECODE_AT_ONCE(4, 3), 2)
DECODE(attention_decode_bf16_h4, bf16, 4, DECODE_AT_ONCE(4, 2), 2)
DECODE(attention_decode_bf16_h8, bf16, 8, 2, 1)
DECODE(attention_decode_f32_h1, f32, 1, DECODE_AT_ONCE(4, 2), 2)
DECODE(attention_decode_f32_h4, f32, 4, DECODE_AT_ONCE(2, 1), 2)
DECODE(attention_decode_f32_h8, f32, 8, 1, 1)

/* One group joins the splits of one head of one token. Each of its waves finds the share of every split for itself,
 * and adds up every so many of the sums, the first of which are on their way meanwhile. */
enum { COMBINE_SPLITS = 256, COMBINE_WAVES = ATTENTION_THREADS / WAVE_SIZE, COMBINE_AT_ONCE = 4 };
enum { COMBINE_COLUMNS = ATTENTION_MAX_D / (4 * WAVE_SIZE), COMBINE_OWN = COMBINE_SPLITS / WAVE_SIZE };
struct combine_batch {
  float4 v[COMBINE_AT_ONCE][COMBINE_COLUMNS];
};
/* Splits |first| + j * waves of the sums |partial|, for four values a lane. */
RDNA_DEVICE combine_batch combine_fetch(const float *partial, int32_t first, int32_t splits, int32_t d) {
  combine_batch batch;
#pragma unroll
  for (int j = 0; j < COMBINE_AT_ONCE; j++)
#pragma unroll
    for (int c = 0; c < COMBINE_COLUMNS; c++) {
      int32_t split = first + j * COMBINE_WAVES, value = (c * WAVE_SIZE + (int32_t)lane_id()) * 4;
      batch.v[j][c] = float4{0, 0, 0, 0};
      if (split < splits && value < d) batch.v[j][c] = load_f32x4(partial + (int64_t)split * d + value);
    }
  return batch;
}
RDNA_KERNEL(ATTENTION_THREADS) attention_combine(struct attention_combine_args a) {
  RDNA_SHARED static __attribute__((aligned(16))) float sums[COMBINE_WAVES][ATTENTION_MAX_D];
  int32_t head = (int32_t)group_id_x(), token = (int32_t)group_id_y(), lane = (int32_t)lane_id();
  int32_t wave = (int32_t)wave_id(), i = (int32_t)thread_id();
  if (head >= a.heads || token >= a.tokens) return;
  int64_t row = (int64_t)token * a.heads + head;
  const float *stats = a.stats + row * a.splits * 2, *partial = a.partial + row * a.splits * a.d;
  combine_batch batch = combine_fetch(partial, wave, a.splits, a.d);
  float2 mine[COMBINE_OWN];
  float top = ATTENTION_LOWEST, sum = 0;
#pragma unroll
  for (int k = 0; k < COMBINE_OWN; k++) {
    int32_t split = k * WAVE_SIZE + lane;
    mine[k] = split < a.splits ? load_as<float2>(stats + 2 * split) : float2{ATTENTION_LOWEST, 0};
    top = max_f32(top, mine[k].x);
  }
  top = wave_max_f32(top);
#pragma unroll
  for (int k = 0; k < COMBINE_OWN; k++) {
    mine[k].x = fast_exp(mine[k].x - top);
    sum = fma_f32(mine[k].y, mine[k].x, sum);
  }
  sum = wave_sum_f32(sum);
  float4 total[COMBINE_COLUMNS] = {};
#pragma unroll
  for (int k = 0; k < COMBINE_OWN; k++) {
#pragma unroll 1
    for (int lanes = 0; lanes < WAVE_SIZE && k * WAVE_SIZE + lanes < a.splits;
         lanes += COMBINE_WAVES * COMBINE_AT_ONCE) {
      int first = k * WAVE_SIZE + lanes;
      if (first > 0) batch = combine_fetch(partial, first + wave, a.splits, a.d);
#pragma unroll
      for (int j = 0; j < COMBINE_AT_ONCE; j++) {
        float share = wave_shuffle_f32(mine[k].x, (uint32_t)(lanes + j * COMBINE_WAVES + wave));
#pragma unroll
        for (int c = 0; c < COMBINE_COLUMNS; c++) total[c] += batch.v[j][c] * share;
      }
    }
  }
#pragma unroll
  for (int c = 0; c < COMBINE_COLUMNS; c++) store_f32x4(&sums[wave][(c * WAVE_SIZE + lane) * 4], total[c]);
  group_barrier();
  if (i >= a.d) return;
  float result = 0;
#pragma unroll
  for (int w = 0; w < COMBINE_WAVES; w++) result += sums[w][i];
  a.out[token * a.out_stride + (int64_t)head * a.d + i] = sum != 0 ? result / sum : 0;
}
