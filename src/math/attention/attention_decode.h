/* Device code: decode, few tokens at once.
 *
 * A group owns one split of the positions that one token sees, and |heads| query heads of one key head. A team of 8, 16
 * or 32 lanes (head sizes up to 64, 128, 256) reads a row of K and of V, 8 values a lane, and teams take rows in turn,
 * |at_once| each:
 *
 *     at_once 2, 4 teams    position  0 1 2 3 4 5 6 7 | 8 9 ...
 *                           team      0 0 1 1 2 2 3 3 | 0 0 ...
 *
 * In a wider row, of up to 512 values, a lane of 32 has 8 values and 8 more 256 further on. In a latent row, whose
 * values lie behind its first (at most 64) values, it has 2 of those first ones too, and what it read as a key is the
 * value:
 *
 *     latent    | 2 a lane | 8 a lane          | 8 a lane          |
 *               |          |<------ what is a value, too --------->| */
#ifndef RDNA_MATH_ATTENTION_ATTENTION_DECODE_H
#define RDNA_MATH_ATTENTION_ATTENTION_DECODE_H

#include "math/attention/attention_reach.h"
#include "math/quant/quant_blocks.h"

/* Of each head: the running maximum of its scores, the sum of exp(s - m), and a lane's of the sums of exp(s - m) v. */
template <int heads, int values = 8>
struct decode_state {
  float m[heads], l[heads], o[heads][values];
};

/* Shares the scores of several heads and positions out to the lanes of a team while it adds them up, so that each
 * exponential is computed once. The scores are numbered position by position, and head by head within one; a round is
 * |n| of them. After a round lane i has the score whose number is the lower bits of i in reverse order:
 *
 *     n 8:   lane    0 1 2 3 4 5 6 7      by halves: of each pair of lanes that differ in bit 0, one keeps the sums of
 *            score   0 4 2 6 1 5 3 7      scores 0 to 3 and the other those of 4 to 7; then bit 1, then bit 2
 *
 * and so has every lane with the same lower bits. A lane thus stays with one head, whose running maximum m, the same in
 * all teams of the wave, and sum l it keeps. */
template <int heads, int at_once>
struct decode_shares {
  static constexpr int scores = heads * at_once, n = scores < 8 ? scores : 8, rounds = scores / n;
  static_assert(scores % n == 0 && n % heads == 0 && (n == 4 || n == 8), "whole rounds");
  float m, l;

