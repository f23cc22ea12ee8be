#include "device/driver/library.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing.h"

static int asked(void *handle) {
  assert_non_null(handle);
  int (*ask)(void) = (int (*)(void))dlsym(handle, "fake_llvm_asked");
  assert_non_null(ask);
  return ask();
}

/* Behind a process's own LLVM a library still calls what it came with. */
static void names_of_another_release(void **state) {
#ifdef __SANITIZE_ADDRESS__
  skip_because("the address sanitizer refuses libraries that are bound to their own names first");
#endif
  rdna__library library = {0};
  assert_non_null(dlopen(RDNA_FAKES "/llvm1/libllvm1.so", RTLD_NOW | RTLD_GLOBAL));
  assert_int_equal(asked(dlopen(RDNA_FAKES "/llvm2/libllvm2.so", RTLD_NOW | RTLD_LOCAL)), 1); /* what would be */
  assert_true(rdna__library_open(&library, RDNA_FAKES "/llvm3/libllvm3.so", false));
  assert_int_equal(asked(library.handle), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_of_another_release)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
