#include "model/weights/upload.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "base/testing.h"
#include "device/driver.h"
#include "model/gguf/gguf.h"
#include "model/gguf/testing_gguf.h"
#include "model/weights/weights.h"
#include "rdna/memory.h"
#include "rdna/stream.h"

enum { PIECE = RDNA__UPLOAD_PIECE, POISON = 0xA7, EDGE = 64 };

typedef struct random_file {
  char path[64];
  uint8_t *want; /* its bytes */
  size_t size;
  rdna__file file;
} random_file;

static void write_at(const char *path, const void *data, size_t size, const char *mode) {
  FILE *file = fopen(path, mode);
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
}

static random_file make_file(size_t size) {
  random_file f = {.path = "/tmp/rdna_upload_XXXXXX", .want = malloc(size + 8), .size = size};
  int descriptor = mkstemp(f.path);
  assert_true(descriptor >= 0 && f.want);
  close(descriptor);
  rdna__random random;
  rdna__random_seed(&random, size);
  for (size_t i = 0; i < size; i += 8) {
    uint64_t bits = rdna__random_bits(&random);
    memcpy(f.want + i, &bits, 8);
  }
  write_at(f.path, f.want, size, "wb");
  assert_ok(rdna__file_map(f.path, &f.file));
  return f;
}

static void free_file(random_file *f) {
  rdna__file_unmap(&f->file);
  unlink(f->path);
  free(f->want);
}

/* Copies [at, at + size) of the file piece by piece. */
static rdna_status copy(rdna__uploader *u, uint8_t *to, const random_file *f, size_t at, size_t size) {
  for (size_t done = 0, part; done < size; done += part) {
    part = size - done < PIECE ? size - done : PIECE;
    rdna_status status = rdna__uploader_copy(u, to + done, f->file.data + at + done, part);
    if (status != RDNA_OK) return status;
  }
  return RDNA_OK;
}

/* Tensors of odd sizes at odd places, with poison between them; copies that read their buffer as late as they may, and
 * such that read it at once. */
static void test_bytes_arrive(void **state) {
  static const size_t sizes[] = {1, 31, 4096, PIECE, 3, PIECE - 1, 5 * PIECE + 77, 18, 2 * PIECE + 1, PIECE / 2, 7, 7};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  size_t total = 5, room = EDGE;
  for (int i = 0; i < COUNT; i++) total += sizes[i], room += sizes[i] + EDGE;
  random_file f = make_file(total);
  rdna_device *device;
  uint8_t *data;
  assert_ok(rdna_device_open("null", &device));
  assert_ok(rdna_memory_alloc(device, room, NULL, (void **)&data));
  for (int held = 0; held < 2; held++) {
    rdna__uploader *u;
    rdna__null_hold_copies(held);
    memset(data, POISON, room); /* a null device's memory is the host's */
    assert_ok(rdna__uploader_create(device, total, &u));
    size_t from = 5, to = EDGE;
    for (int i = 0; i < COUNT; from += sizes[i], to += sizes[i] + EDGE, i++)
      assert_ok(copy(u, data + to, &f, from, sizes[i]));
    assert_ok(rdna__uploader_finish(u));
    from = 5, to = EDGE;
    for (int i = 0; i < COUNT; from += sizes[i], to += sizes[i] + EDGE, i++) {
      assert_memory_equal(data + to, f.want + from, sizes[i]);
      for (int k = 1; k <= EDGE; k++) assert_int_equal(data[to - (size_t)k], POISON);
    }
    for (int k = 1; k <= EDGE; k++) assert_int_equal(data[room - (size_t)k], POISON);
    assert_ok(copy(u, data, &f, 0, 9)); /* it goes on after it was waited for */
    assert_ok(rdna__uploader_finish(u));
    assert_memory_equal(data, f.want, 9);
    rdna__uploader_release(u);
  }
  rdna__null_hold_copies(false);
  assert_ok(rdna_memory_free(device, data));
  rdna_device_release(device);
  free_file(&f);
}

/* What opening says of |f| after it was changed by |change|, with all of it asked for. */
static void check_changed(void (*change)(const random_file *f), const char *part_of_sentence) {
  random_file f = make_file(9 * PIECE + 5);
  rdna_device *device;
  rdna__uploader *u;
  uint8_t *data;
  assert_ok(rdna_device_open("null", &device));
  assert_ok(rdna_memory_alloc(device, f.size, NULL, (void **)&data));
  uint64_t live = rdna__null_live();
  assert_ok(rdna__uploader_create(device, f.size, &u));
  change(&f);
  rdna_status copied = copy(u, data, &f, 0, f.size);
  assert_int_equal(rdna__uploader_finish(u), RDNA_IO_ERROR);
  assert_true(copied == RDNA_OK || copied == RDNA_IO_ERROR);
  assert_non_null(strstr(rdna_last_error(), part_of_sentence));
  assert_non_null(strstr(rdna_last_error(), f.path));
  assert_int_equal(rdna__uploader_copy(u, data, f.file.data, 1), RDNA_IO_ERROR); /* it stays so */
  rdna__uploader_release(u);
  assert_int_equal(rdna__null_live(), live);
  assert_ok(rdna_memory_free(device, data));
  rdna_device_release(device);
  free_file(&f);
}

