/* The same on the host: one thread does what a group does. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/host.h"
#include "math/linalg/eigen_kernels.h"
#include "math/linalg/exponent_host.h"

#define EIGEN_FUNCTION static inline
#define EIGEN_ME 0
#define EIGEN_MEET_ALL() (void)0

#define EIGEN(name) f32_##name
#define EIGEN_THREADS 1
#define EIGEN_MEET() (void)0
#include "math/linalg/eigen_f32.h"
#define EIGEN(name) f64_##name
#define EIGEN_THREADS 1
#define EIGEN_MEET() (void)0
#include "math/linalg/eigen_f64.h"

#define TWINS(suffix, T, BIAS)                                                                              \
  /* Finds what is asked for of matrix b, which is |from| and is copied to |h| first. */                    \
  static void find_##suffix(const struct eigen_args *a, int64_t b, T *h) {                                  \
    const T *from = (const T *)a->a + b * a->stride;                                                        \
    int64_t n = a->n;                                                                                       \
    T *values = (T *)a->values + 2 * b * n, *vectors = a->vectors ? (T *)a->vectors + 2 * b * n * n : NULL; \
    uint32_t most = 1;                                                                                      \
    for (int64_t e = 0; e < n * n; e++) {                                                                   \
      uint32_t exponent = exponent_##suffix(from[e / n * a->row + e % n * a->column]);                      \
      most = exponent > most ? exponent : most;                                                             \
    }                                                                                                       \
    if (most > 2 * BIAS) {                                                                                  \
      for (int64_t e = 0; e < 2 * n; e++) values[e] = NAN;                                                  \
      for (int64_t e = 0; vectors && e < 2 * n * n; e++) vectors[e] = NAN;                                  \
      a->info[b] = (int32_t)n;                                                                              \
      return;                                                                                               \
    }                                                                                                       \
    if (most > 2 * BIAS - 1) most = 2 * BIAS - 1;                                                           \
    for (int64_t e = 0; e < n * n; e++) {                                                                   \
      h[e] = from[e / n * a->row + e % n * a->column] * power_##suffix(2 * BIAS - most);                    \
    }                                                                                                       \
    suffix##_matrix m = {h, a->z ? (T *)a->z + b * n * n : NULL, (int32_t)n, (int32_t)n};                   \
    T norm;                                                                                                 \
    a->info[b] = suffix##_reduce(&m, &norm);                                                                \
    suffix##_give(&m, norm, power_##suffix(most), a->z ? (T *)a->x + 2 * b *n *n : NULL, values, vectors);  \
  }                                                                                                         \
  static void small_##suffix(void *context, int64_t begin, int64_t end) {                                   \
    T h[EIGEN_SMALL * EIGEN_SMALL];                                                                         \
    const struct eigen_args *a = context;                                                                   \
    for (int64_t b = begin; b < end; b++) find_##suffix(a, b, h);                                           \
  }                                                                                                         \
  static void large_##suffix(void *context, int64_t begin, int64_t end) {                                   \
    const struct eigen_args *a = context;                                                                   \
    for (int64_t b = begin; b < end; b++) find_##suffix(a, b, (T *)a->h + b * a->n * a->n);                 \
  }                                                                                                         \
  void RDNA_HOST_KERNEL(eigen_small_##suffix)(const void *args, rdna_grid grid) {                           \
    struct eigen_args a = *(const struct eigen_args *)args;                                                 \
    rdna__parallel_for(a.batch, 1, small_##suffix, &a);                                                     \
  }                                                                                                         \
  void RDNA_HOST_KERNEL(eigen_large_##suffix)(const void *args, rdna_grid grid) {                           \
    struct eigen_args a = *(const struct eigen_args *)args;                                                 \
    rdna__parallel_for(a.batch, 1, large_##suffix, &a);                                                     \
  }
TWINS(f32, float, 127)
TWINS(f64, double, 1023)
