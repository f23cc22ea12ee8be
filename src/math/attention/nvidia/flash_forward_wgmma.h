/* Attention forward by NVIDIA's asynchronous products: included by flash.hip, whose state and softmax it shares. A
 * group has two blocks of 64 queries, which read each tile of keys and values together. */
#ifndef RDNA_MATH_ATTENTION_NVIDIA_FLASH_FORWARD_WGMMA_H
#define RDNA_MATH_ATTENTION_NVIDIA_FLASH_FORWARD_WGMMA_H

#include "math/attention/nvidia/flash_wgmma.h"

/* One block's part of forward_plan; the mask is added before what both share. */
template <typename type, int max_d>
struct wgmma_plan {
  typedef matrix_unit<type> unit;
  static constexpr flash_kind KIND = FLASH_PLAIN;
  static constexpr int M_TILES = 1, KEYS = 64, N_TILES = KEYS / 16, D_TILES = max_d / 16;
};

/* This wave's rows of a block, made anew whenever they are wanted: sums have the registers. */
RDNA_DEVICE forward_wave wgmma_wave(const flash_place &place, int32_t first_row) {
  return forward_wave_of(*place.a, place.s, flash_in_turn(first_row) + (int32_t)wave_id() * 16, 16);
}

template <typename type, int max_d>
struct wgmma_block {
  typedef wgmma_plan<type, max_d> plan;
  forward_state<plan> state;
  mma_acc scores[1][plan::N_TILES];
  wgmma_operand_of p; /* the probabilities */

  /* |first_row|: of the block. Not |whole|: some row does not see some key. |mask|: this wave's of the block. */
  template <flash_kind kind>
  RDNA_MEMBER void softmax(const flash_place &place, int32_t first_row, int32_t first_key, bool whole, float c,
                           uint32_t mask) {
    if constexpr (kind == FLASH_MASKED)
      wgmma_mask<type, false>::add(place, flash_in_turn(first_row) + (int32_t)wave_id() * 16, first_key, mask,
                                   scores[0]);
    if (!whole) {
      forward_wave wave = wgmma_wave(place, first_row);
      forward_tile<type, plan>(place, wave, first_key, 0, scores);
    }
    forward_softmax<plan>(scores, c, state);
    p = wgmma_pack_scores<type>(scores[0]);
  }
  RDNA_MEMBER void hold(void) {
    wgmma_hold(scores[0]);
    wgmma_hold(state.out[0]);
  }
};

/* ROWS queries from |first_row| on. */
template <typename type, int max_d, flash_kind kind>
struct wgmma_rows {
  static constexpr int ROWS = FLASH_ROWS;
  RDNA_DEVICE void run(const flash_place &place, int32_t first_row, char *lds) {
    typedef wgmma_plan<type, max_d> plan;
    typedef wgmma_tile<type, max_d, ROWS> query_tile;
    typedef wgmma_tile<type, max_d, plan::KEYS> tile;
    typedef wgmma_mask<type, false> mask;
    static_assert(query_tile::BYTES + 4 * tile::BYTES == FLASH_FORWARD_BYTES(max_d) &&
                      2 * FLASH_WAVES * mask::BYTES == FLASH_FORWARD_MASKED_BYTES(max_d) - FLASH_FORWARD_BYTES(max_d),
                  "what the launch asks for");
    const flash_args &a = *place.a;
    const flash_sequence &s = place.s;
    int32_t kv_head = place.head / (a.heads / a.kv_heads);
    flash_rows q = flash_rows_of<type>(a.q, a.q_stride, place.batch, s.q_row, place.head, s.sq, a.d);
    flash_rows k = flash_rows_of<type>(a.k, a.k_stride, place.batch, s.k_row, kv_head, s.sk, a.d);
    flash_rows v = flash_rows_of<type>(a.v, a.v_stride, place.batch, s.k_row, kv_head, s.sk, a.dv);
    float c = kind == FLASH_MASKED ? FLASH_LOG2_E : a.scale * FLASH_LOG2_E;
    int32_t group_last = first_row + ROWS <= s.sq ? first_row + ROWS - 1 : s.sq - 1;
    int32_t first = flash_first_key(&a, &s, first_row) / plan::KEYS;
    int32_t end = (flash_last_key(&a, &s, group_last) + plan::KEYS) / plan::KEYS;
    uint32_t queries = shared_address(lds), keys = queries + query_tile::BYTES, values = keys + 2 * tile::BYTES;
    uint32_t mask0 = values + 2 * tile::BYTES + wave_id() * mask::BYTES, mask1 = mask0 + FLASH_WAVES * mask::BYTES;
    auto fetch_mask = [&](int32_t first_key) __attribute__((device, always_inline)) {
      int32_t row = flash_in_turn(first_row) + (int32_t)wave_id() * 16;
      mask::fetch(place, row, first_key, mask0);
      mask::fetch(place, row + 64, first_key, mask1);
    };

    wgmma_block<type, max_d> block[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int n = 0; n < plan::D_TILES; n++) block[i].state.out[0][n] = mma_acc{};
#pragma unroll
      for (int r = 0; r < 2; r++) block[i].state.m[0][r] = -infinity_f32(), block[i].state.l[0][r] = 0;
      wgmma_hold(block[i].state.out[0]);
    }

