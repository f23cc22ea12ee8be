/* Blocks of triangular matrices, in group memory. The order of operations is that of the columns, whatever the device:
 * the twins give the same bits. */
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/linalg_kernels.h"

template <typename T>
using block = T[LINALG_BLOCK][LINALG_BLOCK + 1]; /* rows begin in different banks */

/* Column by column: divided by the root of the pivot, then subtracted from what is right of it. Returns the column
 * that fails, from 1, or 0. */
template <typename T>
RDNA_DEVICE uint32_t factor(block<T> &s, uint32_t n) {
  for (uint32_t j = 0; j < n; j++) {
    T pivot = s[j][j];
    if (!(pivot > 0)) return j + 1;
    T r = root(pivot);
    for (uint32_t i = j + 1 + thread_id(); i < n; i += CHOLESKY_THREADS) s[i][j] /= r;
    group_barrier();
    if (thread_id() == 0) s[j][j] = r;
    for (uint32_t e = thread_id(); e < n * LINALG_BLOCK; e += CHOLESKY_THREADS) {
      uint32_t i = e / LINALG_BLOCK, k = e % LINALG_BLOCK;
      if (k > j && k <= i) s[i][k] = fused(-s[i][j], s[k][j], s[i][k]);
    }
    group_barrier();
  }
  return 0;
}

template <typename T>
RDNA_DEVICE void cholesky(const struct cholesky_args &a, block<T> &s) {
  for (uint32_t b = group_id_x(); b < a.batch; b += group_count_x()) {
    if (a.first && a.info[b]) continue;
    T *x = (T *)a.a + (int64_t)b * a.stride;
    for (uint32_t e = thread_id(); e < a.n * LINALG_BLOCK; e += CHOLESKY_THREADS) {
      uint32_t i = e / LINALG_BLOCK, k = e % LINALG_BLOCK;
      if (k <= i) s[i][k] = x[i * a.row + k * a.column];
    }
    group_barrier();
    uint32_t failed = factor<T>(s, a.n);
    for (uint32_t e = thread_id(); e < a.n * LINALG_BLOCK; e += CHOLESKY_THREADS) {
      uint32_t i = e / LINALG_BLOCK, k = e % LINALG_BLOCK;
      if (k < a.n) x[i * a.row + k * a.column] = k <= i ? s[i][k] : 0;
    }
    if (thread_id() == 0 && (failed || !a.first)) a.info[b] = failed ? (int32_t)(a.first + failed) : 0;
    group_barrier();
  }
}

/* A thread's column of the solution. In registers it would have to be unrolled, and the block's values, which are
 * loaded ahead then, spill. */
template <typename T>
using solution = T[LINALG_BLOCK][TRIANGULAR_THREADS];

template <typename T>
RDNA_DEVICE void solve_column(const struct triangular_args &a, T *x, const block<T> &s, solution<T> &solved) {
  for (uint32_t i = 0; i < a.n; i++) {
    T *at = x + (int64_t)(a.flipped ? a.n - 1 - i : i) * a.x_row, v = *at;
    for (uint32_t k = 0; k < i; k++) v = fused(-s[i][k], solved[k][thread_id()], v);
    if (!a.unit) v /= s[i][i];
    *at = solved[i][thread_id()] = v;
  }
}

template <typename T>
RDNA_DEVICE void solve_triangular(const struct triangular_args &a, block<T> &s, solution<T> &solved) {
  int64_t last = (int64_t)a.n - 1;
  for (uint32_t unit = group_id_x(); unit < a.units; unit += group_count_x()) {
    int64_t b = unit / a.parts, column = (int64_t)(unit % a.parts) * TRIANGULAR_THREADS + thread_id();
    const T *l = (const T *)a.l + b * a.l_stride;
    for (uint32_t e = thread_id(); e < LINALG_BLOCK * LINALG_BLOCK; e += TRIANGULAR_THREADS) {
      int64_t i = e / LINALG_BLOCK, k = e % LINALG_BLOCK;
      bool there = i <= last && (a.unit ? k < i : k <= i);
      int64_t at = a.flipped ? (last - i) * a.l_row + (last - k) * a.l_column : i * a.l_row + k * a.l_column;
      s[i][k] = there ? l[at] : (T)(i == k);
    }
    group_barrier();
    if (column < a.columns) solve_column<T>(a, (T *)a.x + b * a.x_stride + column * a.x_column, s, solved);
    group_barrier();
  }
}

#define KERNELS(suffix, T)                                                              \
  RDNA_KERNEL(CHOLESKY_THREADS) cholesky_##suffix(struct cholesky_args a) {             \
    RDNA_SHARED block<T> s;                                                             \
    cholesky<T>(a, s);                                                                  \
  }                                                                                     \
  RDNA_KERNEL(TRIANGULAR_THREADS) solve_triangular_##suffix(struct triangular_args a) { \
    RDNA_SHARED solution<T> solved;                                                     \
    RDNA_SHARED block<T> s;                                                             \
    solve_triangular<T>(a, s, solved);                                                  \
  }
KERNELS(f32, float)
KERNELS(f64, double)
