// Calls that AMD's library has and the emulator has not: each says so by its name, once.
#include <stdatomic.h>

#include "hip/hip.h"

static void say_missing(const char *name, atomic_flag *said) {
  if (!atomic_flag_test_and_set(said)) emu_say("%s is not in the emulator", name);
}

enum { HIPRTC_INTERNAL_ERROR = 11 };

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
#define STUB_RTC(name)                          \
  API int name(void);                           \
  API int name(void) {                          \
    static atomic_flag said = ATOMIC_FLAG_INIT; \
    say_missing(#name, &said);                  \
    return HIPRTC_INTERNAL_ERROR;               \
  }
#include "hip/stubs.def"

API const char *hiprtcGetErrorString(int code) {
  return code ? "run-time compilation is not in the emulator" : "no error";
}
