// What compiling and linking at run time share.
#ifndef EMULATOR_HIP_RTC_H
#define EMULATOR_HIP_RTC_H

#include <stddef.h>

enum {
  RTC_SUCCESS,
  RTC_OUT_OF_MEMORY,
  RTC_PROGRAM_CREATION_FAILURE,
  RTC_INVALID_INPUT,
  RTC_INVALID_PROGRAM,
  RTC_INVALID_OPTION,
  RTC_COMPILATION,
  RTC_BUILTIN_OPERATION_FAILURE,
  RTC_NO_NAME_EXPRESSIONS_AFTER_COMPILATION,
  RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION,
  RTC_NAME_EXPRESSION_NOT_VALID,
  RTC_INTERNAL_ERROR,
  RTC_LINKING = 100
};

struct emu_rtc_input {
  void *data;  // bitcode
  size_t size;
};

// A code object for `arch` of pieces of bitcode, the caller's to free. NULL: `out_said` has the linker's words, the
// caller's to free too, or is NULL where there is no clang or no memory.
void *emu_rtc_link(const char *arch, const struct emu_rtc_input *inputs, int count, size_t *out_size, char **out_said);

#endif
