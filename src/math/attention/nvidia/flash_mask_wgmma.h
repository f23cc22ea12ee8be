/* Gradient of attention's mask by NVIDIA's asynchronous products: included by flash_mask.hip. A group keeps the mask of
 * its tile and the sums in registers. Vectors of the next term come to shared memory as soon as this one's were
 * multiplied; groups share a multiprocessor, so that one's products run while another works on its scores. */
#ifndef RDNA_MATH_ATTENTION_NVIDIA_FLASH_MASK_WGMMA_H
#define RDNA_MATH_ATTENTION_NVIDIA_FLASH_MASK_WGMMA_H

#include "math/attention/nvidia/flash_wgmma.h"

template <typename type, int max_d>
RDNA_DEVICE void masked_gradient(const flash_mask_args &all, char *lds) {
  typedef matrix_unit<type> unit;
  typedef wgmma_tile<type, max_d, TILE> tile;
  static_assert(4 * tile::BYTES == FLASH_MASK_BYTES(max_d), "what the launch asks for");
  const flash_args &a = all.of;
  mask_tile t = mask_tile_of(all);
  if (t.part >= all.parts) return;
  /* without starts the limits are those of every sequence */
  flash_place place = {&a, flash_sequence_of(&a, 0), t.batch, t.head};
  int32_t first = t.query + (int32_t)wave_id() * 16;
  mma_acc scores[4], dps[4], sum[4], mask[4]; /* in units of log 2, -inf where nothing is seen */
#pragma unroll
  for (int n = 0; n < 4; n++) {
    sum[n] = mask[n] = mma_acc{};
    flash_mask_add<type, false>(place, first, t.key + 16 * n, mask[n]);
#pragma unroll
    for (int i = 0; i < MMA_VALUES; i++) {
      int32_t row = first + (int32_t)unit::row_of(i), key = t.key + 16 * n + (int32_t)unit::key_of(i);
      mask[n][i] = flash_hidden(place, row, key) ? -infinity_f32() : mask[n][i] * FLASH_LOG2_E;
    }
  }
  if (!mask_unseen(a, place.s, t.query, t.key) && t.begin < t.end) {
    uint32_t queries = shared_address(lds), keys = queries + tile::BYTES, douts = keys + tile::BYTES,
             values = douts + tile::BYTES;
    float c = a.scale * FLASH_LOG2_E;
    int32_t heads_per_kv = a.heads / a.kv_heads;
    auto fetch_first = [&](uint32_t term) __attribute__((device, always_inline)) {
      mask_term of = mask_term_of(all, t, term);
      tile::fetch(flash_rows_of<type>(a.q, a.q_stride, of.batch, 0, of.head, a.sq, a.d).from(t.query), queries);
      tile::fetch(flash_rows_of<type>(a.k, a.k_stride, of.batch, 0, of.head / heads_per_kv, a.sk, a.d).from(t.key),
                  keys);
    };
    auto fetch_second = [&](uint32_t term) __attribute__((device, always_inline)) {
      mask_term of = mask_term_of(all, t, term);
      tile::fetch(flash_rows_of<type>(all.dout, all.dout_stride, of.batch, 0, of.head, a.sq, a.dv).from(t.query),
                  douts);
      tile::fetch(flash_rows_of<type>(a.v, a.v_stride, of.batch, 0, of.head / heads_per_kv, a.sk, a.dv).from(t.key),
                  values);
    };
    fetch_first(t.begin);
    async_commit();
    fetch_second(t.begin);
    async_commit();
#pragma unroll 1
    for (uint32_t term = t.begin; term < t.end; term++) {
      mask_term of = mask_term_of(all, t, term);
      int64_t number = of.batch * a.lse_stride[0] + of.head * a.lse_stride[1];
      float base[2], delta[2];
#pragma unroll
      for (int r = 0; r < 2; r++) {
        int32_t row = first + (int32_t)unit::row_of(2 * r);
        row = row < a.sq ? row : a.sq - 1;
        base[r] = backward_base(a.lse[number + row]);
        delta[r] = all.delta[number + row];
      }
      async_wait<1>();
      wgmma_publish();
      group_barrier();
      wgmma_begin();
      wgmma_start_scores<type, max_d, TILE>(scores, queries, keys);
      wgmma_commit();
      async_wait<0>();
      wgmma_publish();
      group_barrier();
      wgmma_begin();
      wgmma_start_scores<type, max_d, TILE>(dps, douts, values);
      wgmma_commit();
      wgmma_wait<1>();
      wgmma_hold(scores);
      group_barrier(); /* these queries and keys are no more read */
      if (term + 1 < t.end) fetch_first(term + 1);
      async_commit();
#pragma unroll
      for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < MMA_VALUES; i++)
          scores[n][i] = fast_exp2(fma_f32(scores[n][i], c, mask[n][i] - base[unit::stat_of(i)]));
      wgmma_wait<0>();
      wgmma_hold(dps);
      group_barrier(); /* nor the others */
      if (term + 1 < t.end) fetch_second(term + 1);
      async_commit();
#pragma unroll
      for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < MMA_VALUES; i++)
          sum[n][i] = fma_f32(scores[n][i], dps[n][i] - delta[unit::stat_of(i)], sum[n][i]);
    }
    async_wait<0>();
  }
#pragma unroll
  for (int n = 0; n < 4; n++) masked_store<type>(all, t, first, t.key + 16 * n, sum[n]);
}

#define MASKED_GRADIENT(type, max_d)                                                                    \
  RDNA_KERNEL_RESIDENT(FLASH_THREADS, 3) flash_mask_masked_##type##_##max_d(struct flash_mask_args a) { \
    WGMMA_MEMORY(lds, FLASH_MASK_BYTES(max_d));                                                         \
    masked_gradient<type, max_d>(a, (char *)lds);                                                       \
  }

#endif
