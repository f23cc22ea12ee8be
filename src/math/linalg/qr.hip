/* Panels of QR. Teams of 32 threads, whatever the wave's width, add in a fixed order: the twins give the same bits. */
#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/qr_kernels.h"
#include "math/linalg/team.h"

/* Exponents as they are stored, from 1 on, so that power(2 * BIAS - exponent) is a normal number; infinity and NaN have
 * none. A sum of squares below vague() may have lost digits. */
template <typename T>
struct layout;
template <>
struct layout<float> {
  enum { BIAS = 127, NONE = 255 };
  RDNA_DEVICE float vague() { return 0x1p-76f; }
  RDNA_DEVICE uint32_t exponent(float v) { return bits_as<uint32_t>(v) >> 23 & NONE; }
  RDNA_DEVICE float power(uint32_t exponent) { return bits_as<float>(exponent << 23); }
};
template <>
struct layout<double> {
  enum { BIAS = 1023, NONE = 2047 };
  RDNA_DEVICE double vague() { return 0x1p-900; }
  RDNA_DEVICE uint32_t exponent(double v) { return (uint32_t)(bits_as<uint64_t>(v) >> 52) & NONE; }
  RDNA_DEVICE double power(uint32_t exponent) { return bits_as<double>((uint64_t)exponent << 52); }
};

template <typename T>
struct qr_shared {
  T t[QR_BLOCK][QR_BLOCK + 1];
  T before[QR_BLOCK]; /* products of this vector with those before it */
  T alpha, square;    /* of the column whose turn is next: the diagonal's value, and the scaled squares below it */
  uint32_t scratch[GROUP_SCRATCH(QR_TALL_THREADS)];
};

/* Of rows from |first| on, the power of two that brings the largest value near 1: squares neither overflow nor vanish,
 * unless they are nothing beside others. */
template <typename T, int threads>
RDNA_DEVICE uint32_t largest_exponent(const struct qr_args &a, uint32_t first, uint32_t columns, const T *x,
                                      int64_t row, int64_t column, qr_shared<T> &s) {
  uint32_t most = 1;
  for (uint32_t j = 0; j < columns; j++) {
    for (uint32_t i = first + thread_id(); i < a.m; i += threads) {
      uint32_t exponent = layout<T>::exponent(x[i * row + j * column]);
      if (exponent != layout<T>::NONE) most = max_u32(most, exponent);
    }
  }
  return min_u32(group_max_u32<threads>(most, s.scratch), 2 * layout<T>::BIAS - 1);
}

/* Scaled squares below the diagonal of column j, and what stands on it. */
template <typename T>
RDNA_DEVICE void measure(const struct qr_args &a, uint32_t j, const T *c, int64_t row, T scale, qr_shared<T> &s) {
  T sum = 0;
  for (uint32_t i = j + 1 + thread_id() % TEAM; i < a.m; i += TEAM) {
    T v = c[i * row] * scale;
    sum = fused(v, v, sum);
  }
  sum = team_sum(sum);
  if (thread_id() == 0) s.square = sum, s.alpha = c[j * row];
  group_barrier();
}

/* What reflection j is: its vector replaces the column. Returns tau. */
template <typename T, int threads>
RDNA_DEVICE T reflection(const struct qr_args &a, uint32_t j, T *c, int64_t row, uint32_t exponent, qr_shared<T> &s) {
  T alpha = s.alpha, square = s.square;
  if (square < layout<T>::vague()) { /* a column that is little beside the panel is scaled by itself */
    group_barrier();
    exponent = largest_exponent<T, threads>(a, j, 1, c, row, 0, s);
    measure<T>(a, j, c, row, layout<T>::power(2 * layout<T>::BIAS - exponent), s);
    square = s.square;
  }
  if (square == 0) return 0;
  T scaled = alpha * layout<T>::power(2 * layout<T>::BIAS - exponent);
  T beta = root(fused(scaled, scaled, square)) * layout<T>::power(exponent);
  if (alpha > 0) beta = -beta;
  T below = alpha - beta;
  for (uint32_t i = j + 1 + thread_id(); i < a.m; i += threads) c[i * row] /= below;
  if (thread_id() == 0) c[j * row] = beta;
  return (beta - alpha) / beta;
}

/* Column k is reflected, or where it comes before is multiplied with the vector only. The next column's squares are
 * summed meanwhile. */
template <typename T>
RDNA_DEVICE void reflect(const struct qr_args &a, uint32_t j, uint32_t k, T *x, int64_t row, int64_t column, T tau,
                         T scale, qr_shared<T> &s) {
  uint32_t lane = thread_id() % TEAM;
  bool there = k < a.n && (k > j ? !a.given : k < j);
  T *v = x + j * column, *c = x + k * column, sum = 0;
  for (uint32_t i = j + 1 + lane; there && i < a.m; i += TEAM) sum = fused(v[i * row], c[i * row], sum);
  sum = team_sum(sum);
  T square = 0;
  if (there) {
    sum += c[j * row];
    if (k < j && lane == 0) s.before[k] = sum;
    if (k > j) {
      T w = -tau * sum;
      for (uint32_t i = j + 1 + lane; i < a.m; i += TEAM) {
        T e = c[i * row] = fused(w, v[i * row], c[i * row]);
        if (k == j + 1 && i == k) s.alpha = e;
        if (k == j + 1 && i > k) e *= scale, square = fused(e, e, square);
      }
    }
  }
  wave_barrier(); /* the sum was made of this value by all lanes */
  if (there && k > j && lane == 0) c[j * row] = fused(-tau, sum, c[j * row]);
  square = team_sum(square);
  if (there && k == j + 1 && lane == 0) s.square = square;
}

