/* Packs written by the real builder into folders of their own; the loader's choice, its sentences, and where it
 * looks when nobody names a folder. */
#include "kernel/loader.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/testing.h"
#include "kernel/testing_shell.h"

static char folder[64], self[4096];

/* A pack for |target| with code for |code_target| as the family "mixture". */
static void make_pack(const char *target, const char *code_target) {
  shell(
      "mkdir -p %s/kernels %s/work && cp %s/%s.hsaco %s/work/mixture.hsaco && %s %s/kernels/%s.rdnapack %s 3 "
      "%s/work/mixture.hsaco",
      folder, folder, TEST_CODE_FOLDER, code_target, folder, TEST_BUILDER, folder, target, target, folder);
}

static int setup(void **state) {
  strcpy(folder, "/tmp/rdna-loader-XXXXXX");
  assert_non_null(mkdtemp(folder));
  char kernels[80];
  snprintf(kernels, sizeof kernels, "%s/kernels", folder);
  return rdna__config_set(RDNA__CONFIG_KERNEL_PATH, kernels) == RDNA_OK ? 0 : -1;
}

static int teardown(void **state) {
  shell("rm -rf %s", folder);
  return 0;
}

static void expect_target(const char *arch, rdna__code_format format, const char *target, bool retargets) {
  rdna__loader *loader;
  if (rdna__loader_open(arch, format, &loader) != RDNA_OK) fail_msg("%s: %s", arch, rdna_last_error());
  assert_string_equal(rdna__pack_target(rdna__loader_pack(loader)), target);
  assert_int_equal(rdna__loader_retargets(loader), retargets);
  rdna__loader_close(loader);
}

static void expect_refusal(const char *arch, rdna_status status, const char *sentence) {
  rdna__loader *loader;
  assert_int_equal(rdna__loader_open(arch, RDNA__CODE_HSACO, &loader), status);
  assert_null(loader);
  if (!strstr(rdna_last_error(), sentence)) fail_msg("%s: '%s' lacks '%s'", arch, rdna_last_error(), sentence);
}

static void test_choice(void **state) {
  make_pack("gfx1100", "gfx1100");
  expect_target("gfx1100", RDNA__CODE_HSACO, "gfx1100", false);
  expect_target("gfx1103", RDNA__CODE_HSACO, "gfx1100", true);
  expect_target("gfx1151", RDNA__CODE_HSACO, "gfx1100", true);
  make_pack("gfx1150", "gfx1150");
  expect_target("gfx1151", RDNA__CODE_HSACO, "gfx1150", true);
  expect_target("gfx1150", RDNA__CODE_HSACO, "gfx1150", false);
  make_pack("gfx1200", "gfx1200");
  expect_target("gfx1201", RDNA__CODE_HSACO, "gfx1200", true);
  make_pack("gfx1201", "gfx1201");
  expect_target("gfx1201", RDNA__CODE_HSACO, "gfx1201", false);
  make_pack("gfx90a", "gfx900"); /* never read further than its header here */
  expect_target("gfx90a:sramecc+:xnack-", RDNA__CODE_HSACO, "gfx90a", false);
}

static void test_image(void **state) {
  make_pack("gfx1100", "gfx1100");
  rdna__loader *loader;
  uint8_t *exact, *relative;
  size_t size, relative_size;
  assert_ok(rdna__loader_open("gfx1100", RDNA__CODE_HSACO, &loader));
  assert_ok(rdna__loader_image(loader, "mixture", false, (void **)&exact, &size));
  void *none;
  assert_int_equal(rdna__loader_image(loader, "gemm", false, &none, &relative_size), RDNA_UNSUPPORTED);
  assert_null(none);
  assert_non_null(strstr(rdna_last_error(), "another build"));
  rdna__loader_close(loader);
  assert_ok(rdna__loader_open("gfx1102", RDNA__CODE_HSACO, &loader));
  assert_ok(rdna__loader_image(loader, "mixture", false, (void **)&relative, &relative_size));
  rdna__loader_close(loader);
  assert_int_equal(size, relative_size);
  int changed = 0; /* the machine in the header, one digit of the name */
  for (size_t i = 0; i < size; i++) changed += exact[i] != relative[i];
  assert_int_equal(changed, 2);
  assert_int_equal(relative[48], 0x47);
  free(exact);
  free(relative);
}

