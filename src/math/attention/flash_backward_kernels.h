/* Gradients of scaled dot-product attention: argument structs and the list of kernels. With s, p, kept and lse as in
 * flash_kernels.h, and dp = dout.v of a query and a key:
 *
 *     delta = sum over the values of dout * out
 *     ds    = p * (dp * kept / (1 - dropout) - delta) * (1 - (softcapped x / softcap)^2 with a softcap)
 *     dq    = scale * sum over the keys of ds * k        dk = scale * sum over the queries of ds * q
 *     dv    = sum over the queries of p * kept / (1 - dropout) * dout
 *
 * where the sums of dk and dv are over all query heads of the key head too. One kernel makes dq, another dk and dv: no
 * sum is shared between groups, so that the bits are the same from run to run. */
#ifndef RDNA_MATH_FLASH_BACKWARD_KERNELS_H
#define RDNA_MATH_FLASH_BACKWARD_KERNELS_H

#include "math/attention/flash_kernels.h"

/* Everything of the forward pass, lse read instead of written and out NULL. Vectors of multiples of 16 bytes as there.
 * dmask, which only the "masked" kernels of queries know, is ds of each query and key, zeros where none is seen. */
struct flash_backward_args {
  struct flash_args of;
  const void *dout;
  const float *delta; /* laid out as lse */
  void *dq, *dk, *dv; /* dq, or the others */
  void *dmask;        /* of the mask's type, or NULL */
  int64_t dout_stride[3], dq_stride[3], dk_stride[3], dv_stride[3];
  int64_t dmask_stride[4]; /* batch, head, query, key */
};

/* delta of |of.out| and |dout|, written at |of.lse|; nothing else of |of| but its sizes, starts and strides counts. */
struct flash_delta_args {
  struct flash_args of;
  const void *dout;
  float *delta;
  int64_t dout_stride[3];
};

/* Shared memory of the form for compute capability 9.0: 64 rows and two tiles of 64, of two operands each, and lse and
 * delta of the tiles; with a mask its part for 64 of each. */
#define FLASH_BACKWARD_BYTES(max_d) (6 * 64 * (max_d) * 2 + 2 * 2 * 64 * 4)
#define FLASH_BACKWARD_MASKED_BYTES(max_d) (FLASH_BACKWARD_BYTES(max_d) + 64 * 64 * 2)

/* delta: grid (blocks of FLASH_ROWS queries, heads, batch). queries: the same. keys: (blocks of FLASH_ROWS keys,
 * kv_heads, batch). "any" and "masked" as for forward. */
#define RDNA__FLASH_BACKWARD_KERNEL(X, type, size, ...)                                \
  X(flash_backward_queries_##type##_##size, struct flash_backward_args, FLASH_THREADS, \
    rdna__flash_backward_case __VA_OPT__(, ) __VA_ARGS__)                              \
  X(flash_backward_keys_##type##_##size, struct flash_backward_args, FLASH_THREADS,    \
    rdna__flash_backward_case __VA_OPT__(, ) __VA_ARGS__)
#define RDNA__FLASH_BACKWARD_ANY(X, type)                                               \
  X(flash_delta_##type, struct flash_delta_args, FLASH_THREADS, rdna__flash_delta_case) \
  RDNA__FLASH_BACKWARD_KERNEL(X, any_##type, 64)                                        \
  RDNA__FLASH_BACKWARD_KERNEL(X, any_##type, 128)                                       \
  RDNA__FLASH_BACKWARD_KERNEL(X, any_##type, 256)
#define RDNA__FLASH_BACKWARD_16_BITS(X, type)                                           \
  RDNA__FLASH_BACKWARD_KERNEL(X, type, 64, 0, FLASH_BACKWARD_BYTES(64))                 \
  RDNA__FLASH_BACKWARD_KERNEL(X, type, 128, 0, FLASH_BACKWARD_BYTES(128))               \
  RDNA__FLASH_BACKWARD_KERNEL(X, type, 256)                                             \
  RDNA__FLASH_BACKWARD_KERNEL(X, masked_##type, 64, 0, FLASH_BACKWARD_MASKED_BYTES(64)) \
  RDNA__FLASH_BACKWARD_KERNEL(X, masked_##type, 128, 0, FLASH_BACKWARD_MASKED_BYTES(128))

#define RDNA_FLASH_BACKWARD_KERNELS(X)     \
  RDNA__FLASH_BACKWARD_ANY(X, f32)         \
  RDNA__FLASH_BACKWARD_ANY(X, f16)         \
  RDNA__FLASH_BACKWARD_ANY(X, bf16)        \
  RDNA__FLASH_BACKWARD_KERNEL(X, f32, 64)  \
  RDNA__FLASH_BACKWARD_KERNEL(X, f32, 128) \
  RDNA__FLASH_BACKWARD_KERNEL(X, f32, 256) \
  RDNA__FLASH_BACKWARD_16_BITS(X, f16)     \
  RDNA__FLASH_BACKWARD_16_BITS(X, bf16)

#endif