/* Column j of t, from those before: -tau t (v^T v_j). */
template <typename T>
RDNA_DEVICE void column_of_t(uint32_t j, T tau, qr_shared<T> &s) {
  uint32_t i = thread_id();
  if (i > j) return;
  T sum = 0;
  for (uint32_t k = i; k < j; k++) sum = fused(s.t[i][k], s.before[k], sum);
  s.t[i][j] = i == j ? tau : -tau * sum;
}

template <typename T, int threads>
RDNA_DEVICE void factor(const struct qr_args &a, T *x, int64_t row, int64_t column, T *tau, qr_shared<T> &s) {
  uint32_t exponent = 0;
  T scale = 0;
  if (!a.given) {
    exponent = largest_exponent<T, threads>(a, 0, a.n, x, row, column, s);
    scale = layout<T>::power(2 * layout<T>::BIAS - exponent);
    measure<T>(a, 0, x, row, scale, s);
  }
  for (uint32_t j = 0; j < a.n; j++) {
    T now = a.given ? tau[j] : reflection<T, threads>(a, j, x + j * column, row, exponent, s);
    group_barrier_global();
    if (!a.given && thread_id() == 0) tau[j] = now;
    for (uint32_t k = 0; k < a.n; k += threads / TEAM)
      reflect<T>(a, j, k + thread_id() / TEAM, x, row, column, now, scale, s);
    group_barrier_global();
    column_of_t<T>(j, now, s);
  }
  group_barrier();
}

template <typename T, int threads>
RDNA_DEVICE void write_vectors(const struct qr_args &a, uint32_t b, const T *x, int64_t row, int64_t column,
                               const qr_shared<T> &s) {
  if (!a.v) return;
  T *v = (T *)a.v + (int64_t)b * a.m * a.n, *t = (T *)a.t + (int64_t)b * a.n * a.n;
  for (uint32_t j = 0; j < a.n; j++) {
    for (uint32_t i = thread_id(); i < a.m; i += threads)
      v[j * (int64_t)a.m + i] = i > j ? x[i * row + j * column] : (T)(i == j);
  }
  for (uint32_t e = thread_id(); e < a.n * a.n; e += threads) {
    uint32_t i = e / a.n, j = e % a.n;
    t[e] = i <= j ? s.t[i][j] : 0;
  }
}

template <typename T>
using panel = T[QR_SMALL_ROWS * (QR_BLOCK + 1)]; /* rows begin in different banks */

template <typename T>
RDNA_DEVICE void qr_small(const struct qr_args &args, panel<T> &p, qr_shared<T> &s) {
  for (uint32_t b = group_id_x(); b < args.batch; b += group_count_x()) {
    const struct qr_args &a = arguments_again_wide(args);
    bool by_columns = a.row == 1;
    T *x = (T *)a.a + (int64_t)b * a.stride;
    for (uint32_t e = thread_id(); e < a.m * a.n; e += QR_SMALL_THREADS) {
      uint32_t i = by_columns ? e % a.m : e / a.n, k = by_columns ? e / a.m : e % a.n;
      p[i * (QR_BLOCK + 1) + k] = x[i * a.row + k * a.column];
    }
    group_barrier();
    factor<T, QR_SMALL_THREADS>(a, p, QR_BLOCK + 1, 1, (T *)a.tau + b * a.tau_stride, s);
    for (uint32_t e = thread_id(); e < a.m * a.n && !a.given; e += QR_SMALL_THREADS) {
      uint32_t i = by_columns ? e % a.m : e / a.n, k = by_columns ? e / a.m : e % a.n;
      x[i * a.row + k * a.column] = p[i * (QR_BLOCK + 1) + k];
    }
    write_vectors<T, QR_SMALL_THREADS>(a, b, p, QR_BLOCK + 1, 1, s);
    group_barrier();
  }
}

template <typename T>
RDNA_DEVICE void qr_tall(const struct qr_args &args, qr_shared<T> &s) {
  for (uint32_t b = group_id_x(); b < args.batch; b += group_count_x()) {
    const struct qr_args &a = arguments_again_wide(args);
    T *x = (T *)a.a + (int64_t)b * a.stride;
    factor<T, QR_TALL_THREADS>(a, x, a.row, a.column, (T *)a.tau + b * a.tau_stride, s);
    write_vectors<T, QR_TALL_THREADS>(a, b, x, a.row, a.column, s);
    group_barrier();
  }
}

#define KERNELS(suffix, T)                                            \
  RDNA_KERNEL(QR_SMALL_THREADS) qr_small_##suffix(struct qr_args a) { \
    RDNA_SHARED panel<T> p;                                           \
    RDNA_SHARED qr_shared<T> s;                                       \
    qr_small<T>(a, p, s);                                             \
  }                                                                   \
  RDNA_KERNEL(QR_TALL_THREADS) qr_tall_##suffix(struct qr_args a) {   \
    RDNA_SHARED qr_shared<T> s;                                       \
    qr_tall<T>(a, s);                                                 \
  }
KERNELS(f32, float)
KERNELS(f64, double)
