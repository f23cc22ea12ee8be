/* Packs made here byte by byte, whole, cut at every length, and hostile. */
#include "kernel/pack.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "base/testing.h"
#include "kernel/testing_shell.h"

typedef struct built {
  uint8_t bytes[4096];
  size_t size;
  rdna__pack_header *header;
  rdna__pack_entry *entries;
} built;

static const char code[] = "\177ELF pretends to be a code object, a code object, a code object, a code object";
static const char ptx[] = ".version 7.8\n.target sm_80\n";
static const char twin[] = "\177ELF pretends to be a code object, a code object, a code abject, a code object, twice";
static const void *const raw[3] = {code, ptx, twin};
static const size_t raw_size[3] = {sizeof code, sizeof ptx, sizeof twin};

static void rehash(built *b) {
  b->header->table_hash = XXH3_64bits(b->entries, b->header->entry_count * sizeof *b->entries);
}

static void build(built *b) {
  memset(b, 0, sizeof *b);
  b->header = (rdna__pack_header *)b->bytes;
  b->entries = (rdna__pack_entry *)(b->bytes + sizeof *b->header);
  memcpy(b->header->magic, "RDNAPACK", 8);
  b->header->version = 3;
  b->header->entry_count = 3;
  strcpy(b->header->target, "gfx1100");
  b->size = sizeof *b->header + 3 * sizeof *b->entries;
  for (int i = 0; i < 3; i++) {
    rdna__pack_entry *e = &b->entries[i];
    strcpy(e->name, i == 2 ? "fill_twin" : i ? "gemm" : "fill");
    e->format = i == 1 ? RDNA__PACK_PTX : RDNA__PACK_HSACO;
    e->base = i == 2 ? 1 : 0;
    e->offset = b->size;
    e->raw_size = raw_size[i];
    e->raw_hash = XXH3_64bits(raw[i], raw_size[i]);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 3);
    if (e->base) ZSTD_CCtx_refPrefix(context, code, sizeof code);
    e->compressed_size = ZSTD_compress2(context, b->bytes + b->size, sizeof b->bytes - b->size, raw[i], raw_size[i]);
    ZSTD_freeCCtx(context);
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
  assert_ok(rdna__pack_open(path, &pack));
  assert_string_equal(rdna__pack_target(pack), "gfx1100");
  assert_int_equal(rdna__pack_entry_count(pack), 3);
  assert_int_equal(rdna__pack_size(pack), b.size);
  assert_null(rdna__pack_find(pack, "conv"));
  assert_null(rdna__pack_entry_at(pack, 3));
  assert_null(rdna__pack_entry_at(pack, -1));
  void *image;
  size_t size;
  assert_ok(rdna__pack_extract(pack, rdna__pack_find(pack, "fill"), &image, &size));
  assert_int_equal(size, sizeof code);
  assert_memory_equal(image, code, size);
  free(image);
  assert_ok(rdna__pack_extract(pack, rdna__pack_find(pack, "gemm"), &image, &size));
  assert_string_equal(image, ptx);
  free(image);
  assert_ok(rdna__pack_extract(pack, rdna__pack_find(pack, "fill_twin"), &image, &size));
  assert_int_equal(size, sizeof twin);
  assert_memory_equal(image, twin, size);
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
      assert_int_equal(image_size, raw_size[i]);
      assert_memory_equal(image, raw[i], image_size);
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
  assert_ok(read_all(b.bytes, b.size));
  for (size_t size = 0; size < b.size; size++) assert_int_equal(read_all(b.bytes, size), RDNA_BAD_DATA);
}

