// The loader on objects and bundles that clang made, and on the same bytes damaged: a status, never a crash.
//   object_test FOLDER     the folder holds what CMake builds from hip/probe.hip
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include <cmocka.h>

#include "object/dwarf.h"
#include "object/object.h"

static const char *folder;

typedef struct file {
  uint8_t *data;
  size_t size;
} file;

static file read_all(const char *name) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *in = fopen(path, "rb");
  if (!in) fail_msg("%s cannot be read", path);
  assert_int_equal(fseek(in, 0, SEEK_END), 0);
  file f = {.size = (size_t)ftell(in)};
  rewind(in);
  f.data = malloc(f.size);
  assert_non_null(f.data);
  assert_int_equal(fread(f.data, 1, f.size, in), f.size);
  fclose(in);
  return f;
}

static void check_probe(const struct emu_image *image, const char *arch) {
  struct emu_object object;
  struct emu_object_error error;
  if (emu_object_open(image, &object, &error) != EMU_OBJECT_OK) fail_msg("%s", error.text);
  assert_string_equal(emu_mach_name(object.flags), arch);
  assert_int_equal(object.kernel_count, 10);
  // the signature in hip/probe.hip, laid out by C's rules
  const struct emu_object_kernel *kernel = emu_object_kernel(&object, "arguments");
  assert_non_null(kernel);
  static const struct {
    uint32_t offset, size;
    enum emu_arg_kind kind;
  } expected[] = {{0, 1, EMU_ARG_BY_VALUE},
                  {8, 8, EMU_ARG_BY_VALUE},
                  {16, 8, EMU_ARG_BY_VALUE},
                  {24, 8, EMU_ARG_POINTER},
                  {32, 8, EMU_ARG_POINTER}};
  assert_true(kernel->has_args && kernel->arg_count >= 5 && kernel->kernarg_bytes >= 40);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(kernel->args[i].offset, expected[i].offset);
    assert_int_equal(kernel->args[i].size, expected[i].size);
    assert_int_equal(kernel->args[i].kind, expected[i].kind);
  }
  for (unsigned i = 5; i < kernel->arg_count; i++) assert_true(kernel->args[i].kind > EMU_ARG_POINTER);
  const struct emu_object_kernel *recurses = emu_object_kernel(&object, "recurses");
  assert_true(recurses && recurses->dynamic_stack && !kernel->dynamic_stack);
  assert_null(emu_object_kernel(&object, "argument"));
  const struct emu_symbol *table = emu_object_symbol(&object, "table");
  assert_true(table && table->object && table->bytes == 16);
  assert_true(object.relocation_count > 0);  // pointer_to_table
  emu_object_close(&object);
}

static const struct emu_symbol *variable(const struct emu_symbol *variables, unsigned count, const char *name) {
  for (unsigned i = 0; i < count; i++) {
    if (!strcmp(variables[i].name, name)) return &variables[i];
  }
  return NULL;
}

static struct emu_symbol *variables_of(const struct emu_object *object, unsigned *count) {
  struct emu_symbol *variables = emu_object_variables(object, count);
  assert_non_null(variables);
  for (unsigned i = 1; i < *count; i++) {
    assert_true(variables[i].address >= variables[i - 1].address + variables[i - 1].bytes);
  }
  return variables;
}

// `table` has 16 bytes and stands before a pointer. First as it is, then as if it reached into that, then stripped.
static void test_variables(void **state) {
  file f = read_all("probe_gfx1100.hsaco");
  struct emu_image image;
  struct emu_object object;
  assert_int_equal(emu_image_find(f.data, f.size, NULL, &image, NULL), EMU_OBJECT_OK);
  assert_int_equal(emu_object_open(&image, &object, NULL), EMU_OBJECT_OK);
  unsigned count, fewer;
  struct emu_symbol *all = variables_of(&object, &count);
  const struct emu_symbol *table = variable(all, count, "table"), *pointer = variable(all, count, "pointer_to_table");
  assert_true(table && pointer && table->bytes == 16 && pointer->bytes == 8);
  assert_int_equal(pointer->address, table->address + 16);
  assert_non_null(variable(all, count, "arguments.kd"));
  assert_null(variable(all, count, "arguments"));
  size_t bytes;
  uint8_t *symbols = (uint8_t *)emu_object_section(&object, ".symtab", &bytes);
  for (size_t at = 0; at + 24 <= bytes; at += 24) {
    if (!memcmp(symbols + at + 8, &table->address, 8)) symbols[at + 16] = 20;
  }
  struct emu_symbol *joined = variables_of(&object, &fewer);
  assert_int_equal(fewer, count - 1);
  assert_int_equal(variable(joined, fewer, "table")->bytes, 24);
  assert_null(variable(joined, fewer, "pointer_to_table"));
  free(joined);
  uint8_t *name = memmem(f.data, f.size, ".symtab", 8);
  assert_non_null(name);
  name[1] = 'x';
  struct emu_symbol *shared = variables_of(&object, &fewer);
  assert_int_equal(variable(shared, fewer, "table")->bytes, 16);
  free(shared);
  free(all);
  emu_object_close(&object);
  emu_image_release(&image);
  free(f.data);
}

