/* For tests of strided operators: tensors of any type with random strides, and the place of each value. */
#ifndef RDNA_MATH_COMMON_TEST_STRIDED_H
#define RDNA_MATH_COMMON_TEST_STRIDED_H

#include "math/common/test/operand.h"
#include "rdna/op/pointwise.h"

/* integer_get and real_get read a value of any type but the quantized ones; 64-bit integers by integer_get, which is
 * exact and of u64 has the bits. */
static inline int64_t integer_get(const operand *o, int64_t i) {
  const void *p = o->host;
  switch (o->tensor.dtype) {
    case RDNA_I8:
      return ((const int8_t *)p)[i];
    case RDNA_I16:
      return ((const int16_t *)p)[i];
    case RDNA_I32:
      return ((const int32_t *)p)[i];
    case RDNA_I64:
    case RDNA_U64:
      return ((const int64_t *)p)[i];
    case RDNA_U16:
      return ((const uint16_t *)p)[i];
    case RDNA_U32:
      return ((const uint32_t *)p)[i];
    default:
      return ((const uint8_t *)p)[i];
  }
}
static inline double real_get(const operand *o, int64_t i) {
  if (o->tensor.dtype == RDNA_F64) return ((const double *)(const void *)o->host)[i];
  if (o->tensor.dtype == RDNA_U64) return (double)(uint64_t)integer_get(o, i);
  return o->tensor.dtype < RDNA_F64 ? operand_get(o, i) : (double)integer_get(o, i);
}

/* Returns |v| wrapped to the range of the type. */
static inline int64_t wrapped(rdna_dtype dtype, int64_t v) {
  return dtype == RDNA_I8     ? (int8_t)v
         : dtype == RDNA_U8   ? (uint8_t)v
         : dtype == RDNA_I16  ? (int16_t)v
         : dtype == RDNA_I32  ? (int32_t)v
         : dtype == RDNA_U16  ? (uint16_t)v
         : dtype == RDNA_U32  ? (uint32_t)v
         : dtype == RDNA_BOOL ? v != 0
                              : v;
}

static inline void any_set(operand *o, int64_t i, double v) {
  if (o->tensor.dtype < RDNA_F64) {
    operand_set(o, i, v);
  } else if (o->tensor.dtype == RDNA_F64) {
    ((double *)(void *)o->host)[i] = v;
  } else {
    int64_t whole = wrapped(o->tensor.dtype, (int64_t)v);
    size_t bytes = rdna_dtype_block_bytes(o->tensor.dtype);
    memcpy(o->host + (size_t)i * bytes, &whole, bytes);
  }
}

/* Returns where value |i| of |out|, counted in row-major order, is in |t|, which is broadcast to |out|'s shape. */
static inline int64_t place_of(const rdna_tensor *t, const rdna_tensor *out, int64_t i) {
  int64_t at = 0;
  for (int d = 1; d <= out->rank; d++) {
    int64_t coordinate = i % out->shape[out->rank - d];
    i /= out->shape[out->rank - d];
    if (d <= t->rank && t->shape[t->rank - d] != 1) at += coordinate * t->stride[t->rank - d];
  }
  return at;
}

/* Makes a tensor of |shape|: contiguous, permuted or with gaps. |may_broadcast|: some sizes become 1 or are left out.
 */
static inline operand strided_make(rdna_dtype dtype, int rank, const int64_t *shape, bool may_broadcast) {
  int64_t own[RDNA_MAX_RANK], stride[RDNA_MAX_RANK], step = 1;
  int order[RDNA_MAX_RANK];
  int left_out = may_broadcast && rank > 1 && rdna__random_below(&random_state, 3) == 0;
  for (int d = left_out; d < rank; d++) {
    own[d - left_out] = may_broadcast && rdna__random_below(&random_state, 4) == 0 ? 1 : shape[d];
    order[d - left_out] = d - left_out;
  }
  rank -= left_out;
  if (rdna__random_below(&random_state, 2)) {
    for (int d = 0; d < rank; d++) {
      int other = (int)rdna__random_below(&random_state, (uint64_t)rank), held = order[d];
      order[d] = order[other];
      order[other] = held;
    }
  }
  for (int k = rank - 1; k >= 0; k--) {
    stride[order[k]] = step;
    step *= own[order[k]];
    if (rdna__random_below(&random_state, 4) == 0) step += rdna__random_range(&random_state, 1, 8);
  }
  return operand_make(dtype, rank, own, stride, (int64_t)rdna__random_below(&random_state, 3));
}

static inline void any_fill(operand *o, double deviation) {
  for (int64_t i = 0; i < operand_span(o); i++) any_set(o, i, deviation * rdna__random_normal(&random_state));
  operand_upload(o);
}

/* Fails if anything between the values of |o| was written. */
static inline void assert_gaps_whole(const operand *o) {
  int64_t span = operand_span(o), count = rdna_tensor_count(&o->tensor);
  bool *used = calloc((size_t)span + 1, sizeof *used);
  for (int64_t i = 0; i < count; i++) used[place_of(&o->tensor, &o->tensor, i)] = true;
  for (int64_t i = 0; i < span; i++) {
    if (!used[i] && !operand_is_poison(o, i)) fail_msg("value %lld between the others was written", (long long)i);
  }
  free(used);
}

/* Picks a shape of rank 1 to 5 with sizes from 1; in one of three the fastest size is a multiple of 16. Returns the
 * rank. */
static inline int random_shape(int64_t *shape) {
  int rank = (int)rdna__random_range(&random_state, 1, 5);
  for (int d = 0; d < rank; d++) shape[d] = rdna__random_range(&random_state, 1, rank > 3 ? 5 : rank > 1 ? 17 : 3000);
  if (rdna__random_below(&random_state, 3) == 0) shape[rank - 1] = shape[rank - 1] / 16 * 16 + 16;
  return rank;
}

/* Returns |dim|, in every other call counted from the end instead; a scalar has one dimension. */
static inline int either_way(int dim, int rank) {
  static int calls;
  return calls++ % 2 ? dim : dim - (rank > 0 ? rank : 1);
}

#endif
