#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/random.h"
#include "base/testing.h"
#include "model/gguf/testing_gguf.h"

static const float weights[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -11};  // (3, 4)

/* One key of every type and two tensors. */
static testing_gguf good_file(uint32_t version) {
  testing_gguf g = {0};
  testing_put_header(&g, version, 2, 17);
  testing_put_key(&g, "a.u8", RDNA_GGUF_TYPE_U8), testing_put(&g, "\xff", 1);
  testing_put_key(&g, "a.i8", RDNA_GGUF_TYPE_I8), testing_put(&g, "\x80", 1);
  testing_put_key(&g, "a.u16", RDNA_GGUF_TYPE_U16), testing_put(&g, "\xff\xff", 2);
  testing_put_key(&g, "a.i16", RDNA_GGUF_TYPE_I16), testing_put(&g, "\x00\x80", 2);
  testing_put_key(&g, "a.u32", RDNA_GGUF_TYPE_U32), testing_put_u32(&g, UINT32_MAX);
  testing_put_key(&g, "a.i32", RDNA_GGUF_TYPE_I32), testing_put_u32(&g, (uint32_t)INT32_MIN);
  testing_put_key(&g, "a.f32", RDNA_GGUF_TYPE_F32), testing_put(&g, &(float){0.1f}, 4);
  testing_put_key_bool(&g, "a.bool", true);
  testing_put_key(&g, "a.text", RDNA_GGUF_TYPE_TEXT), testing_put_bytes(&g, "x\0y", 3);
  testing_put_key(&g, "a.u64", RDNA_GGUF_TYPE_U64), testing_put_u64(&g, UINT64_MAX);
  testing_put_key(&g, "a.i64", RDNA_GGUF_TYPE_I64), testing_put_u64(&g, (uint64_t)INT64_MIN);
  testing_put_key(&g, "a.f64", RDNA_GGUF_TYPE_F64), testing_put(&g, &(double){1e300}, 8);
  testing_put_array(&g, "a.texts", RDNA_GGUF_TYPE_TEXT, 3);
  testing_put_text(&g, "one"), testing_put_text(&g, ""), testing_put_bytes(&g, "\0", 1);
  testing_put_array(&g, "a.i64s", RDNA_GGUF_TYPE_I64, 3);
  testing_put_u64(&g, (uint64_t)INT32_MIN), testing_put_u64(&g, 7), testing_put_u64(&g, UINT64_C(1) << 31);
  testing_put_array(&g, "a.bools", RDNA_GGUF_TYPE_BOOL, 2), testing_put(&g, "\1\0", 2);
  testing_put_array(&g, "a.nested", RDNA_GGUF_TYPE_ARRAY, 2);
  testing_put_u32(&g, RDNA_GGUF_TYPE_TEXT), testing_put_u64(&g, 1), testing_put_text(&g, "in");
  testing_put_u32(&g, RDNA_GGUF_TYPE_U16), testing_put_u64(&g, 2), testing_put(&g, "abcd", 4);
  testing_put_array(&g, "a.f64s", RDNA_GGUF_TYPE_F64, 2), testing_put(&g, (double[]){1.5, 1e300}, 16);
  testing_put_tensor(&g, "w", 2, (uint64_t[]){4, 3}, 0, 0);
  testing_put_tensor(&g, "q", 3, (uint64_t[]){256, 1, 2}, 15, 64); /* Q8_K: 292 bytes a block */
  testing_pad(&g, 32);
  testing_put(&g, weights, sizeof weights);
  testing_pad(&g, 32);
  for (int i = 0; i < 584; i++) testing_put(&g, &(uint8_t){(uint8_t)i}, 1);
  return g;
}

static rdna_gguf *open_good(testing_gguf *g, uint32_t version) {
  *g = good_file(version);
  rdna_gguf *file = NULL;
  rdna_status status = rdna_gguf_open_memory(g->data, g->size, &file);
  if (status != RDNA_OK) print_error("%s\n", rdna_last_error());
  assert_ok(status);
  return file;
}

