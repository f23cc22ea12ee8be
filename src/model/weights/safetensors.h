/* Safetensors (github.com/huggingface/safetensors): tensors by name in one file or several.
 *
 *     u64 length of the header | header: JSON, {"name": {"dtype", "shape", "data_offsets": [begin, end]}, …} | data
 *                                                                       offsets count from here ^
 */
#ifndef RDNA_MODEL_WEIGHTS_SAFETENSORS_H
#define RDNA_MODEL_WEIGHTS_SAFETENSORS_H

#include <jansson.h>

#include "base/file.h"
#include "base/status.h"
#include "rdna/model.h"
#include "rdna/tensor.h"

typedef struct rdna__safetensor {
  const char *name;
  const char *type; /* as the file has it: "BF16" */
  rdna_dtype dtype; /* RDNA_DTYPE_COUNT when this library has no such type; then nothing is known of the size. Of blocks
                       in files of GGUF alone */
  int rank;
  int64_t shape[RDNA_MAX_RANK]; /* slowest dimension first */
  const uint8_t *data;          /* in the file's map, of any alignment; NULL when there are no bytes */
  size_t bytes;
} rdna__safetensor;

typedef struct rdna__safetensors rdna__safetensors;

/* The tensors of |folder|: of model.safetensors, or of the files that model.safetensors.index.json lists.
 * RDNA_NOT_FOUND: none of the two, or a listed file is missing. RDNA_BAD_DATA: what breaks the format, or contradicts
 * the index; every number is checked before use. */
rdna_status rdna__safetensors_open(const char *folder, rdna__safetensors **out_tensors);
/* The same of files that are called otherwise. */
rdna_status rdna__safetensors_open_named(const char *folder, const char *file, const char *index,
                                         rdna__safetensors **out_tensors);
/* The same of one file. */
rdna_status rdna__safetensors_open_file(const char *path, rdna__safetensors **out_tensors);
/* The same of one file of safetensors or of GGUF, which its first bytes tell. Of GGUF's blocks a tensor's rows need be
 * no whole number, where the file says that it had another shape ("comfy.gguf.orig_shape.NAME"). */
rdna_status rdna__safetensors_open_either(const char *path, rdna__safetensors **out_tensors);
/* Those of a file of another format, of which |header| says what a header would, with offsets from the file's begin;
 * both are taken, also by a failure. */
rdna_status rdna__safetensors_of_header(rdna__file *map, json_t *header, rdna__safetensors **out_tensors);
/* Those of an open file of GGUF, which is closed with them; where they are refused it stays the caller's. */
rdna_status rdna__safetensors_of_gguf(rdna_gguf *file, rdna__safetensors **out_tensors);
/* That file; NULL: they are of no such one. Borrowed. */
const rdna_gguf *rdna__safetensors_gguf(const rdna__safetensors *tensors);
/* One file in |size| bytes at |data|, which the caller keeps. */
rdna_status rdna__safetensors_open_memory(const void *data, size_t size, rdna__safetensors **out_tensors);
void rdna__safetensors_close(rdna__safetensors *tensors); /* NULL is fine */

size_t rdna__safetensors_count(const rdna__safetensors *tensors);
/* What the first file says of itself under |key| in its "__metadata__"; NULL: nothing. Borrowed. */
const char *rdna__safetensors_metadata(const rdna__safetensors *tensors, const char *key);
/* In the order of the files. Borrowed. */
const rdna__safetensor *rdna__safetensors_at(const rdna__safetensors *tensors, size_t index);
/* Value |i| of a tensor of f32, f16 or bf16. */
float rdna__safetensor_value(const rdna__safetensor *tensor, int64_t i);
/* NULL when there is none. */
const rdna__safetensor *rdna__safetensors_find(const rdna__safetensors *tensors, const char *name);

#endif
