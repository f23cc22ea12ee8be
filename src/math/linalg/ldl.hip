/* L D L^T of symmetric matrices. Each value meets the same operations in the same order as on the host: the twins give
 * the same bits. */
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/ldl_kernels.h"
#include "math/linalg/magnitude.h"

template <typename T>
RDNA_DEVICE T size_of(T v) {
  return v < 0 ? -v : v;
}

template <typename T>
struct ldl_matrix {
  T *x;
  uint32_t n;
  /* (i, j), or where that lies above the diagonal (j, i) */
  RDNA_MEMBER T &at(uint32_t i, uint32_t j) const { return x[i >= j ? (uint64_t)j * n + i : (uint64_t)i * n + j]; }
  /* The row from |first| on, but not |row| itself, whose value in row |row| is the largest; n where there is none. */
  RDNA_MEMBER uint32_t largest(uint32_t first, uint32_t row, uint32_t *scratch) const {
    decltype(magnitude(*x)) best = 0;
    uint32_t found = n;
    for (uint32_t i = first + thread_id(); i < n; i += LDL_THREADS) {
      if (i == row) continue;
      auto key = magnitude(at(i, row));
      if (found == n || key > best) best = key, found = i;
    }
    return first_of_largest<LDL_THREADS>(best, found, scratch);
  }
};

/* Rows and columns |one| and |other| > |one| of what is left change places; of the columns before it, |before|'s. */
template <typename T>
RDNA_DEVICE void exchange(const ldl_matrix<T> &a, uint32_t one, uint32_t other, bool has_before) {
  for (uint32_t i = one + 1 + thread_id(); i < a.n; i += LDL_THREADS) {
    if (i == other) continue;
    T v = a.at(i, one);
    a.at(i, one) = a.at(i, other), a.at(i, other) = v;
  }
  if (thread_id() == 0) {
    T v = a.at(one, one);
    a.at(one, one) = a.at(other, other), a.at(other, other) = v;
    if (has_before) {
      v = a.at(one, one - 1);
      a.at(one, one - 1) = a.at(other, one - 1), a.at(other, one - 1) = v;
    }
  }
}

template <typename T>
RDNA_DEVICE void eliminate_one(const ldl_matrix<T> &a, uint32_t k) {
  uint32_t rows = a.n - k - 1;
  T inverse = 1 / a.at(k, k);
  for (uint32_t e = thread_id(); e < rows * rows; e += LDL_THREADS) {
    uint32_t i = k + 1 + e % rows, j = k + 1 + e / rows;
    if (i >= j) a.at(i, j) = fused(-a.at(i, k), inverse * a.at(j, k), a.at(i, j));
  }
  group_barrier_global();
  for (uint32_t i = k + 1 + thread_id(); i < a.n; i += LDL_THREADS) a.at(i, k) *= inverse;
}

/* Rows k and k + 1 together. The block's values are divided by the one across first, which is the largest. */
template <typename T>
RDNA_DEVICE void eliminate_two(const ldl_matrix<T> &a, uint32_t k) {
  uint32_t rows = a.n - k - 2;
  T across = a.at(k + 1, k), first = a.at(k + 1, k + 1) / across, second = a.at(k, k) / across;
  T scale = 1 / fused(first, second, (T)-1) / across;
  for (uint32_t e = thread_id(); e < rows * rows; e += LDL_THREADS) {
    uint32_t i = k + 2 + e % rows, j = k + 2 + e / rows;
    if (i < j) continue;
    T u = scale * fused(first, a.at(j, k), -a.at(j, k + 1)), v = scale * fused(second, a.at(j, k + 1), -a.at(j, k));
    a.at(i, j) = fused(-a.at(i, k + 1), v, fused(-a.at(i, k), u, a.at(i, j)));
  }
  group_barrier_global();
  for (uint32_t i = k + 2 + thread_id(); i < a.n; i += LDL_THREADS) {
    T x = a.at(i, k), y = a.at(i, k + 1);
    a.at(i, k) = scale * fused(first, x, -y), a.at(i, k + 1) = scale * fused(second, y, -x);
  }
}

template <typename T>
RDNA_DEVICE uint32_t factor(const ldl_matrix<T> &a, int32_t *pivots, uint32_t *scratch) {
  uint32_t failed = 0, n = a.n;
  T alpha = (T)LDL_ALPHA;
  for (uint32_t k = 0; k < n;) {
    uint32_t far = a.largest(k + 1, k, scratch), p = k, two = 0;
    T here = size_of(a.at(k, k)), column = far < n ? size_of(a.at(far, k)) : 0;
    bool none = here != here || (here == 0 && column == 0);
    if (!none && !(here >= alpha * column)) {
      T row = size_of(a.at(a.largest(k, far, scratch), far));
      if (!(here >= alpha * column * (column / row))) {
        p = far;
        two = !(size_of(a.at(far, far)) >= alpha * row);
      }
    }
    if (none && !failed) failed = k + 1;
    group_barrier_global(); /* all have read what follows changes */
    if (p != k + two) exchange(a, k + two, p, two);
    if (thread_id() == 0) {
      pivots[k] = two ? -(int32_t)(p + 1) : (int32_t)(p + 1);
      if (two) pivots[k + 1] = -(int32_t)(p + 1);
    }
    group_barrier_global();
    if (two)
      eliminate_two(a, k);
    else if (!none)
      eliminate_one(a, k);
    group_barrier_global();
    k += 1 + two;
  }
  return failed;
}

#define KERNELS(suffix, T)                                                                                           \
  RDNA_KERNEL(LDL_THREADS) ldl_##suffix(struct ldl_args a) {                                                         \
    RDNA_SHARED uint32_t scratch[GROUP_SCRATCH(LDL_THREADS)];                                                        \
    for (uint32_t b = group_id_x(); b < a.batch; b += group_count_x()) {                                             \
      uint32_t failed = factor(ldl_matrix<T>{(T *)a.a + (uint64_t)b * a.n * a.n, a.n}, a.pivots + (uint64_t)b * a.n, scratch); \
      if (thread_id() == 0) a.info[b] = (int32_t)failed;                                                             \
    }                                                                                                                \
  }
KERNELS(f32, float)
KERNELS(f64, double)
