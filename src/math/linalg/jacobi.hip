/* Rotations of pairs of blocks of columns. Sums have one order: the twins give the same bits. */
#include "kernel/arguments.h"
#include "kernel/prelude.h"

#include "math/common/device/doubles.h"
#include "math/linalg/jacobi_kernels.h"

enum { PAIR = 2 * JACOBI_BLOCK };

template <typename T>
using square = T[PAIR][PAIR + 1]; /* rows begin in different banks */

template <typename T>
struct jacobi_shared {
  square<T> products, turn, tile;
  T length[PAIR], half[JACOBI_BLOCK], sine[JACOBI_BLOCK]; /* half: the tangent of half the angle */
  uint32_t scratch[GROUP_SCRATCH(JACOBI_THREADS)];
};

template <typename T>
struct limits;
template <>
struct limits<float> { /* a cotangent beyond it is its own square's root */
  RDNA_DEVICE float steep() { return 0x1p13f; }
};
template <>
struct limits<double> {
  RDNA_DEVICE double steep() { return 0x1p28; }
};

/* The pair's column |c|, as a column of the matrix. */
RDNA_DEVICE uint32_t column_of(uint32_t first, uint32_t second, uint32_t c) {
  return c < JACOBI_BLOCK ? first * JACOBI_BLOCK + c : second * JACOBI_BLOCK + c - JACOBI_BLOCK;
}

/* Rows |base| to base + PAIR of the pair's columns; zeros where there are none. */
template <typename T>
RDNA_DEVICE void load_tile(const struct jacobi_args &a, const T *x, uint32_t first, uint32_t second, uint32_t base,
                           jacobi_shared<T> &s) {
  uint32_t i = base + thread_id() % PAIR;
#pragma unroll
  for (uint32_t c = thread_id() / PAIR; c < PAIR; c += JACOBI_THREADS / PAIR) {
    uint32_t k = column_of(first, second, c);
    s.tile[thread_id() % PAIR][c] = i < a.m && k < a.n ? x[i * a.row + k * a.column] : 0;
  }
}

