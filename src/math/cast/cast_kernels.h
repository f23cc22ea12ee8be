/* Casts of contiguous values. Grid x: one group for each tile of RDNA__CAST_TILE values. A thread has 8 neighbouring
 * values at a time, or 16 where either type has 8 bits; the tile takes two such rounds, or one:
 *
 *     tile    | thread 0: 8 values | thread 1 | ... | thread 255 | thread 0: 8 values | ... |
 */
#ifndef RDNA_MATH_CAST_KERNELS_H
#define RDNA_MATH_CAST_KERNELS_H

#include <stdint.h>

enum { RDNA__CAST_THREADS = 256, RDNA__CAST_TILE = 4096 };

struct cast_args {
  const void *x;
  void *out;
  int64_t count;
  float largest; /* casts to 8 bits clamp magnitudes to this; infinity: they do not */
};

/* from, to */
#define RDNA__CASTS_OF_8_BITS(CAST, f8) \
  CAST(f32, f8)                         \
  CAST(f16, f8)                         \
  CAST(bf16, f8)                        \
  CAST(f8, f32)                         \
  CAST(f8, f16)                         \
  CAST(f8, bf16)
#define RDNA__CASTS(CAST)                  \
  CAST(f32, f16)                           \
  CAST(f32, bf16)                          \
  CAST(f16, f32)                           \
  CAST(f16, bf16)                          \
  CAST(bf16, f32)                          \
  CAST(bf16, f16)                          \
  CAST(i32, f32)                           \
  RDNA__CASTS_OF_8_BITS(CAST, f8_e4m3fn)   \
  RDNA__CASTS_OF_8_BITS(CAST, f8_e5m2)     \
  RDNA__CASTS_OF_8_BITS(CAST, f8_e4m3fnuz) \
  RDNA__CASTS_OF_8_BITS(CAST, f8_e5m2fnuz)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA__CAST_8_BITS_KERNELS(X, f8)                     \
  X(cast_f32_##f8, struct cast_args, 256, rdna__cast_case)   \
  X(cast_f16_##f8, struct cast_args, 256, rdna__cast_case)   \
  X(cast_bf16_##f8, struct cast_args, 256, rdna__cast_case)  \
  X(cast_##f8##_f32, struct cast_args, 256, rdna__cast_case) \
  X(cast_##f8##_f16, struct cast_args, 256, rdna__cast_case) \
  X(cast_##f8##_bf16, struct cast_args, 256, rdna__cast_case)
#define RDNA_CAST_KERNELS(X)                               \
  X(cast_f32_f16, struct cast_args, 256, rdna__cast_case)  \
  X(cast_f32_bf16, struct cast_args, 256, rdna__cast_case) \
  X(cast_f16_f32, struct cast_args, 256, rdna__cast_case)  \
  X(cast_f16_bf16, struct cast_args, 256, rdna__cast_case) \
  X(cast_bf16_f32, struct cast_args, 256, rdna__cast_case) \
  X(cast_bf16_f16, struct cast_args, 256, rdna__cast_case) \
  X(cast_i32_f32, struct cast_args, 256, rdna__cast_case)  \
  RDNA__CAST_8_BITS_KERNELS(X, f8_e4m3fn)                  \
  RDNA__CAST_8_BITS_KERNELS(X, f8_e5m2)                    \
  RDNA__CAST_8_BITS_KERNELS(X, f8_e4m3fnuz)                \
  RDNA__CAST_8_BITS_KERNELS(X, f8_e5m2fnuz)

#endif
