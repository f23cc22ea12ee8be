/* Collective operations among ranks: processes, or threads, with a device each. They are the vendor's library's, RCCL
 * (librccl.so.1) for AMD's GPUs and NCCL (libnccl.so.2) for NVIDIA's, found at run time as rdna_vendor_get_info tells,
 * whatever RDNA_VENDOR says, since nothing here does what they do.
 *
 * Every rank makes the same calls in the same order. Work is queued on a stream of the communicator's device; one
 * thread at a time uses a communicator. Memory is the device's, counts are of values (of bytes where nothing is
 * computed), and those that the ranks have must agree. A failure of the library is RDNA_DEVICE_ERROR with its
 * sentence. */
#ifndef RDNA_COMM_H
#define RDNA_COMM_H

#include <stddef.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_comm rdna_comm;

enum { RDNA_COMM_ID_BYTES = 128 };
typedef struct rdna_comm_id {
  char bytes[RDNA_COMM_ID_BYTES];
} rdna_comm_id;

/* One rank makes it and tells the others in its own way. RDNA_UNAVAILABLE: the library is missing, with the reason;
 * RDNA_UNSUPPORTED: the device's driver has none. */
RDNA_CHECKED rdna_status rdna_comm_id_create(rdna_device *device, rdna_comm_id *out_id);
/* Returns when all |size| ranks have called it with the same id, each with a rank of its own from 0 on and a device of
 * its own. The communicator keeps its device alive. */
RDNA_CHECKED rdna_status rdna_comm_create(rdna_device *device, const rdna_comm_id *id, int rank, int size,
                                          rdna_comm **out_comm);
/* Its streams must have been waited for. NULL is fine. */
RDNA_API void rdna_comm_release(rdna_comm *comm);
/* Gives up what is under way, for a rank whose peers are gone, and releases it. NULL is fine. */
RDNA_API void rdna_comm_abort(rdna_comm *comm);
RDNA_API rdna_device *rdna_comm_device(const rdna_comm *comm); /* borrowed */
RDNA_API int rdna_comm_rank(const rdna_comm *comm);
RDNA_API int rdna_comm_size(const rdna_comm *comm);
/* What went wrong since, in work that was queued: RDNA_OK, or RDNA_DEVICE_ERROR with a sentence. */
RDNA_CHECKED rdna_status rdna_comm_check(rdna_comm *comm);

typedef enum rdna_comm_op {
  RDNA_COMM_OP_SUM = 0,
  RDNA_COMM_OP_PRODUCT,
  RDNA_COMM_OP_MAX,
  RDNA_COMM_OP_MIN,
  RDNA_COMM_OP_MEAN,
  RDNA_COMM_OP_COUNT
} rdna_comm_op;

/* f32, f16, bf16, f64, i8, u8, i32 and i64; bool's sum and maximum are "any", its product and minimum "all", and it has
 * no mean. |out| may be |in|. RDNA_UNSUPPORTED: another type. */
RDNA_CHECKED rdna_status rdna_comm_all_reduce(rdna_comm *comm, rdna_stream *stream, const void *in, void *out,
                                              size_t count, rdna_dtype dtype, rdna_comm_op op);
/* |out| is written on |root| alone, and NULL elsewhere is fine. */
RDNA_CHECKED rdna_status rdna_comm_reduce(rdna_comm *comm, rdna_stream *stream, const void *in, void *out, size_t count,
                                          rdna_dtype dtype, rdna_comm_op op, int root);
/* |in| holds size * |count| values; rank r gets the r-th |count|. |out| may be that part of |in|. */
RDNA_CHECKED rdna_status rdna_comm_reduce_scatter(rdna_comm *comm, rdna_stream *stream, const void *in, void *out,
                                                  size_t count, rdna_dtype dtype, rdna_comm_op op);
/* |in| is read on |root| alone. */
RDNA_CHECKED rdna_status rdna_comm_broadcast(rdna_comm *comm, rdna_stream *stream, const void *in, void *out,
                                             size_t bytes, int root);
/* |out| holds size * |bytes|, in the order of the ranks. |in| may be the rank's own part of it. */
RDNA_CHECKED rdna_status rdna_comm_all_gather(rdna_comm *comm, rdna_stream *stream, const void *in, void *out,
                                              size_t bytes);
/* A send meets a receive of the same size on rank |peer|. Several that must be under way at once lie between
 * rdna_comm_begin and rdna_comm_end, which queues them; everything between belongs to one thread. */
RDNA_CHECKED rdna_status rdna_comm_send(rdna_comm *comm, rdna_stream *stream, const void *in, size_t bytes, int peer);
RDNA_CHECKED rdna_status rdna_comm_receive(rdna_comm *comm, rdna_stream *stream, void *out, size_t bytes, int peer);
RDNA_CHECKED rdna_status rdna_comm_begin(rdna_comm *comm);
RDNA_CHECKED rdna_status rdna_comm_end(rdna_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
