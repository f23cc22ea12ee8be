/* A tensor as operators see it: where the data is, what it holds, its shape. It owns nothing. */
#ifndef RDNA_TENSOR_H
#define RDNA_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values of the quantized types are laid out in blocks along the last dimension, as in GGUF files. */
typedef enum rdna_dtype {
  RDNA_F32 = 0,
  RDNA_F16,
  RDNA_BF16,
  RDNA_F64,
  RDNA_I8,
  RDNA_U8,
  RDNA_I16,
  RDNA_I32,
  RDNA_I64,
  RDNA_BOOL,
  RDNA_Q8_0,   /* 32 values: f16 scale, 32 int8 */
  RDNA_Q4_0,   /* 32 values: f16 scale, 16 bytes of nibbles, offset 8 */
  RDNA_Q4_K,   /* 256 values: f16 d, f16 dmin, 12 bytes of 6-bit scales and mins, 128 bytes of nibbles */
  RDNA_Q6_K,   /* 256 values: 128 low nibbles, 64 high pairs, 16 int8 scales, f16 d */
  RDNA_Q4_1,   /* 32 values: f16 scale, f16 minimum, 16 bytes of nibbles */
  RDNA_Q5_0,   /* 32 values: f16 scale, 32 fifth bits, 16 bytes of nibbles, offset 16 */
  RDNA_Q5_1,   /* 32 values: f16 scale, f16 minimum, 32 fifth bits, 16 bytes of nibbles */
  RDNA_Q2_K,   /* 256 values: 16 4-bit scales and mins, 64 bytes of pairs, f16 d, f16 dmin */
  RDNA_Q3_K,   /* 256 values: 32 bytes of third bits, 64 bytes of pairs, 12 bytes of 6-bit scales, f16 d */
  RDNA_Q5_K,   /* 256 values: f16 d, f16 dmin, 12 bytes of 6-bit scales and mins, 32 of fifth bits, 128 of nibbles */
  RDNA_IQ4_NL, /* 32 values: f16 scale, 16 bytes of nibbles that number a table's values */
  RDNA_IQ4_XS, /* 256 values: f16 d, 6 bytes of 6-bit scales, 128 bytes of nibbles as in IQ4_NL */
  RDNA_MXFP4,  /* 32 values: a power of two in a byte, 16 bytes of nibbles of e2m1 */
  /* 8-bit floats, see rdna/op/cast.h. E4M3: 4 bits of exponent, 3 of mantissa. FN: no infinities; FNUZ: no -0 either */
  RDNA_F8_E4M3FN,
  RDNA_F8_E5M2,
  RDNA_F8_E4M3FNUZ,
  RDNA_F8_E5M2FNUZ,
  /* 256 values and an f16 d: digits of base 2 and 3 for -1, 0, 1; entries of grids of 8, in IQ3 of 4, values */
  RDNA_TQ2_0,   /* 64 bytes of pairs */
  RDNA_TQ1_0,   /* 52 bytes of five digits each */
  RDNA_IQ2_XXS, /* 2.06 bits a value: 8-bit indices, 7 signs for 8 values, 8 scales of 4 bits */
  RDNA_IQ2_XS,  /* 2.31: 9-bit indices, 7 signs for 8 values, 16 scales */
  RDNA_IQ2_S,   /* 2.56: 10-bit indices, signs, 16 scales */
  RDNA_IQ3_XXS, /* 3.06: 8-bit indices, 7 signs for 8 values, 8 scales */
  RDNA_IQ3_S,   /* 3.44: 9-bit indices, signs, 8 scales */
  RDNA_IQ1_S,   /* 1.56: 11-bit indices of values -1, 0, 1, with 1/8 added or taken off, 8 scales of 3 bits */
  RDNA_IQ1_M,   /* 1.75: the same, 16 scales, a sign of the 1/8 for 8 values */
  RDNA_U16,
  RDNA_U32,
  RDNA_U64,
  RDNA_DTYPE_COUNT
} rdna_dtype;

#define RDNA_MAX_RANK 8

typedef struct rdna_tensor {
  void *data;
  rdna_dtype dtype;
  int rank;
  int64_t shape[RDNA_MAX_RANK];  /* slowest dimension first */
  int64_t stride[RDNA_MAX_RANK]; /* in elements; for quantized types the last is 1 and the others count values */
} rdna_tensor;

RDNA_API const char *rdna_dtype_name(rdna_dtype dtype); /* "f32", "q4_K"; "?" outside the enumeration */
RDNA_API int rdna_dtype_block_values(rdna_dtype dtype); /* 1, 32 or 256 */
RDNA_API size_t rdna_dtype_block_bytes(rdna_dtype dtype);
/* Bytes of |count| contiguous values, a whole number of blocks; 0 when |count| is not, or is negative. */
RDNA_API size_t rdna_dtype_bytes(rdna_dtype dtype, int64_t count);

/* A contiguous tensor over |data|. |shape| has |rank| entries, slowest first. */
RDNA_API rdna_tensor rdna_tensor_contiguous(void *data, rdna_dtype dtype, int rank, const int64_t *shape);
RDNA_API int64_t rdna_tensor_count(const rdna_tensor *tensor);
/* Whether a byte belongs to values of both. Two slices of one matrix, or its even and its odd columns, lie in each
 * other's range and share none. True also for layouts so intricate that to be sure would take long. */
RDNA_API bool rdna_tensor_overlap(const rdna_tensor *a, const rdna_tensor *b);

#ifdef __cplusplus
}
#endif
#endif
