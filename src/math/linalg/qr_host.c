/* The same on the host, in the same order. */
#include <math.h>
#include <string.h>

#include "kernel/host.h"
#include "math/linalg/exponent_host.h"
#include "math/linalg/qr_kernels.h"

enum { TEAM = 32 };

#define TWINS(suffix, T, root, fused, BIAS, VAGUE)                                                               \
  /* Adds what the threads of a team have, as a butterfly does. */                                               \
  static T join_##suffix(T *lanes) {                                                                             \
    for (int64_t mask = 1; mask < TEAM; mask *= 2) {                                                             \
      for (int64_t i = 0; i < TEAM; i += 2 * mask) lanes[i] += lanes[i + mask];                                  \
    }                                                                                                            \
    return lanes[0];                                                                                             \
  }                                                                                                              \
  static T product_##suffix(const T *x, const T *y, int64_t row, int64_t first, int64_t m, T scale) {            \
    T lanes[TEAM] = {0};                                                                                         \
    for (int64_t i = first; i < m; i++) {                                                                        \
      T *lane = &lanes[(i - first) % TEAM];                                                                      \
      *lane = fused(x[i * row] * scale, y[i * row] * scale, *lane);                                              \
    }                                                                                                            \
    return join_##suffix(lanes);                                                                                 \
  }                                                                                                              \
  static uint32_t largest_##suffix(const struct qr_args *a, int64_t first, int64_t columns, const T *x) {        \
    uint32_t most = 1;                                                                                           \
    for (int64_t j = 0; j < columns; j++) {                                                                      \
      for (int64_t i = first; i < a->m; i++) {                                                                   \
        uint32_t exponent = exponent_##suffix(x[i * a->row + j * a->column]);                                    \
        if (exponent <= 2 * BIAS && exponent > most) most = exponent;                                            \
      }                                                                                                          \
    }                                                                                                            \
    return most < 2 * BIAS ? most : 2 * BIAS - 1;                                                                \
  }                                                                                                              \
  static T squares_##suffix(const struct qr_args *a, const T *c, int64_t j, int64_t before, uint32_t exponent) { \
    T lanes[TEAM] = {0}, scale = power_##suffix(2 * BIAS - exponent);                                            \
    for (int64_t i = j + 1; i < a->m; i++) {                                                                     \
      T *lane = &lanes[(i - before) % TEAM], v = c[i * a->row] * scale;                                          \
      *lane = fused(v, v, *lane);                                                                                \
    }                                                                                                            \
    return join_##suffix(lanes);                                                                                 \
  }                                                                                                              \
  /* The sum of the next column's squares is in the order of the threads that have just changed it. */           \
  static T reflection_##suffix(const struct qr_args *a, T *c, int64_t j, uint32_t exponent) {                    \
    int64_t row = a->row;                                                                                        \
    T alpha = c[j * row], square = squares_##suffix(a, c, j, j ? j : 1, exponent);                               \
    if (square < (T)VAGUE) {                                                                                     \
      exponent = largest_##suffix(a, j, 1, c);                                                                   \
      square = squares_##suffix(a, c, j, j + 1, exponent);                                                       \
    }                                                                                                            \
    if (square == 0) return 0;                                                                                   \
    T scaled = alpha * power_##suffix(2 * BIAS - exponent);                                                      \
    T beta = root(fused(scaled, scaled, square)) * power_##suffix(exponent);                                     \
    if (alpha > 0) beta = -beta;                                                                                 \
    T below = alpha - beta;                                                                                      \
    for (int64_t i = j + 1; i < a->m; i++) c[i * row] /= below;                                                  \
    c[j * row] = beta;                                                                                           \
    return (beta - alpha) / beta;                                                                                \
  }                                                                                                              \
  static void reflect_##suffix(const struct qr_args *a, T *x, int64_t j, T tau, T *before) {                     \
    int64_t row = a->row;                                                                                        \
    const T *v = x + j * a->column;                                                                              \
    for (int64_t k = 0; k < (a->given ? j : a->n); k++) {                                                        \
      T *c = x + k * a->column;                                                                                  \
      if (k == j) continue;                                                                                      \
      T sum = product_##suffix(v, c, row, j + 1, a->m, 1) + c[j * row];                                          \
      if (k < j) before[k] = sum;                                                                                \
      if (k < j) continue;                                                                                       \
      T w = -tau * sum;                                                                                          \
      for (int64_t i = j + 1; i < a->m; i++) c[i * row] = fused(w, v[i * row], c[i * row]);                      \
      c[j * row] = fused(-tau, sum, c[j * row]);                                                                 \
    }                                                                                                            \
  }                                                                                                              \
  static void panel_##suffix(const struct qr_args *a, int64_t b) {                                               \
    T *x = (T *)a->a + b * a->stride, *tau = (T *)a->tau + b * a->tau_stride;                                    \
    T t[QR_BLOCK][QR_BLOCK], before[QR_BLOCK];                                                                   \
    uint32_t exponent = a->given ? 0 : largest_##suffix(a, 0, a->n, x);                                          \
    for (int64_t j = 0; j < a->n; j++) {                                                                         \
      if (!a->given) tau[j] = reflection_##suffix(a, x + j * a->column, j, exponent);                            \
      reflect_##suffix(a, x, j, tau[j], before);                                                                 \
      for (int64_t i = 0; i < j; i++) {                                                                          \
        T sum = 0;                                                                                               \
        for (int64_t k = i; k < j; k++) sum = fused(t[i][k], before[k], sum);                                    \
        t[i][j] = -tau[j] * sum;                                                                                 \
      }                                                                                                          \
      t[j][j] = tau[j];                                                                                          \
    }                                                                                                            \
    if (!a->v) return;                                                                                           \
    T *v = (T *)a->v + b * a->m * a->n, *out = (T *)a->t + b * a->n * a->n;                                      \
    for (int64_t j = 0; j < a->n; j++) {                                                                         \
      for (int64_t i = 0; i < a->m; i++) v[j * a->m + i] = i > j ? x[i * a->row + j * a->column] : (T)(i == j);  \
      for (int64_t i = 0; i < a->n; i++) out[i * a->n + j] = i <= j ? t[i][j] : 0;                               \
    }                                                                                                            \
  }                                                                                                              \
  static void panels_##suffix(void *context, int64_t begin, int64_t end) {                                       \
    for (int64_t b = begin; b < end; b++) panel_##suffix(context, b);                                            \
  }                                                                                                              \
  void RDNA_HOST_KERNEL(qr_small_##suffix)(const void *args, rdna_grid grid) {                                   \
    struct qr_args a = *(const struct qr_args *)args;                                                            \
    rdna__parallel_for(a.batch, 4, panels_##suffix, &a);                                                         \
  }                                                                                                              \
  void RDNA_HOST_KERNEL(qr_tall_##suffix)(const void *args, rdna_grid grid) {                                    \
    struct qr_args a = *(const struct qr_args *)args;                                                            \
    rdna__parallel_for(a.batch, 1, panels_##suffix, &a);                                                         \
  }
TWINS(f32, float, sqrtf, __builtin_fmaf, 127, 0x1p-76f)
TWINS(f64, double, sqrt, __builtin_fma, 1023, 0x1p-900)
