#include "isa/isa_llvm_exceptions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/isa_tables.h"

const char *isa_exception_name(enum isa_exception exception) {
  switch (exception) {
    case ISA_GRAPHICS:
      return "graphics (image, export, interpolation): refused here";
    case ISA_WRONG_REGISTER:
      return "special codes in place of a scalar register: refused here";
    case ISA_UNUSED_SOURCE:
      return "unused source fields: ignored here, refused by LLVM";
    case ISA_HALF_REGISTER:
      return "GFX11 half registers in short encodings, and long v_mov_b16: decoded here, unknown to LLVM 19";
    case ISA_FLAT_OFFSET_TOP:
      return "top bit of a FLAT offset: ignored by the hardware, printed by LLVM";
    case ISA_IGNORED_SIGN:
      return "sign bits of 16-bit integer sources: ignored here, printed as sext() by LLVM";
    case ISA_MOVE_SIGN:
      return "sign bits of v_mov_b16: refused here, ignored by LLVM";
    case ISA_ILLEGAL:
      return "v_illegal, a name for the word 0: refused here";
    case ISA_BAR:
      return "bars of v_cndmask_b32_dpp: closed here before the mask, behind it by LLVM";
    case ISA_SCALAR_STORE:
      return "scalar stores and atomics, DS with a second address: refused here";
    case ISA_VERSION:
      return "s_version: its number, where LLVM spells a sum of names";
    case ISA_IMAGE_ZEROS:
      return "images with v0 for all of the address but its first register: LLVM 19 prints one register";
    case ISA_IMAGE_END:
      return "images whose data or address ends past v255: refused here";
    case ISA_RARE_FORM:
      return "long forms of sums over their register, DPP of doubles, op_sel of a random number, stores from LDS: "
             "refused here";
    default:
      return "none";
  }
}

bool isa_has_high_half(const struct emu_inst *inst) {
  if (inst->op == EMU_V_MOV_B16 && inst->format == EMU_VOP3) return true;  // LLVM 19 knows it among halves only
  bool high = inst->dst.high;
  for (int i = 0; i < 3; i++) high |= inst->src[i].high;
  return high && inst->format != EMU_VOP3 && inst->format != EMU_VOP3P;
}

static bool has_unused_source(const uint32_t *words, const struct emu_inst *inst) {
  if (inst->format == EMU_VOP3 || inst->format == EMU_VOP3P) {
    const uint8_t *type = emu__op_rows[inst->op].type;
    for (int i = 0; i < 3; i++) {
      if (type[i + 1] == EMU_NONE && (words[1] >> 9 * i & 511)) return true;
    }
  }
  if (inst->format == EMU_DS) {
    const uint8_t *type = emu__op_rows[inst->op].type;
    for (int i = 0; i < 3; i++) {
      if (type[i + 1] == EMU_NONE && (words[1] >> 8 * i & 255)) return true;
    }
    return type[0] == EMU_NONE && words[1] >> 24;
  }
  if (inst->format == EMU_VOPD) {
    return (inst->op == EMU_V_MOV_B32 && (words[0] >> 9 & 255)) ||
           (inst->y.op == EMU_V_MOV_B32 && (words[1] >> 9 & 255));
  }
  return false;
}

// The instructions whose sources, or one of them, must be registers: relative and swapping moves, reads of lanes, masks
// and carries, sums of four registers; with DPP, sources on GFX11.
static bool has_source_register(const char *theirs) {
  static const char *const beginnings[] = {"v_swap",         "v_movrel",  "s_movrel",  "v_permlane",   "v_read",
                                           "image_",         "v_mqsad",   "v_cndmask", "v_add_co_ci",  "v_sub_co_ci",
                                           "v_subrev_co_ci", "v_addc_co", "v_subb_co", "v_subbrev_co", "v_mfma"};
  for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++) {
    if (strncmp(theirs, beginnings[i], strlen(beginnings[i])) == 0) return true;
  }
  return strstr(theirs, "_dpp ") != NULL;
}

static bool is_special(const char *operand) {
  operand += strspn(operand, "-|");
  return strncmp(operand, "src_", 4) == 0 || strncmp(operand, "null", 4) == 0;
}

// A special value where a register must stand, first of all where the result goes, or LDS direct reads where there are
// none. Elsewhere a special value is a source like others, and a refusal of it is a mistake of the decoder's.
static bool is_special_register(const struct emu_isa *target, const char *theirs) {
  const char *operand = strchr(theirs, ' ');
  if (!operand) return false;
  operand += strspn(operand, " ");
  if (target->encoding->no_null && strstr(operand, "null")) return true;
  if (target->scratch_in_sgprs && strstr(operand, ":103]")) return true;  // FLAT_SCRATCH as a part of more
  if (is_special(operand) || (!target->encoding->lds_direct && strstr(operand, "src_lds_direct"))) return true;
  if (!has_source_register(theirs)) return false;
  while ((operand = strstr(operand, ", "))) {
    operand += 2;
    if (is_special(operand)) return true;
  }
  return false;
}

static bool flat_offset_differs(const struct emu_isa *target, const uint32_t *words, const char *ours,
                                const char *theirs) {
  const struct emu_flat_fields *f = &target->encoding->flat;
  unsigned top = 1u << (f->offset.bits - 1);
  const char *at = strstr(theirs, " offset:");
  if (!(words[0] & top) || !at) return false;
  char expected[EMU_ISA_TEXT];
  unsigned long offset = strtoul(at + 8, NULL, 10) & (top - 1);
  const char *rest = at + 8 + strspn(at + 8, "0123456789");
  int head = (int)(at - theirs);
  if (offset) {
    snprintf(expected, sizeof(expected), "%.*s offset:%lu%s", head, theirs, offset, rest);
  } else {
    snprintf(expected, sizeof(expected), "%.*s%s", head, theirs, rest);
  }
  return strcmp(expected, ours) == 0;
}

