/* The same on the host, in the same order. */
#include <math.h>
#include <stdbool.h>

#include "kernel/host.h"
#include "math/linalg/linalg_kernels.h"

#define TWINS(suffix, T, fused, size, least, most)                                                              \
  static void solve_##suffix(void *context, int64_t begin, int64_t end) {                                       \
    const struct triangular_args *a = context;                                                                  \
    int64_t sign = a->flipped ? -1 : 1, from = a->flipped ? (int64_t)a->n - 1 : 0;                              \
    int64_t row = sign * a->l_row, column = sign * a->l_column, x_row = sign * a->x_row;                        \
    for (int64_t at = begin; at < end; at++) {                                                                  \
      int64_t b = at / a->columns;                                                                              \
      const T *l = (const T *)a->l + b * a->l_stride + from * (a->l_row + a->l_column);                         \
      T *x = (T *)a->x + b * a->x_stride + at % a->columns * a->x_column + from * a->x_row;                     \
      for (int64_t i = 0; i < a->n; i++) {                                                                      \
        T v = x[i * x_row];                                                                                     \
        T d = a->unit ? 1 : l[i * (row + column)];                                                              \
        v = x[i * x_row] = size(d) >= least && size(d) <= most ? v * (1 / d) : v / d;                           \
        for (int64_t k = i + 1; k < a->n; k++) x[k * x_row] = fused(-l[k * row + i * column], v, x[k * x_row]); \
      }                                                                                                         \
    }                                                                                                           \
  }                                                                                                             \
  void RDNA_HOST_KERNEL(solve_triangular_##suffix)(const void *args, rdna_grid grid) {                          \
    struct triangular_args a = *(const struct triangular_args *)args;                                           \
    rdna__parallel_for(a.units / a.parts * a.columns, 32, solve_##suffix, &a);                                  \
  }                                                                                                             \
  /* What rows before |first| contribute to row i, added as a team of 32 threads does. */                       \
  static T before_##suffix(const T *row, int64_t column, const T *x, int64_t x_row, int64_t first) {            \
    T lanes[32] = {0};                                                                                          \
    for (int64_t k = 0; k < first; k++) lanes[k % 32] = fused(row[k * column], x[k * x_row], lanes[k % 32]);    \
    for (int64_t mask = 1; mask < 32; mask *= 2) {                                                              \
      for (int64_t i = 0; i < 32; i += 2 * mask) lanes[i] += lanes[i + mask];                                   \
    }                                                                                                           \
    return lanes[0];                                                                                            \
  }                                                                                                             \
  static void thin_##suffix(void *context, int64_t begin, int64_t end) {                                        \
    const struct triangular_args *a = context;                                                                  \
    bool by_columns = a->l_row == 1;                                                                            \
    int64_t sign = a->flipped ? -1 : 1, from = a->flipped ? (int64_t)a->n - 1 : 0;                              \
    int64_t l_row = sign * a->l_row, l_column = sign * a->l_column, x_row = sign * a->x_row;                    \
    for (int64_t unit = begin; unit < end; unit++) {                                                            \
      int64_t b = unit / a->parts;                                                                              \
      const T *l = (const T *)a->l + b * a->l_stride + from * (a->l_row + a->l_column);                         \
      T *x = (T *)a->x + b * a->x_stride + unit % a->parts * a->x_column + from * a->x_row;                     \
      for (int64_t i = 0; i < a->n; i++) {                                                                      \
        int64_t first = by_columns ? 0 : i / LINALG_BLOCK * LINALG_BLOCK;                                       \
        const T *row = l + i * l_row;                                                                           \
        T v = x[i * x_row];                                                                                     \
        if (!by_columns) v -= before_##suffix(row, l_column, x, x_row, first);                                  \
        for (int64_t k = first; k < i; k++) v = fused(-row[k * l_column], x[k * x_row], v);                     \
        x[i * x_row] = a->unit ? v : v / row[i * l_column];                                                     \
      }                                                                                                         \
    }                                                                                                           \
  }                                                                                                             \
  void RDNA_HOST_KERNEL(solve_thin_##suffix)(const void *args, rdna_grid grid) {                                \
    struct triangular_args a = *(const struct triangular_args *)args;                                           \
    rdna__parallel_for(a.units, 1, thin_##suffix, &a);                                                          \
  }
TWINS(f32, float, __builtin_fmaf, fabsf, LINALG_LEAST_F32, LINALG_MOST_F32)
TWINS(f64, double, __builtin_fma, fabs, LINALG_LEAST_F64, LINALG_MOST_F64)
