// Text of a decoded instruction, letter by letter as LLVM 19 writes it.
#include "isa/print.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void emu__print(struct emu_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text->length < text->size ? text->at + text->length : NULL,
                    text->length < text->size ? text->size - text->length : 0, format, args);
  va_end(args);
  if (n > 0) text->length += (size_t)n;
}

static const char *special_name(unsigned reg) {
  switch (reg) {
    case EMU_SHARED_BASE:
      return "src_shared_base";
    case EMU_SHARED_LIMIT:
      return "src_shared_limit";
    case EMU_PRIVATE_BASE:
      return "src_private_base";
    case EMU_PRIVATE_LIMIT:
      return "src_private_limit";
    case EMU_POPS_EXITING_WAVE_ID:
      return "src_pops_exiting_wave_id";
    case EMU_VCCZ:
      return "src_vccz";
    case EMU_EXECZ:
      return "src_execz";
    case EMU_SCC:
      return "src_scc";
    default:
      return "src_lds_direct";
  }
}

static void print_registers(struct emu_text *text, const char *file, unsigned first, unsigned count) {
  if (first >= EMU_ACCUMULATOR) file = "a", first -= EMU_ACCUMULATOR;
  if (count == 1) {
    emu__print(text, "%s%u", file, first);
  } else {
    emu__print(text, "%s[%u:%u]", file, first, first + count - 1);
  }
}

static void print_scalar(struct emu_text *text, const struct emu_operand *operand) {
  static const char *const wide[] = {"vcc", "exec"};
  static const char *const narrow[] = {"vcc_lo", "vcc_hi", "exec_lo", "exec_hi"};
  unsigned reg = operand->reg, dwords = operand->dwords;
  if (reg == EMU_NULL) {
    emu__print(text, "null");
  } else if (reg == EMU_M0) {
    emu__print(text, "m0");
  } else if (text->target->scratch_in_sgprs && reg >= EMU_FLAT_SCRATCH_LO && reg < EMU_VCC_LO) {
    static const char *const parts[] = {"_lo", "_hi"};
    emu__print(text, "%s%s", reg < EMU_XNACK_MASK_LO ? "flat_scratch" : "xnack_mask",
               dwords == 2 ? "" : parts[reg & 1]);
  } else if (reg < EMU_VCC_LO) {
    print_registers(text, "s", reg, dwords);
  } else if (reg >= EMU_TTMP0 && reg < EMU_NULL) {
    print_registers(text, "ttmp", reg - EMU_TTMP0, dwords);
  } else {
    unsigned exec = reg >= EMU_EXEC_LO;
    emu__print(text, "%s", dwords == 2 ? wide[exec] : narrow[exec * 2 + (reg & 1)]);
  }
}

// LLVM shows a literal whose value has an inline constant like that constant.
static void print_literal(struct emu_text *text, uint32_t literal, enum emu_type type, const char *const floats[9]) {
  bool wide = emu__type_dwords(type, 32) == 2, half = type == EMU_F16 || type == EMU_BF16;
  bool integer16 = emu__type_is_half(type) && !half;
  int32_t number = half ? (int16_t)literal : (int32_t)literal;
  if (wide ? literal <= (type == EMU_F64 ? 0 : 64) : number >= -16 && number <= 64) {
    emu__print(text, "%d", number);
    return;
  }
  bool packed = type == EMU_PKF16 || type == EMU_PKBF16;
  uint64_t value = type == EMU_F64 ? (uint64_t)literal << 32 : half ? (uint16_t)literal : literal;
  for (unsigned code = 240; code <= 248 && (!wide || type == EMU_F64); code++) {
    if (value == emu__inline_float(code, half || packed || wide ? type : EMU_F32)) {
      emu__print(text, "%s", floats[code - 240]);
      return;
    }
  }
  emu__print(text, "0x%x", type == EMU_F16 || integer16 ? literal & 0xffff : literal);
}

static void print_constant(struct emu_text *text, const struct emu_operand *operand) {
  static const char *const floats[9] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"};
  enum emu_type type = (enum emu_type)operand->type;
  if (operand->literal) {
    print_literal(text, text->literal, type, floats);
  } else if (operand->reg <= 208) {
    emu__print(text, "%d", operand->reg <= 192 ? operand->reg - 128 : 192 - operand->reg);
  } else if (type == EMU_I16 || type == EMU_U16 || type == EMU_B16) {
    emu__print(text, "0x%x", (unsigned)operand->value);
  } else if (operand->reg == 248 && emu__type_dwords(type, 32) == 2 && type != EMU_PKF32 && type != EMU_PKB32) {
    emu__print(text, "0.15915494309189532");
  } else {
    emu__print(text, "%s", floats[operand->reg - 240]);
  }
}

