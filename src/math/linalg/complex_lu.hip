/* LU of complex matrices. Each value meets the same operations in the same order as on the host: the twins give the
 * same bits. */
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/complex_lu_kernels.h"
#include "math/linalg/magnitude.h"

template <typename T>
RDNA_DEVICE T size_of(T v) {
  return v < 0 ? -v : v;
}

/* x = x / y, whose larger part is divided by first (Smith, 1962). */
template <typename T>
RDNA_DEVICE void divide(T *x, const T *y) {
  T a = x[0], b = x[1];
  if (size_of(y[0]) >= size_of(y[1])) {
    T t = y[1] / y[0], e = fused(y[1], t, y[0]);
    x[0] = fused(b, t, a) / e, x[1] = fused(-a, t, b) / e;
  } else {
    T t = y[0] / y[1], e = fused(y[0], t, y[1]);
    x[0] = fused(a, t, b) / e, x[1] = fused(b, t, -a) / e;
  }
}

template <typename T>
RDNA_DEVICE uint32_t factor(const struct complex_lu_args &a, T *x, int32_t *pivots, uint32_t *scratch) {
  uint32_t failed = 0, m = a.m, n = a.n;
  for (uint32_t j = 0; j < (m < n ? m : n); j++) {
    T *c = x + 2 * j * m; /* the column */
    decltype(magnitude(*c)) best = 0;
    uint32_t at = j;
    for (uint32_t i = j + thread_id(); i < (a.in_place ? j + 1 : m); i += COMPLEX_LU_THREADS) {
      auto key = magnitude(size_of(c[2 * i]) + size_of(c[2 * i + 1]));
      if (key > best || i == j) best = key, at = i;
    }
    uint32_t p = first_of_largest<COMPLEX_LU_THREADS>(best, at, scratch);
    if (p >= m) p = j; /* no thread had anything larger than 0 */
    if (thread_id() == 0) pivots[j] = (int32_t)(p + 1);
    for (uint32_t k = thread_id(); p != j && k < 2 * n; k += COMPLEX_LU_THREADS) {
      T *one = x + 2 * (k / 2 * m + p) + k % 2, *other = x + 2 * (k / 2 * m + j) + k % 2, v = *one;
      *one = *other, *other = v;
    }
    group_barrier_global();
    T pivot[2] = {c[2 * j], c[2 * j + 1]};
    bool none = pivot[0] == 0 && pivot[1] == 0;
    if (none && !failed) failed = j + 1;
    for (uint32_t i = j + 1 + thread_id(); i < m && !none; i += COMPLEX_LU_THREADS) divide(c + 2 * i, pivot);
    group_barrier_global();
    uint32_t rows = m - j - 1;
    for (uint32_t e = thread_id(); e < rows * (n - j - 1); e += COMPLEX_LU_THREADS) {
      uint32_t i = j + 1 + e % rows;
      T *column = x + 2 * (j + 1 + e / rows) * m, *to = column + 2 * i;
      T l[2] = {c[2 * i], c[2 * i + 1]}, u[2] = {column[2 * j], column[2 * j + 1]};
      to[0] = fused(l[1], u[1], fused(-l[0], u[0], to[0]));
      to[1] = fused(-l[1], u[0], fused(-l[0], u[1], to[1]));
    }
    group_barrier_global();
  }
  return failed;
}

#define KERNELS(suffix, T)                                                                                   \
  RDNA_KERNEL(COMPLEX_LU_THREADS) complex_lu_##suffix(struct complex_lu_args a) {                            \
    RDNA_SHARED uint32_t scratch[GROUP_SCRATCH(COMPLEX_LU_THREADS)];                                         \
    for (uint32_t b = group_id_x(); b < a.batch; b += group_count_x()) {                                     \
      uint32_t failed =                                                                                      \
          factor(a, (T *)a.a + 2 * (int64_t)b * a.m * a.n, a.pivots + b * (a.m < a.n ? a.m : a.n), scratch); \
      if (thread_id() == 0) a.info[b] = (int32_t)failed;                                                     \
    }                                                                                                        \
  }
KERNELS(f32, float)
KERNELS(f64, double)
