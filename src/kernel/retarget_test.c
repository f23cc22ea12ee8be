/* Code compiled for one member of a family, retargeted to each of the others: LLVM's own tools must then name the
 * other member and disassemble the same instructions. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "device/targets.h"
#include "kernel/loader.h"

/* Writes the next of the targets whose code |gpu| runs, and returns what follows it; NULL when there is no more. */
static const char *next_relative(const char *runs, char relative[32]) {
  size_t length = strcspn(runs, " ");
  if (!length) return NULL;
  snprintf(relative, 32, "%.*s", (int)length, runs);
  return runs + length + strspn(runs + length, " ");
}

static char *read_stream(FILE *file, size_t *out_size) {
  char *data = NULL;
  size_t size = 0;
  for (;;) {
    data = realloc(data, size + 65537);
    size_t got = fread(data + size, 1, 65536, file);
    size += got;
    if (!got) break;
  }
  data[size] = 0;
  *out_size = size;
  return data;
}

static char *read_code(const char *target, size_t *out_size) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s.hsaco", TEST_CODE_FOLDER, target);
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is missing: build the target retarget_test_code", path);
  char *code = read_stream(file, out_size);
  fclose(file);
  return code;
}

static char *run_tool(const char *tool, const char *options, const void *code, size_t size) {
  char path[] = "/tmp/rdna-retarget-XXXXXX", command[2048];
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  assert_int_equal(write(descriptor, code, size), size);
  close(descriptor);
  snprintf(command, sizeof command, "%s %s - <%s 2>&1 | sed 's/^.*file format.*$//'", tool, options, path);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  size_t length;
  char *text = read_stream(pipe, &length);
  pclose(pipe);
  unlink(path);
  return text;
}

static void check_pair(const char *from, const char *to) {
  bool known = strcmp(to, "gfx1153") != 0; /* LLVM 19 does not: no instructions, and a number without a name */
  size_t size;
  char *code = read_code(from, &size), wanted[64];
  char *before = run_tool(TEST_OBJDUMP, "-d", code, size);
  assert_ok(rdna__retarget(code, size, from, to));
  if (known) {
    char *after = run_tool(TEST_OBJDUMP, "-d", code, size);
    assert_true(strlen(before) > 5000);
    assert_non_null(strstr(before, "<mixture>:"));
    assert_null(strstr(after, "<unknown>"));
    if (strcmp(before, after)) fail_msg("%s as %s disassembles differently", from, to);
    free(after);
  }
  char *notes = run_tool(TEST_READELF, "-h --notes", code, size);
  snprintf(wanted, sizeof wanted, "amdgcn-amd-amdhsa--%s\n", to);
  if (!strstr(notes, wanted)) fail_msg("%s as %s: the metadata does not say %s", from, to, wanted);
  snprintf(wanted, sizeof wanted, known ? ", %s" : " 0x58\n", to); /* "Flags: 0x46, gfx1101" */
  if (!strstr(notes, wanted)) fail_msg("%s as %s: the flags do not say %s", from, to, wanted);
  free(notes);
  free(before);
  free(code);
}

static void test_relatives(void **state) {
  char from[32];
  int pairs = 0;
  for (int i = 0; i < rdna__target_count; i++)
    for (const char *runs = rdna__targets[i].runs; (runs = next_relative(runs, from)); pairs++)
      check_pair(from, rdna__targets[i].name);
  assert_true(pairs >= 24);
}

