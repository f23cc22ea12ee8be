/* Windows put back where they were taken from: what im2col takes apart, with sums where windows overlap. A thread makes
 * a value of |out| from all windows that it lies in, in their order, so that nothing is added by two threads. Each byte
 * of |columns| is read once, each of |out| written once. */
#ifndef RDNA_MATH_FOLD_KERNELS_H
#define RDNA_MATH_FOLD_KERNELS_H

#include "math/pool/pool_kernels.h"

enum { FOLD_THREADS = 256 };

/* Grid x: ceil(count / FOLD_THREADS) groups. */
struct fold_args {
  const void *columns;      /* (planes, window z, y, x, windows along z, y, x) */
  void *out;                /* (planes, size z, y, x) */
  uint32_t count;           /* values of out */
  struct pool_axis axis[3]; /* z, y, x: |in| is out's size, |out| how many windows there are */
};

/* Whether value |p| of an axis lies in window |o|, and which of the window's values it is. */
RDNA_SCALAR bool fold_tap(const struct pool_axis *a, int32_t p, int32_t o, int32_t *tap) {
  int32_t apart = p + a->pad_before - o * a->stride;
  *tap = a->dilation == 1 ? apart : apart / a->dilation;
  return *tap * a->dilation == apart;
}

#define RDNA_FOLD_KERNELS(X)                                    \
  X(fold_f32, struct fold_args, FOLD_THREADS, rdna__fold_case)  \
  X(fold_f16, struct fold_args, FOLD_THREADS, rdna__fold_case)  \
  X(fold_bf16, struct fold_args, FOLD_THREADS, rdna__fold_case) \
  X(fold_f64, struct fold_args, FOLD_THREADS, rdna__fold_case)

#endif
