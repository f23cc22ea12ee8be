/* NCCL and RCCL, which have one interface under one set of names, as we call it: RDNA__SYMBOL(name, arguments).
 * Included once for the table of pointers and once for the names, so it has no include guard. Results, types and
 * operations are int, communicators and streams are pointers; the id is passed by value.
 * Source: NVIDIA's NCCL reference and nccl.h 2.18 to 2.28; AMD's rccl.h 2.18 to 2.27. Only ncclCommInitRank makes
 * communicators, so that no structure that grew is shared. */
RDNA__SYMBOL(ncclGetVersion, (int *out_version))
RDNA__SYMBOL(ncclGetUniqueId, (rdna_comm_id * out_id))
RDNA__SYMBOL(ncclCommInitRank, (void **out_comm, int size, rdna_comm_id id, int rank))
RDNA__SYMBOL(ncclCommDestroy, (void *comm))
RDNA__SYMBOL(ncclCommAbort, (void *comm))
RDNA__SYMBOL(ncclCommGetAsyncError, (void *comm, int *out_error))
RDNA__SYMBOL(ncclAllReduce, (const void *in, void *out, size_t count, int type, int op, void *comm, void *stream))
RDNA__SYMBOL(ncclReduce,
             (const void *in, void *out, size_t count, int type, int op, int root, void *comm, void *stream))
RDNA__SYMBOL(ncclReduceScatter, (const void *in, void *out, size_t count, int type, int op, void *comm, void *stream))
RDNA__SYMBOL(ncclBroadcast, (const void *in, void *out, size_t count, int type, int root, void *comm, void *stream))
RDNA__SYMBOL(ncclAllGather, (const void *in, void *out, size_t count, int type, void *comm, void *stream))
RDNA__SYMBOL(ncclSend, (const void *in, size_t count, int type, int peer, void *comm, void *stream))
RDNA__SYMBOL(ncclRecv, (void *out, size_t count, int type, int peer, void *comm, void *stream))
RDNA__SYMBOL(ncclGroupStart, (void))
RDNA__SYMBOL(ncclGroupEnd, (void))
