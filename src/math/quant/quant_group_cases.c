#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/quant/group_kernels.h"

/* Scales and offsets of a random type, which lie in one another's rows or columns; those that a kernel writes are f16
 * and contiguous. */
static void choose_layout(rdna__random *random, struct group_weights_args *w, bool makes) {
  int64_t groups = w->k >> w->shift, apart = makes ? 1 : rdna__random_range(random, 1, 2);
  bool turned = !makes && rdna__random_below(random, 2);
  w->type = makes ? RDNA_F16 : (int32_t[]){RDNA_F16, RDNA_BF16, RDNA_F32}[rdna__random_below(random, 3)];
  w->scale_row = w->offset_row = turned ? apart : groups * apart;
  w->scale_group = w->offset_group = turned ? w->n * apart : apart;
}
static void set_number(void *numbers, int64_t at, int32_t type, double value) {
  if (type == RDNA_F32)
    ((float *)numbers)[at] = (float)value;
  else
    ((uint16_t *)numbers)[at] = type == RDNA_F16 ? f32_to_f16((float)value) : f32_to_bf16((float)value);
}

/* Adds buffers of codes, scales and perhaps zeros and offsets, whose pointers go to the struct group_weights_args at
 * byte |offset| of the args. Returns a bound of the values' magnitudes, 8, or a negative number if memory ran out. */
static double add_weights(rdna__random *random, const struct group_weights_args *w, bool is_u4, bool with_zeros,
                          bool with_offsets, rdna__buffer_role role, size_t offset, rdna__kernel_case *out_case) {
  int64_t count = w->n * w->k, groups = count >> w->shift, last = w->k >> w->shift;
  int64_t numbers = groups > 0 ? (w->n - 1) * w->scale_row + (last - 1) * w->scale_group + 1 : 0;
  rdna_dtype type = (rdna_dtype)w->type;
  uint8_t *codes = rdna__case_add(out_case, role, RDNA_U8, is_u4 ? count / 2 : count,
                                  (uint32_t)(offset + offsetof(struct group_weights_args, codes)));
  void *scales =
      rdna__case_add(out_case, role, type, numbers, (uint32_t)(offset + offsetof(struct group_weights_args, scales)));
  if (!codes || !scales) return -1;
  for (int64_t i = 0; i < (is_u4 ? count / 2 : count); i++) codes[i] = (uint8_t)rdna__random_bits(random);
  for (int64_t i = 0; i < numbers; i++)
    set_number(scales, i, w->type, 4.0 / (is_u4 ? 15 : 255) * (2 * rdna__random_unit(random) - 1));
  if (with_zeros) {
    uint8_t *zeros = rdna__case_add(out_case, role, RDNA_U8, groups,
                                    (uint32_t)(offset + offsetof(struct group_weights_args, zeros)));
    if (!zeros) return -1;
    for (int64_t i = 0; i < groups; i++) zeros[i] = (uint8_t)(rdna__random_bits(random) & (is_u4 ? 15 : 255));
  }
  if (with_offsets) {
    void *offsets = rdna__case_add(out_case, role, type, numbers,
                                   (uint32_t)(offset + offsetof(struct group_weights_args, offsets)));
    if (!offsets) return -1;
    for (int64_t i = 0; i < numbers; i++) set_number(offsets, i, w->type, 4 * rdna__random_unit(random) - 2);
  }
  return with_offsets ? 6.04 : 4.02;
}

