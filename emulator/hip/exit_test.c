// How a process ends whose kernels did something wrong: the test starts itself once for each case.
//   exit_test FOLDER     the folder holds what CMake builds from hip/probe.hip
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

int hipMalloc(void **, size_t);
int hipFree(void *);
int hipModuleLoad(void **, const char *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
int hipStreamCreate(void **);
int hipStreamDestroy(void *);
int hipDeviceSynchronize(void);

static const char *program, *folder;

// ---- the process that ends

// Modules stay loaded, since unloading them would wait.
static void *modules[8];
static int module_count;

static void *probe(const char *name) {
  char path[PATH_MAX];
  void *module = NULL, *f = NULL;
  snprintf(path, sizeof path, "%s/probe_gfx1100.hsaco", folder);
  if (hipModuleLoad(&module, path) != 0 || hipModuleGetFunction(&f, module, name) != 0) exit(99);
  modules[module_count++] = module;
  return f;
}

static bool is_there(const char *name) { return getenv(name) && access(getenv(name), F_OK) == 0; }

static void say_goodbye(void) { puts("goodbye"); }

// `work` is a letter each: w a wild access, u a value that nobody wrote, l lints, t a trap; S waits and drops the
// result, D destroys the stream, X ends with what waiting returns; F forks a child that ends at once, with 0 and no
// files, and G one that does the rest in its parent's place, which returns its status.
static int child(const char *work, int status) {
  void *out = NULL, *stream = NULL, *fresh = NULL;
  int n = 64;
  atexit(say_goodbye);
  if (hipMalloc(&out, 256) != 0 || hipMalloc(&fresh, 256) != 0 || hipStreamCreate(&stream) != 0) return 98;
  for (; *work; work++) {
    void *wild[] = {&out, &n}, *unwritten[] = {&fresh, &out};
    if (*work == 'w') (void)hipModuleLaunchKernel(probe("past_the_end"), 1, 1, 1, 1, 1, 1, 0, stream, wild, NULL);
    if (*work == 't') (void)hipModuleLaunchKernel(probe("trap"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    if (*work == 'u') (void)hipModuleLaunchKernel(probe("chooses"), 1, 1, 1, 1, 1, 1, 0, stream, unwritten, NULL);
    if (*work == 'l') (void)hipModuleLaunchKernel(probe("casts"), 1, 1, 1, 1, 1, 1, 0, stream, wild, NULL);
    if (*work == 'S') (void)hipDeviceSynchronize();
    if (*work == 'D') (void)hipStreamDestroy(stream);
    if (*work == 'X') return hipDeviceSynchronize() & 0xff;
    if (*work == 'F' || *work == 'G') {
      int result = 0;
      pid_t pid = fork();
      if (pid == 0 && !freopen("/dev/null", "w", stdout)) _exit(96);
      if (pid == 0 && *work == 'F') exit(0);
      if (pid == 0) continue;
      if (waitpid(pid, &result, 0) != pid || !WIFEXITED(result)) return 95;
      if (*work == 'G') return WEXITSTATUS(result);
      if (WEXITSTATUS(result) != 0 || is_there("RDNA_EMULATE_REPORT") || is_there("RDNA_EMULATE_COUNTERS")) return 94;
    }
  }
  return status;
}

// ---- the test

static char said[4096], printed[256];

static size_t read_all(int from, char *text, size_t room) {
  size_t at = 0;
  for (ssize_t n; (n = read(from, text + at, room - 1 - at)) > 0;) at += (size_t)n;
  text[at] = '\0';
  close(from);
  return at;
}

static int run(const char *work, const char *status, const char *check, const char *code) {
  int out[2], err[2], result = 0;
  assert_int_equal(pipe(out), 0);
  assert_int_equal(pipe(err), 0);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], 1);
    dup2(err[1], 2);
    close(out[0]);
    close(out[1]);
    close(err[0]);
    close(err[1]);
    setenv("RDNA_EMULATE", "gfx1100", 1);
    setenv("RDNA_EMULATE_CHECK", check, 1);
    if (code) setenv("RDNA_EMULATE_EXITCODE", code, 1);
    execl(program, program, folder, work, status, NULL);
    _exit(97);
  }
  close(out[1]);
  close(err[1]);
  read_all(err[0], said, sizeof said);
  read_all(out[0], printed, sizeof printed);
  assert_int_equal(waitpid(pid, &result, 0), pid);
  assert_true(WIFEXITED(result));
  assert_string_equal(printed, "goodbye\n");  // nothing that the program had to say is lost
  return WEXITSTATUS(result);
}

