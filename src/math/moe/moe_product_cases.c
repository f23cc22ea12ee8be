#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/moe/moe_few_kernels.h"
#include "math/moe/moe_mma_kernels.h"
#include "math/quant/quant_case.h"
#include "rdna/op/activation.h"

/* Experts of slots, of which some are none. */
static int32_t *add_chosen(rdna__random *random, rdna__kernel_case *c, int64_t slots, int32_t experts, size_t offset) {
  int32_t *chosen = rdna__case_add(c, RDNA__IN, RDNA_I32, slots, (uint32_t)offset);
  for (int64_t i = 0; chosen && i < slots; i++) {
    uint64_t pick = rdna__random_below(random, 20);
    chosen[i] = pick == 0 ? -1 : pick == 1 ? experts : (int32_t)rdna__random_below(random, (uint64_t)experts);
  }
  return chosen;
}

static bool add_values(rdna__random *random, rdna__kernel_case *c, int64_t count, size_t offset) {
  float *values = rdna__case_add(c, RDNA__IN, RDNA_F32, count, (uint32_t)offset);
  if (values) case_fill(random, RDNA_F32, values, count, 1);
  return values != NULL;
}

RDNA_CASE_MAKER(rdna__moe_sort_case) {
  static const int32_t edges[][3] = {{7, 3, 2}, {0, 4, 8}, {1, 1, 1}, {3000, 1024, 64}, {900, 2, 64}, {512, 5, 256}};
  struct moe_sort_args args = {.slots = (int32_t)rdna__random_range(random, 1, 2000),
                               .experts = (int32_t)rdna__random_range(random, 1, 300),
                               .tile_rows = (int32_t)rdna__random_range(random, 1, 100)};
  if (n < 6) args.slots = edges[n][0], args.experts = edges[n][1], args.tile_rows = edges[n][2];
  int32_t partly = args.slots < args.experts + 1 ? args.slots : args.experts + 1;
  args.most_tiles = args.slots / args.tile_rows + partly;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)args.experts + 1, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "slots %d experts %d tiles of %d", args.slots, args.experts,
           args.tile_rows);
  if (!add_chosen(random, out_case, args.slots, args.experts, offsetof(struct moe_sort_args, chosen)) ||
      !rdna__case_add(out_case, RDNA__OUT, RDNA_I32, args.slots, offsetof(struct moe_sort_args, order)) ||
      !rdna__case_add(out_case, RDNA__OUT, RDNA_I32, 3 * (int64_t)args.most_tiles,
                      offsetof(struct moe_sort_args, tiles)))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}

/* Both sides add in the same order. */
RDNA_CASE_MAKER(rdna__moe_sum_case) {
  struct moe_sum_args args = {.tokens = n == 1 ? 0 : rdna__random_range(random, 1, 9),
                              .n = n == 2 ? 1 : rdna__random_range(random, 1, 400),
                              .top = (int32_t)rdna__random_range(random, 1, 9),
                              .experts = (int32_t)rdna__random_range(random, 1, 20),
                              .add = n % 2};
  args.out_stride = args.n + n % 3;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((args.tokens * args.n + 255) / 256), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "tokens %lld n %lld top %d add %d", (long long)args.tokens,
           (long long)args.n, args.top, args.add);
  int64_t slots = args.tokens * args.top, count = args.tokens * args.out_stride;
  float *out;
  if (!add_values(random, out_case, slots * args.n, offsetof(struct moe_sum_args, y)) ||
      !add_values(random, out_case, slots, offsetof(struct moe_sum_args, shares)) ||
      !add_chosen(random, out_case, slots, args.experts, offsetof(struct moe_sum_args, chosen)) ||
      !(out = rdna__case_add(out_case, args.add ? RDNA__INOUT : RDNA__OUT, RDNA_F32, count,
                             offsetof(struct moe_sum_args, out))))
    return rdna__case_no_memory(out_case);
  if (args.add) case_fill(random, RDNA_F32, out, count, 1);
  return args.add || args.out_stride == args.n ? RDNA_OK
                                               : rdna__case_guard_rows(out_case, args.tokens, args.n, args.out_stride);
}

/* The type that a kernel's name ends in, of the weights, and that of x: moe_mma_f16_q4_K, moe_gemm_q4_K. */
static rdna_dtype type_of(const char *name) {
  const char *type = strchr(name + strlen("moe_"), '_') + 1;
  if (strncmp(name, "moe_mma_", 8) == 0) type = strchr(type, '_') + 1;
  int dtype = 0;
  while (dtype < RDNA_DTYPE_COUNT && strcmp(type, rdna_dtype_name((rdna_dtype)dtype)) != 0) dtype++;
  return (rdna_dtype)dtype;
}
static rdna_dtype x_type_of(const char *name) {
  if (strncmp(name, "moe_few_", 8) == 0) return RDNA_F16;
  return strncmp(name, "moe_mma_", 8) != 0 ? RDNA_F32 : strncmp(name + 8, "bf16", 4) == 0 ? RDNA_BF16 : RDNA_F16;
}

