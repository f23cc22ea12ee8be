/* Casts: tiles of RDNA__CAST_TILE values, one a work-group along x; the grid covers the count. */
#ifndef RDNA_MATH_CAST_KERNELS_H
#define RDNA_MATH_CAST_KERNELS_H

#include <stdint.h>

enum { RDNA__CAST_THREADS = 256, RDNA__CAST_TILE = 4096 };

struct cast_args {
  const void *x;
  void *out;
  int64_t count;
};

/* from, to */
#define RDNA__CASTS(CAST) \
  CAST(f32, f16)          \
  CAST(f32, bf16)         \
  CAST(f16, f32)          \
  CAST(f16, bf16)         \
  CAST(bf16, f32)         \
  CAST(bf16, f16)         \
  CAST(i32, f32)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_CAST_KERNELS(X)                               \
  X(cast_f32_f16, struct cast_args, 256, rdna__cast_case)  \
  X(cast_f32_bf16, struct cast_args, 256, rdna__cast_case) \
  X(cast_f16_f32, struct cast_args, 256, rdna__cast_case)  \
  X(cast_f16_bf16, struct cast_args, 256, rdna__cast_case) \
  X(cast_bf16_f32, struct cast_args, 256, rdna__cast_case) \
  X(cast_bf16_f16, struct cast_args, 256, rdna__cast_case) \
  X(cast_i32_f32, struct cast_args, 256, rdna__cast_case)

#endif
