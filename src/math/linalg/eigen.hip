/* Eigenvalues by groups of threads. Sums have one order and every thread decides alike: the twins give the same bits.
 */
#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/eigen_kernels.h"

#define EIGEN_FUNCTION RDNA_DEVICE
#define EIGEN_ME (int32_t)thread_id()
#define EIGEN_MEET_ALL group_barrier_global

#define EIGEN(name) small_f32_##name
#define EIGEN_THREADS EIGEN_SMALL_THREADS
#define EIGEN_MEET group_barrier
#include "math/linalg/eigen_f32.h"
#define EIGEN(name) small_f64_##name
#define EIGEN_THREADS EIGEN_SMALL_THREADS
#define EIGEN_MEET group_barrier
#include "math/linalg/eigen_f64.h"
#define EIGEN(name) large_f32_##name
#define EIGEN_THREADS EIGEN_LARGE_THREADS
#define EIGEN_MEET group_barrier_global
#include "math/linalg/eigen_f32.h"
#define EIGEN(name) large_f64_##name
#define EIGEN_THREADS EIGEN_LARGE_THREADS
#define EIGEN_MEET group_barrier_global
#include "math/linalg/eigen_f64.h"

/* Exponents as they are stored; infinity and NaN have the largest. */
template <typename T>
struct layout;
template <>
struct layout<float> {
  enum { BIAS = 127 };
  RDNA_DEVICE uint32_t exponent(float v) { return bits_as<uint32_t>(v) >> 23 & 255; }
  RDNA_DEVICE float power(uint32_t exponent) { return bits_as<float>(exponent << 23); }
};
template <>
struct layout<double> {
  enum { BIAS = 1023 };
  RDNA_DEVICE uint32_t exponent(double v) { return (uint32_t)(bits_as<uint64_t>(v) >> 52) & 2047; }
  RDNA_DEVICE double power(uint32_t exponent) { return bits_as<double>((uint64_t)exponent << 52); }
};

/* The exponent of matrix |a|'s largest value, from 1 on; values that are not finite have 2 BIAS + 1. */
template <typename T, int threads>
RDNA_DEVICE uint32_t largest_exponent(const T *a, int64_t row, int64_t column, uint32_t n, uint32_t *scratch) {
  uint32_t most = 1;
  for (uint32_t e = thread_id(); e < n * n; e += threads)
    most = max_u32(most, layout<T>::exponent(a[e / n * row + e % n * column]));
  return group_max_u32<threads>(most, scratch);
}

/* What is found of a matrix with values that are not finite. */
template <typename T, int threads>
RDNA_DEVICE void give_up(const struct eigen_args &a, uint32_t b) {
  T *values = (T *)a.values + 2 * (int64_t)b * a.n, *vectors = (T *)a.vectors + 2 * (int64_t)b * a.n * a.n;
  for (uint32_t e = thread_id(); e < 2 * a.n; e += threads) values[e] = __builtin_nanf("");
  for (uint32_t e = thread_id(); a.vectors && e < 2 * a.n * a.n; e += threads) vectors[e] = __builtin_nanf("");
  if (thread_id() == 0) a.info[b] = (int32_t)a.n;
}

/* h = a / power(e), a matrix in rows of |ld|. */
template <typename T, int threads>
RDNA_DEVICE void load(const struct eigen_args &a, uint32_t b, uint32_t e, T *h, uint32_t ld) {
  const T *from = (const T *)a.a + b * a.stride;
  T scale = layout<T>::power(2 * layout<T>::BIAS - e);
  for (uint32_t k = thread_id(); k < a.n * a.n; k += threads)
    h[k / a.n * ld + k % a.n] = from[k / a.n * a.row + k % a.n * a.column] * scale;
}

/* Matrices in turn, each by |place|_|suffix| in h, whose rows are |ld| values apart. */
#define MATRICES(place, suffix, T, threads, h_of, ld)                                                        \
  RDNA_SHARED uint32_t scratch[GROUP_SCRATCH(threads)];                                                      \
  for (uint32_t b = group_id_x(); b < args.batch; b += group_count_x()) {                                    \
    const struct eigen_args &a = arguments_again(args);                                                      \
    int64_t square = (int64_t)b * a.n * a.n;                                                                 \
    uint32_t e = largest_exponent<T, threads>((const T *)a.a + b * a.stride, a.row, a.column, a.n, scratch); \
    if (e > 2 * layout<T>::BIAS) {                                                                           \
      give_up<T, threads>(a, b);                                                                             \
      group_barrier();                                                                                       \
      continue;                                                                                              \
    }                                                                                                        \
    e = min_u32(e, 2 * layout<T>::BIAS - 1);                                                                 \
    load<T, threads>(a, b, e, h_of, ld);                                                                     \
    place##_##suffix##_matrix m = {h_of, a.z ? (T *)a.z + square : nullptr, (int32_t)(ld), (int32_t)a.n};    \
    T norm;                                                                                                  \
    int32_t left = place##_##suffix##_reduce(&m, &norm);                                                     \
    const struct eigen_args &to = arguments_again(args);                                                     \
    place##_##suffix##_give(&m, norm, layout<T>::power(e), (T *)to.x + 2 * square,                           \
                            (T *)to.values + 2 * (int64_t)b * to.n, (T *)to.vectors + 2 * square);           \
    if (thread_id() == 0) to.info[b] = left;                                                                 \
    group_barrier();                                                                                         \
  }

enum { LD = EIGEN_SMALL + 1 }; /* rows begin in different banks */

#define KERNELS(suffix, T)                                                        \
  RDNA_KERNEL(EIGEN_SMALL_THREADS) eigen_small_##suffix(struct eigen_args args) { \
    RDNA_SHARED T h[EIGEN_SMALL * LD];                                            \
    MATRICES(small, suffix, T, EIGEN_SMALL_THREADS, h, LD)                        \
  }                                                                               \
  RDNA_KERNEL(EIGEN_LARGE_THREADS) eigen_large_##suffix(struct eigen_args args) { \
    MATRICES(large, suffix, T, EIGEN_LARGE_THREADS, (T *)a.h + square, a.n)       \
  }
KERNELS(f32, float)
KERNELS(f64, double)