static const char *last_line(void) {
  size_t length = strlen(said);
  if (length && said[length - 1] == '\n') said[length - 1] = '\0';
  char *at = strrchr(said, '\n');
  return at ? at + 1 : said;
}

static void test_with_the_checker(void **state) {
  assert_int_equal(run("S", "0", "1", NULL), 0);
  assert_string_equal(said, "");
  assert_int_equal(run("uS", "0", "1", NULL), 66);
  assert_string_equal(last_line(),
                      "rdna emulator: the checker has 1 finding; the program ends with status 66 in place of 0");
  assert_int_equal(run("uwS", "0", "1", NULL), 66);
  assert_string_equal(last_line(),
                      "rdna emulator: the checker has 1 finding, 1 launch failed; the program ends with "
                      "status 66 in place of 0");
  assert_int_equal(run("uS", "3", "1", NULL), 3);  // it says itself that something is wrong
  assert_string_equal(last_line(), "rdna emulator: the checker has 1 finding");
  assert_int_equal(run("uS", "0", "1", "9"), 9);
  assert_int_equal(run("uS", "0", "1", "0"), 0);
  assert_string_equal(last_line(), "rdna emulator: the checker has 1 finding");
}

static void write_suppressions(char *path, const char *text) {
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
  close(file);
  assert_int_equal(setenv("RDNA_EMULATE_SUPPRESS", path, 1), 0);
}

static void test_findings_that_are_known(void **state) {
  enum { LAUNCH_FAILURE = 719 };
  static const char *const none[] = {"chooses\n", "choose? uninit*\n",
                                     "# known\n\n  other race\n*es\tuninitialized \n"};
  static const char *const all[] = {"", "chooses race\n", "choose *\n", "#chooses\n", "chooses uninitialised\n"};
  for (int i = 0; i < 3; i++) {
    char path[] = "/tmp/suppressions_XXXXXX";
    write_suppressions(path, none[i]);
    assert_int_equal(run("uX", "0", "1", NULL), 0);
    assert_string_equal(said, "");
    assert_int_equal(run("wX", "0", "1", NULL), 700 & 0xff);  // a launch that failed is no finding
    unlink(path);
  }
  for (int i = 0; i < 5; i++) {
    char path[] = "/tmp/suppressions_XXXXXX";
    write_suppressions(path, all[i]);
    assert_int_equal(run("uX", "0", "1", NULL), LAUNCH_FAILURE & 0xff);
    assert_string_equal(last_line(), "rdna emulator: the checker has 1 finding");
    unlink(path);
  }
  assert_int_equal(setenv("RDNA_EMULATE_SUPPRESS", "/no/such/file", 1), 0);
  assert_int_equal(run("uX", "0", "1", NULL), LAUNCH_FAILURE & 0xff);
  assert_non_null(strstr(said, "RDNA_EMULATE_SUPPRESS: /no/such/file cannot be read"));
  assert_int_equal(unsetenv("RDNA_EMULATE_SUPPRESS"), 0);
}

// Findings are told of, and the program goes on as if there were none.
static void test_reports_alone(void **state) {
  assert_int_equal(run("uX", "0", "report", NULL), 66);
  assert_non_null(strstr(said, "Kernel chooses"));
  assert_int_equal(run("uX", "0", "report", "0"), 0);
  assert_string_equal(last_line(), "rdna emulator: the checker has 1 finding");
  assert_int_equal(run("wX", "0", "report", NULL), 700 & 0xff);
}

static size_t size_of(const char *path) {
  char text[8192];
  int file = open(path, O_RDONLY);
  assert_true(file >= 0);
  return read_all(file, text, sizeof text);
}

