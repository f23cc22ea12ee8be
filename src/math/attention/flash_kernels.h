/* Scaled dot-product attention over whole sequences: argument struct and the list of kernels.
 *
 * Query i of a sequence of sq stands at the diagonal i + shift, where shift is 0 or, for |bottom_right|, sk - sq; it
 * sees the keys j with i + shift - left <= j <= i + shift + right. Query head h reads key and value head
 * h / (heads / kv_heads). With x = scale * q.k:
 *
 *     s = (softcap ? softcap * tanh(x / softcap) : x) - slope * |i + shift - j| + mask
 *     p = exp(s - lse),  lse = log(sum over j of exp(s), + exp(sink of the head))
 *     out = sum over j of p * kept / (1 - dropout) * v
 *
 * kept is whether word j % 4 of Philox block offset + (((b * heads + h) * sq + i) * ceil(sk / 4) + j / 4) makes a
 * number in [0, 1) that is at least |dropout|; sq and sk are those of the arguments. A query that sees nothing gives
 * zeros and an lse of -inf, or of the sink. */
#ifndef RDNA_MATH_FLASH_KERNELS_H
#define RDNA_MATH_FLASH_KERNELS_H

#include <stdint.h>

/* threads of a group; queries (in the backward kernels keys) that it takes at a time */
#define FLASH_THREADS 128
#define FLASH_ROWS 128
#define FLASH_MAX_D 256
/* left and right when there is no limit */
#define FLASH_UNLIMITED 0x7fffffff

enum flash_mask { FLASH_NO_MASK, FLASH_MASK_BOOL, FLASH_MASK_F32, FLASH_MASK_SAME /* as q */ };

/* Values; sequence b of q begins at row q_starts[b] and ends before row q_starts[b + 1], if q_starts is there. Rows,
 * strides and pointers of q, k, v, out are multiples of 16 bytes, d and dv of 16 bytes / value. */
struct flash_args {
  const void *q, *k, *v;
  const void *mask;                   /* additive in f32 or the type of q, or bool: 0 hides the key */
  const float *slopes;                /* ALiBi */
  const float *sinks;                 /* (heads): a score more, without a value; or NULL */
  const int32_t *q_starts, *k_starts; /* (batch + 1), or both NULL */
  void *out;
  float *lse;                                                   /* or NULL */
  int64_t q_stride[3], k_stride[3], v_stride[3], out_stride[3]; /* from one batch, row, head to the next */
  int64_t mask_stride[4];                                       /* batch, head, query, key: 0 where it is broadcast */
  int64_t lse_stride[2];                                        /* batch, head */
  int64_t slopes_stride;                                        /* batch */
  uint64_t seed, offset;
  int32_t batch, heads, kv_heads, sq, sk, d, dv; /* sq and sk: the longest, when there are starts */
  int32_t left, right;
  uint32_t bottom_right, mask_type;
  float scale, softcap, dropout;
};

/* Shared memory of the form for compute capability 9.0: queries and two tiles each of 64 keys and values; with a mask
 * its part for these queries and 64 keys too. */
#define FLASH_FORWARD_BYTES(max_d) ((FLASH_ROWS + 4 * 64) * (max_d) * 2)
#define FLASH_FORWARD_MASKED_BYTES(max_d) (FLASH_FORWARD_BYTES(max_d) + FLASH_ROWS * 64 * 2)

/* forward: grid (blocks of FLASH_ROWS queries, heads, batch). "any" kernels take every option; "masked" ones limits, a
 * mask that is there and any scale; the others only limits, and a scale above 0. */
#define RDNA__FLASH_KERNEL(X, type, size, ...)                       \
  X(flash_forward_##type##_##size, struct flash_args, FLASH_THREADS, \
    rdna__flash_forward_case __VA_OPT__(, ) __VA_ARGS__)

#define RDNA__FLASH_ANY(X, type)         \
  RDNA__FLASH_KERNEL(X, any_##type, 64)  \
  RDNA__FLASH_KERNEL(X, any_##type, 128) \
  RDNA__FLASH_KERNEL(X, any_##type, 256)
#define RDNA__FLASH_16_BITS(X, type)                                          \
  RDNA__FLASH_KERNEL(X, type, 64, 0, FLASH_FORWARD_BYTES(64))                 \
  RDNA__FLASH_KERNEL(X, type, 128, 0, FLASH_FORWARD_BYTES(128))               \
  RDNA__FLASH_KERNEL(X, type, 256)                                            \
  RDNA__FLASH_KERNEL(X, masked_##type, 64, 0, FLASH_FORWARD_MASKED_BYTES(64)) \
  RDNA__FLASH_KERNEL(X, masked_##type, 128, 0, FLASH_FORWARD_MASKED_BYTES(128))

#define RDNA_FLASH_KERNELS(X)     \
  RDNA__FLASH_ANY(X, f32)         \
  RDNA__FLASH_ANY(X, f16)         \
  RDNA__FLASH_ANY(X, bf16)        \
  RDNA__FLASH_KERNEL(X, f32, 64)  \
  RDNA__FLASH_KERNEL(X, f32, 128) \
  RDNA__FLASH_KERNEL(X, f32, 256) \
  RDNA__FLASH_16_BITS(X, f16)     \
  RDNA__FLASH_16_BITS(X, bf16)

#endif
