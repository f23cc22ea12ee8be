/* Checks of arguments, made by every operator before it launches anything. A failure's sentence names the operator, the
 * argument, what was passed and what is wanted.
 *
 * Meaningless arguments are RDNA_INVALID_ARGUMENT. Types and layouts that mean something but have no kernel are
 * RDNA_UNSUPPORTED, so that a framework can fall back. */
#ifndef RDNA_MATH_COMMON_PLAN_CHECK_H
#define RDNA_MATH_COMMON_PLAN_CHECK_H

#include <stdbool.h>

#include "base/status.h"
#include "rdna/kernel.h"
#include "rdna/tensor.h"

/* Most work-groups of a launch. Along x: AMD counts the threads of a grid in 32 bits, and groups have at most 256
 * threads where this bound is used. Along y and z: the limit of CUDA. */
enum { RDNA__GRID_X_MAX = (1 << 24) - 1, RDNA__GRID_YZ_MAX = 65535 };

/* Writes "f32 (2, 3)" and returns |text|. */
enum { RDNA__TENSOR_TEXT = 256 };
const char *rdna__tensor_text(const rdna_tensor *tensor, char text[RDNA__TENSOR_TEXT]);

rdna_status rdna__check_stream(const char *op_name, const rdna_stream *stream);

/* Checks that the tensor is not NULL, its type and rank are in range, no size is negative, its bytes fit in 63 bits,
 * and, unless it is empty, that it has data at a multiple of a value's size. */
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
/* Checks that size |dim| of |tensor| is |size|; |meaning| says in the failure's sentence what that is. */
rdna_status rdna__check_size(const char *op_name, const char *argument, const rdna_tensor *tensor, int dim,
                             int64_t size, const char *meaning);
rdna_status rdna__check_same_dtype(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                   const char *other_argument, const rdna_tensor *other);
rdna_status rdna__check_same_shape(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                   const char *other_argument, const rdna_tensor *other);
/* Checks that the tensor is contiguous; else RDNA_UNSUPPORTED. */
rdna_status rdna__check_contiguous(const char *op_name, const char *argument, const rdna_tensor *tensor);
/* Checks that |*dim| is a dimension of |tensor|, and makes a negative one, counted from the end, count from 0. A scalar
 * has one dimension. */
rdna_status rdna__check_dim(const char *op_name, const char *argument, const rdna_tensor *tensor, int *dim);
/* Checks the epsilon of a norm: not negative, and finite in f32. */
rdna_status rdna__check_epsilon(const char *op_name, double epsilon);
/* Checks that the last |dense| dimensions are contiguous; else RDNA_UNSUPPORTED. */
rdna_status rdna__check_dense_tail(const char *op_name, const char *argument, const rdna_tensor *tensor, int dense);
/* Checks that |out| does not overlap |in|: the ranges from the first to the last byte of each. */
rdna_status rdna__check_apart(const char *op_name, const char *out_argument, const rdna_tensor *out,
                              const char *argument, const rdna_tensor *in);
/* Checks that |out| either is |in| (in place: the same address, shape and strides) or does not overlap it. */
rdna_status rdna__check_overlap(const char *op_name, const char *out_argument, const rdna_tensor *out,
                                const char *argument, const rdna_tensor *in);

typedef struct rdna__named {
  const char *name;
  const rdna_tensor *tensor; /* or NULL */
} rdna__named;
/* Checks that the tensors written overlap neither each other nor those read, except that the first written may be one
 * of the first |shared| read, in place. */
rdna_status rdna__check_written_apart(const char *op_name, const rdna__named *written, int writes,
                                      const rdna__named *read, int reads, int shared);

/* Gives a tensor of any rank as (rows, cols): cols is the last size, |*out_stride| the elements from row to row.
 * RDNA_UNSUPPORTED when the last dimension is not contiguous or the others do not merge into one stride. A scalar is
 * one row of one value. */
rdna_status rdna__check_rows(const char *op_name, const char *argument, const rdna_tensor *tensor, int64_t *out_rows,
                             int64_t *out_cols, int64_t *out_stride);

/* Checks that written rows, as rdna__check_rows gives them, do not overlap. */
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

/* Returns count / by rounded up; |count| is at least 0, |by| at least 1. */
static inline int64_t rdna__divide_up(int64_t count, int64_t by) { return count / by + (count % by != 0); }

/* Returns |groups|, or the most of a launch if that is fewer: for kernels whose groups stride over what is left. */
uint32_t rdna__groups_in_turn(int64_t groups);
/* Returns the groups of |threads| for a kernel that gives a row to each wave and strides over the rows. Where rows are
 * short, of up to 1 KB, groups are at most 16 for each compute unit and stride over several rows, as starting a group
 * costs more than a few short rows. */
uint32_t rdna__groups_of_waves(rdna_stream *stream, int64_t rows, int64_t row_bytes, int threads);

/* Gives the groups that cover |count| at |per_group| each; RDNA_UNSUPPORTED if they are more than a launch has. */
rdna_status rdna__check_groups(const char *op_name, int64_t count, int64_t per_group, uint32_t *out_groups);

/* Finds the kernel for the stream's device and queues it. */
rdna_status rdna__launch_named(rdna_stream *stream, const char *kernel_name, rdna_grid grid, const void *args);

#endif
