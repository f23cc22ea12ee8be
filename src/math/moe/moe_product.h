/* Device code: which rows of x, weights and out belong to a slot of moe_product_args. */
#ifndef RDNA_MATH_MOE_PRODUCT_H
#define RDNA_MATH_MOE_PRODUCT_H

#include "kernel/prelude.h"
#include "math/moe/moe_kernels.h"

/* *p, the same for a whole wave and written by no one meanwhile: AMD's scalar loads take it, with less latency. */
template <typename value>
RDNA_DEVICE value load_uniform(const value *p) {
#ifdef RDNA_AMD
  return *(const __attribute__((address_space(4))) value *)(uint64_t)p;
#else
  return *p;
#endif
}

/* An expert's number, 0 where there is none: its weights are then read and not used. */
struct moe_expert {
  int64_t number;
  bool exists;
};
RDNA_DEVICE moe_expert moe_expert_of(const struct moe_product_args &a, int32_t slot) {
  uint32_t chosen = (uint32_t)load_uniform(a.chosen + slot);
  bool exists = chosen < (uint32_t)a.experts;
  return {exists ? (int64_t)chosen : 0, exists};
}
RDNA_DEVICE const float *moe_x_of(const struct moe_product_args &a, int32_t slot) {
  return (const float *)a.product.a + (int64_t)(a.x_of_slots ? slot : slot / a.top) * a.product.lda;
}

/* The slot of this work-group of moe_gemv. */
RDNA_DEVICE int32_t moe_slot(void) { return (int32_t)group_id_y(); }
/* Stores the value of column |j| of this work-group's slot from its sum; zeros without an expert. */
RDNA_DEVICE void moe_finish(const struct moe_product_args &a, int j, float sum) {
  moe_expert expert = moe_expert_of(a, moe_slot());
  if (a.product.bias && !a.up) sum += global((const float *)a.product.bias)[expert.number * a.product.n + j];
  ((float *)a.product.c)[(int64_t)moe_slot() * a.product.ldc + j] = expert.exists ? sum : 0;
}

/* The tile that a work-group makes: rows from |first| of order on, |count| of them, all of one expert, and the columns
 * of out from |column| on. */
struct moe_tile {
  int expert, first, count, column;
  bool exists; /* else slots have no expert, and the first one's weights and bias count for nothing */
};
RDNA_DEVICE moe_tile moe_tile_of(const struct moe_product_args &a, int columns) {
  int32_t across = (a.product.n + columns - 1) / columns, index = (int32_t)group_id_x() / across;
  const int32_t *entry = a.tiles + 3 * (int64_t)index;
  int expert = (int)wave_uniform_u32((uint32_t)global(entry)[0]);
  bool exists = expert < a.experts;
  return {exists ? expert : 0, (int)wave_uniform_u32((uint32_t)global(entry)[1]),
          (int)wave_uniform_u32((uint32_t)global(entry)[2]), ((int)group_id_x() - index * across) * columns, exists};
}
/* The bias of a tile's expert, or NULL. */
RDNA_DEVICE const float *moe_bias_of(const struct moe_product_args &a, const moe_tile &tile) {
  const float *bias = (const float *)a.product.bias;
  return tile.exists && bias ? bias + (int64_t)tile.expert * a.product.n : nullptr;
}

#endif