static void pick_sizes(rdna__random *random, int n, rdna_dtype type, bool tiles, struct moe_product_args *args) {
  static const struct {
    int32_t tokens, top, experts, n, blocks;
  } edges[] = {{2, 2, 3, 5, 1},  {0, 2, 3, 4, 1},   {3, 1, 1, 7, 0},
               {1, 4, 8, 17, 3}, {40, 3, 2, 65, 1}, {5, 8, 20, 3, 1}};
  int32_t block = rdna_dtype_block_values(type), unit = block > 1 ? block : tiles ? 1 : 8;
  if (n < (int)(sizeof edges / sizeof *edges)) {
    args->tokens = edges[n].tokens, args->top = edges[n].top, args->experts = edges[n].experts;
    args->product.n = edges[n].n, args->product.k = edges[n].blocks * (block > 1 ? block : 24);
    if (!tiles && args->tokens > 9) args->tokens = 3;
  } else {
    args->tokens = (int32_t)rdna__random_range(random, 1, tiles ? 30 : 4);
    args->top = (int32_t)rdna__random_range(random, 1, 5);
    args->experts = (int32_t)rdna__random_range(random, 1, 9);
    args->product.n = (int32_t)rdna__random_range(random, 1, tiles ? 100 : 60);
    args->product.k = (int32_t)rdna__random_range(random, 1,
                                                  block == 256  ? tiles ? 4 : 18
                                                  : block == 32 ? tiles ? 24 : 64
                                                                : 40) *
                      unit;
  }
}

/* The order and the tiles of |rows| slots, as moe_sort makes them. */
static bool add_tiles(rdna__kernel_case *c, struct moe_product_args *args, const int32_t *chosen, int32_t rows) {
  int32_t slots = args->tokens * args->top, at = 0, tile = 0;
  args->most_tiles = slots / rows + (slots < args->experts + 1 ? slots : args->experts + 1);
  int32_t *order = rdna__case_add(c, RDNA__IN, RDNA_I32, slots, offsetof(struct moe_product_args, order));
  int32_t *tiles =
      rdna__case_add(c, RDNA__IN, RDNA_I32, 3 * (int64_t)args->most_tiles, offsetof(struct moe_product_args, tiles));
  if (!order || !tiles) return false;
  for (int32_t e = 0; e <= args->experts; e++) {
    int32_t begin = at;
    for (int32_t i = 0; i < slots; i++) {
      bool none = chosen[i] < 0 || chosen[i] >= args->experts;
      if (e == args->experts ? none : chosen[i] == e) order[at++] = i;
    }
    for (; begin < at; begin += rows, tile++) {
      int32_t *entry = tiles + 3 * tile;
      entry[0] = e, entry[1] = begin, entry[2] = at - begin < rows ? at - begin : rows;
    }
  }
  return true;
}

/* x and the weights; a bound of the sums of products' magnitudes. */
static bool add_operands(rdna__random *random, rdna__kernel_case *c, rdna_dtype x_type, rdna_dtype type,
                         const struct moe_product_args *args, double *out_sum) {
  int64_t rows = args->x_of_slots ? (int64_t)args->tokens * args->top : args->tokens, k = args->product.k;
  int64_t count = (int64_t)args->experts * args->product.n * k;
  void *x = rdna__case_add(c, RDNA__IN, x_type, rows * args->product.lda, offsetof(struct moe_product_args, product.a));
  void *b = rdna__case_add(c, RDNA__IN, type, count, offsetof(struct moe_product_args, product.b));
  if (!x || !b) return false;
  case_fill(random, x_type, x, rows * args->product.lda, 1);
  double largest = 6, most = 0; /* of numbers drawn normally */
  if (rdna_dtype_block_values(type) > 1)
    largest = rdna__fill_blocks(random, type, b, count);
  else
    case_fill(random, type, b, count, 1);
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0;
    for (int64_t p = 0; p < k; p++) sum += fabs((double)case_get(x_type, x, r * args->product.lda + p));
    most = fmax(most, sum);
  }
  *out_sum = most * largest;
  return true;
}

