/* Gradients of attention by NVIDIA's asynchronous products: included by flash_backward.hip. A group has 64 rows, keys
 * or queries. While it makes probabilities of a tile's scores the next tile comes to shared memory, whose scores are
 * then multiplied behind this tile's sums; the tile after it takes this one's place. */
#ifndef RDNA_MATH_ATTENTION_NVIDIA_FLASH_BACKWARD_WGMMA_H
#define RDNA_MATH_ATTENTION_NVIDIA_FLASH_BACKWARD_WGMMA_H

#include "math/attention/nvidia/flash_wgmma.h"

template <typename type, int max_d>
struct wgmma_backward_plan {
  typedef matrix_unit<type> unit;
  static constexpr int M_TILES = 1, D_TILES = max_d / 16, ROWS = 64, TILE = 64, N_TILES = TILE / 16;
  typedef wgmma_tile<type, max_d, TILE> tile;
  /* both rows, then for each of two stages both tiles, then the stages' lse and delta, then the waves' masks */
  static constexpr int STAGES = 2 * tile::BYTES, NUMBERS = 6 * tile::BYTES, MASKS = NUMBERS + 2 * 2 * TILE * 4;
  static constexpr int MASK_BYTES = 16 * TILE * 2;
  static_assert(MASKS == FLASH_BACKWARD_BYTES(max_d) &&
                    MASKS + FLASH_WAVES * MASK_BYTES == FLASH_BACKWARD_MASKED_BYTES(max_d),
                "what the launch asks for");
};

/* From scores and dps to the probabilities and ds. */
template <typename type, int max_d, bool of_keys>
RDNA_DEVICE void wgmma_gradients(const flash_place &place, int32_t wave_first, int32_t at, bool whole, float c,
                                 const float *in_numbers, const float (&base)[2], const float (&delta)[2],
                                 mma_acc (&scores)[4], mma_acc (&dps)[4]) {
  typedef wgmma_backward_plan<type, max_d> plan;
  typedef typename plan::unit unit;
  if (!whole) {
    flash_place there = flash_place_again(place);
#pragma unroll
    for (int n = 0; n < plan::N_TILES; n++)
#pragma unroll
      for (int i = 0; i < MMA_VALUES; i++) {
        int32_t row = flash_in_turn(wave_first) + (int32_t)unit::row_of(i),
                other = at + 16 * n + (int32_t)unit::key_of(i);
        if (flash_hidden(there, of_keys ? other : row, of_keys ? row : other)) scores[n][i] = -infinity_f32();
      }
  }
#pragma unroll
  for (int n = 0; n < plan::N_TILES; n++)
#pragma unroll
    for (int i = 0; i < MMA_VALUES; i += 2) {
      float2 from_base = {0, 0}, from_delta = {0, 0};
      if constexpr (of_keys) {
        from_base = load_as<float2>(in_numbers + 16 * n + unit::key_of(i));
        from_delta = load_as<float2>(in_numbers + plan::TILE + 16 * n + unit::key_of(i));
      } else {
        from_base = float2{base[unit::stat_of(i)], base[unit::stat_of(i)]};
        from_delta = float2{delta[unit::stat_of(i)], delta[unit::stat_of(i)]};
      }
#pragma unroll
      for (int e = 0; e < 2; e++) {
        float p = fast_exp2(fma_f32(scores[n][i + e], c, -from_base[e]));
        scores[n][i + e] = p;
        dps[n][i + e] = p * (dps[n][i + e] - from_delta[e]);
      }
    }
}

/* ds of a wave's 16 queries from |first_query| on and 64 keys, as dmask has it, through |lds| of this wave. |packed| is
 * ds in the type of q. */
template <typename type>
RDNA_DEVICE void wgmma_store_dmask(const flash_backward_args &all, const flash_place &place, int32_t first_query,
                                   int32_t first_key, const mma_acc (&ds)[4], const wgmma_operand_of &packed,
                                   char *lds) {
  typedef wgmma_mask<type, false> layout;
  const int64_t *stride = all.dmask_stride;
  bool wide = all.of.mask_type == FLASH_MASK_SAME && stride[3] == 1 && first_key + 64 <= place.s.sk &&
              all_16(address_of(all.dmask) | (uint64_t)(stride[0] | stride[1] | stride[2]) * 2);
  if (!wide) {
#pragma unroll
    for (int n = 0; n < 4; n++) flash_dmask_store_tile<type>(all, place, first_query, first_key + 16 * n, ds[n]);
    return;
  }
  uint32_t lane = flash_thread() % WAVE_SIZE;
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int i = 0; i < 4; i++)
      *(uint32_t *)(lds + layout::at(lane / 4 + i % 2 * 8, 2 * n + i / 2) + lane % 4 * 4) = packed.part[n][i];
  wave_barrier();
  char *to = (char *)all.dmask + (place.batch * stride[0] + place.head * stride[1] + first_key) * 2 + lane % 8 * 16;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t row = lane / 8 + 4 * i;
    int32_t query = first_query + (int32_t)row;
    if (query < place.s.sq) store_u32x4(to + query * stride[2] * 2, load_u32x4(lds + layout::at(row, lane % 8)));
  }
  wave_barrier();
}

