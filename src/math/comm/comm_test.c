/* Collective operations among processes, against sums in double. The libraries are stand-ins that work on the memory of
 * a stand-in libcuda or of an emulated card, and refuse what the vendors' references do not allow. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/driver/testing_flavours.h"
#include "math/common/test/operand.h"
#include "rdna/comm.h"
#include "rdna/tune.h"

enum { RANKS = 3 };
/* What the ranks of a test share; they are forks. */
static struct {
  rdna_comm_id id;
  _Atomic int ready;
} *shared;
static rdna_comm *comm;
static int rank;

static int begin(void **state) {
  open_device(state);
  if (rank == 0) {
    assert_ok(rdna_comm_id_create(device, &shared->id));
    shared->ready = 1;
  }
  while (!shared->ready) usleep(1000);
  assert_ok(rdna_comm_create(device, &shared->id, rank, RANKS, &comm));
  return 0;
}

static int finish(void **state) {
  assert_ok(rdna_stream_synchronize(stream));
  assert_ok(rdna_comm_check(comm));
  rdna_comm_release(comm);
  return close_device(state);
}

/* Value |i| of rank |r|: small whole numbers, so that every sum and product is exact in every type. */
static double value(int r, int64_t i) { return (double)((i * 7 + r * 3) % 5 - (r == 1)); }

static operand filled(rdna_dtype dtype, int64_t count) {
  operand o = operand_make(dtype, 1, &count, NULL, 0);
  for (int64_t i = 0; i < count; i++) operand_set(&o, i, value(rank, i));
  operand_upload(&o);
  return o;
}

static double combined(rdna_comm_op op, int64_t i) {
  double v = value(0, i);
  for (int r = 1; r < RANKS; r++) {
    double x = value(r, i);
    v = op == RDNA_COMM_OP_PRODUCT ? v * x
        : op == RDNA_COMM_OP_MAX   ? fmax(v, x)
        : op == RDNA_COMM_OP_MIN   ? fmin(v, x)
                                   : v + x;
  }
  return op == RDNA_COMM_OP_MEAN ? v / RANKS : v;
}

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64, RDNA_I32, RDNA_I64};

static void all_reduces(void **state) {
  static const int64_t counts[] = {1, 5, 1000, 40000};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (int op = 0; op < RDNA_COMM_OP_COUNT; op++) {
      if (op == RDNA_COMM_OP_MEAN && types[t] >= RDNA_I32) continue;
      int64_t count = counts[(t + (size_t)op) % 4];
      operand in = filled(types[t], count), out = filled(types[t], count);
      bool in_place = (t + (size_t)op) % 2;
      operand *to = in_place ? &in : &out;
      assert_ok(rdna_comm_all_reduce(comm, stream, in.tensor.data, to->tensor.data, (size_t)count, types[t],
                                     (rdna_comm_op)op));
      operand_download(to);
      for (int64_t i = 0; i < count; i++) {
        double want = combined((rdna_comm_op)op, i);
        assert_close(types[t], operand_get(to, i), want, op == RDNA_COMM_OP_MEAN ? 0x1p-8 * (1 + fabs(want)) : 0, "sum",
                     i);
      }
      operand_free(&in);
      operand_free(&out);
    }
  }
}

static void reduces_to_one(void **state) {
  for (int root = 0; root < RANKS; root++) {
    operand in = filled(RDNA_F32, 300), out = filled(RDNA_F32, 300);
    assert_ok(rdna_comm_reduce(comm, stream, in.tensor.data, rank == root ? out.tensor.data : NULL, 300, RDNA_F32,
                               RDNA_COMM_OP_SUM, root));
    operand_download(&out);
    for (int64_t i = 0; i < 300; i++)
      assert_true(operand_get(&out, i) == (rank == root ? combined(RDNA_COMM_OP_SUM, i) : value(rank, i)));
    operand_free(&in);
    operand_free(&out);
  }
}

