// Finds the encoding of a word, and decodes the scalar formats; the others are in decode_vector.c and
// decode_memory.c.
#include "isa/decode.h"

#include <string.h>

enum emu_decode_status emu__decode_word(struct emu_decoder *d, uint32_t *out) {
  if (d->used >= d->count) return EMU_DECODE_TRUNCATED;
  *out = d->words[d->used++];
  return EMU_DECODE_OK;
}

static enum emu_decode_status take_literal(struct emu_decoder *d) {
  unsigned format = d->inst->format;
  bool is_long = format == EMU_VOP3 || format == EMU_VOP3P || format == EMU_MUBUF || format == EMU_MTBUF;
  if (is_long && !d->target->encoding->literal_long) return EMU_DECODE_OPERAND;
  if (d->has_literal) return EMU_DECODE_OK;  // every literal operand of an instruction is the same word
  d->has_literal = true;
  EMU_DECODE_TRY(emu__decode_word(d, &d->literal));
  d->inst->literal = d->literal;
  return EMU_DECODE_OK;
}

// The inline floats 240..248 in three widths: 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2 pi).
static const uint16_t inline_f16[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
static const uint32_t inline_f32[9] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                       0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
static const uint64_t inline_f64[9] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                       0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                       0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

uint64_t emu__inline_float(unsigned code, enum emu_type type) {
  unsigned i = code - 240;
  switch (type) {
    case EMU_F16:
    case EMU_I16:
    case EMU_U16:
    case EMU_B16:
    case EMU_PKF16:
      return inline_f16[i];
    case EMU_BF16:
    case EMU_PKBF16:
      return inline_f32[i] >> 16;
    case EMU_B64:
    case EMU_I64:
    case EMU_U64:
    case EMU_F64:
      return inline_f64[i];
    default:
      return inline_f32[i];
  }
}

static uint64_t inline_value(unsigned code, enum emu_type type) {
  if (code > 208) return emu__inline_float(code, type);
  int64_t number = code <= 192 ? (int64_t)code - 128 : 192 - (int64_t)code;
  if (emu__type_is_half(type)) return (uint16_t)number;
  return emu__type_dwords(type, 32) == 1 ? (uint32_t)number : (uint64_t)number;
}

static uint64_t literal_value(uint32_t literal, enum emu_type type) {
  switch (type) {
    case EMU_F64:
      return (uint64_t)literal << 32;
    case EMU_I64:
      return (uint64_t)(int64_t)(int32_t)literal;
    default:
      return emu__type_is_half(type) ? literal & 0xffff : literal;
  }
}

static unsigned register_alignment(unsigned dwords) { return dwords > 2 ? 4 : dwords == 2 ? 2 : 1; }

enum emu_decode_status emu__decode_scalar(struct emu_decoder *d, unsigned code, enum emu_type type,
                                          struct emu_operand *out) {
  unsigned dwords = emu__type_dwords(type, d->wave);
  bool swapped = d->target->encoding->m0_before_null;
  if (swapped && (code == EMU_NULL || code == EMU_M0)) code ^= EMU_NULL ^ EMU_M0;
  *out = (struct emu_operand){
      .kind = EMU_OPERAND_SCALAR, .type = (uint8_t)type, .dwords = (uint8_t)dwords, .reg = (uint16_t)code};
  if (code == EMU_NULL) return d->target->encoding->no_null ? EMU_DECODE_OPERAND : EMU_DECODE_OK;
  if (code == EMU_M0) return dwords == 1 ? EMU_DECODE_OK : EMU_DECODE_OPERAND;
  unsigned over = code % register_alignment(dwords);
  unsigned last = d->target->scratch_in_sgprs ? EMU_FLAT_SCRATCH_LO : EMU_VCC_LO;
  bool numbered = code < last || (code >= EMU_TTMP0 && code < EMU_NULL);
  if (over && !numbered) return EMU_DECODE_OPERAND;
  if (dwords == 3 && code >= EMU_VCC_LO) return EMU_DECODE_OPERAND;
  if (over) d->inst->misaligned = true;
  code -= over;
  out->reg = (uint16_t)code;
  unsigned end = code + dwords;
  if (code < EMU_VCC_LO && end > last) return code >= last && dwords <= 2 ? EMU_DECODE_OK : EMU_DECODE_OPERAND;
  bool within = code < EMU_VCC_LO  ? end <= EMU_VCC_LO
                : code < EMU_TTMP0 ? end <= EMU_TTMP0
                : code < EMU_NULL  ? end <= EMU_NULL
                                   : end <= EMU_SCALAR_COUNT;
  return within ? EMU_DECODE_OK : EMU_DECODE_OPERAND;
}

enum emu_decode_status emu__decode_vector(struct emu_decoder *d, unsigned reg, enum emu_type type,
                                          struct emu_operand *out) {
  unsigned dwords = emu__type_dwords(type, d->wave);
  *out = (struct emu_operand){
      .kind = EMU_OPERAND_VECTOR, .type = (uint8_t)type, .dwords = (uint8_t)dwords, .reg = (uint16_t)reg};
  return reg % EMU_ACCUMULATOR + dwords <= EMU_ACCUMULATOR ? EMU_DECODE_OK : EMU_DECODE_OPERAND;
}

void emu__decode_implied(struct emu_decoder *d, unsigned reg, struct emu_operand *out) {
  *out = (struct emu_operand){
      .kind = EMU_OPERAND_SCALAR, .type = EMU_MASK, .dwords = (uint8_t)(d->wave / 32), .reg = (uint16_t)reg};
}

enum emu_decode_status emu__decode_source(struct emu_decoder *d, unsigned code, enum emu_type type,
                                          struct emu_operand *out) {
  if (code >= 256) return emu__decode_vector(d, code - 256, type, out);
  if (code < 128) return emu__decode_scalar(d, code, type, out);
  *out = (struct emu_operand){
      .type = (uint8_t)type, .dwords = (uint8_t)emu__type_dwords(type, d->wave), .reg = (uint16_t)code};
  if (code <= 208 || (code >= 240 && code <= 248)) {
    out->kind = EMU_OPERAND_CONSTANT;
    out->value = inline_value(code, type);
    return EMU_DECODE_OK;
  }
  if (code == 255) {
    out->kind = EMU_OPERAND_CONSTANT;
    out->literal = true;
    EMU_DECODE_TRY(take_literal(d));
    out->value = literal_value(d->literal, type);
    return EMU_DECODE_OK;
  }
  out->kind = EMU_OPERAND_SPECIAL;
  bool vector = d->inst->format >= EMU_VOP1 && d->inst->format <= EMU_VOP3P;
  bool known = (code >= EMU_SHARED_BASE && code <= EMU_POPS_EXITING_WAVE_ID) || (code >= EMU_VCCZ && code <= EMU_SCC) ||
               (code == EMU_LDS_DIRECT && d->target->encoding->lds_direct && vector && out->dwords == 1);
  return known ? EMU_DECODE_OK : EMU_DECODE_OPERAND;
}

// SOP1, SOP2, SOPC: the row says which operands there are.
static enum emu_decode_status decode_sop(struct emu_decoder *d, enum emu_format format) {
  uint32_t w = d->word[0];
  struct emu_inst *inst = d->inst;
  enum emu_format base;
  unsigned code = format == EMU_SOP1   ? emu__bits(w, 8, 8)
                  : format == EMU_SOP2 ? emu__bits(w, 23, 7)
                                       : emu__bits(w, 16, 7);
  inst->op = (uint16_t)emu__op_find(d->target, format, code, &base);
  if (!inst->op) return EMU_DECODE_OPCODE;
  const uint8_t *type = emu__op_rows[inst->op].type;
  if (type[0]) EMU_DECODE_TRY(emu__decode_scalar(d, emu__bits(w, 16, 7), type[0], &inst->dst));
  if (inst->op == EMU_S_SENDMSG_RTN_B32 || inst->op == EMU_S_SENDMSG_RTN_B64) {
    inst->imm = (int32_t)emu__bits(w, 0, 8);
    return EMU_DECODE_OK;
  }
  if (type[1]) EMU_DECODE_TRY(emu__decode_source(d, emu__bits(w, 0, 8), type[1], &inst->src[0]));
  switch (inst->op) {
    case EMU_S_CBRANCH_JOIN:
    case EMU_S_MOVRELS_B32:
    case EMU_S_MOVRELS_B64:
    case EMU_S_RFE_B64:
    case EMU_S_SETPC_B64:
      if (inst->src[0].kind != EMU_OPERAND_SCALAR) return EMU_DECODE_OPERAND;
      break;
    default:
      break;
  }
  if (inst->op == EMU_S_SET_GPR_IDX_ON) inst->imm = (int32_t)emu__bits(w, 8, 8);
  if (!type[2]) return EMU_DECODE_OK;
  int next = 1;
  if (inst->op == EMU_S_FMAMK_F32) EMU_DECODE_TRY(emu__decode_source(d, 255, type[2], &inst->src[next++]));
  EMU_DECODE_TRY(emu__decode_source(d, emu__bits(w, 8, 8), type[2], &inst->src[next]));
  return inst->op == EMU_S_FMAAK_F32 ? emu__decode_source(d, 255, type[2], &inst->src[2]) : EMU_DECODE_OK;
}

static enum emu_decode_status decode_sopk(struct emu_decoder *d) {
  uint32_t w = d->word[0];
  struct emu_inst *inst = d->inst;
  enum emu_format base;
  inst->op = (uint16_t)emu__op_find(d->target, EMU_SOPK, emu__bits(w, 23, 5), &base);
  if (!inst->op) return EMU_DECODE_OPCODE;
  inst->imm = (int16_t)emu__bits(w, 0, 16);
  const uint8_t *type = emu__op_rows[inst->op].type;
  if (inst->op == EMU_S_SETREG_IMM32_B32) return emu__decode_source(d, 255, EMU_B32, &inst->src[0]);
  if (type[0]) EMU_DECODE_TRY(emu__decode_scalar(d, emu__bits(w, 16, 7), type[0], &inst->dst));
  if (type[1]) EMU_DECODE_TRY(emu__decode_scalar(d, emu__bits(w, 16, 7), type[1], &inst->src[0]));
  return EMU_DECODE_OK;
}

static enum emu_decode_status decode_sopp(struct emu_decoder *d) {
  enum emu_format base;
  d->inst->op = (uint16_t)emu__op_find(d->target, EMU_SOPP, emu__bits(d->word[0], 16, 7), &base);
  d->inst->imm = (int16_t)emu__bits(d->word[0], 0, 16);
  if (d->inst->op == EMU_OP_NONE) return EMU_DECODE_OPCODE;
  return emu__sopp_is_bare(d->inst->op) && d->inst->imm ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
}

static enum emu_format find_format(const struct emu_isa *target, uint32_t w) {
  if (!(w >> 31)) return w >> 25 == 0x3f ? EMU_VOP1 : w >> 25 == 0x3e ? EMU_VOPC : EMU_VOP2;
  if (w >> 30 == 2) {
    if (w >> 23 == 0x17d) return EMU_SOP1;
    if (w >> 23 == 0x17e) return EMU_SOPC;
    if (w >> 23 == 0x17f) return EMU_SOPP;
    return w >> 28 == 0xb ? EMU_SOPK : EMU_SOP2;
  }
  if (target->encoding->vop3p_in_vop3 && w >> 23 == 0x1a7) return EMU_VOP3P;
  return (enum emu_format)target->encoding->format[emu__bits(w, 24, 6)];
}

static enum emu_decode_status decode_format(struct emu_decoder *d, enum emu_format format) {
  switch (format) {
    case EMU_SOP1:
    case EMU_SOP2:
    case EMU_SOPC:
      return decode_sop(d, format);
    case EMU_SOPK:
      return decode_sopk(d);
    case EMU_SOPP:
      return decode_sopp(d);
    case EMU_VOP1:
    case EMU_VOP2:
    case EMU_VOPC:
      return emu__decode_vop(d, format);
    case EMU_FORMAT_UNKNOWN:
      return EMU_DECODE_OPCODE;
    default:
      break;
  }
  if (format == EMU_LDSDIR) return emu__decode_memory(d, EMU_LDSDIR);
  EMU_DECODE_TRY(emu__decode_word(d, &d->word[1]));  // the rest are encodings of 64 bits or more
  switch (format) {
    case EMU_VOP3:
      return emu__decode_vop3(d);
    case EMU_VOP3P:
      return emu__decode_vop3p(d);
    case EMU_VOPD:
      return emu__decode_vopd(d);
    case EMU_FORMAT_GRAPHICS:
      return EMU_DECODE_GRAPHICS;
    default:
      return emu__decode_memory(d, format);
  }
}

enum emu_decode_status emu_isa_decode(const struct emu_isa *target, unsigned wave, const uint32_t *words, size_t n,
                                      struct emu_inst *out) {
  struct emu_decoder d = {.target = target, .wave = wave, .words = words, .count = n, .inst = out};
  memset(out, 0, sizeof(*out));
  out->size = 4;
  EMU_DECODE_TRY(emu__decode_word(&d, &d.word[0]));
  enum emu_format format = find_format(target, d.word[0]);
  out->format = (uint8_t)(format < EMU_FORMAT_COUNT ? format : 0);
  out->wave = (uint8_t)wave;
  enum emu_decode_status status = decode_format(&d, format);
  unsigned size = (unsigned)d.used * 4;
  if (status != EMU_DECODE_OK) memset(out, 0, sizeof(*out));
  out->size = (uint8_t)size;
  return status;
}
