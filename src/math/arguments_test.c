/* Every public operator refuses arguments that its header excludes, with a sentence that names them and nothing
 * written, and takes those at the edge of what the header allows. Each has a row in F/F_arguments.h, which the build
 * finds: see common/test/arguments.h. */
#include "math/common/test/arguments.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "math/argument_rows.h"

static bool has_row(const char *op_name, size_t length) {
  for (const row *r = rows; r; r = r->next) {
    if (strlen(r->op_name) == length && strncmp(r->op_name, op_name, length) == 0) return true;
  }
  return false;
}

/* The declarations of one header of rdna/op. */
static int look_for_rows(const char *path) {
  static char text[65536];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t length = fread(text, 1, sizeof text - 1, file);
  assert_true(feof(file) && fclose(file) == 0);
  text[length] = 0;
  static const char declared[] = "rdna_status rdna_op_";
  int found = 0;
  for (const char *at = text; (at = strstr(at, declared)) != NULL; found++) {
    at += sizeof declared - 1;
    size_t name = strcspn(at, "(");
    if (!has_row(at, name)) {
      printf("rdna_op_%.*s of %s has no row in src/math/F/F_arguments.h: add one\n", (int)name, at, path);
      complaints++;
    }
  }
  return found;
}

static void test_every_operator_has_a_row(void **state) {
  complaints = 0;
  int found = 0;
  DIR *folder = opendir(TEST_HEADERS);
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char path[4096];
    if (!strstr(entry->d_name, ".h")) continue;
    snprintf(path, sizeof path, "%s/%s", TEST_HEADERS, entry->d_name);
    found += look_for_rows(path);
  }
  closedir(folder);
  assert_true(found > 100);
  assert_int_equal(complaints, 0);
}

/* A call that reads what it was not given ends the process: say which. */
static void tell_of_a_crash(int signal_number) {
  fflush(stdout);
  dprintf(1, "rdna_op_%s (%s): %s ends in signal %d\n", in_call->op_name, in_call->variant, what, signal_number);
  _exit(1);
}

static void test_arguments(void **state) {
  const char *only = getenv("RDNA_TEST_OPERATOR"); /* "gemm": its rows alone */
  complaints = 0;
  signal(SIGSEGV, tell_of_a_crash);
  signal(SIGFPE, tell_of_a_crash);
  set_sizes(0);
  for (const row *r = rows; r; r = r->next) {
    if (!only || strcmp(only, r->op_name) == 0) test_row(r);
  }
  printf("%ld calls\n", calls);
  assert_int_equal(complaints, 0);
}

int main(void) {
  unsetenv("RDNA_TEST_DEVICE"); /* checks are the same for every device, and the memory here is the host's */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operator_has_a_row),
      cmocka_unit_test(test_arguments),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