static void test_scalars(void **state) {
  for (uint32_t version = 2; version <= 3; version++) {
    testing_gguf g;
    rdna_gguf *file = open_good(&g, version);
    assert_int_equal(rdna_gguf_version(file), version);
    assert_int_equal(rdna_gguf_key_count(file), 17);
    uint64_t u = 1;
    int64_t i = 1;
    double d = 0;
    bool b = false;
    rdna_text t;
    assert_ok(rdna_gguf_get_u64(file, "a.u8", &u));
    assert_int_equal(u, 255);
    assert_ok(rdna_gguf_get_u64(file, "a.u16", &u));
    assert_int_equal(u, 65535);
    assert_ok(rdna_gguf_get_u64(file, "a.u64", &u));
    assert_true(u == UINT64_MAX);
    assert_int_equal(rdna_gguf_get_u64(file, "a.i8", &u), RDNA_BAD_DATA);
    assert_true(u == UINT64_MAX); /* untouched */
    assert_ok(rdna_gguf_get_i64(file, "a.i8", &i));
    assert_int_equal(i, -128);
    assert_ok(rdna_gguf_get_i64(file, "a.i16", &i));
    assert_int_equal(i, -32768);
    assert_ok(rdna_gguf_get_i64(file, "a.i32", &i));
    assert_int_equal(i, INT32_MIN);
    assert_ok(rdna_gguf_get_i64(file, "a.u32", &i));
    assert_int_equal(i, UINT32_MAX);
    assert_ok(rdna_gguf_get_i64(file, "a.i64", &i));
    assert_true(i == INT64_MIN);
    assert_int_equal(rdna_gguf_get_i64(file, "a.u64", &i), RDNA_BAD_DATA);
    assert_ok(rdna_gguf_get_f64(file, "a.f32", &d));
    assert_true(d == (double)0.1f);
    assert_ok(rdna_gguf_get_f64(file, "a.f64", &d));
    assert_true(d == 1e300);
    assert_ok(rdna_gguf_get_f64(file, "a.i32", &d));
    assert_true(d == INT32_MIN);
    assert_int_equal(rdna_gguf_get_f64(file, "a.u64", &d), RDNA_BAD_DATA);
    assert_int_equal(rdna_gguf_get_f64(file, "a.bool", &d), RDNA_BAD_DATA);
    assert_int_equal(rdna_gguf_get_u64(file, "a.f32", &u), RDNA_BAD_DATA);
    assert_int_equal(rdna_gguf_get_u64(file, "a.bool", &u), RDNA_BAD_DATA);
    assert_ok(rdna_gguf_get_bool(file, "a.bool", &b));
    assert_true(b);
    assert_int_equal(rdna_gguf_get_bool(file, "a.u8", &b), RDNA_BAD_DATA);
    assert_ok(rdna_gguf_get_text(file, "a.text", &t));
    assert_int_equal(t.size, 3);
    assert_memory_equal(t.data, "x\0y", 3);
    assert_int_equal(rdna_gguf_get_text(file, "a.texts", &t), RDNA_BAD_DATA);
    assert_int_equal(rdna_gguf_get_u64(file, "a.text", &u), RDNA_BAD_DATA);
    assert_int_equal(rdna_gguf_get_u64(file, "a.i64s", &u), RDNA_BAD_DATA);
    assert_int_equal(rdna_gguf_get_u64(file, "a.none", &u), RDNA_NOT_FOUND);
    assert_non_null(strstr(rdna_last_error(), "a.none"));
    rdna_gguf_close(file);
    free(g.data);
  }
}

