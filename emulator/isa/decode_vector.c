// VOP1, VOP2, VOPC with their DPP and SDWA forms, VOP3, VOP3P and VOPD.
#include "isa/decode.h"

enum { CODE_DPP8 = 0xe9, CODE_DPP8_FI = 0xea, CODE_SDWA = 0xf9, CODE_DPP16 = 0xfa, CODE_LITERAL = 0xff };

static unsigned modified_sources(unsigned flags) {
  return flags & EMU_FLAG_MODS3 ? 7 : flags & EMU_FLAG_MODS2 ? 3 : flags & EMU_FLAG_MODS1 ? 1 : 0;
}

// The same of an instruction that has a scale.
static unsigned modified_with_scale(const struct emu_op_row *row) {
  unsigned scale = !(row->flags & EMU_FLAG_SCALE) ? 0 : row->type[3] ? 4 : 2;
  return modified_sources(row->flags) | scale;
}

// Where operands name halves: in the short encodings bit 7 of a 16-bit vector operand chooses the register's high half.
static void split_half(struct emu_decoder *d, struct emu_operand *operand) {
  if (!d->target->halves || operand->kind != EMU_OPERAND_VECTOR) return;
  if (!emu__type_is_half((enum emu_type)operand->type) || operand->reg < 128) return;
  operand->reg &= 127;
  operand->high = true;
}

static bool is_vector_only(enum emu_op op, int source) {
  unsigned dwords = emu__type_dwords((enum emu_type)emu__op_rows[op].type[source + 1], 64);
  if (dwords >= 6) return true;
  switch (op) {
    case EMU_V_PERMLANE16_SWAP_B32:
    case EMU_V_PERMLANE32_SWAP_B32:
    case EMU_V_CVT_SCALEF32_SR_PK_FP4_F32:
    case EMU_V_READFIRSTLANE_B32:
    case EMU_V_READLANE_B32:
    case EMU_V_PERMLANE16_B32:
    case EMU_V_PERMLANEX16_B32:
    case EMU_V_PERMLANE64_B32:
    case EMU_V_SWAP_B32:
    case EMU_V_SWAPREL_B32:
      return source == 0;
    case EMU_V_MOVRELS_B32:
    case EMU_V_MOVRELSD_B32:
    case EMU_V_MOVRELSD_2_B32:
      return source == 0;
    case EMU_V_PERMLANE16_VAR_B32:
    case EMU_V_PERMLANEX16_VAR_B32:
      return source <= 1;
    case EMU_V_MQSAD_U32_U8:
      return source == 2;
    default:
      return false;
  }
}

static bool is_scalar_only(enum emu_op op, int source) {
  if (emu__op_rows[op].flags & EMU_FLAG_SCALAR) return true;
  switch (op) {
    case EMU_V_READLANE_B32:
      return source == 1;
    case EMU_V_WRITELANE_B32:
      return source <= 1;
    case EMU_V_PERMLANE16_B32:
    case EMU_V_PERMLANEX16_B32:
      return source >= 1;
    case EMU_V_CNDMASK_B32:
    case EMU_V_CNDMASK_B16:
    case EMU_V_ADD_CO_CI_U32:
    case EMU_V_SUB_CO_CI_U32:
    case EMU_V_SUBREV_CO_CI_U32:
      return source == 2;
    default:
      return false;
  }
}

static enum emu_decode_status check_source(enum emu_op op, int i, const struct emu_operand *source) {
  if (is_vector_only(op, i) && source->kind != EMU_OPERAND_VECTOR) return EMU_DECODE_OPERAND;
  if (is_scalar_only(op, i) && source->kind == EMU_OPERAND_VECTOR) return EMU_DECODE_OPERAND;
  if (is_scalar_only(op, i) && source->kind == EMU_OPERAND_SPECIAL && source->reg == EMU_LDS_DIRECT && i == 1) {
    return EMU_DECODE_OPERAND;
  }
  // a mask comes from registers other than EXEC
  bool mask = source->kind == EMU_OPERAND_SCALAR && source->reg < EMU_EXEC_LO;
  if (source->type == EMU_MASK && !mask) return EMU_DECODE_OPERAND;
  return EMU_DECODE_OK;
}

