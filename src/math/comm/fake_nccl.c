/* A libnccl and librccl for tests, declared here from the vendors' references, apart from the table that calls it.
 * Ranks are processes that meet in shared memory under the id's name; work waits for its peers on the runtime's queue,
 * as the real ones' kernels do on the device. A peer that does not come within a minute is an asynchronous error. */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "math/vendor/fake_vendor.h"

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6 };
enum { MAX_RANKS = 8, CHUNK = 1 << 16, MAX_GROUP = 64 };
typedef struct {
  char internal[128];
} ncclUniqueId;

enum what { ALL_REDUCE = 1, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, SEND, RECEIVE };

/* What all ranks see. Zeros are its first state. */
typedef struct board {
  atomic_int joined, left, arrived, turn;
  struct {
    int what, type, op, root;
    size_t count;
  } calls[MAX_RANKS];
  unsigned char slots[MAX_RANKS][CHUNK];
  struct {
    atomic_int full;
    size_t bytes;
    unsigned char data[CHUNK];
  } mail[MAX_RANKS][MAX_RANKS]; /* from, to */
} board;

typedef struct comm {
  uint32_t magic;
  int rank, size, error;
  atomic_int given_up;
  board *shared;
  char name[64];
} comm;
enum { MAGIC = 0x0cc1 };

typedef struct work {
  comm *comm;
  int what, type, op, root, parts; /* |parts| pieces of mail, of which this is the first */
  const unsigned char *in;
  unsigned char *out;
  size_t count, at;
  void *stream;
} work;

EXPORT fake_vendor_record fake_record;
static _Thread_local int depth, grouped;
static _Thread_local work group[MAX_GROUP];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits until |*value| is not |old|; 0 after a minute, or when the communicator was aborted. */
static int differs(comm *c, atomic_int *value, int old) {
  double end = now() + 60;
  for (int i = 0; atomic_load(value) == old; i++) {
    sched_yield();
    if (atomic_load(&c->given_up) || (i % 1000 == 999 && now() > end)) return 0;
  }
  return 1;
}

/* Waits until all ranks are here: a barrier. */
static int meet(comm *c) {
  board *b = c->shared;
  int turn = atomic_load(&b->turn);
  if (atomic_fetch_add(&b->arrived, 1) + 1 == c->size) {
    atomic_store(&b->arrived, 0);
    atomic_fetch_add(&b->turn, 1);
    return 1;
  }
  return differs(c, &b->turn, turn);
}

EXPORT int ncclGetVersion(int *out) {
  *out = fake_record.version ? (int)fake_record.version : 22005;
  return SUCCESS;
}
EXPORT const char *ncclGetErrorString(int code) {
  return code == SUCCESS            ? "no error"
         : code == INVALID_ARGUMENT ? "invalid argument"
         : code == INVALID_USAGE    ? "invalid usage"
         : code == REMOTE_ERROR     ? "remote process exited or there was a network error"
                                    : "unhandled system error";
}
EXPORT const char *ncclGetLastError(comm *c) { return "the stand-in says so"; }

EXPORT int ncclGetUniqueId(ncclUniqueId *id) {
  static atomic_int made;
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "/rdna-fake-nccl-%d-%d", (int)getpid(), atomic_fetch_add(&made, 1));
  return SUCCESS;
}

EXPORT int ncclCommInitRank(comm **out, int size, ncclUniqueId id, int rank) {
  if (size < 1 || size > MAX_RANKS || rank < 0 || rank >= size)
    return REFUSE(INVALID_ARGUMENT, "a rank below the size");
  if (strncmp(id.internal, "/rdna-fake-nccl-", 16) != 0) return REFUSE(INVALID_ARGUMENT, "an id of ncclGetUniqueId");
  int file = shm_open(id.internal, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(board)) != 0) return REFUSE(SYSTEM_ERROR, "shared memory");
  board *shared = mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shared == MAP_FAILED) return REFUSE(SYSTEM_ERROR, "shared memory");
  comm *c = calloc(1, sizeof *c);
  c->shared = shared, c->magic = MAGIC, c->rank = rank, c->size = size;
  snprintf(c->name, sizeof c->name, "%s", id.internal);
  atomic_fetch_add(&c->shared->joined, 1);
  if (!meet(c)) {
    munmap(shared, sizeof(board));
    free(c);
    return REFUSE(REMOTE_ERROR, "all ranks within a minute");
  }
  if (rank == 0) shm_unlink(c->name); /* everyone has it */
  fake_record.handles++;
  *out = c;
  return SUCCESS;
}

