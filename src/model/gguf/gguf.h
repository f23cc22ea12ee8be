/* What the GGUF reader keeps of a file; shared by its parser and its getters. The interface is rdna/model.h. */
#ifndef RDNA_MODEL_GGUF_H
#define RDNA_MODEL_GGUF_H

#include "base/file.h"
#include "base/strmap.h"
#include "rdna/model.h"

typedef struct rdna__gguf_value {
  char *name;
  rdna_gguf_type type, element_type;
  uint64_t count;      /* elements of an array; otherwise 1 */
  const uint8_t *data; /* first element in the map, of any alignment */
  size_t bytes;        /* of all elements, with the lengths that stand before texts and inner arrays */
  rdna_text *texts;    /* (count) of a text or an array of texts, otherwise NULL */
} rdna__gguf_value;

typedef struct rdna__gguf_keys {
  rdna__gguf_value *values; /* in the file's order */
  size_t count;
  rdna__strmap by_name;
} rdna__gguf_keys;

typedef struct rdna__gguf_part {
  const uint8_t *data;
  size_t size;
  rdna__file mapped; /* by us, to be unmapped; empty when the caller keeps the data */
  uint32_t version;
  rdna__gguf_keys keys;
} rdna__gguf_part;

/* What makes the tensors of a file that is made in memory (gguf_write.c). */
typedef struct rdna__gguf_maker rdna__gguf_maker;

struct rdna_gguf {
  rdna__gguf_part *parts; /* keys that callers see are those of the first */
  size_t part_count;
  rdna_gguf_tensor *tensors; /* of all parts; names are ours */
  size_t tensor_count;
  rdna__strmap tensor_by_name;
  rdna__gguf_maker *maker; /* NULL: all data is there */
};

/* What |writer| would write as a file that is open: keys and what |fill| makes lie in memory, other tensors stay where
 * the caller has them, aligned as they are. A tensor is made when it is first asked for, by any thread. The file takes
 * |owner|, and with it |writer|: closing it calls release(owner); a failure leaves them to the caller. */
rdna_status rdna__gguf_open_writer(rdna_gguf_writer *writer, void (*release)(void *owner), void *owner,
                                   rdna_gguf **out_file);
/* Makes tensor |index|, unless it is there. */
rdna_status rdna__gguf_make(rdna__gguf_maker *maker, size_t index);
void rdna__gguf_maker_free(rdna__gguf_maker *maker); /* NULL is fine */

/* One type of a tensor's values. |block_values| 0 stands for a number that is not assigned, or no longer. */
typedef struct rdna__gguf_tensor_type {
  const char *name;
  uint32_t block_values, block_bytes;
  rdna_dtype dtype; /* RDNA_DTYPE_COUNT when there is none */
} rdna__gguf_tensor_type;

rdna__gguf_tensor_type rdna__gguf_tensor_type_of(uint32_t ggml_type);
/* The other way; UINT32_MAX when the format has no such type. */
uint32_t rdna__gguf_number_of(rdna_dtype dtype);

/* Bytes of one value; 0 for texts and arrays, which have no fixed size. */
size_t rdna__gguf_type_bytes(rdna_gguf_type type);

/* The getters over one part's keys, for the parser itself. */
rdna_status rdna__gguf_keys_get_u64(const rdna__gguf_keys *keys, const char *name, uint64_t *out);

#endif
