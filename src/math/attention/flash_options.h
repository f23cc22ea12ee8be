/* Device code of flash attention: where a score stands, and what options do to it. For .hip files only. */
#ifndef RDNA_MATH_FLASH_OPTIONS_H
#define RDNA_MATH_FLASH_OPTIONS_H

#include "math/attention/flash_tile.h"

/* Where a group's scores stand: arguments, sequence, batch and head. */
struct flash_place {
  const flash_args *a;
  flash_sequence s;
  int32_t batch, head;
};
/* The same with arguments again (see src/math/README.md): there are not scalar registers for all of them. */
RDNA_DEVICE flash_place flash_place_again(const flash_place &at) {
  flash_place now = at;
  now.a = &arguments_again(*at.a);
  return now;
}
/* The same in place. Where waves have 64 lanes, what follows from the batch and the head is not kept either. */
RDNA_DEVICE void flash_place_renew(flash_place &at) {
  at.a = &arguments_again(*at.a);
#if WAVE_SIZE == 64
  asm volatile("" : "+s"(at.batch), "+s"(at.head));
#endif
}

/* Which options a kernel has: limits of what a query sees; those and a mask, which must be there; all. */
enum flash_kind { FLASH_PLAIN, FLASH_MASKED, FLASH_ANY };

/* Replaces the 16 x 16 products c of queries and keys from the given ones on by scale * c + mask, |together| values at
 * a time. Places past the end read the last one's mask. |of_keys|: rows are keys. */
template <typename type, bool of_keys, int together = MMA_VALUES>
RDNA_DEVICE void flash_mask_add(const flash_place &at, int32_t first_query, int32_t first_key, mma_acc &c) {
  typedef typename unit_of<type>::is unit;
#pragma unroll
  for (int first = 0; first < MMA_VALUES; first += together) {
    const flash_args &a = arguments_again(*at.a);
    int64_t head = flash_again(at.batch) * a.mask_stride[0] + flash_again(at.head) * a.mask_stride[1];
    int64_t cell[together];
    float value[together];
#pragma unroll
    for (int e = 0; e < together; e++) {
      int32_t row = (int32_t)unit::row_of(first + e), key = (int32_t)unit::key_of(first + e);
      int32_t i = flash_in_turn(first_query) + (of_keys ? key : row),
              j = flash_in_turn(first_key) + (of_keys ? row : key);
      i = i < a.sq ? i : a.sq - 1; /* there are no starts with a mask */
      j = j < a.sk ? j : a.sk - 1;
      cell[e] = head + i * a.mask_stride[2] + j * a.mask_stride[3];
    }
    if (a.mask_type == FLASH_MASK_BOOL) {
#pragma unroll
      for (int e = 0; e < together; e++) value[e] = ((const uint8_t *)a.mask)[cell[e]] ? 0 : -infinity_f32();
    } else if (a.mask_type == FLASH_MASK_F32) {
#pragma unroll
      for (int e = 0; e < together; e++) value[e] = ((const float *)a.mask)[cell[e]];
    } else {
#pragma unroll
      for (int e = 0; e < together; e++) value[e] = type::load(a.mask, (uint64_t)cell[e]);
    }
#pragma unroll
    for (int e = 0; e < together; e++) c[first + e] = flash_in_turn(fma_f32(c[first + e], a.scale, value[e]));
  }
}

/* Turns x = scale * q.k into the score in units of log 2, before limits. |slope| is the head's; |slack| becomes the
 * derivative of the softcap. */
template <typename type>
RDNA_DEVICE float flash_score(const flash_place &at, float x, float slope, int32_t i, int32_t j, float &slack) {
  const flash_args &a = arguments_again(*at.a);
  x = flash_in_turn(x);
  i = flash_in_turn(i);
  slack = 1;
  if (a.softcap != 0) {
    float tanh = scalar_tanh(x / a.softcap);
    x = a.softcap * tanh;
    slack = fma_f32(-tanh, tanh, 1);
  }
  if (a.slopes) {
    int32_t far = i + at.s.shift - j;
    x -= slope * (float)(far < 0 ? -far : far);
  }
  if (a.mask_type != FLASH_NO_MASK && i < at.s.sq && j < at.s.sk && i >= 0 && j >= 0) {
    const flash_args &m = arguments_again(a);
    int64_t cell =
        at.batch * m.mask_stride[0] + at.head * m.mask_stride[1] + i * m.mask_stride[2] + j * m.mask_stride[3];
    if (m.mask_type == FLASH_MASK_BOOL) {
      if (!((const uint8_t *)m.mask)[cell]) x = -infinity_f32();
    } else {
      x += m.mask_type == FLASH_MASK_F32 ? ((const float *)m.mask)[cell] : type::load(m.mask, (uint64_t)cell);
    }
  }
  return flash_in_turn(x * FLASH_LOG2_E);
}

/* 1 / (1 - dropout) where the probability is kept, else 0. */
RDNA_DEVICE float flash_kept(const flash_place &at, int32_t i, int32_t j) {
  const flash_args &a = arguments_again(*at.a);
  i = flash_in_turn(i);
  random_words words = flash_dropout_words(&a, at.batch, at.head, i, j / 4);
  uint32_t word = j % 4 == 0 ? words.word[0] : j % 4 == 1 ? words.word[1] : j % 4 == 2 ? words.word[2] : words.word[3];
  return flash_in_turn(random_unit(word) >= a.dropout ? 1 / (1 - a.dropout) : 0);
}

/* Whether query i, which is there, does not see key j. */
RDNA_DEVICE bool flash_hidden(const flash_place &place, int32_t i, int32_t j) {
  int32_t far = j - i - place.s.shift;
  return far < -place.a->left || far > place.a->right || j >= place.s.sk;
}

/* From lse in units of log 2: a query that sees nothing has probabilities of 0. */
RDNA_DEVICE float backward_base(float lse) { return lse == -infinity_f32() ? infinity_f32() : lse * FLASH_LOG2_E; }

RDNA_DEVICE float flash_reduce_max(float v, int first, int end) {
#pragma unroll
  for (int mask = first; mask < end; mask *= 2) v = __builtin_fmaxf(v, wave_shuffle_xor_f32(v, (uint32_t)mask));
  return v;
}
RDNA_DEVICE float flash_reduce_sum(float v, int first, int end) {
#pragma unroll
  for (int mask = first; mask < end; mask *= 2) v += wave_shuffle_xor_f32(v, (uint32_t)mask);
  return v;
}

#endif
