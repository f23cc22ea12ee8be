/* What the files of this folder share: an array's insides. */
#ifndef RDNA_ARRAY_ARRAY_H
#define RDNA_ARRAY_ARRAY_H

#include "base/status.h"
#include "rdna/array.h"

/* Memory that an array and its views share. */
typedef struct rdna__storage rdna__storage;

/* What an array has that has no values yet: src/graph/lazy.c's. */
typedef struct rdna__recording rdna__recording;
typedef struct rdna__lazy {
  const rdna__recording *functions;
} rdna__lazy;

struct rdna_array {
  int count; /* of references */
  rdna__storage *storage;
  rdna_stream *stream;
  rdna_tensor tensor;
  rdna__lazy *lazy; /* NULL of an array with values */
};

/* What functions of rdna/array.h do, with the same arguments, where one of the arrays has no values yet. */
struct rdna__recording {
  void (*release)(rdna__lazy *lazy);
  rdna_status (*compute)(const rdna_array *array, rdna_array **out_array);
  rdna_status (*map)(rdna_array *x, rdna_map op, rdna_scalar p, rdna_scalar q, rdna_array **out_array);
  rdna_status (*zip)(rdna_array *a, rdna_array *b, rdna_zip op, rdna_scalar p, rdna_scalar q, rdna_array **out_array);
  rdna_status (*zip_number)(rdna_array *x, rdna_scalar number, bool number_first, rdna_zip op, rdna_scalar p,
                            rdna_scalar q, rdna_array **out_array);
  rdna_status (*compare)(rdna_array *a, rdna_array *b, rdna_compare op, rdna_array **out_array);
  rdna_status (*compare_number)(rdna_array *a, rdna_scalar number, rdna_compare op, rdna_array **out_array);
  rdna_status (*where)(rdna_array *condition, rdna_array *a, rdna_array *b, rdna_array **out_array);
  rdna_status (*reduce)(rdna_array *x, rdna_reduction reduction, uint32_t dims, bool keep_dims, double parameter,
                        rdna_array **out_array);
  rdna_status (*matmul)(rdna_array *a, rdna_array *b, rdna_array **out_array);
  rdna_status (*cast)(rdna_array *array, rdna_dtype dtype, rdna_array **out_array);
  rdna_status (*reshape)(rdna_array *array, int rank, const int64_t *shape, rdna_array **out_array);
  rdna_status (*permute)(rdna_array *array, const int *dims, rdna_array **out_array);
  rdna_status (*slice)(rdna_array *array, int dim, int64_t start, int64_t count, int64_t step, rdna_array **out_array);
  rdna_status (*broadcast)(rdna_array *array, int rank, const int64_t *shape, rdna_array **out_array);
  rdna_status (*concat)(rdna_array *const *arrays, int count, int dim, rdna_array **out_array);
  rdna_status (*gather)(rdna_array *x, int dim, rdna_array *indices, rdna_array **out_array);
};
/* NULL: all arrays have values. */
static inline const rdna__recording *rdna__array_recording(rdna_array *const *arrays, int count) {
  for (int i = 0; i < count; i++)
    if (arrays[i]->lazy) return arrays[i]->lazy->functions;
  return NULL;
}

/* An array without values yet. */
rdna_status rdna__array_make(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                             rdna_array **out_array);
/* Fails unless an array can have the type and shape. */
rdna_status rdna__array_check_shape(rdna_dtype dtype, int rank, const int64_t *shape);
/* Another array over |array|'s memory, which |view| describes. */
rdna_status rdna__array_view(const rdna_array *array, const rdna_tensor *view, rdna_array **out_array);
/* An array over the memory of |owner|, which |release| gets when the last view is gone; there is no stop for the stream
 * before that. */
rdna_status rdna__array_borrow(rdna_stream *stream, const rdna_tensor *tensor, void (*release)(void *owner),
                               void *owner, rdna_array **out_array);
/* How many arrays share |array|'s memory, itself too. */
int rdna__array_holders(const rdna_array *array);
/* The values in memory of their own, converted as rdna_op_copy does. */
rdna_status rdna__array_copy(rdna_array *array, rdna_dtype dtype, rdna_array **out_array);
/* Hands |made| over where |status| is RDNA_OK, else releases it; returns |status|. */
rdna_status rdna__array_finish(rdna_status status, rdna_array *made, rdna_array **out_array);
/* Fails with the name of the function unless all of |arrays| are there and of one stream, and there is a place for the
 * result. */
rdna_status rdna__array_check(const char *function, rdna_array *const *arrays, int count, rdna_array **out_array);

/* Whether an array can hold values of the type: all but blocks and 8-bit floats, as in the table of promotions. */
bool rdna__array_is_plain(rdna_dtype dtype);
bool rdna__array_is_float(rdna_dtype dtype);
bool rdna__array_is_unsigned(rdna_dtype dtype); /* u8 to u64 */
/* The type in which integers and bool are taken where only floats do: f64 for 32 and 64 bits, f32 for what fits. */
rdna_dtype rdna__array_float_for(rdna_dtype dtype);

/* The types in which a map or zip computes of arrays of |dtype|, and those that a reduction reads, writes and ends in.
 */
rdna_status rdna__array_map_type(rdna_map op, rdna_dtype dtype, rdna_dtype *out);
rdna_status rdna__array_zip_type(rdna_zip op, rdna_dtype dtype, rdna_dtype *out);
void rdna__array_reduce_types(rdna_reduction reduction, rdna_dtype dtype, rdna_dtype *in, rdna_dtype *sum,
                              rdna_dtype *out);

/* The shape that all of |arrays| are broadcast to, into |out|. */
rdna_status rdna__array_join_shapes(const char *function, rdna_array *const *arrays, int count, rdna_tensor *out);
/* Of two arrays of matrices, which can be multiplied: their dimensions before the last two, broadcast, into |out|,
 * whose rank they become. */
rdna_status rdna__array_join_batches(const rdna_array *a, const rdna_array *b, rdna_tensor *out);

/* "f32 (3, 4)" */
enum { RDNA__ARRAY_TEXT = 192 };
const char *rdna__array_text(const rdna_tensor *tensor, char text[RDNA__ARRAY_TEXT]);

/* |*dim|, from the end where it is negative, of |rank| dimensions. */
rdna_status rdna__array_dim(const char *function, int rank, int *dim);

#endif
