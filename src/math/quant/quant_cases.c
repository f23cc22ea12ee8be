#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "math/common/case/values.h"
#include "math/gemm/gemm_case.h"
#include "math/quant/quant_case.h"
#include "math/quant/quant_encode_kernels.h"
#include "math/quant/quant_pack.h"
#include "math/quant/quant_pack_kernels.h"

/* Stores a random f16 scale in (-most, most). */
static void put_scale(rdna__random *random, uint8_t *at, double most) {
  uint16_t bits = f32_to_f16((float)(most * (2 * rdna__random_unit(random) - 1)));
  memcpy(at, &bits, sizeof bits);
}

double rdna__fill_blocks(rdna__random *random, rdna_dtype format, void *blocks, int64_t count) {
  size_t bytes = rdna_dtype_block_bytes(format);
  int64_t block_count = count / rdna_dtype_block_values(format);
  /* the largest code and the largest scale of each format, from which d follows such that values are up to about 4 */
  int code = quant_most(format) > 0    ? quant_most(format)
             : quant_bits(format) == 8 ? 128
             : quant_zero(format) > 0  ? quant_zero(format)
             : quant_has_table(format) ? 127
                                       : (1 << quant_bits(format)) - 1;
  int scale = quant_scale_top(format) > 0 ? quant_scale_top(format) : 1;
  uint8_t *block = blocks;
  for (int64_t b = 0; b < block_count; b++, block += bytes) {
    for (size_t i = 0; i < bytes; i++) block[i] = (uint8_t)rdna__random_bits(random);
    uint8_t *d = block + quant_d_at(format);
    if (format == RDNA_IQ1_M) { /* d's nibbles are the highest of four words */
      uint8_t half[2];
      put_scale(random, half, 4.0 / code);
      for (int i = 0; i < 4; i++) d[2 * i + 1] = (uint8_t)(d[2 * i + 1] % 16 + (half[i / 2] >> (i % 2 * 4)) * 16);
    } else if (quant_scales(format) == RDNA__SCALES_POWER) {
      *d = (uint8_t)rdna__random_range(random, 115, 126); /* at most 6 * 2^(126 - 127) */
    } else {
      put_scale(random, d, (quant_has_least(format) ? 2.0 : 4.0) / (scale * code));
      if (quant_has_least(format)) put_scale(random, d + 2, 2.0 / scale);
    }
  }
  return 4.01; /* with the rounding of the scale to f16 */
}

/* Fills in the case of the kernel |name|. */
static rdna_status parse(const char *name, rdna__product_case *out_product) {
  RDNA_TRY(rdna__product_case_parse(name, out_product));
  out_product->vector_rows = out_product->tile == 0 ? QUANT_GEMV_GROUP_ROWS : 0;
  out_product->fill_blocks = rdna__fill_blocks;
  return RDNA_OK;
}

static float random_beta(rdna__random *random) { return rdna__random_below(random, 2) ? 1 : 0; }

/* k is in blocks here */
RDNA_CASE_MAKER(rdna__quant_gemm_case) {
  static const struct {
    int m, n, blocks;
  } edges[] = {{3, 5, 1}, {0, 4, 1}, {4, 0, 1}, {4, 4, 0}, {64, 64, 1}, {65, 129, 2}};
  rdna__product_case product;
  RDNA_TRY(parse(kernel->name, &product));
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
  if (n % 3 == 2) args.flags |= GEMM_MAY_ROUND;
  return rdna__product_case_make(&product, args, random, out_case);
}

RDNA_CASE_MAKER(rdna__quant_mma_case) {
  static const struct {
    int m, n, blocks;
  } edges[] = {{1, 5, 1}, {0, 4, 1}, {4, 0, 1}, {4, 4, 0}, {16, 32, 3}, {65, 33, 2}};
  rdna__product_case product;
  RDNA_TRY(parse(kernel->name, &product));
  int block = rdna_dtype_block_values(product.type_b);
  struct gemm_args args = {.batch = 1, .flags = GEMM_B_TRANSPOSED, .beta = random_beta(random)};
  if (n < (int)(sizeof edges / sizeof edges[0])) {
    args.m = edges[n].m, args.n = edges[n].n, args.k = edges[n].blocks * block;
  } else {
    args.m = (int32_t)rdna__random_range(random, 1, product.tile + product.tile / 2);
    args.n = (int32_t)rdna__random_range(random, 1, 100);
    args.k = (int32_t)rdna__random_range(random, 1, block == 32 ? 40 : 5) * block;
  }
  return rdna__product_case_make(&product, args, random, out_case);
}

RDNA_CASE_MAKER(rdna__quant_gemv_case) {
  static const struct {
    int n, blocks;
  } edges[] = {{5, 2}, {0, 1}, {7, 0}, {1, 1}, {9, 5}, {21, 17}};
  rdna__product_case product;
  RDNA_TRY(parse(kernel->name, &product));
  int block = rdna_dtype_block_values(product.type_b);
  struct gemm_args args = {.batch = 1, .flags = GEMM_B_TRANSPOSED, .beta = random_beta(random)};
  args.m = (int32_t)rdna__random_range(random, 1, product.columns);
  if (n % 3 == 2) args.flags |= GEMM_MAY_ROUND;
  product.stepped = product.columns == 1, product.gated = product.stepped && n % 4 >= 2;
  if (n < (int)(sizeof edges / sizeof edges[0])) {
    args.n = edges[n].n, args.k = edges[n].blocks * block;
  } else {
    args.n = (int32_t)rdna__random_range(random, 1, 200);
    args.k = (int32_t)rdna__random_range(random, 1, block == 32 ? 150 : 19) * block;
  }
  return rdna__product_case_make(&product, args, random, out_case);
}

