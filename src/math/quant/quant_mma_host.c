/* Host twins of the products of f16 with weights in blocks on matrix units. A weight is code * scale - least in f16: of
 * a scale and a least that were rounded to it, in one rounding. */
#include "kernel/host.h"
#include "math/gemm/gemm_blocked.h"
#include "math/quant/quant_coded.h"
#include "math/quant/quant_mma_kernels.h"
#include "math/quant/quant_unpack.h"

/* The code of value |v| of a block, less the format's zero, or the table's entry. */
SIMD_INLINE int code_of(rdna_dtype format, const char *block, int v) {
  uint32_t code = QUANT_LOW_CODES(format, (uint32_t)(uint8_t)block[quant_low_at(format, v)], v, 1);
  if (quant_has_high(format))
    code |= QUANT_HIGH_CODES(format, (uint32_t)(uint8_t)block[quant_high_at(format, v)], v, 1);
  if (quant_has_fifth_bits(format)) code |= (quant_load_32(format, block + quant_fifth_bits_at(format)) >> v & 1) << 4;
  if (quant_has_table(format)) return (int8_t)(quant_table_word(format, (int)code / 4) >> (code % 4 * 8));
  return quant_bits(format) == 8 ? (int8_t)code : (int)code - quant_zero(format);
}

/* Codes and scale of 8 values from |v| on. */
SIMD_INLINE struct quant_scale read_eight(rdna_dtype format, const char *block, int v, int codes[8]) {
  if (quant_is_coded(format)) {
    struct quant_scale s = {0, 0};
    struct quant_eight e = quant_coded_load_eight(format, block, v, &s.scale);
    for (int i = 0; i < 8; i++) codes[i] = (int8_t)(e.w[i / 4] >> (i % 4 * 8));
    return s;
  }
  for (int i = 0; i < 8; i++) codes[i] = code_of(format, block, v + i);
  return quant_scale_of(format, quant_unfold(format, quant_head_of(format, block, v), v), v % 128);
}

SIMD_INLINE void fetch(const gemm_job *job, rdna_dtype format, const char *b, int64_t row, int64_t p, int count,
                       float *out) {
  for (int i = 0; i < count; i += 8) {
    int64_t at = row * job->args->ldb + p + i;
    int codes[8];
    struct quant_scale s = read_eight(format, b + at / quant_values(format) * quant_bytes(format),
                                      (int)(at % quant_values(format)), codes);
    double scale = f16_to_f32(f32_to_f16(s.scale)), least = f16_to_f32(f32_to_f16(s.least));
    /* exact in f64 */
    for (int n = 0; n < 8; n++) out[i + n] = (float)(_Float16)(codes[n] * scale - least);
  }
}

static void run(const void *args, rdna_dtype format, rdna_dtype c,
                void (*fetch_b)(const gemm_job *, const char *, int64_t, int64_t, int, float *)) {
  gemm_job job = {.args = args, .type_a = RDNA_F16, .type_b = format, .type_c = c, .fetch_b = fetch_b};
  gemm_run(&job);
}

#define TWIN(F, NAME, c, C, rows)                                                        \
  void RDNA_HOST_KERNEL(gemm_f16_##F##_##c##_##rows)(const void *args, rdna_grid grid) { \
    run(args, RDNA_##NAME, RDNA_##C, fetch_##F);                                         \
  }
#define TWINS(F, NAME)                                                                                       \
  static void fetch_##F(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out) { \
    fetch(job, RDNA_##NAME, b, row, p, count, out);                                                          \
  }                                                                                                          \
  TWIN(F, NAME, f32, F32, rows16)                                                                            \
  TWIN(F, NAME, f32, F32, rows32)                                                                            \
  TWIN(F, NAME, f32, F32, rows64)                                                                            \
  TWIN(F, NAME, f16, F16, rows16)                                                                            \
  TWIN(F, NAME, f16, F16, rows32)                                                                            \
  TWIN(F, NAME, f16, F16, rows64)
RDNA_QUANT_FORMATS(TWINS)