static void broadcasts(void **state) {
  for (int root = 0; root < RANKS; root++) {
    operand data = filled(RDNA_I32, 50000);
    assert_ok(
        rdna_comm_broadcast(comm, stream, rank == root ? data.tensor.data : NULL, data.tensor.data, 200000, root));
    operand_download(&data);
    for (int64_t i = 0; i < 50000; i++) assert_true(operand_get(&data, i) == value(root, i));
    operand_free(&data);
  }
}

static void gathers_and_scatters(void **state) {
  enum { COUNT = 20000 };
  operand in = filled(RDNA_F32, COUNT), all = filled(RDNA_F32, COUNT * RANKS), part = filled(RDNA_F32, COUNT);
  assert_ok(rdna_comm_all_gather(comm, stream, in.tensor.data, all.tensor.data, COUNT * 4));
  operand_download(&all);
  for (int64_t i = 0; i < COUNT * RANKS; i++) assert_true(operand_get(&all, i) == value((int)(i / COUNT), i % COUNT));
  operand_free(&all);
  all = filled(RDNA_F32, COUNT * RANKS);
  assert_ok(
      rdna_comm_reduce_scatter(comm, stream, all.tensor.data, part.tensor.data, COUNT, RDNA_F32, RDNA_COMM_OP_SUM));
  /* in place */
  float *own = (float *)all.tensor.data + (size_t)rank * COUNT;
  operand_download(&part);
  for (int64_t i = 0; i < COUNT; i++)
    assert_true(operand_get(&part, i) == combined(RDNA_COMM_OP_SUM, i + (int64_t)rank * COUNT));
  assert_ok(rdna_comm_reduce_scatter(comm, stream, all.tensor.data, own, COUNT, RDNA_F32, RDNA_COMM_OP_MAX));
  operand_download(&all);
  for (int64_t i = 0; i < COUNT; i++) {
    int64_t at = i + (int64_t)rank * COUNT;
    assert_true(operand_get(&all, at) == combined(RDNA_COMM_OP_MAX, at));
  }
  operand_free(&in);
  operand_free(&all);
  operand_free(&part);
}

/* Each rank sends to the next and receives from the one before, which needs both under way at once. */
static void passes_on(void **state) {
  operand out = filled(RDNA_F64, 30000), in = filled(RDNA_F64, 30000);
  assert_ok(rdna_comm_begin(comm));
  assert_ok(rdna_comm_send(comm, stream, out.tensor.data, 240000, (rank + 1) % RANKS));
  assert_ok(rdna_comm_receive(comm, stream, in.tensor.data, 240000, (rank + RANKS - 1) % RANKS));
  assert_ok(rdna_comm_end(comm));
  operand_download(&in);
  for (int64_t i = 0; i < 30000; i++) assert_true(operand_get(&in, i) == value((rank + RANKS - 1) % RANKS, i));
  operand_free(&out);
  operand_free(&in);
}

/* Bytes, and bool, whose sum is "any" and whose product is "all". */
static void reduces_bytes(void **state) {
  enum { COUNT = 64 };
  int8_t values[COUNT];
  void *data;
  assert_ok(rdna_memory_alloc(device, COUNT, stream, &data));
  for (int dtype = RDNA_I8; dtype <= RDNA_BOOL; dtype++) {
    if (dtype != RDNA_I8 && dtype != RDNA_U8 && dtype != RDNA_BOOL) continue;
    for (int op = 0; op < RDNA_COMM_OP_MEAN; op++) {
      for (int i = 0; i < COUNT; i++) values[i] = (int8_t)(i >> rank & 1);
      assert_ok(rdna_copy_to_device(stream, data, values, COUNT));
      assert_ok(rdna_comm_all_reduce(comm, stream, data, data, COUNT, (rdna_dtype)dtype, (rdna_comm_op)op));
      assert_ok(rdna_copy_to_host(stream, values, data, COUNT));
      assert_ok(rdna_stream_synchronize(stream));
      for (int i = 0; i < COUNT; i++) {
        bool any = (i & 7) != 0, all = (i & 7) == 7;
        int sum = (i & 1) + (i >> 1 & 1) + (i >> 2 & 1);
        int want = op == RDNA_COMM_OP_SUM && dtype != RDNA_BOOL       ? sum
                   : op == RDNA_COMM_OP_SUM || op == RDNA_COMM_OP_MAX ? any
                                                                      : all;
        assert_int_equal(values[i], want);
      }
    }
  }
  assert_ok(rdna_memory_free(device, data));
}

