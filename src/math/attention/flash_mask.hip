/* Gradient of attention's mask. A group owns 64 queries by 64 keys of the mask and computes their scores and dp again
 * for each sequence and head that shares them: 2 (d + dv) floating-point operations for each query, key and head, for
 * which 64 rows of each of q, k, v and dout are read.
 *
 * Without other options and with a value for each query it does so by matrix units, as the other kernels do. With every
 * option it does so by lanes, 16 of each in a thread: rows pass through LDS 32 values at a time, transposed, so that
 * a thread reads its four queries and its four keys as 16 bytes each. */
#define RDNA_SM_90A_IMAGE /* a second one: cmake/kernels.cmake */
#include "math/attention/flash_mask_kernels.h"
#include "math/attention/flash_options.h"

enum { TILE = FLASH_MASK_TILE, DEPTH = 32, PITCH = TILE + 4, SIDE_VALUES = DEPTH * PITCH };

/* --- what a group does --------------------------------------------------------------------------------------- */

/* A group's tile of the mask, and which terms of its sums it adds: |begin| to |end|. */
struct mask_tile {
  int32_t query, key; /* the first ones; query in the first of the tiles where the mask has one for all */
  int32_t batch, head;
  uint32_t part, begin, end;
};

RDNA_DEVICE mask_tile mask_tile_of(const flash_mask_args &a) {
  uint32_t key_tiles = (uint32_t)(a.of.sk + TILE - 1) / TILE, query_tiles = (uint32_t)(a.of.sq + TILE - 1) / TILE;
  if (a.mask_queries == 1) query_tiles = 1;
  mask_tile t;
  uint32_t place = group_id_x();
  t.key = (int32_t)(place % key_tiles) * TILE;
  place /= key_tiles;
  t.query = (int32_t)(place % query_tiles) * TILE;
  place /= query_tiles;
  t.head = (int32_t)(place % (uint32_t)a.mask_heads);
  place /= (uint32_t)a.mask_heads;
  t.batch = (int32_t)(place % (uint32_t)a.mask_batch);
  t.part = place / (uint32_t)a.mask_batch;
  uint32_t terms = flash_mask_terms(&a);
  t.begin = (uint32_t)((uint64_t)terms * t.part / a.parts);
  t.end = (uint32_t)((uint64_t)terms * (t.part + 1) / a.parts);
  return t;
}

/* The sequence and head of a term of the tile's sums, and its first query. */
struct mask_term {
  int32_t query, batch, head;
};
RDNA_DEVICE mask_term mask_term_of(const flash_mask_args &a, const mask_tile &t, uint32_t term) {
  mask_term of = {t.query, t.batch, t.head};
  uint32_t query_tiles = (uint32_t)(a.of.sq + TILE - 1) / TILE;
  if (a.mask_queries == 1) of.query = (int32_t)(term % query_tiles) * TILE, term /= query_tiles;
  if (a.mask_heads == 1) of.head = (int32_t)(term % (uint32_t)a.of.heads), term /= (uint32_t)a.of.heads;
  if (a.mask_batch == 1) of.batch = (int32_t)term;
  return of;
}

RDNA_DEVICE int64_t mask_place_of(const flash_mask_args &a, const mask_tile &t) {
  return t.part * a.dmask_stride[0] + t.batch * a.dmask_stride[1] + t.head * a.dmask_stride[2];
}

template <typename type>
RDNA_DEVICE void mask_store(const flash_mask_args &a, int64_t at, float v) {
  if (a.is_f32) {
    f32::store(a.dmask, (uint64_t)at, v);
  } else {
    type::store(a.dmask, (uint64_t)at, v);
  }
}

/* Whether no query of a tile sees a key of the other. */
RDNA_DEVICE bool mask_unseen(const flash_args &a, const flash_sequence &s, int32_t first_query, int32_t first_key) {
  int32_t far = first_key - first_query - s.shift;
  return far - (TILE - 1) > a.right || far + (TILE - 1) < -a.left;
}

/* --- by lanes, every option ---------------------------------------------------------------------------------- */