  RDNA_DEVICE uint32_t turned(uint32_t bits) {
    return n == 8 ? (bits & 1) << 2 | (bits & 2) | (bits >> 2 & 1) : (bits & 1) << 1 | (bits >> 1 & 1);
  }
  /* What a lane of this team that has score |number| of a round holds in |v|. */
  RDNA_DEVICE float from(float v, uint32_t number) {
    return wave_shuffle_f32(v, (lane_id() & ~(uint32_t)(n - 1)) | turned(number));
  }
  /* Lanes with the bit |mask| add up and keep the upper half of 2 |half| scores, the others the lower half. */
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

/* Joins this lane's state with that of the lane whose number differs by |mask|. */
RDNA_DEVICE void decode_merge_lanes(decode_state<1> &state, uint32_t mask) {
  float m = wave_shuffle_xor_f32(state.m[0], mask);
  float top = max_f32(state.m[0], m), mine = fast_exp(state.m[0] - top), theirs = fast_exp(m - top);
  state.l[0] = fma_f32(state.l[0], mine, wave_shuffle_xor_f32(state.l[0], mask) * theirs);
#pragma unroll
  for (int i = 0; i < 8; i++)
    state.o[0][i] = fma_f32(state.o[0][i], mine, wave_shuffle_xor_f32(state.o[0][i], mask) * theirs);
  state.m[0] = top;
}

/* A cache of blocks of 32 values, 34 bytes: a scale in f16, and a signed byte for each. Strides and heads are whole
 * blocks, so that the 8 values of a lane have one scale. */
struct q8_0_cache {
  enum { BYTES = 1, BLOCK = 32, BLOCK_BYTES = 34 };
  RDNA_DEVICE void unpack(uint4 bits, float *out) { /* 8 bytes, and the scale */
    float scale = f16x2_to_f32(bits.z).x;
#pragma unroll
    for (int i = 0; i < 8; i++) out[i] = scale * signed_byte_of(i < 4 ? bits.x : bits.y, i & 3);
  }
};
/* The bytes of |values| in a row. */
template <typename type>
RDNA_DEVICE int64_t cache_bytes(int64_t values) {
  if constexpr (type::BYTES == 1) return values / q8_0_cache::BLOCK * q8_0_cache::BLOCK_BYTES;
  return values * type::BYTES;
}

/* 8 values of the cache as they lie in memory: unpacked later, so that many may be in flight. */
struct decode_raw {
  uint4 low, high; /* high: f32 only */
};
template <typename type>
RDNA_DEVICE decode_raw decode_load(const char *row, int dim, int d, bool wide) {
  decode_raw raw = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  if constexpr (type::BYTES == 1) {
    if (dim < d) {
      const char *block = row + cache_bytes<type>(dim);
      uint2 codes = words_at<2>(block + 2 + dim % q8_0_cache::BLOCK);
      raw.low = uint4{codes.x, codes.y, load_as<uint16_t>(block), 0};
    }
  } else if (type::BYTES == 4) {
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

/* The cache rows of one sequence and key head. */
template <typename type>
struct decode_cache {
  const char *k, *v;
  const int32_t *blocks; /* or NULL: positions are rows */
  int32_t block_count;
  /* The row of a position, or -1. */
  RDNA_MEMBER int64_t row(const attention_args &a, int32_t position) const {
    if (!blocks) return position;
    int32_t block = global(blocks)[position / a.block_rows];
    return block < 0 || block >= block_count ? -1 : (int64_t)block * a.block_rows + position % a.block_rows;
  }
};

/* What a lane has of one position, as it lies in memory: |lane| is its number in the team. */
template <typename type>
struct decode_slice {
  static constexpr int KEYS = 8, VALUES = 8, CHUNKS = 1, MAX_D = ATTENTION_MAX_D;
  decode_raw k, v;
  RDNA_DEVICE int32_t dv(const attention_args &a) { return a.d; }
  RDNA_DEVICE uint32_t team(const attention_args &a) { return a.d <= 64 ? 8 : a.d <= 128 ? 16 : 32; }
  RDNA_MEMBER void clear() { k = v = decode_raw{{0, 0, 0, 0}, {0, 0, 0, 0}}; }
  RDNA_MEMBER void load(const attention_args &a, const char *k_row, const char *v_row, int lane, bool wide) {
    k = decode_load<type>(k_row, lane * 8, a.d, wide);
    v = decode_load<type>(v_row, lane * 8, a.d, wide);
  }
  RDNA_MEMBER void keys(float out[8]) const { decode_unpack<type>(k, out); }
  RDNA_MEMBER void values(float out[8]) const { decode_unpack<type>(v, out); }
  RDNA_DEVICE void query(const attention_args &a, const float *row, int lane, float out[8]) {
    load_8(row, lane * 8, a.d, false, out);
  }
};
template <typename type, bool latent>
struct decode_wide_slice {
  static constexpr int CHUNKS = 2, VALUES = 16, KEYS = VALUES + (latent ? 2 : 0), MAX_D = ATTENTION_WIDE_DV;
  static constexpr int CHUNK = 256; /* values of a team's chunk */
  decode_raw k[CHUNKS], v[latent ? 1 : CHUNKS];
  uint2 first;
  RDNA_DEVICE int32_t dv(const attention_args &a) { return a.dv; }
  RDNA_DEVICE uint32_t team(const attention_args &a) { return 32; }
  RDNA_MEMBER void clear() {
    first = uint2{0, 0};
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) k[c] = v[latent ? 0 : c] = decode_raw{{0, 0, 0, 0}, {0, 0, 0, 0}};
  }
  RDNA_MEMBER void load(const attention_args &a, const char *k_row, const char *v_row, int lane, bool wide) {
    if constexpr (latent) {
      if (2 * lane < a.d - a.dv) {
        const char *at = k_row + 2 * lane * type::BYTES;
        first = type::BYTES == 4 ? load_as<uint2>(at) : uint2{load_as<uint32_t>(at), 0};
      }
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      k[c] = decode_load<type>(latent ? v_row : k_row, c * CHUNK + lane * 8, latent ? a.dv : a.d, wide);
      if constexpr (!latent) v[c] = decode_load<type>(v_row, c * CHUNK + lane * 8, a.dv, wide);
    }
  }
  RDNA_MEMBER void keys(float out[KEYS]) const {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) decode_unpack<type>(k[c], out + 8 * c);
    if constexpr (latent) {
      float few[8];
      type::unpack(uint4{first.x, first.y, 0, 0}, few);
      out[VALUES] = few[0], out[VALUES + 1] = few[1];
    }
  }
  RDNA_MEMBER void values(float out[VALUES]) const {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) decode_unpack<type>(latent ? k[c] : v[latent ? 0 : c], out + 8 * c);
  }
  RDNA_DEVICE void query(const attention_args &a, const float *row, int lane, float out[KEYS]) {
    int before = latent ? a.d - a.dv : 0;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
      load_8(row + before, c * CHUNK + lane * 8, latent ? a.dv : a.d, false, out + 8 * c);
    if constexpr (latent) {
      float2 few = 2 * lane < before ? load_as<float2>(row + 2 * lane) : float2{0, 0};
      out[VALUES] = few.x, out[VALUES + 1] = few.y;
    }
  }
};

