/* Collective operations among processes: checks the arguments, and has NCCL or RCCL queue the work in the device's
 * stream. Both have one interface, so the code below is common to them. */
#include "rdna/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"
#include "math/vendor/vendor.h"

#define RDNA__SYMBOL(name, arguments) int(*name) arguments;
struct nccl_table {
#include "math/comm/comm_symbols.h"
  const char *(*ncclGetErrorString)(int result);
  const char *(*ncclGetLastError)(void *comm); /* NULL before 2.13 */
};
#undef RDNA__SYMBOL
static struct nccl_table nccl, rccl;

#define RDNA__SYMBOL(name, arguments) {#name, offsetof(struct nccl_table, name), true},
static const rdna__symbol symbols[] = {
#include "math/comm/comm_symbols.h"
    {"ncclGetErrorString", offsetof(struct nccl_table, ncclGetErrorString), true},
    {"ncclGetLastError", offsetof(struct nccl_table, ncclGetLastError), false}};
#undef RDNA__SYMBOL

/* nccl.h */
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };
enum { NCCL_INT8 = 0, NCCL_UINT8, NCCL_INT32, NCCL_INT64 = 4, NCCL_HALF = 6, NCCL_FLOAT, NCCL_DOUBLE, NCCL_BFLOAT16 };
enum { NCCL_SUM = 0, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG };

static rdna_status open_table(struct nccl_table *table, void **out_handle, char *version) {
  int number = 0; /* 22703; before 2.9, 2.8.4 as 2804 */
  if (table->ncclGetVersion(&number) != NCCL_SUCCESS)
    snprintf(version, 32, "unknown");
  else if (number >= 10000)
    snprintf(version, 32, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
  else
    snprintf(version, 32, "%d.%d.%d", number / 1000, number / 100 % 10, number % 100);
  *out_handle = table;
  return RDNA_OK;
}
static rdna_status nccl_open(rdna_device *device, void **out_handle, char *version) {
  return open_table(&nccl, out_handle, version);
}
static rdna_status rccl_open(rdna_device *device, void **out_handle, char *version) {
  return open_table(&rccl, out_handle, version);
}
static void close_table(void *handle) {}

const rdna__vendor_description rdna__nccl = {
    .name = "nccl",
    .driver = "cuda",
    .files = {"libnccl.so.2"},
    .wheels = {"nvidia/nccl/lib"},
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &nccl,
    .alone = true,
    .open = nccl_open,
    .close = close_table,
};
const rdna__vendor_description rdna__rccl = {
    .name = "rccl",
    .driver = "hip",
    .files = {"librccl.so.1"},
    .wheels = {"torch/lib", "_rocm_sdk_libraries*/lib"},
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &rccl,
    .alone = true,
    .open = rccl_open,
    .close = close_table,
};

struct rdna_comm {
  rdna_device *device;
  const struct nccl_table *f;
  const char *library; /* "nccl" */
  void *handle;
  int rank, size;
};

static rdna_status find(rdna_device *device, const struct nccl_table **out_table, const char **out_name) {
  if (!device) return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: the device is NULL; pass the one that this rank uses");
  const char *driver = rdna_device_get_info(device)->driver;
  bool cuda = strcmp(driver, "cuda") == 0;
  if (!cuda && strcmp(driver, "hip") != 0)
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "comm: no library of collective operations serves devices of the %s driver; RCCL serves hip's and "
        "NCCL cuda's",
        driver);
  rdna__vendor vendor = cuda ? RDNA__NCCL : RDNA__RCCL;
  *out_name = cuda ? "nccl" : "rccl";
  *out_table = rdna__vendor_handle(device, vendor);
  if (*out_table) return RDNA_OK;
  rdna_vendor_info info;
  RDNA_TRY(rdna_vendor_get_info(device, (int)vendor, &info));
  return rdna__fail(RDNA_UNAVAILABLE, "comm: %s", info.message);
}