/* A flipped bit is found, or changes nothing of what is extracted (some bits of a zstd frame say nothing). */
static void test_every_flipped_bit(void **state) {
  built b;
  build(&b);
  size_t unnoticed = 0, table = sizeof *b.header + 3 * sizeof *b.entries;
  for (size_t bit = 0; bit < b.size * 8; bit++) {
    b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    rdna_status status = read_all(b.bytes, b.size);
    if (status == RDNA_OK)
      unnoticed++;
    else
      assert_int_equal(status, RDNA_BAD_DATA);
    /* magic, version, count, hash and table are covered to the last bit; names of targets only by their end */
    size_t at = bit / 8;
    if (at < 16 || (at >= 48 && at < 56) || (at >= sizeof *b.header && at < table))
      assert_int_equal(status, RDNA_BAD_DATA);
    b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  assert_true(unnoticed < (32 + 40) * 8 + 40);
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
  b.entries[2].base = 4; /* past the last */
  expect_bad(&b);
  b.entries[2].base = 3; /* itself */
  expect_bad(&b);
  b.entries[1].base = 3; /* what has a base is none */
  expect_bad(&b);
  b.entries[2].base = 2; /* another than it was made with: zstd, or the hash, tells */
  expect_bad(&b);
  b.entries[2].base = RDNA__PACK_ELSEWHERE; /* there is no base pack */
  expect_bad(&b);
  strcpy(b.header->base, "gfx1100"); /* nor one beside memory */
  expect_bad(&b);
  memset(b.header->base, 'g', sizeof b.header->base);
  expect_bad(&b);
  b.entries[0].name[0] = 0;
  expect_bad(&b);
  strcpy(b.entries[0].name, "../fill"); /* files are named after families and targets */
  expect_bad(&b);
  strcpy(b.header->target, "gfx/../1100");
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

static uint32_t random_word(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 16;
}

static void write_image(const char *folder, const char *name, const uint8_t *bytes, size_t size) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s.hsaco", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

/* Images of random bytes do not compress; those that are nearly the same as another take almost no space, and are read
 * back unchanged. */
static void test_builder(void **state) {
  enum { SIZE = 100000 };
  static const char *const names[] = {"alone", "half", "first", "second", "third"};
  static uint8_t images[5][SIZE];
  uint32_t random = 7;
  for (int i = 0; i < SIZE; i++)
    for (int n = 0; n < 3; n++) images[n][i] = (uint8_t)(random_word(&random) >> 8);
  memcpy(images[1], images[2], SIZE / 2);
  memcpy(images[3], images[2], SIZE);
  memcpy(images[4], images[2], SIZE);
  for (int i = 0; i < 50; i++) images[3][random_word(&random) % SIZE]++, images[4][random_word(&random) % SIZE]++;
  char folder[] = "/tmp/rdna-pack-XXXXXX", command[1024], path[256];
  assert_non_null(mkdtemp(folder));
  int length = snprintf(command, sizeof command, "%s %s/pack gfx1100 3", TEST_BUILDER, folder);
  for (int i = 0; i < 5; i++) {
    write_image(folder, names[i], images[i], SIZE);
    length += snprintf(command + length, sizeof command - (size_t)length, " %s/%s.hsaco", folder, names[i]);
  }
  assert_int_equal(system(command), 0);
  snprintf(path, sizeof path, "%s/pack", folder);
  rdna__pack *pack;
  assert_ok(rdna__pack_open(path, &pack));
  for (int i = 0; i < 5; i++) {
    const rdna__pack_entry *entry = rdna__pack_find(pack, names[i]);
    void *image;
    size_t size;
    assert_non_null(entry);
    assert_ok(rdna__pack_extract(pack, entry, &image, &size));
    assert_int_equal(size, SIZE);
    assert_memory_equal(image, images[i], SIZE);
    free(image);
  }
  assert_int_equal(rdna__pack_find(pack, "alone")->base, 0);
  assert_true(rdna__pack_find(pack, "half")->base > 0);
  assert_true(rdna__pack_size(pack) < SIZE * 26 / 10);
  rdna__pack_close(pack);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void expect_refused(const char *path, const char *sentence) {
  rdna__pack *pack;
  assert_int_equal(rdna__pack_open(path, &pack), RDNA_BAD_DATA);
  assert_null(pack);
  if (!strstr(rdna_last_error(), sentence)) fail_msg("%s", rdna_last_error());
}

static void expect_no_base(const char *folder, const char *family) {
  char path[64];
  rdna__pack *pack;
  snprintf(path, sizeof path, "%s/x.rdnapack", folder);
  assert_ok(rdna__pack_open(path, &pack));
  assert_int_equal(rdna__pack_find(pack, family)->base, 0);
  rdna__pack_close(pack);
}

/* A related target's pack is small if a base pack is beside it, and can be read only with that base. */
static void test_base_pack(void **state) {
  enum { SIZE = 50000 };
  static uint8_t images[3][SIZE]; /* two families for the base, one of them changed for the other */
  uint32_t random = 11;
  for (int i = 0; i < SIZE; i++)
    for (int n = 0; n < 2; n++) images[n][i] = (uint8_t)(random_word(&random) >> 8);
  memcpy(images[2], images[0], SIZE);
  for (int i = 0; i < 20; i++) images[2][random_word(&random) % SIZE]++;
  char folder[] = "/tmp/rdna-pack-XXXXXX", sub[64], path[64];
  assert_non_null(mkdtemp(folder));
  shell("mkdir %s/gfx1100 %s/gfx1150", folder, folder);
  snprintf(sub, sizeof sub, "%s/gfx1100", folder);
  write_image(sub, "conv", images[0], SIZE);
  write_image(sub, "gemm", images[1], SIZE);
  snprintf(sub, sizeof sub, "%s/gfx1150", folder);
  write_image(sub, "conv", images[2], SIZE);
  write_image(sub, "norm", images[1], SIZE); /* the base has no such family */
  shell("cd %s && %s gfx1100.rdnapack gfx1100 3 gfx1100/*", folder, TEST_BUILDER);
  shell("cd %s && %s gfx1150.rdnapack gfx1150 3 --base gfx1100.rdnapack gfx1150/*", folder, TEST_BUILDER);
  snprintf(path, sizeof path, "%s/gfx1150.rdnapack", folder);
  for (int run = 0; run < 2; run++) { /* by an absolute path, and by none */
    rdna__pack *pack;
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    if (run == 1) assert_int_equal(chdir(folder), 0);
    assert_ok(rdna__pack_open(run ? "gfx1150.rdnapack" : path, &pack));
    assert_true(rdna__pack_size(pack) < SIZE * 11 / 10);
    for (int i = 0; i < 2; i++) {
      void *image;
      size_t size;
      assert_ok(rdna__pack_extract(pack, rdna__pack_find(pack, i ? "norm" : "conv"), &image, &size));
      assert_int_equal(size, SIZE);
      assert_memory_equal(image, images[2 - i], SIZE);
      free(image);
    }
    rdna__pack_close(pack);
    assert_int_equal(chdir(here), 0);
  }
  shell("cd %s && ! %s x.rdnapack gfx1151 3 --base gfx1150.rdnapack gfx1150/* 2>/dev/null", folder, TEST_BUILDER);
  /* images beside the base pack that it was not made of */
  shell("cd %s && cp gfx1150/norm.hsaco gfx1100 && %s x.rdnapack gfx1150 3 --base gfx1100.rdnapack gfx1150/*", folder,
        TEST_BUILDER);
  expect_no_base(folder, "norm");
  shell("cd %s && cp gfx1150/conv.hsaco gfx1100 && ! %s x.rdnapack gfx1150 3 --base gfx1100.rdnapack gfx1150/* 2>error",
        folder, TEST_BUILDER);
  shell("grep -q 'gfx1100/conv.hsaco: is not the image that gfx1100.rdnapack holds' %s/error", folder);
  shell("cd %s && mv gfx1100.rdnapack kept && cp gfx1150.rdnapack gfx1100.rdnapack", folder);
  expect_refused(path, "which it cannot be"); /* a base with a base */
  shell("cd %s && %s gfx1100.rdnapack gfx1100 3 gfx1150/*", folder, TEST_BUILDER);
  expect_refused(path, "different builds");
  shell("cd %s && rm gfx1100.rdnapack", folder);
  expect_refused(path, "needs gfx1100.rdnapack of the same build beside it");
  shell("cd %s && head -c 150 kept >gfx1100.rdnapack", folder);
  expect_refused(path, "gfx1100.rdnapack: its table of 2 families is cut short");
  shell("rm -r %s", folder);
}

/* PTX loses comments and blanks; assembled code in a .ptx file stays as it is. */
static void test_builder_shortens_ptx(void **state) {
  static const char text[] =
      "//\n// Generated\n\n.version 7.8\n\t// .globl\tfill // @fill\n.visible .entry fill(\n"
      "\t.param .b8  fill_param_0[8]\t// 8\n)\n{\n\tmov.b64 \t%rd1, fill_param_0;   \n"
      "\t.pragma \"a  // b\";\n}";
  static const char shorter[] =
      ".version 7.8\n.visible .entry fill(\n.param .b8 fill_param_0[8]\n)\n{\nmov.b64 %rd1, fill_param_0;\n"
      "\t.pragma \"a  // b\";\n}\n";
  static const char assembled[] = "\177ELF // \0  \t\n\n // code";
  char folder[] = "/tmp/rdna-pack-XXXXXX", command[512], path[256];
  assert_non_null(mkdtemp(folder));
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s.ptx", folder, i ? "assembled" : "text");
    FILE *file = fopen(path, "wb");
    size_t length = i ? sizeof assembled - 1 : strlen(text);
    assert_int_equal(fwrite(i ? assembled : text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
  }
  snprintf(command, sizeof command, "cd %s && %s pack sm_80 3 text.ptx assembled.ptx", folder, TEST_BUILDER);
  assert_int_equal(system(command), 0);
  snprintf(path, sizeof path, "%s/pack", folder);
  rdna__pack *pack;
  void *image;
  size_t size;
  assert_ok(rdna__pack_open(path, &pack));
  assert_ok(rdna__pack_extract(pack, rdna__pack_find(pack, "text"), &image, &size));
  assert_string_equal(image, shorter);
  assert_int_equal(size, sizeof shorter);
  free(image);
  assert_ok(rdna__pack_extract(pack, rdna__pack_find(pack, "assembled"), &image, &size));
  assert_int_equal(size, sizeof assembled);
  assert_memory_equal(image, assembled, size);
  free(image);
  rdna__pack_close(pack);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole),    cmocka_unit_test(test_truncated), cmocka_unit_test(test_every_flipped_bit),
      cmocka_unit_test(test_hostile),  cmocka_unit_test(test_builder),   cmocka_unit_test(test_builder_shortens_ptx),
      cmocka_unit_test(test_base_pack)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