static void cut(const random_file *f) { assert_int_equal(truncate(f->path, (off_t)(5 * PIECE + 3)), 0); }
static void cut_all(const random_file *f) { assert_int_equal(truncate(f->path, 0), 0); }
static void overwrite(const random_file *f) {
  usleep(20000); /* a clock's tick, by which files' times are counted */
  write_at(f->path, "new", 3, "r+b");
}

static void test_files_that_change(void **state) {
  check_changed(cut, "bytes when it was opened, and has");
  check_changed(cut_all, "and has 0 now");
  check_changed(overwrite, "was written to since it was opened");
}

/* A file in whose place another is put is still the one that was opened. */
static void test_a_file_that_is_replaced(void **state) {
  random_file f = make_file(100);
  uint8_t got[100];
  unlink(f.path);
  write_at(f.path, "other", 5, "wb");
  assert_ok(rdna__file_read(f.file.data, 100, got));
  assert_memory_equal(got, f.want, 100);
  assert_ok(rdna__file_read(f.file.data + 99, 1, got));
  assert_int_equal(*got, f.want[99]);
  assert_ok(rdna__file_read("memory", 6, got)); /* of no file */
  assert_memory_equal(got, "memory", 6);
  free_file(&f);
}

/* Every call of the driver fails once: it is told, once, and nothing stays. */
static void test_calls_that_fail(void **state) {
  random_file f = make_file(6 * PIECE + 1);
  uint64_t calls = 1;
  for (uint64_t nth = 0; nth <= calls; nth++) { /* first none, to count them */
    rdna_device *device;
    rdna__uploader *u = NULL;
    uint8_t *data;
    assert_ok(rdna_device_open("null", &device));
    assert_ok(rdna_memory_alloc(device, f.size, NULL, (void **)&data));
    uint64_t live = rdna__null_live();
    rdna__null_fail(nth, RDNA_DEVICE_ERROR);
    rdna_status status = rdna__uploader_create(device, f.size, &u);
    if (status == RDNA_OK) status = copy(u, data, &f, 0, f.size);
    if (status == RDNA_OK) status = rdna__uploader_finish(u);
    if (nth == 0) calls = rdna__null_calls();
    rdna__null_fail(0, RDNA_OK);
    assert_int_equal(status, nth ? RDNA_DEVICE_ERROR : RDNA_OK);
    if (nth) assert_non_null(strstr(rdna_last_error(), "told to fail"));
    if (nth == 0) assert_memory_equal(data, f.want, f.size);
    rdna__uploader_release(u);
    assert_int_equal(rdna__null_live(), live);
    assert_ok(rdna_memory_free(device, data));
    rdna_device_release(device);
  }
  assert_true(calls > 20);
  free_file(&f);
}

/* Left in the middle: nothing is waited for but what is on its way. */
static void test_given_up(void **state) {
  random_file f = make_file(12 * PIECE);
  rdna_device *device;
  rdna__uploader *u;
  uint8_t *data;
  assert_ok(rdna_device_open("null", &device));
  assert_ok(rdna_memory_alloc(device, f.size, NULL, (void **)&data));
  uint64_t live = rdna__null_live();
  for (size_t pieces = 0; pieces < 12; pieces += 3) {
    assert_ok(rdna__uploader_create(device, f.size, &u));
    assert_ok(copy(u, data, &f, 0, pieces * PIECE));
    rdna__uploader_release(u);
  }
  assert_int_equal(rdna__null_live(), live);
  assert_ok(rdna_memory_free(device, data));
  rdna_device_release(device);
  free_file(&f);
}

/* ---- as weights of a model ---- */

enum { TYPES = 64, ROWS = 37, BLOCKS = 3 };

/* A file with a matrix of each type that weights may have, "w0", "w1" …, of random bytes, and a vector "v". Its data
 * begin at |*out_start|. */