static void test_arrays(void **state) {
  testing_gguf g;
  rdna_gguf *file = open_good(&g, 3);
  const rdna_text *texts = NULL;
  size_t count = 0;
  assert_ok(rdna_gguf_get_texts(file, "a.texts", &texts, &count));
  assert_int_equal(count, 3);
  assert_int_equal(texts[0].size, 3);
  assert_memory_equal(texts[0].data, "one", 3);
  assert_int_equal(texts[1].size, 0);
  assert_int_equal(texts[2].size, 1);
  assert_int_equal(texts[2].data[0], 0);
  assert_int_equal(rdna_gguf_get_texts(file, "a.text", &texts, &count), RDNA_BAD_DATA);
  assert_int_equal(rdna_gguf_get_texts(file, "a.i64s", &texts, &count), RDNA_BAD_DATA);
  int32_t i[3] = {1, 1, 1};
  float f[3];
  assert_ok(rdna_gguf_read_i32(file, "a.i64s", 0, 2, i));
  assert_int_equal(i[0], INT32_MIN);
  assert_int_equal(i[1], 7);
  assert_int_equal(i[2], 1);
  i[0] = 5;
  assert_int_equal(rdna_gguf_read_i32(file, "a.i64s", 1, 2, i), RDNA_BAD_DATA); /* 2^31 */
  assert_int_equal(i[0], 5);
  assert_int_equal(rdna_gguf_read_i32(file, "a.i64s", 1, 3, i), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_gguf_read_i32(file, "a.i64s", UINT64_MAX, 2, i), RDNA_INVALID_ARGUMENT);
  assert_ok(rdna_gguf_read_i32(file, "a.i64s", 3, 0, i));
  assert_ok(rdna_gguf_read_i32(file, "a.bools", 0, 2, i));
  assert_int_equal(i[0], 1);
  assert_int_equal(i[1], 0);
  assert_int_equal(rdna_gguf_read_i32(file, "a.u8", 0, 1, i), RDNA_BAD_DATA);
  assert_int_equal(rdna_gguf_read_i32(file, "a.f64s", 0, 1, i), RDNA_BAD_DATA);
  assert_int_equal(rdna_gguf_read_i32(file, "a.texts", 0, 1, i), RDNA_BAD_DATA);
  assert_int_equal(rdna_gguf_read_i32(file, "a.nested", 0, 1, i), RDNA_BAD_DATA);
  assert_ok(rdna_gguf_read_f32(file, "a.f64s", 0, 1, f));
  assert_true(f[0] == 1.5f);
  assert_int_equal(rdna_gguf_read_f32(file, "a.f64s", 0, 2, f), RDNA_BAD_DATA); /* 1e300 */
  assert_ok(rdna_gguf_read_f32(file, "a.i64s", 0, 3, f));
  assert_true(f[0] == -2147483648.0f && f[2] == 2147483648.0f);
  rdna_gguf_key key;
  assert_true(rdna_gguf_find_key(file, "a.nested", &key));
  assert_int_equal(key.type, RDNA_GGUF_TYPE_ARRAY);
  assert_int_equal(key.element_type, RDNA_GGUF_TYPE_ARRAY);
  assert_int_equal(key.count, 2);
  assert_ok(rdna_gguf_key_at(file, 15, &key));
  assert_string_equal(key.name, "a.nested");
  assert_int_equal(rdna_gguf_key_at(file, 17, &key), RDNA_INVALID_ARGUMENT);
  rdna_gguf_close(file);
  free(g.data);
}