static int valid(const comm *c) { return c && c->magic == MAGIC; }

EXPORT int ncclCommDestroy(comm *c) {
  if (!valid(c)) return REFUSE(INVALID_ARGUMENT, "a communicator");
  c->magic = 0;
  munmap(c->shared, sizeof(board));
  free(c);
  fake_record.handles--;
  return SUCCESS;
}
/* Work under way still looks at the communicator, so it is not freed. */
EXPORT int ncclCommAbort(comm *c) {
  if (!valid(c)) return REFUSE(INVALID_ARGUMENT, "a communicator");
  atomic_store(&c->given_up, 1);
  fake_record.handles--;
  return SUCCESS;
}
EXPORT int ncclCommGetAsyncError(comm *c, int *out) {
  if (!valid(c)) return REFUSE(INVALID_ARGUMENT, "a communicator");
  *out = c->error;
  return SUCCESS;
}

/* nccl.h's numbers of types: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16 */
static size_t size_of(int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}
static double get(int type, const unsigned char *data, size_t i) {
  switch (type) {
    case 0:
      return ((const int8_t *)data)[i];
    case 1:
      return data[i];
    case 2:
      return ((const int32_t *)data)[i];
    case 4:
      return (double)((const int64_t *)data)[i];
    case 8:
      return ((const double *)data)[i];
    default:
      return fake_get(type == 6 ? FAKE_F16 : type == 7 ? FAKE_F32 : FAKE_BF16, data, (int64_t)i);
  }
}
static void put(int type, unsigned char *data, size_t i, double v) {
  switch (type) {
    case 0:
      ((int8_t *)data)[i] = (int8_t)v;
      break;
    case 1:
      data[i] = (uint8_t)v;
      break;
    case 2:
      ((int32_t *)data)[i] = (int32_t)v;
      break;
    case 4:
      ((int64_t *)data)[i] = (int64_t)v;
      break;
    case 8:
      ((double *)data)[i] = v;
      break;
    default:
      fake_put(type == 6 ? FAKE_F16 : type == 7 ? FAKE_F32 : FAKE_BF16, data, (int64_t)i, v);
  }
}

static void reduce_chunk(const work *w, unsigned char *out, size_t values) {
  const board *b = w->comm->shared;
  for (size_t i = 0; i < values; i++) {
    double v = get(w->type, b->slots[0], i);
    for (int r = 1; r < w->comm->size; r++) {
      double x = get(w->type, b->slots[r], i);
      v = w->op == 0 || w->op == 4 ? v + x : w->op == 1 ? v * x : w->op == 2 ? (x > v ? x : v) : (x < v ? x : v);
    }
    put(w->type, out, i, w->op == 4 ? v / w->comm->size : v);
  }
}

/* Exchanges one piece of at most CHUNK bytes, on all ranks at once. A rank with |in| copies it to its slot; between two
 * meetings all ranks read the slots; |out| gets their reduction where |keep| is negative, else slot |keep|.
 *
 *     rank 0   in -> slot 0 |      | out <- slots 0, 1 |
 *     rank 1   in -> slot 1 | meet | out <- slots 0, 1 | meet, and the slots may be written again */
static int piece(const work *w, const unsigned char *in, size_t bytes, unsigned char *out, int keep) {
  comm *c = w->comm;
  if (in) memcpy(c->shared->slots[c->rank], in, bytes);
  if (!meet(c)) return 0;
  if (out && keep < 0) reduce_chunk(w, out, bytes / size_of(w->type));
  if (out && keep >= 0) memcpy(out, c->shared->slots[keep], bytes);
  return meet(c);
}