// The word of controls behind a DPP instruction; its first byte is the register of src0, returned in *reg.
static enum emu_decode_status decode_dpp(struct emu_decoder *d, unsigned code, unsigned *reg, uint32_t *controls) {
  struct emu_inst *inst = d->inst;
  uint32_t w;
  EMU_DECODE_TRY(emu__decode_word(d, &w));
  *reg = emu__bits(w, 0, 8);
  *controls = 0;
  if (code != CODE_DPP16) {
    inst->lanes = EMU_LANES_DPP8;
    inst->fetch_inactive = code == CODE_DPP8_FI;
    inst->dpp8 = w >> 8;
    return EMU_DECODE_OK;
  }
  *controls = w;
  inst->lanes = EMU_LANES_DPP16;
  inst->dpp_ctrl = (uint16_t)emu__bits(w, 8, 9);
  inst->fetch_inactive = emu__bits(w, 18, 1);
  inst->bound_ctrl = emu__bits(w, 19, 1);
  inst->bank_mask = emu__bits(w, 24, 4) & 15;
  inst->row_mask = emu__bits(w, 28, 4) & 15;
  unsigned c = inst->dpp_ctrl;
  bool known = c <= 0xff || (c > EMU_DPP_ROW_SHL && c <= EMU_DPP_ROW_ROR + 15 && c % 16) || c == EMU_DPP_ROW_MIRROR ||
               c == EMU_DPP_ROW_HALF_MIRROR;
  if (d->target->encoding->dpp_wave) {
    inst->fetch_inactive = false;
    known |= c == EMU_DPP_WAVE_SHL || c == EMU_DPP_WAVE_ROL || c == EMU_DPP_WAVE_SHR || c == EMU_DPP_WAVE_ROR ||
             c == EMU_DPP_ROW_BCAST15 || c == EMU_DPP_ROW_BCAST31;
    known |= d->target->encoding->dpp_share && c >= EMU_DPP_ROW_SHARE && c <= EMU_DPP_ROW_SHARE + 15;
  } else {
    known |= c >= EMU_DPP_ROW_SHARE && c <= EMU_DPP_ROW_XMASK + 15;
  }
  return known ? EMU_DECODE_OK : EMU_DECODE_RESERVED;
}

// DPP of a short encoding: VOP1 with one source, VOP2 and VOPC with two.
static enum emu_decode_status decode_short_dpp(struct emu_decoder *d, unsigned code, unsigned source1) {
  struct emu_inst *inst = d->inst;
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  if (!(row->flags & EMU_FLAG_DPP)) return EMU_DECODE_OPERAND;
  if (!d->target->encoding->dpp_compare && (inst->format == EMU_VOPC || inst->op == EMU_V_PK_FMAC_F16))
    return EMU_DECODE_OPERAND;
  unsigned reg;
  uint32_t w;
  EMU_DECODE_TRY(decode_dpp(d, code, &reg, &w));
  unsigned modified = modified_sources(row->flags);
  unsigned asked = emu__bits(w, 20, 2) ? 1 : 0;
  if (emu__bits(w, 22, 2)) asked |= 2;
  if (asked & ~modified) return EMU_DECODE_RESERVED;
  bool integers = inst->op == EMU_V_DOT4C_I32_I8 || inst->op == EMU_V_DOT2C_I32_I16 || inst->op == EMU_V_DOT8C_I32_I4;
  if (integers) w &= ~(15u << 20);  // has the fields, and ignores them
  EMU_DECODE_TRY(emu__decode_vector(d, reg, row->type[1], &inst->src[0]));
  split_half(d, &inst->src[0]);
  inst->src[0].neg = emu__bits(w, 20, 1);
  inst->src[0].abs = emu__bits(w, 21, 1);
  if (inst->format == EMU_VOP1) return EMU_DECODE_OK;
  EMU_DECODE_TRY(emu__decode_vector(d, source1, row->type[2], &inst->src[1]));
  split_half(d, &inst->src[1]);
  inst->src[1].neg = emu__bits(w, 22, 1);
  inst->src[1].abs = emu__bits(w, 23, 1);
  return EMU_DECODE_OK;
}

static enum emu_decode_status decode_sdwa_source(struct emu_decoder *d, int i, unsigned reg, uint32_t w) {
  struct emu_inst *inst = d->inst;
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  unsigned low = i ? 24 : 16;
  struct emu_operand *source = &inst->src[i];
  bool scalar = emu__bits(w, low + 7, 1);
  // a scalar may be an inline constant, but neither a literal nor one of the special codes above 208
  if (scalar && reg == CODE_LITERAL) return EMU_DECODE_OPERAND;
  EMU_DECODE_TRY(scalar ? emu__decode_source(d, reg, row->type[1 + i], source)
                        : emu__decode_vector(d, reg, row->type[1 + i], source));
  inst->src_sel[i] = (uint8_t)emu__bits(w, low, 3);
  source->sext = emu__bits(w, low + 3, 1);
  source->neg = emu__bits(w, low + 4, 1);
  source->abs = emu__bits(w, low + 5, 1);
  bool floats = modified_sources(row->flags) >> i & 1;
  if (inst->op == EMU_V_LDEXP_F16 && i == 1) floats = false;  // SDWA has no signs on the exponent
  if (floats ? source->sext : source->neg || source->abs) return EMU_DECODE_RESERVED;
  if (inst->src_sel[i] > EMU_DWORD) return EMU_DECODE_RESERVED;
  return EMU_DECODE_OK;
}

