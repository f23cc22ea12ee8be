#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "base/status.h"
#include "base/testing.h"
#include "model/gguf/testing_gguf.h"

static char folder[64];

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/rdna_gguf_write_test_XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[96];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static const char *in_folder(const char *name, char path[128]) {
  snprintf(path, 128, "%s/%s", folder, name);
  return path;
}

static size_t files_in_folder(void) {
  DIR *d = opendir(folder);
  assert_non_null(d);
  size_t count = 0;
  for (struct dirent *e; (e = readdir(d));) count += e->d_name[0] != '.';
  closedir(d);
  return count;
}

static size_t read_back(const char *path, uint8_t **out) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  size_t size = (size_t)ftell(file);
  rewind(file);
  *out = malloc(size + 1);
  assert_non_null(*out);
  assert_int_equal(fread(*out, 1, size, file), size);
  fclose(file);
  return size;
}

static rdna_gguf_writer *new_writer(void) {
  rdna_gguf_writer *writer = NULL;
  assert_ok(rdna_gguf_writer_create(&writer));
  return writer;
}

/* A file of one tensor of 5 f32 and every type of key, by the test's own writer. */
static testing_gguf whole_file(void) {
  testing_gguf g = {0};
  testing_put_header(&g, 3, 2, 16);
  testing_put_key(&g, "u8", RDNA_GGUF_TYPE_U8), testing_put(&g, "\xff", 1);
  testing_put_key(&g, "i8", RDNA_GGUF_TYPE_I8), testing_put(&g, "\x80", 1);
  testing_put_key(&g, "u16", RDNA_GGUF_TYPE_U16), testing_put(&g, "\xff\xfe", 2);
  testing_put_key(&g, "i16", RDNA_GGUF_TYPE_I16), testing_put(&g, "\x01\x80", 2);
  testing_put_key_u32(&g, "general.alignment", 64);
  testing_put_key(&g, "i32", RDNA_GGUF_TYPE_I32), testing_put_u32(&g, (uint32_t)INT32_MIN);
  testing_put_key(&g, "f32", RDNA_GGUF_TYPE_F32), testing_put(&g, &(float){0.1f}, 4);
  testing_put_key_bool(&g, "bool", true);
  testing_put_key(&g, "text", RDNA_GGUF_TYPE_TEXT), testing_put_bytes(&g, "x\0y", 3);
  testing_put_key(&g, "u64", RDNA_GGUF_TYPE_U64), testing_put_u64(&g, UINT64_MAX);
  testing_put_key(&g, "i64", RDNA_GGUF_TYPE_I64), testing_put_u64(&g, (uint64_t)INT64_MIN);
  testing_put_key(&g, "f64", RDNA_GGUF_TYPE_F64), testing_put(&g, &(double){1e300}, 8);
  testing_put_array(&g, "texts", RDNA_GGUF_TYPE_TEXT, 3);
  testing_put_text(&g, "one"), testing_put_text(&g, ""), testing_put_bytes(&g, "\0", 1);
  testing_put_array(&g, "i16s", RDNA_GGUF_TYPE_I16, 2), testing_put(&g, "abcd", 4);
  testing_put_array(&g, "empty", RDNA_GGUF_TYPE_F32, 0);
  testing_put_array(&g, "nested", RDNA_GGUF_TYPE_ARRAY, 2);
  testing_put_u32(&g, RDNA_GGUF_TYPE_TEXT), testing_put_u64(&g, 1), testing_put_text(&g, "in");
  testing_put_u32(&g, RDNA_GGUF_TYPE_U16), testing_put_u64(&g, 2), testing_put(&g, "abcd", 4);
  testing_put_tensor(&g, "w", 1, (uint64_t[]){5}, 0, 0);
  testing_put_tensor(&g, "q", 3, (uint64_t[]){256, 1, 2}, 15, 64); /* Q8_K, which is only read */
  testing_pad(&g, 64);
  testing_put(&g, (float[]){1, 2, 3, 4, 5}, 20);
  testing_pad(&g, 64);
  for (int i = 0; i < 584; i++) testing_put(&g, &(uint8_t){(uint8_t)i}, 1);
  testing_pad(&g, 64);
  return g;
}