static rdna_status result(const struct nccl_table *f, void *comm, const char *function, int code) {
  if (code == NCCL_SUCCESS || code == NCCL_IN_PROGRESS) return RDNA_OK;
  const char *detail = f->ncclGetLastError ? f->ncclGetLastError(comm) : NULL;
  return rdna__fail(RDNA_DEVICE_ERROR, "comm: %s failed: %s%s%s", function, f->ncclGetErrorString(code),
                    detail && detail[0] ? "; " : "", detail ? detail : "");
}

/* A call of the library with its arguments, for |run|. Calls are made with the device current, as the library works on
 * the current device. */
typedef struct call {
  rdna_comm *comm;
  enum {
    INIT,
    DESTROY,
    ABORT,
    ALL_REDUCE,
    REDUCE,
    REDUCE_SCATTER,
    BROADCAST,
    ALL_GATHER,
    SEND,
    RECEIVE,
    GROUP_END
  } what;
  rdna_comm_id id;
  const void *in;
  void *out;
  size_t count;
  int type, op, peer;
} call;

static rdna_status run(void *stream, void *data) {
  call *c = data;
  rdna_comm *comm = c->comm;
  const struct nccl_table *f = comm->f;
  void *h = comm->handle;
#define RUN(name, arguments) return result(f, h, #name, f->name arguments)
  switch (c->what) {
    case INIT:
      RUN(ncclCommInitRank, (&comm->handle, comm->size, c->id, comm->rank));
    case DESTROY:
      RUN(ncclCommDestroy, (h));
    case ABORT:
      RUN(ncclCommAbort, (h));
    case ALL_REDUCE:
      RUN(ncclAllReduce, (c->in, c->out, c->count, c->type, c->op, h, stream));
    case REDUCE:
      RUN(ncclReduce, (c->in, c->out, c->count, c->type, c->op, c->peer, h, stream));
    case REDUCE_SCATTER:
      RUN(ncclReduceScatter, (c->in, c->out, c->count, c->type, c->op, h, stream));
    case BROADCAST:
      RUN(ncclBroadcast, (c->in, c->out, c->count, c->type, c->peer, h, stream));
    case ALL_GATHER:
      RUN(ncclAllGather, (c->in, c->out, c->count, c->type, h, stream));
    case SEND:
      RUN(ncclSend, (c->in, c->count, c->type, c->peer, h, stream));
    case RECEIVE:
      RUN(ncclRecv, (c->out, c->count, c->type, c->peer, h, stream));
    case GROUP_END:
      RUN(ncclGroupEnd, ());
  }
#undef RUN
  return rdna__fail(RDNA_INTERNAL, "comm: no such call");
}

/* Makes a call that takes no stream: with the device current, at once. */
static rdna_status run_beside(call *c) {
  return rdna__device_driver(c->comm->device)->native_call(rdna__device_handle(c->comm->device), NULL, NULL, run, c);
}

static rdna_status make_id(void *stream, void *data) {
  call *c = data;
  return result(c->comm->f, NULL, "ncclGetUniqueId", c->comm->f->ncclGetUniqueId(&c->id));
}

rdna_status rdna_comm_id_create(rdna_device *device, rdna_comm_id *out_id) {
  if (!out_id) return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: the place for the id is NULL");
  rdna_comm comm = {.device = device};
  RDNA_TRY(find(device, &comm.f, &comm.library));
  call c = {.comm = &comm};
  RDNA_TRY(rdna__device_driver(device)->native_call(rdna__device_handle(device), NULL, NULL, make_id, &c));
  *out_id = c.id;
  return RDNA_OK;
}

rdna_status rdna_comm_create(rdna_device *device, const rdna_comm_id *id, int rank, int size, rdna_comm **out_comm) {
  if (!id || !out_comm) return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: the id or the place for the handle is NULL");
  *out_comm = NULL;
  if (size < 1 || rank < 0 || rank >= size)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: rank %d of %d; ranks are 0 to size - 1", rank, size);
  const struct nccl_table *f;
  const char *library;
  RDNA_TRY(find(device, &f, &library));
  rdna_comm *comm = calloc(1, sizeof *comm);
  if (!comm) return rdna__fail(RDNA_OUT_OF_MEMORY, "comm: no host memory for a communicator");
  *comm = (rdna_comm){device, f, library, NULL, rank, size};
  call c = {.comm = comm, .what = INIT, .id = *id};
  rdna_status status = run_beside(&c);
  if (status != RDNA_OK) {
    free(comm);
    return status;
  }
  rdna_device_retain(device);
  *out_comm = comm;
  return RDNA_OK;
}

