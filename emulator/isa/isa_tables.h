// The rows of ops_*.def as C data. Private to the decoder and the printer.
#ifndef EMULATOR_ISA_ISA_TABLES_H
#define EMULATOR_ISA_ISA_TABLES_H

#include "isa/isa.h"

enum emu_op_flag {
  EMU_FLAG_MODS1 = 1 << 0,    // neg and abs on src0
  EMU_FLAG_MODS2 = 1 << 1,    // … on src0 and src1
  EMU_FLAG_MODS3 = 1 << 2,    // … on all three
  EMU_FLAG_CLAMP = 1 << 3,    // VOP3: clamp
  EMU_FLAG_OMOD = 1 << 4,     // VOP3: output multiplier
  EMU_FLAG_OPSEL = 1 << 5,    // VOP3: op_sel chooses halves
  EMU_FLAG_DPP = 1 << 6,      // has a DPP form (VOPC: from GFX11 on)
  EMU_FLAG_DPP64 = 1 << 7,    // has a 64-bit DPP form, from GFX11 on
  EMU_FLAG_SDWA = 1 << 8,     // has an SDWA form, up to GFX10
  EMU_FLAG_NO64 = 1 << 9,     // VOP1, VOP2: no 64-bit form, so the mnemonic has no _e32 either
  EMU_FLAG_SDST = 1 << 10,    // writes a carry or scale mask beside the vector
  EMU_FLAG_ATOMIC = 1 << 11,  // dst is written only with glc
  EMU_FLAG_PAIR = 1 << 12,    // DS: two 8-bit offsets in place of one of 16
  EMU_FLAG_GDS = 1 << 13,     // DS: gds must be set
  EMU_FLAG_NOGDS = 1 << 14,   // DS: gds must not be set
  EMU_FLAG_LDS = 1 << 15,     // GFX10: the load may go to LDS instead of registers
};

// How one target encodes an opcode.
struct emu_op_code {
  uint8_t format;
  bool present;
  uint16_t code;
  const char *alias;  // NULL: the canonical name in lower case
};

// A row of ops_*.def: the opcode, and its encoding on each target.
struct emu_op_row {
  const char *name;  // upper case
  uint8_t type[4];   // enum emu_type of dst, src0, src1, src2
  uint16_t flags;
  struct emu_op_code on[EMU_TARGET_COUNT];
};

extern const struct emu_op_row emu__op_rows[EMU_OP_COUNT];

// A SOPP instruction without an operand: its immediate is 0 and is not printed.
bool emu__sopp_is_bare(unsigned op);

// The opcode behind a code of the format's own field; EMU_OP_NONE if the target has none. VOP3: the full 10 bits,
// with *base set to the VOPC, VOP1 or VOP2 that this is the 64-bit form of, else to EMU_VOP3.
enum emu_op emu__op_find(enum emu_target target, enum emu_format format, unsigned code, enum emu_format *base);

unsigned emu__type_dwords(enum emu_type type, unsigned wave);

// The value of the inline constants 240..248 in an operand of the type.
uint64_t emu__inline_float(unsigned code, enum emu_type type);

// GFX11's 16-bit operands name half registers; a type whose values are single 16-bit numbers.
static inline bool emu__type_is_half(enum emu_type type) {
  return type == EMU_B16 || type == EMU_I16 || type == EMU_U16 || type == EMU_F16 || type == EMU_BF16;
}

#endif
