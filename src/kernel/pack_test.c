/* Packs made here byte by byte, whole, cut at every length, and hostile. */
#include "kernel/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <cmocka.h>

typedef struct built {
  uint8_t bytes[4096];
  size_t size;
  rdna__pack_header *header;
  rdna__pack_entry *entries;
} built;

static const char code[] = "\177ELF pretends to be a code object, a code object, a code object, a code object";
static const char ptx[] = ".version 7.8\n.target sm_80\n";

static void rehash(built *b) {
  b->header->table_hash = XXH3_64bits(b->entries, b->header->entry_count * sizeof *b->entries);
}

static void build(built *b) {
  memset(b, 0, sizeof *b);
  b->header = (rdna__pack_header *)b->bytes;
  b->entries = (rdna__pack_entry *)(b->bytes + sizeof *b->header);
  memcpy(b->header->magic, "RDNAPACK", 8);
  b->header->version = 1;
  b->header->entry_count = 2;
  strcpy(b->header->target, "gfx1100");
  const void *raw[2] = {code, ptx};
  size_t raw_size[2] = {sizeof code, sizeof ptx};
  b->size = sizeof *b->header + 2 * sizeof *b->entries;
  for (int i = 0; i < 2; i++) {
    rdna__pack_entry *e = &b->entries[i];
    strcpy(e->name, i ? "gemm" : "fill");
    e->format = i ? RDNA__PACK_PTX : RDNA__PACK_HSACO;
    e->offset = b->size;
    e->raw_size = raw_size[i];
    e->raw_hash = XXH3_64bits(raw[i], raw_size[i]);
    e->compressed_size = ZSTD_compress(b->bytes + b->size, sizeof b->bytes - b->size, raw[i], raw_size[i], 3);
    b->size += e->compressed_size;
  }
  rehash(b);
}

static void test_whole(void **state) {
  built b;
  build(&b);
  char path[] = "/tmp/rdna-pack-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, b.bytes, b.size), b.size);
  close(file);
  rdna__pack *pack;
  assert_int_equal(rdna__pack_open(path, &pack), RDNA_OK);
  assert_string_equal(rdna__pack_target(pack), "gfx1100");
  assert_int_equal(rdna__pack_entry_count(pack), 2);
  assert_int_equal(rdna__pack_size(pack), b.size);
  assert_null(rdna__pack_find(pack, "conv"));
  assert_null(rdna__pack_entry_at(pack, 2));
  assert_null(rdna__pack_entry_at(pack, -1));
  void *image;
  size_t size;
  assert_int_equal(rdna__pack_extract(pack, rdna__pack_find(pack, "fill"), &image, &size), RDNA_OK);
  assert_int_equal(size, sizeof code);
  assert_memory_equal(image, code, size);
  free(image);
  assert_int_equal(rdna__pack_extract(pack, rdna__pack_find(pack, "gemm"), &image, &size), RDNA_OK);
  assert_string_equal(image, ptx);
  free(image);
  rdna__pack_close(pack);
  unlink(path);
  assert_int_equal(rdna__pack_open(path, &pack), RDNA_NOT_FOUND);
  assert_int_equal(rdna__pack_open("/tmp", &pack), RDNA_BAD_DATA);
}

/* Opens and extracts everything from a copy of exactly |size| bytes, so that the sanitizer sees an overrun. What is
 * extracted is always what was packed. */
static rdna_status read_all(const uint8_t *bytes, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  memcpy(copy, bytes, size);
  rdna__pack *pack;
  rdna_status status = rdna__pack_open_memory(copy, size, "test", &pack);
  for (int i = 0; status == RDNA_OK && i < rdna__pack_entry_count(pack); i++) {
    void *image;
    size_t image_size;
    status = rdna__pack_extract(pack, rdna__pack_entry_at(pack, i), &image, &image_size);
    if (status == RDNA_OK) {
      assert_int_equal(image_size, i ? sizeof ptx : sizeof code);
      assert_memory_equal(image, i ? ptx : code, image_size);
    }
    free(image);
  }
  rdna__pack_close(pack);
  free(copy);
  return status;
}

static void test_truncated(void **state) {
  built b;
  build(&b);
  assert_int_equal(read_all(b.bytes, b.size), RDNA_OK);
  for (size_t size = 0; size < b.size; size++) assert_int_equal(read_all(b.bytes, size), RDNA_BAD_DATA);
}

/* A flipped bit is found, or changes nothing of what is extracted (some bits of a zstd frame say nothing). */
static void test_every_flipped_bit(void **state) {
  built b;
  build(&b);
  size_t unnoticed = 0, table = sizeof *b.header + 2 * sizeof *b.entries;
  for (size_t bit = 0; bit < b.size * 8; bit++) {
    b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    rdna_status status = read_all(b.bytes, b.size);
    if (status == RDNA_OK)
      unnoticed++;
    else
      assert_int_equal(status, RDNA_BAD_DATA);
    /* magic, version, count, hash and table are covered to the last bit; the target's name only by its end */
    if (bit / 8 < 16 || (bit / 8 >= 48 && bit / 8 < table)) assert_int_equal(status, RDNA_BAD_DATA);
    b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  assert_true(unnoticed < 32 * 8 + 40);
}

static void expect_bad(built *b) {
  rehash(b);
  assert_int_equal(read_all(b->bytes, b->size), RDNA_BAD_DATA);
  assert_true(strlen(rdna_last_error()) > 20);
  build(b);
}

static void test_hostile(void **state) {
  built b;
  build(&b);
  b.entries[0].offset = UINT64_MAX - 3; /* offset + size wraps around */
  expect_bad(&b);
  b.entries[0].compressed_size = UINT64_MAX;
  expect_bad(&b);
  b.entries[1].raw_size = UINT64_MAX;
  expect_bad(&b);
  b.entries[1].raw_size = (uint64_t)255 << 20; /* allowed by the limit, but a lie */
  expect_bad(&b);
  b.entries[1].raw_size = 0;
  expect_bad(&b);
  b.entries[1].format = 3;
  expect_bad(&b);
  b.entries[0].name[0] = 0;
  expect_bad(&b);
  memset(b.entries[0].name, 'x', sizeof b.entries[0].name);
  expect_bad(&b);
  memset(b.header->target, 'g', sizeof b.header->target);
  expect_bad(&b);
  b.header->entry_count = 5000;
  assert_int_equal(read_all(b.bytes, b.size), RDNA_BAD_DATA);
  build(&b);
  b.header->version = 2;
  expect_bad(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole),
      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_every_flipped_bit),
      cmocka_unit_test(test_hostile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