static enum emu_decode_status decode_sdwa(struct emu_decoder *d, unsigned source1) {
  struct emu_inst *inst = d->inst;
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  if (!(row->flags & EMU_FLAG_SDWA) || !d->target->encoding->sdwa) return EMU_DECODE_OPERAND;
  uint32_t w;
  EMU_DECODE_TRY(emu__decode_word(d, &w));
  inst->lanes = EMU_LANES_SDWA;
  if (inst->format == EMU_VOPC) {
    bool named = emu__bits(w, 15, 1);
    if (named && emu_isa_compares_exec((enum emu_op)inst->op) && !d->target->compare_both) return EMU_DECODE_RESERVED;
    if (named) EMU_DECODE_TRY(emu__decode_scalar(d, emu__bits(w, 8, 7), EMU_MASK, &inst->sdst));
    inst->dst_sel = EMU_DWORD;
  } else {
    inst->dst_sel = (uint8_t)emu__bits(w, 8, 3);
    inst->dst_unused = (uint8_t)emu__bits(w, 11, 2);
    inst->clamp = emu__bits(w, 13, 1);
    inst->omod = emu__bits(w, 14, 2) & 3;
    bool whole = inst->dst_sel == EMU_DWORD && !inst->dst_unused && !inst->clamp && !inst->omod;
    if (emu__opens_float8((enum emu_op)inst->op) && !whole) return EMU_DECODE_RESERVED;
    if (inst->dst_sel > EMU_DWORD || inst->dst_unused > EMU_UNUSED_PRESERVE) return EMU_DECODE_RESERVED;
    // SDWA multiplies floats only, where VOP3 also lets the conversions to integers have the field
    bool floats = row->type[0] == EMU_F32 || row->type[0] == EMU_F16 || row->type[0] == EMU_PKF16;
    if (inst->omod && !(floats && row->flags & EMU_FLAG_OMOD)) return EMU_DECODE_RESERVED;
  }
  EMU_DECODE_TRY(decode_sdwa_source(d, 0, emu__bits(w, 0, 8), w));
  if (inst->format == EMU_VOP1) return w & 0xbf000000 ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
  return decode_sdwa_source(d, 1, source1, w);
}

// The sources of VOP1, VOP2 and VOPC in their 32-bit form.
static enum emu_decode_status decode_short_sources(struct emu_decoder *d, unsigned source0, unsigned source1) {
  struct emu_inst *inst = d->inst;
  const uint8_t *type = emu__op_rows[inst->op].type;
  enum emu_op op = (enum emu_op)inst->op;
  if (!type[1]) return EMU_DECODE_OK;
  EMU_DECODE_TRY(emu__decode_source(d, source0, type[1], &inst->src[0]));
  EMU_DECODE_TRY(check_source(op, 0, &inst->src[0]));
  split_half(d, &inst->src[0]);
  if (!type[2]) return EMU_DECODE_OK;
  int next = 1;
  bool multiplies_literal =
      op == EMU_V_FMAMK_F32 || op == EMU_V_FMAMK_F16 || op == EMU_V_MADMK_F32 || op == EMU_V_MADMK_F16;
  if (multiplies_literal) EMU_DECODE_TRY(emu__decode_source(d, CODE_LITERAL, type[2], &inst->src[next++]));
  EMU_DECODE_TRY(emu__decode_vector(d, source1, type[2], &inst->src[next]));
  split_half(d, &inst->src[next]);
  if (op == EMU_V_FMAAK_F32 || op == EMU_V_FMAAK_F16 || op == EMU_V_MADAK_F32 || op == EMU_V_MADAK_F16)
    return emu__decode_source(d, CODE_LITERAL, type[2], &inst->src[2]);
  return EMU_DECODE_OK;
}

enum emu_decode_status emu__decode_vop(struct emu_decoder *d, enum emu_format format) {
  uint32_t w = d->word[0];
  struct emu_inst *inst = d->inst;
  enum emu_format base;
  unsigned code = format == EMU_VOP1   ? emu__bits(w, 9, 8)
                  : format == EMU_VOP2 ? emu__bits(w, 25, 6)
                                       : emu__bits(w, 17, 8);
  enum emu_op op = emu__op_find(d->target, format, code, &base);
  inst->op = (uint16_t)op;
  inst->format = (uint8_t)format;
  if (!op) return EMU_DECODE_OPCODE;
  const struct emu_op_row *row = &emu__op_rows[op];
  unsigned source0 = emu__bits(w, 0, 9), source1 = emu__bits(w, 9, 8), target = emu__bits(w, 17, 8);

  if (format == EMU_VOPC) {
    emu__decode_implied(d, emu_isa_compares_exec(op) && !d->target->compare_both ? EMU_EXEC_LO : EMU_VCC_LO,
                        &inst->sdst);
  } else if (op == EMU_V_READFIRSTLANE_B32) {
    if (target >= EMU_SCALAR_COUNT) return EMU_DECODE_OPERAND;
    EMU_DECODE_TRY(emu__decode_scalar(d, target, EMU_B32, &inst->dst));
  } else if (row->type[0]) {
    EMU_DECODE_TRY(emu__decode_vector(d, target, row->type[0], &inst->dst));
    split_half(d, &inst->dst);
  }
  if (op == EMU_V_ACCVGPR_MOV_B32) {
    if (source0 < 256) return EMU_DECODE_OPERAND;
    inst->dst.reg += EMU_ACCUMULATOR;
    return emu__decode_vector(d, source0, EMU_B32, &inst->src[0]);
  }
  if (!row->type[0] && format == EMU_VOP1 && target) return EMU_DECODE_RESERVED;  // v_nop and its like
  if (row->type[3] == EMU_MASK) emu__decode_implied(d, EMU_VCC_LO, &inst->src[2]);
  if (row->flags & EMU_FLAG_SDST) emu__decode_implied(d, EMU_VCC_LO, &inst->sdst);