    group_barrier(); /* shared memory is no more read for the rows before */
    if (first < end) {
      query_tile::fetch(q.from(first_row), queries);
      tile::fetch(k.from(first * plan::KEYS), keys);
      async_commit();
      tile::fetch(v.from(first * plan::KEYS), values);
      if (first + 1 < end) tile::fetch(k.from((first + 1) * plan::KEYS), keys + tile::BYTES);
      if constexpr (kind == FLASH_MASKED) fetch_mask(first * plan::KEYS);
      async_commit();
      async_wait<1>();
      wgmma_publish();
      group_barrier();
      wgmma_begin();
      wgmma_start_scores<type, max_d, ROWS>(block[0].scores[0], queries, keys);
      wgmma_start_scores<type, max_d, ROWS>(block[1].scores[0], queries + 64 * 128, keys);
      wgmma_commit();
    }
    uint32_t odd = 0; /* tile - first, its lowest bit times a tile's bytes */
    int32_t whole_first = flash_first_key(&a, &s, group_last), whole_last = flash_last_key(&a, &s, first_row);
#pragma unroll 1
    for (int32_t at = first; at < end; at++) {
      uint32_t other = odd ^ tile::BYTES;
      int32_t first_key = at * plan::KEYS;
      bool whole = first_key >= whole_first && first_key + plan::KEYS - 1 <= whole_last;
      wgmma_wait<0>();
      block[0].hold();
      block[1].hold();
      async_wait<0>(); /* this tile's values, the next one's keys */
      wgmma_publish();
      group_barrier(); /* and this tile's keys and the values before are no more read */
      if (at + 1 < end) tile::fetch(v.from(first_key + plan::KEYS), values + other);
      if (at + 2 < end) tile::fetch(k.from(first_key + 2 * plan::KEYS), keys + odd);
      async_commit();
      block[0].template softmax<kind>(place, first_row, first_key, whole, c, mask0);
      block[1].template softmax<kind>(place, first_row + 64, first_key, whole, c, mask1);
      wgmma_begin();
      wgmma_start_sum<type, max_d>(block[0].state.out[0], block[0].p, values + odd);
      wgmma_start_sum<type, max_d>(block[1].state.out[0], block[1].p, values + odd);
      wgmma_commit();
      if constexpr (kind == FLASH_MASKED) {
        if (at + 1 < end) fetch_mask(first_key + plan::KEYS);
        async_commit();
      }
      wgmma_wait<0>(); /* both together would want more registers than there are */
      block[0].hold();
      block[1].hold();
      wgmma_begin();
      /* after the last tile of anything: nothing uses them */
      wgmma_start_scores<type, max_d, ROWS>(block[0].scores[0], queries, keys + other);
      wgmma_start_scores<type, max_d, ROWS>(block[1].scores[0], queries + 64 * 128, keys + other);
      wgmma_commit();
      odd = other;
    }
    wgmma_wait<0>();
    block[0].hold();
    block[1].hold();
    async_wait<0>();
    group_barrier(); /* tiles are no more read where results are staged */
#pragma unroll
    for (int i = 0; i < 2; i++)
      forward_store<type, plan>(place, wgmma_wave(place, first_row + 64 * i), c, block[i].state, lds);
  }
};

#endif