static void check_target(const char *name, const char *arch) {
  file f = read_all(name);
  struct emu_image image;
  struct emu_object_error error = {{0}};
  if (emu_image_find(f.data, f.size, arch, &image, &error) != EMU_OBJECT_OK) fail_msg("%s: %s", name, error.text);
  check_probe(&image, arch);
  emu_image_release(&image);
  // a bare pointer, as hipModuleLoadData gets it
  if (emu_image_find(f.data, SIZE_MAX, arch, &image, &error) != EMU_OBJECT_OK) fail_msg("%s: %s", name, error.text);
  check_probe(&image, arch);
  emu_image_release(&image);
  assert_int_equal(emu_image_find(f.data, f.size, "gfx906", &image, &error), EMU_OBJECT_OTHER_TARGET);
  assert_non_null(strstr(error.text, "gfx906"));
  free(f.data);
}

static void test_code_objects(void **state) {
  check_target("probe_gfx1030.hsaco", "gfx1030");
  check_target("probe_gfx1100.hsaco", "gfx1100");
}

static void test_bundles(void **state) {
  static const char *const names[] = {"probe.bundle", "probe_compressed.bundle"};
  for (int i = 0; i < 2; i++) {
    check_target(names[i], "gfx1030");
    check_target(names[i], "gfx1100");
  }
}

// clang no longer writes the older method, so the test packs the bundle itself.
static void test_zlib_and_later_headers(void **state) {
  file f = read_all("probe.bundle");
  uLongf packed_bytes = compressBound(f.size);
  uint8_t *packed = malloc(32 + packed_bytes);
  assert_non_null(packed);
  for (unsigned version = 2; version <= 3; version++) {
    size_t header = version == 2 ? 24 : 32;
    uLongf bytes = packed_bytes;
    assert_int_equal(compress(packed + header, &bytes, f.data, f.size), Z_OK);
    memset(packed, 0, header);
    memcpy(packed, "CCOB", 4);
    packed[4] = (uint8_t)version;
    uint64_t total = header + bytes, unpacked = f.size;
    memcpy(packed + 8, &total, version == 2 ? 4 : 8);
    memcpy(packed + (version == 2 ? 12 : 16), &unpacked, version == 2 ? 4 : 8);
    struct emu_image image;
    assert_int_equal(emu_image_find(packed, total, "gfx1030", &image, NULL), EMU_OBJECT_OK);
    check_probe(&image, "gfx1030");
    emu_image_release(&image);
    // a size that does not hold
    packed[version == 2 ? 12 : 16] ^= 1;
    assert_int_equal(emu_image_find(packed, total, "gfx1030", &image, NULL), EMU_OBJECT_CORRUPT);
  }
  free(packed);
  free(f.data);
}

static void test_wrappers(void **state) {
  file f = read_all("probe.bundle");
  struct {
    uint32_t magic, version;
    const void *data;
    void *unused;
  } wrapper = {0x48495046, 1, f.data, NULL};
  struct emu_image image;
  assert_int_equal(emu_image_find(&wrapper, SIZE_MAX, "gfx1100", &image, NULL), EMU_OBJECT_OK);
  check_probe(&image, "gfx1100");
  emu_image_release(&image);
  // in a file its pointer means nothing
  assert_int_equal(emu_image_find(&wrapper, sizeof wrapper, "gfx1100", &image, NULL), EMU_OBJECT_UNSUPPORTED);
  free(f.data);
}

