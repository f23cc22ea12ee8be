/* fft_steps.h in both types, and where a line lies. */
#ifndef RDNA_MATH_FFT_MATH_H
#define RDNA_MATH_FFT_MATH_H

#include "kernel/scalar.h"
#include "math/fft/fft_kernels.h"

#ifdef __clang__
#define FFT_UNROLL _Pragma("unroll")
#else
#define FFT_UNROLL
#endif

#define FFT_T float
#define FFT_(name) fft_##name##_f32
#define FFT_FMA __builtin_fmaf
#define FFT_DOUBLE 0
#include "math/fft/fft_steps.h"

#define FFT_T double
#define FFT_(name) fft_##name##_f64
#define FFT_FMA __builtin_fma
#define FFT_DOUBLE 1
#include "math/fft/fft_steps.h"

struct fft_line {
  int64_t x, out; /* in reals */
  uint32_t column;
};
RDNA_SCALAR struct fft_line fft_line_of(const struct fft_args *a, uint32_t line) {
  struct fft_line l = {0, 0, line % a->columns};
  line /= a->columns;
  FFT_UNROLL
  for (uint32_t d = 0; d < FFT_RANK; d++) {
    uint32_t i = line % a->size[d];
    line /= a->size[d];
    l.x += i * a->x_outer[d], l.out += i * a->out_outer[d];
  }
  return l;
}

#endif
