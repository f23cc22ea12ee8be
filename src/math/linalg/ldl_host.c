/* The same on the host, in the same order. */
#include <stdbool.h>

#include "kernel/host.h"
#include "math/linalg/ldl_kernels.h"

#define TWINS(suffix, T, fused, size_of)                                                                 \
  typedef struct matrix_##suffix {                                                                       \
    T *x;                                                                                                \
    int64_t n;                                                                                           \
  } matrix_##suffix;                                                                                     \
  static T *at_##suffix(const matrix_##suffix *a, int64_t i, int64_t j) {                                \
    return a->x + (i >= j ? j * a->n + i : i * a->n + j);                                                \
  }                                                                                                      \
  /* NaN is above all numbers, and the first of those that are alike is taken. */                        \
  static int64_t largest_##suffix(const matrix_##suffix *a, int64_t first, int64_t row) {                \
    int64_t found = a->n;                                                                                \
    T best = 0;                                                                                          \
    for (int64_t i = first; i < a->n; i++) {                                                             \
      if (i == row) continue;                                                                            \
      T v = size_of(*at_##suffix(a, i, row));                                                            \
      if (found == a->n || v > best || (v != v && best == best)) found = i, best = v;                    \
    }                                                                                                    \
    return found;                                                                                        \
  }                                                                                                      \
  static void swap_##suffix(T *one, T *other) {                                                          \
    T v = *one;                                                                                          \
    *one = *other, *other = v;                                                                           \
  }                                                                                                      \
  static void exchange_##suffix(const matrix_##suffix *a, int64_t one, int64_t other, bool has_before) { \
    for (int64_t i = one + 1; i < a->n; i++)                                                             \
      if (i != other) swap_##suffix(at_##suffix(a, i, one), at_##suffix(a, i, other));                   \
    swap_##suffix(at_##suffix(a, one, one), at_##suffix(a, other, other));                               \
    if (has_before) swap_##suffix(at_##suffix(a, one, one - 1), at_##suffix(a, other, one - 1));         \
  }                                                                                                      \
  static void eliminate_one_##suffix(const matrix_##suffix *a, int64_t k) {                              \
    T inverse = 1 / *at_##suffix(a, k, k);                                                               \
    for (int64_t j = k + 1; j < a->n; j++) {                                                             \
      T u = inverse * *at_##suffix(a, j, k);                                                             \
      for (int64_t i = j; i < a->n; i++) {                                                               \
        T *to = at_##suffix(a, i, j);                                                                    \
        *to = fused(-*at_##suffix(a, i, k), u, *to);                                                     \
      }                                                                                                  \
    }                                                                                                    \
    for (int64_t i = k + 1; i < a->n; i++) *at_##suffix(a, i, k) *= inverse;                             \
  }                                                                                                      \
  static void eliminate_two_##suffix(const matrix_##suffix *a, int64_t k) {                              \
    T across = *at_##suffix(a, k + 1, k), first = *at_##suffix(a, k + 1, k + 1) / across,                \
      second = *at_##suffix(a, k, k) / across;                                                           \
    T scale = 1 / fused(first, second, (T) - 1) / across;                                                \
    for (int64_t j = k + 2; j < a->n; j++) {                                                             \
      T x = *at_##suffix(a, j, k), y = *at_##suffix(a, j, k + 1);                                        \
      T u = scale * fused(first, x, -y), v = scale * fused(second, y, -x);                               \
      for (int64_t i = j; i < a->n; i++) {                                                               \
        T *to = at_##suffix(a, i, j);                                                                    \
        *to = fused(-*at_##suffix(a, i, k + 1), v, fused(-*at_##suffix(a, i, k), u, *to));               \
      }                                                                                                  \
    }                                                                                                    \
    for (int64_t i = k + 2; i < a->n; i++) {                                                             \
      T *to = at_##suffix(a, i, k), *beside = at_##suffix(a, i, k + 1), x = *to, y = *beside;            \
      *to = scale * fused(first, x, -y), *beside = scale * fused(second, y, -x);                         \
    }                                                                                                    \
  }                                                                                                      \
  static int32_t factor_##suffix(const matrix_##suffix *a, int32_t *pivots) {                            \
    int64_t failed = 0, n = a->n;                                                                        \
    T alpha = (T)LDL_ALPHA;                                                                              \
    for (int64_t k = 0; k < n;) {                                                                        \
      int64_t far = largest_##suffix(a, k + 1, k), p = k, two = 0;                                       \
      T here = size_of(*at_##suffix(a, k, k)), column = far < n ? size_of(*at_##suffix(a, far, k)) : 0;  \
      bool none = here != here || (here == 0 && column == 0);                                            \
      if (!none && !(here >= alpha * column)) {                                                          \
        T row = size_of(*at_##suffix(a, largest_##suffix(a, k, far), far));                              \
        if (!(here >= alpha * column * (column / row))) {                                                \
          p = far;                                                                                       \
          two = !(size_of(*at_##suffix(a, far, far)) >= alpha * row);                                    \
        }                                                                                                \
      }                                                                                                  \
      if (none && !failed) failed = k + 1;                                                               \
      if (p != k + two) exchange_##suffix(a, k + two, p, two);                                           \
      pivots[k] = (int32_t)(two ? -(p + 1) : p + 1);                                                     \
      if (two) pivots[k + 1] = (int32_t)-(p + 1);                                                        \
      if (two)                                                                                           \
        eliminate_two_##suffix(a, k);                                                                    \
      else if (!none)                                                                                    \
        eliminate_one_##suffix(a, k);                                                                    \
      k += 1 + two;                                                                                      \
    }                                                                                                    \
    return (int32_t)failed;                                                                              \
  }                                                                                                      \
  static void ldl_##suffix(void *context, int64_t begin, int64_t end) {                                  \
    const struct ldl_args *a = context;                                                                  \
    for (int64_t b = begin; b < end; b++) {                                                              \
      matrix_##suffix x = {(T *)a->a + b * a->n * a->n, a->n};                                           \
      a->info[b] = factor_##suffix(&x, a->pivots + b * a->n);                                            \
    }                                                                                                    \
  }                                                                                                      \
  void RDNA_HOST_KERNEL(ldl_##suffix)(const void *args, rdna_grid grid) {                                \
    struct ldl_args a = *(const struct ldl_args *)args;                                                  \
    rdna__parallel_for(a.batch, 1, ldl_##suffix, &a);                                                    \
  }
TWINS(f32, float, __builtin_fmaf, __builtin_fabsf)
TWINS(f64, double, __builtin_fma, __builtin_fabs)
