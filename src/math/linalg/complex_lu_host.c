/* The same on the host, in the same order. */
#include <math.h>

#include "kernel/host.h"
#include "math/linalg/complex_lu_kernels.h"

#define TWINS(suffix, T, fused, size_of)                                                                             \
  static void divide_##suffix(T *x, const T *y) {                                                                    \
    T a = x[0], b = x[1];                                                                                            \
    if (size_of(y[0]) >= size_of(y[1])) {                                                                            \
      T t = y[1] / y[0], e = fused(y[1], t, y[0]);                                                                   \
      x[0] = fused(b, t, a) / e, x[1] = fused(-a, t, b) / e;                                                         \
    } else {                                                                                                         \
      T t = y[0] / y[1], e = fused(y[0], t, y[1]);                                                                   \
      x[0] = fused(a, t, b) / e, x[1] = fused(b, t, -a) / e;                                                         \
    }                                                                                                                \
  }                                                                                                                  \
  /* The row of column c's pivot. NaN is above all numbers, and the first of those that are alike is taken. */       \
  static int64_t pivot_##suffix(const T *c, int64_t j, int64_t m) {                                                  \
    int64_t p = j;                                                                                                   \
    T best = size_of(c[2 * j]) + size_of(c[2 * j + 1]);                                                              \
    for (int64_t i = j + 1; i < m && best == best; i++) {                                                            \
      T v = size_of(c[2 * i]) + size_of(c[2 * i + 1]);                                                               \
      if (v > best || v != v) p = i, best = v;                                                                       \
    }                                                                                                                \
    return p;                                                                                                        \
  }                                                                                                                  \
  static int32_t factor_##suffix(const struct complex_lu_args *a, T *x, int32_t *pivots) {                           \
    int64_t m = a->m, n = a->n, failed = 0;                                                                          \
    for (int64_t j = 0; j < (m < n ? m : n); j++) {                                                                  \
      T *c = x + 2 * j * m;                                                                                          \
      int64_t p = a->in_place ? j : pivot_##suffix(c, j, m);                                                         \
      pivots[j] = (int32_t)(p + 1);                                                                                  \
      for (int64_t k = 0; p != j && k < 2 * n; k++) {                                                                \
        T *one = x + 2 * (k / 2 * m + p) + k % 2, *other = x + 2 * (k / 2 * m + j) + k % 2, v = *one;                \
        *one = *other, *other = v;                                                                                   \
      }                                                                                                              \
      T pivot[2] = {c[2 * j], c[2 * j + 1]};                                                                         \
      int none = pivot[0] == 0 && pivot[1] == 0;                                                                     \
      if (none && !failed) failed = j + 1;                                                                           \
      for (int64_t i = j + 1; i < m && !none; i++) divide_##suffix(c + 2 * i, pivot);                                \
      for (int64_t k = j + 1; k < n; k++) {                                                                          \
        T *column = x + 2 * k * m, u[2] = {column[2 * j], column[2 * j + 1]};                                        \
        for (int64_t i = j + 1; i < m; i++) {                                                                        \
          T *to = column + 2 * i, l[2] = {c[2 * i], c[2 * i + 1]};                                                   \
          to[0] = fused(l[1], u[1], fused(-l[0], u[0], to[0]));                                                      \
          to[1] = fused(-l[1], u[0], fused(-l[0], u[1], to[1]));                                                     \
        }                                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
    return (int32_t)failed;                                                                                          \
  }                                                                                                                  \
  static void lu_##suffix(void *context, int64_t begin, int64_t end) {                                               \
    const struct complex_lu_args *a = context;                                                                       \
    for (int64_t b = begin; b < end; b++)                                                                            \
      a->info[b] = factor_##suffix(a, (T *)a->a + 2 * b * a->m * a->n, a->pivots + b * (a->m < a->n ? a->m : a->n)); \
  }                                                                                                                  \
  void RDNA_HOST_KERNEL(complex_lu_##suffix)(const void *args, rdna_grid grid) {                                     \
    struct complex_lu_args a = *(const struct complex_lu_args *)args;                                                \
    rdna__parallel_for(a.batch, 1, lu_##suffix, &a);                                                                 \
  }
TWINS(f32, float, __builtin_fmaf, __builtin_fabsf)
TWINS(f64, double, __builtin_fma, __builtin_fabs)
