/* Gradient of attention's mask. A group owns 64 queries by 64 keys of the mask and makes their scores and dp again for
 * each sequence and head that shares them, 16 of each in a thread: 2 (d + dv) floating-point operations for each
 * query, key and head, by lanes. Rows pass through LDS 32 values at a time, turned, so that a thread reads its four
 * queries and its four keys in 16 bytes each. */
#include "math/attention/flash_mask_kernels.h"
#include "math/attention/flash_tile.h"

enum { TILE = FLASH_MASK_TILE, DEPTH = 32, PITCH = TILE + 4, SIDE_VALUES = DEPTH * PITCH };

/* 8 values of row |row| from value |at| on into column |row| of |lds|; zeros outside. */
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
  int32_t far = first_key - first_query - place.s.shift; /* no query sees a key of the tile */
  if (far - (TILE - 1) > a.right || far + (TILE - 1) < -a.left) return;
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
      float lse = now.of.lse[number + i];
      base = lse == -infinity_f32() ? infinity_f32() : lse * FLASH_LOG2_E;
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
RDNA_DEVICE void mask_store(const flash_mask_args &a, int64_t at, float v) {
  if (a.is_f32) {
    f32::store(a.dmask, (uint64_t)at, v);
  } else {
    type::store(a.dmask, (uint64_t)at, v);
  }
}

template <typename type>
RDNA_DEVICE void mask_gradient(const flash_mask_args &a, float *lds) {
  uint32_t key_tiles = (uint32_t)(a.of.sk + TILE - 1) / TILE;
  bool one_query = a.mask_queries == 1;
  uint32_t query_tiles = (uint32_t)(a.of.sq + TILE - 1) / TILE, mask_tiles = one_query ? 1 : query_tiles;
  uint32_t place = group_id_x();
  int32_t first_key = (int32_t)(place % key_tiles) * TILE;
  place /= key_tiles;
  int32_t tile = (int32_t)(place % mask_tiles);
  place /= mask_tiles;
  int32_t head = (int32_t)(place % (uint32_t)a.mask_heads);
  place /= (uint32_t)a.mask_heads;
  int32_t batch = (int32_t)(place % (uint32_t)a.mask_batch);
  uint32_t part = place / (uint32_t)a.mask_batch;
  if (part >= a.parts) return;
  uint32_t terms = flash_mask_terms(&a);
  uint32_t begin = (uint32_t)((uint64_t)terms * part / a.parts),
           end = (uint32_t)((uint64_t)terms * (part + 1) / a.parts);
  float sum[4][4] = {};
#pragma unroll 1
  for (uint32_t term = begin; term < end; term++) {
    const flash_mask_args &now = arguments_again(a);
    uint32_t rest = term;
    int32_t of_tile = tile, of_head = head, of_batch = batch;
    if (one_query) of_tile = (int32_t)(rest % query_tiles), rest /= query_tiles;
    if (now.mask_heads == 1) of_head = (int32_t)(rest % (uint32_t)now.of.heads), rest /= (uint32_t)now.of.heads;
    if (now.mask_batch == 1) of_batch = (int32_t)rest;
    mask_add<type>(a, of_batch, of_head, of_tile * TILE, first_key, lds, sum);
  }
  const flash_mask_args &now = arguments_again(a);
  int64_t at = part * now.dmask_stride[0] + batch * now.dmask_stride[1] + head * now.dmask_stride[2];
  uint32_t q = thread_id() / 16 * 4, k = thread_id() % 16 * 4;
  if (!one_query) {
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
      for (int c = 0; c < 4; c++) {
        int32_t i = tile * TILE + (int32_t)q + r, j = first_key + (int32_t)k + c;
        if (i < now.of.sq && j < now.of.sk)
          mask_store<type>(now, at + i * now.dmask_stride[3] + j * now.dmask_stride[4], sum[r][c]);
      }
    return;
  }
  group_barrier();
#pragma unroll
  for (int c = 0; c < 4; c++) lds[q / 4 * TILE + k + c] = sum[0][c] + sum[1][c] + sum[2][c] + sum[3][c];
  group_barrier();
  int32_t j = first_key + (int32_t)thread_id();
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