/* 64 rows from |first_row| on: dq, or dk and dv. */
template <typename type, int max_d, flash_kind kind, bool of_keys>
RDNA_DEVICE void wgmma_backward_rows(const flash_backward_args &all, const flash_place &place, int32_t kv_head,
                                     int32_t first_row, char *lds) {
  typedef wgmma_backward_plan<type, max_d> plan;
  typedef typename plan::tile tile;
  typedef typename plan::unit unit;
  const flash_args &a = all.of;
  const flash_sequence &s = place.s;
  int32_t heads_per_kv = a.heads / a.kv_heads, row_count = of_keys ? s.sk : s.sq;
  float c = kind == FLASH_MASKED ? FLASH_LOG2_E : a.scale * FLASH_LOG2_E;
  int32_t wave_first = first_row + (int32_t)wave_id() * 16;
  int32_t wave_last = wave_first + 16 <= row_count ? wave_first + 15 : row_count - 1;
  int32_t group_last = first_row + plan::ROWS <= row_count ? first_row + plan::ROWS - 1 : row_count - 1;
  int32_t from = of_keys ? flash_first_query(&a, &s, first_row) : flash_first_key(&a, &s, first_row);
  int32_t to = of_keys ? flash_last_query(&a, &s, group_last) : flash_last_key(&a, &s, group_last);
  from = from / plan::TILE * plan::TILE;
  uint32_t rows1 = shared_address(lds), rows2 = rows1 + tile::BYTES, stages = rows1 + plan::STAGES;
  typedef wgmma_mask<type, of_keys> mask;
  static_assert(mask::BYTES == plan::MASK_BYTES, "what the plan has");
  uint32_t in_mask = rows1 + plan::MASKS + wave_id() * mask::BYTES;

  mma_acc sum1[plan::D_TILES], sum2[of_keys ? plan::D_TILES : 1], scores[4], dps[4];
#pragma unroll
  for (int n = 0; n < plan::D_TILES; n++) {
    sum1[n] = mma_acc{};
    if constexpr (of_keys) sum2[n] = mma_acc{};
  }
  wgmma_hold(sum1);
  if constexpr (of_keys) wgmma_hold(sum2);

#pragma unroll 1
  for (int32_t head = of_keys ? kv_head * heads_per_kv : place.head;
       from <= to && head < (of_keys ? (kv_head + 1) * heads_per_kv : place.head + 1); head++) {
    flash_rows q = flash_rows_of<type>(a.q, a.q_stride, place.batch, s.q_row, head, s.sq, a.d);
    flash_rows k = flash_rows_of<type>(a.k, a.k_stride, place.batch, s.k_row, kv_head, s.sk, a.d);
    flash_rows v = flash_rows_of<type>(a.v, a.v_stride, place.batch, s.k_row, kv_head, s.sk, a.dv);
    flash_rows dout = flash_rows_of<type>(all.dout, all.dout_stride, place.batch, s.q_row, head, s.sq, a.dv);
    const flash_rows &tiles1 = of_keys ? q : k, &tiles2 = of_keys ? dout : v;
    const float *lse = a.lse + place.batch * a.lse_stride[0] + head * a.lse_stride[1] + s.q_row;
    const float *deltas = all.delta + place.batch * a.lse_stride[0] + head * a.lse_stride[1] + s.q_row;
    float base[2] = {0, 0}, delta[2] = {0, 0};
    if constexpr (!of_keys) {
#pragma unroll
      for (int r = 0; r < 2; r++) {
        int32_t row = wave_first + (int32_t)unit::row_of(2 * r);
        row = row < s.sq ? row : s.sq - 1;
        base[r] = backward_base(lse[row]);
        delta[r] = deltas[row];
      }
    }
    flash_place here = place;
    here.head = head;
    auto fetch_mask = [&](int32_t at) __attribute__((device, always_inline)) {
      int32_t row = flash_in_turn(first_row) + (int32_t)wave_id() * 16;
      mask::fetch(here, of_keys ? at : row, of_keys ? row : at, in_mask);
    };
    backward_numbers numbers;
    float *in_numbers = (float *)(lds + plan::NUMBERS);
    group_barrier(); /* shared memory is no more read for what was before */
    tile::fetch((of_keys ? k : q).from(first_row), rows1);
    tile::fetch((of_keys ? v : dout).from(first_row), rows2);
    tile::fetch(tiles1.from(from), stages);
    tile::fetch(tiles2.from(from), stages + tile::BYTES);
    if constexpr (kind == FLASH_MASKED) fetch_mask(from);
    async_commit();
    if constexpr (of_keys) {
      numbers.fetch(lse, deltas, from, s.sq, plan::TILE);
      numbers.store(in_numbers, plan::TILE);
    }
    async_wait<0>();
    wgmma_publish();
    group_barrier();
    wgmma_begin();
    wgmma_start_scores<type, max_d, plan::ROWS>(scores, rows1, stages);
    wgmma_start_scores<type, max_d, plan::ROWS>(dps, rows2, stages + tile::BYTES);
    wgmma_commit();
    if (from + plan::TILE <= to) {
      tile::fetch(tiles1.from(from + plan::TILE), stages + 2 * tile::BYTES);
      tile::fetch(tiles2.from(from + plan::TILE), stages + 3 * tile::BYTES);
    }
    async_commit();

    uint32_t odd = 0; /* the stage, 0 or 1 */
#pragma unroll 1
    for (int32_t at = from; at <= to; at += plan::TILE) {
      uint32_t now = stages + odd * (2 * tile::BYTES), next = stages + (odd ^ 1) * (2 * tile::BYTES);
      if constexpr (of_keys) numbers.fetch(lse, deltas, at + plan::TILE, s.sq, plan::TILE);
      /* keys minus diagonal from the least to the most in this wave's part of the tile */
      int32_t least = of_keys ? wave_first - (at + plan::TILE - 1) - s.shift : at - wave_last - s.shift;
      int32_t most = of_keys ? wave_last - at - s.shift : at + plan::TILE - 1 - wave_first - s.shift;
      bool whole = least >= -a.left && most <= a.right && (of_keys || at + plan::TILE <= s.sk);
      wgmma_wait<0>();
      wgmma_hold(scores);
      wgmma_hold(dps);
      if constexpr (kind == FLASH_MASKED) {
        async_wait<1>(); /* all but the next tile */
        mask::add(here, of_keys ? at : wave_first, of_keys ? wave_first : at, in_mask, scores);
      }
      wgmma_gradients<type, max_d, of_keys>(place, wave_first, at, whole, c, in_numbers + odd * 2 * plan::TILE, base,
                                            delta, scores, dps);
      wgmma_operand_of ds = wgmma_pack_scores<type>(dps), p;
      if constexpr (kind == FLASH_MASKED && !of_keys) {
        if (all.dmask)
          wgmma_store_dmask<type>(all, place, wave_first, at, dps, ds, lds + plan::MASKS + wave_id() * mask::BYTES);
      }
      if constexpr (of_keys) p = wgmma_pack_scores<type>(scores);
      wgmma_begin();
      if constexpr (of_keys) wgmma_start_sum<type, max_d>(sum2, p, now + tile::BYTES);
      wgmma_start_sum<type, max_d>(sum1, ds, now);
      wgmma_commit();
      if constexpr (kind == FLASH_MASKED) {
        if (at + plan::TILE <= to) fetch_mask(at + plan::TILE);
        async_commit();
      }
      if constexpr (of_keys) numbers.store(in_numbers + (odd ^ 1) * 2 * plan::TILE, plan::TILE);
      async_wait<kind == FLASH_MASKED>(); /* not for the mask */
      wgmma_publish();
      group_barrier(); /* the next tile is there */
      wgmma_begin();
      /* after the last tile of anything: nothing uses them */
      wgmma_start_scores<type, max_d, plan::ROWS>(scores, rows1, next);
      wgmma_start_scores<type, max_d, plan::ROWS>(dps, rows2, next + tile::BYTES);
      wgmma_commit();
      wgmma_wait<1>();
      wgmma_hold(sum1);
      if constexpr (of_keys) wgmma_hold(sum2);
      group_barrier(); /* this tile is no more read */
      if (at + 2 * plan::TILE <= to) {
        tile::fetch(tiles1.from(at + 2 * plan::TILE), now);
        tile::fetch(tiles2.from(at + 2 * plan::TILE), now + tile::BYTES);
      }
      async_commit();
      odd ^= 1;
    }
    wgmma_wait<0>();
    wgmma_hold(scores);
    wgmma_hold(dps);
    async_wait<0>();
  }

  if constexpr (kind == FLASH_MASKED && !of_keys) {
    if (all.dmask) flash_dmask_clear<type>(all, place, first_row, group_last, from, to, plan::TILE);
  }
  group_barrier(); /* tiles are no more read where sums are staged */
  int32_t count = wave_last - wave_first + 1;
  int64_t row = (of_keys ? s.k_row : s.q_row) + wave_first;
  mma_acc one[1][plan::D_TILES];
#pragma unroll
  for (int n = 0; n < plan::D_TILES; n++) one[0][n] = sum1[n];
  if constexpr (of_keys)
    backward_write<type, plan>(one, a.scale, all.dk, all.dk_stride, place.batch, row, kv_head, count, a.d, lds);
  else
    backward_write<type, plan>(one, a.scale, all.dq, all.dq_stride, place.batch, row, place.head, count, a.d, lds);
  if constexpr (of_keys) {
#pragma unroll
    for (int n = 0; n < plan::D_TILES; n++) one[0][n] = sum2[n];
    backward_write<type, plan>(one, 1, all.dv, all.dv_stride, place.batch, row, kv_head, count, a.dv, lds);
  }
  group_barrier();
}

#endif
