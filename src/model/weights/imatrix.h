/* Importance matrices: for each column of a model's matrices the mean square of what it was multiplied by over some
 * text, as llama.cpp's imatrix files have it. Two forms are read:
 *
 *     GGUF     of tensor NAME, NAME.in_sum2 (matrices, columns) sums of squares, NAME.counts (matrices, 1) how many
 *     older    i32 entries | i32 bytes of the name, name, i32 calls, i32 values, f32 sums (values) | …
 *                                         (tools/imatrix of github.com/ggml-org/llama.cpp)
 */
#ifndef RDNA_MODEL_WEIGHTS_IMATRIX_H
#define RDNA_MODEL_WEIGHTS_IMATRIX_H

#include "base/status.h"
#include "rdna/model.h"

typedef struct rdna__imatrix rdna__imatrix;

/* RDNA_NOT_FOUND, RDNA_IO_ERROR. RDNA_BAD_DATA: what breaks the format, numbers below 0 or that are none. */
rdna_status rdna__imatrix_open(const char *path, rdna__imatrix **out_imatrix);
/* The same of |size| bytes at |data|, aligned to 8 bytes, which are not needed afterwards. */
rdna_status rdna__imatrix_open_memory(const void *data, size_t size, rdna__imatrix **out_imatrix);
void rdna__imatrix_close(rdna__imatrix *imatrix); /* NULL is fine */

size_t rdna__imatrix_count(const rdna__imatrix *imatrix); /* of tensors */
/* The means of |tensor|, (matrices, columns) with one matrix or as many as the tensor has; NULL in |*out_means|: there
 * are none. RDNA_BAD_DATA: there are another number of them. */
rdna_status rdna__imatrix_find(const rdna__imatrix *imatrix, const rdna_gguf_tensor *tensor, const float **out_means,
                               int64_t *out_matrices);

#endif