static void test_fitness(void **state) {
  assert_true(rdna__target_fitness("gfx900", "gfx90c") > 0);
  assert_true(rdna__target_fitness("gfx1030", "gfx1036") > 0);
  assert_true(rdna__target_fitness("gfx1200", "gfx1201") > 0);
  assert_true(rdna__target_fitness("gfx1100", "gfx1153") > 0);
  assert_true(rdna__target_fitness("gfx1150", "gfx1151") > rdna__target_fitness("gfx1100", "gfx1151"));
  assert_true(rdna__target_fitness("gfx1151", "gfx1151") > rdna__target_fitness("gfx1150", "gfx1151"));
  assert_true(rdna__target_fitness("sm_80", "sm_90") > 0);
  assert_true(rdna__target_fitness("sm_90", "sm_90") > rdna__target_fitness("sm_80", "sm_90"));
  assert_true(rdna__target_fitness("sm_80", "sm_121") > 0);
  assert_string_equal(rdna__target_for("gfx1103"), "gfx1100");
  assert_string_equal(rdna__target_for("gfx1151"), "gfx1150");
  assert_string_equal(rdna__target_for("gfx1201"), "gfx1200");
  assert_string_equal(rdna__target_for("sm_90"), "sm_80");
  assert_null(rdna__target_for("gfx803"));
  assert_null(rdna__target_for("x86-64-v4"));
  static const char *const strangers[][2] = {{"gfx900", "gfx906"},   {"gfx906", "gfx900"},   {"gfx908", "gfx90a"},
                                             {"gfx1010", "gfx1030"}, {"gfx1031", "gfx1032"}, {"gfx1150", "gfx1100"},
                                             {"gfx1100", "gfx1200"}, {"gfx1100", "gfx110"},  {"gfx1030", "gfx103"},
                                             {"gfx1100", ""},        {"sm_80", "sm_75"},     {"sm_90a", "sm_90"},
                                             {"sm_80", "gfx1100"},   {"gfx1100", "sm_80"},   {"gfx942", "gfx950"}};
  for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++)
    assert_int_equal(rdna__target_fitness(strangers[i][0], strangers[i][1]), 0);
}

static void test_refusals(void **state) {
  size_t size;
  char *code = read_code("gfx1100", &size), *copy = malloc(size);
  memcpy(copy, code, size);
  assert_int_equal(rdna__retarget(copy, size, "gfx1100", "gfx1200"), RDNA_UNSUPPORTED);
  assert_int_equal(rdna__retarget(copy, size, "gfx1030", "gfx1031"), RDNA_BAD_DATA); /* it is for gfx1100 */
  assert_memory_equal(copy, code, size);
  copy[18] ^= 1; /* e_machine */
  assert_int_equal(rdna__retarget(copy, size, "gfx1100", "gfx1101"), RDNA_BAD_DATA);
  copy[18] ^= 1;
  char *name = memmem(copy, size, "amdhsa--gfx1100", 15);
  assert_non_null(name);
  name[14] = '1';
  assert_int_equal(rdna__retarget(copy, size, "gfx1100", "gfx1101"), RDNA_BAD_DATA);
  free(copy);
  free(code);
}

/* Cut at every length, and with every byte of the headers and notes spoilt: never read outside (sanitizers watch),
 * and success only for a code object that then names the new target. */
static void test_damage(void **state) {
  size_t size;
  char *code = read_code("gfx1100", &size);
  for (size_t cut = 0; cut < size; cut += cut < 1024 ? 1 : 97) {
    char *copy = malloc(cut ? cut : 1);
    memcpy(copy, code, cut);
    if (rdna__retarget(copy, cut, "gfx1100", "gfx1101") == RDNA_OK) assert_int_equal((uint8_t)copy[48], 0x46);
    free(copy);
  }
  for (size_t at = 0; at < 4096 && at < size; at++) {
    for (int value = 0; value < 4; value++) {
      char *copy = malloc(size);
      memcpy(copy, code, size);
      copy[at] = (char[]){0, 0x7f, (char)0xff, (char)0x80}[value];
      if (rdna__retarget(copy, size, "gfx1100", "gfx1101") == RDNA_OK) assert_int_equal((uint8_t)copy[48], 0x46);
      free(copy);
    }
  }
  free(code);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_relatives),
      cmocka_unit_test(test_fitness),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_damage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
