/* Making blocks on the host, by the steps of quant_pack.h, a block at a time. */
#include "kernel/host.h"

#include "math/quant/quant_pack.h"
#include "math/quant/quant_pack_kernels.h"

__attribute__((always_inline)) static inline void quantize_block(rdna_dtype format, const float *x, const float *w,
                                                                 uint8_t *out) {
  const int values = quant_run(format), parts = quant_values(format) / values;
  struct quant_scale wanted[16], most = {0, 0};
  uint8_t codes[256], s[16], m[16];
  for (int j = 0; j < parts; j++) {
    wanted[j] = quant_wanted(format, x + j * values);
    if (w) wanted[j] = quant_searched(format, x + j * values, w + j * values, wanted[j]);
    most.scale = j == 0 ? wanted[j].scale : quant_farther(most.scale, wanted[j].scale);
    most.least = j == 0 || !(most.least > wanted[j].least) ? wanted[j].least : most.least;
  }
  struct quant_block_scales block = quant_scales_of_block(format, most);
  for (int j = 0; j < parts; j++) {
    struct quant_part part = quant_part_of(format, block, wanted[j]);
    s[j] = part.s, m[j] = part.m;
    for (int i = 0; i < values; i++) codes[j * values + i] = quant_code_of(format, part.scale, x[j * values + i]);
  }
  for (int i = 0; i < quant_bytes(format); i++) out[i] = quant_packed_byte(format, i, block, codes, s, m);
}

#define QUANTIZE(name, NAME)                                                                               \
  static void quantize_##name(void *context, int64_t begin, int64_t end) {                                 \
    const struct quantize_args *args = context;                                                            \
    for (int64_t b = begin; b < end; b++) {                                                                \
      int64_t at = b * quant_values(RDNA_##NAME);                                                          \
      quantize_block(RDNA_##NAME, args->x + at, args->weights ? args->weights + at % args->columns : NULL, \
                     (uint8_t *)args->blocks + b * quant_bytes(RDNA_##NAME));                              \
    }                                                                                                      \
  }                                                                                                        \
  void RDNA_HOST_KERNEL(quantize_f32_##name)(const void *args, rdna_grid grid) {                           \
    struct quantize_args a = *(const struct quantize_args *)args;                                          \
    rdna__parallel_for(a.count / quant_values(RDNA_##NAME), 64, quantize_##name, &a);                      \
  }
RDNA_QUANT_PACKED(QUANTIZE)
