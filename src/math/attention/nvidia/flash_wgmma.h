/* What the attention kernels share where NVIDIA's products are asynchronous. Vectors lie in shared memory as
 * kernel/wgmma.h wants them: 64 values of each in lines of 128 bytes, then the next 64. A group's 128 threads multiply
 * together; two groups share a multiprocessor, so that one's products run while the other works on its scores. */
#ifndef RDNA_MATH_ATTENTION_NVIDIA_FLASH_WGMMA_H
#define RDNA_MATH_ATTENTION_NVIDIA_FLASH_WGMMA_H

#include "math/attention/flash_options.h"

/* |rows| vectors of up to max_d values. */
template <typename type, int max_d, int rows>
struct wgmma_tile {
  static constexpr int IN_ROW = max_d / 8, A_PASS = FLASH_THREADS / IN_ROW, HALF = rows * 128,
                       BYTES = max_d / 64 * HALF;
  /* Starts the copies of the vectors of |from|; zeros follow them. */
  RDNA_DEVICE void fetch(const flash_rows &from, uint32_t to) {
    uint32_t row = flash_thread() / IN_ROW, chunk = flash_thread() % IN_ROW;
    const char *at = from.base + (int64_t)(row * (uint32_t)from.stride + chunk * 16);
    to += chunk / 8 * HALF + row * 128 + ((chunk ^ row) & 7) * 16;
    bool there = (int32_t)(chunk * 8) < from.d;
    int32_t step = flash_in_turn(A_PASS * from.stride), left = flash_in_turn(from.count - (int32_t)row);
#pragma unroll
    for (int i = 0; i < rows / A_PASS; i++) {
      bool valid = there && i * A_PASS < left;
      copy_to_shared_16(to + i * A_PASS * 128, valid ? at : from.base, valid);
      at += step;
    }
  }
  /* Values |k| .. + 15 of 64 vectors, or as values across k, of vectors |k| .. + 15. */
  RDNA_DEVICE uint64_t along(uint32_t tile, int k) { return wgmma_along_k(tile + k / 64 * HALF + k % 64 * 2); }
  RDNA_DEVICE uint64_t across(uint32_t tile, int k) { return wgmma_across_k(tile + k * 128, HALF); }
};

/* What a wave's 16 rows want of a mask for a tile of 64, in shared memory that no other wave uses: of 16 queries 64
 * keys, or |of_keys|, of 64 queries 16 keys. Masks of 16 bits are copied; others are read where they are. */
template <typename type, bool of_keys>
struct wgmma_mask {
  static constexpr int QUERIES = of_keys ? 64 : 16, IN_ROW = of_keys ? 2 : 8, PITCH = IN_ROW * 16,
                       BYTES = QUERIES * PITCH;
  /* 8 rows' chunks of one place, which are read together, are in different banks */
  RDNA_DEVICE uint32_t at(uint32_t row, uint32_t chunk) {
    return row * PITCH + (chunk ^ (of_keys ? row / 4 % 2 : row % 8)) * 16;
  }
  RDNA_DEVICE bool copied(const flash_args &a) {
    return a.mask_type == FLASH_MASK_SAME && a.mask_stride[3] == 1 &&
           all_16(address_of(a.mask) | (uint64_t)(a.mask_stride[0] | a.mask_stride[1] | a.mask_stride[2]) * 2);
  }
  /* Starts the copies. Places past the end are the last query's, or zero. */
  RDNA_DEVICE void fetch(const flash_place &place, int32_t first_query, int32_t first_key, uint32_t to) {
    const flash_args &a = *place.a;
    if (!copied(a)) return;
    uint32_t lane = flash_in_turn(lane_id()), row = lane / IN_ROW, chunk = lane % IN_ROW;
    int32_t key = first_key + (int32_t)chunk * 8, left = (place.s.sk - key) * 2;
    uint32_t bytes = left <= 0 ? 0 : left < 16 ? (uint32_t)left : 16;
    const char *from = (const char *)a.mask;
    if (left > 0)
      from += (flash_again(place.batch) * a.mask_stride[0] + flash_again(place.head) * a.mask_stride[1] + key) * 2;
#pragma unroll
    for (int i = 0; i < QUERIES * IN_ROW / WAVE_SIZE; i++) {
      uint32_t mine = row + i * (WAVE_SIZE / IN_ROW);
      int32_t query = first_query + (int32_t)mine;
      query = query < place.s.sq ? query : place.s.sq - 1;
      async_copy16(to + at(mine, chunk), from + query * a.mask_stride[2] * 2, bytes);
    }
  }
  /* Scores, products, to scale * scores + mask: once this thread has waited for its copies. */
  RDNA_DEVICE void add(const flash_place &place, int32_t first_query, int32_t first_key, uint32_t from,
                       mma_acc (&scores)[4]) {
    const flash_args &a = *place.a;
    if (!copied(a)) {
#pragma unroll
      for (int n = 0; n < 4; n++)
        flash_mask_add<type, of_keys, of_keys ? 8 : 4>(place, first_query + (of_keys ? 16 * n : 0),
                                                       first_key + (of_keys ? 0 : 16 * n), scores[n]);
      return;
    }
    wave_barrier();
    uint32_t lane = flash_in_turn(lane_id()), row = lane % 8, quarter = lane / 8;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      uint4 v = of_keys ? mma_load_quarters_turned(from + at(16 * n + row + quarter / 2 * 8, quarter % 2))
                        : mma_load_quarters(from + at(row + quarter % 2 * 8, 2 * n + quarter / 2));
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float2 pair = flash_unpack(type(), v[i]);
        scores[n][2 * i] = fma_f32(scores[n][2 * i], a.scale, pair.x);
        scores[n][2 * i + 1] = fma_f32(scores[n][2 * i + 1], a.scale, pair.y);
      }
    }
    wave_barrier();
  }
};

