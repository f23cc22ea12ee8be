// V_DIV_SCALE, V_DIV_FMAS and V_DIV_FIXUP, in integers. Private to emulator/machine.
//
// AMD's pseudocode is not what the silicon does. Thresholds, scales and the rule for the scale of V_DIV_FMAS are facts
// that the rocjitsu project measured on gfx1100 and gfx1201 (ROCm/rocm-systems, issue 11613).
#ifndef EMULATOR_MACHINE_HARDWARE_DIVISION_H
#define EMULATOR_MACHINE_HARDWARE_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

struct emu_hw_format {
  int fraction, bias;    // fraction: its bits
  int threshold, scale;  // V_DIV_SCALE: exponents this far apart are scaled by two to this
};
extern const struct emu_hw_format emu__hw_half_format, emu__hw_single_format, emu__hw_double_format;

// `mode` is the format's share of MODE: round to nearest, up, down, to zero in bits 0 and 1; denormals kept in (4) and
// kept out (8).
enum { EMU_HW_KEEP_IN = 4, EMU_HW_KEEP_OUT = 8 };

// v is the numerator or the denominator. *after: V_DIV_FMAS has to scale too.
uint64_t emu__hw_div_scale(const struct emu_hw_format *f, uint64_t v, uint64_t denominator, uint64_t numerator,
                           unsigned mode, bool *after);
// a b + c, scaled if `after`, rounded once. Denormals always count in a, b and c.
uint64_t emu__hw_div_fmas(const struct emu_hw_format *f, uint64_t a, uint64_t b, uint64_t c, bool after, unsigned mode);
// The quotient's sign and its exceptions.
uint64_t emu__hw_div_fixup(const struct emu_hw_format *f, uint64_t quotient, uint64_t denominator, uint64_t numerator,
                           unsigned mode);

#endif