/* All bits are compared, as the order of roundings is part of a format. Blocks are random bytes, so that scales take
 * every value, NaN and infinity among them. */
RDNA_CASE_MAKER(rdna__dequantize_case) {
  const char *name = kernel->name + strlen("dequantize_"), *type_name = strrchr(name, '_');
  rdna_dtype format = RDNA_Q8_0, type = case_name_dtype(kernel->name);
  while (strncmp(name, rdna_dtype_name(format), (size_t)(type_name - name)) != 0) format++;
  int64_t block = rdna_dtype_block_values(format);
  int64_t blocks = n == 0 ? 1 : n == 1 ? 0 : rdna__random_range(random, 1, 40);
  struct dequantize_args args = {.count = blocks * block};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((args.count + QUANT_VALUES_PER_GROUP - 1) / QUANT_VALUES_PER_GROUP), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "blocks %lld", (long long)blocks);
  uint8_t *data = rdna__case_add(out_case, RDNA__IN, format, args.count, offsetof(struct dequantize_args, blocks));
  if (!data) return rdna__case_no_memory(out_case);
  for (size_t i = 0; i < rdna_dtype_bytes(format, args.count); i++) data[i] = (uint8_t)rdna__random_bits(random);
  if (!rdna__case_add(out_case, RDNA__OUT, type, args.count, offsetof(struct dequantize_args, out)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}

/* Fills blocks with zeros, with halves (ties of rounding), with values of one sign, or with numbers of every size. */
static void fill_quantized(rdna__random *random, float *x, int64_t count, int block) {
  for (int64_t b = 0; b < count / block; b++) {
    uint64_t kind = rdna__random_below(random, 5);
    double scale = kind == 0 ? 0 : rdna__random_unit(random) * (kind == 1 ? 1e-4 : 100);
    double mean = kind == 4 ? 4 * scale * (double)rdna__random_range(random, -1, 1) : 0;
    for (int i = 0; i < block; i++) x[b * block + i] = (float)(mean + scale * rdna__random_normal(random));
    if (kind == 2)
      for (int i = 0; i < block; i++)
        x[b * block + i] = i == 0 ? 127 : (float)rdna__random_range(random, -253, 253) / 2;
    if (kind == 0)
      for (int i = 0; i < block; i++) x[b * block + i] = rdna__random_below(random, 2) ? -0.0f : 0.0f;
  }
}

/* Bytes are compared, as both sides do the same arithmetic. Some values are infinite or NaN. |group|: values of a
 * work-group; |groups|: at most. */
static rdna_status quantize_case(rdna_dtype format, int group, int groups, rdna__random *random, int n,
                                 rdna__kernel_case *out_case) {
  int block = rdna_dtype_block_values(format);
  int64_t blocks = n == 0 ? 1 : n == 1 ? 0 : rdna__random_range(random, 1, groups * group / block);
  struct quantize_args args = {.count = blocks * block};
  bool weighted = n % 2 == 1 && blocks > 0;
  if (weighted) args.columns = (blocks % 2 == 0 ? 2 : 1) * block;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((args.count + group - 1) / group), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "blocks %lld%s", (long long)blocks, weighted ? " weighted" : "");
  float *x = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.count, offsetof(struct quantize_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  fill_quantized(random, x, args.count, block);
  for (int64_t i = 0; n % 3 == 2 && i < args.count / 500; i++) {
    static const float special[] = {NAN, INFINITY, -INFINITY, 1e38f, -3e38f, 1e-42f};
    x[rdna__random_range(random, 0, args.count - 1)] = special[rdna__random_below(random, 6)];
  }
  if (!rdna__case_add(out_case, RDNA__OUT, format, args.count, offsetof(struct quantize_args, blocks)))
    return rdna__case_no_memory(out_case);
  if (weighted) {
    float *w = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.columns, offsetof(struct quantize_args, weights));
    if (!w) return rdna__case_no_memory(out_case);
    for (int64_t i = 0; i < args.columns; i++) {
      double unit = rdna__random_unit(random);
      w[i] = rdna__random_below(random, 8) ? (float)(unit * unit * unit * 10) : 0;
    }
  }
  return RDNA_OK;
}

static rdna_dtype made_by(const rdna__kernel_info *kernel) {
  rdna_dtype format = RDNA_Q8_0;
  while (strcmp(kernel->name + strlen("quantize_f32_"), rdna_dtype_name(format)) != 0) format++;
  return format;
}
RDNA_CASE_MAKER(rdna__quant_pack_case) {
  rdna_dtype format = made_by(kernel);
  return quantize_case(format, QUANT_PACK_VALUES(quant_run(format)), 2, random, n, out_case);
}
RDNA_CASE_MAKER(rdna__quant_encode_case) {
  return quantize_case(made_by(kernel), 256 * QUANT_ENCODE_BLOCKS, 2, random, n, out_case);
}

RDNA_CASE_MAKER(rdna__quantize_case) {
  int64_t blocks = n == 0 ? 1 : n == 1 ? 0 : rdna__random_range(random, 1, 100);
  struct quantize_args args = {.count = blocks * 32};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((blocks + QUANTIZE_BLOCKS_PER_GROUP - 1) / QUANTIZE_BLOCKS_PER_GROUP), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "blocks %lld", (long long)blocks);
  float *x = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.count, offsetof(struct quantize_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  fill_quantized(random, x, args.count, 32);
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_Q8_0, args.count, offsetof(struct quantize_args, blocks)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
