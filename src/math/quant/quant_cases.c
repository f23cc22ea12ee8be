#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "math/case_fill.h"
#include "math/gemm/gemm_case.h"
#include "math/quant/quant_kernels.h"

static rdna_status out_of_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a quantization case"); }

static float random_beta(rdna__random *random) { return rdna__random_below(random, 2) ? 1 : 0; }

/* k is in blocks here */
RDNA_CASE_MAKER(rdna__quant_gemm_case) {
  static const struct {
    int m, n, blocks;
  } edges[] = {{3, 5, 1}, {0, 4, 1}, {4, 0, 1}, {4, 4, 0}, {64, 64, 1}, {65, 129, 2}};
  rdna__product_case product;
  RDNA_TRY(rdna__product_case_parse(kernel->name, &product));
  int block = rdna_dtype_block_values(product.type_b), most = block == 32 ? 8 : 2;
  struct gemm_args args = {.batch = 1, .beta = random_beta(random)};
  if (n < (int)(sizeof edges / sizeof edges[0])) {
    args.m = edges[n].m, args.n = edges[n].n, args.k = edges[n].blocks * block;
  } else {
    args.m = (int32_t)rdna__random_range(random, 1, 150);
    args.n = (int32_t)rdna__random_range(random, 1, 200);
    args.k = (int32_t)rdna__random_range(random, 1, most) * block;
    args.batch = rdna__random_below(random, 4) ? 1 : 2;
  }
  args.flags = GEMM_B_TRANSPOSED | (rdna__random_below(random, 4) ? 0 : GEMM_A_TRANSPOSED);
  return rdna__product_case_make(&product, args, random, out_case);
}

RDNA_CASE_MAKER(rdna__quant_gemv_case) {
  static const struct {
    int n, blocks;
  } edges[] = {{5, 2}, {0, 1}, {7, 0}, {1, 1}, {9, 5}};
  rdna__product_case product;
  RDNA_TRY(rdna__product_case_parse(kernel->name, &product));
  int block = rdna_dtype_block_values(product.type_b);
  struct gemm_args args = {.batch = 1, .flags = GEMM_B_TRANSPOSED, .beta = random_beta(random)};
  args.m = (int32_t)rdna__random_range(random, 1, product.columns);
  if (n < (int)(sizeof edges / sizeof edges[0])) {
    args.n = edges[n].n, args.k = edges[n].blocks * block;
  } else {
    args.n = (int32_t)rdna__random_range(random, 1, 200);
    args.k = (int32_t)rdna__random_range(random, 1, block == 32 ? 48 : 6) * block;
  }
  return rdna__product_case_make(&product, args, random, out_case);
}

/* All bits are compared: the order of roundings is part of a format. Blocks are random bytes, so scales take every
 * value, NaN and infinity among them. */
RDNA_CASE_MAKER(rdna__dequantize_case) {
  rdna_dtype format = RDNA_Q8_0;
  while (strncmp(kernel->name + strlen("dequantize_"), rdna_dtype_name(format), 4) != 0) format++;
  rdna_dtype type = strstr(kernel->name, "_f16") ? RDNA_F16 : RDNA_F32;
  int64_t block = rdna_dtype_block_values(format);
  int64_t blocks = n == 0 ? 1 : n == 1 ? 0 : rdna__random_range(random, 1, 40);
  struct dequantize_args args = {.count = blocks * block};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((args.count + QUANT_VALUES_PER_GROUP - 1) / QUANT_VALUES_PER_GROUP), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "blocks %lld", (long long)blocks);
  uint8_t *data = rdna__case_add(out_case, RDNA__IN, format, args.count, offsetof(struct dequantize_args, blocks));
  if (!data) return out_of_memory();
  for (size_t i = 0; i < rdna_dtype_bytes(format, args.count); i++) data[i] = (uint8_t)rdna__random_bits(random);
  if (!rdna__case_add(out_case, RDNA__OUT, type, args.count, offsetof(struct dequantize_args, out)))
    return out_of_memory();
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__quantize_case) {
  int64_t blocks = n == 0 ? 1 : n == 1 ? 0 : rdna__random_range(random, 1, 100);
  struct quantize_args args = {.count = blocks * 32};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((blocks + QUANTIZE_BLOCKS_PER_GROUP - 1) / QUANTIZE_BLOCKS_PER_GROUP), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "blocks %lld", (long long)blocks);
  float *x = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.count, offsetof(struct quantize_args, x));
  if (!x) return out_of_memory();
  for (int64_t b = 0; b < blocks; b++) {
    /* blocks of zeros, of halves that decide how ties round, and of numbers of every size */
    uint64_t kind = rdna__random_below(random, 4);
    double scale = kind == 0 ? 0 : rdna__random_unit(random) * (kind == 1 ? 1e-4 : 100);
    for (int i = 0; i < 32; i++) x[b * 32 + i] = (float)(scale * rdna__random_normal(random));
    if (kind == 2)
      for (int i = 0; i < 32; i++) x[b * 32 + i] = i == 0 ? 127 : (float)rdna__random_range(random, -253, 253) / 2;
  }
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_Q8_0, args.count, offsetof(struct quantize_args, blocks)))
    return out_of_memory();
  return RDNA_OK;
}