static void refuses(void **state) {
  float *data = NULL;
  rdna_comm *other = comm;
  assert_ok(rdna_memory_alloc(device, 64, stream, (void **)&data));
#define REDUCE(...) rdna_comm_all_reduce(__VA_ARGS__)
  assert_refused(REDUCE(NULL, stream, data, data, 1, RDNA_F32, RDNA_COMM_OP_SUM), RDNA_INVALID_ARGUMENT, "communicator",
                 "NULL");
  assert_refused(REDUCE(comm, NULL, data, data, 1, RDNA_F32, RDNA_COMM_OP_SUM), RDNA_INVALID_ARGUMENT, "all_reduce",
                 "stream");
  assert_refused(REDUCE(comm, stream, NULL, data, 1, RDNA_F32, RDNA_COMM_OP_SUM), RDNA_INVALID_ARGUMENT, "all_reduce",
                 "in");
  assert_refused(REDUCE(comm, stream, data, NULL, 1, RDNA_F32, RDNA_COMM_OP_SUM), RDNA_INVALID_ARGUMENT, "all_reduce",
                 "out");
  assert_refused(REDUCE(comm, stream, data, data, 1, RDNA_I16, RDNA_COMM_OP_SUM), RDNA_UNSUPPORTED, "all_reduce",
                 "i16");
  assert_refused(REDUCE(comm, stream, data, data, 1, RDNA_BOOL, RDNA_COMM_OP_MEAN), RDNA_UNSUPPORTED, "bool", "mean");
  assert_refused(REDUCE(comm, stream, data, data, 1, RDNA_F32, (rdna_comm_op)9), RDNA_INVALID_ARGUMENT, "number 9",
                 "4");
  assert_refused(rdna_comm_broadcast(comm, stream, data, data, 4, RANKS), RDNA_INVALID_ARGUMENT, "rank 3", "0 to 2");
  assert_refused(rdna_comm_send(comm, stream, NULL, 4, 0), RDNA_INVALID_ARGUMENT, "send", "in");
  assert_refused(rdna_comm_create(device, &shared->id, 3, 3, &other), RDNA_INVALID_ARGUMENT, "rank 3", "of 3");
  assert_null(other);
  assert_refused(rdna_comm_create(device, NULL, 0, 1, &other), RDNA_INVALID_ARGUMENT, "id", "NULL");
  rdna_comm_id none = {{0}};
  assert_refused(rdna_comm_create(device, &none, 0, 1, &other), RDNA_DEVICE_ERROR, "ncclCommInitRank failed",
                 "invalid argument; the stand-in says so");
  assert_ok(REDUCE(comm, stream, NULL, NULL, 0, RDNA_F32, RDNA_COMM_OP_SUM));
  rdna_comm_release(NULL);
  rdna_comm_abort(NULL);
  assert_int_equal(rdna_comm_rank(comm), rank);
  assert_int_equal(rdna_comm_size(comm), RANKS);
  assert_ptr_equal(rdna_comm_device(comm), device);
  assert_ok(rdna_memory_free(device, data));
}

/* Ranks whose calls differ get an error, all of them, when they wait for the work. */
static void disagrees(void **state) {
  operand o = filled(RDNA_F32, 10);
  assert_ok(
      rdna_comm_all_reduce(comm, stream, o.tensor.data, o.tensor.data, rank == 1 ? 9 : 10, RDNA_F32, RDNA_COMM_OP_SUM));
  assert_ok(rdna_stream_synchronize(stream));
  assert_refused(rdna_comm_check(comm), RDNA_DEVICE_ERROR, "work under way", "invalid usage");
  operand_free(&o);
}