static void test_tensors(void **state) {
  testing_gguf g;
  rdna_gguf *file = open_good(&g, 3);
  rdna_gguf_tensor tensor;
  assert_int_equal(rdna_gguf_tensor_count(file), 2);
  assert_ok(rdna_gguf_get_tensor(file, "w", &tensor));
  assert_int_equal(tensor.dtype, RDNA_F32);
  assert_int_equal(tensor.rank, 2);
  assert_int_equal(tensor.shape[0], 3);
  assert_int_equal(tensor.shape[1], 4);
  assert_int_equal(tensor.bytes, sizeof weights);
  assert_memory_equal(tensor.data, weights, sizeof weights);
  assert_int_equal(rdna_gguf_get_tensor(file, "q", &tensor), RDNA_UNSUPPORTED);
  assert_non_null(strstr(rdna_last_error(), "Q8_K"));
  assert_true(rdna_gguf_has_tensor(file, "q"));
  assert_ok(rdna_gguf_tensor_at(file, 1, &tensor));
  assert_string_equal(tensor.name, "q");
  assert_int_equal(tensor.dtype, RDNA_DTYPE_COUNT);
  assert_int_equal(tensor.shape[0], 2);
  assert_int_equal(tensor.shape[2], 256);
  assert_int_equal(tensor.bytes, 584);
  for (int i = 0; i < 584; i++) assert_int_equal(((const uint8_t *)tensor.data)[i], (uint8_t)i);
  assert_int_equal(rdna_gguf_tensor_at(file, 2, &tensor), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_gguf_get_tensor(file, "v", &tensor), RDNA_NOT_FOUND);
  assert_string_equal(rdna_gguf_tensor_type_name(12), "Q4_K");
  assert_string_equal(rdna_gguf_tensor_type_name(4), "?");
  assert_string_equal(rdna_gguf_tensor_type_name(UINT32_MAX), "?");
  rdna_gguf_close(file);
  free(g.data);
}

/* Opens |g|, frees it, and wants |status| with |word| in the sentence. */
static void refuse(testing_gguf g, rdna_status status, const char *word) {
  rdna_gguf *file = NULL;
  rdna_status got = rdna_gguf_open_memory(g.data, g.size, &file);
  if (got != status || !strstr(rdna_last_error(), word))
    print_error("wanted %s with '%s', got %s: %s\n", rdna_status_name(status), word, rdna_status_name(got),
                rdna_last_error());
  assert_int_equal(got, status);
  assert_null(file);
  assert_non_null(strstr(rdna_last_error(), word));
  free(g.data);
}

static testing_gguf header(uint32_t version, uint64_t tensors, uint64_t keys) {
  testing_gguf g = {0};
  testing_put_header(&g, version, tensors, keys);
  return g;
}

static void test_headers(void **state) {
  refuse(header(1, 0, 0), RDNA_UNSUPPORTED, "version 1");
  refuse(header(0x03000000, 0, 0), RDNA_UNSUPPORTED, "big-endian");
  refuse(header(4, 0, 0), RDNA_UNSUPPORTED, "version 4");
  refuse(header(0, 0, 0), RDNA_UNSUPPORTED, "version 0");
  refuse(header(3, 0, 1), RDNA_BAD_DATA, "claims 1 keys");
  refuse(header(3, 0, UINT64_MAX), RDNA_BAD_DATA, "keys");
  refuse(header(3, UINT64_MAX, 0), RDNA_BAD_DATA, "tensors");
  refuse(header(3, UINT64_MAX / 24 + 2, 0), RDNA_BAD_DATA, "tensors");
  testing_gguf g = {0};
  testing_put(&g, "GGML", 4);
  testing_pad(&g, 64);
  refuse(g, RDNA_BAD_DATA, "not a GGUF");
  rdna_gguf *file = NULL;
  assert_int_equal(rdna_gguf_open_memory(NULL, 0, &file), RDNA_INVALID_ARGUMENT);
  g = header(3, 0, 0); /* nothing in it is a file, too */
  assert_ok(rdna_gguf_open_memory(g.data, g.size, &file));
  assert_int_equal(rdna_gguf_key_count(file), 0);
  assert_int_equal(rdna_gguf_tensor_count(file), 0);
  rdna_gguf_close(file);
  rdna_gguf_close(NULL);
  free(g.data);
}