static void test_ptx(void **state) {
  shell(
      "cd %s && mkdir -p kernels && printf '.version 7.8\\n.target sm_80\\n' >fill.ptx && "
      "printf '.version 8.0\\n.target sm_90a\\n' >fill.sm_90a.ptx && %s kernels/sm_80.rdnapack sm_80 3 fill.ptx "
      "fill.sm_90a.ptx",
      folder, TEST_BUILDER);
  expect_target("sm_80", RDNA__CODE_PTX, "sm_80", false);
  expect_target("sm_90", RDNA__CODE_PTX, "sm_80", false);
  expect_target("sm_120", RDNA__CODE_PTX, "sm_80", false);
  expect_refusal("sm_75", RDNA_UNSUPPORTED, "none of these fits it");
  rdna__loader *loader;
  void *image;
  size_t size;
  assert_ok(rdna__loader_open("sm_90", RDNA__CODE_PTX, &loader));
  assert_ok(rdna__loader_image(loader, "fill", false, &image, &size));
  assert_string_equal(image, ".version 7.8\n.target sm_80\n");
  assert_int_equal(size, strlen(image) + 1);
  free(image);
  assert_ok(rdna__loader_image(loader, "fill", true, &image, &size));
  assert_string_equal(image, ".version 8.0\n.target sm_90a\n");
  free(image);
  uint64_t hash = rdna__loader_hash(loader, "fill");
  assert_true(hash != 0);
  assert_true(rdna__loader_hash(loader, "gemm") == 0);
  rdna__loader_close(loader);
  assert_ok(rdna__loader_open("sm_100", RDNA__CODE_PTX, &loader));
  assert_int_equal(rdna__loader_image(loader, "fill", true, &image, &size), RDNA_NOT_FOUND);
  uint64_t plain = rdna__loader_hash(loader, "fill");
  assert_true(plain != 0 && plain != hash); /* the special image is not this device's */
  rdna__loader_close(loader);
}

static void test_sentences(void **state) {
  expect_refusal("gfx1031", RDNA_UNSUPPORTED, "no pack was found; build with -DRDNA_TARGETS=gfx1030");
  make_pack("gfx1100", "gfx1100");
  make_pack("gfx1200", "gfx1200");
  expect_refusal("gfx1031", RDNA_UNSUPPORTED,
                 "the packs here are for gfx1100, gfx1200; build with "
                 "-DRDNA_TARGETS=gfx1030, or name a folder that holds gfx1030.rdnapack in RDNA_KERNEL_PATH");
  expect_refusal("gfx803", RDNA_UNSUPPORTED, "no kernels run on gfx803: this library builds for gfx900,");
  shell("cp %s/kernels/gfx1100.rdnapack %s/kernels/gfx1030.rdnapack", folder, folder);
  expect_refusal("gfx1030", RDNA_BAD_DATA, "gfx1030.rdnapack holds code for gfx1100");
  shell("head -c 100 %s/kernels/gfx1100.rdnapack >%s/kernels/gfx1010.rdnapack", folder, folder);
  expect_refusal("gfx1010", RDNA_BAD_DATA, "cut short");
}

/* Code for another target than the pack says is refused when it must be rewritten. */
static void test_lying_pack(void **state) {
  make_pack("gfx1030", "gfx1100");
  rdna__loader *loader;
  void *image;
  size_t size;
  assert_ok(rdna__loader_open("gfx1032", RDNA__CODE_HSACO, &loader));
  assert_int_equal(rdna__loader_image(loader, "mixture", false, &image, &size), RDNA_BAD_DATA);
  assert_null(image);
  rdna__loader_close(loader);
}

/* A copy of this program looks beside itself. */
static void test_beside_the_program(void **state) {
  char found[4096] = "", wanted[128], command[8192];
  make_pack("gfx1100", "gfx1100");
  shell("mkdir -p %s/bin %s/lib/rdna && cp %s %s/bin/program", folder, folder, self, folder);
  for (int place = 0; place < 2; place++) {
    if (place == 1) shell("mv %s/kernels %s/lib/rdna/kernels", folder, folder);
    snprintf(command, sizeof command, "env -u RDNA_KERNEL_PATH %s/bin/program --find gfx1100", folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(fgets(found, sizeof found, pipe));
    pclose(pipe);
    snprintf(wanted, sizeof wanted, "%s/bin/../%s/gfx1100.rdnapack\n", folder, place ? "lib/rdna/kernels" : "kernels");
    assert_string_equal(found, wanted);
  }
}

static rdna_status count_pack(void *context, const char *path, const char *target) {
  ++*(int *)context;
  return !strcmp(target, "gfx1150") ? rdna__fail(RDNA_CANCELLED, "enough") : RDNA_OK;
}

static void test_visit(void **state) {
  make_pack("gfx1200", "gfx1200");
  make_pack("gfx1100", "gfx1100");
  int count = 0;
  assert_ok(rdna__loader_visit(count_pack, &count));
  assert_int_equal(count, 2);
  make_pack("gfx1150", "gfx1150");
  count = 0;
  assert_int_equal(rdna__loader_visit(count_pack, &count), RDNA_CANCELLED);
  assert_int_equal(count, 2);
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--find")) {
    rdna__loader *loader;
    rdna_status status = rdna__loader_open(argv[2], RDNA__CODE_HSACO, &loader);
    puts(status == RDNA_OK ? rdna__pack_path(rdna__loader_pack(loader)) : rdna_last_error());
    rdna__loader_close(loader);
    return status != RDNA_OK;
  }
  if (!realpath("/proc/self/exe", self)) return 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_choice, setup, teardown),
      cmocka_unit_test_setup_teardown(test_image, setup, teardown),
      cmocka_unit_test_setup_teardown(test_ptx, setup, teardown),
      cmocka_unit_test_setup_teardown(test_sentences, setup, teardown),
      cmocka_unit_test_setup_teardown(test_lying_pack, setup, teardown),
      cmocka_unit_test_setup_teardown(test_beside_the_program, setup, teardown),
      cmocka_unit_test_setup_teardown(test_visit, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
