/* The same on the host, in the same order. */
#include <math.h>
#include <stdbool.h>

#include "kernel/host.h"
#include "math/linalg/jacobi_kernels.h"

enum { PAIR = 2 * JACOBI_BLOCK };

static int64_t column_of(uint32_t first, uint32_t second, int64_t c) {
  return c < JACOBI_BLOCK ? (int64_t)first * JACOBI_BLOCK + c : ((int64_t)second - 1) * JACOBI_BLOCK + c;
}

#define TWINS(suffix, T, root, fused, STEEP)                                                                          \
  typedef struct pair_##suffix {                                                                                      \
    T products[PAIR][PAIR], turn[PAIR][PAIR], tile[PAIR][PAIR], length[PAIR];                                         \
  } pair_##suffix;                                                                                                    \
  static void load_##suffix(const struct jacobi_args *a, const T *x, uint32_t first, uint32_t second, int64_t base,   \
                            pair_##suffix *s) {                                                                       \
    for (int64_t c = 0; c < PAIR; c++) {                                                                              \
      int64_t k = column_of(first, second, c);                                                                        \
      for (int64_t r = 0; r < PAIR; r++)                                                                              \
        s->tile[r][c] = base + r < a->m && k < a->n ? x[(base + r) * a->row + k * a->column] : 0;                     \
    }                                                                                                                 \
  }                                                                                                                   \
  static void multiply_##suffix(const struct jacobi_args *a, const T *x, uint32_t first, uint32_t second,             \
                                pair_##suffix *s) {                                                                   \
    for (int64_t i = 0; i < PAIR; i++) {                                                                              \
      for (int64_t j = 0; j < PAIR; j++) s->products[i][j] = 0, s->turn[i][j] = i == j;                               \
    }                                                                                                                 \
    for (int64_t base = 0; base < a->m; base += PAIR) {                                                               \
      T part[PAIR][PAIR] = {{0}};                                                                                     \
      load_##suffix(a, x, first, second, base, s);                                                                    \
      for (int64_t r = 0; r < PAIR; r++) {                                                                            \
        for (int64_t i = 0; i < PAIR; i++) {                                                                          \
          for (int64_t j = 0; j < PAIR; j++) part[i][j] = fused(s->tile[r][i], s->tile[r][j], part[i][j]);            \
        }                                                                                                             \
      }                                                                                                               \
      for (int64_t i = 0; i < PAIR; i++) {                                                                            \
        for (int64_t j = 0; j < PAIR; j++) s->products[i][j] += part[i][j];                                           \
      }                                                                                                               \
    }                                                                                                                 \
    for (int64_t i = 0; i < PAIR; i++) s->length[i] = root(s->products[i][i]);                                        \
  }                                                                                                                   \
  static bool beyond_##suffix(const struct jacobi_args *a, T product, T limit, T left, T right) {                     \
    T size = product < 0 ? -product : product;                                                                        \
    return left > (T)a->negligible && right > (T)a->negligible && size > limit * left * right;                        \
  }                                                                                                                   \
  static int angles_##suffix(const struct jacobi_args *a, const pair_##suffix *s) {                                   \
    int found = 0;                                                                                                    \
    for (int64_t i = 0; i < PAIR; i++) {                                                                              \
      for (int64_t j = i + 1; j < PAIR; j++) {                                                                        \
        T p = s->products[i][j], left = s->length[i], right = s->length[j];                                           \
        if (found < 1 && beyond_##suffix(a, p, (T)a->smallest, left, right)) found = 1;                               \
        if (beyond_##suffix(a, p, (T)a->small, left, right)) found = 2;                                               \
      }                                                                                                               \
    }                                                                                                                 \
    return found;                                                                                                     \
  }                                                                                                                   \
  static void rotate_##suffix(T half, T sine, T *x, T *y) {                                                           \
    T left = *x, right = *y;                                                                                          \
    *x = fused(-sine, fused(half, left, right), left), *y = fused(sine, fused(-half, right, left), right);            \
  }                                                                                                                   \
  static void find_##suffix(const struct jacobi_args *a, uint32_t p, uint32_t q, const pair_##suffix *s, T *half,     \
                            T *sine) {                                                                                \
    T product = s->products[p][q], left = s->products[p][p], right = s->products[q][q];                               \
    *half = 0, *sine = 0;                                                                                             \
    if (!beyond_##suffix(a, product, (T)a->smallest, root(left), root(right))) return;                                \
    T cotangent = (right - left) / (2 * product), size = cotangent < 0 ? -cotangent : cotangent;                      \
    T t = size > (T)STEEP ? 1 / (2 * size) : 1 / (size + root(fused(size, size, (T)1)));                              \
    if (cotangent < 0) t = -t;                                                                                        \
    T c = 1 / root(fused(t, t, (T)1));                                                                                \
    *sine = c * t, *half = *sine / (1 + c);                                                                           \
  }                                                                                                                   \
  static void round_##suffix(const struct jacobi_args *a, uint32_t width, uint32_t round, pair_##suffix *s) {         \
    T c[JACOBI_BLOCK], n[JACOBI_BLOCK];                                                                               \
    uint32_t p[JACOBI_BLOCK], q[JACOBI_BLOCK];                                                                        \
    for (uint32_t i = 0; i < width / 2; i++) {                                                                        \
      jacobi_pair(width, round, i, &p[i], &q[i]);                                                                     \
      find_##suffix(a, p[i], q[i], s, &c[i], &n[i]);                                                                  \
    }                                                                                                                 \
    for (uint32_t i = 0; i < width / 2; i++) {                                                                        \
      for (uint32_t k = 0; k < width; k++) rotate_##suffix(c[i], n[i], &s->products[p[i]][k], &s->products[q[i]][k]); \
    }                                                                                                                 \
    for (uint32_t i = 0; i < width / 2; i++) {                                                                        \
      for (uint32_t k = 0; k < width; k++) rotate_##suffix(c[i], n[i], &s->products[k][p[i]], &s->products[k][q[i]]); \
      for (uint32_t k = 0; k < PAIR; k++) rotate_##suffix(c[i], n[i], &s->turn[k][p[i]], &s->turn[k][q[i]]);          \
    }                                                                                                                 \
  }                                                                                                                   \
  static void turn_##suffix(const struct jacobi_args *a, T *x, uint32_t first, uint32_t second, pair_##suffix *s) {   \
    for (int64_t base = 0; base < a->m; base += PAIR) {                                                               \
      load_##suffix(a, x, first, second, base, s);                                                                    \
      for (int64_t row = 0; row < PAIR && base + row < a->m; row++) {                                                 \
        T sum[PAIR] = {0};                                                                                            \
        for (int64_t r = 0; r < PAIR; r++) {                                                                          \
          for (int64_t c = 0; c < PAIR; c++) sum[c] = fused(s->tile[row][r], s->turn[r][c], sum[c]);                  \
        }                                                                                                             \
        for (int64_t c = 0; c < PAIR; c++) {                                                                          \
          int64_t k = column_of(first, second, c);                                                                    \
          if (k < a->n) x[(base + row) * a->row + k * a->column] = sum[c];                                            \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static void units_##suffix(void *context, int64_t begin, int64_t end) {                                             \
    const struct jacobi_args *a = context;                                                                            \
    uint32_t pairs = a->blocks / 2, width = pairs > 1 ? (uint32_t)PAIR : a->n + a->n % 2;                             \
    pair_##suffix s;                                                                                                  \
    for (int64_t unit = begin; unit < end; unit++) {                                                                  \
      uint32_t first, second;                                                                                         \
      int64_t b = unit / pairs;                                                                                       \
      jacobi_pair(a->blocks, a->round, (uint32_t)(unit % pairs), &first, &second);                                    \
      if (pairs > 1 && second * JACOBI_BLOCK >= a->n) continue;                                                       \
      T *x = (T *)a->a + b * a->stride;                                                                               \
      int32_t *turned = a->turned + b * a->total + a->sweep;                                                          \
      if (a->sweep && !turned[-1]) continue;                                                                          \
      for (uint32_t sweep = 0; sweep < a->sweeps; sweep++) {                                                          \
        multiply_##suffix(a, x, first, second, &s);                                                                   \
        int found = angles_##suffix(a, &s);                                                                           \
        if (!found) break;                                                                                            \
        if (found > 1) __atomic_store_n(&turned[sweep], 1, __ATOMIC_RELAXED);                                         \
        for (uint32_t round = 0; round + 1 < width; round++) round_##suffix(a, width, round, &s);                     \
        turn_##suffix(a, x, first, second, &s);                                                                       \
        if (found == 1) break;                                                                                        \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  void RDNA_HOST_KERNEL(jacobi_##suffix)(const void *args, rdna_grid grid) {                                          \
    struct jacobi_args a = *(const struct jacobi_args *)args;                                                         \
    rdna__parallel_for(a.units, 1, units_##suffix, &a);                                                               \
  }
TWINS(f32, float, sqrtf, __builtin_fmaf, 0x1p13f)
TWINS(f64, double, sqrt, __builtin_fma, 0x1p28)
