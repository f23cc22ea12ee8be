/* Moves values to and from places that index tensors name (gather, scatter, index_select, index_put and their kin).
 * A kernel's name ends in the bits of what it moves at once, which may be several neighbouring values. An index outside
 * of its dimension neither reads nor writes the indexed tensor.
 *
 * A group has a tile of INDEXED_TILE values, of which thread t has t, t + 256, t + 512 and t + 768, so that the lanes
 * of a wave access neighbours. */
#ifndef RDNA_MATH_INDEXED_KERNELS_H
#define RDNA_MATH_INDEXED_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "math/common/strided.h"

enum { INDEXED_THREADS = 256, INDEXED_TILE = 1024 };
/* Values of a thread in index_rows: WIDE where what is moved at once has 16 bytes, NARROW where it has fewer. */
enum { INDEX_ROWS_WIDE = 2, INDEX_ROWS_NARROW = 8 };

/* How an index is read, and what it means: place = index * stride. */
struct index_rule {
  int64_t size;      /* of the indexed dimension */
  int64_t stride;    /* of the indexed tensor along that dimension, in units of what is moved at once */
  uint32_t *outside; /* a word on the device, set to 1 when an index is outside; or NULL */
  uint32_t wide;     /* indices are i64, else i32 */
  uint32_t wrap;     /* negative ones count from the end */
};

/* indexed_get: values[i] = indexed[i with its coordinate along the indexed dimension replaced by indices[i]], or 0
 * where the index is outside. indexed_put: the other way round, values[i] or |value| is written there. |shape| is that
 * of values, over which all three operands are seen. The third has stride 0 along the indexed dimension; its true
 * stride there is in |rule|. */
struct indexed_args {
  struct strided_operand operand[3]; /* values, indices, indexed */
  struct strided_shape shape;
  struct index_rule rule;
  uint64_t value[2]; /* where |fill|: what is put, its bits repeated to 16 bytes */
  uint32_t fill;     /* 1: put |value|; operand 0 is not read */
};

/* index_rows: indexed_get of whole rows. values is contiguous, (rows, cols) with cols = |shape.size[0]|, rows of at
 * least 16 bytes and one index each:
 *
 *     values row r  <-  indexed + indices[r] * rule.stride, cols values; rule.stride >= cols
 *
 * Returns the groups of its grid. */
RDNA_SCALAR int64_t index_rows_groups(const struct indexed_args *a, int64_t bytes) {
  int64_t each = (int64_t)(bytes == 16 ? INDEX_ROWS_WIDE : INDEX_ROWS_NARROW) * INDEXED_THREADS;
  return (a->shape.count + each - 1) / each;
}

/* index_offset: offsets[i] = base(i) + index * rule.stride + bias and, where |add|, plus what offsets[i] was, which
 * sums the indices of several dimensions, a launch each. base(i) is the offset of place i by the strides of operand 2.
 * The result is |absent| where the index is outside or equals |skipped| and, where |add|, where offsets[i] was
 * |absent|. */
struct index_offset_args {
  struct strided_operand operand[3]; /* offsets, indices, base; data of the last is not read */
  struct strided_shape shape;
  struct index_rule rule;
  int64_t bias, absent, skipped; /* |skipped| -1: no index is */
  uint32_t add, narrow;          /* offsets are u32, else i64 */
};

/* Reads the index at |at|; returns whether it is inside the dimension. */
RDNA_SCALAR bool index_read(const struct index_rule *rule, const void *indices, int64_t at, int64_t *out_index) {
  int64_t index = rule->wide ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
  if (rule->wrap && index < 0) index += rule->size;
  *out_index = index;
  return (uint64_t)index < (uint64_t)rule->size;
}

#define RDNA_INDEXED_SIZES_(X, name)                                     \
  X(name##_8, struct indexed_args, INDEXED_THREADS, rdna__indexed_case)  \
  X(name##_16, struct indexed_args, INDEXED_THREADS, rdna__indexed_case) \
  X(name##_32, struct indexed_args, INDEXED_THREADS, rdna__indexed_case) \
  X(name##_64, struct indexed_args, INDEXED_THREADS, rdna__indexed_case) \
  X(name##_128, struct indexed_args, INDEXED_THREADS, rdna__indexed_case)
#define RDNA_INDEXED_KERNELS(X)                                                  \
  RDNA_INDEXED_SIZES_(X, indexed_get)                                            \
  RDNA_INDEXED_SIZES_(X, indexed_put)                                            \
  X(index_rows_16, struct indexed_args, INDEXED_THREADS, rdna__index_rows_case)  \
  X(index_rows_32, struct indexed_args, INDEXED_THREADS, rdna__index_rows_case)  \
  X(index_rows_64, struct indexed_args, INDEXED_THREADS, rdna__index_rows_case)  \
  X(index_rows_128, struct indexed_args, INDEXED_THREADS, rdna__index_rows_case) \
  X(index_offset, struct index_offset_args, INDEXED_THREADS, rdna__index_offset_case)

#endif
