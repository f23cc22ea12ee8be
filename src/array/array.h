/* What the files of this folder share: an array's insides. */
#ifndef RDNA_ARRAY_ARRAY_H
#define RDNA_ARRAY_ARRAY_H

#include "base/status.h"
#include "rdna/array.h"

/* Memory that an array and its views share. */
typedef struct rdna__storage rdna__storage;

struct rdna_array {
  int count; /* of references */
  rdna__storage *storage;
  rdna_stream *stream;
  rdna_tensor tensor;
};

/* An array without values yet. */
rdna_status rdna__array_make(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                             rdna_array **out_array);
/* Another array over |array|'s memory, which |view| describes. */
rdna_status rdna__array_view(const rdna_array *array, const rdna_tensor *view, rdna_array **out_array);
/* Hands |made| over where |status| is RDNA_OK, else releases it; returns |status|. */
rdna_status rdna__array_finish(rdna_status status, rdna_array *made, rdna_array **out_array);
/* Fails with the name of the function unless all of |arrays| are there and of one stream, and there is a place for the
 * result. */
rdna_status rdna__array_check(const char *function, rdna_array *const *arrays, int count, rdna_array **out_array);

/* Whether an array can hold values of the type: the first ten of rdna_dtype, which the table of promotions has. */
bool rdna__array_is_plain(rdna_dtype dtype);
bool rdna__array_is_float(rdna_dtype dtype);
/* The type in which integers and bool are taken where only floats will do: f64 for i32 and i64, f32 for what fits. */
rdna_dtype rdna__array_float_for(rdna_dtype dtype);

/* The shape that all of |arrays| are broadcast to, into |out|. */
rdna_status rdna__array_join_shapes(const char *function, rdna_array *const *arrays, int count, rdna_tensor *out);

/* "f32 (3, 4)" */
enum { RDNA__ARRAY_TEXT = 192 };
const char *rdna__array_text(const rdna_tensor *tensor, char text[RDNA__ARRAY_TEXT]);

/* |*dim|, from the end where it is negative, of |rank| dimensions. */
rdna_status rdna__array_dim(const char *function, int rank, int *dim);

#endif
