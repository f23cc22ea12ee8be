/* Every pack that this build made against the manifest: each kernel is there under its name, takes an argument struct
 * of the size that the host fills, and has the work-group that the manifest promises; no code object spills registers.
 * The code objects are read by LLVM's tool, the PTX as text. Packs for all targets are small enough together. */
#include <stdio.h>
#include <unistd.h>

#include "base/testing.h"
#include "kernel/loader.h"
#include "kernel/manifest.h"

/* What is shipped, and the most that it may take up. */
enum { ALL_TARGETS = RDNA_TARGET_COUNT, MOST_BYTES = 25 * 1000 * 1000 };
static int packs;
static uint64_t bytes;

/* The number after |key| in the text before |end|, or -1. */
static long number_after(const char *text, const char *end, const char *key) {
  const char *at = strstr(text, key);
  return at && at < end ? strtol(at + strlen(key), NULL, 10) : -1;
}

static char *read_notes(const void *image, size_t size) {
  char path[] = "/tmp/rdna-manifest-XXXXXX", command[512];
  int file = mkstemp(path);
  assert_true(file >= 0 && write(file, image, size) == (ssize_t)size);
  close(file);
  snprintf(command, sizeof command, "%s --notes %s", TEST_READELF, path);
  FILE *pipe = popen(command, "r");
  char *text = NULL;
  size_t capacity = 0;
  assert_true(getdelim(&text, &capacity, 0, pipe) > 0);
  assert_int_equal(pclose(pipe), 0);
  unlink(path);
  return text;
}

/* One kernel's part of the metadata begins with "  - .agpr_count" or "  - .args" and ends where the next begins. */
static void check_code_object(const char *notes, const rdna__kernel_info *kernel, const char *target) {
  const char *begin = notes, *end;
  for (;;) {
    begin = strstr(begin, "\n  - ");
    if (!begin) {
      fail_msg("%s has no kernel %s", target, kernel->name);
      return;
    }
    end = strstr(begin + 1, "\n  - ");
    if (!end) end = begin + strlen(begin);
    const char *name = strstr(begin, ".symbol:");
    if (name && name < end) {
      name += strlen(".symbol:");
      name += strspn(name, " ");
      size_t length = strlen(kernel->name);
      if (!strncmp(name, kernel->name, length) && !strncmp(name + length, ".kd\n", 4)) break;
    }
    begin = end;
  }
  if (number_after(begin, end, ".kernarg_segment_size: ") != (long)kernel->args_size)
    fail_msg("%s, %s: %ld bytes of arguments, the host's struct has %u", target, kernel->name,
             number_after(begin, end, ".kernarg_segment_size: "), kernel->args_size);
  assert_int_equal(number_after(begin, end, ".max_flat_workgroup_size: "), kernel->group_threads);
}

/* Every kernel of the code object, those that the manifest does not know included. */
static void check_spills(const char *notes, const char *target) {
  const char *begin = strstr(notes, "\n  - "), *end;
  assert_non_null(begin);
  for (; *begin; begin = end) {
    end = strstr(begin + 1, "\n  - ");
    if (!end) end = begin + strlen(begin);
    const char *name = strstr(begin, ".symbol:");
    if (!name || name > end) continue; /* not a kernel's */
    name += strlen(".symbol:");
    name += strspn(name, " ");
    long scalar = number_after(begin, end, ".sgpr_spill_count: "),
         vector = number_after(begin, end, ".vgpr_spill_count: ");
    if (scalar || vector)
      fail_msg("%s: %.*s spills %ld scalar and %ld vector registers", target, (int)strcspn(name, "\n"), name, scalar,
               vector);
  }
}

static void check_ptx(const char *ptx, const rdna__kernel_info *kernel, const char *target) {
  char entry[160], wanted[200];
  snprintf(entry, sizeof entry, ".entry %s(", kernel->name);
  const char *begin = strstr(ptx, entry);
  if (!begin) fail_msg("%s has no kernel %s", target, kernel->name);
  const char *end = strchr(begin, '{');
  snprintf(wanted, sizeof wanted, "%s_param_0[", kernel->name);
  if (number_after(begin, end, wanted) != (long)kernel->args_size)
    fail_msg("%s, %s: %ld bytes of arguments, the host's struct has %u", target, kernel->name,
             number_after(begin, end, wanted), kernel->args_size);
  assert_int_equal(number_after(begin, end, ".maxntid "), kernel->group_threads);
}

/* Images for one capability alone. */
static void check_special(const rdna__pack *pack) {
  static const char suffix[] = ".sm_90a";
  for (int i = 0; i < rdna__pack_entry_count(pack); i++) {
    const rdna__pack_entry *entry = rdna__pack_entry_at(pack, i);
    const char *dot = strchr(entry->name, '.');
    if (!dot) continue;
    assert_string_equal(dot, suffix);
    void *image;
    size_t size;
    assert_ok(rdna__pack_extract(pack, entry, &image, &size));
    assert_non_null(strstr(image, ".target sm_90a"));
    if (!strstr(image, "wgmma.") && !strstr(image, "cp.async.bulk"))
      fail_msg("%s has nothing that only this capability has", entry->name);
    int kernels = 0;
    for (int k = 0; k < rdna__manifest_count; k++) {
      const char *family = rdna__manifest[k].family;
      if (strlen(family) != (size_t)(dot - entry->name) || strncmp(family, entry->name, strlen(family))) continue;
      check_ptx(image, &rdna__manifest[k], entry->name);
      kernels++;
    }
    assert_true(kernels > 0);
    free(image);
  }
}

static rdna_status check_pack(void *context, const char *path, const char *target) {
  rdna__pack *pack;
  assert_ok(rdna__pack_open(path, &pack));
  const char *family = "";
  void *image = NULL;
  char *notes = NULL;
  for (int i = 0; i < rdna__manifest_count; i++) {
    const rdna__kernel_info *kernel = &rdna__manifest[i];
    bool ptx = !strncmp(target, "sm_", 3);
    if (strcmp(family, kernel->family)) {
      free(image);
      free(notes);
      notes = NULL;
      family = kernel->family;
      const rdna__pack_entry *entry = rdna__pack_find(pack, family);
      size_t size;
      if (!entry) fail_msg("%s has no family %s", path, family);
      assert_int_equal(entry->format, ptx ? RDNA__PACK_PTX : RDNA__PACK_HSACO);
      assert_ok(rdna__pack_extract(pack, entry, &image, &size));
      if (!ptx) {
        notes = read_notes(image, size);
        check_spills(notes, target);
      }
    }
    if (ptx)
      check_ptx(image, kernel, target);
    else
      check_code_object(notes, kernel, target);
  }
  free(image);
  free(notes);
  check_special(pack);
  bytes += rdna__pack_size(pack);
  rdna__pack_close(pack);
  packs++;
  return RDNA_OK;
}

static void test_packs(void **state) {
  assert_ok(rdna__loader_visit(check_pack, NULL));
  assert_true(packs > 0);
  if (packs == ALL_TARGETS && bytes > MOST_BYTES)
    fail_msg("%d packs take up %llu bytes together", packs, (unsigned long long)bytes);
}

static void test_names(void **state) {
  for (int i = 0; i < rdna__manifest_count; i++) {
    assert_int_equal(rdna__manifest_find(rdna__manifest[i].name), i); /* no name twice */
    assert_non_null(rdna__host_twin(i));
    assert_non_null(rdna__host_twin_for("baseline", i));
  }
  assert_int_equal(rdna__manifest_find("no_such_kernel"), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_packs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