static void test_bad_keys(void **state) {
  testing_gguf g = header(3, 0, 2);
  testing_put_key_u32(&g, "same", 1), testing_put_key_u32(&g, "same", 1);
  refuse(g, RDNA_BAD_DATA, "same is there twice");
  g = header(3, 0, 1);
  testing_put_key(&g, "k", RDNA_GGUF_TYPE_COUNT), testing_put_u64(&g, 0);
  refuse(g, RDNA_BAD_DATA, "type 13");
  g = header(3, 0, 1);
  testing_put_array(&g, "k", 99, 1), testing_put_u64(&g, 0);
  refuse(g, RDNA_BAD_DATA, "type 99");
  g = header(3, 0, 1);
  testing_put_key(&g, "k", RDNA_GGUF_TYPE_BOOL), testing_put(&g, "\2", 1), testing_pad(&g, 32);
  refuse(g, RDNA_BAD_DATA, "neither 0 nor 1");
  g = header(3, 0, 1);
  testing_put_array(&g, "k", RDNA_GGUF_TYPE_BOOL, 3), testing_put(&g, "\0\1\3", 3);
  refuse(g, RDNA_BAD_DATA, "neither 0 nor 1");
  g = header(3, 0, 1);
  testing_put_bytes(&g, "a\0b", 3), testing_put_u32(&g, RDNA_GGUF_TYPE_U32), testing_put_u32(&g, 1);
  refuse(g, RDNA_BAD_DATA, "zero byte");
  static const uint64_t lengths[] = {2, UINT64_MAX, UINT64_MAX / 2 + 1, UINT64_MAX / 8 + 1, UINT64_MAX - 40};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    g = header(3, 0, 1);
    testing_put_key(&g, "k", RDNA_GGUF_TYPE_TEXT), testing_put_u64(&g, lengths[i]), testing_put(&g, "x", 1);
    refuse(g, RDNA_BAD_DATA, "ends inside");
    static const rdna_gguf_type types[] = {RDNA_GGUF_TYPE_U64, RDNA_GGUF_TYPE_TEXT, RDNA_GGUF_TYPE_I16,
                                           RDNA_GGUF_TYPE_ARRAY};
    for (int t = 0; t < 4; t++) {
      g = header(3, 0, 1);
      testing_put_array(&g, "k", types[t], lengths[i]), testing_put(&g, "abc", 3);
      refuse(g, RDNA_BAD_DATA, "ends inside");
    }
    g = header(3, 0, 1);
    testing_put_u64(&g, lengths[i] == 2 ? 100 : lengths[i]);
    testing_put(&g, "some name", 9);
    refuse(g, RDNA_BAD_DATA, "ends inside the name");
  }
  g = header(3, 0, 1);
  char *name = calloc(1, 65537);
  testing_put_key_u32(&g, memset(name, 'n', 65536), 1);
  free(name);
  refuse(g, RDNA_BAD_DATA, "65536 bytes");
  for (int depth = 1; depth <= 6; depth++) { /* [[[…]]] */
    g = header(3, 0, 1);
    testing_put_key(&g, "k", RDNA_GGUF_TYPE_ARRAY);
    for (int d = 1; d < depth; d++) testing_put_u32(&g, RDNA_GGUF_TYPE_ARRAY), testing_put_u64(&g, 1);
    testing_put_u32(&g, RDNA_GGUF_TYPE_U8), testing_put_u64(&g, 1), testing_put(&g, "\0", 1);
    if (depth > 4) {
      refuse(g, RDNA_BAD_DATA, "nested");
      continue;
    }
    rdna_gguf *file = NULL;
    assert_ok(rdna_gguf_open_memory(g.data, g.size, &file));
    rdna_gguf_close(file);
    free(g.data);
  }
}

static testing_gguf one_tensor(uint32_t rank, const uint64_t *dims, uint32_t type, uint64_t offset, size_t data_bytes) {
  testing_gguf g = header(3, 1, 0);
  testing_put_tensor(&g, "t", rank, dims, type, offset);
  testing_pad(&g, 32);
  for (size_t i = 0; i < data_bytes; i++) testing_put(&g, "d", 1);
  return g;
}