  if (row->type[1]) {
    bool eight = d->target->encoding->dpp8 && (source0 == CODE_DPP8 || source0 == CODE_DPP8_FI);
    if (source0 == CODE_DPP16 || eight) {
      return decode_short_dpp(d, source0, source1);
    }
    if (source0 == CODE_SDWA) return decode_sdwa(d, source1);
  }
  return decode_short_sources(d, source0, source1);
}

static enum emu_decode_status decode_vop3_target(struct emu_decoder *d, enum emu_format base) {
  uint32_t w = d->word[0];
  struct emu_inst *inst = d->inst;
  enum emu_op op = (enum emu_op)inst->op;
  const struct emu_op_row *row = &emu__op_rows[op];
  unsigned target = emu__bits(w, 0, 8);
  if (base == EMU_VOPC) {
    if (emu_isa_compares_exec(op) && !d->target->compare_both) {
      emu__decode_implied(d, EMU_EXEC_LO, &inst->sdst);
      return EMU_DECODE_OK;  // the field is ignored
    }
    if (target >= EMU_SCALAR_COUNT) return EMU_DECODE_OPERAND;
    return emu__decode_scalar(d, target, EMU_MASK, &inst->sdst);
  }
  if (op == EMU_V_READLANE_B32 || row->flags & EMU_FLAG_SCALAR) {
    bool special = row->flags & EMU_FLAG_SCALAR && target >= EMU_EXEC_LO;
    if (target >= EMU_SCALAR_COUNT || special) return EMU_DECODE_OPERAND;
    return emu__decode_scalar(d, target, (enum emu_type)row->type[0], &inst->dst);
  }
  if (row->flags & EMU_FLAG_SDST) EMU_DECODE_TRY(emu__decode_scalar(d, emu__bits(w, 8, 7), EMU_MASK, &inst->sdst));
  return row->type[0] ? emu__decode_vector(d, target, row->type[0], &inst->dst) : EMU_DECODE_OK;
}

static void decode_op_sel(struct emu_decoder *d) {
  struct emu_inst *inst = d->inst;
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  unsigned sel = emu__bits(d->word[0], 11, 4);
  if (row->flags & EMU_FLAG_SCALE) inst->imm = (int32_t)sel;
  if (row->flags & (EMU_FLAG_SCALAR | EMU_FLAG_BYTE | EMU_FLAG_SCALE)) return;
  bool explicit = emu__has_op_sel(d->target, inst->op);
  if (inst->op == EMU_V_DOT2_F16_F16 || inst->op == EMU_V_DOT2_BF16_BF16) sel &= 12;  // the packed sources have none
  for (int i = 0; i < 3; i++) {
    struct emu_operand *source = &inst->src[i];
    bool has_halves =
        source->kind && (explicit || (d->target->halves && emu__type_is_half((enum emu_type)source->type)));
    source->high = has_halves && (sel >> i & 1);
  }
  bool has_halves = inst->dst.kind == EMU_OPERAND_VECTOR &&
                    (explicit || (d->target->halves && emu__type_is_half((enum emu_type)inst->dst.type)));
  inst->dst.high = has_halves && (sel >> 3);
  if (emu__is_permlane((enum emu_op)inst->op)) {
    inst->fetch_inactive = sel & 1;
    inst->bound_ctrl = sel >> 1 & 1;
  }
}

// Sources at the places that VOP3 and VOP3P share; a DPP form has its register in the third word.
static enum emu_decode_status decode_long_sources(struct emu_decoder *d) {
  struct emu_inst *inst = d->inst;
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  for (int i = 0; i < 3 && row->type[i + 1]; i++) {
    unsigned code = emu__bits(d->word[1], 9 * (unsigned)i, 9);
    bool dpp = i == 0 && (code == CODE_DPP16 || code == CODE_DPP8 || code == CODE_DPP8_FI);
    if (!dpp) {
      EMU_DECODE_TRY(emu__decode_source(d, code, row->type[i + 1], &inst->src[i]));
    } else {
      if (!(row->flags & EMU_FLAG_DPP64) || !d->target->encoding->dpp_long) return EMU_DECODE_OPERAND;
      unsigned reg;
      uint32_t controls;
      EMU_DECODE_TRY(decode_dpp(d, code, &reg, &controls));
      // the sign bits of a 64-bit DPP instruction are those of its VOP3 words; the ones in controls are ignored
      EMU_DECODE_TRY(emu__decode_vector(d, reg, row->type[1], &inst->src[0]));
    }
    EMU_DECODE_TRY(check_source((enum emu_op)inst->op, i, &inst->src[i]));
  }
  return EMU_DECODE_OK;
}

