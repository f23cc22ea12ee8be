/* The same on the host, in the same order. */
#include <math.h>
#include <stdbool.h>

#include "kernel/host.h"
#include "math/linalg/cholesky_kernels.h"

enum { BLOCK = CHOLESKY_BLOCK, PANEL = 32 };

static void report(const struct cholesky_args *a, uint32_t b, uint32_t part, int32_t failed) {
  int32_t other = 0;
  if (a->first == 0 && part == 0) a->info[b] = failed;
  if (a->first == 0 || failed == 0) return;
  bool first = __atomic_compare_exchange_n(&a->info[b], &other, failed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (!first && other > failed) __atomic_store_n(&a->info[b], failed, __ATOMIC_RELAXED);
}

#define TWINS(suffix, T, root, fused)                                                                                  \
  /* Returns the column that fails, from 1, or 0. */                                                                   \
  static uint32_t factor_##suffix(const struct cholesky_args *a, const T *x, uint32_t n, T *l, T *inverse) {           \
    for (uint32_t i = 0; i < n; i++) {                                                                                 \
      for (uint32_t k = 0; k <= i; k++) l[i * BLOCK + k] = x[i * a->row + k * a->column];                              \
    }                                                                                                                  \
    for (uint32_t j = 0; j < n; j++) {                                                                                 \
      T pivot = l[j * BLOCK + j];                                                                                      \
      if (!(pivot > 0)) return j + 1;                                                                                  \
      l[j * BLOCK + j] = root(pivot), inverse[j] = 1 / l[j * BLOCK + j];                                               \
      for (uint32_t i = j + 1; i < n; i++) {                                                                           \
        T *c = l + i * BLOCK;                                                                                          \
        c[j] *= inverse[j];                                                                                            \
        for (uint32_t k = j + 1; k <= i; k++) c[k] = fused(-c[j], l[k * BLOCK + j], c[k]);                             \
      }                                                                                                                \
    }                                                                                                                  \
    return 0;                                                                                                          \
  }                                                                                                                    \
  /* Solves a row below for |columns| columns, and writes it and its zeros. */                                         \
  static void row_##suffix(const struct cholesky_args *a, T *block, T *x, int64_t below, uint32_t columns, const T *l, \
                           const T *inverse) {                                                                         \
    for (uint32_t k = 0; k < columns; k++) {                                                                           \
      T v = x[k * a->column];                                                                                          \
      for (uint32_t j = 0; j < k; j++) v = fused(-x[j * a->column], l[k * BLOCK + j], v);                              \
      x[k * a->column] = v * inverse[k];                                                                               \
    }                                                                                                                  \
    for (uint32_t k = 0; k < BLOCK; k++) block[k * a->row + below * a->column] = 0;                                    \
  }                                                                                                                    \
  static void part_##suffix(const struct cholesky_args *a, uint32_t b, uint32_t part) {                                \
    uint32_t end = a->n - a->first < BLOCK ? a->n : a->first + BLOCK;                                                  \
    uint32_t below = (a->n - end + CHOLESKY_ROWS - 1) / CHOLESKY_ROWS;                                                 \
    bool before = a->first > 0 && part == a->parts - 1;                                                                \
    uint32_t first = before ? a->first - BLOCK : a->first, n = before ? BLOCK : end - first;                           \
    T *block = (T *)a->a + b * a->stride + first * (a->row + a->column), l[BLOCK * BLOCK], inverse[BLOCK];             \
    uint32_t failed = factor_##suffix(a, block, n, l, inverse);                                                        \
    uint32_t written = failed ? (failed - 1) / PANEL * PANEL : n, from = end - first + part * CHOLESKY_ROWS;           \
    for (uint32_t i = from; part < below && i < from + CHOLESKY_ROWS && i < a->n - first; i++)                         \
      row_##suffix(a, block, block + i * a->row, i, written, l, inverse);                                              \
    for (uint32_t i = 0; part >= below && i < n; i++) {                                                                \
      for (uint32_t k = 0; k <= i && k < written; k++) block[i * a->row + k * a->column] = l[i * BLOCK + k];           \
      for (uint32_t k = 0; k < i; k++) block[k * a->row + i * a->column] = 0;                                          \
    }                                                                                                                  \
    report(a, b, part, part >= below && failed ? (int32_t)(first + failed) : 0);                                       \
  }                                                                                                                    \
  static void cholesky_##suffix(void *context, int64_t begin, int64_t end) {                                           \
    const struct cholesky_args *a = context;                                                                           \
    for (int64_t unit = begin; unit < end; unit++)                                                                     \
      part_##suffix(a, (uint32_t)(unit / a->parts), (uint32_t)(unit % a->parts));                                      \
  }                                                                                                                    \
  void RDNA_HOST_KERNEL(cholesky_##suffix)(const void *args, rdna_grid grid) {                                         \
    struct cholesky_args a = *(const struct cholesky_args *)args;                                                      \
    rdna__parallel_for(a.units, 1, cholesky_##suffix, &a);                                                             \
  }
TWINS(f32, float, sqrtf, __builtin_fmaf)
TWINS(f64, double, sqrt, __builtin_fma)
