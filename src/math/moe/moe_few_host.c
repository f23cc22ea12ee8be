/* Host twins of products with experts that have few rows each: the twins of plain products of a row, slot by slot. */
#include "kernel/host.h"
#include "math/moe/moe_few_kernels.h"
#include "math/quant/quant_unpack.h"

static void run(const void *args, int64_t row_bytes, void (*product)(const void *args, rdna_grid grid)) {
  const struct moe_product_args *a = args;
  for (const int32_t *tile = a->tiles; tile < a->tiles + 3 * (int64_t)a->most_tiles; tile += 3) {
    const bool exists = tile[0] < a->experts;
    for (const int32_t *slot = a->order + tile[1]; slot < a->order + tile[1] + tile[2]; slot++) {
      struct gemm_args p = a->product;
      p.a = (const uint16_t *)p.a + (int64_t)(a->x_of_slots ? *slot : *slot / a->top) * p.lda;
      p.c = (float *)p.c + *slot * p.ldc;
      if (exists) p.b = (const char *)p.b + (int64_t)tile[0] * p.n * row_bytes;
      if (!exists) p.k = 0;
      p.bias = exists && p.bias ? (const float *)p.bias + (int64_t)tile[0] * p.n : NULL;
      product(&p, (rdna_grid){1, 1, 1});
    }
  }
}

#define BLOCKS(F, NAME)                                                               \
  void RDNA_HOST_KERNEL(gemm_f16_##F##_f32_rows16)(const void *args, rdna_grid grid); \
  void RDNA_HOST_KERNEL(moe_few_##F)(const void *args, rdna_grid grid) {              \
    const struct moe_product_args *a = args;                                          \
    run(args, a->product.k / quant_values(RDNA_##NAME) * quant_bytes(RDNA_##NAME),    \
        RDNA_HOST_KERNEL(gemm_f16_##F##_f32_rows16));                                 \
  }
RDNA_QUANT_FORMATS(BLOCKS)
