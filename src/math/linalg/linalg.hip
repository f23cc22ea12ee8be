/* Systems of blocks of triangular matrices. The order of operations is that of the columns, whatever the device:
 * the twins give the same bits. */
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/linalg_kernels.h"
#include "math/linalg/team.h"

/* 32 columns of a triangle, or of a solution, with up to TRIANGULAR_BLOCK rows: s[column][row], so that neighbouring
 * lanes read neighbouring rows. */
template <typename T>
using tile = T[TEAM][TRIANGULAR_BLOCK + 1];

/* Calls visit(i, k) for all rows and columns of a tile, so that neighbouring threads have neighbouring values. */
template <typename F>
RDNA_DEVICE void each_of_tile(bool by_rows, const F &visit) {
  uint32_t i = thread_id() % TRIANGULAR_BLOCK, k = thread_id() / TRIANGULAR_BLOCK;
  uint32_t rows = 0, columns = TRIANGULAR_THREADS / TRIANGULAR_BLOCK;
  if (by_rows) i = thread_id() / TEAM, k = thread_id() % TEAM, rows = TRIANGULAR_THREADS / TEAM, columns = 0;
#pragma unroll 4
  for (uint32_t e = 0; e < TEAM * TRIANGULAR_BLOCK; e += TRIANGULAR_THREADS) {
    visit(i, k);
    i += rows, k += columns;
  }
}

/* A team solves COLUMNS columns; lane i has their rows i, i + 32 ... */
enum { SLOTS = TRIANGULAR_BLOCK / TEAM, COLUMNS = TEAM * TEAM / TRIANGULAR_THREADS };
template <typename T>
using solution = T[SLOTS][COLUMNS];

RDNA_DEVICE bool ordinary(float d) { return abs_f32(d) >= LINALG_LEAST_F32 && abs_f32(d) <= LINALG_MOST_F32; }
RDNA_DEVICE bool ordinary(double d) {
  double size = __builtin_fabs(d);
  return size >= LINALG_LEAST_F64 && size <= LINALG_MOST_F64;
}

/* Columns 32 p and after: a row is divided by the diagonal and subtracted from those below, one after the other. */
template <typename T, uint32_t p, bool all_ordinary>
RDNA_DEVICE void solve_rows(uint32_t count, T d, const tile<T> &s, solution<T> &x) {
  uint32_t lane = thread_id() % TEAM;
  bool multiply = all_ordinary || ordinary(d);
  T inverse = 1 / d;
#pragma unroll 1
  for (uint32_t j = 0; j < count; j++) {
    T l[SLOTS];
#pragma unroll
    for (uint32_t r = p; r < SLOTS; r++) l[r] = -s[j][r * TEAM + lane];
#pragma unroll
    for (uint32_t c = 0; c < COLUMNS; c++) {
      T v = x[p][c] * inverse;
      if (!multiply) v = x[p][c] / d;
      v = team_broadcast(v, j);
      T rest = fused(l[p], v, x[p][c]);
      if (lane >= j) x[p][c] = lane == j ? v : rest;
#pragma unroll
      for (uint32_t r = p + 1; r < SLOTS; r++) x[r][c] = fused(l[r], v, x[r][c]);
    }
  }
}

template <typename T, uint32_t p>
RDNA_DEVICE void solve_columns(uint32_t count, T d, const tile<T> &s, solution<T> &x) {
  if (wave_all(ordinary(d)))
    solve_rows<T, p, true>(count, d, s, x);
  else
    solve_rows<T, p, false>(count, d, s, x);
}

/* Panel |p| of 32 columns. */
template <typename T>
RDNA_DEVICE void solve_panel(const struct triangular_args &a, uint32_t p, const T *l, tile<T> &s, solution<T> &x) {
  uint32_t first = p * TEAM, count = min_u32(a.n - first, TEAM), lane = thread_id() % TEAM;
  each_of_tile(a.l_column == 1 || a.l_column == -1, [&](uint32_t i, uint32_t k) {
    uint32_t column = first + k;
    bool there = i < a.n && column + a.unit <= i;
    s[k][i] = there ? l[i * a.l_row + column * a.l_column] : (T)(i == column);
  });
  group_barrier();
  T d = s[lane][first + lane];
  if (p == 0) solve_columns<T, 0>(count, d, s, x);
  if (p == 1) solve_columns<T, 1>(count, d, s, x);
  if (p == 2) solve_columns<T, 2>(count, d, s, x);
  if (p == 3) solve_columns<T, 3>(count, d, s, x);
  group_barrier();
}

template <typename T>
RDNA_DEVICE void solve_triangular(const struct triangular_args &args, tile<T> &s) {
  struct triangular_args a = args;
  int64_t last = a.flipped ? (int64_t)a.n - 1 : 0, l_begins = last * (a.l_row + a.l_column), x_begins = last * a.x_row;
  if (a.flipped) a.l_row = -a.l_row, a.l_column = -a.l_column, a.x_row = -a.x_row;
  uint32_t lane = thread_id() % TEAM, first = thread_id() / TEAM * COLUMNS;
  bool by_rows = a.x_column == 1;
  for (uint32_t unit = group_id_x(); unit < a.units; unit += group_count_x()) {
    int64_t b = unit / a.parts, column = (int64_t)(unit % a.parts) * TEAM, columns = a.columns - column;
    const T *l = (const T *)a.l + b * a.l_stride + l_begins;
    T *values = (T *)a.x + b * a.x_stride + column * a.x_column + x_begins;
    each_of_tile(by_rows, [&](uint32_t i, uint32_t k) {
      s[k][i] = i < a.n && k < columns ? values[i * a.x_row + k * a.x_column] : 0;
    });
    group_barrier();
    solution<T> x;
#pragma unroll
    for (uint32_t r = 0; r < SLOTS; r++) {
#pragma unroll
      for (uint32_t c = 0; c < COLUMNS; c++) x[r][c] = s[first + c][r * TEAM + lane];
    }
    group_barrier();
#pragma unroll 1
    for (uint32_t p = 0; p * TEAM < a.n; p++) solve_panel<T>(a, p, l, s, x);
#pragma unroll
    for (uint32_t r = 0; r < SLOTS; r++) {
#pragma unroll
      for (uint32_t c = 0; c < COLUMNS; c++) s[first + c][r * TEAM + lane] = x[r][c];
    }
    group_barrier();
    each_of_tile(by_rows, [&](uint32_t i, uint32_t k) {
      if (i < a.n && k < columns) values[i * a.x_row + k * a.x_column] = s[k][i];
    });
    group_barrier();
  }
}

template <typename T>
struct thin_shared {
  T l[LINALG_BLOCK][LINALG_BLOCK + 1]; /* rows begin in different banks */
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
  RDNA_KERNEL(TRIANGULAR_THREADS) solve_triangular_##suffix(struct triangular_args a) { \
    RDNA_SHARED tile<T> s;                                                              \
    solve_triangular<T>(a, s);                                                          \
  }                                                                                     \
  RDNA_KERNEL(THIN_THREADS) solve_thin_##suffix(struct triangular_args a) {             \
    RDNA_SHARED thin_shared<T> s;                                                       \
    solve_thin<T>(a, s);                                                                \
  }
KERNELS(f32, float)
KERNELS(f64, double)