void emu__print_register(struct emu_text *text, const struct emu_operand *operand) {
  switch (operand->kind) {
    case EMU_OPERAND_SCALAR:
      print_scalar(text, operand);
      break;
    case EMU_OPERAND_VECTOR:
      print_registers(text, "v", operand->reg, operand->dwords);
      break;
    case EMU_OPERAND_CONSTANT:
      print_constant(text, operand);
      break;
    case EMU_OPERAND_SPECIAL:
      emu__print(text, "%s", special_name(operand->reg));
      break;
    default:
      emu__print(text, "off");
      break;
  }
}

static bool is_integer(enum emu_type type) {
  return type == EMU_I32 || type == EMU_U32 || type == EMU_I16 || type == EMU_U16 || type == EMU_PKI8;
}

// Begins the negation of a source; *close is what ends it. A minus sign, or neg( before a number, which may begin with
// a minus sign itself; of integers LLVM calls the bit sext(.
static void print_negation(struct emu_text *text, const struct emu_operand *source, const char **close) {
  *close = "";
  if (!source->neg) return;
  bool number = source->kind == EMU_OPERAND_CONSTANT && !source->abs;
  if (is_integer((enum emu_type)source->type)) {
    emu__print(text, "sext(");
    *close = ")";
  } else if (number) {
    emu__print(text, "neg(");
    *close = ")";
  } else {
    emu__print(text, "-");
  }
}

// Two sources that LLVM shows in another type than they have: the exponent of v_ldexp_f16 (as a float, perhaps with its
// sign bits) and the mask of v_cmp_class_f16.
static void settle_type(const struct emu_inst *inst, const struct emu_isa *target, struct emu_operand *source) {
  bool constant = source->kind == EMU_OPERAND_CONSTANT;
  if (inst->op == EMU_V_LDEXP_F16 && target->encoding->exponent_signs && inst->format == EMU_VOP3) {
    source->type = EMU_F16;
  } else if (inst->op == EMU_V_LDEXP_F16 && constant) {
    source->type = EMU_F16;
    source->sext |= source->neg;
    source->abs = source->neg = false;
  }
  if ((inst->op == EMU_V_CMP_CLASS_F16 || inst->op == EMU_V_CMPX_CLASS_F16) && constant) source->type = EMU_B32;
}

// A source with the modifiers that stand around it. `half` adds .l or .h.
static void print_source(struct emu_text *text, const struct emu_operand *source, const char *half) {
  const char *close;
  if (source->sext) emu__print(text, "sext(");
  print_negation(text, source, &close);
  bool bars = source->abs && !is_integer((enum emu_type)source->type);
  if (bars) emu__print(text, "|");
  emu__print_register(text, source);
  emu__print(text, "%s", half);
  if (bars) emu__print(text, "|");
  emu__print(text, "%s%s", close, source->sext ? ")" : "");
}

// .l and .h where the encoding itself names halves: LLVM 19 knows them for v_mov_b16 only, where op_sel names them too
// if there is DPP; later ones know them everywhere.
static const char *half_suffix(const struct emu_inst *inst, const struct emu_operand *operand) {
  if (operand->kind != EMU_OPERAND_VECTOR || inst->format == EMU_VOP3P) return "";
  bool moved = inst->op == EMU_V_MOV_B16;
  if (inst->format == EMU_VOP3 && !(moved && inst->lanes != EMU_LANES_PLAIN)) return "";
  if (moved) return operand->high ? ".h" : ".l";
  return operand->high ? ".h" : "";
}

static void print_mnemonic(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  char name[64];
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  unsigned format = emu__op_code(target, inst->op)->format;
  const char *mnemonic = emu_isa_mnemonic(target, (enum emu_op)inst->op, name) ? name : row->name;
  if (inst->y.op == EMU_V_MFMA_LD_SCALE_B32) {
    emu__print(text, "v_mfma_scale%s", mnemonic + strlen("v_mfma"));
    return;
  }
  emu__print(text, "%s", mnemonic);
  bool short_form = inst->format == EMU_VOP1 || inst->format == EMU_VOP2 || inst->format == EMU_VOPC;
  bool has_both = format == EMU_VOP1 || format == EMU_VOP2 || format == EMU_VOPC;
  bool two_sizes = has_both && !emu__is_short_only(target, inst->op) && row->type[1];
  bool dpp = inst->lanes == EMU_LANES_DPP16 || inst->lanes == EMU_LANES_DPP8;
  if (inst->lanes == EMU_LANES_SDWA) {
    emu__print(text, "_sdwa");
  } else if (short_form) {
    emu__print(text, "%s", dpp ? (inst->format == EMU_VOPC ? "" : "_dpp") : two_sizes ? "_e32" : "");
  } else if (inst->format == EMU_VOP3) {
    emu__print(text, "%s", dpp ? "_e64_dpp" : two_sizes ? "_e64" : "");
  } else if (inst->format == EMU_VOP3P && dpp) {
    emu__print(text, "_e64_dpp");
  }
}

