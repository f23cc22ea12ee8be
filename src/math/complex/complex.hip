#include "kernel/prelude.h"
#include "math/complex/complex_math.h"

/* |T| is the type in memory, |pair| two of it at a multiple of their bytes. */
template <typename pair>
struct in_memory;
template <>
struct in_memory<complex_pair_f32> {
  typedef uint2 bits;
};
template <>
struct in_memory<complex_pair_f64> {
  typedef uint4 bits;
};
template <typename pair>
RDNA_DEVICE pair load_pair(const void *p, int64_t i) {
  return bits_as<pair>(load_as<typename in_memory<pair>::bits>((const pair *)p + i));
}
template <typename pair>
RDNA_DEVICE void store_pair(void *p, int64_t i, pair v) {
  store_as<typename in_memory<pair>::bits>((pair *)p + i, bits_as<typename in_memory<pair>::bits>(v));
}
template <typename pair>
RDNA_DEVICE complex_value load_value(const void *p, int64_t i) {
  pair v = load_pair<pair>(p, i);
  return complex_value{v.re, v.im};
}
RDNA_DEVICE complex_pair_f32 zip(uint32_t op, complex_pair_f32 a, complex_pair_f32 b, complex_pair_f32 p) {
  return complex_zip_f32(op, a, b, p);
}
RDNA_DEVICE complex_pair_f64 zip(uint32_t op, complex_pair_f64 a, complex_pair_f64 b, complex_pair_f64 p) {
  return complex_zip_f64(op, a, b, p);
}

RDNA_DEVICE uint32_t this_value() { return group_id_x() * COMPLEX_THREADS + thread_id(); }

template <typename T, typename pair>
RDNA_DEVICE void map(const complex_args &a) {
  int64_t at[2];
  if (this_value() >= a.shape.count) return;
  strided_offsets(&a.shape, a.operand, 2, this_value(), at);
  complex_value v = complex_map(a.op, load_value<pair>(a.operand[1].data, at[1]));
  store_pair(a.operand[0].data, at[0], pair{(T)v.re, (T)v.im});
}

template <typename T, typename pair>
RDNA_DEVICE void measure(const complex_args &a) {
  int64_t at[2];
  if (this_value() >= a.shape.count) return;
  strided_offsets(&a.shape, a.operand, 2, this_value(), at);
  ((T *)a.operand[0].data)[at[0]] = (T)complex_measure(a.op, load_value<pair>(a.operand[1].data, at[1]));
}

template <typename T, typename pair>
RDNA_DEVICE void polar(const complex_args &a) {
  int64_t at[3];
  if (this_value() >= a.shape.count) return;
  strided_offsets(&a.shape, a.operand, 3, this_value(), at);
  complex_value v = complex_polar(((const T *)a.operand[1].data)[at[1]], ((const T *)a.operand[2].data)[at[2]]);
  store_pair(a.operand[0].data, at[0], pair{(T)v.re, (T)v.im});
}

template <typename T, typename pair>
RDNA_DEVICE void power(const complex_args &a) {
  int64_t at[3];
  if (this_value() >= a.shape.count) return;
  strided_offsets(&a.shape, a.operand, 3, this_value(), at);
  complex_value constant = {a.constant[0], a.constant[1]};
  complex_value base = a.constants & 2 ? constant : load_value<pair>(a.operand[1].data, at[1]);
  complex_value exponent = a.constants & 4 ? constant : load_value<pair>(a.operand[2].data, at[2]);
  complex_value v = complex_pow(base, exponent);
  store_pair(a.operand[0].data, at[0], pair{(T)v.re, (T)v.im});
}

/* All values are loaded before any is computed, so that loads are in flight together. */
template <typename T, typename pair>
RDNA_DEVICE void zip(const complex_args &a) {
  uint32_t start = group_id_x() * COMPLEX_THREADS * COMPLEX_ZIP_VALUES + thread_id();
  pair constant = {(T)a.constant[0], (T)a.constant[1]}, p = {(T)a.p[0], (T)a.p[1]};
  pair v[2][COMPLEX_ZIP_VALUES];
  int64_t to[COMPLEX_ZIP_VALUES];
#pragma unroll
  for (uint32_t j = 0; j < COMPLEX_ZIP_VALUES; j++) {
    int64_t at[3];
    v[0][j] = v[1][j] = constant;
    if (start + j * COMPLEX_THREADS >= a.shape.count) continue;
    strided_offsets(&a.shape, a.operand, 3, start + j * COMPLEX_THREADS, at);
    to[j] = at[0];
    if (!(a.constants & 2)) v[0][j] = load_pair<pair>(a.operand[1].data, at[1]);
    if (!(a.constants & 4)) v[1][j] = load_pair<pair>(a.operand[2].data, at[2]);
  }
#pragma unroll
  for (uint32_t j = 0; j < COMPLEX_ZIP_VALUES; j++) {
    if (start + j * COMPLEX_THREADS >= a.shape.count) break;
    store_pair(a.operand[0].data, to[j], zip(a.op, v[0][j], v[1][j], p));
  }
}

RDNA_DEVICE void block(const complex_blocks_args &a, complex_pair_f32 x, complex_pair_f32 *out) {
  complex_block_f32(&a, x, out);
}
RDNA_DEVICE void block(const complex_blocks_args &a, complex_pair_f64 x, complex_pair_f64 *out) {
  complex_block_f64(&a, x, out);
}
template <typename pair>
RDNA_DEVICE void blocks(const complex_blocks_args &a) {
  uint32_t i = this_value();
  if (i >= a.count) return;
  uint32_t row = i / a.columns, column = i - row * a.columns, batch = row / a.rows;
  pair rows[2];
  int64_t at = batch * a.x_batch + (row - batch * a.rows) * a.x_row + column * a.x_column;
  block(a, load_pair<pair>(a.x, at), rows);
  store_pair(a.out, 2 * (int64_t)row * a.columns + column, rows[0]);
  store_pair(a.out, (2 * (int64_t)row + 1) * a.columns + column, rows[1]);
}

#define KERNELS(suffix, T)                                                                                           \
  RDNA_KERNEL(COMPLEX_THREADS) complex_map_##suffix(struct complex_args a) { map<T, complex_pair_##suffix>(a); }     \
  RDNA_KERNEL(COMPLEX_THREADS) complex_zip_##suffix(struct complex_args a) { zip<T, complex_pair_##suffix>(a); }     \
  RDNA_KERNEL(COMPLEX_THREADS) complex_pow_##suffix(struct complex_args a) { power<T, complex_pair_##suffix>(a); }   \
  RDNA_KERNEL(COMPLEX_THREADS) complex_measure_##suffix(struct complex_args a) {                                     \
    measure<T, complex_pair_##suffix>(a);                                                                            \
  }                                                                                                                  \
  RDNA_KERNEL(COMPLEX_THREADS) complex_polar_##suffix(struct complex_args a) { polar<T, complex_pair_##suffix>(a); } \
  RDNA_KERNEL(COMPLEX_THREADS) complex_blocks_##suffix(struct complex_blocks_args a) {                               \
    blocks<complex_pair_##suffix>(a);                                                                                \
  }
KERNELS(f32, float)
KERNELS(f64, double)
