// Operands of the memory formats.
#include "isa/print.h"

static void print_list(struct emu_text *text, const struct emu_operand *operand, const char **comma) {
  if (!operand->kind) return;
  emu__print(text, "%s", *comma);
  emu__print_register(text, operand);
  *comma = ", ";
}

static bool writes(const struct emu_inst *inst) {
  const struct emu_op_row *row = &emu__op_rows[inst->op];
  return !row->type[0] && row->type[2] && inst->format != EMU_SMEM;
}

// The temporal hint and the scope, which take the place of glc, slc and dlc.
static void print_temporal(struct emu_text *text, const struct emu_inst *inst) {
  static const char *const scopes[4] = {"", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"};
  static const char *const atomics[4] = {"", "RETURN", "NT", "NT_RETURN"};
  static const char *const hints[8] = {"", "NT", "HT", "", "NT_RT", "RT_NT", "NT_HT", "NT_WB"};
  enum { SYSTEM = 3, DEVICE = 2 };
  unsigned hint = inst->temporal;
  bool store = writes(inst);
  if (hint && emu__op_rows[inst->op].flags & EMU_FLAG_ATOMIC) {
    if (hint < 4) {
      emu__print(text, " th:TH_ATOMIC_%s", atomics[hint]);
    } else if (inst->scope < DEVICE) {
      emu__print(text, " th:TH_ATOMIC_0x%x", hint);
    } else {
      emu__print(text, " th:TH_ATOMIC_CASCADE_%s", hint & 2 ? "NT" : "RT");
    }
  } else if (hint == 7 && !store) {
    emu__print(text, " th:0x7");
  } else if (hint) {
    const char *name = hint != 3 ? hints[hint] : inst->scope == SYSTEM ? "BYPASS" : store ? "RT_WB" : "LU";
    emu__print(text, " th:TH_%s_%s", store ? "STORE" : "LOAD", name);
  }
  emu__print(text, "%s", scopes[inst->scope & 3]);
}

static void print_cache(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  if (target->encoding->flat.temporal.bits) {
    print_temporal(text, inst);
    return;
  }
  const char *const *names = target->encoding->cache_names;
  if (names[0] && inst->format != EMU_SMEM) {
    const bool set[3] = {inst->glc, inst->slc, inst->dlc};
    for (int k = 0; k < 3; k++)
      if (set[k]) emu__print(text, " %s", names[k]);
    return;
  }
  emu__print(text, "%s%s%s", inst->glc ? " glc" : "", inst->slc ? " slc" : "", inst->dlc ? " dlc" : "");
}

static void print_smem(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  const char *comma = " ";
  print_list(text, &inst->dst, &comma);
  if (!emu__op_rows[inst->op].type[2]) return;
  print_list(text, &inst->src[0], &comma);
  unsigned imm = (unsigned)inst->imm;
  const char *sign = inst->imm < 0 ? "-" : "";
  if (inst->imm < 0) imm = -imm;
  if (emu__op_rows[inst->op].flags & EMU_FLAG_PREFETCH) {
    emu__print(text, "%s%s0x%x, ", comma, sign, imm);
    if (inst->src[1].kind) {
      emu__print_register(text, &inst->src[1]);
    } else {
      emu__print(text, "null");
    }
    emu__print(text, ", %u", inst->prefetch);
    return;
  }
  bool always = target->encoding->smem.offset_shown || target->encoding->smem.immediate.bits;
  bool shown = !inst->no_offset && (imm || always);
  if (!inst->src[1].kind && !shown) {
    emu__print(text, ", null");
  } else if (!inst->src[1].kind) {
    emu__print(text, ", %s0x%x", sign, imm);
  } else {
    print_list(text, &inst->src[1], &comma);
    if (shown) emu__print(text, " offset:%s0x%x", sign, imm);
  }
  print_cache(text, inst, target);
}

// The modes of ds_swizzle_b32: fixed lanes of a quad, or and/or/xor masks over 32 lanes, which have short names where
// they swap, reverse or broadcast.
static void print_swizzle(struct emu_text *text, unsigned imm) {
  unsigned and = imm & 31, or = imm >> 5 & 31, xor = imm >> 10 & 31;
  unsigned group = 32 - and;
  emu__print(text, " offset:");
  if ((imm & 0xff00) == 0x8000) {
    emu__print(text, "swizzle(QUAD_PERM,%u,%u,%u,%u)", imm & 3, imm >> 2 & 3, imm >> 4 & 3, imm >> 6 & 3);
  } else if (imm & 0x8000) {
    emu__print(text, "%u", imm);
  } else if (and== 31 && or == 0 && xor&&!(xor&(xor-1))) {
    emu__print(text, "swizzle(SWAP,%u)", xor);
  } else if (and== 31 && or == 0 && xor&&!(xor&(xor+1))) {
    emu__print(text, "swizzle(REVERSE,%u)", xor+1);
  } else if (group > 1 && !(group & (group - 1)) && or < group && xor== 0) {
    emu__print(text, "swizzle(BROADCAST,%u,%u)", group, or);
  } else {
    unsigned from0 = or ^ xor, from1 = (and| or) ^ xor;
    char mask[6] = {0};
    for (unsigned i = 0; i < 5; i++) {
      unsigned bit = 4 - i, zero = from0 >> bit & 1, one = from1 >> bit & 1;
      mask[i] = zero == one ? (zero ? '1' : '0') : zero ? 'i' : 'p';
    }
    emu__print(text, "swizzle(BITMASK_PERM,\"%s\")", mask);
  }
}

static void print_ds(struct emu_text *text, const struct emu_inst *inst) {
  const char *comma = " ";
  print_list(text, &inst->dst, &comma);
  for (int i = 0; i < 3; i++) print_list(text, &inst->src[i], &comma);
  unsigned imm = (unsigned)inst->imm;
  if (emu__op_rows[inst->op].flags & EMU_FLAG_PAIR) {
    if (imm & 255) emu__print(text, " offset0:%u", imm & 255);
    if (imm >> 8) emu__print(text, " offset1:%u", imm >> 8);
  } else if (imm && inst->op == EMU_DS_SWIZZLE_B32) {
    print_swizzle(text, imm);
  } else if (imm) {
    emu__print(text, " offset:%u", imm);
  }
  if (inst->gds) emu__print(text, " gds");
}

static void print_flat(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  const char *comma = " ";
  print_list(text, &inst->dst, &comma);
  if (emu__op_rows[inst->op].type[1]) {
    emu__print(text, "%s", comma);
    emu__print_register(text, &inst->src[0]);
    comma = ", ";
  }
  print_list(text, &inst->src[1], &comma);
  if (!comma[1]) {  // a cache operation
    print_cache(text, inst, target);
    return;
  }
  if (inst->format != EMU_FLAT) {
    emu__print(text, ", ");
    emu__print_register(text, &inst->src[2]);
  }
  if (inst->imm) emu__print(text, " offset:%d", inst->imm);
  print_cache(text, inst, target);
  if (inst->lds) emu__print(text, " lds");
}

static unsigned word_length(const char *word) {
  unsigned n = 0;
  while (word[n] && word[n] != ' ') n++;
  return n;
}

// A data format of a typed buffer, BUF_FMT_<layout>_<kind>.
static void print_format(struct emu_text *text, unsigned number, const struct emu_isa *target) {
  if (target->encoding->number_formats) {
    unsigned data = number & 15, kind = number >> 4;  // two fields
    if (number == 1) return;
    emu__print(text, " format:[");
    if (data != 1) emu__print(text, "BUF_DATA_FORMAT_%s%s", target->encoding->buffer_formats[data], kind ? "," : "");
    if (kind) emu__print(text, "BUF_NUM_FORMAT_%s", target->encoding->number_formats[kind]);
    emu__print(text, "]");
    return;
  }
  if (number == 1) return;  // 8_UNORM is what LLVM leaves out
  if (number == 0) {
    emu__print(text, " format:[BUF_FMT_INVALID]");
    return;
  }
  unsigned at = 1;
  for (const char *const *row = target->encoding->buffer_formats; *row; row++) {
    int layout = (int)word_length(*row);
    for (const char *kind = *row + layout; *kind; at++) {
      kind++;
      int length = (int)word_length(kind);
      if (at == number) {
        emu__print(text, " format:[BUF_FMT_%.*s_%.*s]", layout, *row, length, kind);
        return;
      }
      kind += length;
    }
  }
  emu__print(text, " format:%u", number);
}

static void print_buffer(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  if (!emu__op_rows[inst->op].type[1]) {
    if (inst->op == EMU_BUFFER_WBL2 || inst->op == EMU_BUFFER_INV) print_cache(text, inst, target);
    return;
  }
  const char *comma = " ";
  print_list(text, inst->src[1].kind ? &inst->src[1] : &inst->dst, &comma);
  emu__print(text, "%s", comma);
  emu__print_register(text, &inst->src[0]);
  comma = ", ";
  print_list(text, &inst->src[2], &comma);
  print_list(text, &inst->src[3], &comma);
  if (inst->format == EMU_MTBUF) print_format(text, inst->buffer_format, target);
  emu__print(text, "%s%s", inst->idxen ? " idxen" : "", inst->offen ? " offen" : "");
  if (inst->imm) emu__print(text, " offset:%d", inst->imm);
  print_cache(text, inst, target);
  emu__print(text, "%s%s", inst->tfe ? " tfe" : "", inst->lds ? " lds" : "");
}

static void print_image(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  static const char *const dims[] = {"1D", "2D", "3D", "CUBE", "1D_ARRAY", "2D_ARRAY"};
  const struct emu_image_access *im = &inst->image;
  unsigned named = im->named ? im->named : 1;
  bool listed = target->encoding->image[0].slots == 1 && named > 1 && inst->src[3].kind;
  const char *comma = listed ? "  " : " ";  // as LLVM has it
  print_list(text, inst->src[1].kind ? &inst->src[1] : &inst->dst, &comma);
  emu__print(text, ", %s", named > 1 ? "[" : "");
  for (unsigned k = 0; k < named; k++) {
    unsigned dwords = k + 1 == named ? im->words - k : 1;
    if (k) emu__print(text, ", ");
    emu__print_register(text,
                        &(struct emu_operand){
                            .kind = EMU_OPERAND_VECTOR, .type = EMU_B32, .dwords = (uint8_t)dwords, .reg = im->reg[k]});
  }
  if (named > 1) emu__print(text, "]");
  print_list(text, &inst->src[2], &comma);
  print_list(text, &inst->src[3], &comma);
  emu__print(text, " dmask:0x%x dim:SQ_RSRC_IMG_%s%s", im->dmask, dims[im->dim], im->unorm ? " unorm" : "");
  print_cache(text, inst, target);
  emu__print(text, "%s%s", im->a16 ? " a16" : "", im->d16 ? " d16" : "");
}

void emu__print_memory_operands(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  switch (inst->format) {
    case EMU_SMEM:
      print_smem(text, inst, target);
      break;
    case EMU_DS:
      print_ds(text, inst);
      break;
    case EMU_FLAT:
    case EMU_GLOBAL:
    case EMU_SCRATCH:
      print_flat(text, inst, target);
      break;
    case EMU_MUBUF:
    case EMU_MTBUF:
      print_buffer(text, inst, target);
      break;
    case EMU_MIMG:
      print_image(text, inst, target);
      break;
    case EMU_LDSDIR:
      emu__print(text, " ");
      emu__print_register(text, &inst->dst);
      if (target->encoding->ldsdir_vsrc) {
        emu__print(text, " wait_va_vdst:%u wait_vm_vsrc:%u", inst->wait_vdst, inst->wait_vsrc);
      } else {
        emu__print(text, " wait_vdst:%u", inst->wait_vdst);
      }
      break;
    default:
      break;
  }
}
