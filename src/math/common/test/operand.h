/* For operator tests: tensors on the device under test, with poison around them, read back as doubles. */
#ifndef RDNA_MATH_COMMON_TEST_OPERAND_H
#define RDNA_MATH_COMMON_TEST_OPERAND_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "math/common/case/fill.h"
#include "math/common/test/device.h"
#include "rdna/tensor.h"

enum { OPERAND_GUARD = 64, OPERAND_POISON = 0xfe };

typedef struct operand {
  rdna_tensor tensor; /* on the device */
  uint8_t *host;      /* copy of its values, on the host */
  uint8_t *block;     /* copy of all, with poison on both sides of the values */
  void *device_block;
  size_t bytes, front;
} operand;

/* Makes a tensor filled with poison, whose data begins |offset| values after a multiple of 256 bytes. |stride| NULL:
 * contiguous. */
static inline operand operand_make(rdna_dtype dtype, int rank, const int64_t *shape, const int64_t *stride,
                                   int64_t offset) {
  operand o = {.tensor = rdna_tensor_contiguous(NULL, dtype, rank, shape)};
  int64_t last = 0;
  for (int i = 0; i < rank; i++) {
    if (stride) o.tensor.stride[i] = stride[i];
    last += (shape[i] - 1) * o.tensor.stride[i];
  }
  size_t value = rdna_dtype_block_bytes(dtype);
  o.bytes = rdna_tensor_count(&o.tensor) > 0 ? (size_t)(last + 1) * value : 0;
  o.front = 256 + (size_t)offset * value;
  size_t size = o.front + o.bytes + OPERAND_GUARD;
  o.block = malloc(size);
  assert_non_null(o.block);
  memset(o.block, OPERAND_POISON, size);
  assert_ok(rdna_memory_alloc(device, size, stream, &o.device_block));
  o.host = o.block + o.front;
  o.tensor.data = o.bytes > 0 ? (uint8_t *)o.device_block + o.front : NULL;
  return o;
}

static inline void operand_upload(operand *o) {
  assert_ok(rdna_copy_to_device(stream, o->device_block, o->block, o->front + o->bytes + OPERAND_GUARD));
}

/* Copies to the host, waits for the stream, and fails if the poison around the values was overwritten. */
static inline void operand_download(operand *o) {
  size_t size = o->front + o->bytes + OPERAND_GUARD;
  assert_ok(rdna_copy_to_host(stream, o->block, o->device_block, size));
  assert_ok(rdna_stream_synchronize(stream));
  for (size_t i = 0; i < size; i++) {
    if (i == o->front) i += o->bytes;
    if (o->block[i] != OPERAND_POISON) fail_msg("byte %zd outside was written", (ptrdiff_t)i - (ptrdiff_t)o->front);
  }
}

static inline void operand_free(operand *o) {
  assert_ok(rdna_memory_free(device, o->device_block));
  free(o->block);
}

/* Decodes 16 bits by the definition of the formats. */
static inline double operand_decode(rdna_dtype dtype, uint32_t bits) {
  int fraction_bits = dtype == RDNA_F16 ? 10 : 7, top = dtype == RDNA_F16 ? 31 : 255;
  int exponent = (int)(bits >> fraction_bits) & top, bias = top / 2;
  double fraction = ldexp((double)(bits & ((1u << fraction_bits) - 1)), -fraction_bits);
  double v = exponent == top ? (fraction != 0 ? (double)NAN : (double)INFINITY)
             : exponent == 0 ? ldexp(fraction, 1 - bias)
                             : ldexp(1 + fraction, exponent - bias);
  return bits & 0x8000 ? -v : v;
}

/* Returns value |i|. Suites read each many times, so those of 16 bits are decoded once for all. */
static inline double operand_get(const operand *o, int64_t i) {
  if (o->tensor.dtype == RDNA_F32) return (double)((const float *)(const void *)o->host)[i];
  if (o->tensor.dtype == RDNA_F64) return ((const double *)(const void *)o->host)[i];
  if (o->tensor.dtype == RDNA_I32) return (double)((const int32_t *)(const void *)o->host)[i];
  if (o->tensor.dtype == RDNA_I64) return (double)((const int64_t *)(const void *)o->host)[i];
  static double decoded[2][1 << 16];
  static bool known[2];
  bool half = o->tensor.dtype == RDNA_F16;
  for (uint32_t bits = 0; !known[half] && bits < 1 << 16; bits++)
    decoded[half][bits] = operand_decode(o->tensor.dtype, bits);
  known[half] = true;
  return decoded[half][((const uint16_t *)(const void *)o->host)[i]];
}

static inline void operand_set(operand *o, int64_t i, double v) {
  if (o->tensor.dtype == RDNA_I32) {
    ((int32_t *)(void *)o->host)[i] = (int32_t)v;
  } else if (o->tensor.dtype == RDNA_I64) {
    ((int64_t *)(void *)o->host)[i] = (int64_t)v;
  } else if (o->tensor.dtype == RDNA_F64) {
    ((double *)(void *)o->host)[i] = v;
  } else {
    case_set(o->tensor.dtype, o->host, i, (float)v);
  }
}

static inline int64_t operand_span(const operand *o) {
  return (int64_t)(o->bytes / rdna_dtype_block_bytes(o->tensor.dtype));
}

/* Fills with normally distributed numbers, gaps included, and uploads. */
static inline void operand_fill(operand *o, double deviation) {
  for (int64_t i = 0; i < operand_span(o); i++) operand_set(o, i, deviation * rdna__random_normal(&random_state));
  operand_upload(o);
}

static inline bool operand_is_poison(const operand *o, int64_t i) {
  size_t value = rdna_dtype_block_bytes(o->tensor.dtype);
  for (size_t b = 0; b < value; b++) {
    if (o->host[(size_t)i * value + b] != OPERAND_POISON) return false;
  }
  return true;
}

/* Returns half the distance of neighbouring values at |want|: the most that one correct rounding is wrong by. */
static inline double half_step(rdna_dtype dtype, double want) {
  if (dtype == RDNA_F64) return fmax(fabs(want) * 0x1p-53, 0x1p-1074) * (1 + 0x1p-20);
  double smallest = dtype == RDNA_F32 ? 0x1p-149 : dtype == RDNA_F16 ? 0x1p-24 : 0x1p-133;
  return fmax(fabs(want) * case_spacing(dtype), smallest) * 0.5 * (1 + 0x1p-20);
}
static inline double largest_finite(rdna_dtype dtype) {
  if (dtype == RDNA_F64) return 0x1.fffffffffffffp1023;
  return dtype == RDNA_F32 ? 0x1.fffffep127 : dtype == RDNA_F16 ? 65504.0 : 0x1.fep127;
}

/* Fails unless |got| is |want| rounded to the type, within |error|. */
static inline void assert_close(rdna_dtype dtype, double got, double want, double error, const char *what, int64_t i) {
  double bound = half_step(dtype, want) + error, limit = largest_finite(dtype);
  bool right = isnan(want)                  ? isnan(got)
               : isinf(got) && !isinf(want) ? fabs(want) + bound > limit && (got > 0) == (want > 0)
               : isinf(want)                ? got == want
                                            : fabs(got - want) <= bound;
  if (!right)
    fail_msg("%s %s [%lld]: got %.9g, want %.9g +- %.3g", what, rdna_dtype_name(dtype), (long long)i, got, want, bound);
}

#endif
