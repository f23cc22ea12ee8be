/* Host twins of products with experts: the twins of plain products, a slot or an expert at a time. */
#include <stdlib.h>
#include <string.h>

#include "kernel/host.h"
#include "math/gemm/gemm_activation.h"
#include "math/moe/moe_kernels.h"
#include "math/pointwise/pointwise_scalar.h"
#include "math/quant/quant_unpack.h"

typedef void (*twin)(const void *args, rdna_grid grid);

static bool exists(const struct moe_product_args *a, int32_t expert) { return expert >= 0 && expert < a->experts; }
static const float *x_of(const struct moe_product_args *a, int32_t slot) {
  return (const float *)a->product.a + (int64_t)(a->x_of_slots ? slot : slot / a->top) * a->product.lda;
}
static const float *bias_of(const struct moe_product_args *a, int32_t expert) {
  return a->product.bias ? (const float *)a->product.bias + (int64_t)expert * a->product.n : NULL;
}

/* Multiplies |m| rows of x, |lda| apart, by the weights of an expert. |expert_bytes|: those of all its weights. */
static void multiply(const struct moe_product_args *a, twin product, int64_t expert_bytes, int32_t expert,
                     const float *x, int32_t m, int64_t lda, float *out, int64_t ldc) {
  struct gemv_args args = {a->product, a->steps}; /* others read the product alone */
  struct gemm_args *p = &args.product;
  p->a = x, p->lda = lda, p->m = m, p->batch = 1;
  p->b = (const char *)p->b + expert * expert_bytes;
  p->c = out, p->ldc = ldc;
  p->bias = bias_of(a, expert);
  product(&args, (rdna_grid){1, 1, 1});
}

/* The rows from one expert's weights to the next's. */
static int64_t rows_of_expert(const struct gemm_args *p) { return p->k > 0 ? p->stride_b / p->k : p->n; }

/* out = f(gate) * up of one slot's expert. */
static void multiply_gated(const struct moe_product_args *a, twin product, int64_t expert_bytes, int32_t slot,
                           float *out) {
  enum { AT_ONCE = 2048 };
  float up[AT_ONCE];
  const int64_t rows = rows_of_expert(&a->product), row_bytes = rows > 0 ? expert_bytes / rows : 0;
  for (int32_t j = 0; j < a->product.n; j += AT_ONCE) {
    struct moe_product_args gate = *a, other = *a;
    int32_t count = a->product.n - j < AT_ONCE ? a->product.n - j : AT_ONCE;
    gate.product.n = other.product.n = count;
    gate.product.b = (const char *)a->product.b + j * row_bytes;
    other.product.b = (const char *)a->up + j * row_bytes;
    if (a->product.bias) { /* multiply() adds |count| for each expert */
      const int64_t at = (int64_t)a->chosen[slot] * (a->product.n - count) + j;
      gate.product.bias = (const float *)a->product.bias + at, other.product.bias = a->up_bias + at;
    }
    multiply(&gate, product, expert_bytes, a->chosen[slot], x_of(a, slot), 1, a->product.lda, out + j, count);
    multiply(&other, product, expert_bytes, a->chosen[slot], x_of(a, slot), 1, a->product.lda, up, count);
    for (int32_t i = 0; i < count; i++)
      out[j + i] = a->limit > 0 ? pw32_swiglu_clamped(out[j + i], up[i], a->slope, a->limit)
                                : gemm_activate(a->product.activation, out[j + i]) * up[i];
  }
}

/* One slot into |out|, zeros without an expert. */
static void multiply_slot(const struct moe_product_args *a, twin product, int64_t expert_bytes, int32_t slot,
                          float *out) {
  if (exists(a, a->chosen[slot]) && a->up)
    multiply_gated(a, product, expert_bytes, slot, out);
  else if (exists(a, a->chosen[slot]))
    multiply(a, product, expert_bytes, a->chosen[slot], x_of(a, slot), 1, a->product.lda, out, a->product.ldc);
  else
    memset(out, 0, (size_t)a->product.n * sizeof *out);
}

static void run_gemv(const void *args, twin product, int64_t expert_bytes) {
  const struct moe_product_args *a = args;
  for (int32_t slot = 0; slot < a->tokens * a->top; slot++)
    multiply_slot(a, product, expert_bytes, slot, (float *)a->product.c + slot * a->product.ldc);
}

/* A tile through rows that are gathered beside each other; without memory for these, slot by slot. */
static void run_tile(const struct moe_product_args *a, twin product, twin of_one, int64_t expert_bytes,
                     const int32_t *tile) {
  const int32_t *slots = a->order + tile[1];
  int64_t k = a->product.k, n = a->product.n, rows = tile[2];
  float *x = exists(a, tile[0]) ? malloc((size_t)(rows * (k + n)) * sizeof *x) : NULL;
  for (int64_t r = 0; r < rows; r++) {
    if (x && k > 0)
      memcpy(x + r * k, x_of(a, slots[r]), (size_t)k * sizeof *x);
    else if (!x)
      multiply_slot(a, of_one, expert_bytes, slots[r], (float *)a->product.c + slots[r] * a->product.ldc);
  }
  if (!x) return;
  float *y = x + rows * k;
  multiply(a, product, expert_bytes, tile[0], x, (int32_t)rows, k, y, n);
  for (int64_t r = 0; r < rows; r++)
    memcpy((float *)a->product.c + slots[r] * a->product.ldc, y + r * n, (size_t)n * sizeof *y);
  free(x);
}

static void run_gemm(const void *args, twin product, twin of_one, int64_t expert_bytes) {
  const struct moe_product_args *a = args;
  for (int32_t t = 0; t < a->most_tiles; t++) {
    if (a->tiles[3 * t + 2] > 0) run_tile(a, product, of_one, expert_bytes, a->tiles + 3 * t);
  }
}

#define TWINS(F, bytes_of_row)                                                                          \
  void RDNA_HOST_KERNEL(gemv_f32_##F##_f32_m1)(const void *args, rdna_grid grid);                       \
  void RDNA_HOST_KERNEL(gemm_f32_##F##_f32_small)(const void *args, rdna_grid grid);                    \
  void RDNA_HOST_KERNEL(moe_gemv_##F)(const void *args, rdna_grid grid) {                               \
    const struct gemm_args *p = args;                                                                   \
    run_gemv(args, RDNA_HOST_KERNEL(gemv_f32_##F##_f32_m1), rows_of_expert(p) * (bytes_of_row));        \
  }                                                                                                     \
  void RDNA_HOST_KERNEL(moe_gemm_##F)(const void *args, rdna_grid grid) {                               \
    const struct gemm_args *p = args;                                                                   \
    run_gemm(args, RDNA_HOST_KERNEL(gemm_f32_##F##_f32_small), RDNA_HOST_KERNEL(gemv_f32_##F##_f32_m1), \
             p->n *(bytes_of_row));                                                                     \
  }
#define BLOCK_TWINS(name, NAME) TWINS(name, (int64_t)(p->k / quant_values(RDNA_##NAME)) * quant_bytes(RDNA_##NAME))
TWINS(f32, (int64_t)p->k * 4)
TWINS(f16, (int64_t)p->k * 2)
TWINS(bf16, (int64_t)p->k * 2)
RDNA_QUANT_FORMATS(BLOCK_TWINS)