static void end(rdna_comm *comm, int what) {
  if (!comm) return;
  call c = {.comm = comm};
  c.what = what;
  rdna_device *device = comm->device;
  (void)!run_beside(&c); /* nothing is left to be done about a failure */
  free(comm);
  rdna_device_release(device);
}
void rdna_comm_release(rdna_comm *comm) { end(comm, DESTROY); }
void rdna_comm_abort(rdna_comm *comm) { end(comm, ABORT); }

rdna_device *rdna_comm_device(const rdna_comm *comm) { return comm ? comm->device : NULL; }
int rdna_comm_rank(const rdna_comm *comm) { return comm ? comm->rank : -1; }
int rdna_comm_size(const rdna_comm *comm) { return comm ? comm->size : 0; }

static rdna_status no_comm(void) {
  return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: the communicator is NULL; make one with rdna_comm_create");
}

rdna_status rdna_comm_check(rdna_comm *comm) {
  if (!comm) return no_comm();
  int error = NCCL_SUCCESS;
  RDNA_TRY(
      result(comm->f, comm->handle, "ncclCommGetAsyncError", comm->f->ncclCommGetAsyncError(comm->handle, &error)));
  return result(comm->f, comm->handle, "work under way", error);
}

static rdna_status queue(const char *operator_name, rdna_stream *stream, call *c) {
  rdna_comm *comm = c->comm;
  if (!comm) return no_comm();
  if (!stream || rdna_stream_device(stream) != comm->device)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: %s needs a stream of its communicator's device", operator_name);
  if (c->peer < 0 || c->peer >= comm->size)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: %s with rank %d; there are 0 to %d", operator_name, c->peer,
                      comm->size - 1);
  if (c->count == 0) return RDNA_OK; /* on all ranks */
  return rdna__stream_native_call(stream, comm->library, run, c);
}

static rdna_status missing(const char *operator_name, const char *argument) {
  return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: %s: the memory of %s is missing", operator_name, argument);
}

static rdna_status encode(const char *operator_name, rdna_dtype dtype, rdna_comm_op op, call *c) {
  static const struct {
    bool offered;
    int type;
  } types[RDNA_DTYPE_COUNT] = {
      [RDNA_F32] = {true, NCCL_FLOAT},  [RDNA_F16] = {true, NCCL_HALF},  [RDNA_BF16] = {true, NCCL_BFLOAT16},
      [RDNA_F64] = {true, NCCL_DOUBLE}, [RDNA_I8] = {true, NCCL_INT8},   [RDNA_U8] = {true, NCCL_UINT8},
      [RDNA_I32] = {true, NCCL_INT32},  [RDNA_I64] = {true, NCCL_INT64}, [RDNA_BOOL] = {true, NCCL_UINT8}};
  static const int ops[RDNA_COMM_OP_COUNT] = {[RDNA_COMM_OP_SUM] = NCCL_SUM,
                                              [RDNA_COMM_OP_PRODUCT] = NCCL_PROD,
                                              [RDNA_COMM_OP_MAX] = NCCL_MAX,
                                              [RDNA_COMM_OP_MIN] = NCCL_MIN,
                                              [RDNA_COMM_OP_MEAN] = NCCL_AVG};
  if ((int)op < 0 || op >= RDNA_COMM_OP_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "comm: %s: the operation is number %d; there are 0 to %d", operator_name,
                      (int)op, RDNA_COMM_OP_COUNT - 1);
  if ((unsigned)dtype >= RDNA_DTYPE_COUNT || !types[dtype].offered)
    return rdna__fail(RDNA_UNSUPPORTED, "comm: %s has no values of type %s; convert them", operator_name,
                      rdna_dtype_name(dtype));
  c->type = types[dtype].type;
  c->op = ops[op];
  if (dtype != RDNA_BOOL) return RDNA_OK;
  if (op == RDNA_COMM_OP_MEAN) return rdna__fail(RDNA_UNSUPPORTED, "comm: %s: bool has no mean", operator_name);
  c->op = op == RDNA_COMM_OP_SUM || op == RDNA_COMM_OP_MAX ? NCCL_MAX : NCCL_MIN;
  return RDNA_OK;
}

