/* Random numbers from Philox4x32-10. */
#ifndef RDNA_MATH_RANDOM_KERNELS_H
#define RDNA_MATH_RANDOM_KERNELS_H

#include <stdint.h>

/* Philox makes a block of four 32-bit words from a counter and a key. Block b has the counter offset + b and the key
 * |seed|, so a value depends on seed, offset and its index alone, and any grid is right. Values and their words:
 *
 *     word              block 0: 0    1    2    3     block 1: 0    1    2    3
 *     real value, mask           0    1    2    3              4    5    6    7
 *     normal value               (0, 1)    (2, 3)              (4, 5)    (6, 7)      two words make two values
 *     integer                    0         1                   2         3           two words make one */
enum { RANDOM_THREADS = 256 };

enum random_kind { RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_BERNOULLI, RANDOM_EXPONENTIAL };
struct random_fill_args {
  void *out; /* (count) */
  int64_t count;
  uint64_t seed, offset;
  uint32_t kind, dtype; /* a random_kind; an rdna_dtype: f32, f16 or bf16 */
  float a, b;  /* uniform: low, high - low; normal: mean, deviation; Bernoulli: probability; exponential: 1 / rate */
  float bound; /* uniform: the largest value of |dtype| below high; exponential: 2^-24 in f16, else 2^-126 */
};

struct random_integers_args {
  void *out; /* (count) of i32 or i64 */
  int64_t count;
  uint64_t seed, offset;
  int64_t low;
  uint64_t range; /* high - low; 0: all 64-bit integers */
  uint32_t is_i64;
};

/* kept = uniform in [0, 1) >= probability;  out = kept ? scale * x : 0;  mask = kept */
struct dropout_args {
  const void *x; /* (count) */
  void *out;     /* (count); may be x */
  uint8_t *mask; /* (count) */
  int64_t count;
  uint64_t seed, offset;
  float probability, scale;
};
/* dx = mask ? scale * dout : 0 */
struct dropout_backward_args {
  const void *dout;    /* (count) */
  const uint8_t *mask; /* (count) */
  void *dx;            /* (count); may be dout */
  int64_t count;
  float scale;
};

#define RDNA__RANDOM_TYPE(X, type)                                           \
  X(dropout_##type, struct dropout_args, RANDOM_THREADS, rdna__dropout_case) \
  X(dropout_backward_##type, struct dropout_backward_args, RANDOM_THREADS, rdna__dropout_backward_case)

#define RDNA_RANDOM_KERNELS(X)                                                                \
  X(random_fill, struct random_fill_args, RANDOM_THREADS, rdna__random_fill_case)             \
  X(random_integers, struct random_integers_args, RANDOM_THREADS, rdna__random_integers_case) \
  RDNA__RANDOM_TYPE(X, f32)                                                                   \
  RDNA__RANDOM_TYPE(X, f16)                                                                   \
  RDNA__RANDOM_TYPE(X, bf16)

#endif
