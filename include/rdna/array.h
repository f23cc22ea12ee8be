/* Arrays: tensors that own their memory, are counted, and come out of functions rather than being handed in. Shapes are
 * broadcast and types promoted as NumPy does; what a function gives is a new array, or a view of the memory of one.
 *
 *     rdna_array *x, *y, *z;
 *     rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){3, 4}, data, &x);
 *     rdna_array_map(x, RDNA_MAP_EXP, zero, zero, &y);
 *     rdna_array_zip(x, y, RDNA_ZIP_ADD, zero, zero, &z);
 *     rdna_array_to_host(z, data, sizeof data);
 *     rdna_array_release(x); …
 *
 * Values are of plain types: f32 f16 bf16 f64, i8 i16 i32 i64, u8 u16 u32 u64, bool. Work is queued on the stream that
 * an array was made on, which must outlive it; arrays of one call are of one stream. Arrays never change, so that views
 * are safe to keep; whoever writes through rdna_array_tensor asks rdna_array_own first. Counting is safe from any
 * thread.
 *
 * A failure gives no array and leaves the arguments as they were. RDNA_INVALID_ARGUMENT: shapes that cannot be
 * broadcast, dims that are not there, arrays of two streams. RDNA_UNSUPPORTED: a type or operation of which there is
 * none. RDNA_OUT_OF_MEMORY. |*out_array| is the caller's to release. */
#ifndef RDNA_ARRAY_H
#define RDNA_ARRAY_H

#include "rdna/op/pointwise.h"
#include "rdna/op/reduce.h"
#include "rdna/scalar.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_array rdna_array;

RDNA_API rdna_array *rdna_array_retain(rdna_array *array); /* returns it */
RDNA_API void rdna_array_release(rdna_array *array);       /* NULL is fine */

/* Shape, strides and memory, for operators of rdna/op.h. Borrowed. Data of an empty array is NULL. */
RDNA_API const rdna_tensor *rdna_array_tensor(const rdna_array *array);
RDNA_API rdna_stream *rdna_array_stream(const rdna_array *array); /* borrowed */

/* The smallest type that holds every value of both, as NumPy's result_type: i8 with u8 is i16, i16 with f16 f32, i32
 * with f32 f64, f16 with bf16 f32. i64 and u64 with a float, and with each other, are f64, which holds most.
 * RDNA_DTYPE_COUNT: one is not plain. */
RDNA_API rdna_dtype rdna_dtype_promote(rdna_dtype a, rdna_dtype b);

/* ---- making ---- */

/* |shape| has |rank| sizes, slowest first; NULL where |rank| is 0. The values are whatever was there: for operators of
 * rdna/op.h to write. */
RDNA_CHECKED rdna_status rdna_array_empty(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                                          rdna_array **out_array);
/* The same with |value| everywhere. */
RDNA_CHECKED rdna_status rdna_array_full(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                                         rdna_scalar value, rdna_array **out_array);
/* start + i * step, |count| of them. */
RDNA_CHECKED rdna_status rdna_array_arange(rdna_stream *stream, rdna_dtype dtype, int64_t count, rdna_scalar start,
                                           rdna_scalar step, rdna_array **out_array);
/* From contiguous values on the host, which the call has read when it returns. */
RDNA_CHECKED rdna_status rdna_array_from_host(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                                              const void *data, rdna_array **out_array);
/* Waits for the values and writes them contiguously. |bytes| must be what they take. */
RDNA_CHECKED rdna_status rdna_array_to_host(const rdna_array *array, void *data, size_t bytes);

/* ---- sharing memory with other libraries, by DLPack's structs (github.com/dmlc/dlpack, 1.0) ---- */

/* A DLManagedTensorVersioned, or without |versioned| the DLManagedTensor of before 1.0, over the values, for which the
 * call waits; its deleter, from any thread, lets go of them. With |copied| they are a copy, which may be written; else
 * they must not be, which the former says in a flag. With |pairs| the last dimension, of size 2 and stride 1, is
 * complex numbers. RDNA_INVALID_ARGUMENT: it is not. */
RDNA_CHECKED rdna_status rdna_array_to_dlpack(rdna_array *array, bool versioned, bool copied, bool pairs,
                                              void **out_managed);
/* An array over the memory of such a struct, whose values are there, on the stream's device; |*out_pairs|: of complex
 * numbers, in pairs. On success the array calls the deleter when its last view is gone, after it waited for the
 * stream; else |managed| stays the caller's. RDNA_INVALID_ARGUMENT: another device, another major version, sizes
 * that make no sense. RDNA_UNSUPPORTED: a type that arrays have not, more than RDNA_MAX_RANK dimensions. */
RDNA_CHECKED rdna_status rdna_array_from_dlpack(rdna_stream *stream, void *managed, bool versioned, bool *out_pairs,
                                                rdna_array **out_array);
/* Calls the deleter of a struct that nobody took. */
RDNA_API void rdna_dlpack_release(void *managed, bool versioned);
/* The device as DLPack numbers it: 1 the host, 2 CUDA, 10 ROCm; and which of them. */
RDNA_API void rdna_dlpack_device(const rdna_stream *stream, int32_t *out_type, int32_t *out_index);

/* ---- views, and copies where there is no view ---- */