// Conversions that read or write one byte of a register: op_sel has its number, of a source with its bits swapped.
static enum emu_decode_status decode_byte(struct emu_decoder *d) {
  unsigned sel = emu__bits(d->word[0], 11, 4);
  bool of_source = !emu__op_rows[d->inst->op].type[2];
  if (of_source && d->target->encoding->byte_as_op_sel) return EMU_DECODE_OK;  // SDWA chooses
  if (sel & (d->inst->lanes ? 0 : of_source ? 12u : 3u)) return EMU_DECODE_RESERVED;
  d->inst->imm = of_source ? (int32_t)((sel >> 1 & 1) | (sel & 1) << 1) : (int32_t)(sel >> 2);
  return EMU_DECODE_OK;
}

// The bits of op_sel that mean nothing, of gfx950's instructions, where they must be 0. Elsewhere they are ignored.
static unsigned refused_op_sel(unsigned op) {
  const struct emu_op_row *row = &emu__op_rows[op];
  if (op == EMU_V_BITOP3_B32) return 15;
  if (op == EMU_V_CVT_PK_BF16_F32) return 4;
  return row->flags & EMU_FLAG_SCALE && !row->type[3] && !emu__packs_halves_by_byte(op) ? 4 : 0;
}

enum emu_decode_status emu__decode_vop3(struct emu_decoder *d) {
  uint32_t w = d->word[0];
  struct emu_inst *inst = d->inst;
  enum emu_format base;
  inst->op = (uint16_t)emu__op_find(d->target, EMU_VOP3, emu__bits(w, 16, 10), &base);
  if (!inst->op) return EMU_DECODE_OPCODE;
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  if (!row->type[0] && ((w & 0xffff) || d->word[1])) return EMU_DECODE_RESERVED;
  EMU_DECODE_TRY(decode_vop3_target(d, base));
  EMU_DECODE_TRY(decode_long_sources(d));

  bool scalar_out = row->flags & EMU_FLAG_SDST;  // takes the place of abs and op_sel
  unsigned neg = emu__bits(d->word[1], 29, 3), abs = scalar_out ? 0 : emu__bits(w, 8, 3);
  unsigned modified = modified_with_scale(row), omod = emu__bits(d->word[1], 27, 2);
  if (row->flags & EMU_FLAG_BITOP) {
    inst->imm = (int32_t)(neg | abs << 3 | omod << 6);
    neg = abs = omod = 0;
  }
  bool op_sel = emu__has_op_sel(d->target, inst->op), ignores = op_sel && !modified && row->type[0] != EMU_B64;
  if (ignores) {
    if (!row->type[3] && (neg & 4 || abs & 4)) return EMU_DECODE_RESERVED;
    neg = abs = 0;
  }
  if (emu__bits(w, 11, 4) & refused_op_sel(inst->op)) return EMU_DECODE_RESERVED;
  bool two_halves = op_sel && !row->type[3];
  if (two_halves && emu__bits(w, 13, 1)) return EMU_DECODE_RESERVED;
  if (two_halves && row->type[0] == EMU_B64 && emu__bits(w, 12, 1)) return EMU_DECODE_RESERVED;
  if (row->flags & EMU_FLAG_BYTE) EMU_DECODE_TRY(decode_byte(d));
  bool random = inst->op == EMU_V_CVT_SR_FP8_F32 || inst->op == EMU_V_CVT_SR_BF8_F32;
  if (random && d->target->encoding->byte_as_op_sel) neg &= 1, abs &= 1;  // of the number itself
  bool random16 = inst->op == EMU_V_CVT_SR_F16_F32 || inst->op == EMU_V_CVT_SR_BF16_F32;
  if (random16) neg &= 5, abs &= 5;
  if (row->flags & EMU_FLAG_SCALE) {  // ignored where there are no signs, but where there is no source
    if (!row->type[3] && !emu__packs_halves_by_byte(inst->op) && (neg | abs) & 4) return EMU_DECODE_RESERVED;
    neg &= modified, abs &= modified;
  }
  if ((neg | abs) & ~modified) return EMU_DECODE_RESERVED;
  for (int i = 0; i < 3; i++) {
    inst->src[i].neg = neg >> i & 1;
    inst->src[i].abs = abs >> i & 1;
  }
  if (!scalar_out) decode_op_sel(d);
  inst->clamp = emu__bits(w, 15, 1);
  inst->omod = omod & 3;
  if (inst->clamp && !(row->flags & EMU_FLAG_CLAMP)) return EMU_DECODE_RESERVED;
  if (inst->omod && !(row->flags & EMU_FLAG_OMOD)) return EMU_DECODE_RESERVED;
  if (inst->op == EMU_V_DIV_FMAS_F32 || inst->op == EMU_V_DIV_FMAS_F64)
    emu__decode_implied(d, EMU_VCC_LO, &inst->src[3]);
  return EMU_DECODE_OK;
}

// A constant of v_fma_mix that op_sel_hi makes an f16.
static void settle_half_constant(struct emu_decoder *d, struct emu_operand *source) {
  struct emu_operand half;
  if (emu__decode_source(d, source->reg, EMU_F16, &half) != EMU_DECODE_OK) return;
  source->type = EMU_F16;
  source->value = half.value;
}

static bool is_fragment(unsigned type) { return type >= EMU_FRAG1 && type <= EMU_FRAG8; }