static rdna_status fill_in_pieces(void *data, rdna_gguf_writer *writer) {
  const rdna_gguf_tensor *tensor = data;
  const uint8_t *bytes = tensor->data;
  for (size_t at = 0, n; at < tensor->bytes; at += n) {
    n = tensor->bytes - at < 7 ? tensor->bytes - at : 7;
    RDNA_TRY(rdna_gguf_writer_append(writer, bytes + at, n));
  }
  return RDNA_OK;
}

/* What is copied from a file is that file, byte by byte. */
static void test_copies(void **state) {
  testing_gguf g = whole_file();
  rdna_gguf *file = NULL;
  assert_ok(rdna_gguf_open_memory(g.data, g.size, &file));
  rdna_gguf_writer *writer = new_writer();
  for (size_t i = 0; i < rdna_gguf_key_count(file); i++) {
    rdna_gguf_key key;
    assert_ok(rdna_gguf_key_at(file, i, &key));
    assert_ok(rdna_gguf_writer_copy_key(writer, file, key.name));
  }
  assert_refused(rdna_gguf_writer_copy_key(writer, file, "none"), RDNA_NOT_FOUND, "none");
  rdna_gguf_tensor tensors[2];
  for (size_t i = 0; i < 2; i++) {
    assert_ok(rdna_gguf_tensor_at(file, i, &tensors[i]));
    assert_ok(rdna_gguf_writer_add_tensor(writer, &tensors[i], i ? fill_in_pieces : NULL, &tensors[i]));
  }
  char path[128];
  for (int pass = 0; pass < 2; pass++) { /* a writer may write again, over what is there */
    assert_ok(rdna_gguf_writer_write(writer, in_folder("copy.gguf", path), NULL, NULL));
    uint8_t *bytes;
    size_t size = read_back(path, &bytes);
    assert_int_equal(size, g.size);
    assert_memory_equal(bytes, g.data, size);
    free(bytes);
  }
  assert_int_equal(files_in_folder(), 1);
  unlink(path);
  rdna_gguf_writer_release(writer);
  rdna_gguf_close(file);
  free(g.data);
}

/* The same file from values. */
static void test_puts(void **state) {
  testing_gguf g = whole_file();
  rdna_gguf_writer *writer = new_writer();
  const rdna_text text = {"x\0y", 3}, texts[] = {{"one", 3}, {NULL, 0}, {"", 1}};
#define PUT(name, TYPE, ctype, v) assert_ok(rdna_gguf_writer_put(writer, name, RDNA_GGUF_TYPE_##TYPE, &(ctype){v}))
  PUT("u8", U8, uint8_t, 255);
  PUT("i8", I8, int8_t, -128);
  PUT("u16", U16, uint16_t, 0xfeff);
  PUT("i16", I16, int16_t, -32767);
  PUT("general.alignment", U32, uint32_t, 8);
  PUT("i32", I32, int32_t, INT32_MIN);
  PUT("f32", F32, float, 0.1f);
  PUT("bool", BOOL, bool, true);
  assert_ok(rdna_gguf_writer_put(writer, "text", RDNA_GGUF_TYPE_TEXT, &text));
  PUT("u64", U64, uint64_t, UINT64_MAX);
  PUT("i64", I64, int64_t, INT64_MIN);
  PUT("f64", F64, double, 1e300);
  PUT("general.alignment", U32, uint32_t, 64); /* in its place */
  assert_ok(rdna_gguf_writer_put_array(writer, "texts", RDNA_GGUF_TYPE_TEXT, texts, 3));
  assert_ok(rdna_gguf_writer_put_array(writer, "i16s", RDNA_GGUF_TYPE_I16, "abcd", 2));
  assert_ok(rdna_gguf_writer_put_array(writer, "empty", RDNA_GGUF_TYPE_F32, NULL, 0));
  rdna_gguf *file = NULL;
  assert_ok(rdna_gguf_open_memory(g.data, g.size, &file));
  assert_ok(rdna_gguf_writer_copy_key(writer, file, "nested")); /* these are only copied */
  const float values[5] = {1, 2, 3, 4, 5};
  uint8_t blocks[584];
  for (int i = 0; i < 584; i++) blocks[i] = (uint8_t)i;
  const rdna_gguf_tensor w = {.name = "w", .dtype = RDNA_F32, .rank = 1, .shape = {5}, .data = values};
  const rdna_gguf_tensor q = {
      .name = "q", .dtype = RDNA_DTYPE_COUNT, .ggml_type = 15, .rank = 3, .shape = {2, 1, 256}, .data = blocks};
  assert_ok(rdna_gguf_writer_add_tensor(writer, &w, NULL, NULL));
  assert_ok(rdna_gguf_writer_add_tensor(writer, &q, NULL, NULL));
  char path[128];
  assert_ok(rdna_gguf_writer_write(writer, in_folder("put.gguf", path), NULL, NULL));
  uint8_t *bytes;
  size_t size = read_back(path, &bytes);
  assert_int_equal(size, g.size);
  assert_memory_equal(bytes, g.data, size);
  free(bytes);
  unlink(path);
  rdna_gguf_writer_release(writer);
  rdna_gguf_close(file);
  free(g.data);
}