template <bool adds, int tiles>
RDNA_DEVICE void wgmma_scores(f16, mma_acc (&c)[tiles], uint64_t a, uint64_t b) {
  wgmma_f16<false, false, adds>(c, a, b);
}
template <bool adds, int tiles>
RDNA_DEVICE void wgmma_scores(bf16, mma_acc (&c)[tiles], uint64_t a, uint64_t b) {
  wgmma_bf16<false, false, adds>(c, a, b);
}
template <int tiles>
RDNA_DEVICE void wgmma_values(f16, mma_acc (&c)[tiles], const uint4 &a, uint64_t b) {
  wgmma_own_f16<true, true>(c, a, b);
}
template <int tiles>
RDNA_DEVICE void wgmma_values(bf16, mma_acc (&c)[tiles], const uint4 &a, uint64_t b) {
  wgmma_own_bf16<true, true>(c, a, b);
}

/* Starts scores = the products of 64 vectors of a tile of |rows| at |from| with the 64 of a tile. */
template <typename type, int max_d, int rows>
RDNA_DEVICE void wgmma_start_scores(mma_acc (&scores)[4], uint32_t from, uint32_t tile) {
  from = flash_in_turn(from); /* else descriptions of all steps are kept in registers */
#pragma unroll
  for (int k = 0; k < max_d; k += 16) {
    uint64_t a = wgmma_tile<type, max_d, rows>::along(from, k), b = wgmma_tile<type, max_d, 64>::along(tile, k);
    if (k == 0)
      wgmma_scores<false>(type(), scores, a, b);
    else
      wgmma_scores<true>(type(), scores, a, b);
  }
}

/* What scores became, as an operand; products may still be reading it when the scores are something else. */
struct wgmma_operand_of {
  uint4 part[4];
};
template <typename type>
RDNA_DEVICE wgmma_operand_of wgmma_pack_scores(const mma_acc (&scores)[4]) {
  wgmma_operand_of p;
#pragma unroll
  for (int n = 0; n < 4; n++) {
    const mma_acc &s = scores[n];
    p.part[n] = uint4{flash_pack(type(), s[0], s[1]), flash_pack(type(), s[2], s[3]), flash_pack(type(), s[4], s[5]),
                      flash_pack(type(), s[6], s[7])};
  }
  return p;
}
/* Starts sum += p times the 64 vectors of a tile. */
template <typename type, int max_d>
RDNA_DEVICE void wgmma_start_sum(mma_acc (&sum)[max_d / 16], const wgmma_operand_of &p, uint32_t tile) {
#pragma unroll
  for (int n = 0; n < 4; n++) wgmma_values(type(), sum, p.part[n], wgmma_tile<type, max_d, 64>::across(tile, 16 * n));
}

#endif