/* Stores 8 values of row |row|, from value |at| on, into column |row| of |lds|; zeros outside. */
template <typename type>
RDNA_DEVICE void mask_turn(const flash_rows &from, int32_t row, int32_t at, float *lds) {
#pragma unroll
  for (int32_t i = 0; i < 8; i += type::IN_16) {
    float v[type::IN_16];
#pragma unroll
    for (int e = 0; e < type::IN_16; e++) v[e] = 0;
    if (row < from.count && at + i < from.d)
      type::load_16(from.base + (int64_t)row * from.stride + (at + i) * type::BYTES, v);
#pragma unroll
    for (int e = 0; e < type::IN_16; e++) lds[(i + e) * PITCH + row] = v[e];
  }
}

/* The products of 64 rows of |queries| and 64 of |keys|. */
template <typename type>
RDNA_DEVICE void mask_products(const flash_rows &queries, const flash_rows &keys, float *lds, float (&out)[4][4]) {
  uint32_t row = thread_id() % TILE, part = thread_id() / TILE, q = thread_id() / 16 * 4, k = thread_id() % 16 * 4;
#pragma unroll
  for (int r = 0; r < 4; r++)
#pragma unroll
    for (int c = 0; c < 4; c++) out[r][c] = 0;
#pragma unroll 1
  for (int32_t at = 0; at < queries.d; at += DEPTH) {
    group_barrier(); /* what was there is no more read */
    mask_turn<type>(queries, (int32_t)row, at + (int32_t)part * 8, lds + part * 8 * PITCH);
    mask_turn<type>(keys, (int32_t)row, at + (int32_t)part * 8, lds + SIDE_VALUES + part * 8 * PITCH);
    group_barrier();
#pragma unroll 4
    for (int i = 0; i < DEPTH; i++) {
      float4 x = *(const float4 *)(lds + i * PITCH + q), y = *(const float4 *)(lds + SIDE_VALUES + i * PITCH + k);
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++) out[r][c] = fma_f32(x[r], y[c], out[r][c]);
    }
  }
}

/* Adds one sequence's and head's share of the tile whose first query and key are given. */
template <typename type>
RDNA_DEVICE void mask_add(const flash_mask_args &all, int32_t batch, int32_t head, int32_t first_query,
                          int32_t first_key, float *lds, float (&sum)[4][4]) {
  const flash_mask_args &args = arguments_again(all);
  const flash_args &a = args.of;
  flash_place place;
  place.a = &a;
  place.batch = batch;
  place.head = head;
  place.s = flash_sequence_of(&a, batch);
  if (mask_unseen(a, place.s, first_query, first_key)) return;
  int32_t kv_head = head / (a.heads / a.kv_heads);
  float scores[4][4], dps[4][4];
  mask_products<type>(flash_rows_of<type>(a.q, a.q_stride, batch, first_query, head, a.sq - first_query, a.d),
                      flash_rows_of<type>(a.k, a.k_stride, batch, first_key, kv_head, a.sk - first_key, a.d), lds,
                      scores);
  mask_products<type>(
      flash_rows_of<type>(args.dout, args.dout_stride, batch, first_query, head, a.sq - first_query, a.dv),
      flash_rows_of<type>(a.v, a.v_stride, batch, first_key, kv_head, a.sk - first_key, a.dv), lds, dps);
  float slope = a.slopes ? a.slopes[batch * a.slopes_stride + head] : 0;
  int64_t number = batch * a.lse_stride[0] + head * a.lse_stride[1];
  /* one row's code: the next takes its place */
#pragma unroll 1
  for (int r = 0; r < 4; r++) {
    const flash_mask_args &now = arguments_again(all);
    int32_t i = first_query + (int32_t)(thread_id() / 16 * 4) + r;
    float base = infinity_f32(), delta = 0;
    if (i < now.of.sq) {
      base = backward_base(now.of.lse[number + i]);
      delta = now.delta[number + i];
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
      int32_t j = first_key + (int32_t)(thread_id() % 16 * 4) + c, from = j - i - place.s.shift;
      flash_place here = flash_place_again(place);
      float slack, score = flash_score<type>(here, scores[0][c] * here.a->scale, slope, i, j, slack);
      bool seen = from >= -here.a->left && from <= here.a->right && j < here.a->sk && i < here.a->sq;
      float kept = here.a->dropout != 0 ? flash_kept(here, i, j) : 1;
      float ds = fast_exp2(score - base) * fma_f32(dps[0][c], kept, -delta);
      float first = sum[0][c] + (seen ? ds : 0);
#pragma unroll
      for (int next = 0; next < 3; next++) {
        scores[next][c] = scores[next + 1][c];
        dps[next][c] = dps[next + 1][c];
        sum[next][c] = sum[next + 1][c];
      }
      sum[3][c] = first;
    }
  }
}