/* Keys and values of a team's positions first .. first + at_once - 1, in flight. Those from |end| on are not there;
 * those whose block is not in the cache do not exist. */
template <typename slice, int at_once>
struct decode_batch {
  slice row[at_once];
  bool there[at_once], exists[at_once];
};
template <typename type, typename slice, int at_once>
RDNA_DEVICE void decode_fetch(const attention_args &a, const decode_cache<type> &cache, int32_t first, int32_t end,
                              int lane, bool wide, decode_batch<slice, at_once> &batch) {
  int64_t row[at_once];
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    batch.there[u] = first + u < end;
    row[u] = batch.there[u] ? cache.row(a, first + u) : -1;
    batch.exists[u] = row[u] >= 0;
  }
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    batch.row[u].clear();
    if (batch.exists[u])
      batch.row[u].load(a, cache.k + row[u] * cache_bytes<type>(a.k_stride),
                        cache.v + row[u] * cache_bytes<type>(a.v_stride), lane, wide);
  }
}

/* Adds a batch, for one head. Positions that are not there count for nothing, though all lanes take part in the
 * shuffles; those that do not exist make NaN. */
template <typename slice, int at_once>
RDNA_DEVICE void decode_row(const attention_args &a, const decode_batch<slice, at_once> &batch, uint32_t team,
                            const float q[8], decode_state<1> &state) {
  float s[at_once], m = state.m[0];
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    float k[8], sum = 0;
    batch.row[u].keys(k);
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
    batch.row[u].values(v);
#pragma unroll
    for (int i = 0; i < 8; i++) state.o[0][i] = fma_f32(p, v[i], state.o[0][i]);
  }
}

/* The same for several heads. */
template <typename slice, int heads, int at_once>
RDNA_DEVICE void decode_rows(const attention_args &a, const decode_batch<slice, at_once> &batch, uint32_t team,
                             const float q[heads][slice::KEYS], decode_shares<heads, at_once> &own,
                             decode_state<heads, slice::VALUES> &state) {
  typedef decode_shares<heads, at_once> shares;
  float part[shares::scores], mine[shares::rounds];
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    float k[slice::KEYS];
    batch.row[u].keys(k);
#pragma unroll
    for (int h = 0; h < heads; h++) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < slice::KEYS; i++) sum = fma_f32(q[h][i], k[i], sum);
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
      for (int i = 0; i < slice::VALUES; i++) state.o[h][i] *= of_head;
    }
  }
