/* For operators with indices: views of one shape in which the indexed dimensions have stride 0, and what is done with
 * them. */
#ifndef RDNA_MATH_INDEXED_PLAN_H
#define RDNA_MATH_INDEXED_PLAN_H

#include "math/common/plan/rows_along.h"
#include "math/index/indexed_kernels.h"
#include "rdna/op/index.h"

/* One index for each place: |indices| is a view of the shape of values, and |rule| says how it is read. |base| is the
 * indexed tensor seen through that shape. */
typedef struct rdna__indexed {
  const char *name;
  rdna_stream *stream;
  rdna_tensor indices, base;
  struct index_rule rule;
} rdna__indexed;

rdna_status rdna__check_indices(const char *name, const char *argument, const rdna_tensor *indices);
/* The stream and a tensor of any type but the quantized ones. */
rdna_status rdna__check_indexed(const char *name, rdna_stream *stream, const char *argument, const rdna_tensor *x);

/* The sizes of |indices| are at most those of |x|, but along |skip|. */
rdna_status rdna__check_within(const char *name, const rdna_tensor *indices, const char *x_name, const rdna_tensor *x,
                               int skip);
/* |indices| has rank 1 and as many as size |dim| of |values|, whose other sizes are x's. */
rdna_status rdna__check_select(const char *name, const char *values_name, const rdna_tensor *values, const char *x_name,
                               const rdna_tensor *x, int dim, const rdna_tensor *indices);

/* |x| seen through |shape|, with stride 0 along |dim|. */
rdna_tensor rdna__index_base(const rdna_tensor *x, int dim, int rank, const int64_t *shape);
/* How |indices| along dimension |dim| of |x| are read; |wrap|: negative ones count from the end. */
struct index_rule rdna__index_rule(const rdna_tensor *x, int dim, rdna_dtype indices, bool wrap, uint32_t *outside);

/* Copies the values at the indices to |values|, a view of the shape of |indexed|, or with |put| |values| to them; NULL
 * to put |value|. */
rdna_status rdna__index_move(const rdna__indexed *indexed, bool put, const rdna_tensor *values, rdna_scalar value);

/* |view| of the shape with strides 0 but along |dim|, where it is |indices|, of rank 1. */
rdna_tensor rdna__along_dim(const rdna_tensor *indices, int dim, int rank, const int64_t *shape);

/* An offset for each index, of u32 or i64. */
rdna_status rdna__index_offsets(const rdna__indexed *indexed, struct index_offset_args args, void *out);
/* u32 offsets from |indexed| for each value in order, or |absent|: see struct index_offset_args. */
rdna_status rdna__index_keys(const rdna__indexed *indexed, bool add, int64_t absent, int64_t skipped, uint32_t *keys);

/* Advanced indexing, checked. Dimensions of the result: |rank| in |shape|, those of the broadcast indices from |first|
 * on, |broadcast_rank| of them; dimension d of the result is x's |from|[d], or -1. */
typedef struct rdna__advanced {
  int rank, first, broadcast_rank, indexed_count;
  int64_t shape[RDNA_MAX_RANK];
  int from[RDNA_MAX_RANK];
  int indexed_dim[RDNA_MAX_RANK];
  rdna_tensor indices[RDNA_MAX_RANK]; /* views of the broadcast shape */
} rdna__advanced;
rdna_status rdna__advanced_plan(const char *name, const rdna_tensor *x, const rdna_tensor *const *indices,
                                rdna__advanced *out_plan);
/* All indices as one: the first itself, or the sums of offsets from the lowest place, in units of what divides all. */
rdna_status rdna__advanced_combine(rdna__scratch *scratch, const rdna__advanced *p, const rdna_tensor *x,
                                   uint32_t *outside, rdna__indexed *out);

/* Values that go to |rows| places. Queues sorting and joining; the caller releases |scratch|. */
typedef struct rdna__segments {
  const char *name;
  rdna_dtype dtype;
  rdna_scatter mode; /* not ASSIGN */
  bool include_self;
  int64_t outer, n, rows, inner;
  const uint32_t *keys; /* (n), |rows| for what goes nowhere */
  const void *src;      /* (outer, n, inner) */
  void *dst;            /* (outer, rows, inner) */
} rdna__segments;
/* Types and sizes that have kernels. */
rdna_status rdna__check_segments(const char *name, rdna_dtype dtype, rdna_scatter mode, int64_t n, int64_t rows);
rdna_status rdna__segments_queue(rdna__scratch *scratch, const rdna__segments *segments);

#endif
