/* Weights from one type to another, in slices of a size that any device has room for. */
#ifndef RDNA_MODEL_WEIGHTS_TRANSCODE_H
#define RDNA_MODEL_WEIGHTS_TRANSCODE_H

#include "rdna/device.h"
#include "rdna/model.h"

typedef struct rdna__transcoder rdna__transcoder;

/* |device| computes; it is retained. */
rdna_status rdna__transcoder_create(rdna_device *device, rdna__transcoder **out_transcoder);
void rdna__transcoder_release(rdna__transcoder *transcoder); /* NULL is fine */

/* Appends |count| values of type |from| at |values|, in host memory, to the tensor at hand of |writer|, as values of
 * type |to|; with equal types the bytes as they are. |count| is a whole number of blocks of both. |add|, 0 but for |to|
 * f32, is added to each. RDNA_UNSUPPORTED: a type that is not made (rdna_op_quantize), or values that |to| does not
 * hold. */
rdna_status rdna__transcode(rdna__transcoder *transcoder, rdna_gguf_writer *writer, const void *values, rdna_dtype from,
                            rdna_dtype to, int64_t count, double add);

/* The same of rows of |columns| values to blocks of which rdna_op_quantize_weighted makes some, with |importance|, one
 * number, 0 or more, for each column. */
rdna_status rdna__transcode_weighted(rdna__transcoder *transcoder, rdna_gguf_writer *writer, const void *values,
                                     rdna_dtype from, rdna_dtype to, int64_t count, const float *importance,
                                     int64_t columns);

/* Whether rdna__transcode can read it: f32, f16, bf16, blocks. */
bool rdna__transcodes_from(rdna_dtype dtype);

#endif
