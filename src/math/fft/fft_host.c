/* The same on the host: a line at a time, from one buffer to the other in each step. */
#include "kernel/host.h"
#include "math/fft/fft_math.h"

#define TWIN(suffix, T, POINTS)                                                                             \
  static void transform_##suffix(void *context, int64_t begin, int64_t end) {                               \
    const struct fft_args *a = context;                                                                     \
    struct fft_pair_##suffix buffers[2][POINTS], v[8];                                                      \
    for (int64_t at = begin; at < end; at++) {                                                              \
      struct fft_pair_##suffix *from = buffers[0], *to = buffers[1], *other;                                \
      struct fft_line l = fft_line_of(a, (uint32_t)at);                                                     \
      const T *x = a->x ? (const T *)a->x + l.x : NULL;                                                     \
      for (uint32_t i = 0; i < a->n; i++) from[i] = fft_read_##suffix(a, x, l.column, i);                   \
      uint32_t length = 1;                                                                                  \
      for (uint64_t radices = a->radices; radices; radices >>= 4) {                                         \
        uint32_t radix = radices & 15, apart = a->n / radix;                                                \
        for (uint32_t j = 0; j < apart; j++) {                                                              \
          uint32_t k = j % length;                                                                          \
          for (uint32_t r = 0; r < radix; r++) v[r] = from[j + r * apart];                                  \
          fft_step_##suffix(v, radix, k, length);                                                           \
          for (uint32_t r = 0; r < radix; r++) to[(j - k) * radix + k + r * length] = v[r];                 \
        }                                                                                                   \
        length *= radix, other = from, from = to, to = other;                                               \
      }                                                                                                     \
      for (uint32_t k = 0; k < a->n; k++) fft_write_##suffix(a, (T *)a->out + l.out, l.column, k, from[k]); \
    }                                                                                                       \
  }                                                                                                         \
  void RDNA_HOST_KERNEL(fft_##suffix)(const void *args, rdna_grid grid) {                                   \
    struct fft_args a = *(const struct fft_args *)args;                                                     \
    rdna__parallel_for(a.lines, 1 + 4096 / a.n, transform_##suffix, &a);                                    \
  }
TWIN(f32, float, FFT_POINTS_F32)
TWIN(f64, double, FFT_POINTS_F64)