static void print_bits(struct emu_text *text, const char *name, unsigned bits, unsigned count) {
  emu__print(text, " %s:[", name);
  for (unsigned i = 0; i < count; i++) emu__print(text, "%s%u", i ? "," : "", bits >> i & 1);
  emu__print(text, "]");
}

static void print_dpp(struct emu_text *text, const struct emu_inst *inst) {
  if (inst->lanes == EMU_LANES_DPP8) {
    emu__print(text, " dpp8:[");
    for (unsigned i = 0; i < 8; i++) emu__print(text, "%s%u", i ? "," : "", inst->dpp8 >> 3 * i & 7);
    emu__print(text, "]%s", inst->fetch_inactive ? " fi:1" : "");
    return;
  }
  unsigned c = inst->dpp_ctrl;
  if (c <= 0xff) {
    emu__print(text, " quad_perm:[%u,%u,%u,%u]", c & 3, c >> 2 & 3, c >> 4 & 3, c >> 6 & 3);
  } else if (c == EMU_DPP_ROW_MIRROR) {
    emu__print(text, " row_mirror");
  } else if (c == EMU_DPP_ROW_HALF_MIRROR) {
    emu__print(text, " row_half_mirror");
  } else if (c == EMU_DPP_ROW_BCAST15 || c == EMU_DPP_ROW_BCAST31) {
    emu__print(text, " row_bcast:%u", c == EMU_DPP_ROW_BCAST15 ? 15 : 31);
  } else if (c >= EMU_DPP_WAVE_SHL && c <= EMU_DPP_WAVE_ROR) {
    static const char *const names[4] = {"shl", "rol", "shr", "ror"};
    emu__print(text, " wave_%s:1", names[c >> 2 & 3]);
  } else {
    static const char *const names[7] = {"row_shl", "row_shr", "row_ror", "", "", "row_share", "row_xmask"};
    bool share = c >> 4 == EMU_DPP_ROW_SHARE >> 4 && text->target->encoding->dpp_share;
    emu__print(text, " %s:%u", share ? "row_newbcast" : names[(c >> 4) - 0x10], c & 15);
  }
  emu__print(text, " row_mask:0x%x bank_mask:0x%x%s%s", inst->row_mask, inst->bank_mask,
             inst->bound_ctrl ? " bound_ctrl:1" : "", inst->fetch_inactive ? " fi:1" : "");
}

static void print_output(struct emu_text *text, const struct emu_inst *inst) {
  static const char *const omod[4] = {"", " mul:2", " mul:4", " div:2"};
  if (inst->clamp) emu__print(text, " clamp");
  emu__print(text, "%s", omod[inst->omod]);
}

static void print_sdwa(struct emu_text *text, const struct emu_inst *inst) {
  static const char *const select[8] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD", ""};
  static const char *const unused[4] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", ""};
  print_output(text, inst);
  if (inst->format != EMU_VOPC && !emu__opens_float8((enum emu_op)inst->op)) {
    emu__print(text, " dst_sel:%s dst_unused:%s", select[inst->dst_sel], unused[inst->dst_unused]);
  }
  emu__print(text, " src0_sel:%s", select[inst->src_sel[0]]);
  if (inst->format != EMU_VOP1) emu__print(text, " src1_sel:%s", select[inst->src_sel[1]]);
}

