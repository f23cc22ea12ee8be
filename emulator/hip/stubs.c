// Calls that AMD's library has and the emulator has not, so that programs which are linked against them start: each
// says so by its name, once. Who asks whether there is such a function is told that there is none.
#include <stdatomic.h>
#include <string.h>

#include "hip/hip.h"

static void say_missing(const char *name, atomic_flag *said) {
  if (!atomic_flag_test_and_set(said)) emu_say("%s is not in the emulator", name);
}

#define STUB(name)                              \
  API int name(void);                           \
  API int name(void) {                          \
    static atomic_flag said = ATOMIC_FLAG_INIT; \
    say_missing(#name, &said);                  \
    return emu_done(HIP_NOT_SUPPORTED);         \
  }
#define STUB_POINTER(name)                      \
  API void *name(void);                         \
  API void *name(void) {                        \
    static atomic_flag said = ATOMIC_FLAG_INIT; \
    say_missing(#name, &said);                  \
    return NULL;                                \
  }
#include "hip/stubs.def"
#undef STUB
#undef STUB_POINTER

bool emu_is_stub(const char *name) {
  static const char *const names[] = {
#define STUB(name) #name,
#define STUB_POINTER(name) #name,
#include "hip/stubs.def"
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}
