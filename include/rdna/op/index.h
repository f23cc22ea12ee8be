/* Values at places that indices say, and values that go there.
 *
 * Tensors may have any strides, and values any type but the quantized ones, unless said otherwise. Indices are i32 or
 * i64. They are on the device, where a call cannot look at them before it returns: an index outside of its dimension
 * reads and writes nothing of the indexed tensor, what would have been read is 0, and |outside|, a word of device
 * memory, or NULL, becomes 1; it is never made 0. Negative indices count from the end only where that is said, a
 * negative |dim| always.
 *
 * Outputs do not overlap the inputs, and no two of their values share a place. Empty tensors are RDNA_OK.
 * RDNA_INVALID_ARGUMENT: shapes, types or |dim| that disagree, missing data, overlap. RDNA_UNSUPPORTED: quantized
 * types, and where values are brought together or counted, 2^31 of them or more. */
#ifndef RDNA_OP_INDEX_H
#define RDNA_OP_INDEX_H

#include <stdbool.h>

#include "rdna/scalar.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out(i, j, k) = x(i, indices(i, j, k), k), for |dim| 1 of 3. |out| has the shape of |indices|, whose sizes are at most
 * x's in the other dimensions. */
RDNA_CHECKED rdna_status rdna_op_gather(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *indices,
                                        const rdna_tensor *out, uint32_t *outside);
/* out(i, j, k) = x(i, indices(j), k); |indices| has rank 1. */
RDNA_CHECKED rdna_status rdna_op_index_select(rdna_stream *stream, const rdna_tensor *x, int dim,
                                              const rdna_tensor *indices, const rdna_tensor *out, uint32_t *outside);
/* Advanced indexing as in NumPy. |indices| has x's rank of entries, at least one of them not NULL; those that are
 * there are broadcast together, say where along their dimensions values are taken, and may count from the end. Their
 * dimensions become those of the broadcast shape: in the place of the first of them when they are neighbours, else
 * before all others. |out| has the shape that results. A take from a flattened tensor is this with x of rank 1. */
RDNA_CHECKED rdna_status rdna_op_index(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *const *indices,
                                       const rdna_tensor *out, uint32_t *outside);
/* out(…, :) = table(ids(…), :), an embedding lookup; |out| has one dimension more than |ids|. From f16, bf16 and types
 * of blocks also into f32: rows of |table| and |out| are dense then with one stride, |ids| is i32 and contiguous,
 * |outside| is NULL, and an id outside of the table makes its row NaN. RDNA_UNSUPPORTED where that is not so. */
RDNA_CHECKED rdna_status rdna_op_embedding(rdna_stream *stream, const rdna_tensor *table, const rdna_tensor *ids,
                                           const rdna_tensor *out, uint32_t *outside);

/* How values that go to one place are joined. ASSIGN keeps any one of them; it needs no sorting and is the right one
 * for indices without repetition; while rdna_deterministic_get() it is LAST. The others sort the indices, and give the
 * same bits whatever the timing: LAST keeps the value that comes last in src's order, the rest join values in an order
 * that the indices alone decide, in f32 for f32, f16 and bf16, in f64 for f64, and in 64 bits for integers, which wrap.
 * MIN and MAX keep a NaN. MEAN is not offered for bool; of integers it is rounded towards minus infinity. bool adds as
 * "or" and multiplies as "and". 8-bit floats take ASSIGN and LAST alone, u16 to u64 neither MIN, MAX nor MEAN. */
typedef enum rdna_scatter {
  RDNA_SCATTER_ASSIGN = 0,
  RDNA_SCATTER_LAST,
  RDNA_SCATTER_ADD,
  RDNA_SCATTER_PROD,
  RDNA_SCATTER_MIN,
  RDNA_SCATTER_MAX,
  RDNA_SCATTER_MEAN,
  RDNA_SCATTER_COUNT
} rdna_scatter;

/* dst(i, indices(i, j, k), k) = src(i, j, k), for |dim| 1 of 3, joined as |mode| says. With |include_self| what dst
 * held is joined too, and counts in a mean; ASSIGN and LAST do not look at it. The sizes of |indices| are at most
 * src's, and at most dst's except along |dim|. Indices that are broadcast along all other dimensions (strides 0) move
 * whole rows, which is much faster. */
RDNA_CHECKED rdna_status rdna_op_scatter(rdna_stream *stream, const rdna_tensor *dst, int dim,
                                         const rdna_tensor *indices, const rdna_tensor *src, rdna_scatter mode,
                                         bool include_self, uint32_t *outside);