static void print_op_sel(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  if (row->flags & EMU_FLAG_BYTE && inst->imm && target->encoding->byte_as_op_sel) {
    print_bits(text, "op_sel", (unsigned)inst->imm << 2, 4);
  } else if (row->flags & EMU_FLAG_BYTE && inst->imm) {
    emu__print(text, " byte_sel:%d", inst->imm);
  }
  if (row->flags & EMU_FLAG_SCALE && inst->imm) {
    unsigned sel = (unsigned)inst->imm;
    bool four = row->type[3] || emu__packs_halves_by_byte(inst->op);
    print_bits(text, "op_sel", four ? sel : (sel & 3) | sel >> 3 << 2, four ? 4 : 3);
  }
  if (row->flags & EMU_FLAG_BITOP && inst->imm)
    emu__print(text, inst->imm <= 10 ? " bitop3:%d" : " bitop3:0x%x", inst->imm);
  if (emu__is_lane_swap((enum emu_op)inst->op)) {
    emu__print(text, "%s%s", inst->bound_ctrl ? " bound_ctrl:1" : "", inst->fetch_inactive ? " fi:1" : "");
    return;
  }
  if (!emu__has_op_sel(target, inst->op)) return;
  unsigned bits = 0, count = 0;
  for (; count < 3 && inst->src[count].kind; count++) bits |= (unsigned)inst->src[count].high << count;
  if (emu__is_permlane((enum emu_op)inst->op)) {
    count = 2;  // fetch inactive, bound control
    bits = (unsigned)inst->fetch_inactive | (unsigned)inst->bound_ctrl << 1;
  } else {
    if (inst->op == EMU_V_FMAC_F16) count = 3;
    bits |= (unsigned)inst->dst.high << count++;
  }
  if (bits) print_bits(text, "op_sel", bits, count);
}

static void print_packed(struct emu_text *text, const struct emu_inst *inst) {
  unsigned op_sel = 0, op_sel_hi = 0, neg = 0, neg_hi = 0, count = 0;
  for (; count < 3 && inst->src[count].kind; count++) {
    const struct emu_operand *source = &inst->src[count];
    op_sel |= (unsigned)source->high << count;
    op_sel_hi |= (unsigned)source->high_high << count;
    neg |= (unsigned)source->neg << count;
    neg_hi |= (unsigned)source->neg_high << count;
  }
  bool mix = emu__is_mix(inst->op);
  bool tile = emu__op_rows[inst->op].type[0] == EMU_TILEC || emu__op_rows[inst->op].flags & EMU_FLAG_NOSEL;
  bool tile16 = inst->op == EMU_V_WMMA_F16_16X16X16_F16 || inst->op == EMU_V_WMMA_BF16_16X16X16_BF16;
  if (emu__op_rows[inst->op].flags & EMU_FLAG_NOSEL) {
    if (inst->imm) emu__print(text, " index_key:%d", inst->imm);
  } else if (op_sel) {
    print_bits(text, "op_sel", op_sel, count);
  }
  if ((!tile || tile16) && op_sel_hi != (mix ? 0 : (1u << count) - 1)) print_bits(text, "op_sel_hi", op_sel_hi, count);
  if (mix) return;
  if (neg) print_bits(text, "neg_lo", neg, count);
  if (neg_hi) print_bits(text, "neg_hi", neg_hi, count);
}

// Which byte of each scale: its lower bit in op_sel and its upper one in op_sel_hi.
static void print_scales(struct emu_text *text, unsigned bytes, unsigned count) {
  unsigned low = (bytes & 1) | (bytes >> 2 & 1) << 1, high = (bytes >> 1 & 1) | (bytes >> 3 & 1) << 1;
  if (low) print_bits(text, "op_sel", low, count);
  if (count == 3 || high != 3) print_bits(text, "op_sel_hi", high, count);
}

static void print_matrix(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  unsigned cbsz = (unsigned)inst->imm & 7, abid = (unsigned)inst->imm >> 3 & 15, blgp = (unsigned)inst->imm >> 7 & 7;
  if (inst->y.op) {
    for (int i = 0; i < 2; i++) {
      emu__print(text, ", ");
      emu__print_register(text, &inst->y.src[i]);
    }
    print_scales(text, (unsigned)inst->imm >> 10, 3);
  }
  if (cbsz) emu__print(text, " cbsz:%u", cbsz);
  if (abid) emu__print(text, " abid:%u", abid);
  if (blgp && target->encoding->neg_f64 && emu_isa_multiplies_doubles((enum emu_op)inst->op)) {
    print_bits(text, "neg", blgp, 3);
  } else if (blgp) {
    emu__print(text, " blgp:%u", blgp);
  }
}

// The source that is a literal by the opcode: always shown in hexadecimal.
static int constant_source(enum emu_op op) {
  if (op == EMU_V_FMAMK_F32 || op == EMU_V_FMAMK_F16 || op == EMU_V_MADMK_F32 || op == EMU_V_MADMK_F16) return 1;
  bool adds = op == EMU_V_FMAAK_F32 || op == EMU_V_FMAAK_F16 || op == EMU_V_MADAK_F32 || op == EMU_V_MADAK_F16;
  return adds ? 2 : -1;
}

