// What the printer's files share. Private to emulator/isa.
#ifndef EMULATOR_ISA_PRINT_H
#define EMULATOR_ISA_PRINT_H

#include "isa/isa_tables.h"

struct emu_text {
  char *at;
  size_t size, length;  // length counts what did not fit, too
  uint32_t literal;     // the instruction's
  const struct emu_isa *target;
};

void emu__print(struct emu_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emu__print_register(struct emu_text *text, const struct emu_operand *operand);
void emu__print_scalar_operands(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target);
void emu__print_memory_operands(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target);

#endif