// Products of matrices and of FP8, whose modifiers are few: signs, and the key by which a V_SWMMAC finds its lanes'
// indices in a register that holds those of several.
static enum emu_decode_status decode_fixed(struct emu_decoder *d, unsigned neg, unsigned neg_hi, unsigned op_sel,
                                           unsigned op_sel_hi) {
  struct emu_inst *inst = d->inst;
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  bool vectors = inst->src[1].kind == EMU_OPERAND_VECTOR && inst->src[2].kind == EMU_OPERAND_VECTOR;
  if (inst->lanes && !vectors) return EMU_DECODE_OPERAND;
  bool integers = row->flags & EMU_FLAG_CLAMP, sparse = row->type[3] == EMU_B32;
  unsigned factors = row->flags & EMU_FLAG_MODS2 ? 3 : 0, addend = sparse || integers ? 0 : 4;
  if ((inst->clamp && !integers) || op_sel_hi != 7) return EMU_DECODE_RESERVED;
  if (neg & ~(integers ? 3 : factors | addend) || neg_hi & ~(factors | addend)) return EMU_DECODE_RESERVED;
  unsigned keys = 1;
  if (sparse) {  // two bits for each element of A that a lane holds
    unsigned bits = inst->op == EMU_V_SWMMAC_I32_16X16X64_IU4 ? 32 : 16;
    keys = 32 / (bits * 32 / d->wave);
  }
  if (op_sel >= keys) return EMU_DECODE_RESERVED;
  inst->imm = (int32_t)op_sel;
  if (!is_fragment(row->type[1])) return EMU_DECODE_OK;
  if (inst->src[0].kind != EMU_OPERAND_VECTOR || inst->src[1].kind != EMU_OPERAND_VECTOR) return EMU_DECODE_OPERAND;
  struct emu_operand *last = &inst->src[2];
  bool constant = !sparse && last->kind == EMU_OPERAND_CONSTANT && !last->literal;
  if (last->kind != EMU_OPERAND_VECTOR && !constant) return EMU_DECODE_OPERAND;
  return EMU_DECODE_OK;
}

// A source that is a vector register, and an accumulation register if so marked.
static enum emu_decode_status decode_accumulator(struct emu_decoder *d, int i, bool accumulator) {
  unsigned code = emu__bits(d->word[1], 9 * (unsigned)i, 9);
  if (code < 256) return EMU_DECODE_OPERAND;
  return emu__decode_vector(d, code - 256 + (accumulator ? EMU_ACCUMULATOR : 0),
                            (enum emu_type)emu__op_rows[d->inst->op].type[i + 1], &d->inst->src[i]);
}

static enum emu_type type_of_float(unsigned format) {  // as cbsz and blgp number them: FP8, BF8, FP6, BF6, FP4
  return format == 4 ? EMU_B128 : format == 2 || format == 3 ? EMU_B192 : EMU_B256;
}

static bool names_formats(unsigned op) {
  return op == EMU_V_MFMA_F32_16X16X128_F8F6F4 || op == EMU_V_MFMA_F32_32X32X64_F8F6F4;
}

// Factors whose formats cbsz and blgp name; abid is 1 where there are scales.
static enum emu_decode_status decode_formats(struct emu_decoder *d) {
  struct emu_inst *inst = d->inst;
  unsigned formats[2] = {(unsigned)inst->imm & 7, (unsigned)inst->imm >> 7}, abid = (unsigned)inst->imm >> 3 & 15;
  if (abid != (inst->y.op ? 1 : 0)) return EMU_DECODE_RESERVED;
  inst->imm &= ~(15 << 3);
  for (int i = 0; i < 2; i++) {
    struct emu_operand *factor = &inst->src[i];
    unsigned reg = factor->reg;
    EMU_DECODE_TRY(emu__decode_vector(d, reg, type_of_float(formats[i]), factor));
  }
  return EMU_DECODE_OK;
}

