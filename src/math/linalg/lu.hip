/* Panels of LU's factors. Each value meets the same operations in the same order as on the host: the twins give the
 * same bits. */
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/lu_kernels.h"
#include "math/linalg/magnitude.h"

template <typename T>
struct lu_shared {
  T row[LU_BLOCK]; /* the pivot's */
  uint32_t scratch[GROUP_SCRATCH(LU_TALL_THREADS)];
};

/* Column by column: the largest value is found, its row comes up, is kept in group memory, and is subtracted from the
 * rows below. Returns 1 + the first column without a pivot, or 0. */
template <typename T, int threads>
RDNA_DEVICE uint32_t factor(const struct lu_args &a, T *x, int64_t row, int64_t column, int32_t *pivots,
                            lu_shared<T> &s) {
  uint32_t failed = 0;
  for (uint32_t j = 0; j < a.n; j++) {
    T *c = x + j * column;
    decltype(magnitude(*c)) best = 0;
    uint32_t at = j;
    for (uint32_t i = j + thread_id(); i < (a.in_place ? j + 1 : a.m); i += threads) {
      auto key = magnitude(c[i * row]);
      if (key > best || i == j) best = key, at = i;
    }
    uint32_t p = first_of_largest<threads>(best, at, s.scratch);
    if (p >= a.m) p = j; /* no thread had anything larger than 0 */
    if (thread_id() == 0) pivots[j] = (int32_t)(a.first + p + 1);
    if (thread_id() < a.n) {
      T *e = x + thread_id() * column, v = e[p * row];
      if (p != j) e[p * row] = e[j * row], e[j * row] = v;
      s.row[thread_id()] = v;
    }
    group_barrier_global();
    T pivot = s.row[j];
    if (pivot == 0 && !failed) failed = j + 1;
    for (uint32_t i = j + 1 + thread_id(); i < a.m; i += threads) {
      T *e = x + i * row, l = e[j * column];
      if (pivot != 0) e[j * column] = l = l / pivot;
      for (uint32_t k = j + 1; k < a.n; k++) e[k * column] = fused(-l, s.row[k], e[k * column]);
    }
    group_barrier_global();
  }
  return failed;
}

RDNA_DEVICE void report(const struct lu_args &a, uint32_t b, uint32_t failed) {
  if (thread_id() != 0) return;
  if (!a.first) a.info[b] = (int32_t)failed;
  if (a.first && failed && !a.info[b]) a.info[b] = (int32_t)(a.first + failed);
}

template <typename T>
using panel = T[LU_SMALL_ROWS * (LU_BLOCK + 1)]; /* rows begin in different banks */

template <typename T>
RDNA_DEVICE void lu_small(const struct lu_args &a, panel<T> &p, lu_shared<T> &s) {
  bool by_columns = a.row == 1;
  for (uint32_t b = group_id_x(); b < a.batch; b += group_count_x()) {
    T *x = (T *)a.a + (int64_t)b * a.stride;
    for (uint32_t e = thread_id(); e < a.m * a.n; e += LU_SMALL_THREADS) {
      uint32_t i = by_columns ? e % a.m : e / a.n, k = by_columns ? e / a.m : e % a.n;
      p[i * (LU_BLOCK + 1) + k] = x[i * a.row + k * a.column];
    }
    group_barrier();
    uint32_t failed = factor<T, LU_SMALL_THREADS>(a, p, LU_BLOCK + 1, 1, a.pivots + b * a.pivots_stride + a.first, s);
    for (uint32_t e = thread_id(); e < a.m * a.n; e += LU_SMALL_THREADS) {
      uint32_t i = by_columns ? e % a.m : e / a.n, k = by_columns ? e / a.m : e % a.n;
      x[i * a.row + k * a.column] = p[i * (LU_BLOCK + 1) + k];
    }
    report(a, b, failed);
    group_barrier();
  }
}

template <typename T>
RDNA_DEVICE void lu_tall(const struct lu_args &a, lu_shared<T> &s) {
  for (uint32_t b = group_id_x(); b < a.batch; b += group_count_x()) {
    T *x = (T *)a.a + (int64_t)b * a.stride;
    report(a, b, factor<T, LU_TALL_THREADS>(a, x, a.row, a.column, a.pivots + b * a.pivots_stride + a.first, s));
  }
}

template <typename T>
RDNA_DEVICE void swap_rows(const struct swap_args &a) {
  for (uint32_t unit = group_id_x(); unit < a.units; unit += group_count_x()) {
    int64_t b = unit / a.parts, column = (int64_t)(unit % a.parts) * SWAP_THREADS + thread_id();
    if (column >= a.columns) continue;
    if (column >= a.skipped) column += a.resumed - a.skipped;
    T *x = (T *)a.x + b * a.stride + column * a.column;
    const int32_t *pivots = a.pivots + b * a.pivots_stride + a.first;
    for (uint32_t k = 0; k < a.count; k++) {
      uint32_t j = a.backwards ? a.count - 1 - k : k;
      uint32_t other = (uint32_t)pivots[j] - 1;
      if (other == a.first + j || other >= a.rows) continue;
      int64_t from = (int64_t)(a.first + j) * a.row, to = (int64_t)other * a.row;
      T v = x[from];
      x[from] = x[to], x[to] = v;
    }
  }
}

#define KERNELS(suffix, T)                                            \
  RDNA_KERNEL(LU_SMALL_THREADS) lu_small_##suffix(struct lu_args a) { \
    RDNA_SHARED panel<T> p;                                           \
    RDNA_SHARED lu_shared<T> s;                                       \
    lu_small<T>(a, p, s);                                             \
  }                                                                   \
  RDNA_KERNEL(LU_TALL_THREADS) lu_tall_##suffix(struct lu_args a) {   \
    RDNA_SHARED lu_shared<T> s;                                       \
    lu_tall<T>(a, s);                                                 \
  }                                                                   \
  RDNA_KERNEL(SWAP_THREADS) swap_rows_##suffix(struct swap_args a) { swap_rows<T>(a); }
KERNELS(f32, float)
KERNELS(f64, double)