#pragma unroll
  for (int r = 0; r < shares::rounds; r++) {
    mine[r] = fast_exp(mine[r] - m);
    own.l += mine[r];
  }
#pragma unroll
  for (int u = 0; u < at_once; u++) {
    float v[slice::VALUES];
    batch.row[u].values(v);
#pragma unroll
    for (int h = 0; h < heads; h++) {
      int number = u * heads + h;
      float p = shares::from(mine[number / shares::n], (uint32_t)(number % shares::n));
#pragma unroll
      for (int i = 0; i < slice::VALUES; i++) state.o[h][i] = fma_f32(p, v[i], state.o[h][i]);
    }
  }
}

/* Joins the waves' states in LDS, as many heads at a time as have room there; a thread computes a value of the result.
 */
template <int heads, int max_d = ATTENTION_MAX_D>
struct decode_room {
  static constexpr int waves = ATTENTION_THREADS / WAVE_SIZE;
  static constexpr int sums = waves * max_d * (heads > 4 ? 4 : heads > 1 ? 2 : 1), floats = sums + 2 * waves * heads;
};
template <typename slice, int heads>
RDNA_DEVICE void decode_finish(const attention_args &args, int32_t token, int32_t head, int32_t split, bool outside,
                               int lane, const decode_state<heads, slice::VALUES> &state, float *lds) {
  const attention_args &a = arguments_again_wide(args);
  typedef decode_room<heads, slice::MAX_D> room;
  constexpr int waves = room::waves;
  /* (waves, at_once, dv), then (waves, heads) twice */
  float *o = lds, *m = lds + room::sums, *l = m + waves * heads;
  int32_t last_head = (head / (a.heads / a.kv_heads) + 1) * (a.heads / a.kv_heads);
  int count = head + heads < last_head ? heads : last_head - head, at_once = room::sums / (waves * slice::dv(a));
  if (lane_id() == 0) {
#pragma unroll
    for (int h = 0; h < heads; h++) {
      m[wave_id() * heads + h] = state.m[h];
      l[wave_id() * heads + h] = state.l[h];
    }
  }
#pragma unroll 1
  for (int first = 0; first < count; first += at_once) {
    int values = (count - first < at_once ? count - first : at_once) * slice::dv(a);
    if (first > 0) group_barrier();
    if ((int)lane_id() == lane) {
#pragma unroll
      for (int h = 0; h < heads; h++) {
        if (h < first || h >= first + at_once) continue;
#pragma unroll
        for (int i = 0; i < slice::VALUES; i += 4) {
          int at = i / 8 * 256 + lane * 8 + i % 8;
          float *to = o + (wave_id() * at_once + h - first) * slice::dv(a) + at;
          if (at < slice::dv(a))
            store_f32x4(to, float4{state.o[h][i], state.o[h][i + 1], state.o[h][i + 2], state.o[h][i + 3]});
        }
      }
    }
    group_barrier();
#pragma unroll 1
    for (int i = (int)thread_id(); i < values; i += ATTENTION_THREADS) {
      const attention_args &a = arguments_again_wide(args);
      int h = i / slice::dv(a), of_head = i - h * slice::dv(a);
      float sink = a.sinks && split == 0 ? global(a.sinks)[head + first + h] : -infinity_f32();
      float top = max_f32(sink, ATTENTION_LOWEST), value = 0;
#pragma unroll
      for (int w = 0; w < waves; w++) top = max_f32(top, m[w * heads + first + h]);
      float sum = fast_exp(sink - top);
#pragma unroll
      for (int w = 0; w < waves; w++) {
        float share = fast_exp(m[w * heads + first + h] - top);
        sum = fma_f32(l[w * heads + first + h], share, sum);
        value = fma_f32(o[(w * at_once + h) * slice::dv(a) + of_head], share, value);
      }
      if (outside) top = sum = value = __builtin_nanf("");
      int64_t of_token = (int64_t)(head + first + h);
      if (a.splits == 1) {
        a.out[token * a.out_stride + of_token * slice::dv(a) + of_head] = sum != 0 ? value / sum : 0;
      } else {
        int64_t cell = ((int64_t)token * a.heads + of_token) * a.splits + split;
        a.partial[cell * slice::dv(a) + of_head] = value;
        if (of_head == 0) {
          a.stats[2 * cell] = top;
          a.stats[2 * cell + 1] = sum;
        }
      }
    }
  }
}

