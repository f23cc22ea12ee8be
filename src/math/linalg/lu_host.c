/* The same on the host, in the same order. */
#include <math.h>
#include <string.h>

#include "kernel/host.h"
#include "math/linalg/lu_kernels.h"

static uint64_t magnitude_f32(float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return v != v ? 0x7f800001u : bits & 0x7fffffffu;
}
static uint64_t magnitude_f64(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return v != v ? 0x7ff0000000000001u : bits & 0x7fffffffffffffffu;
}

#define TWINS(suffix, T, fused)                                                                               \
  static void subtract_##suffix(const struct lu_args *a, T *x, int64_t j, T pivot) {                          \
    int64_t row = a->row, column = a->column;                                                                 \
    for (int64_t i = j + 1; i < a->m && pivot != 0; i++) x[i * row + j * column] /= pivot;                    \
    for (int64_t k = j + 1; k < a->n; k++) {                                                                  \
      T u = x[j * row + k * column];                                                                          \
      for (int64_t i = j + 1; i < a->m; i++)                                                                  \
        x[i * row + k * column] = fused(-x[i * row + j * column], u, x[i * row + k * column]);                \
    }                                                                                                         \
  }                                                                                                           \
  static uint32_t factor_##suffix(const struct lu_args *a, T *x, int32_t *pivots) {                           \
    int64_t row = a->row, column = a->column;                                                                 \
    uint32_t failed = 0;                                                                                      \
    for (int64_t j = 0; j < a->n; j++) {                                                                      \
      int64_t p = j;                                                                                          \
      for (int64_t i = j + 1; i < a->m && !a->in_place; i++) {                                                \
        if (magnitude_##suffix(x[i * row + j * column]) > magnitude_##suffix(x[p * row + j * column])) p = i; \
      }                                                                                                       \
      pivots[j] = (int32_t)(a->first + p + 1);                                                                \
      for (int64_t k = 0; k < a->n && p != j; k++) {                                                          \
        T v = x[j * row + k * column];                                                                        \
        x[j * row + k * column] = x[p * row + k * column], x[p * row + k * column] = v;                       \
      }                                                                                                       \
      T pivot = x[j * (row + column)];                                                                        \
      if (pivot == 0 && !failed) failed = (uint32_t)j + 1;                                                    \
      subtract_##suffix(a, x, j, pivot);                                                                      \
    }                                                                                                         \
    return failed;                                                                                            \
  }                                                                                                           \
  static void lu_##suffix(void *context, int64_t begin, int64_t end) {                                        \
    const struct lu_args *a = context;                                                                        \
    for (int64_t b = begin; b < end; b++) {                                                                   \
      int32_t *pivots = a->pivots + b * a->pivots_stride + a->first;                                          \
      uint32_t failed = factor_##suffix(a, (T *)a->a + b * a->stride, pivots);                                \
      if (!a->first) a->info[b] = (int32_t)failed;                                                            \
      if (a->first && failed && !a->info[b]) a->info[b] = (int32_t)(a->first + failed);                       \
    }                                                                                                         \
  }                                                                                                           \
  void RDNA_HOST_KERNEL(lu_small_##suffix)(const void *args, rdna_grid grid) {                                \
    struct lu_args a = *(const struct lu_args *)args;                                                         \
    rdna__parallel_for(a.batch, 4, lu_##suffix, &a);                                                          \
  }                                                                                                           \
  void RDNA_HOST_KERNEL(lu_tall_##suffix)(const void *args, rdna_grid grid) {                                 \
    struct lu_args a = *(const struct lu_args *)args;                                                         \
    rdna__parallel_for(a.batch, 1, lu_##suffix, &a);                                                          \
  }                                                                                                           \
  static void swap_##suffix(void *context, int64_t begin, int64_t end) {                                      \
    const struct swap_args *a = context;                                                                      \
    for (int64_t at = begin; at < end; at++) {                                                                \
      int64_t b = at / a->columns, column = at % a->columns;                                                  \
      if (column >= a->skipped) column += a->resumed - a->skipped;                                            \
      T *x = (T *)a->x + b * a->stride + column * a->column;                                                  \
      const int32_t *pivots = a->pivots + b * a->pivots_stride + a->first;                                    \
      for (int64_t k = 0; k < a->count; k++) {                                                                \
        int64_t j = a->backwards ? a->count - 1 - k : k;                                                      \
        uint32_t other = (uint32_t)pivots[j] - 1;                                                             \
        if (other >= a->rows) continue;                                                                       \
        int64_t from = (a->first + j) * a->row, to = (int64_t)other * a->row;                                 \
        T v = x[from];                                                                                        \
        x[from] = x[to], x[to] = v;                                                                           \
      }                                                                                                       \
    }                                                                                                         \
  }                                                                                                           \
  void RDNA_HOST_KERNEL(swap_rows_##suffix)(const void *args, rdna_grid grid) {                               \
    struct swap_args a = *(const struct swap_args *)args;                                                     \
    rdna__parallel_for(a.units / a.parts * a.columns, 64, swap_##suffix, &a);                                 \
  }
TWINS(f32, float, __builtin_fmaf)
TWINS(f64, double, __builtin_fma)
