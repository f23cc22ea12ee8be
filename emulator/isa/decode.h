// What the decoder's files share. Private to emulator/isa.
#ifndef EMULATOR_ISA_DECODE_H
#define EMULATOR_ISA_DECODE_H

#include "isa/isa_tables.h"

// The state of decoding one instruction.
struct emu_decoder {
  const struct emu_isa *target;
  unsigned wave;
  const uint32_t *words;
  size_t count;  // words that may be read
  size_t used;   // words that belong to the instruction so far
  uint32_t word[3];
  bool has_literal;
  uint32_t literal;
  struct emu_inst *inst;
};

// The next word of the instruction; TRUNCATED at the end of the code.
enum emu_decode_status emu__decode_word(struct emu_decoder *d, uint32_t *out);

// A source from its 8-bit scalar code, or from the 9-bit code that adds vectors at 256.
enum emu_decode_status emu__decode_source(struct emu_decoder *d, unsigned code, enum emu_type type,
                                          struct emu_operand *out);
// A scalar destination from its 7-bit code.
enum emu_decode_status emu__decode_scalar(struct emu_decoder *d, unsigned code, enum emu_type type,
                                          struct emu_operand *out);
enum emu_decode_status emu__decode_vector(struct emu_decoder *d, unsigned reg, enum emu_type type,
                                          struct emu_operand *out);
void emu__decode_implied(struct emu_decoder *d, unsigned reg, struct emu_operand *out);  // VCC or EXEC as a mask

enum emu_decode_status emu__decode_vop(struct emu_decoder *d, enum emu_format format);
enum emu_decode_status emu__decode_vop3(struct emu_decoder *d);
enum emu_decode_status emu__decode_vop3p(struct emu_decoder *d);
enum emu_decode_status emu__decode_vopd(struct emu_decoder *d);
enum emu_decode_status emu__decode_memory(struct emu_decoder *d, enum emu_format format);
enum emu_decode_status emu__decode_image(struct emu_decoder *d);

// A field of the encoding, whichever of its words holds it.
static inline uint32_t emu__decode_field(const struct emu_decoder *d, struct emu_field f) {
  return emu__bits(d->word[f.low / 32], f.low % 32, f.bits);
}

#define EMU_DECODE_TRY(expression)                 \
  do {                                             \
    enum emu_decode_status status_ = (expression); \
    if (status_ != EMU_DECODE_OK) return status_;  \
  } while (0)

#endif