template <typename T>
RDNA_DEVICE void multiply(const struct jacobi_args &a, const T *x, uint32_t first, uint32_t second,
                          jacobi_shared<T> &s) {
  uint32_t i = thread_id() / JACOBI_BLOCK, j = thread_id() % JACOBI_BLOCK;
  T sum[2][2] = {};
  for (uint32_t base = 0; base < a.m; base += PAIR) {
    load_tile<T>(a, x, first, second, base, s);
    group_barrier();
    T part[2][2] = {};
#pragma unroll 4
    for (uint32_t r = 0; r < PAIR; r++) {
      T left[2] = {s.tile[r][i], s.tile[r][i + JACOBI_BLOCK]}, right[2] = {s.tile[r][j], s.tile[r][j + JACOBI_BLOCK]};
#pragma unroll
      for (int k = 0; k < 4; k++) part[k / 2][k % 2] = fused(left[k / 2], right[k % 2], part[k / 2][k % 2]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) sum[k / 2][k % 2] += part[k / 2][k % 2];
    group_barrier();
  }
#pragma unroll
  for (int k = 0; k < 4; k++) {
    uint32_t row = i + k / 2 * JACOBI_BLOCK, column = j + k % 2 * JACOBI_BLOCK;
    s.products[row][column] = sum[k / 2][k % 2];
    s.turn[row][column] = row == column;
  }
  group_barrier();
  if (thread_id() < PAIR) s.length[thread_id()] = root(s.products[thread_id()][thread_id()]);
  group_barrier();
}

template <typename T>
RDNA_DEVICE bool beyond(const struct jacobi_args &a, T product, T limit, T left, T right) {
  T size = product < 0 ? -product : product;
  return left > (T)a.negligible && right > (T)a.negligible && size > limit * left * right;
}

/* 0: all are orthogonal; 1: nearly, so that this turn is the last; 2: not yet. */
template <typename T>
RDNA_DEVICE uint32_t angles(const struct jacobi_args &a, jacobi_shared<T> &s) {
  uint32_t found = 0;
  for (uint32_t e = thread_id(); e < PAIR * PAIR; e += JACOBI_THREADS) {
    uint32_t i = e / PAIR, j = e % PAIR;
    T p = s.products[i][j];
    if (i < j && beyond<T>(a, p, (T)a.smallest, s.length[i], s.length[j])) found = max_u32(found, 1);
    if (i < j && beyond<T>(a, p, (T)a.small, s.length[i], s.length[j])) found = 2;
  }
  return group_max_u32<JACOBI_THREADS>(found, s.scratch);
}

/* The rotation after which columns p and q are orthogonal, by the smaller of two angles. */
template <typename T>
RDNA_DEVICE void find_rotation(const struct jacobi_args &a, uint32_t width, uint32_t round, jacobi_shared<T> &s) {
  uint32_t p, q;
  if (thread_id() >= width / 2) return;
  jacobi_pair(width, round, thread_id(), &p, &q);
  T product = s.products[p][q], left = s.products[p][p], right = s.products[q][q], half = 0, n = 0;
  if (beyond<T>(a, product, (T)a.smallest, root(left), root(right))) {
    T cotangent = (right - left) / (2 * product), size = cotangent < 0 ? -cotangent : cotangent;
    T t = size > limits<T>::steep() ? 1 / (2 * size) : 1 / (size + root(fused(size, size, (T)1)));
    if (cotangent < 0) t = -t;
    T c = 1 / root(fused(t, t, (T)1));
    n = c * t, half = n / (1 + c);
  }
  s.half[thread_id()] = half, s.sine[thread_id()] = n;
}

/* x cos - y sin and x sin + y cos, as Rutishauser (1966) has it: by a small angle little is added, so that lengths do
 * not drift with the errors of cosines near 1. */
template <typename T>
RDNA_DEVICE void rotate(T half, T sine, T &x, T &y) {
  T left = x;
  x = fused(-sine, fused(half, x, y), x), y = fused(sine, fused(-half, y, left), y);
}

/* A thread turns the two rows and two columns where two pairs cross. */
template <typename T>
RDNA_DEVICE void rotate_products(uint32_t width, uint32_t round, jacobi_shared<T> &s) {
  uint32_t pairs = width / 2, i = thread_id() / JACOBI_BLOCK, j = thread_id() % JACOBI_BLOCK, p[2], q[2];
  if (i < pairs && j < pairs) {
    jacobi_pair(width, round, i, &p[0], &p[1]);
    jacobi_pair(width, round, j, &q[0], &q[1]);
    T e[2][2] = {{s.products[p[0]][q[0]], s.products[p[0]][q[1]]}, {s.products[p[1]][q[0]], s.products[p[1]][q[1]]}};
#pragma unroll
    for (int k = 0; k < 2; k++) rotate<T>(s.half[i], s.sine[i], e[0][k], e[1][k]);
#pragma unroll
    for (int k = 0; k < 2; k++) rotate<T>(s.half[j], s.sine[j], e[k][0], e[k][1]);
#pragma unroll
    for (int k = 0; k < 4; k++) s.products[p[k / 2]][q[k % 2]] = e[k / 2][k % 2];
  }
#pragma unroll 1
  for (uint32_t e = thread_id(); e < pairs * PAIR; e += JACOBI_THREADS) {
    uint32_t k = e / PAIR, row = e % PAIR;
    jacobi_pair(width, round, k, &q[0], &q[1]);
    rotate<T>(s.half[k], s.sine[k], s.turn[row][q[0]], s.turn[row][q[1]]);
  }
}

template <typename T>
RDNA_DEVICE void turn_columns(const struct jacobi_args &a, T *x, uint32_t first, uint32_t second, jacobi_shared<T> &s) {
  for (uint32_t base = 0; base < a.m; base += PAIR) {
    load_tile<T>(a, x, first, second, base, s);
    group_barrier();
    uint32_t row = thread_id() % PAIR, i = base + row;
#pragma unroll 1
    for (uint32_t c = thread_id() / PAIR; c < PAIR; c += JACOBI_THREADS / PAIR) {
      uint32_t k = column_of(first, second, c);
      T sum = 0;
#pragma unroll 8
      for (uint32_t r = 0; r < PAIR; r++) sum = fused(s.tile[row][r], s.turn[r][c], sum);
      if (i < a.m && k < a.n) x[i * a.row + k * a.column] = sum;
    }
    group_barrier();
  }
}

/* One sweep over the columns of a pair. */
template <typename T>
RDNA_DEVICE void sweep_pair(const struct jacobi_args &a, uint32_t width, T *x, uint32_t first, uint32_t second,
                            jacobi_shared<T> &s) {
  for (uint32_t round = 0; round + 1 < width; round++) {
    find_rotation<T>(a, width, round, s);
    group_barrier();
    rotate_products<T>(width, round, s);
    group_barrier();
  }
  turn_columns<T>(arguments_again_wide(a), x, first, second, s);
  group_barrier_global();
}

template <typename T>
RDNA_DEVICE void jacobi(const struct jacobi_args &args, jacobi_shared<T> &s) {
  for (uint32_t unit = group_id_x(); unit < args.units; unit += group_count_x()) {
    const struct jacobi_args &a = arguments_again_wide(args);
    uint32_t pairs = a.blocks / 2, width = pairs > 1 ? (uint32_t)PAIR : a.n + a.n % 2, b = unit / pairs, first, second;
    jacobi_pair(a.blocks, a.round, unit % pairs, &first, &second);
    if (pairs > 1 && second * JACOBI_BLOCK >= a.n) continue;
    T *x = (T *)a.a + (int64_t)b * a.stride;
    int32_t *turned = a.turned + (int64_t)b * a.total + a.sweep;
    if (a.sweep && !turned[-1]) continue;
    for (uint32_t sweep = 0; sweep < arguments_again_wide(args).sweeps; sweep++) {
      multiply<T>(arguments_again_wide(args), x, first, second, s);
      uint32_t found = angles<T>(arguments_again_wide(args), s);
      if (!found) break;
      if (found > 1 && thread_id() == 0) atomic_or_u32((uint32_t *)turned + sweep, 1);
      sweep_pair<T>(arguments_again_wide(args), width, x, first, second, s);
      if (found == 1) break;
    }
    group_barrier();
  }
}

#define KERNELS(suffix, T)                                            \
  RDNA_KERNEL(JACOBI_THREADS) jacobi_##suffix(struct jacobi_args a) { \
    RDNA_SHARED jacobi_shared<T> s;                                   \
    jacobi<T>(a, s);                                                  \
  }
KERNELS(f32, float)
KERNELS(f64, double)
