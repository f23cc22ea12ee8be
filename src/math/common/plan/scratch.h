/* For operators: scratch memory on the device. The operator gives it back to the stream's pool when it has queued its
 * work, which the stream's order makes safe. */
#ifndef RDNA_MATH_COMMON_PLAN_SCRATCH_H
#define RDNA_MATH_COMMON_PLAN_SCRATCH_H

#include "base/status.h"
#include "rdna/memory.h"
#include "rdna/tensor.h"

enum { RDNA__SCRATCH_MOST = 16 };

typedef struct rdna__scratch {
  rdna_stream *stream;
  const char *holder; /* the operator's name, for reports of memory */
  int count;
  void *block[RDNA__SCRATCH_MOST];
} rdna__scratch;

/* Takes a block of |bytes|. */
static inline rdna_status rdna__scratch_take(rdna__scratch *scratch, size_t bytes, void **out_data) {
  *out_data = NULL;
  if (scratch->count == RDNA__SCRATCH_MOST) {
    return rdna__fail(RDNA_INTERNAL, "%s: more than %d blocks of scratch memory", scratch->holder, RDNA__SCRATCH_MOST);
  }
  RDNA_TRY(rdna_memory_alloc_named(rdna_stream_device(scratch->stream), bytes, scratch->stream, scratch->holder,
                                   &scratch->block[scratch->count]));
  *out_data = scratch->block[scratch->count++];
  return RDNA_OK;
}

/* Takes memory for a contiguous tensor. */
static inline rdna_status rdna__scratch_tensor(rdna__scratch *scratch, rdna_dtype dtype, int rank, const int64_t *shape,
                                               rdna_tensor *out) {
  *out = rdna_tensor_contiguous(NULL, dtype, rank, shape);
  return rdna__scratch_take(scratch, rdna_dtype_bytes(dtype, rdna_tensor_count(out)), &out->data);
}

/* Gives all blocks back. Returns |status| if that is a failure, else the first failure of giving back. */
static inline rdna_status rdna__scratch_release(rdna__scratch *scratch, rdna_status status) {
  while (scratch->count > 0) {
    rdna_status freed = rdna_memory_free(rdna_stream_device(scratch->stream), scratch->block[--scratch->count]);
    if (status == RDNA_OK) status = freed;
  }
  return status;
}

#endif