// VOP3P-MAI:
//
//     | 0x1a7 | op | acc_cd | abid | cbsz | vdst |    | blgp | acc: of B, of A | src2 | src1 | src0 |
//       31…23  22   15       14     10     7            31     28                26     17     8
static enum emu_decode_status decode_matrix(struct emu_decoder *d) {
  uint32_t w = d->word[0], v = d->word[1];
  struct emu_inst *inst = d->inst;
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  bool reads = inst->op == EMU_V_ACCVGPR_READ_B32, moves = reads || inst->op == EMU_V_ACCVGPR_WRITE_B32;
  bool alone = d->target->encoding->sums_accumulate, acc_cd = moves ? !reads : alone || emu__bits(w, 15, 1),
       sparse = row->type[3] == EMU_B32 && row->type[0] != EMU_B32;
  unsigned target = emu__bits(w, 0, 8) + (acc_cd ? EMU_ACCUMULATOR : 0);
  EMU_DECODE_TRY(emu__decode_vector(d, target, (enum emu_type)row->type[0], &inst->dst));
  if (moves && (emu__bits(w, 8, 6) || emu__bits(v, 29, 3))) return EMU_DECODE_RESERVED;
  if (reads) return decode_accumulator(d, 0, true);
  if (moves) return emu__decode_source(d, emu__bits(v, 0, 9), EMU_B32, &inst->src[0]);
  inst->imm = (int32_t)(emu__bits(w, 8, 7) | emu__bits(v, 29, 3) << 7);
  EMU_DECODE_TRY(decode_accumulator(d, 0, emu__bits(v, 27, 1)));
  EMU_DECODE_TRY(decode_accumulator(d, 1, emu__bits(v, 28, 1)));
  if (names_formats(inst->op)) EMU_DECODE_TRY(decode_formats(d));
  if (sparse) return inst->imm >> 7 ? EMU_DECODE_RESERVED : decode_accumulator(d, 2, false);
  if (emu__bits(v, 26, 1)) return decode_accumulator(d, 2, acc_cd);
  EMU_DECODE_TRY(emu__decode_source(d, emu__bits(v, 18, 9), (enum emu_type)row->type[3], &inst->src[2]));
  bool doubles = emu_isa_multiplies_doubles((enum emu_op)inst->op);
  if (doubles && inst->src[2].reg >= 240) inst->src[2].value = emu__inline_float(inst->src[2].reg, EMU_F64);
  return inst->src[2].kind == EMU_OPERAND_CONSTANT ? EMU_DECODE_OK : EMU_DECODE_OPERAND;
}

// Scales of a product: two words before its own, which with them are one instruction.
//
//     | 0x1a7 | 0x2c |   | op_sel |        |     |   | op_sel_hi |   | of B | of A |   op_sel_hi and op_sel: which byte
//       31…23  22  16      12 11     7…0           28 27       26     17     8
static enum emu_decode_status decode_scales(struct emu_decoder *d) {
  struct emu_inst *inst = d->inst;
  uint32_t w = d->word[0], v = d->word[1];
  struct emu_operand scale[2];
  bool reserved = emu__bits(w, 0, 8) || emu__bits(w, 10, 1) || emu__bits(w, 13, 1) || emu__bits(w, 15, 1) || v >> 31;
  for (unsigned i = 0; i < 2; i++) EMU_DECODE_TRY(emu__decode_source(d, emu__bits(v, 9 * i, 9), EMU_B32, &scale[i]));
  unsigned bytes = emu__bits(w, 11, 1) | emu__bits(v, 27, 1) << 1 | emu__bits(w, 12, 1) << 2 | emu__bits(v, 28, 1) << 3;
  enum emu_format base;
  uint32_t next = d->used + 2 <= d->count ? d->words[d->used] : 0;
  enum emu_op op = emu__op_find(d->target, EMU_VOP3P, emu__bits(next, 16, 7), &base);
  bool vectors = scale[0].kind == EMU_OPERAND_VECTOR && scale[1].kind == EMU_OPERAND_VECTOR;
  if (next >> 23 != 0x1a7 || !names_formats(op) || emu__bits(next, 11, 4) != 1 || !vectors) {
    if (reserved) return EMU_DECODE_RESERVED;
    inst->src[0] = scale[0], inst->src[1] = scale[1];
    inst->imm = (int32_t)bytes;
    return EMU_DECODE_OK;
  }
  for (int i = 0; i < 2; i++) EMU_DECODE_TRY(emu__decode_word(d, &d->word[i]));
  inst->op = (uint16_t)op;
  inst->y = (struct emu_half){.op = EMU_V_MFMA_LD_SCALE_B32, .src = {scale[0], scale[1]}};
  EMU_DECODE_TRY(decode_matrix(d));
  inst->imm |= (int32_t)(bytes << 10);
  return EMU_DECODE_OK;
}

enum emu_decode_status emu__decode_vop3p(struct emu_decoder *d) {
  uint32_t w = d->word[0];
  struct emu_inst *inst = d->inst;
  enum emu_format base;
  if (emu__bits(w, 23, 1) != d->target->encoding->vop3p_in_vop3) return EMU_DECODE_OPCODE;
  enum emu_op op = emu__op_find(d->target, EMU_VOP3P, emu__bits(w, 16, 7), &base);
  inst->op = (uint16_t)op;
  if (!op) return EMU_DECODE_OPCODE;
  const struct emu_op_row *row = &emu__op_rows[op];
  if (op == EMU_V_MFMA_LD_SCALE_B32) return decode_scales(d);
  if (row->flags & EMU_FLAG_MAI) return decode_matrix(d);
  EMU_DECODE_TRY(emu__decode_vector(d, emu__bits(w, 0, 8), row->type[0], &inst->dst));
  EMU_DECODE_TRY(decode_long_sources(d));
  if (inst->lanes && emu__is_mix(op) && inst->src[1].kind != EMU_OPERAND_VECTOR) return EMU_DECODE_OPERAND;