static void write_types(const char *path, uint8_t **out_bytes, size_t *out_size, size_t *out_start, int *out_count) {
  testing_gguf bytes = {0};
  uint32_t kinds[TYPES];
  int count = 0;
  for (uint32_t kind = 0; kind < TYPES; kind++) {
    rdna__gguf_tensor_type type = rdna__gguf_tensor_type_of(kind);
    if (!type.block_values || type.dtype == RDNA_DTYPE_COUNT) continue;
    if (type.block_values > 1 || type.dtype == RDNA_F32 || type.dtype == RDNA_F16 || type.dtype == RDNA_BF16)
      kinds[count++] = kind;
  }
  testing_put_header(&bytes, 3, (uint64_t)count + 1, 0);
  uint64_t at = 0, vector = 5000;
  for (int i = 0; i < count; i++) {
    rdna__gguf_tensor_type type = rdna__gguf_tensor_type_of(kinds[i]);
    char name[8];
    snprintf(name, sizeof name, "w%d", i);
    uint64_t dims[] = {BLOCKS * type.block_values, ROWS};
    testing_put_tensor(&bytes, name, 2, dims, kinds[i], at);
    at = (at + (uint64_t)ROWS * BLOCKS * type.block_bytes + 31) / 32 * 32;
  }
  testing_put_tensor(&bytes, "v", 1, &vector, 0, at);
  testing_pad(&bytes, 32);
  *out_start = bytes.size;
  rdna__random random;
  rdna__random_seed(&random, 3);
  for (uint64_t i = 0; i < at / 8; i++) testing_put_u64(&bytes, rdna__random_bits(&random));
  for (uint64_t i = 0; i < vector; i++) {
    float value = (float)rdna__random_normal(&random);
    testing_put(&bytes, &value, sizeof value);
  }
  write_at(path, bytes.data, bytes.size, "wb");
  *out_bytes = bytes.data, *out_size = bytes.size, *out_count = count;
}

static void test_every_type(void **state) {
  char path[] = "/tmp/rdna_upload_XXXXXX";
  close(mkstemp(path));
  uint8_t *bytes;
  size_t size, start;
  int count;
  write_types(path, &bytes, &size, &start, &count);
  assert_true(count >= 25);
  for (int cut_off = 0; cut_off < 2; cut_off++) {
    rdna__strmap read = {0};
    rdna__weights w = {.read = &read};
    rdna_gguf *file;
    assert_ok(rdna_device_open("null", &w.device));
    assert_ok(rdna_gguf_open(path, &file));
    w.file = file;
    assert_ok(rdna__uploader_create(w.device, size, &w.uploader));
    if (cut_off) assert_int_equal(truncate(path, (off_t)(size / 2)), 0);
    rdna_tensor tensors[TYPES], vector = {0};
    rdna_status status = RDNA_OK;
    /* first, as its values are in pageable memory, of which no copy may be held */
    if (!cut_off) assert_ok(rdna__load_vector(&w, "v", 5000, &vector));
    if (cut_off) assert_int_equal(rdna__load_vector(&w, "v", 5000, &vector), RDNA_IO_ERROR);
    rdna__null_hold_copies(true);
    for (int i = 0; i < count && status == RDNA_OK; i++) {
      rdna_gguf_tensor tensor;
      char name[8];
      snprintf(name, sizeof name, "w%d", i);
      assert_ok(rdna_gguf_get_tensor(w.file, name, &tensor));
      status = rdna__load_table(&w, name, tensor.shape[0], tensor.shape[1], &tensors[i]);
    }
    if (status == RDNA_OK) status = rdna__weights_arrive(&w);
    assert_int_equal(status, cut_off ? RDNA_IO_ERROR : RDNA_OK);
    rdna__null_hold_copies(false);
    size_t at = start;
    for (int i = 0; i < count && !cut_off; i++) {
      rdna_gguf_tensor tensor;
      assert_ok(rdna_gguf_tensor_at(w.file, (size_t)i, &tensor));
      assert_memory_equal(tensors[i].data, bytes + at, tensor.bytes);
      at = (at + tensor.bytes + 31) / 32 * 32;
    }
    if (!cut_off) assert_memory_equal(vector.data, bytes + size - 5000 * sizeof(float), 5000 * sizeof(float));
    rdna__weights_free(&w);
    rdna_device_release(w.device);
    rdna_gguf_close(file);
    rdna__strmap_deinit(&read);
  }
  unlink(path);
  free(bytes);
}

static void test_staging_is_bounded(void **state) {
  size_t last = 0;
  for (uint64_t bytes = 1; bytes < UINT64_C(1) << 44; bytes = bytes * 3 + 1) {
    size_t staging = rdna__uploader_staging(bytes);
    assert_true(staging >= last && staging <= 8 * PIECE);
    assert_true(staging <= 2 * bytes + 2 * 4096 || bytes >= PIECE);
    last = staging;
  }
  assert_true(last >= 2 * PIECE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes_arrive),
                                     cmocka_unit_test(test_files_that_change),
                                     cmocka_unit_test(test_a_file_that_is_replaced),
                                     cmocka_unit_test(test_calls_that_fail),
                                     cmocka_unit_test(test_given_up),
                                     cmocka_unit_test(test_every_type),
                                     cmocka_unit_test(test_staging_is_bounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