static void test_bad_tensors(void **state) {
  refuse(one_tensor(5, (uint64_t[]){1, 1, 1, 1}, 0, 0, 64), RDNA_BAD_DATA, "5 dimensions");
  refuse(one_tensor(2, (uint64_t[]){UINT64_C(1) << 32, UINT64_C(1) << 32}, 0, 0, 64), RDNA_BAD_DATA, "63 bits");
  refuse(one_tensor(1, (uint64_t[]){UINT64_MAX}, 24, 0, 64), RDNA_BAD_DATA, "63 bits");
  refuse(one_tensor(1, (uint64_t[]){UINT64_C(1) << 62}, 0, 0, 64), RDNA_BAD_DATA, "does not fit");
  refuse(one_tensor(1, (uint64_t[]){(UINT64_C(1) << 62) + 4}, 28, 0, 64), RDNA_BAD_DATA, "does not fit");
  refuse(one_tensor(1, (uint64_t[]){33}, 8, 0, 640), RDNA_BAD_DATA, "multiple of the 32");
  refuse(one_tensor(2, (uint64_t[]){128, 2}, 12, 0, 640), RDNA_BAD_DATA, "multiple of the 256");
  refuse(one_tensor(1, (uint64_t[]){4}, 0, 16, 640), RDNA_BAD_DATA, "not aligned");
  refuse(one_tensor(1, (uint64_t[]){4}, 0, 640, 640), RDNA_BAD_DATA, "may be incomplete");
  refuse(one_tensor(1, (uint64_t[]){161}, 0, 0, 640), RDNA_BAD_DATA, "may be incomplete");
  refuse(one_tensor(1, (uint64_t[]){4}, 0, UINT64_MAX - 31, 640), RDNA_BAD_DATA, "may be incomplete");
  refuse(one_tensor(1, (uint64_t[]){1}, 5, 672, 640), RDNA_BAD_DATA, "may be incomplete");
  testing_gguf g = header(3, 2, 0);
  testing_put_tensor(&g, "t", 1, (uint64_t[]){1}, 0, 0), testing_put_tensor(&g, "t", 1, (uint64_t[]){1}, 0, 32);
  refuse(g, RDNA_BAD_DATA, "t is there twice");
  static const uint32_t alignments[] = {0, 1, 4, 24, 31, 0x80000001};
  for (int i = 0; i < 6; i++) {
    g = header(3, 0, 1);
    testing_put_key_u32(&g, "general.alignment", alignments[i]);
    refuse(g, RDNA_BAD_DATA, "power of two");
  }
  g = header(3, 0, 1);
  testing_put_key_text(&g, "general.alignment", "32");
  refuse(g, RDNA_BAD_DATA, "not an integer");
}

static void test_odd_tensors(void **state) {
  static const struct {
    uint32_t rank;
    uint64_t dims[4];
    uint32_t type;
    size_t bytes;
  } cases[] = {
      {0, {0}, 0, 4},   {1, {0}, 0, 0},       {3, {4, 0, 5}, 1, 0}, {2, {0, 3}, 12, 0}, {4, {1, 2, 3, 4}, 24, 24},
      {1, {7}, 200, 0}, {2, {32, 3}, 39, 51}, {1, {256}, 23, 136}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    testing_gguf g = one_tensor(cases[i].rank, cases[i].dims, cases[i].type, 0, cases[i].bytes);
    rdna_gguf *file = NULL;
    assert_ok(rdna_gguf_open_memory(g.data, g.size, &file));
    rdna_gguf_tensor tensor;
    assert_ok(rdna_gguf_tensor_at(file, 0, &tensor));
    assert_int_equal(tensor.bytes, cases[i].bytes);
    assert_int_equal(tensor.rank, cases[i].rank);
    if (tensor.bytes == 0) assert_null(tensor.data);
    rdna_gguf_close(file);
    free(g.data);
  }
  testing_gguf g = header(3, 1, 1); /* a wider alignment moves the data */
  testing_put_key_u32(&g, "general.alignment", 256);
  testing_put_tensor(&g, "t", 1, (uint64_t[]){1}, 26, 256);
  testing_pad(&g, 256);
  testing_put_u32(&g, 111);
  testing_pad(&g, 256);
  testing_put_u32(&g, 222);
  rdna_gguf *file = NULL;
  rdna_gguf_tensor tensor;
  assert_ok(rdna_gguf_open_memory(g.data, g.size, &file));
  assert_ok(rdna_gguf_get_tensor(file, "t", &tensor));
  assert_int_equal(*(const uint32_t *)tensor.data, 222);
  rdna_gguf_close(file);
  free(g.data);
}