/* dst(i, indices(i, j, k), k) = value */
RDNA_CHECKED rdna_status rdna_op_scatter_value(rdna_stream *stream, const rdna_tensor *dst, int dim,
                                               const rdna_tensor *indices, rdna_scalar value, uint32_t *outside);
/* dst(i, indices(j), k) = src(i, j, k), joined as |mode| says; |indices| has rank 1. Copies with ASSIGN, and adds with
 * ADD and |include_self|. */
RDNA_CHECKED rdna_status rdna_op_index_copy(rdna_stream *stream, const rdna_tensor *dst, int dim,
                                            const rdna_tensor *indices, const rdna_tensor *src, rdna_scatter mode,
                                            bool include_self, uint32_t *outside);
/* dst(i, indices(j), k) = value; indices may count from the end. */
RDNA_CHECKED rdna_status rdna_op_index_fill(rdna_stream *stream, const rdna_tensor *dst, int dim,
                                            const rdna_tensor *indices, rdna_scalar value, uint32_t *outside);
/* dst[indices] = values, broadcast to the shape that rdna_op_index would give. |mode| is ASSIGN, LAST or, with what dst
 * held, ADD. */
RDNA_CHECKED rdna_status rdna_op_index_put(rdna_stream *stream, const rdna_tensor *dst,
                                           const rdna_tensor *const *indices, const rdna_tensor *values,
                                           rdna_scatter mode, uint32_t *outside);
/* dtable(r, :) = the sum of dout(…, :) over all ids(…) that are r; zeros for a row without any, and for |padding|, a
 * row or -1. With |by_frequency| the sum is divided by how many there were. f32, f16, bf16 and f64. */
RDNA_CHECKED rdna_status rdna_op_embedding_backward(rdna_stream *stream, const rdna_tensor *dout,
                                                    const rdna_tensor *ids, int64_t padding, bool by_frequency,
                                                    const rdna_tensor *dtable, uint32_t *outside);

typedef enum rdna_bag { RDNA_BAG_SUM, RDNA_BAG_MEAN, RDNA_BAG_MAX, RDNA_BAG_COUNT } rdna_bag;
/* Combines the rows of |table| that |indices| name, bag by bag: out(b, :) of those from begins(b) to begins(b + 1), or
 * to the end for the last. With |has_end|, |begins| has that end too. |weights|, one for each index, multiply rows of
 * sums; NULL: ones. Rows that are |padding|, unless -1, do not count; an empty bag is 0. Of the largest values a NaN is
 * taken where it comes first alone. Where they are not NULL, |largest| gets the rows that have the largest values, 0 in
 * empty bags, |bag_of| the bag of each index (nothing where it is in none), |sizes| how many rows count in each bag;
 * all i64. |table| and |out| are f32, f16, bf16 or f64, |indices| and |begins| i64 or i32 and on the device: an index
 * that is no row does not count, and makes |outside| 1. All but |table|, which may have gaps between rows, are
 * contiguous. Sums have the order of the indices. */
RDNA_CHECKED rdna_status rdna_op_embedding_bag(rdna_stream *stream, rdna_bag mode, const rdna_tensor *table,
                                               const rdna_tensor *indices, const rdna_tensor *begins, bool has_end,
                                               const rdna_tensor *weights, int64_t padding, const rdna_tensor *out,
                                               const rdna_tensor *largest, const rdna_tensor *bag_of,
                                               const rdna_tensor *sizes, uint32_t *outside);

/* How many values of |x| are not 0, into |out|, one i64 on the device: what a caller reads to know the size of the
 * output of the following. A NaN is not 0. */
RDNA_CHECKED rdna_status rdna_op_nonzero_count(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);
/* The coordinates of values that are not 0, in x's order: |out| is (count, x's rank) of i64, contiguous. Where it has
 * fewer rows than that, the first of them; where it has more, the rest stays as it was. */
RDNA_CHECKED rdna_status rdna_op_nonzero(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);
/* The values of |x| where |mask|, bool or u8 of x's shape, is not 0, in x's order. |out| is (count), contiguous, or
 * shorter or longer as above. Broadcasting is a stride of 0. */
RDNA_CHECKED rdna_status rdna_op_masked_select(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *mask,
                                               const rdna_tensor *out);
/* The inverse: the values of |dst| where |mask| is not 0 become those of |src|, in order, as long as |src| has more. */
RDNA_CHECKED rdna_status rdna_op_masked_scatter(rdna_stream *stream, const rdna_tensor *dst, const rdna_tensor *mask,
                                                const rdna_tensor *src);

#ifdef __cplusplus
}
#endif
#endif