static rdna_status product_case(const char *name, bool is_u4, bool with_zeros, rdna__random *random, int n,
                                rdna__kernel_case *out_case) {
  bool with_offsets = rdna__random_below(random, 2);
  const char *kind = strrchr(name, '_') + 1;
  bool gemv = kind[0] == 'm';
  int most = gemv ? atoi(kind + 1) : 150, tile = !strcmp(kind, "large") ? GEMM_LARGE_TILE : GEMM_SMALL_TILE;
  struct group_gemm_args args = {.product = {.batch = 1, .flags = GEMM_B_TRANSPOSED, .alpha = 1}};
  struct gemm_args *p = &args.product;
  args.weights.shift = (int32_t)rdna__random_range(random, 5, 8);
  p->m = n == 1 ? 0 : (int32_t)rdna__random_range(random, 1, most);
  p->n = n == 2 ? 0 : n == 0 ? 3 : (int32_t)rdna__random_range(random, 1, 100);
  p->k = n == 3 ? 0 : (int32_t)rdna__random_range(random, 1, n % 3 == 2 ? 17 : 3) << args.weights.shift;
  p->beta = rdna__random_below(random, 2) ? 1 : 0;
  p->lda = p->k + (gemv ? 4 : 1) * rdna__random_range(random, 0, 2);
  p->ldb = p->k, p->ldc = p->n;
  args.weights.n = p->n, args.weights.k = p->k;
  choose_layout(random, &args.weights, false);
  memcpy(out_case->args, &args, sizeof args);
  uint32_t rows = QUANT_GEMV_GROUP_ROWS;
  uint32_t groups =
      gemv ? ((uint32_t)p->n + rows - 1) / rows : (uint32_t)(((p->m + tile - 1) / tile) * ((p->n + tile - 1) / tile));
  if (gemv && groups > 3) groups = 3; /* each takes several turns */
  out_case->grid = (rdna_grid){p->m ? groups : 0, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "m %d n %d k %d group %d zeros %d offsets %d of %s, beta %g", p->m,
           p->n, p->k, 1 << args.weights.shift, with_zeros, with_offsets,
           rdna_dtype_name((rdna_dtype)args.weights.type), (double)p->beta);
  float *x = rdna__case_add(out_case, RDNA__IN, RDNA_F32, p->m * p->lda, offsetof(struct gemm_args, a));
  if (!x) return rdna__case_no_memory(out_case);
  case_fill(random, RDNA_F32, x, p->m * p->lda, 1);
  double largest = add_weights(random, &args.weights, is_u4, with_zeros, with_offsets, RDNA__IN,
                               offsetof(struct group_gemm_args, weights), out_case);
  if (largest < 0) return rdna__case_no_memory(out_case);
  double sum = 0;
  for (int64_t i = 0; i < p->m; i++) {
    double row = 0;
    for (int64_t q = 0; q < p->k; q++) row += fabs((double)x[i * p->lda + q]);
    if (row > sum) sum = row;
  }
  /* Infinity times a code that is its zero point is NaN where scale * zero is exact, as it is of 16 bits. */
  bool is_exact = args.weights.type != RDNA_F32 && !with_offsets;
  if (p->m > 0 && p->k > 0 && n % 4 == 3)
    x[rdna__random_below(random, (uint64_t)p->k)] = n % 8 == 3 && is_exact ? INFINITY : NAN;
  rdna__buffer_role role = p->beta == 0 ? RDNA__OUT : RDNA__INOUT;
  float *c = rdna__case_add(out_case, role, RDNA_F32, (int64_t)p->m * p->n, offsetof(struct gemm_args, c));
  if (!c) return rdna__case_no_memory(out_case);
  if (role == RDNA__INOUT) case_fill(random, RDNA_F32, c, (int64_t)p->m * p->n, 1);
  /* as in gemm_cases.c; codes and zero points are summed separately, each up to twice the value */
  rdna__case_tolerance(out_case, 0x1p-24 * (2 * (p->k + 4) * sum * 2 * largest + 64), 0x1p-23);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__quant_group_case) {
  bool is_u4 = strstr(kernel->name, "_u4") != NULL, with_zeros = rdna__random_below(random, 2);
  if (!strncmp(kernel->name, "gem", 3)) return product_case(kernel->name, is_u4, with_zeros, random, n, out_case);
  bool makes = !strncmp(kernel->name, "quantize", 8);
  struct group_weights_args w = {.n = n == 1 ? 0 : rdna__random_range(random, 1, 40)};
  w.shift = (int32_t)rdna__random_range(random, 5, 8);
  w.k = rdna__random_range(random, 1, 6) << w.shift;
  choose_layout(random, &w, makes);
  bool with_offsets = !makes && rdna__random_below(random, 2);
  memcpy(out_case->args, &w, sizeof w);
  int64_t count = w.n * w.k, threads = makes ? count >> w.shift : count / 8;
  out_case->grid = (rdna_grid){(uint32_t)((threads + QUANT_THREADS - 1) / QUANT_THREADS), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "n %lld k %lld group %d zeros %d offsets %d of %s", (long long)w.n,
           (long long)w.k, 1 << w.shift, with_zeros, with_offsets, rdna_dtype_name((rdna_dtype)w.type));
  if (makes) {
    float *x = rdna__case_add(out_case, RDNA__IN, RDNA_F32, count, offsetof(struct quantize_group_args, x));
    if (!x) return rdna__case_no_memory(out_case);
    for (int64_t i = 0; i < count; i += 32) { /* zeros, one sign, special values */
      uint64_t kind = rdna__random_below(random, 6);
      for (int j = 0; j < 32; j++)
        x[i + j] = kind == 0 ? 0.0f : (float)(rdna__random_normal(random) + (kind == 1 ? 9 : 0));
      if (kind == 2) x[i + 5] = n % 2 ? NAN : INFINITY;
    }
  }
  if (add_weights(random, &w, is_u4, with_zeros, with_offsets, makes ? RDNA__OUT : RDNA__IN, 0, out_case) < 0)
    return rdna__case_no_memory(out_case);
  if (makes) return RDNA_OK;
  rdna_dtype type = case_name_float(kernel->name);
  if (!rdna__case_add(out_case, RDNA__OUT, type, count, offsetof(struct dequantize_group_args, out)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
