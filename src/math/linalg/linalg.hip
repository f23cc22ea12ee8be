/* Blocks of triangular matrices, in group memory. The order of operations is that of the columns, whatever the device:
 * the twins give the same bits. */
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/linalg_kernels.h"
#include "math/linalg/team.h"

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
  int64_t row = a.flipped ? -a.x_row : a.x_row;
  if (a.flipped) x += (int64_t)(a.n - 1) * a.x_row;
#pragma unroll 8
  for (uint32_t i = 0; i < a.n; i++) solved[i][thread_id()] = x[i * row]; /* all in flight at once */
  for (uint32_t i = 0; i < a.n; i++) {
    T v = solved[i][thread_id()];
    for (uint32_t k = 0; k < i; k++) v = fused(-s[i][k], solved[k][thread_id()], v);
    if (!a.unit) v /= s[i][i];
    x[i * row] = solved[i][thread_id()] = v;
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

template <typename T>
struct thin_shared {
  block<T> l;
  T x[LINALG_BLOCK];
};

/* By the first wave; each lane has a row. */
template <typename T>
RDNA_DEVICE void solve_thin_block(uint32_t rows, bool unit, thin_shared<T> &s) {
  uint32_t i = thread_id();
  if (i >= WAVE_SIZE) return;
  T v = i < rows ? s.x[i] : 0;
  for (uint32_t k = 0; k < rows; k++) {
    if (i == k) s.x[k] = v = unit ? v : v / s.l[k][k];
    wave_barrier();
    if (i > k && i < rows) v = fused(-s.l[i][k], s.x[k], v);
  }
}

/* Loads a block on the diagonal, and its part of x from which, by columns of l, all before has been subtracted. */
template <typename T>
RDNA_DEVICE void load_thin(const struct triangular_args &a, uint32_t first, uint32_t rows, const T *l, const T *x,
                           thin_shared<T> &s) {
  uint32_t i = thread_id() / LINALG_BLOCK, k = thread_id() % LINALG_BLOCK;
  if (a.l_row == 1 || a.l_row == -1) i = thread_id() % LINALG_BLOCK, k = thread_id() / LINALG_BLOCK;
  if (i < rows && k < i + !a.unit) s.l[i][k] = l[(first + i) * a.l_row + (first + k) * a.l_column];
  if (thread_id() < rows) s.x[thread_id()] = x[(first + thread_id()) * a.x_row];
}

/* A team of 32 for each of the block's rows. */
template <typename T>
RDNA_DEVICE void subtract_before(const struct triangular_args &a, uint32_t first, uint32_t rows, const T *l, const T *x,
                                 thin_shared<T> &s) {
  uint32_t i = thread_id() / TEAM, lane = thread_id() % TEAM;
  T sum = 0;
  if (i < rows) {
    const T *row = l + (first + i) * a.l_row;
#pragma unroll 8
    for (uint32_t k = lane; k < first; k += TEAM) sum = fused(row[k * a.l_column], x[k * a.x_row], sum);
  }
  sum = team_sum(sum);
  if (i < rows && lane == 0) s.x[i] -= sum;
}

template <typename T>
RDNA_DEVICE void subtract_after(const struct triangular_args &a, uint32_t first, const T *l, T *x,
                                const thin_shared<T> &s) {
  for (uint32_t i = first + LINALG_BLOCK + thread_id(); i < a.n; i += THIN_THREADS) {
    const T *at = l + i * a.l_row + first * a.l_column;
    T v = x[i * a.x_row];
#pragma unroll 8
    for (uint32_t k = 0; k < LINALG_BLOCK; k++) v = fused(-at[k * a.l_column], s.x[k], v);
    x[i * a.x_row] = v;
  }
}

template <typename T>
RDNA_DEVICE void solve_thin(const struct triangular_args &args, thin_shared<T> &s) {
  struct triangular_args a = args;
  bool by_columns = a.l_row == 1;
  int64_t last = (int64_t)a.n - 1, l_begins = a.flipped ? last * (a.l_row + a.l_column) : 0;
  int64_t x_begins = a.flipped ? last * a.x_row : 0;
  if (a.flipped) a.l_row = -a.l_row, a.l_column = -a.l_column, a.x_row = -a.x_row;
  for (uint32_t unit = group_id_x(); unit < a.units; unit += group_count_x()) {
    int64_t b = unit / a.parts;
    const T *l = (const T *)a.l + b * a.l_stride + l_begins;
    T *x = (T *)a.x + b * a.x_stride + unit % a.parts * a.x_column + x_begins;
    for (uint32_t first = 0; first < a.n; first += LINALG_BLOCK) {
      uint32_t rows = min_u32(a.n - first, LINALG_BLOCK);
      load_thin<T>(a, first, rows, l, x, s);
      group_barrier();
      if (!by_columns) {
        subtract_before<T>(a, first, rows, l, x, s);
        group_barrier();
      }
      solve_thin_block<T>(rows, a.unit, s);
      group_barrier();
      if (thread_id() < rows) x[(first + thread_id()) * a.x_row] = s.x[thread_id()];
      if (by_columns) subtract_after<T>(a, first, l, x, s);
      group_barrier_global();
    }
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
  }                                                                                     \
  RDNA_KERNEL(THIN_THREADS) solve_thin_##suffix(struct triangular_args a) {             \
    RDNA_SHARED thin_shared<T> s;                                                       \
    solve_thin<T>(a, s);                                                                \
  }
KERNELS(f32, float)
KERNELS(f64, double)
