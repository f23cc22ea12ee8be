// A prompt on standard input, for breakpoints without a GDB.
#ifndef EMULATOR_DEBUG_PROMPT_H
#define EMULATOR_DEBUG_PROMPT_H

#include "debug/session.h"

// One for the process. At the input's end the kernels go on and nothing stops any more.
void emu_prompt_front(struct emu_front *out);

#endif
