/* For operators with indices: checks them, and brings values, indices and the indexed tensor to views of one shape,
 * over which the kernels of indexed_kernels.h and segment_kernels.h run. */
#ifndef RDNA_MATH_INDEXED_PLAN_H
#define RDNA_MATH_INDEXED_PLAN_H

#include "math/common/plan/rows_along.h"
#include "math/index/indexed_kernels.h"
#include "rdna/op/index.h"

/* What is indexed by what. |indices| and |base|, the indexed tensor, are views of the shape of values: one index for
 * each value. |base| has stride 0 along the indexed dimension, where |rule| says how to step. */
typedef struct rdna__indexed {
  const char *name;
  rdna_stream *stream;
  rdna_tensor indices, base;
  struct index_rule rule;
} rdna__indexed;

rdna_status rdna__check_indices(const char *name, const char *argument, const rdna_tensor *indices);
/* Checks the stream, and that |x| is of any type but the quantized ones. */
rdna_status rdna__check_indexed(const char *name, rdna_stream *stream, const char *argument, const rdna_tensor *x);

/* Checks that each size of |indices| is at most that of |x|, except along dimension |skip|. */
rdna_status rdna__check_within(const char *name, const rdna_tensor *indices, const char *x_name, const rdna_tensor *x,
                               int skip);
/* Checks that |indices| is of rank 1, that |values| has as many rows along |dim| as there are indices, and that its
 * other sizes are those of |x|. */
rdna_status rdna__check_select(const char *name, const char *values_name, const rdna_tensor *values, const char *x_name,
                               const rdna_tensor *x, int dim, const rdna_tensor *indices);

/* Returns |x| as a view of |shape|, with stride 0 along |dim|. */
rdna_tensor rdna__index_base(const rdna_tensor *x, int dim, int rank, const int64_t *shape);
/* Returns how indices of type |indices| along dimension |dim| of |x| are read; |wrap|: negative ones count from the
 * end. */
struct index_rule rdna__index_rule(const rdna_tensor *x, int dim, rdna_dtype indices, bool wrap, uint32_t *outside);

/* Queues the move: reads the indexed values into |values| or, with |put|, writes |values| to their places, or |value|
 * where |values| is NULL. |values| is a view of the shape of |indexed->base|. */
rdna_status rdna__index_move(const rdna__indexed *indexed, bool put, const rdna_tensor *values, rdna_scalar value);

/* Returns |indices|, of rank 1, as a view of |shape| that is broadcast along all dimensions but |dim|. */
rdna_tensor rdna__along_dim(const rdna_tensor *indices, int dim, int rank, const int64_t *shape);

/* Queues index_offset: writes an offset for each index to |out|, contiguous, of u32 where |args.narrow|, else i64. */
rdna_status rdna__index_offsets(const rdna__indexed *indexed, struct index_offset_args args, void *out);
/* The same with u32 offsets, |keys|, as the sort of segment.c takes them. |add|, |absent|, |skipped|: see struct
 * index_offset_args. */
rdna_status rdna__index_keys(const rdna__indexed *indexed, bool add, int64_t absent, int64_t skipped, uint32_t *keys);

/* Advanced indexing, x[i, :, j], where the indices are broadcast together. Of the |rank| dimensions of the result,
 * |broadcast_rank| from |first| on are those of the broadcast indices; each other dimension d is x's dimension from[d].
 *
 *     x (4, 5, 6), indices of dimensions 0 and 1 of shape (2, 3)    result (2, 3, 6), from (-1, -1, 2), first 0
 */
typedef struct rdna__advanced {
  int rank, first, broadcast_rank, indexed_count;
  int64_t shape[RDNA_MAX_RANK];
  int from[RDNA_MAX_RANK];
  int indexed_dim[RDNA_MAX_RANK];     /* (indexed_count): x's dimensions that have indices, ascending */
  rdna_tensor indices[RDNA_MAX_RANK]; /* (indexed_count): views of the broadcast shape */
} rdna__advanced;
rdna_status rdna__advanced_plan(const char *name, const rdna_tensor *x, const rdna_tensor *const *indices,
                                rdna__advanced *out_plan);
/* Makes one index of all. One alone is used as it is. Several become i64 offsets in scratch memory, counted from the
 * lowest address that they reach, in units of the greatest common divisor of the indexed dimensions' strides. */
rdna_status rdna__advanced_combine(rdna__scratch *scratch, const rdna__advanced *p, const rdna_tensor *x,
                                   uint32_t *outside, rdna__indexed *out);

/* Rows of src that go to |rows| places of dst, and are combined where several go to one. */
typedef struct rdna__segments {
  const char *name;
  rdna_dtype dtype;
  rdna_scatter mode; /* not ASSIGN */
  bool include_self;
  int64_t outer, n, rows, inner;
  const uint32_t *keys; /* (n): the place of each row of src; |rows| for one that goes nowhere */
  const void *src;      /* (outer, n, inner) */
  void *dst;            /* (outer, rows, inner) */
} rdna__segments;
/* Checks that there are kernels for these types and sizes. */
rdna_status rdna__check_segments(const char *name, rdna_dtype dtype, rdna_scatter mode, int64_t n, int64_t rows);
/* Queues the sort of the keys and the kernels that combine; the caller releases |scratch|. */
rdna_status rdna__segments_queue(rdna__scratch *scratch, const rdna__segments *segments);

#endif