static void print_vop(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  const char *comma = " ";
  bool exec_out = inst->sdst.kind && inst->sdst.reg == EMU_EXEC_LO && emu__op_rows[inst->op].type[0] == EMU_MASK &&
                  strncmp(emu__op_rows[inst->op].name, "V_CMPX", 6) == 0 && !target->compare_both;
  if (inst->dst.kind) {
    emu__print(text, "%s", comma);
    emu__print_register(text, &inst->dst);
    emu__print(text, "%s", half_suffix(inst, &inst->dst));
    comma = ", ";
  }
  if (inst->sdst.kind && !exec_out) {
    emu__print(text, "%s", comma);
    emu__print_register(text, &inst->sdst);
    comma = ", ";
  }
  bool long_pi = emu__op_rows[inst->op].type[0] == EMU_TILEC && inst->wave == 32;
  for (int i = 0; i < 3 && inst->src[i].kind; i++) {
    struct emu_operand source = inst->src[i];
    if (inst->format == EMU_VOP3P && source.type != EMU_NONE) {
      bool mix = emu__is_mix(inst->op);
      if (!mix) source.neg = false;
      if (mix && source.literal) source.type = EMU_F16;
    }
    emu__print(text, "%s", comma);
    if (i == constant_source((enum emu_op)inst->op)) {
      emu__print(text, "0x%x", text->literal);
      continue;
    }
    if (i == 1) settle_type(inst, target, &source);
    bool doubles = source.kind == EMU_OPERAND_CONSTANT && emu_isa_multiplies_doubles((enum emu_op)inst->op);
    if (long_pi || doubles) source.type = EMU_F64;  // LLVM shows 1/(2 pi) in full
    print_source(text, &source, half_suffix(inst, &source));
    comma = ", ";
  }
  if (inst->lanes == EMU_LANES_SDWA) {
    print_sdwa(text, inst);
    return;
  }
  if (inst->format == EMU_VOP3) print_op_sel(text, inst, target);
  if (inst->op == EMU_V_MFMA_LD_SCALE_B32) {
    print_scales(text, (unsigned)inst->imm, 2);
    return;
  }
  if (inst->format == EMU_VOP3P && emu__op_rows[inst->op].flags & EMU_FLAG_MAI) {
    print_matrix(text, inst, target);
    return;
  }
  if (inst->format == EMU_VOP3P) print_packed(text, inst);
  print_output(text, inst);
  if (inst->lanes != EMU_LANES_PLAIN) print_dpp(text, inst);
}

static void print_half(struct emu_text *text, const struct emu_isa *target, enum emu_op op,
                       const struct emu_operand *dst, const struct emu_operand *src, bool beside_constant) {
  char name[64];
  const char *mnemonic = emu_isa_mnemonic(target, op, name);  // some are in no other encoding
  emu__print(text, "v_dual_%s ", (mnemonic ? mnemonic : emu_isa_name(op, name)) + 2);
  emu__print_register(text, dst);
  for (int i = 0; i < 3 && src[i].kind; i++) {
    if (src[i].type == EMU_MASK) break;
    emu__print(text, ", ");
    if (i == constant_source(op)) {
      emu__print(text, "0x%x", text->literal);
    } else {
      struct emu_operand source = src[i];
      if (source.literal && beside_constant) source.type = EMU_F32;  // shown in the type of the other half's constant
      emu__print_register(text, &source);
    }
  }
}

size_t emu_isa_print(const struct emu_inst *inst, const struct emu_isa *target, char *at, size_t size) {
  struct emu_text text = {.at = at, .size = size, .literal = inst->literal, .target = target};
  if (size) at[0] = 0;
  if (inst->op == EMU_OP_NONE || inst->op >= EMU_OP_COUNT) {
    emu__print(&text, "<no instruction>");
    return text.length;
  }
  if (inst->format == EMU_VOPD) {
    bool constant = constant_source((enum emu_op)inst->op) >= 0 || constant_source((enum emu_op)inst->y.op) >= 0;
    print_half(&text, target, (enum emu_op)inst->op, &inst->dst, inst->src, constant);
    emu__print(&text, " :: ");
    print_half(&text, target, (enum emu_op)inst->y.op, &inst->y.dst, inst->y.src, constant);
    return text.length;
  }
  print_mnemonic(&text, inst, target);
  switch (inst->format) {
    case EMU_SOP1:
    case EMU_SOP2:
    case EMU_SOPC:
    case EMU_SOPK:
    case EMU_SOPP:
      emu__print_scalar_operands(&text, inst, target);
      break;
    case EMU_VOP1:
    case EMU_VOP2:
    case EMU_VOPC:
    case EMU_VOP3:
    case EMU_VOP3P:
      print_vop(&text, inst, target);
      break;
    default:
      emu__print_memory_operands(&text, inst, target);
      break;
  }
  return text.length;
}
