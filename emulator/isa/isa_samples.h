// Random machine words for the decoder's tests: uniform ones, and ones biased towards instructions.
#ifndef EMULATOR_ISA_ISA_SAMPLES_H
#define EMULATOR_ISA_ISA_SAMPLES_H

#include "isa/isa.h"

enum { SAMPLE_WORDS = 5 };  // as long as the longest encoding of GFX10 and GFX11

// Fills words from the generator's state, which it advances. One sample in eight is uniform.
void isa_sample(const struct emu_isa *target, uint64_t *state, uint32_t words[SAMPLE_WORDS]);

#endif