static int collective(const work *w) {
  comm *c = w->comm;
  size_t size = size_of(w->type), bytes = w->count * size;
  board *b = c->shared;
  b->calls[c->rank].what = w->what, b->calls[c->rank].type = w->type, b->calls[c->rank].op = w->op;
  b->calls[c->rank].root = w->root, b->calls[c->rank].count = w->count;
  if (!meet(c)) return REMOTE_ERROR;
  int same = 1;
  for (int r = 0; r < c->size; r++) same = same && memcmp(&b->calls[r], &b->calls[0], sizeof b->calls[0]) == 0;
  if (!meet(c)) return REMOTE_ERROR;
  if (!same) return REFUSE(INVALID_USAGE, "the same call on all ranks");
  int ranks = w->what == REDUCE_SCATTER || w->what == ALL_GATHER ? c->size : 1;
  unsigned char *kept = w->what == REDUCE_SCATTER ? malloc(bytes) : NULL; /* |out| may lie in |in| */
  for (int r = 0; r < ranks; r++) {
    for (size_t at = 0; at < bytes; at += CHUNK) {
      size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;
      int ok;
      switch (w->what) {
        case ALL_REDUCE:
          ok = piece(w, w->in + at, n, w->out + at, -1);
          break;
        case REDUCE:
          ok = piece(w, w->in + at, n, c->rank == w->root ? w->out + at : NULL, -1);
          break;
        case REDUCE_SCATTER:
          ok = piece(w, w->in + (size_t)r * bytes + at, n, c->rank == r ? kept + at : NULL, -1);
          break;
        case BROADCAST:
          ok = piece(w, c->rank == w->root ? w->in + at : NULL, n, w->out + at, w->root);
          break;
        default:
          ok = piece(w, c->rank == r ? w->in + at : NULL, n, w->out + (size_t)r * bytes + at, r);
      }
      if (!ok) return REMOTE_ERROR;
    }
  }
  if (kept) memcpy(w->out, kept, bytes);
  free(kept);
  return SUCCESS;
}

/* All sends and receives of a group advance together. */
static int exchange(work *w) {
  double end = now() + 60;
  for (int left = 1; left;) {
    left = 0;
    for (int i = 0; i < w->parts; i++) {
      work *p = &w[i];
      size_t bytes = p->count * size_of(p->type);
      if (p->at >= bytes) continue;
      left = 1;
      comm *c = p->comm;
      int send = p->what == SEND;
      int from = send ? c->rank : p->root, to = send ? p->root : c->rank;
      size_t n = bytes - p->at < CHUNK ? bytes - p->at : CHUNK;
      if (atomic_load(&c->shared->mail[from][to].full) == send) continue;
      if (send) {
        memcpy(c->shared->mail[from][to].data, p->in + p->at, n);
        c->shared->mail[from][to].bytes = n;
      } else {
        if (c->shared->mail[from][to].bytes != n) return REFUSE(INVALID_USAGE, "a receive as large as its send");
        memcpy(p->out + p->at, c->shared->mail[from][to].data, n);
      }
      atomic_store(&c->shared->mail[from][to].full, send);
      p->at += n;
    }
    if (left && (atomic_load(&w->comm->given_up) || now() > end)) return REMOTE_ERROR;
    if (left) sched_yield();
  }
  return SUCCESS;
}

static void execute(void *data) {
  work *w = data;
  int code = w->what >= SEND ? exchange(w) : collective(w);
  if (code != SUCCESS) w->comm->error = code;
  free(w);
}

/* What a rank gets, where none of it is what it gives. */
static int poison(const work *w) {
  size_t bytes = w->count * size_of(w->type), gets = bytes * (size_t)(w->what == ALL_GATHER ? w->comm->size : 1);
  size_t gives = bytes * (size_t)(w->what == REDUCE_SCATTER ? w->comm->size : 1);
  const int root = w->comm->rank == w->root;
  if (!w->out || gets == 0 || (w->what == REDUCE && !root)) return 0;
  if (w->in && (w->what != BROADCAST || root) && w->out < w->in + gives && w->in < w->out + gets) return 0;
  return fake_poison(w->stream, w->out, gets);
}

