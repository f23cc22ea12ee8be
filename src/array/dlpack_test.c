/* Arrays through DLPack's structs and back, on any device, and structs that are wrong. The device: RDNA_TEST_DEVICE. */
#include <string.h>

#include "base/testing.h"
#include "math/common/test/device.h"
#include "rdna/array.h"

/* dlpack.h's DLManagedTensor, field by field. */
typedef struct managed {
  void *data;
  int32_t device_type, device_index, rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
  void *context;
  void (*deleter)(struct managed *self);
} managed;

static uint64_t live_blocks(void) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  return stats.blocks;
}

/* Each value and type come back, through strides that go backwards, and the memory goes with the last who has it. */
static void there_and_back(void **state) {
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F64, RDNA_I32, RDNA_U8, RDNA_BOOL, RDNA_F16, RDNA_BF16, RDNA_I64};
  uint64_t before = live_blocks();
  for (int i = 0; i < 32; i++) {
    rdna_dtype dtype = types[i / 4];
    bool versioned = i & 1, copied = i & 2, pairs = true, same = true;
    uint8_t values[12 * 8], back[sizeof values];
    size_t bytes = rdna_dtype_bytes(dtype, 12);
    for (size_t k = 0; k < bytes; k++) values[k] = (uint8_t)(k % 2); /* bool has no others */
    rdna_array *x, *turned, *got;
    void *tensor;
    assert_ok(rdna_array_from_host(stream, dtype, 2, (int64_t[]){3, 4}, values, &x));
    assert_ok(rdna_array_slice(x, 0, 2, 3, -1, &turned));
    rdna_array_release(x);
    assert_ok(rdna_array_to_host(turned, values, bytes));
    assert_ok(rdna_array_to_dlpack(turned, versioned, copied, false, &tensor));
    assert_ok(rdna_array_from_dlpack(stream, tensor, versioned, &pairs, &got));
    same = rdna_array_tensor(got)->data == rdna_array_tensor(turned)->data;
    assert_true(!pairs && same == !copied);
    rdna_array_release(turned);
    assert_int_equal(rdna_array_tensor(got)->dtype, dtype);
    assert_ok(rdna_array_to_host(got, back, bytes));
    assert_memory_equal(back, values, bytes);
    rdna_array_release(got);
    assert_int_equal(live_blocks(), before);
  }
}

/* Pairs are complex numbers outside, and pairs again inside. */
static void complex_numbers(void **state) {
  const double values[] = {1, 2, 3, 4, 5, 6};
  double back[6];
  rdna_array *x, *got;
  void *tensor;
  bool pairs = false;
  assert_ok(rdna_array_from_host(stream, RDNA_F64, 2, (int64_t[]){3, 2}, values, &x));
  assert_ok(rdna_array_to_dlpack(x, false, false, true, &tensor));
  const managed *m = tensor;
  assert_true(m->code == 5 && m->bits == 128 && m->rank == 1 && m->shape[0] == 3 && m->strides[0] == 1);
  assert_ok(rdna_array_from_dlpack(stream, tensor, false, &pairs, &got));
  assert_true(pairs);
  assert_ok(rdna_array_to_host(got, back, sizeof back));
  assert_memory_equal(back, values, sizeof back);
  rdna_array_release(got);
  assert_ok(rdna_array_to_dlpack(x, true, false, true, &tensor));
  rdna_dlpack_release(tensor, true);
  rdna_array_release(x);
}

static int deleted;
static void count_deleted(managed *self) { deleted++; }

static void refusals(void **state) {
  int32_t type, index;
  rdna_dlpack_device(stream, &type, &index);
  static int64_t shape[9] = {2, 2, 1, 1, 1, 1, 1, 1, 1}, negative[] = {-1}, large[] = {1ll << 40, 1ll << 40};
  float values[4] = {0};
  const managed good = {values, type, index, 2, 2, 32, 1, shape, NULL, 0, NULL, count_deleted};
  managed m;
  rdna_array *x, *out;
  void *tensor = &x;
  bool pairs;
#define WRONG(code_of, mentions, ...)                                                               \
  do {                                                                                              \
    m = good;                                                                                       \
    __VA_ARGS__;                                                                                    \
    out = (rdna_array *)&out;                                                                       \
    assert_int_equal(rdna_array_from_dlpack(stream, &m, false, &pairs, &out), code_of);             \
    if (!strstr(rdna_last_error(), mentions)) fail_msg("'%s' in: %s", mentions, rdna_last_error()); \
    assert_true(out == (rdna_array *)&out && deleted == 0);                                         \
  } while (0)
  WRONG(RDNA_INVALID_ARGUMENT, "device (7, 0)", m.device_type = 7, m.device_index = 0);
  WRONG(RDNA_UNSUPPORTED, "code 3, 32 bits", m.code = 3);
  WRONG(RDNA_UNSUPPORTED, "code 0, 0 bits", m.code = 0, m.bits = 0);
  WRONG(RDNA_UNSUPPORTED, "2 lanes", m.lanes = 2);
  WRONG(RDNA_UNSUPPORTED, "code 5, 32 bits", m.code = 5);
  WRONG(RDNA_UNSUPPORTED, "9 dimensions", m.rank = 9);
  WRONG(RDNA_UNSUPPORTED, "-1 dimensions", m.rank = -1);
  WRONG(RDNA_UNSUPPORTED, "2 dimensions", m.shape = NULL);
  WRONG(RDNA_INVALID_ARGUMENT, "negative", m.rank = 1, m.shape = negative);
  WRONG(RDNA_INVALID_ARGUMENT, "2^59", m.shape = large);
  WRONG(RDNA_INVALID_ARGUMENT, "without data", m.data = NULL);
  WRONG(RDNA_UNSUPPORTED, "multiple of their size", m.byte_offset = 2);
  m = good;
  assert_int_equal(rdna_array_from_dlpack(stream, NULL, false, &pairs, &out), RDNA_INVALID_ARGUMENT);
  assert_ok(rdna_array_from_dlpack(stream, &m, false, &pairs, &out));
  rdna_array_release(out);
  assert_int_equal(deleted, 1);
  uint32_t future[32] = {2, 0};
  assert_int_equal(rdna_array_from_dlpack(stream, future, true, &pairs, &out), RDNA_INVALID_ARGUMENT);
  assert_non_null(strstr(rdna_last_error(), "version 2.0"));
  assert_ok(rdna_array_full(stream, RDNA_F32, 1, (int64_t[]){3}, (rdna_scalar){0, 0}, &x));
  assert_int_equal(rdna_array_to_dlpack(x, true, false, true, &tensor), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_array_to_dlpack(NULL, true, false, false, &tensor), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_array_to_dlpack(x, true, false, false, NULL), RDNA_INVALID_ARGUMENT);
  assert_ptr_equal(tensor, &x);
  rdna_array_release(x);
  rdna_dlpack_release(NULL, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(there_and_back),
      cmocka_unit_test(complex_numbers),
      cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