/* Every type of tensor that the library has, in random shapes, with random bytes. */
static void test_types(void **state) {
  rdna__random random;
  rdna__random_seed(&random, 7);
  rdna_gguf_writer *writer = new_writer();
  void *data[RDNA_DTYPE_COUNT] = {0};
  size_t sizes[RDNA_DTYPE_COUNT] = {0};
  for (int dtype = 0; dtype < RDNA_DTYPE_COUNT; dtype++) {
    rdna_gguf_tensor t = {.name = rdna_dtype_name(dtype), .dtype = dtype, .rank = 1 + dtype % 4};
    for (int d = 0; d < t.rank; d++) t.shape[d] = 1 + rdna__random_range(&random, 0, 2);
    t.shape[t.rank - 1] *= rdna_dtype_block_values(dtype);
    rdna_tensor shaped = rdna_tensor_contiguous(NULL, dtype, t.rank, t.shape);
    sizes[dtype] = rdna_dtype_bytes(dtype, rdna_tensor_count(&shaped));
    t.data = data[dtype] = malloc(sizes[dtype]);
    for (size_t i = 0; i < sizes[dtype]; i++) ((uint8_t *)data[dtype])[i] = (uint8_t)rdna__random_bits(&random);
    bool has_number = dtype != RDNA_U8 && dtype != RDNA_BOOL && dtype < RDNA_U16 &&
                      (dtype < RDNA_F8_E4M3FN || dtype > RDNA_F8_E5M2FNUZ);
    if (has_number) assert_ok(rdna_gguf_writer_add_tensor(writer, &t, NULL, NULL));
    if (!has_number)
      assert_refused(rdna_gguf_writer_add_tensor(writer, &t, NULL, NULL), RDNA_INVALID_ARGUMENT, t.name, "no type");
  }
  char path[128];
  assert_ok(rdna_gguf_writer_write(writer, in_folder("types.gguf", path), NULL, NULL));
  rdna_gguf_writer_release(writer);
  rdna_gguf *file = NULL;
  assert_ok(rdna_gguf_open(path, &file));
  assert_int_equal(rdna_gguf_tensor_count(file), RDNA_DTYPE_COUNT - 9);
  for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
    rdna_gguf_tensor t;
    assert_ok(rdna_gguf_tensor_at(file, i, &t));
    assert_string_equal(t.name, rdna_dtype_name(t.dtype));
    assert_int_equal(t.bytes, sizes[t.dtype]);
    assert_int_equal((uintptr_t)t.data % 32, 0);
    assert_memory_equal(t.data, data[t.dtype], t.bytes);
  }
  rdna_gguf_close(file);
  unlink(path);
  for (int dtype = 0; dtype < RDNA_DTYPE_COUNT; dtype++) free(data[dtype]);
}