/* The same values in another shape, one size of which may be -1: what is left. A view where the strides allow it. */
RDNA_CHECKED rdna_status rdna_array_reshape(rdna_array *array, int rank, const int64_t *shape, rdna_array **out_array);
/* A view whose dimension i is dimension dims[i] of |array|; |dims| NULL turns them all round. */
RDNA_CHECKED rdna_status rdna_array_permute(rdna_array *array, const int *dims, rdna_array **out_array);
/* A view of |count| places of dimension |dim|, from |start| on, |step| apart; a negative step goes backwards. */
RDNA_CHECKED rdna_status rdna_array_slice(rdna_array *array, int dim, int64_t start, int64_t count, int64_t step,
                                          rdna_array **out_array);
/* A view in which sizes of 1, and dimensions that are missing in front, repeat. */
RDNA_CHECKED rdna_status rdna_array_broadcast(rdna_array *array, int rank, const int64_t *shape,
                                              rdna_array **out_array);
/* A view with a dimension of size 1 before |dim|, or behind the last; and one without a dimension of size 1. */
RDNA_CHECKED rdna_status rdna_array_expand(rdna_array *array, int dim, rdna_array **out_array);
RDNA_CHECKED rdna_status rdna_array_squeeze(rdna_array *array, int dim, rdna_array **out_array);
/* A view of the diagonal that begins at column |offset|, or at row -|offset|, of the matrices in dimensions |rows| and
 * |columns|: the two become one in the place of the former of them; of no values where it begins outside. */
RDNA_CHECKED rdna_status rdna_array_diagonal(rdna_array *array, int rows, int columns, int64_t offset,
                                             rdna_array **out_array);
/* A view of the same bytes as values of another type that take as many each: f32 as i32 is its bits. */
RDNA_CHECKED rdna_status rdna_array_bits(rdna_array *array, rdna_dtype dtype, rdna_array **out_array);
/* Itself where |array| is counted once and no other shares its memory, else a copy: what may be written through
 * rdna_array_tensor, and views of it, without another array seeing that. */
RDNA_CHECKED rdna_status rdna_array_own(rdna_array *array, rdna_array **out_array);
/* Itself where values lie without gaps in their order, else a copy. */
RDNA_CHECKED rdna_status rdna_array_contiguous(rdna_array *array, rdna_array **out_array);
/* Itself where it has the type, else a copy: rdna_op_copy says how values are converted. */
RDNA_CHECKED rdna_status rdna_array_cast(rdna_array *array, rdna_dtype dtype, rdna_array **out_array);

/* ---- computing ---- */

/* Value by value. Where |op| is of floats alone, integers of 32 and 64 bits become f64 first, others and bool f32. */
RDNA_CHECKED rdna_status rdna_array_map(rdna_array *x, rdna_map op, rdna_scalar p, rdna_scalar q,
                                        rdna_array **out_array);
/* Two arrays, broadcast to one shape and promoted to one type; as floats where |op| is of floats alone. RDNA_ZIP_DIV
 * of integers is their quotient as f64, and of bool and integers up to 16 bits as f32: rounding down is
 * RDNA_ZIP_FLOOR_DIV. */
RDNA_CHECKED rdna_status rdna_array_zip(rdna_array *a, rdna_array *b, rdna_zip op, rdna_scalar p, rdna_scalar q,
                                        rdna_array **out_array);
/* The same with |number| as |b|, or with |number_first| as |a|, taken in |x|'s type. */
RDNA_CHECKED rdna_status rdna_array_zip_number(rdna_array *x, rdna_scalar number, bool number_first, rdna_zip op,
                                               rdna_scalar p, rdna_scalar q, rdna_array **out_array);
/* Answers in bool, of the values promoted to one type. |b| is NULL for a question about one array. */
RDNA_CHECKED rdna_status rdna_array_compare(rdna_array *a, rdna_array *b, rdna_compare op, rdna_array **out_array);
/* The same with |number| as |b|, taken in |a|'s type. */
RDNA_CHECKED rdna_status rdna_array_compare_number(rdna_array *a, rdna_scalar number, rdna_compare op,
                                                   rdna_array **out_array);
/* |a| where |condition|, which is bool, is true, else |b|; all three broadcast. */
RDNA_CHECKED rdna_status rdna_array_where(rdna_array *condition, rdna_array *a, rdna_array *b, rdna_array **out_array);
/* Over the dimensions whose bits are set in |dims|, which stay with size 1 where |keep_dims|. Sums and products of
 * integers and bool are i64, of u8 to u64 u64; means and what else is of floats alone take them as f64, and those of up
 * to 16 bits and bool as f32; argmin and argmax give i64. */
RDNA_CHECKED rdna_status rdna_array_reduce(rdna_array *x, rdna_reduction reduction, uint32_t dims, bool keep_dims,
                                           double parameter, rdna_array **out_array);
/* Products of matrices, the last two dimensions, with the others broadcast, as numpy.matmul: of one dimension |a| is a
 * row and |b| a column, which the result has not. Types of floats, promoted; others are RDNA_UNSUPPORTED. */
RDNA_CHECKED rdna_status rdna_array_matmul(rdna_array *a, rdna_array *b, rdna_array **out_array);

/* ---- several ---- */

/* One behind the other along |dim|, of which they may differ in size, as one array of their promoted type. */
RDNA_CHECKED rdna_status rdna_array_concat(rdna_array *const *arrays, int count, int dim, rdna_array **out_array);
/* out(i, j, k) = x(i, indices(i, j, k), k), for |dim| 1 of 3: rdna_op_gather. An index outside of x reads 0. */
RDNA_CHECKED rdna_status rdna_array_gather(rdna_array *x, int dim, rdna_array *indices, rdna_array **out_array);

#ifdef __cplusplus
}
#endif
#endif
