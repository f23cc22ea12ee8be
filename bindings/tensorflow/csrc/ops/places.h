/* Places that a tensor of indices names in another, as GatherNd and the ScatterNd operators have them. */
#ifndef RDNA_TENSORFLOW_PLACES_H
#define RDNA_TENSORFLOW_PLACES_H

#include "kernel.h"

/* |indices|, whose last dimension has a place in each of x's first dimensions, |*out_count| of them, as numbers of rows
 * behind those, (places) of i64; -1 for what is outside. */
rdna_status flat_rows(call *c, const rdna_tensor *indices, const rdna_tensor *x, int *out_count, rdna_tensor *out_rows);
/* x(indices) into output 0. */
rdna_status gather_places(call *c, const rdna_tensor *x, const rdna_tensor *indices);
/* |updates| into dst(indices), joined as the row's number says. */
rdna_status put_places(call *c, const rdna_tensor *dst, const rdna_tensor *indices, const rdna_tensor *updates);

/* Refuses |places| (count, columns), i32 or i64, of which one in a column is not from 0 to below that column's |size|.
 * The host waits for the answer. */
rdna_status check_places(call *c, const rdna_tensor *places, const int64_t *size);
/* The same of indices of any shape, all below one |size|. */
rdna_status check_indices(call *c, const rdna_tensor *indices, int64_t size);

/* Input 4 into what inputs 1 to 3 (begin, end, strides) cut out of |x|. */
rdna_status write_slice(call *c, const rdna_tensor *x);

#endif