static void test_misuse(void **state) {
  rdna_gguf_writer *writer = new_writer();
  const float one = 1;
  char *long_name = malloc(65537);
  memset(long_name, 'n', 65536);
  long_name[65536] = 0;
  assert_refused(rdna_gguf_writer_create(NULL), RDNA_INVALID_ARGUMENT, "place");
  assert_refused(rdna_gguf_writer_put(writer, NULL, RDNA_GGUF_TYPE_F32, &one), RDNA_INVALID_ARGUMENT, "name");
  assert_refused(rdna_gguf_writer_put(writer, "", RDNA_GGUF_TYPE_F32, &one), RDNA_INVALID_ARGUMENT, "0 bytes");
  assert_refused(rdna_gguf_writer_put(writer, long_name, RDNA_GGUF_TYPE_F32, &one), RDNA_INVALID_ARGUMENT, "65535");
  assert_refused(rdna_gguf_writer_put(writer, "k", RDNA_GGUF_TYPE_F32, NULL), RDNA_INVALID_ARGUMENT, "value");
  assert_refused(rdna_gguf_writer_put(writer, "k", RDNA_GGUF_TYPE_ARRAY, &one), RDNA_INVALID_ARGUMENT, "type 9");
  assert_refused(rdna_gguf_writer_put(writer, "k", RDNA_GGUF_TYPE_COUNT, &one), RDNA_INVALID_ARGUMENT, "type 13");
  assert_refused(rdna_gguf_writer_put_array(writer, "k", RDNA_GGUF_TYPE_F64, &one, UINT64_MAX / 4),
                 RDNA_INVALID_ARGUMENT, "more than memory");
  const uint32_t alignments[] = {0, 4, 48, 131072};
  for (int i = 0; i < 4; i++)
    assert_refused(rdna_gguf_writer_put(writer, "general.alignment", RDNA_GGUF_TYPE_U32, &alignments[i]),
                   RDNA_INVALID_ARGUMENT, "power of two");
  assert_refused(rdna_gguf_writer_put(writer, "general.alignment", RDNA_GGUF_TYPE_F32, &one), RDNA_INVALID_ARGUMENT,
                 "power of two");

  const rdna_gguf_tensor good = {.name = "t", .dtype = RDNA_F32, .rank = 1, .shape = {1}, .data = &one};
  assert_ok(rdna_gguf_writer_add_tensor(writer, &good, NULL, NULL));
  assert_refused(rdna_gguf_writer_add_tensor(writer, &good, NULL, NULL), RDNA_INVALID_ARGUMENT, "t is there already");
  const struct {
    rdna_gguf_tensor tensor;
    const char *says;
  } bad[] = {
      {{.name = NULL, .dtype = RDNA_F32, .rank = 1, .shape = {1}, .data = &one}, "name"},
      {{.name = "b", .dtype = RDNA_F32, .rank = 5, .shape = {1}, .data = &one}, "5 dimensions"},
      {{.name = "b", .dtype = RDNA_F32, .rank = 1, .shape = {-1}, .data = &one}, "negative"},
      {{.name = "b", .dtype = RDNA_F32, .rank = 2, .shape = {INT64_MAX, 2}, .data = &one}, "too large"},
      {{.name = "b", .dtype = RDNA_F32, .rank = 1, .shape = {INT64_MAX / 2}, .data = &one}, "does not fit"},
      {{.name = "b", .dtype = RDNA_F32, .rank = 1, .shape = {1}}, "no data"},
      {{.name = "b", .dtype = RDNA_Q8_0, .rank = 2, .shape = {32, 33}, .data = &one}, "33 values"},
      {{.name = "b", .dtype = RDNA_DTYPE_COUNT, .ggml_type = 4, .rank = 1, .shape = {1}, .data = &one}, "no type"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_refused(rdna_gguf_writer_add_tensor(writer, &bad[i].tensor, NULL, NULL), RDNA_INVALID_ARGUMENT, bad[i].says);
  free(long_name);
  rdna_gguf_writer_release(writer);
  rdna_gguf_writer_release(NULL);
}

static rdna_status fill_short(void *data, rdna_gguf_writer *writer) { return rdna_gguf_writer_append(writer, data, 3); }
static rdna_status fill_long(void *data, rdna_gguf_writer *writer) {
  RDNA_TRY(rdna_gguf_writer_append(writer, data, 4));
  return rdna_gguf_writer_append(writer, data, 1);
}
static rdna_status fill_failing(void *data, rdna_gguf_writer *writer) {
  return rdna__fail(RDNA_DEVICE_ERROR, "the card is gone");
}

static void hear(void *data, double share) {
  double *last = data;
  assert_true(share > *last && share <= 1);
  *last = share;
}

/* What goes wrong while it writes leaves the file that was there, and nothing beside it. */
static void test_failures(void **state) {
  char path[128];
  FILE *old = fopen(in_folder("old.gguf", path), "wb");
  assert_non_null(old);
  assert_true(fputs("GGUF", old) >= 0);
  fclose(old);
  const float one = 1;
  const rdna_gguf_tensor t = {.name = "t", .dtype = RDNA_F32, .rank = 1, .shape = {1}};
  const struct {
    rdna_status (*fill)(void *data, rdna_gguf_writer *writer);
    rdna_status status;
    const char *says;
  } fills[] = {{fill_short, RDNA_INVALID_ARGUMENT, "lacks 1 of its 4"},
               {fill_long, RDNA_INVALID_ARGUMENT, "lacks 0"},
               {fill_failing, RDNA_DEVICE_ERROR, "the card is gone"}};
  for (int i = 0; i < 3; i++) {
    rdna_gguf_writer *writer = new_writer();
    assert_ok(rdna_gguf_writer_add_tensor(writer, &t, fills[i].fill, (void *)&one));
    assert_refused(rdna_gguf_writer_write(writer, path, NULL, NULL), fills[i].status, path, fills[i].says);
    rdna_gguf_writer_release(writer);
  }
  /* a disk that is full: files of this process may have 1 MiB */
  rdna_gguf_writer *writer = new_writer();
  enum { LARGE = 24 << 20 };
  void *zeros = calloc(1, LARGE);
  const rdna_gguf_tensor large = {.name = "z", .dtype = RDNA_I8, .rank = 1, .shape = {LARGE}, .data = zeros};
  assert_ok(rdna_gguf_writer_add_tensor(writer, &large, NULL, NULL));
  struct rlimit before, limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = (struct rlimit){1 << 20, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  rdna_status status = rdna_gguf_writer_write(writer, path, NULL, NULL);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_refused(status, RDNA_IO_ERROR, path, "too large");
  assert_refused(rdna_gguf_writer_write(writer, "/nonexistent/x.gguf", NULL, NULL), RDNA_IO_ERROR,
                 "/nonexistent/x.gguf", "No such file");
  assert_refused(rdna_gguf_writer_write(writer, "/dev/null", NULL, NULL), RDNA_INVALID_ARGUMENT, "no regular file");
  assert_refused(rdna_gguf_writer_write(writer, folder, NULL, NULL), RDNA_INVALID_ARGUMENT, "no regular file");
  assert_int_equal(files_in_folder(), 1);
  uint8_t *bytes;
  assert_int_equal(read_back(path, &bytes), 4);
  free(bytes);
  FILE *other = fopen(path, "wb"); /* a file of another format is not written over */
  assert_non_null(other);
  assert_true(fputs("weights", other) >= 0);
  fclose(other);
  assert_refused(rdna_gguf_writer_write(writer, path, NULL, NULL), RDNA_INVALID_ARGUMENT, path, "no GGUF file");
  unlink(path);
  double share = 0;
  assert_ok(rdna_gguf_writer_write(writer, path, hear, &share)); /* and then there is room */
  assert_true(share == 1);
  struct stat written;
  assert_int_equal(stat(path, &written), 0);
  mode_t mask = umask(0);
  umask(mask);
  assert_int_equal(written.st_mode & 0777, 0666 & ~mask);
  assert_int_equal(files_in_folder(), 1);
  rdna_gguf_writer_release(writer);
  free(zeros);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_copies), cmocka_unit_test(test_puts),     cmocka_unit_test(test_types),
      cmocka_unit_test(test_misuse), cmocka_unit_test(test_failures),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