static int queue(const work *w) {
  for (int i = 0; i < w->parts; i++)
    if (poison(&w[i]) != 0) return REFUSE(SYSTEM_ERROR, "memory of the device");
  fake_record.runs++;
  return fake_queue(w->stream, execute, w, sizeof *w * (size_t)w->parts) == 0 ? SUCCESS
                                                                              : REFUSE(SYSTEM_ERROR, "a stream");
}

static int submit(work w) {
  if (!valid(w.comm)) return REFUSE(INVALID_ARGUMENT, "a communicator");
  if (w.type < 0 || w.type > 9) return REFUSE(INVALID_ARGUMENT, "a type");
  if (w.op < 0 || w.op > 4) return REFUSE(INVALID_ARGUMENT, "an operation");
  if (w.root < 0 || w.root >= w.comm->size) return REFUSE(INVALID_ARGUMENT, "a rank below the size");
  if (!w.stream) return REFUSE(INVALID_ARGUMENT, "a stream of the caller's");
  w.parts = 1;
  if (!depth) return queue(&w);
  if (grouped == MAX_GROUP) return REFUSE(INVALID_USAGE, "a smaller group");
  group[grouped++] = w;
  return SUCCESS;
}

EXPORT int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, comm *c, void *stream) {
  if (!in || !out) return REFUSE(INVALID_ARGUMENT, "memory");
  return submit((work){c, ALL_REDUCE, type, op, 0, 1, in, out, count, 0, stream});
}
EXPORT int ncclReduce(const void *in, void *out, size_t count, int type, int op, int root, comm *c, void *stream) {
  if (!in || (valid(c) && c->rank == root && !out)) return REFUSE(INVALID_ARGUMENT, "memory");
  return submit((work){c, REDUCE, type, op, root, 1, in, out, count, 0, stream});
}
EXPORT int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, comm *c, void *stream) {
  if (!in || !out) return REFUSE(INVALID_ARGUMENT, "memory");
  return submit((work){c, REDUCE_SCATTER, type, op, 0, 1, in, out, count, 0, stream});
}
EXPORT int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, comm *c, void *stream) {
  if (!out || (valid(c) && c->rank == root && !in)) return REFUSE(INVALID_ARGUMENT, "memory");
  return submit((work){c, BROADCAST, type, 0, root, 1, in, out, count, 0, stream});
}
EXPORT int ncclAllGather(const void *in, void *out, size_t count, int type, comm *c, void *stream) {
  if (!in || !out) return REFUSE(INVALID_ARGUMENT, "memory");
  return submit((work){c, ALL_GATHER, type, 0, 0, 1, in, out, count, 0, stream});
}
EXPORT int ncclSend(const void *in, size_t count, int type, int peer, comm *c, void *stream) {
  if (!in) return REFUSE(INVALID_ARGUMENT, "memory");
  return submit((work){c, SEND, type, 0, peer, 1, in, NULL, count, 0, stream});
}
EXPORT int ncclRecv(void *out, size_t count, int type, int peer, comm *c, void *stream) {
  if (!out) return REFUSE(INVALID_ARGUMENT, "memory");
  return submit((work){c, RECEIVE, type, 0, peer, 1, NULL, out, count, 0, stream});
}

EXPORT int ncclGroupStart(void) {
  depth++;
  return SUCCESS;
}
EXPORT int ncclGroupEnd(void) {
  if (!depth) return REFUSE(INVALID_USAGE, "a group that was begun");
  if (--depth) return SUCCESS;
  int code = SUCCESS, count = grouped;
  grouped = 0;
  for (int i = 0; i < count && code == SUCCESS;) {
    int n = 1; /* mail on one stream goes together */
    while (group[i].what >= SEND && i + n < count && group[i + n].what >= SEND &&
           group[i + n].stream == group[i].stream)
      n++;
    group[i].parts = n;
    code = queue(&group[i]);
    i += n;
  }
  return code;
}
