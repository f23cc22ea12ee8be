/* Fourier transforms in group memory. */
#ifndef RDNA_MATH_FFT_KERNELS_H
#define RDNA_MATH_FFT_KERNELS_H

#include <stdint.h>

enum { FFT_THREADS = 256, FFT_POINTS_F32 = 4096, FFT_POINTS_F64 = 2048, FFT_LINES = 256, FFT_RANK = 6 };

enum {
  FFT_REAL_IN = 1 << 0,    /* x is real */
  FFT_HALF_IN = 1 << 1,    /* x is the first half of a spectrum whose rest is its conjugate */
  FFT_REAL_OUT = 1 << 2,   /* the real part alone is written */
  FFT_READ_CONJ = 1 << 3,  /* conjugates what is read, */
  FFT_CHIRP_IN = 1 << 4,   /* multiplies it by the chirp (and by |factor|, if there is one), */
  FFT_LOAD_CONJ = 1 << 5,  /* conjugates it, and transforms */
  FFT_STORE_CONJ = 1 << 6, /* conjugates the transform, */
  FFT_CHIRP_OUT = 1 << 7,  /* multiplies it by the twiddles or the chirp, */
  FFT_WRITE_CONJ = 1 << 8, /* and conjugates what is written */
  FFT_CHIRP = 1 << 9,      /* nothing is read: transforms the chirp's conjugate, wrapped around |whole| */
  FFT_ACROSS_IN = 1 << 10, /* neighbouring threads read neighbouring lines, else neighbouring values of a line */
  FFT_ACROSS_OUT = 1 << 11,
};

/* A line is n values of a transform of |whole|: value i of line l is index (l % columns) x_column + i x_step of it, and
 * its result k is index (l % columns) out_column + k out_step. l / columns counts through |size|, the fastest
 * dimension first. All transforms are forward, exp(-2 pi i j k / n); the inverse one is conjugated before and after.
 *
 *     pass           n       columns    reads value j     writes result k of column c
 *     the only one   whole   1          at j              to k
 *     first of two   n1      n2         at j n2 + c       to k n2 + c, times exp(-2 pi i c k / whole)
 *     second         n2      n1         at c n2 + j       to c + k n1 */
struct fft_args {
  const void *x;
  void *out;
  const void *factor; /* (whole) complex, multiplied by what is read; or NULL */
  int64_t x_stride, out_stride, x_outer[FFT_RANK], out_outer[FFT_RANK]; /* in reals */
  uint64_t radices; /* of the steps, 4 bits each, the first lowest; 0 after the last */
  double scale;
  uint32_t size[FFT_RANK];
  uint32_t n, whole, columns, lines, per_group; /* lines that a group transforms at once */
  uint32_t x_column, x_step, out_column, out_step;
  uint32_t x_count, out_count; /* indices that are read, others are 0; indices that are written */
  uint32_t chirp;              /* its n: value j is exp(-pi i j^2 / n) */
  uint32_t twiddles;           /* whether what is stored is multiplied by them */
  uint32_t flags;
};

#define RDNA_FFT_KERNELS(X)                                \
  X(fft_f32, struct fft_args, FFT_THREADS, rdna__fft_case) \
  X(fft_f64, struct fft_args, FFT_THREADS, rdna__fft_case)

#endif