static void try(const uint8_t *data, size_t size) {
  struct emu_image image;
  struct emu_object object;
  if (emu_image_find(data, size, NULL, &image, NULL) != EMU_OBJECT_OK) return;
  if (emu_object_open(&image, &object, NULL) == EMU_OBJECT_OK) {
    size_t bytes;
    unsigned count;
    (void)emu_object_section(&object, ".debug_line", &bytes);
    free(emu_object_variables(&object, &count));
    emu_object_close(&object);
  }
  emu_image_release(&image);
}

// The last byte stands before a page that cannot be read, so that a read beyond the end ends the test.
static void test_damage(void **state) {
  static const char *const names[] = {"probe_gfx1030.hsaco", "probe.bundle", "probe_compressed.bundle"};
  for (int n = 0; n < 3; n++) {
    file f = read_all(names[n]);
    size_t room = (f.size + 4095) / 4096 * 4096;
    uint8_t *pages = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + room, 4096, PROT_NONE), 0);
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 4000; round++) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      size_t size = round % 4 == 0 ? random % f.size : f.size;
      uint8_t *data = pages + room - size;
      memcpy(data, f.data, size);
      for (int k = 0; k < round % 7 && size; k++) {
        // headers and notes stand at the beginning
        size_t at = (random >> (8 * k)) % (k % 2 ? size : size < 2048 ? size : 2048);
        data[at] = (uint8_t)(random >> (3 * k + 5));
      }
      try(data, size);
    }
    munmap(pages, room + 4096);
    free(f.data);
  }
}

static void test_generic_targets(void **state) {
  assert_true(emu_mach_runs_on(0x54, "gfx1100") && emu_mach_runs_on(0x54, "gfx1102"));
  assert_true(emu_mach_runs_on(0x53, "gfx1030") && !emu_mach_runs_on(0x53, "gfx1100"));
  assert_true(emu_mach_runs_on(0x52, "gfx1012") && !emu_mach_runs_on(0x52, "gfx1030"));
  assert_true(emu_mach_runs_on(0x54, "gfx1151") && !emu_mach_runs_on(0x54, "gfx1201"));
  assert_true(emu_mach_runs_on(0x41, "gfx1100") && !emu_mach_runs_on(0x41, "gfx1101"));
  assert_false(emu_mach_runs_on(0xff, "gfx1100"));
}

// Attributes without bytes: 64 KiB of entries that have 32,768 each would be two thousand million of them.
static void test_entries_of_many_attributes(void **state) {
  (void)state;
  enum { ENTRIES = 1 << 16, ATTRIBUTES = 1 << 15, HEADER = 11 };
  static uint8_t abbrev[8 + 2 * ATTRIBUTES + 3] = {1, 0x11, 1, 0, 0, 2, 0x34, 0}, info[HEADER + 1 + ENTRIES];
  for (int i = 0; i < ATTRIBUTES; i++) memcpy(abbrev + 8 + 2 * i, "\x3c\x19", 2);  // DW_AT_declaration, flag_present
  memcpy(info, &(uint32_t){sizeof(info) - 4}, 4);
  info[4] = 4, info[10] = 8, info[HEADER] = 1;
  memset(info + HEADER + 1, 2, ENTRIES);
  struct emu_dwarf_sections sections = {.info = {info, sizeof(info)}, .abbrev = {abbrev, sizeof(abbrev)}};
  struct emu_dwarf *dwarf = emu_dwarf_create(&sections);
  assert_non_null(dwarf);
  assert_in_range(emu_dwarf_count(dwarf), 1000, ENTRIES / 8);
  emu_dwarf_release(dwarf);
}

/* Built with the library, the emulator is asked whether it knows the targets of the library's list: "gfx1100=0x41". */
static void test_targets_of_the_library(void **state) {
  for (char **row = *state; *row; row++) {
    char name[32];
    unsigned mach;
    assert_int_equal(sscanf(*row, "%31[^=]=%x", name, &mach), 2);
    if (!emu_mach_name(mach) || strcmp(emu_mach_name(mach), name))
      fail_msg("object/target.c says %s of 0x%x, src/device/targets.def says %s", emu_mach_name(mach) ?: "nothing",
               mach, name);
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  folder = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_code_objects),
      cmocka_unit_test(test_variables),
      cmocka_unit_test(test_bundles),
      cmocka_unit_test(test_zlib_and_later_headers),
      cmocka_unit_test(test_wrappers),
      cmocka_unit_test(test_damage),
      cmocka_unit_test(test_generic_targets),
      cmocka_unit_test(test_entries_of_many_attributes),
      cmocka_unit_test_prestate(test_targets_of_the_library, argv + 2),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