static bool differs_by_sext(const char *ours, const char *theirs) {
  char plain[EMU_ISA_TEXT];
  size_t n = 0;
  bool open = false;
  for (const char *c = theirs; *c && n + 1 < sizeof(plain); c++) {
    if (strncmp(c, "sext(", 5) == 0) {
      open = true;
      c += 4;
    } else if (open && *c == ')') {
      open = false;
    } else {
      plain[n++] = *c;
    }
  }
  plain[n] = 0;
  return strcmp(plain, theirs) != 0 && strcmp(plain, ours) == 0;
}

static bool is_scalar_store(const char *theirs) {
  static const char *const beginnings[] = {"s_store_",         "s_buffer_store_",          "s_scratch_",
                                           "s_atomic_",        "s_buffer_atomic_",         "s_dcache_wb",
                                           "s_dcache_discard", "s_get_waveid_in_workgroup"};
  for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
    if (strncmp(theirs, beginnings[i], strlen(beginnings[i])) == 0) return true;
  return strncmp(theirs, "ds_", 3) == 0 && strstr(theirs, "_src2_");
}

// Long forms of sums over their own register and of conversions of 8-bit floats; DPP of doubles; op_sel of v_cvt_sr_*'s
// second source.
static bool is_rare_form(const char *theirs) {
  if (strncmp(theirs, "v_cvt_sr_", 9) == 0) return true;
  if (strstr(theirs, "_dpp ") && (strstr(theirs, "_f64") || strncmp(theirs, "v_mov_b64", 9) == 0)) return true;
  if (strncmp(theirs, "v_cvt_f32_", 10) == 0 || strncmp(theirs, "v_cvt_pk_f32_", 13) == 0) return true;
  const char *form = strstr(theirs, "_e64 ");
  return form && (strncmp(theirs, "v_dot", 5) == 0 || strncmp(theirs, "v_pk_fmac_f16", 13) == 0);
}

// An image whose data or address is among the last registers: LLVM looks at another number of them than there are.
static bool ends_registers(const char *text) {
  bool last = strstr(text, "v25") || strstr(text, "v[25") || strstr(text, "v[24") || strstr(text, "v24");
  return strncmp(text, "image_", 6) == 0 && last;
}

// Addresses of which all registers but the first are v0.
static bool begins_with_zeros(const struct emu_image_access *im) {
  bool others = false;
  for (unsigned k = 1; k < im->named; k++) others |= im->reg[k] != 0;
  return im->named > 1 && !others;
}

enum isa_exception isa_find_exception(const struct emu_isa *target, const uint32_t *words,
                                      enum emu_decode_status status, const struct emu_inst *inst, const char *ours,
                                      bool accepted, const char *theirs) {
  if (status == EMU_DECODE_GRAPHICS || (accepted && strncmp(theirs, "s_atc_probe", 11) == 0)) return ISA_GRAPHICS;
  if (status == EMU_DECODE_OK && accepted && inst->op == EMU_S_VERSION && strncmp(theirs, "s_version ", 10) == 0)
    return ISA_VERSION;
  if (status == EMU_DECODE_OK && accepted && inst->lanes && inst->format == EMU_VOP3 && differs_by_sext(ours, theirs))
    return ISA_IGNORED_SIGN;
  bool mask = status == EMU_DECODE_OK && accepted && inst->op == EMU_V_CNDMASK_B32 && inst->lanes;
  if (mask && (strstr(theirs, ", vcc|") || strstr(theirs, ", vcc_lo|"))) return ISA_BAR;
  if (status == EMU_DECODE_RESERVED && accepted && strncmp(theirs, "v_mov_b16_dpp", 13) == 0) return ISA_MOVE_SIGN;
  if (status == EMU_DECODE_OPERAND && accepted &&
      (strncmp(theirs, "v_wmma", 6) == 0 || strncmp(theirs, "v_swmmac", 8) == 0 ||
       strncmp(theirs, "v_accvgpr_read", 14) == 0))
    return ISA_WRONG_REGISTER;
  if (status == EMU_DECODE_OPERAND && accepted && ends_registers(theirs)) return ISA_IMAGE_END;
  if (status == EMU_DECODE_OK && !accepted && ends_registers(ours)) return ISA_IMAGE_END;
  if (status == EMU_DECODE_OK && accepted && begins_with_zeros(&inst->image)) return ISA_IMAGE_ZEROS;
  if (status == EMU_DECODE_OPCODE && accepted && strcmp(theirs, "v_illegal") == 0) return ISA_ILLEGAL;
  if (status == EMU_DECODE_OPCODE && accepted && is_scalar_store(theirs)) return ISA_SCALAR_STORE;
  if (status == EMU_DECODE_OPCODE && accepted && strncmp(theirs, "buffer_store_lds_dword", 22) == 0)
    return ISA_RARE_FORM;
  bool rare = target->encoding->sums_long && status != EMU_DECODE_OK;
  if (rare && accepted && is_rare_form(theirs)) return ISA_RARE_FORM;
  if (status == EMU_DECODE_OPERAND && accepted && is_special_register(target, theirs)) return ISA_WRONG_REGISTER;
  if (status == EMU_DECODE_OK) {
    if (has_unused_source(words, inst) && !accepted) return ISA_UNUSED_SOURCE;
    if (isa_has_high_half(inst) && !accepted) return ISA_HALF_REGISTER;
  }
  if (status == EMU_DECODE_OK && accepted && inst->format == EMU_FLAT &&
      flat_offset_differs(target, words, ours, theirs)) {
    return ISA_FLAT_OFFSET_TOP;
  }
  return ISA_NO_EXCEPTION;
}