/* Every prefix of a good file is refused, in memory of exactly that size so that a sanitizer sees a read past it. */
static void test_every_truncation(void **state) {
  testing_gguf g = good_file(3);
  for (size_t size = 1; size < g.size; size++) {
    testing_gguf cut = {0};
    cut.data = malloc(size);
    cut.size = size;
    memcpy(cut.data, g.data, size);
    refuse(cut, RDNA_BAD_DATA, "");
  }
  free(g.data);
}

/* Any byte may be wrong: the file opens or is refused with a sentence, and what opens can be read. */
static void test_every_byte_changed(void **state) {
  testing_gguf g = good_file(3);
  static const uint8_t masks[] = {0x01, 0x80, 0xff};
  size_t refused = 0;
  for (size_t at = 0; at < g.size; at++) {
    for (int m = 0; m < 3; m++) {
      g.data[at] ^= masks[m];
      rdna_gguf *file = NULL;
      if (rdna_gguf_open_memory(g.data, g.size, &file) == RDNA_OK) {
        rdna_gguf_tensor tensor;
        for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
          assert_ok(rdna_gguf_tensor_at(file, i, &tensor));
          if (tensor.bytes == 0) continue;
          assert_true((const uint8_t *)tensor.data >= g.data);
          assert_true((const uint8_t *)tensor.data + tensor.bytes <= g.data + g.size);
        }
      } else {
        refused++;
      }
      rdna_gguf_close(file);
      g.data[at] ^= masks[m];
    }
  }
  assert_true(refused > 100);
  free(g.data);
}

static void write_file(const char *path, const testing_gguf *g) {
  FILE *to = fopen(path, "wb");
  assert_non_null(to);
  assert_int_equal(fwrite(g->data, 1, g->size, to), g->size);
  assert_int_equal(fclose(to), 0);
}

/* Part |number| of |count| in |folder|, with one tensor "t<number>" that holds its number. */
static void write_part(const char *folder, int number, int count, int number_inside, int tensors) {
  testing_gguf g = header(3, 1, 4);
  testing_put_key(&g, "split.no", RDNA_GGUF_TYPE_U16), testing_put(&g, &(uint16_t){(uint16_t)number_inside}, 2);
  testing_put_key(&g, "split.count", RDNA_GGUF_TYPE_U16), testing_put(&g, &(uint16_t){(uint16_t)count}, 2);
  testing_put_key(&g, "split.tensors.count", RDNA_GGUF_TYPE_I32), testing_put_u32(&g, (uint32_t)tensors);
  testing_put_key_u32(&g, "part", (uint32_t)number);
  char name[64], path[512];
  snprintf(name, sizeof name, "t%d", number);
  testing_put_tensor(&g, name, 1, (uint64_t[]){1}, 26, 0);
  testing_pad(&g, 32);
  testing_put_u32(&g, (uint32_t)number);
  snprintf(path, sizeof path, "%s/m-%05d-of-%05d.gguf", folder, number + 1, count);
  write_file(path, &g);
  free(g.data);
}

