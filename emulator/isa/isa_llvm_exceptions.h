// Where the decoder differs from LLVM 19 on purpose.
#ifndef EMULATOR_ISA_ISA_LLVM_EXCEPTIONS_H
#define EMULATOR_ISA_ISA_LLVM_EXCEPTIONS_H

#include "isa/isa.h"

enum isa_exception {
  ISA_NO_EXCEPTION,
  ISA_GRAPHICS,         // image, export, interpolation: refused
  ISA_WRONG_REGISTER,   // a special or reserved code where a scalar register must stand: refused
  ISA_UNUSED_SOURCE,    // src1 or src2 of VOP3, or vsrc1 of a VOPD move, that the instruction lacks: ignored
  ISA_HALF_REGISTER,    // GFX11's `.h` halves in short encodings: decoded; LLVM 19 has them for v_mov_b16 only
  ISA_FLAT_OFFSET_TOP,  // top bit of a FLAT offset: ignored; LLVM prints it
  ISA_IGNORED_SIGN,     // sign bits of integer sources in 64-bit DPP: ignored; LLVM prints sext()
  ISA_MOVE_SIGN,        // sign bits of v_mov_b16: refused
  ISA_ILLEGAL,          // v_illegal, the word 0: refused
  ISA_BAR,              // |, |: LLVM 19 closes the bars of v_cndmask_b32_dpp behind its mask
  ISA_VERSION,          // s_version's operand, which LLVM spells as a sum of names
  ISA_SCALAR_STORE,     // GFX10.1's scalar stores, atomics and scratch, and what DS does to a second address: refused
  ISA_IMAGE_ZEROS,      // images on GFX12 with v0 for all of the address but its first register: LLVM prints that one
  ISA_IMAGE_END,        // images whose data or address ends past v255: refused; LLVM counts other registers there
  ISA_RARE_FORM,        // forms of gfx908 and later that no compiler writes: refused
  ISA_EXCEPTION_COUNT
};

// Why a difference is meant. `accepted`: LLVM decoded the words, to the text `theirs`.
enum isa_exception isa_find_exception(const struct emu_isa *target, const uint32_t *words,
                                      enum emu_decode_status status, const struct emu_inst *inst, const char *ours,
                                      bool accepted, const char *theirs);
// A short encoding that names a high half, or a long v_mov_b16: what LLVM 19 knows only when asked for halves.
bool isa_has_high_half(const struct emu_inst *inst);
const char *isa_exception_name(enum isa_exception exception);

#endif