static int abandon(void **state) {
  rdna_comm_abort(comm);
  return close_device(state);
}

/* Runs |run| in as many processes as there are ranks; returns how many failed. */
static int among_ranks(int (*run)(void)) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t children[RANKS];
  fflush(NULL);
  for (int r = 0; r < RANKS; r++) {
    children[r] = fork();
    if (children[r] == 0) {
      rank = r;
      alarm(100);
      exit(run() != 0);
    }
  }
  int failed = 0, status;
  for (int r = 0; r < RANKS; r++)
    failed += waitpid(children[r], &status, 0) != children[r] || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  return failed;
}

static int one_rank(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_reduces), cmocka_unit_test(reduces_to_one),
      cmocka_unit_test(broadcasts),  cmocka_unit_test(gathers_and_scatters),
      cmocka_unit_test(passes_on),   cmocka_unit_test(reduces_bytes),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, begin, finish);
}
static int one_rank_that_disagrees(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(disagrees)};
  return cmocka_run_group_tests(tests, begin, abandon);
}

static void use_cuda(void) {
  setenv("RDNA_CUDA_LIBRARY", RDNA_FAKE_CUDA, 1);
  setenv("RDNA_TEST_DEVICE", "cuda:1", 1);
  setenv("RDNA_VENDOR_PATH", RDNA_FAKES "/cuda_math", 1);
  setenv("RDNA_VENDOR", "off", 1); /* says nothing about these */
}
static void use_emulator(const char *folder) {
  setenv("RDNA_HIP_LIBRARY", RDNA_EMULATOR, 1);
  setenv("RDNA_EMULATE", "gfx1100", 1);
  setenv("RDNA_TEST_DEVICE", "hip", 1);
  setenv("RDNA_VENDOR_PATH", folder, 1);
}

static int nccl(void) {
  use_cuda();
  return among_ranks(one_rank);
}
static int rccl(void) {
  use_emulator(RDNA_FAKES "/hip_math");
  return among_ranks(one_rank);
}
static int disagreement(void) {
  use_emulator(RDNA_FAKES "/hip_math");
  return among_ranks(one_rank_that_disagrees);
}

static void is_missed(void **state) {
  rdna_comm_id id;
  assert_refused(rdna_comm_id_create(device, &id), RDNA_UNAVAILABLE, "librccl.so.1", "RDNA_VENDOR_PATH");
}
static int missing(void) {
  use_emulator("");
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_missed)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

static void has_none(void **state) {
  rdna_comm_id id;
  assert_refused(rdna_comm_id_create(device, &id), RDNA_UNSUPPORTED, "host driver", "RCCL");
  assert_refused(rdna_comm_id_create(NULL, &id), RDNA_INVALID_ARGUMENT, "device", "NULL");
  assert_refused(rdna_comm_id_create(device, NULL), RDNA_INVALID_ARGUMENT, "id", "NULL");
}
static int on_the_host(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(has_none)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

static void is_described(void **state) {
  rdna_vendor_info info = {0};
  for (int i = 0; i < rdna_vendor_count() && (!info.name || strcmp(info.name, "nccl") != 0); i++)
    assert_ok(rdna_vendor_get_info(device, i, &info));
  assert_string_equal(info.name, "nccl");
  assert_ok(info.status);
  assert_string_equal(info.version, "2.20.5");
}
static int description(void) {
  use_cuda();
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_described)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

int main(void) {
  static const flavour flavours[] = {{"nccl", nccl},
                                     {"rccl", rccl},
                                     {"disagreement", disagreement},
                                     {"missing", missing},
                                     {"on the host", on_the_host},
                                     {"description", description}};
  return run_flavours(flavours, sizeof flavours / sizeof *flavours, 120);
}