static void test_parts(void **state) {
  char folder[] = "/tmp/rdna_gguf_test_XXXXXX", path[512], command[600];
  assert_non_null(mkdtemp(folder));
  for (int i = 0; i < 3; i++) write_part(folder, i, 3, i, 3);
  for (int i = 0; i < 3; i++) { /* any of them opens the whole */
    snprintf(path, sizeof path, "%s/m-%05d-of-00003.gguf", folder, i + 1);
    rdna_gguf *file = NULL;
    assert_ok(rdna_gguf_open(path, &file));
    assert_int_equal(rdna_gguf_tensor_count(file), 3);
    uint64_t part = 9;
    assert_ok(rdna_gguf_get_u64(file, "part", &part));
    assert_int_equal(part, 0);
    for (int t = 0; t < 3; t++) {
      char name[64];
      snprintf(name, sizeof name, "t%d", t);
      rdna_gguf_tensor tensor;
      assert_ok(rdna_gguf_get_tensor(file, name, &tensor));
      assert_int_equal(*(const int32_t *)tensor.data, t);
    }
    rdna_gguf_close(file);
  }
  rdna_gguf *file = NULL;
  write_part(folder, 1, 3, 2, 3); /* the second says that it is the third */
  assert_int_equal(rdna_gguf_open(path, &file), RDNA_BAD_DATA);
  assert_non_null(strstr(rdna_last_error(), "says that it is part 3"));
  write_part(folder, 1, 3, 1, 3);
  write_part(folder, 0, 3, 0, 4);
  assert_int_equal(rdna_gguf_open(path, &file), RDNA_BAD_DATA);
  assert_non_null(strstr(rdna_last_error(), "3 tensors"));
  write_part(folder, 0, 3, 1, 3);
  assert_int_equal(rdna_gguf_open(path, &file), RDNA_BAD_DATA);
  assert_non_null(strstr(rdna_last_error(), "named as the first"));
  write_part(folder, 0, 3, 3, 3);
  snprintf(path, sizeof path, "%s/m-00001-of-00003.gguf", folder);
  assert_int_equal(rdna_gguf_open(path, &file), RDNA_BAD_DATA);
  assert_non_null(strstr(rdna_last_error(), "part 4 of 3"));
  write_part(folder, 0, 3, 0, 3);
  snprintf(path, sizeof path, "%s/m-00002-of-00003.gguf", folder);
  assert_int_equal(unlink(path), 0);
  snprintf(path, sizeof path, "%s/m-00003-of-00003.gguf", folder);
  assert_int_equal(rdna_gguf_open(path, &file), RDNA_NOT_FOUND);
  assert_non_null(strstr(rdna_last_error(), "m-00002-of-00003.gguf"));
  char renamed[512];
  snprintf(renamed, sizeof renamed, "%s/other.gguf", folder);
  assert_int_equal(rename(path, renamed), 0);
  assert_int_equal(rdna_gguf_open(renamed, &file), RDNA_BAD_DATA);
  assert_non_null(strstr(rdna_last_error(), "-00003-of-00003.gguf"));
  assert_null(file);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void test_paths(void **state) {
  rdna_gguf *file = NULL;
  assert_int_equal(rdna_gguf_open("/nonexistent/x.gguf", &file), RDNA_NOT_FOUND);
  assert_non_null(strstr(rdna_last_error(), "/nonexistent/x.gguf"));
  assert_int_equal(rdna_gguf_open("/tmp", &file), RDNA_IO_ERROR);
  assert_int_equal(rdna_gguf_open("/dev/null", &file), RDNA_IO_ERROR);
  assert_int_equal(rdna_gguf_open(NULL, &file), RDNA_INVALID_ARGUMENT);
  char path[] = "/tmp/rdna_gguf_test_XXXXXX";
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  close(descriptor);
  assert_int_equal(rdna_gguf_open(path, &file), RDNA_BAD_DATA);
  testing_gguf g = good_file(3);
  write_file(path, &g);
  assert_ok(rdna_gguf_open(path, &file));
  assert_int_equal(rdna_gguf_tensor_count(file), 2);
  rdna_gguf_close(file);
  free(g.data);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scalars),
      cmocka_unit_test(test_arrays),
      cmocka_unit_test(test_tensors),
      cmocka_unit_test(test_headers),
      cmocka_unit_test(test_bad_keys),
      cmocka_unit_test(test_bad_tensors),
      cmocka_unit_test(test_odd_tensors),
      cmocka_unit_test(test_every_truncation),
      cmocka_unit_test(test_every_byte_changed),
      cmocka_unit_test(test_parts),
      cmocka_unit_test(test_paths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
