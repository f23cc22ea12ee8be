/* Pooling. Each kernel computes one tensor value by value, or 16 bytes of channels at a time, from the others: the
 * gradients look at all windows that a value lies in, so that nothing is added by two threads.
 *
 * Of b bytes of input and c of output, forward reads b (each byte from memory once, its other uses from the cache) and
 * writes c, and indices of 8 bytes a value; backward reads those and writes b. */
#ifndef RDNA_MATH_POOL_KERNELS_H
#define RDNA_MATH_POOL_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "math/common/volume.h"

enum { POOL_THREADS = 256, POOL_BLOCK = 4 /* channels of a thread, at most, if they are not a vector */ };

/* Of one dimension. Sums of these are below 2^31, for adaptive pooling in * (out + 1) below 2^32. */
struct pool_axis {
  int32_t in, out;
  int32_t window; /* 0: adaptive, window o is [floor(o * in / out), ceil((o + 1) * in / out)) */
  int32_t stride, pad_before, pad_after, dilation;
};

/* The positions begin, begin + dilation and so on before end. */
struct pool_window {
  int32_t begin, end;
  int32_t padded; /* how many, and those of the padding; without dilation */
};
RDNA_SCALAR struct pool_window pool_window_at(const struct pool_axis *a, int32_t o) {
  struct pool_window w;
  if (a->window == 0) {
    w.begin = (int32_t)((uint32_t)o * (uint32_t)a->in / (uint32_t)a->out);
    w.end = (int32_t)((((uint32_t)o + 1) * (uint32_t)a->in - 1) / (uint32_t)a->out + 1);
    w.padded = w.end - w.begin;
    return w;
  }
  int32_t start = o * a->stride - a->pad_before, end = start + (a->window - 1) * a->dilation + 1;
  int32_t most = a->in + a->pad_after < end ? a->in + a->pad_after : end, skipped = 0;
  if (start < 0) skipped = a->dilation == 1 ? -start : (-start + a->dilation - 1) / a->dilation * a->dilation;
  w.begin = start + skipped;
  w.end = end < a->in ? end : a->in;
  w.padded = most - start;
  return w;
}

/* Windows [begin, end) may hold position |p|: all that do are among them, and with a dilation of 1 no others. */
struct pool_reach {
  int32_t begin, end;
};
RDNA_SCALAR struct pool_reach pool_windows_of(const struct pool_axis *a, int32_t p) {
  struct pool_reach r;
  if (a->window == 0) {
    r.begin = (int32_t)((uint32_t)p * (uint32_t)a->out / (uint32_t)a->in);
    r.end = (int32_t)((((uint32_t)p + 1) * (uint32_t)a->out - 1) / (uint32_t)a->in + 1);
    return r;
  }
  int32_t last = p + a->pad_before, first = last - (a->window - 1) * a->dilation;
  r.begin = first <= 0 ? 0 : (int32_t)(((uint32_t)first + (uint32_t)a->stride - 1) / (uint32_t)a->stride);
  r.end = (int32_t)((uint32_t)last / (uint32_t)a->stride) + 1;
  if (r.end > a->out) r.end = a->out;
  return r;
}

/* What an average is divided by. */
RDNA_SCALAR int64_t pool_count(struct pool_window z, struct pool_window y, struct pool_window x, bool padding) {
  if (padding) return (int64_t)z.padded * y.padded * x.padded;
  return (int64_t)(z.end - z.begin) * (y.end - y.begin) * (x.end - x.begin);
}

/* max_pool_*: the largest of each window and its number (z * height + y) * width + x; the last NaN if there is one,
 * else the first of equals. Of nothing, -infinity and -1. average_pool_*: 0 of nothing. */
struct pool_args {
  struct volume x, out;
  struct volume indices;     /* i64; of max_pool, or data NULL */
  struct volume_order order; /* of out */
  struct pool_axis axis[3];  /* z, y, x */
  int32_t divisor;           /* 0: how many values there are, with the padding's if */
  uint32_t padding, channels;
};

/* dx from dout: where the index is its own, or the share of each window. */
struct pool_backward_args {
  struct volume dout, dx;
  struct volume indices;     /* of max_pool */
  struct volume_order order; /* of dx */
  struct pool_axis axis[3];
  int32_t divisor;
  uint32_t padding, channels;
};

/* As max_pool, of contiguous planes in two dimensions, windows of 3 (or 2) by 3 (2) that are 2 apart, along x after a
 * padding of 1 (0). A thread loads 16 bytes of each row of its windows, which are half as many as these have values:
 * in_w is twice the windows' number along x and a multiple of 16 bytes. Each window holds a position. */
struct pool_strip_args {
  const void *x;              /* (planes, in_h, in_w), at a multiple of 16 bytes */
  void *out;                  /* (planes, out_h, in_w / 2), at a multiple of 8 bytes */
  int64_t *indices;           /* as out, at a multiple of 16 bytes; or NULL */
  struct strided_shape shape; /* of rank 3: strips of a row, out_h, planes */
  int32_t in_h, in_w;
  int32_t window, pad_before; /* pad_before: along y */
};

#define RDNA_POOL_TYPE_(X, type)                                                                 \
  X(max_pool_##type, struct pool_args, POOL_THREADS, rdna__pool_case)                            \
  X(average_pool_##type, struct pool_args, POOL_THREADS, rdna__pool_case)                        \
  X(max_pool_backward_##type, struct pool_backward_args, POOL_THREADS, rdna__pool_backward_case) \
  X(average_pool_backward_##type, struct pool_backward_args, POOL_THREADS, rdna__pool_backward_case)
#define RDNA_POOL_KERNELS(X)                                                          \
  X(max_pool_strip_f32, struct pool_strip_args, POOL_THREADS, rdna__pool_strip_case)  \
  X(max_pool_strip_f16, struct pool_strip_args, POOL_THREADS, rdna__pool_strip_case)  \
  X(max_pool_strip_bf16, struct pool_strip_args, POOL_THREADS, rdna__pool_strip_case) \
  RDNA_POOL_TYPE_(X, f32)                                                             \
  RDNA_POOL_TYPE_(X, f16)                                                             \
  RDNA_POOL_TYPE_(X, bf16)                                                            \
  RDNA_POOL_TYPE_(X, f64)

#endif
