/* Model files and what stands before and after the network: GGUF, tokenizer, sampler. */
#ifndef RDNA_MODEL_H
#define RDNA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of text that someone else owns. Not NUL-terminated, and may hold zeros. */
typedef struct rdna_text {
  const char *data;
  size_t size;
} rdna_text;

/* ---- GGUF (github.com/ggml-org/ggml, docs/gguf.md), versions 2 and 3, little-endian ---- */

/* An open model file: metadata keys and tensors, mapped into memory and read only. Everything that the getters hand
 * out is borrowed and lives until rdna_gguf_close. Any number of threads may read at once. */
typedef struct rdna_gguf rdna_gguf;

/* Values as numbered in the file. */
typedef enum rdna_gguf_type {
  RDNA_GGUF_U8 = 0,
  RDNA_GGUF_I8,
  RDNA_GGUF_U16,
  RDNA_GGUF_I16,
  RDNA_GGUF_U32,
  RDNA_GGUF_I32,
  RDNA_GGUF_F32,
  RDNA_GGUF_BOOL,
  RDNA_GGUF_TEXT,
  RDNA_GGUF_ARRAY,
  RDNA_GGUF_U64,
  RDNA_GGUF_I64,
  RDNA_GGUF_F64,
  RDNA_GGUF_TYPE_COUNT
} rdna_gguf_type;

typedef struct rdna_gguf_key {
  const char *name;
  rdna_gguf_type type;
  rdna_gguf_type element_type; /* of an array; otherwise the same as |type| */
  uint64_t count;              /* elements of an array; otherwise 1 */
} rdna_gguf_key;

typedef struct rdna_gguf_tensor {
  const char *name;
  uint32_t ggml_type; /* as numbered in the file */
  rdna_dtype dtype;   /* RDNA_DTYPE_COUNT when this library has no such type */
  int rank;           /* 0 to 4 */
  int64_t shape[4];   /* slowest dimension first, as everywhere here; the file says fastest first */
  const void *data;   /* in the file's own map, aligned to at least 8 bytes; NULL when |bytes| is 0 */
  size_t bytes;
} rdna_gguf_tensor;

/* Opens |path|. Of a model in several files (name-00001-of-00003.gguf) any one may be named: all are opened, keys are
 * those of the first. The file must not change while it is open: pages are read when they are touched.
 * RDNA_NOT_FOUND, RDNA_IO_ERROR: no such file, or it cannot be read. RDNA_UNSUPPORTED: version 1 or big-endian.
 * RDNA_BAD_DATA: anything that breaks the format, with what and where; every length is checked before use. */
RDNA_CHECKED rdna_status rdna_gguf_open(const char *path, rdna_gguf **out_file);
/* The same over |size| bytes at |data|, aligned to 8 bytes; the caller keeps them until close. Refuses one part of a
 * model in several files. */
RDNA_CHECKED rdna_status rdna_gguf_open_memory(const void *data, size_t size, rdna_gguf **out_file);
RDNA_API void rdna_gguf_close(rdna_gguf *file); /* NULL is fine */

RDNA_API uint32_t rdna_gguf_version(const rdna_gguf *file);
RDNA_API size_t rdna_gguf_key_count(const rdna_gguf *file);
/* In the file's order. RDNA_INVALID_ARGUMENT past the last. */
RDNA_CHECKED rdna_status rdna_gguf_key_at(const rdna_gguf *file, size_t index, rdna_gguf_key *out_key);
RDNA_API const char *rdna_gguf_type_name(rdna_gguf_type type); /* "u8", "text", …; "?" outside the enumeration */

/* All getters: RDNA_NOT_FOUND when there is no such key, RDNA_BAD_DATA when its value is of another type or does not
 * fit; out parameters are then untouched. Find looks without making a sentence. */
RDNA_API bool rdna_gguf_find_key(const rdna_gguf *file, const char *name, rdna_gguf_key *out_key);
RDNA_CHECKED rdna_status rdna_gguf_get_u64(const rdna_gguf *file, const char *name, uint64_t *out); /* any integer */
RDNA_CHECKED rdna_status rdna_gguf_get_i64(const rdna_gguf *file, const char *name, int64_t *out);  /* any integer */
/* Any number; a 64-bit integer must be exact in a double. */
RDNA_CHECKED rdna_status rdna_gguf_get_f64(const rdna_gguf *file, const char *name, double *out);
RDNA_CHECKED rdna_status rdna_gguf_get_bool(const rdna_gguf *file, const char *name, bool *out);
RDNA_CHECKED rdna_status rdna_gguf_get_text(const rdna_gguf *file, const char *name, rdna_text *out);
/* An array of texts, whole. */
RDNA_CHECKED rdna_status rdna_gguf_get_texts(const rdna_gguf *file, const char *name, const rdna_text **out_texts,
                                             size_t *out_count);
/* Copies elements [first, first + count) of an array: of any integers or bools into i32, of any floats or integers into
 * f32. RDNA_INVALID_ARGUMENT when the range is not inside the array, RDNA_BAD_DATA when an element does not fit. */
RDNA_CHECKED rdna_status rdna_gguf_read_i32(const rdna_gguf *file, const char *name, uint64_t first, size_t count,
                                            int32_t *out);
RDNA_CHECKED rdna_status rdna_gguf_read_f32(const rdna_gguf *file, const char *name, uint64_t first, size_t count,
                                            float *out);

RDNA_API size_t rdna_gguf_tensor_count(const rdna_gguf *file);
/* In the file's order, of all files. Also describes tensors whose type this library does not have.
 * RDNA_INVALID_ARGUMENT past the last. */
RDNA_CHECKED rdna_status rdna_gguf_tensor_at(const rdna_gguf *file, size_t index, rdna_gguf_tensor *out_tensor);
/* RDNA_NOT_FOUND, or RDNA_UNSUPPORTED when the tensor's type is one that this library cannot use. */
RDNA_CHECKED rdna_status rdna_gguf_get_tensor(const rdna_gguf *file, const char *name, rdna_gguf_tensor *out_tensor);
RDNA_API bool rdna_gguf_has_tensor(const rdna_gguf *file, const char *name);
/* "F32", "Q4_K", "IQ2_XXS", …; "?" for a number that is not assigned. */
RDNA_API const char *rdna_gguf_tensor_type_name(uint32_t ggml_type);

#ifdef __cplusplus
}
#endif
#endif
