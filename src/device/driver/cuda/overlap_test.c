#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver/cuda/overlap.h"

#define MARK "\n.visible .global .align 4 .u32 rdna_kernels_wait = 1;\n"
#define WAIT "\n\tgriddepcontrol.wait;"

static void becomes(const char *ptx, const char *want) {
  char *got = NULL;
  assert_int_equal(rdna__ptx_with_waits(ptx, &got), RDNA_OK);
  if (want == NULL) {
    assert_null(got);
  } else {
    assert_non_null(got);
    assert_string_equal(got, want);
  }
  free(got);
}

static void every_kernel_waits(void **state) {
  becomes(
      ".version 7.8\n.target sm_80\n.address_size 64\n"
      ".visible .entry one(\n .param .align 8 .b8 one_param_0[24]\n)\n.maxntid 256, 1, 1\n{\n .reg .b32 %r<2>;\n "
      "ret;\n}\n"
      ".entry two(){ { .reg .b32 x; } ret; }\n",
      ".version 7.8\n.target sm_90\n.address_size 64\n"
      ".visible .entry one(\n .param .align 8 .b8 one_param_0[24]\n)\n.maxntid 256, 1, 1\n{" WAIT
      "\n .reg .b32 %r<2>;\n ret;\n}\n"
      ".entry two(){" WAIT " { .reg .b32 x; } ret; }\n" MARK);
}

static void what_is_no_kernel_stays(void **state) {
  /* functions, declarations, comments, strings */
  becomes(
      ".version 8.3 .target sm_89, debug // .entry x() {\n/* .entry y() { */\n.func f() { ret; }\n.entry a();\n"
      ".global .u32 v[2] = {1, 2};\n.entry a() .pragma \"{ .entry\"; { ret; }",
      ".version 8.3 .target sm_90, debug // .entry x() {\n/* .entry y() { */\n.func f() { ret; }\n.entry a();\n"
      ".global .u32 v[2] = {1, 2};\n.entry a() .pragma \"{ .entry\"; {" WAIT " ret; }" MARK);
}

static void later_targets_stay(void **state) {
  becomes(".version 8.0\n.target sm_90a\n.entry a(){}", ".version 8.0\n.target sm_90a\n.entry a(){" WAIT "}" MARK);
  becomes(".version 8.7 .target sm_120 .entry a(){}", ".version 8.7 .target sm_120 .entry a(){" WAIT "}" MARK);
}

static void what_cannot_wait_is_left_alone(void **state) {
  becomes("", NULL);
  becomes("\177ELF\2\1\1", NULL);
  becomes("nonsense", NULL);
  becomes(".version 7.7\n.target sm_80\n.entry a(){}", NULL);
  becomes(".version 7\n.target sm_80\n.entry a(){}", NULL);
  becomes(".target sm_80\n.entry a(){}", NULL);
  becomes(".version 7.8\n.entry a(){}", NULL);
  becomes(".version 7.8\n.target compute_80\n.entry a(){}", NULL);
  becomes(".version 7.8\n.target sm_80\n.func f(){}", NULL);
  becomes(".version 7.8\n.target sm_80\n.entry a();", NULL);
  becomes(".version 7.8\n.target sm_80\n// .entry a(){}", NULL);
  becomes(".version 7.8\n.target sm_80\n.entry a()/* {", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kernel_waits),
      cmocka_unit_test(what_is_no_kernel_stays),
      cmocka_unit_test(later_targets_stay),
      cmocka_unit_test(what_cannot_wait_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