template <typename type, typename slice, int heads, int at_once>
RDNA_DEVICE void decode(const attention_args &a, float *lds) {
  int32_t heads_per_kv = a.heads / a.kv_heads, blocks = (heads_per_kv + heads - 1) / heads;
  int32_t split = (int32_t)group_id_x(), token = (int32_t)group_id_z();
  int32_t kv_head = (int32_t)group_id_y() / blocks, block = (int32_t)group_id_y() % blocks;
  if (split >= a.splits || token >= a.tokens || kv_head >= a.kv_heads) return;
  int32_t head = kv_head * heads_per_kv + block * heads;
  uint32_t team = slice::team(a), teams = ATTENTION_THREADS / team;
  int lane = (int)(thread_id() & (team - 1));
  bool wide = rows_are_wide<type::BYTES>(a, slice::dv(a));

  float q[heads][slice::KEYS];
  decode_state<heads, slice::VALUES> state;
#pragma unroll
  for (int h = 0; h < heads; h++) {
    bool used = block * heads + h < heads_per_kv;
    const float *row = a.q + token * a.q_stride + (int64_t)(used ? head + h : head) * a.d;
    slice::query(a, row, lane, q[h]);
    state.m[h] = ATTENTION_LOWEST;
    state.l[h] = 0;
#pragma unroll
    for (int i = 0; i < slice::KEYS; i++) q[h][i] *= a.scale;
#pragma unroll
    for (int i = 0; i < slice::VALUES; i++) state.o[h][i] = 0;
  }

  reach r = token_reach(a, token);
  int64_t seen = r.high < r.low ? 0 : (int64_t)r.high - r.low + 1;
  int64_t even = (seen + a.splits - 1) / a.splits;
  int64_t per_split = even > a.split_positions ? even : a.split_positions;
  int64_t begin = split * per_split, end = begin + per_split < seen ? begin + per_split : seen;
  int64_t first_row = a.block_table ? 0 : r.base;
  decode_cache<type> cache = {
      (const char *)a.k + cache_bytes<type>(first_row * a.k_stride + (int64_t)kv_head * a.d),
      (const char *)a.v + cache_bytes<type>(first_row * a.v_stride + (int64_t)kv_head * slice::dv(a)),
      a.block_table ? a.block_table + r.base * a.table_stride : nullptr,
      a.block_table ? (int32_t)(a.slots / a.block_rows) : 0};
  /* the next batch is in flight while one is added */
  int32_t mine = r.low + (int32_t)(thread_id() / team) * at_once, last = r.low + (int32_t)end;
  decode_batch<slice, at_once> batch, next;
  decode_shares<heads == 1 ? 8 : heads, heads == 1 ? 1 : at_once> own = {ATTENTION_LOWEST, 0};
  decode_fetch<type>(a, cache, mine + (int32_t)begin, last, lane, wide, next);
  for (int64_t row = begin; row < end; row += teams * at_once) {
    const attention_args &now = arguments_again_wide(a);
    int64_t following = row + teams * at_once;
    batch = next;
    decode_fetch<type>(now, cache, following < end ? mine + (int32_t)following : last, last, lane, wide, next);
    if constexpr (heads == 1)
      decode_row<slice, at_once>(now, batch, team, q[0], state);
    else
      decode_rows<slice, heads, at_once>(now, batch, team, q, own, state);
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
      for (int i = 0; i < slice::VALUES; i++) state.o[h][i] = over_teams(state.o[h][i], team);
    }
  }
  decode_finish<slice, heads>(a, token, head, split, r.outside, lane, state, lds);
}

#endif