static bool add_result(rdna__kernel_case *c, const struct moe_product_args *args, double sum) {
  int64_t rows = (int64_t)args->tokens * args->top;
  float *out =
      rdna__case_add(c, RDNA__OUT, RDNA_F32, rows * args->product.ldc, offsetof(struct moe_product_args, product.c));
  if (!out) return false;
  /* k roundings of sums of the products' magnitudes on each side, which go up as often as down, so that their sum is of
   * the order of the root of k; a few of each slot's bias, which is below 6 */
  double roundings = 4 * sqrt(args->product.k + 2);
  rdna__case_tolerance(c, 0x1p-24 * (2 * roundings * sum + 16 * (sum + 6)) + 0x1p-126, 0x1p-23);
  if (args->product.ldc == args->product.n) return true;
  return rdna__case_guard_rows(c, rows, args->product.n, args->product.ldc) == RDNA_OK;
}

RDNA_CASE_MAKER(rdna__moe_product_case) {
  bool tiles = strncmp(kernel->name, "moe_gemv_", 9) != 0, few = strncmp(kernel->name, "moe_few_", 8) == 0;
  rdna_dtype type = type_of(kernel->name), x_type = x_type_of(kernel->name);
  struct moe_product_args args = {.product = {.m = 1, .batch = 1, .alpha = 1, .flags = GEMM_B_TRANSPOSED}};
  pick_sizes(random, n, type, tiles, &args);
  bool vectors = !tiles && rdna_dtype_block_values(type) > 1, gated = vectors && n % 4 == 2,
       normed = vectors && n % 5 > 2 && args.product.k > 0;
  args.x_of_slots = (int32_t)rdna__random_below(random, 2);
  args.product.lda = args.product.k + (n % 5 == 4 ? tiles ? 3 : 4 : 0), args.product.ldb = args.product.k;
  if (!tiles) args.product.lda = (args.product.lda + 3) / 4 * 4;
  if (few) args.product.lda = (args.product.lda + 7) / 8 * 8;
  args.product.stride_b = (int64_t)args.product.n * args.product.k;
  args.product.ldc = args.product.n + (n % 3 == 2 ? 2 : 0);
  int64_t slots = (int64_t)args.tokens * args.top;
  int32_t *chosen = add_chosen(random, out_case, slots, args.experts, offsetof(struct moe_product_args, chosen));
  double sum;
  if (!chosen || (tiles && !add_tiles(out_case, &args, chosen, few ? MOE_FEW_ROWS : MOE_TILE)) ||
      !add_operands(random, out_case, x_type, type, &args, &sum) ||
      (normed && !add_values(random, out_case, args.product.k, offsetof(struct moe_product_args, steps.norm))) ||
      (n % 3 && !add_values(random, out_case, (int64_t)args.experts * args.product.n,
                            offsetof(struct moe_product_args, product.bias))))
    return rdna__case_no_memory(out_case);
  if (normed) args.steps.epsilon = 1e-5f, sum *= 12; /* weights below 6, roots of mean squares above 1/2 */
  if (gated) {
    int64_t count = args.experts * args.product.stride_b;
    void *up = rdna__case_add(out_case, RDNA__IN, type, count, offsetof(struct moe_product_args, up));
    if (!up) return rdna__case_no_memory(out_case);
    rdna__fill_blocks(random, type, up, count);
    args.product.activation = RDNA_ACTIVATION_SILU;
    if (n % 8 == 6) args.limit = 7, args.slope = 1.702f;
    if (n % 3 && !add_values(random, out_case, (int64_t)args.experts * args.product.n,
                             offsetof(struct moe_product_args, up_bias)))
      return rdna__case_no_memory(out_case);
    sum *= 2.4 * sum + 1; /* the error of either is multiplied by the other */
  }
  memcpy(out_case->args, &args, sizeof args);
  uint32_t each = rdna_dtype_block_values(type) > 1 ? QUANT_GEMV_GROUP_ROWS : GEMV_ROWS_PER_GROUP(1);
  uint32_t across = ((uint32_t)args.product.n * (gated ? 2 : 1) + each - 1) / each;
  if (each == QUANT_GEMV_GROUP_ROWS && across > 2) across = 2; /* each takes several turns */
  uint32_t side = few ? MOE_FEW_COLUMNS : MOE_TILE;
  if (tiles) across = (uint32_t)args.most_tiles * (((uint32_t)args.product.n + side - 1) / side);
  out_case->grid = (rdna_grid){across, tiles ? 1 : (uint32_t)slots, 1};
  snprintf(out_case->label, sizeof out_case->label, "tokens %d top %d experts %d n %d k %d%s%s%s", args.tokens,
           args.top, args.experts, args.product.n, args.product.k, normed ? " normed" : "",
           args.x_of_slots ? " x of slots" : "",
           !gated           ? ""
           : args.limit > 0 ? " clamped"
                            : " gated");
  return add_result(out_case, &args, sum) ? RDNA_OK : rdna__case_no_memory(out_case);
}