template <typename type>
RDNA_DEVICE void mask_gradient(const flash_mask_args &a, float *lds) {
  mask_tile t = mask_tile_of(a);
  if (t.part >= a.parts) return;
  float sum[4][4] = {};
#pragma unroll 1
  for (uint32_t term = t.begin; term < t.end; term++) {
    mask_term of = mask_term_of(arguments_again(a), t, term);
    mask_add<type>(a, of.batch, of.head, of.query, t.key, lds, sum);
  }
  const flash_mask_args &now = arguments_again(a);
  int64_t at = mask_place_of(now, t);
  uint32_t q = thread_id() / 16 * 4, k = thread_id() % 16 * 4;
  if (now.mask_queries != 1) {
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
      for (int c = 0; c < 4; c++) {
        int32_t i = t.query + (int32_t)q + r, j = t.key + (int32_t)k + c;
        if (i < now.of.sq && j < now.of.sk)
          mask_store<type>(now, at + i * now.dmask_stride[3] + j * now.dmask_stride[4], sum[r][c]);
      }
    return;
  }
  group_barrier();
#pragma unroll
  for (int c = 0; c < 4; c++) lds[q / 4 * TILE + k + c] = sum[0][c] + sum[1][c] + sum[2][c] + sum[3][c];
  group_barrier();
  int32_t j = t.key + (int32_t)thread_id();
  if (thread_id() >= TILE || j >= now.of.sk) return;
  float all = 0;
  for (int r = 0; r < 16; r++) all += lds[r * TILE + thread_id()];
  mask_store<type>(now, at + j * now.dmask_stride[4], all);
}

#define MASK_GRADIENT(type)                                                     \
  RDNA_KERNEL(FLASH_MASK_THREADS) flash_mask_##type(struct flash_mask_args a) { \
    RDNA_SHARED static __attribute__((aligned(16))) float lds[2 * SIDE_VALUES]; \
    mask_gradient<type>(a, lds);                                                \
  }
MASK_GRADIENT(f32)
MASK_GRADIENT(f16)
MASK_GRADIENT(bf16)

/* --- by matrix units, limits alone --------------------------------------------------------------------------- */

/* A wave has 16 queries, or 32 on waves of 64, and |KEYS| of the keys at a time. */
template <typename type, int max_d>
struct mask_plan {
  typedef typename unit_of<type>::is unit;
  static constexpr int M_TILES = TILE / 16 / FLASH_WAVES, KEYS = max_d == 64 ? 64 : 32, N_TILES = KEYS / 16;
  static constexpr int STEPS = max_d / unit::K;
  typedef plain_tile<type, max_d, KEYS> tile;
  typedef wave_rows<type, max_d, M_TILES, false, false> rows;
};