  unsigned neg_hi = emu__bits(w, 8, 3), op_sel = emu__bits(w, 11, 3), neg = emu__bits(d->word[1], 29, 3);
  unsigned op_sel_hi = emu__bits(d->word[1], 27, 2) | emu__bits(w, 14, 1) << 2;
  inst->clamp = emu__bits(w, 15, 1);
  if (row->flags & EMU_FLAG_NOSEL) EMU_DECODE_TRY(decode_fixed(d, neg, neg_hi, op_sel, op_sel_hi));
  if (!row->type[3] && ((neg_hi | op_sel | neg) & 4)) return EMU_DECODE_RESERVED;
  for (int i = 0; i < 3; i++) {
    struct emu_operand *source = &inst->src[i];
    if (!source->kind) break;
    source->neg = neg >> i & 1;
    source->high = op_sel >> i & 1;
    source->high_high = op_sel_hi >> i & 1;
    if (emu__is_mix(op)) {
      source->abs = neg_hi >> i & 1;
      if (source->kind == EMU_OPERAND_CONSTANT && source->high_high) settle_half_constant(d, source);
    } else {
      source->neg_high = neg_hi >> i & 1;
    }
  }
  if (row->type[0] == EMU_TILEC) {
    bool vectors = inst->src[0].kind == EMU_OPERAND_VECTOR && inst->src[1].kind == EMU_OPERAND_VECTOR;
    bool accumulator =
        inst->src[2].kind == EMU_OPERAND_VECTOR || (inst->src[2].kind == EMU_OPERAND_CONSTANT && !inst->src[2].literal);
    if (!vectors || !accumulator) return EMU_DECODE_OPERAND;
    enum emu_type element = op == EMU_V_WMMA_F16_16X16X16_F16     ? EMU_F16
                            : op == EMU_V_WMMA_BF16_16X16X16_BF16 ? EMU_BF16
                                                                  : EMU_F32;
    bool constant = inst->src[2].kind == EMU_OPERAND_CONSTANT;  // one element of the tile
    if (constant && inst->src[2].reg >= 240) inst->src[2].value = emu__inline_float(inst->src[2].reg, element);
    if (constant && inst->src[2].reg < 240 && element != EMU_F32) inst->src[2].value &= 0xffff;
  }
  switch (op) {
    case EMU_V_WMMA_F32_16X16X16_F16:
    case EMU_V_WMMA_F32_16X16X16_BF16:
      return op_sel || inst->clamp ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
    case EMU_V_WMMA_F16_16X16X16_F16:
    case EMU_V_WMMA_BF16_16X16X16_BF16:
      return inst->clamp ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
    case EMU_V_WMMA_I32_16X16X16_IU8:
    case EMU_V_WMMA_I32_16X16X16_IU4:
      return op_sel ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
    default:
      return EMU_DECODE_OK;
  }
}

static const uint16_t dual_op[32] = {
#define DUAL(code, op) [code] = EMU_##op,
#include "isa/ops_vopd.def"
#undef DUAL
};

static enum emu_decode_status decode_dual_half(struct emu_decoder *d, enum emu_op op, unsigned target, unsigned source0,
                                               unsigned source1, struct emu_half *half) {
  const uint8_t *type = emu__op_rows[op].type;
  half->op = (uint16_t)op;
  EMU_DECODE_TRY(emu__decode_vector(d, target, type[0], &half->dst));
  EMU_DECODE_TRY(emu__decode_source(d, source0, type[1], &half->src[0]));
  if (!type[2]) return EMU_DECODE_OK;
  int next = 1;
  if (op == EMU_V_FMAMK_F32) EMU_DECODE_TRY(emu__decode_source(d, CODE_LITERAL, type[2], &half->src[next++]));
  EMU_DECODE_TRY(emu__decode_vector(d, source1, type[2], &half->src[next]));
  if (op == EMU_V_FMAAK_F32) return emu__decode_source(d, CODE_LITERAL, type[2], &half->src[2]);
  if (type[3] == EMU_MASK) emu__decode_implied(d, EMU_VCC_LO, &half->src[2]);
  return EMU_DECODE_OK;
}

enum emu_decode_status emu__decode_vopd(struct emu_decoder *d) {
  uint32_t w = d->word[0], v = d->word[1];
  struct emu_inst *inst = d->inst;
  enum emu_op x = (enum emu_op)dual_op[emu__bits(w, 22, 4)], y = (enum emu_op)dual_op[emu__bits(w, 17, 5)];
  if (!x || !y || d->wave != 32) return EMU_DECODE_OPCODE;
  if (!emu__op_code(d->target, x)->present || !emu__op_code(d->target, y)->present) return EMU_DECODE_OPCODE;
  // one destination is even and the other odd: the lowest bit of the second is the first's, inverted
  unsigned target_x = emu__bits(v, 24, 8), target_y = emu__bits(v, 17, 7) << 1 | (~target_x & 1);
  struct emu_half first = {0};
  EMU_DECODE_TRY(decode_dual_half(d, x, target_x, emu__bits(w, 0, 9), emu__bits(w, 9, 8), &first));
  EMU_DECODE_TRY(decode_dual_half(d, y, target_y, emu__bits(v, 0, 9), emu__bits(v, 9, 8), &inst->y));
  inst->op = first.op;
  inst->dst = first.dst;
  for (int i = 0; i < 3; i++) inst->src[i] = first.src[i];
  return EMU_DECODE_OK;
}