rdna_status rdna_comm_all_reduce(rdna_comm *comm, rdna_stream *stream, const void *in, void *out, size_t count,
                                 rdna_dtype dtype, rdna_comm_op op) {
  call c = {.comm = comm, .what = ALL_REDUCE, .in = in, .out = out, .count = count};
  RDNA_TRY(encode("all_reduce", dtype, op, &c));
  if (count && !in) return missing("all_reduce", "in");
  if (count && !out) return missing("all_reduce", "out");
  return queue("all_reduce", stream, &c);
}

rdna_status rdna_comm_reduce(rdna_comm *comm, rdna_stream *stream, const void *in, void *out, size_t count,
                             rdna_dtype dtype, rdna_comm_op op, int root) {
  call c = {.comm = comm, .what = REDUCE, .in = in, .out = out, .count = count, .peer = root};
  RDNA_TRY(encode("reduce", dtype, op, &c));
  if (count && !in) return missing("reduce", "in");
  if (count && !out && comm && comm->rank == root) return missing("reduce", "out");
  return queue("reduce", stream, &c);
}

rdna_status rdna_comm_reduce_scatter(rdna_comm *comm, rdna_stream *stream, const void *in, void *out, size_t count,
                                     rdna_dtype dtype, rdna_comm_op op) {
  call c = {.comm = comm, .what = REDUCE_SCATTER, .in = in, .out = out, .count = count};
  RDNA_TRY(encode("reduce_scatter", dtype, op, &c));
  if (count && !in) return missing("reduce_scatter", "in");
  if (count && !out) return missing("reduce_scatter", "out");
  return queue("reduce_scatter", stream, &c);
}

rdna_status rdna_comm_broadcast(rdna_comm *comm, rdna_stream *stream, const void *in, void *out, size_t bytes,
                                int root) {
  call c = {.comm = comm, .what = BROADCAST, .in = in, .out = out, .count = bytes, .type = NCCL_INT8, .peer = root};
  if (bytes && !in && comm && comm->rank == root) return missing("broadcast", "in");
  if (bytes && !out) return missing("broadcast", "out");
  return queue("broadcast", stream, &c);
}

rdna_status rdna_comm_all_gather(rdna_comm *comm, rdna_stream *stream, const void *in, void *out, size_t bytes) {
  call c = {.comm = comm, .what = ALL_GATHER, .in = in, .out = out, .count = bytes, .type = NCCL_INT8};
  if (bytes && !in) return missing("all_gather", "in");
  if (bytes && !out) return missing("all_gather", "out");
  return queue("all_gather", stream, &c);
}

rdna_status rdna_comm_send(rdna_comm *comm, rdna_stream *stream, const void *in, size_t bytes, int peer) {
  call c = {.comm = comm, .what = SEND, .in = in, .count = bytes, .type = NCCL_INT8, .peer = peer};
  if (bytes && !in) return missing("send", "in");
  return queue("send", stream, &c);
}

rdna_status rdna_comm_receive(rdna_comm *comm, rdna_stream *stream, void *out, size_t bytes, int peer) {
  call c = {.comm = comm, .what = RECEIVE, .out = out, .count = bytes, .type = NCCL_INT8, .peer = peer};
  if (bytes && !out) return missing("receive", "out");
  return queue("receive", stream, &c);
}

rdna_status rdna_comm_begin(rdna_comm *comm) {
  if (!comm) return no_comm();
  return result(comm->f, comm->handle, "ncclGroupStart", comm->f->ncclGroupStart());
}

rdna_status rdna_comm_end(rdna_comm *comm) {
  if (!comm) return no_comm();
  call c = {.comm = comm, .what = GROUP_END};
  return run_beside(&c);
}