// A fork's child tells of its own kernels alone: with files and status, of its parent's with neither.
static void test_forks(void **state) {
  char made[] = "/tmp/exit_test_XXXXXX", report[64], counters[64];
  assert_non_null(mkdtemp(made));
  snprintf(report, sizeof report, "%s/report.json", made);
  snprintf(counters, sizeof counters, "%s/counters.json", made);
  assert_int_equal(setenv("RDNA_EMULATE_REPORT", report, 1), 0);
  assert_int_equal(setenv("RDNA_EMULATE_COUNTERS", counters, 1), 0);
  const char *before = getenv("ASAN_OPTIONS");
  char options[256];  // a child has no threads but one: what others' stacks hold looks lost to the sanitizer
  snprintf(options, sizeof options, "%s:detect_leaks=0", before ? before : "");
  assert_int_equal(setenv("ASAN_OPTIONS", options, 1), 0);
  assert_int_equal(run("uSF", "0", "1", NULL), 66);
  assert_string_equal(last_line(),
                      "rdna emulator: the checker has 1 finding; the program ends with status 66 in place of 0");
  assert_null(strstr(strstr(said, "the checker has") + 1, "the checker has"));
  assert_true(size_of(report) > 200 && size_of(counters) > 200);
  assert_int_equal(unlink(report), 0);
  assert_int_equal(unlink(counters), 0);
  assert_int_equal(unsetenv("RDNA_EMULATE_REPORT"), 0);
  assert_int_equal(unsetenv("RDNA_EMULATE_COUNTERS"), 0);
  assert_int_equal(rmdir(made), 0);
  assert_int_equal(run("GuS", "0", "1", NULL), 66);
  assert_string_equal(last_line(),
                      "rdna emulator: the checker has 1 finding; the program ends with status 66 in place of 0");
  options[strlen(options) - strlen(":detect_leaks=0")] = '\0';
  assert_int_equal(before ? setenv("ASAN_OPTIONS", options, 1) : unsetenv("ASAN_OPTIONS"), 0);
}

// Lints are told of where they are asked for, and are no errors.
static void test_lints(void **state) {
  assert_int_equal(run("lX", "0", "1", NULL), 0);
  assert_string_equal(said, "");
  assert_int_equal(setenv("RDNA_EMULATE_LINT", "1", 1), 0);
  assert_int_equal(run("lX", "0", "1", NULL), 0);
  assert_non_null(strstr(said, "rdna emulator: lint: Kernel casts, "));
  assert_int_equal(run("lS", "0", "1", NULL), 0);
  assert_null(strstr(said, "the checker has"));
  assert_int_equal(run("lSuS", "0", "1", NULL), 66);
  assert_string_equal(last_line(),
                      "rdna emulator: the checker has 1 finding; the program ends with status 66 in place of 0");
  assert_int_equal(run("lX", "0", "0", NULL), 0);  // lints are the checker's
  assert_string_equal(said, "");
  assert_int_equal(unsetenv("RDNA_EMULATE_LINT"), 0);
}

static void test_without_the_checker(void **state) {
  assert_int_equal(run("uS", "0", "0", NULL), 0);
  assert_string_equal(said, "");
  assert_int_equal(run("wS", "0", "0", NULL), 0);  // a call returned it
  assert_int_equal(run("wSwS", "0", "0", "9"), 9);
  assert_string_equal(last_line(), "rdna emulator: 2 launches failed; the program ends with status 9 in place of 0");
  assert_int_equal(run("tSwD", "0", "0", NULL), 66);  // none returned the second
  assert_int_equal(run("wD", "0", "0", "0"), 0);
  assert_int_equal(run("wD", "4", "0", NULL), 4);
  assert_int_equal(run("S", "0", "0", "256"), 0);
  assert_non_null(strstr(said, "RDNA_EMULATE_EXITCODE='256' is not a number from 0 to 255"));
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  program = argv[0];
  folder = argv[1];
  if (argc == 4) return child(argv[2], atoi(argv[3]));
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_with_the_checker),
                                     cmocka_unit_test(test_findings_that_are_known),
                                     cmocka_unit_test(test_reports_alone),
                                     cmocka_unit_test(test_lints),
                                     cmocka_unit_test(test_forks),
                                     cmocka_unit_test(test_without_the_checker)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
