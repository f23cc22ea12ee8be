/* What every operator checks before it launches anything. A failure names the operator, the argument and both
 * values; nothing was written then.
 *
 * Meaningless arguments are RDNA_INVALID_ARGUMENT. Types and layouts that mean something but have no kernel are
 * RDNA_UNSUPPORTED, so that a framework can fall back. */
#ifndef RDNA_MATH_COMMON_PLAN_CHECK_H
#define RDNA_MATH_COMMON_PLAN_CHECK_H

#include <stdbool.h>

#include "base/status.h"
#include "rdna/kernel.h"
#include "rdna/tensor.h"

/* The largest number of work-groups along x: AMD counts threads of a grid in 32 bits, and no group of ours has
 * more than 256 threads where this bound is used. */
enum { RDNA__GRID_X_MAX = (1 << 24) - 1, RDNA__GRID_YZ_MAX = 65535 };

/* Writes "f32 (2, 3)" and returns |text|. */
enum { RDNA__TENSOR_TEXT = 256 };
const char *rdna__tensor_text(const rdna_tensor *tensor, char text[RDNA__TENSOR_TEXT]);

rdna_status rdna__check_stream(const char *op_name, const rdna_stream *stream);

/* The tensor is there, its type and rank are in range, no size is negative, its bytes fit in 63 bits, and it has
 * data, at a multiple of its value's size, unless it is empty. */
rdna_status rdna__check_tensor(const char *op_name, const char *argument, const rdna_tensor *tensor);
/* rdna__check_tensor, and RDNA_UNSUPPORTED unless the type is one of f32, f16, bf16. */
rdna_status rdna__check_float(const char *op_name, const char *argument, const rdna_tensor *tensor);
/* The same with f64 among the types. */
rdna_status rdna__check_real(const char *op_name, const char *argument, const rdna_tensor *tensor);
/* rdna__check_tensor, and RDNA_UNSUPPORTED for a type of blocks. */
rdna_status rdna__check_unquantized(const char *op_name, const char *argument, const rdna_tensor *tensor);
rdna_status rdna__check_dtype(const char *op_name, const char *argument, const rdna_tensor *tensor, rdna_dtype dtype);
rdna_status rdna__check_rank(const char *op_name, const char *argument, const rdna_tensor *tensor, int rank);
rdna_status rdna__check_one_value(const char *op_name, const char *argument, const rdna_tensor *tensor);
/* Size |dim| of |tensor| is |size|, which the sentence calls |meaning|. */
rdna_status rdna__check_size(const char *op_name, const char *argument, const rdna_tensor *tensor, int dim,
                             int64_t size, const char *meaning);
rdna_status rdna__check_same_dtype(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                   const char *other_argument, const rdna_tensor *other);
rdna_status rdna__check_same_shape(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                   const char *other_argument, const rdna_tensor *other);
/* RDNA_UNSUPPORTED otherwise. */
rdna_status rdna__check_contiguous(const char *op_name, const char *argument, const rdna_tensor *tensor);
/* |*dim| is one of |tensor|'s, counted from the end when negative, and becomes counted from 0. A scalar has one. */
rdna_status rdna__check_dim(const char *op_name, const char *argument, const rdna_tensor *tensor, int *dim);
/* |epsilon|, as every norm takes it, is finite in f32 too and not negative. */
rdna_status rdna__check_epsilon(const char *op_name, double epsilon);
/* The last |dense| dimensions are contiguous, so that a row of them is one run; RDNA_UNSUPPORTED otherwise. */
rdna_status rdna__check_dense_tail(const char *op_name, const char *argument, const rdna_tensor *tensor, int dense);
/* |out| shares no byte with |in|: by the first and the last byte of each. */
rdna_status rdna__check_apart(const char *op_name, const char *out_argument, const rdna_tensor *out,
                              const char *argument, const rdna_tensor *in);
/* |out| is exactly |in|, value by value, or apart from it. */
rdna_status rdna__check_overlap(const char *op_name, const char *out_argument, const rdna_tensor *out,
                                const char *argument, const rdna_tensor *in);

typedef struct rdna__named {
  const char *name;
  const rdna_tensor *tensor; /* or NULL */
} rdna__named;
/* What is written is apart from each other and from what is read, but the first written may be exactly one of the first
 * |shared| read, value by value. */
rdna_status rdna__check_written_apart(const char *op_name, const rdna__named *written, int writes,
                                      const rdna__named *read, int reads, int shared);

/* A tensor of any rank seen as (rows, cols): cols is the last size, and rows lie |*out_stride| elements apart.
 * RDNA_UNSUPPORTED when the last dimension has gaps or the leading ones do not fold into one stride. A rank of 0
 * is one row of one. */
rdna_status rdna__check_rows(const char *op_name, const char *argument, const rdna_tensor *tensor, int64_t *out_rows,
                             int64_t *out_cols, int64_t *out_stride);

/* Rows as rdna__check_rows gives them, which are written, do not run into each other. */
rdna_status rdna__check_written_rows(const char *op_name, const char *argument, const rdna_tensor *tensor, int64_t rows,
                                     int64_t cols, int64_t stride);

static inline bool rdna__is_contiguous(const rdna_tensor *x) {
  int64_t want = 1;
  for (int i = x->rank - 1; i >= 0; i--) {
    if (x->shape[i] != 1 && x->stride[i] != want) return false;
    want *= x->shape[i];
  }
  return true;
}

/* How many times |by| covers |count|, both at least 0. */
static inline int64_t rdna__divide_up(int64_t count, int64_t by) { return count / by + (count % by != 0); }

/* Of |groups| that take turns, where fewer do as well: as many as a launch has. */
uint32_t rdna__groups_in_turn(int64_t groups);
/* Groups of |threads| for rows of which each is a wave's, and which groups take in turn. Of short rows a group has
 * several, as launching it costs more than a few of them. */
uint32_t rdna__groups_of_waves(rdna_stream *stream, int64_t rows, int64_t row_bytes, int threads);

/* Groups that cover |count| with |per_group| each; RDNA_UNSUPPORTED when a GPU cannot count them. */
rdna_status rdna__check_groups(const char *op_name, int64_t count, int64_t per_group, uint32_t *out_groups);

/* Finds the kernel for the stream's device and queues it. */
rdna_status rdna__launch_named(rdna_stream *stream, const char *kernel_name, rdna_grid grid, const void *args);

#endif