/* Adds one sequence's and head's share to |sum|, of this wave's queries and KEYS keys. */
template <typename type, int max_d>
RDNA_DEVICE void masked_add(const flash_mask_args &all, const mask_term &of, int32_t first_key, char *lds,
                            mma_acc (&sum)[mask_plan<type, max_d>::M_TILES][mask_plan<type, max_d>::N_TILES]) {
  typedef mask_plan<type, max_d> plan;
  typedef typename plan::unit unit;
  const flash_mask_args &args = arguments_again(all);
  const flash_args &a = args.of;
  flash_place place = {&a, flash_sequence_of(&a, of.batch), of.batch, of.head};
  int32_t kv_head = of.head / (a.heads / a.kv_heads), first = of.query + (int32_t)wave_id() * 16 * plan::M_TILES;
  char *keys = lds, *values = lds + plan::tile::BYTES;
  typename plan::tile tile;
  group_barrier(); /* the tiles before are no more read */
  tile.fetch(flash_rows_of<type>(a.k, a.k_stride, of.batch, 0, kv_head, a.sk, a.d).from(first_key), keys);
  tile.store(keys);
  tile.fetch(flash_rows_of<type>(a.v, a.v_stride, of.batch, 0, kv_head, a.sk, a.dv).from(first_key), values);
  tile.store(values);
  group_barrier();
  if (first >= a.sq) return;
  mma_acc scores[plan::M_TILES][plan::N_TILES], dps[plan::M_TILES][plan::N_TILES];
  typename plan::rows rows;
  rows.init(flash_rows_of<type>(a.q, a.q_stride, of.batch, 0, of.head, a.sq, a.d), first);
  flash_scores<typename plan::tile, plan::M_TILES, plan::N_TILES, plan::STEPS>(rows, keys, scores);
  rows.init(flash_rows_of<type>(args.dout, args.dout_stride, of.batch, 0, of.head, a.sq, a.dv), first);
  flash_scores<typename plan::tile, plan::M_TILES, plan::N_TILES, plan::STEPS>(rows, values, dps);
  int64_t number = of.batch * a.lse_stride[0] + of.head * a.lse_stride[1];
  float base[plan::M_TILES][unit::STATS], delta[plan::M_TILES][unit::STATS];
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
    for (int i = 0; i < MMA_VALUES; i++) {
      int32_t row = first + 16 * m + (int32_t)unit::row_of(i);
      row = row < a.sq ? row : a.sq - 1;
      base[m][unit::stat_of(i)] = backward_base(a.lse[number + row]);
      delta[m][unit::stat_of(i)] = args.delta[number + row];
    }
  flash_place there = flash_place_again(place);
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
    for (int n = 0; n < plan::N_TILES; n++) {
      flash_mask_add<type, false>(there, first + 16 * m, first_key + 16 * n, scores[m][n]);
#pragma unroll
      for (int i = 0; i < MMA_VALUES; i++) {
        int32_t row = flash_in_turn(first + 16 * m + (int32_t)unit::row_of(i));
        float p = fast_exp2(fma_f32(scores[m][n][i], FLASH_LOG2_E, -base[m][unit::stat_of(i)]));
        if (flash_hidden(there, row, first_key + 16 * n + (int32_t)unit::key_of(i))) p = 0;
        sum[m][n][i] = fma_f32(p, dps[m][n][i] - delta[m][unit::stat_of(i)], sum[m][n][i]);
      }
    }
}

template <typename type>
RDNA_DEVICE void masked_store(const flash_mask_args &all, const mask_tile &t, int32_t first_query, int32_t first_key,
                              const mma_acc &sum) {
  typedef typename unit_of<type>::is unit;
  const flash_mask_args &a = arguments_again(all);
  int64_t at = mask_place_of(a, t);
#pragma unroll
  for (int v = 0; v < MMA_VALUES; v++) {
    int32_t i = first_query + (int32_t)unit::row_of(v), j = first_key + (int32_t)unit::key_of(v);
    if (i < a.of.sq && j < a.of.sk) mask_store<type>(a, at + i * a.dmask_stride[3] + j * a.dmask_stride[4], sum[v]);
  }
}

#ifdef RDNA_WGMMA
#include "math/attention/nvidia/flash_mask_wgmma.h"
#else
template <typename type, int max_d>
RDNA_DEVICE void masked_gradient(const flash_mask_args &all, char *lds) {
  typedef mask_plan<type, max_d> plan;
  mask_tile t = mask_tile_of(all);
  if (t.part >= all.parts) return;
  bool unseen = mask_unseen(all.of, flash_sequence_of(&all.of, 0), t.query, t.key);
#pragma unroll 1
  for (int32_t key = t.key; key < t.key + TILE; key += plan::KEYS) {
    mma_acc sum[plan::M_TILES][plan::N_TILES] = {};
#pragma unroll 1
    for (uint32_t term = t.begin; !unseen && term < t.end; term++)
      masked_add<type, max_d>(all, mask_term_of(arguments_again(all), t, term), key, lds, sum);
#pragma unroll
    for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
      for (int n = 0; n < plan::N_TILES; n++)
        masked_store<type>(all, t, t.query + ((int32_t)wave_id() * plan::M_TILES + m) * 16, key + 16 * n, sum[m][n]);
  }
}
#define MASKED_GRADIENT(type, max_d)                                                                     \
  RDNA_KERNEL(FLASH_THREADS) flash_mask_masked_##type##_##max_d(struct flash_mask_args a) {              \
    RDNA_SHARED static __attribute__((aligned(1024))) char lds[2 * mask_plan<type, max_d>::tile::BYTES]; \
    masked_gradient<type, max_d>(a, lds);                                                                \
  }
#endif
MASKED_GRADIENT(f16, 64)
MASKED_GRADIENT(f16, 128)
MASKED_GRADIENT(bf16, 64)
MASKED_GRADIENT(bf16, 128)
