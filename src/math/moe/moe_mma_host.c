/* Host twins of products with experts on matrix units. */
#include "math/common/host/values.h"
#include "math/moe/moe_mma_kernels.h"
#include "math/quant/quant_unpack.h"

enum { STEP = 256 }; /* values of k at a time: whole blocks of any format */

/* A tile of rows of one expert, whose columns threads share. */
struct tile_job {
  const struct moe_product_args *args;
  const int32_t *tile;
  rdna_dtype x, weights;
  void (*dequantize)(const void *args, rdna_grid grid); /* to f16; NULL for weights of x's type */
};

static const float *read_half(rdna_dtype type, float *buffer, const uint16_t *p, int64_t n) {
  return type == RDNA_F16 ? read_f16(buffer, p, n) : read_bf16(buffer, p, n);
}

/* Values [p, p + n) of row |row| of the expert's weights. */
static const float *read_weights(const struct tile_job *job, int64_t row, int64_t p, int64_t n, float *buffer) {
  const struct gemm_args *product = &job->args->product;
  int64_t at = (job->tile[0] * (int64_t)product->n + row) * product->k + p;
  if (!job->dequantize) return read_half(job->x, buffer, (const uint16_t *)product->b + at, n);
  _Alignas(64) uint16_t half[STEP];
  struct dequantize_args args = {(const char *)product->b + at / quant_values(job->weights) * quant_bytes(job->weights),
                                 half, n};
  job->dequantize(&args, (rdna_grid){1, 1, 1});
  return read_f16(buffer, half, n);
}

SIMD_INLINE float dot(const float *a, const float *b, int64_t n) {
  simd_float sum = {0};
  float rest = 0;
  int64_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) sum = simd_fma(simd_load(a + i), simd_load(b + i), sum);
  for (; i < n; i++) rest = fma_f32(a[i], b[i], rest);
  return simd_sum(sum) + rest;
}

static void multiply_columns(void *context, int64_t begin, int64_t end) {
  const struct tile_job *job = context;
  const struct moe_product_args *a = job->args;
  const int32_t *slots = a->order + job->tile[1], expert = job->tile[0], rows = job->tile[2];
  const bool exists = expert < a->experts;
  const float *bias =
      exists && a->product.bias ? (const float *)a->product.bias + (int64_t)expert * a->product.n : NULL;
  for (int64_t j = begin; j < end; j++) {
    float sum[MOE_TILE] = {0}, w_room[STEP], x_room[STEP];
    for (int64_t p = 0; exists && p < a->product.k; p += STEP) {
      int64_t n = a->product.k - p < STEP ? a->product.k - p : STEP;
      const float *w = read_weights(job, j, p, n, w_room);
      for (int32_t r = 0; r < rows; r++) {
        int64_t row = a->x_of_slots ? slots[r] : slots[r] / a->top;
        const uint16_t *x = (const uint16_t *)a->product.a + row * a->product.lda + p;
        sum[r] += dot(read_half(job->x, x_room, x, n), w, n);
      }
    }
    for (int32_t r = 0; r < rows; r++)
      ((float *)a->product.c)[slots[r] * a->product.ldc + j] = bias ? sum[r] + bias[j] : sum[r];
  }
}

static void run(const void *args, rdna_dtype x, rdna_dtype weights,
                void (*dequantize)(const void *args, rdna_grid grid)) {
  const struct moe_product_args *a = args;
  for (int32_t t = 0; t < a->most_tiles; t++) {
    struct tile_job job = {a, a->tiles + 3 * (int64_t)t, x, weights, dequantize};
    rdna__parallel_for(a->product.n, 8, multiply_columns, &job);
  }
}

void RDNA_HOST_KERNEL(moe_mma_f16_f16)(const void *args, rdna_grid grid) { run(args, RDNA_F16, RDNA_F16, NULL); }
void RDNA_HOST_KERNEL(moe_mma_bf16_bf16)(const void *args, rdna_grid grid) { run(args, RDNA_BF16, RDNA_BF16, NULL); }
#define BLOCKS(F, NAME)                                                          \
  void RDNA_HOST_KERNEL(dequantize_##F##_f16)(const void *args, rdna_grid grid); \
  void RDNA_HOST_KERNEL(moe_mma_f16_##F)(const void *args, rdna_grid grid) {     \
    run(args, RDNA_F16, RDNA_##NAME, RDNA_HOST_KERNEL(dequantize_##F##_f16));    \
  }
RDNA_QUANT_FORMATS(BLOCKS)
