/* Values at places that indices on the device say. Kernels are named by the bits of what they move, which may be
 * several neighbours at once. An index outside of its dimension touches nothing of the indexed tensor. */
#ifndef RDNA_MATH_INDEXED_KERNELS_H
#define RDNA_MATH_INDEXED_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "math/common/strided.h"

enum { INDEXED_THREADS = 256, INDEXED_TILE = 1024 };
enum { INDEX_ROWS_WIDE = 2, INDEX_ROWS_NARROW = 8 }; /* values of a thread in index_rows: of 16 bytes, of fewer */

/* How indices are read. */
struct index_rule {
  int64_t size;      /* of the indexed dimension */
  int64_t stride;    /* of the indexed tensor along it, in values moved */
  uint32_t *outside; /* becomes 1 when an index is outside, or NULL */
  uint32_t wide;     /* indices are i64, else i32 */
  uint32_t wrap;     /* negative ones count from the end */
};

/* get: values = indexed at the index, or 0 when that is outside;  put: indexed at the index = values, or |value|.
 * |shape| is that of values; the indexed tensor's own stride along the indexed dimension is in |rule|. */
struct indexed_args {
  struct strided_operand operand[3]; /* values, indices, indexed */
  struct strided_shape shape;
  struct index_rule rule;
  uint64_t value[2]; /* the bits, repeated to 16 bytes, where |fill| */
  uint32_t fill;
};

/* index_rows: as get, where values are dense, (rows, |shape.size[0]|) of at least 16 bytes, with one index a row and a
 * stride of rule from one indexed row to the next, which is not less than a row. Groups: index_rows_groups. */
RDNA_SCALAR int64_t index_rows_groups(const struct indexed_args *a, int64_t bytes) {
  int64_t each = (int64_t)(bytes == 16 ? INDEX_ROWS_WIDE : INDEX_ROWS_NARROW) * INDEXED_THREADS;
  return (a->shape.count + each - 1) / each;
}

/* offsets = base + index * stride, plus what was there where |add|; |absent| for an index that is outside or is
 * |skipped|, and where |absent| was. base is the sum of coordinates times the strides of operand 2. */
struct index_offset_args {
  struct strided_operand operand[3]; /* offsets, indices, base; data of the last is not read */
  struct strided_shape shape;
  struct index_rule rule;
  int64_t bias, absent, skipped; /* |bias| is added; |skipped| -1 for none */
  uint32_t add, narrow;          /* offsets are u32, else i64 */
};

/* The index at |at|; whether it is inside. */
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
