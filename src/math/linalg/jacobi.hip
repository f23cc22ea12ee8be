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

/* A matrix whose columns are turned. */
template <typename T>
struct matrix {
  T *x;
  int64_t row, column;
  uint32_t m, n;
};

/* Rows |base| to base + PAIR of the pair's columns; zeros where there are none. */
template <typename T>
RDNA_DEVICE void load_tile(const matrix<T> &a, uint32_t first, uint32_t second, uint32_t base, square<T> &tile) {
  uint32_t i = base + thread_id() % PAIR;
#pragma unroll
  for (uint32_t c = thread_id() / PAIR; c < PAIR; c += JACOBI_THREADS / PAIR) {
    uint32_t k = column_of(first, second, c);
    tile[thread_id() % PAIR][c] = i < a.m && k < a.n ? a.x[i * a.row + k * a.column] : 0;
  }
}

template <typename T>
RDNA_DEVICE void multiply(const matrix<T> &a, uint32_t first, uint32_t second, jacobi_shared<T> &s) {
  uint32_t i = thread_id() / JACOBI_BLOCK, j = thread_id() % JACOBI_BLOCK;
  T sum[2][2] = {};
  for (uint32_t base = 0; base < a.m; base += PAIR) {
    load_tile<T>(a, first, second, base, s.tile);
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
}

template <typename T>
RDNA_DEVICE T size_of(T v) {
  return v < 0 ? -v : v;
}

/* Of lengths |left| and |right|, or from both sides of the roots of what stands on the diagonal. */
template <bool both, typename T>
RDNA_DEVICE bool beyond(const struct jacobi_args &a, T product, T limit, T left, T right) {
  T least = (T)a.negligible, size = size_of(product);
  return (both ? size > least : left > least && right > least) && size > limit * left * right;
}

/* 0: all are orthogonal; 1: nearly, so that this turn is the last; 2: not yet. */
template <bool both, typename T>
RDNA_DEVICE uint32_t angles(const struct jacobi_args &a, jacobi_shared<T> &s) {
  uint32_t found = 0;
  group_barrier();
  if (thread_id() < PAIR) s.length[thread_id()] = root(size_of(s.products[thread_id()][thread_id()]));
  group_barrier();
  for (uint32_t e = thread_id(); e < PAIR * PAIR; e += JACOBI_THREADS) {
    uint32_t i = e / PAIR, j = e % PAIR;
    T p = s.products[i][j];
    if (i < j && beyond<both, T>(a, p, (T)a.smallest, s.length[i], s.length[j])) found = max_u32(found, 1);
    if (i < j && beyond<both, T>(a, p, (T)a.small, s.length[i], s.length[j])) found = 2;
  }
  return group_max_u32<JACOBI_THREADS>(found, s.scratch);
}

/* The rotation after which columns p and q are orthogonal, by the smaller of two angles. */
template <bool both, typename T>
RDNA_DEVICE void find_rotation(const struct jacobi_args &a, uint32_t width, uint32_t round, jacobi_shared<T> &s) {
  uint32_t p, q;
  if (thread_id() >= width / 2) return;
  jacobi_pair(width, round, thread_id(), &p, &q);
  T product = s.products[p][q], left = s.products[p][p], right = s.products[q][q], half = 0, n = 0;
  if (beyond<both, T>(a, product, (T)a.smallest, root(size_of(left)), root(size_of(right)))) {
    T cotangent = (right - left) / (2 * product), size = size_of(cotangent);
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

/* A thread turns the two rows and two columns where two pairs cross, and writes what mirrors them. What a rotation is
 * for is 0 afterwards. */
template <typename T>
RDNA_DEVICE void rotate_products(uint32_t width, uint32_t round, jacobi_shared<T> &s) {
  uint32_t pairs = width / 2, i = thread_id() / JACOBI_BLOCK, j = thread_id() % JACOBI_BLOCK, p[2], q[2];
  if (i <= j && j < pairs) {
    jacobi_pair(width, round, i, &p[0], &p[1]);
    jacobi_pair(width, round, j, &q[0], &q[1]);
    T e[2][2] = {{s.products[p[0]][q[0]], s.products[p[0]][q[1]]}, {s.products[p[1]][q[0]], s.products[p[1]][q[1]]}};
#pragma unroll
    for (int k = 0; k < 2; k++) rotate<T>(s.half[i], s.sine[i], e[0][k], e[1][k]);
#pragma unroll
    for (int k = 0; k < 2; k++) rotate<T>(s.half[j], s.sine[j], e[k][0], e[k][1]);
    if (i == j && s.sine[i] != 0) e[0][1] = e[1][0] = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) s.products[p[k / 2]][q[k % 2]] = s.products[q[k % 2]][p[k / 2]] = e[k / 2][k % 2];
  }
#pragma unroll 1
  for (uint32_t e = thread_id(); e < pairs * PAIR; e += JACOBI_THREADS) {
    uint32_t k = e / PAIR, row = e % PAIR;
    jacobi_pair(width, round, k, &q[0], &q[1]);
    rotate<T>(s.half[k], s.sine[k], s.turn[row][q[0]], s.turn[row][q[1]]);
  }
}

/* Row |row| of a tile times column |c| of a turn. */
template <typename T>
RDNA_DEVICE T times(const square<T> &tile, uint32_t row, const square<T> &turn, uint32_t c) {
  T sum = 0;
#pragma unroll 8
  for (uint32_t r = 0; r < PAIR; r++) sum = fused(tile[row][r], turn[r][c], sum);
  return sum;
}

/* Rows |base| to base + PAIR of the pair's columns are turned. */
template <typename T>
RDNA_DEVICE void turn_rows(const matrix<T> &a, uint32_t first, uint32_t second, uint32_t base, jacobi_shared<T> &s) {
  load_tile<T>(a, first, second, base, s.tile);
  group_barrier();
  uint32_t row = thread_id() % PAIR, i = base + row;
#pragma unroll 1
  for (uint32_t c = thread_id() / PAIR; c < PAIR; c += JACOBI_THREADS / PAIR) {
    uint32_t k = column_of(first, second, c);
    T sum = times<T>(s.tile, row, s.turn, c);
    if (i < a.m && k < a.n) a.x[i * a.row + k * a.column] = sum;
  }
  group_barrier();
}

/* One sweep over the products of a pair. */
template <bool both, typename T>
RDNA_DEVICE void sweep_pair(const struct jacobi_args &a, uint32_t width, jacobi_shared<T> &s) {
  for (uint32_t round = 0; round + 1 < width; round++) {
    find_rotation<both, T>(a, width, round, s);
    group_barrier();
    rotate_products<T>(width, round, s);
    group_barrier();
  }
}

template <typename T>
RDNA_DEVICE matrix<T> matrix_of(const struct jacobi_args &a, uint32_t b) {
  return {(T *)a.a + (int64_t)b * a.stride, a.row, a.column, a.m, a.n};
}

template <typename T>
RDNA_DEVICE void jacobi(const struct jacobi_args &args, jacobi_shared<T> &s) {
  for (uint32_t unit = group_id_x(); unit < args.units; unit += group_count_x()) {
    const struct jacobi_args &a = arguments_again_wide(args);
    uint32_t pairs = a.blocks / 2, width = pairs > 1 ? (uint32_t)PAIR : a.n + a.n % 2, b = unit / pairs, first, second;
    jacobi_pair(a.blocks, a.round, unit % pairs, &first, &second);
    if (pairs > 1 && second * JACOBI_BLOCK >= a.n) continue;
    int32_t *turned = a.turned + (int64_t)b * a.total + a.sweep;
    if (a.sweep && !turned[-1]) continue;
    for (uint32_t sweep = 0; sweep < arguments_again_wide(args).sweeps; sweep++) {
      multiply<T>(matrix_of<T>(arguments_again_wide(args), b), first, second, s);
      uint32_t found = angles<false, T>(arguments_again_wide(args), s);
      if (!found) break;
      if (found > 1 && thread_id() == 0) atomic_or_u32((uint32_t *)turned + sweep, 1);
      sweep_pair<false, T>(arguments_again_wide(args), width, s);
      matrix<T> x = matrix_of<T>(arguments_again_wide(args), b);
      for (uint32_t base = 0; base < x.m; base += PAIR) turn_rows<T>(x, first, second, base, s);
      group_barrier_global();
      if (found == 1) break;
    }
    group_barrier();
  }
}

/* The values where the rows of one pair of blocks cross the columns of another. */
struct crossing {
  uint32_t rows[2], columns[2];
};

template <typename T>
RDNA_DEVICE void load_crossing(const struct jacobi_args &a, const T *x, const crossing &at, square<T> &out) {
  uint32_t j = thread_id() % PAIR, k = column_of(at.columns[0], at.columns[1], j);
#pragma unroll
  for (uint32_t r = thread_id() / PAIR; r < PAIR; r += JACOBI_THREADS / PAIR) {
    uint32_t i = column_of(at.rows[0], at.rows[1], r);
    out[r][j] = i < a.n && k < a.n ? x[i * a.row + k] : 0;
  }
}
/* Of |values|, or with |transposed| of its transpose. */
template <bool transposed, typename T>
RDNA_DEVICE void store_crossing(const struct jacobi_args &a, T *x, const crossing &at, const square<T> &values) {
  uint32_t j = thread_id() % PAIR, k = column_of(at.columns[0], at.columns[1], j);
#pragma unroll
  for (uint32_t r = thread_id() / PAIR; r < PAIR; r += JACOBI_THREADS / PAIR) {
    uint32_t i = column_of(at.rows[0], at.rows[1], r);
    if (i < a.n && k < a.n) x[i * a.row + k] = transposed ? values[j][r] : values[r][j];
  }
}

/* out = in turn, or with |transposed| its transpose. */
template <bool transposed, typename T>
RDNA_DEVICE void turn_tile(const square<T> &in, const square<T> &turn, square<T> &out) {
  uint32_t row = thread_id() % PAIR;
#pragma unroll 1
  for (uint32_t c = thread_id() / PAIR; c < PAIR; c += JACOBI_THREADS / PAIR)
    (transposed ? out[c][row] : out[row][c]) = times<T>(in, row, turn, c);
}

template <typename T>
RDNA_DEVICE matrix<T> vectors_of(const struct jacobi_both_args &a, uint32_t b) {
  return {(T *)a.v + (int64_t)b * a.v_stride, a.v_row, a.v_column, a.of.m, a.of.n};
}

/* Sweeps over the products of a pair. Returns whether anything was turned. */
template <typename T>
RDNA_DEVICE bool sweep_both(const struct jacobi_both_args &args, uint32_t width, int32_t *turned, jacobi_shared<T> &s) {
  bool moved = false;
  for (uint32_t sweep = 0; sweep < arguments_again_wide(args).of.sweeps; sweep++) {
    uint32_t found = angles<true, T>(arguments_again_wide(args).of, s);
    if (!found) break;
    moved = true;
    if (found > 1 && thread_id() == 0) atomic_or_u32((uint32_t *)turned + sweep, 1);
    sweep_pair<true, T>(arguments_again_wide(args).of, width, s);
    if (found == 1) break;
  }
  return moved;
}

template <typename T>
RDNA_DEVICE void jacobi_both(const struct jacobi_both_args &args, jacobi_shared<T> &s) {
  for (uint32_t unit = group_id_x(); unit < args.of.units; unit += group_count_x()) {
    const struct jacobi_args &a = arguments_again_wide(args).of;
    uint32_t pairs = a.blocks / 2, width = pairs > 1 ? (uint32_t)PAIR : a.n + a.n % 2, b = unit / pairs, first, second;
    int32_t *turned = a.turned + (int64_t)b * a.total + a.sweep;
    if (a.sweep && !turned[-1]) continue;
    jacobi_pair(a.blocks, a.round, unit % pairs, &first, &second);
    const crossing at = {{first, second}, {first, second}};
    T *x = (T *)a.a + (int64_t)b * a.stride;
    load_crossing<T>(a, x, at, s.products);
    for (uint32_t e = thread_id(); e < PAIR * PAIR; e += JACOBI_THREADS)
      s.turn[e / PAIR][e % PAIR] = e / PAIR == e % PAIR;
    bool moved = (pairs == 1 || second * JACOBI_BLOCK < a.n) && sweep_both<T>(args, width, turned, s);
    group_barrier();
    if (moved) store_crossing<false, T>(arguments_again_wide(args).of, x, at, s.products);
    if (pairs > 1) {
      T *to = (T *)arguments_again_wide(args).turns + (int64_t)unit * PAIR * PAIR;
      if (thread_id() == 0) arguments_again_wide(args).moved[unit] = moved;
      for (uint32_t e = thread_id(); moved && e < PAIR * PAIR; e += JACOBI_THREADS) to[e] = s.turn[e / PAIR][e % PAIR];
    } else if (moved) {
      matrix<T> v = vectors_of<T>(arguments_again_wide(args), b);
      for (uint32_t base = 0; v.x && base < v.m; base += PAIR) turn_rows<T>(v, first, second, base, s);
    }
    group_barrier();
  }
}

/* The turn of |pair|, counted through the batch: the one that jacobi_both left, or none. */
template <typename T>
RDNA_DEVICE void load_turn(const struct jacobi_both_args &a, uint32_t pair, square<T> &turn) {
  const T *from = (const T *)a.turns + (int64_t)pair * PAIR * PAIR;
  bool moved = a.moved[pair];
#pragma unroll
  for (uint32_t e = thread_id(); e < PAIR * PAIR; e += JACOBI_THREADS)
    turn[e / PAIR][e % PAIR] = moved ? from[e] : (T)(e / PAIR == e % PAIR);
}

/* Turns the rows of pair |i| and the columns of pair |j|, and writes what mirrors them. */
template <typename T>
RDNA_DEVICE void turn_crossing(const struct jacobi_both_args &a, uint32_t b, uint32_t i, uint32_t j,
                               jacobi_shared<T> &s) {
  uint32_t pairs = a.of.blocks / 2;
  crossing at, mirror;
  jacobi_pair(a.of.blocks, a.of.round, i, &at.rows[0], &at.rows[1]);
  jacobi_pair(a.of.blocks, a.of.round, j, &at.columns[0], &at.columns[1]);
  mirror = {{at.columns[0], at.columns[1]}, {at.rows[0], at.rows[1]}};
  T *x = (T *)a.of.a + (int64_t)b * a.of.stride;
  load_crossing<T>(a.of, x, mirror, s.tile);
  load_turn<T>(a, b * pairs + i, s.turn);
  group_barrier();
  turn_tile<true, T>(s.tile, s.turn, s.products);
  group_barrier();
  load_turn<T>(a, b * pairs + j, s.turn);
  group_barrier();
  turn_tile<false, T>(s.products, s.turn, s.tile);
  group_barrier();
  store_crossing<false, T>(a.of, x, at, s.tile);
  store_crossing<true, T>(a.of, x, mirror, s.tile);
}

template <typename T>
RDNA_DEVICE void jacobi_across(const struct jacobi_both_args &args, jacobi_shared<T> &s) {
  for (uint32_t unit = group_id_x(); unit < args.of.units; unit += group_count_x()) {
    const struct jacobi_both_args &a = arguments_again_wide(args);
    uint32_t pairs = a.of.blocks / 2, each = jacobi_tiles(pairs, a.of.m), b = unit / each, i = unit % each / pairs,
             j = unit % each % pairs, first, second;
    if (a.of.sweep && !a.of.turned[(int64_t)b * a.of.total + a.of.sweep - 1]) continue;
    const int32_t *moved = a.moved + (int64_t)b * pairs;
    if (i < pairs && i < j && (moved[i] || moved[j])) turn_crossing<T>(a, b, i, j, s);
    if (i >= pairs && moved[j]) {
      load_turn<T>(a, b * pairs + j, s.turn);
      jacobi_pair(a.of.blocks, a.of.round, j, &first, &second);
      turn_rows<T>(vectors_of<T>(a, b), first, second, (i - pairs) * PAIR, s);
    }
    group_barrier();
  }
}

#define KERNELS(suffix, T)                                                        \
  RDNA_KERNEL(JACOBI_THREADS) jacobi_##suffix(struct jacobi_args a) {             \
    RDNA_SHARED jacobi_shared<T> s;                                               \
    jacobi<T>(a, s);                                                              \
  }                                                                               \
  RDNA_KERNEL(JACOBI_THREADS) jacobi_both_##suffix(struct jacobi_both_args a) {   \
    RDNA_SHARED jacobi_shared<T> s;                                               \
    jacobi_both<T>(a, s);                                                         \
  }                                                                               \
  RDNA_KERNEL(JACOBI_THREADS) jacobi_across_##suffix(struct jacobi_both_args a) { \
    RDNA_SHARED jacobi_shared<T> s;                                               \
    jacobi_across<T>(a, s);                                                       \
  }
KERNELS(f32, float)
KERNELS(f64, double)
