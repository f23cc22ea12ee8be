// Operands of the scalar formats, whose immediates LLVM spells out.
#include "isa/print.h"

static void print_hwreg(struct emu_text *text, unsigned imm, const struct emu_isa *target) {
  unsigned id = imm & 63, offset = imm >> 6 & 31, width = (imm >> 11 & 31) + 1;
  const char *name = target->encoding->hwregs[id];
  if (name) {
    emu__print(text, "hwreg(HW_REG_%s", name);
  } else {
    emu__print(text, "hwreg(%u", id);
  }
  if (offset || width != 32) emu__print(text, ", %u, %u", offset, width);
  emu__print(text, ")");
}

static const char *message_name(unsigned id, const struct emu_isa *target) {
  static const char *const returning[8] = {"MSG_RTN_GET_DOORBELL",  "MSG_RTN_GET_DDID",     "MSG_RTN_GET_TMA",
                                           "MSG_RTN_GET_REALTIME",  "MSG_RTN_SAVE_WAVE",    "MSG_RTN_GET_TBA",
                                           "MSG_RTN_GET_TBA_TO_PC", "MSG_RTN_GET_SE_AID_ID"};
  if (id < 16) return target->encoding->messages[id];
  return id >= 128 && id < 128u + target->encoding->returning_messages ? returning[id - 128] : NULL;
}

// Messages that have an operation and a stream beside their number.
static void print_message_fields(struct emu_text *text, unsigned imm, const struct emu_isa *target) {
  static const char *const gs[4] = {"GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"};
  static const char *const system[5] = {NULL, "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD", NULL,
                                        "SYSMSG_OP_TTRACE_PC"};
  unsigned id = imm & 15, op = imm >> 4 & 7, stream = imm >> 8 & 3;
  const char *name = message_name(id, target);
  if ((id == 2 || id == 3) && op < 4 && (op ? true : id == 3 && stream == 0)) {
    emu__print(text, "sendmsg(%s, %s", name, gs[op]);
    if (op) emu__print(text, ", %u", stream);
    emu__print(text, ")");
  } else if (id == 15 && op < 5 && system[op] && stream == 0) {
    emu__print(text, "sendmsg(%s, %s)", name, system[op]);
  } else if (name && id != 2 && id != 3 && id != 15 && op == 0 && stream == 0) {
    emu__print(text, "sendmsg(%s)", name);
  } else if (imm & ~0x37fu) {  // the other bits keep a number from being read as fields, but not a name
    emu__print(text, "%u", imm);
  } else {
    emu__print(text, "sendmsg(%u, %u, %u)", id, op, stream);
  }
}

static void print_message(struct emu_text *text, unsigned imm, const struct emu_isa *target) {
  if (target->encoding->message_operations) {
    print_message_fields(text, imm, target);
    return;
  }
  const char *name = message_name(imm & 255, target);
  if (name) {
    emu__print(text, "sendmsg(%s)", name);
  } else if (imm > 255) {
    emu__print(text, "%u", imm);
  } else {
    emu__print(text, "sendmsg(%u, 0, 0)", imm);
  }
}

static void print_waitcnt(struct emu_text *text, int32_t imm, const struct emu_isa *target) {
  struct emu_waitcnt wait = emu_isa_waitcnt(target, imm);
  bool vm = wait.vm != 63, exp = wait.exp != 7, lgkm = wait.lgkm != (1u << target->encoding->lgkm.bits) - 1;
  bool all = !vm && !exp && !lgkm;
  const char *space = "";
  if (vm || all) emu__print(text, "vmcnt(%u)", wait.vm), space = " ";
  if (exp || all) emu__print(text, "%sexpcnt(%u)", space, wait.exp), space = " ";
  if (lgkm || all) emu__print(text, "%slgkmcnt(%u)", space, wait.lgkm);
}

static void print_index_mode(struct emu_text *text, unsigned imm) {
  static const char *const names[4] = {"SRC0", "SRC1", "SRC2", "DST"};
  if (imm > 15) {
    emu__print(text, "0x%x", imm);
    return;
  }
  const char *comma = "";
  emu__print(text, "gpr_idx(");
  for (unsigned i = 0; i < 4; i++) {
    if (!(imm >> i & 1)) continue;
    emu__print(text, "%s%s", comma, names[i]);
    comma = ",";
  }
  emu__print(text, ")");
}

static void print_delay_id(struct emu_text *text, const char *name, unsigned id) {
  static const char *const ids[12] = {"",
                                      "VALU_DEP_1",
                                      "VALU_DEP_2",
                                      "VALU_DEP_3",
                                      "VALU_DEP_4",
                                      "TRANS32_DEP_1",
                                      "TRANS32_DEP_2",
                                      "TRANS32_DEP_3",
                                      "FMA_ACCUM_CYCLE_1",
                                      "SALU_CYCLE_1",
                                      "SALU_CYCLE_2",
                                      "SALU_CYCLE_3"};
  emu__print(text, "%s(%s)", name, id < 12 ? ids[id] : "/* invalid instid value */");
}

static void print_delay(struct emu_text *text, unsigned imm) {
  static const char *const skips[6] = {"SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"};
  unsigned first = imm & 15, skip = imm >> 4 & 7, second = imm >> 7 & 15;
  const char *bar = "";
  if (first) print_delay_id(text, "instid0", first), bar = " | ";
  if (skip) {
    emu__print(text, "%sinstskip(%s)", bar, skip < 6 ? skips[skip] : "/* invalid instskip value */");
    bar = " | ";
  }
  if (second) {
    emu__print(text, "%s", bar);
    print_delay_id(text, "instid1", second);
  }
  if (!first && !skip && !second) emu__print(text, "0");
}

static void print_depctr(struct emu_text *text, unsigned imm, bool holds) {
  static const struct {
    const char *name;
    uint8_t low, bits;
  } fields[7] = {{"hold_cnt", 7, 1}, {"sa_sdst", 0, 1}, {"va_vdst", 12, 4}, {"va_sdst", 9, 3},
                 {"va_ssrc", 8, 1},  {"va_vcc", 1, 1},  {"vm_vsrc", 2, 3}};
  if (imm & (holds ? 0x60 : 0xe0)) {  // no field is there
    emu__print(text, "0x%x", imm);
    return;
  }
  const char *space = "";
  bool all = imm == (holds ? 0xff9f : 0xff1f);  // waits for nothing
  for (int i = holds ? 0 : 1; i < 7; i++) {
    unsigned most = (1u << fields[i].bits) - 1, value = imm >> fields[i].low & most;
    if (value == most && !all) continue;
    emu__print(text, "%sdepctr_%s(%u)", space, fields[i].name, value);
    space = " ";
  }
}

static void print_sopp(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  unsigned imm = (uint16_t)inst->imm;
  if (emu__sopp_is_bare(inst->op)) return;
  switch (inst->op) {
    case EMU_S_ENDPGM:
      if (imm) emu__print(text, " %u", imm);
      return;
    default:
      break;
  }
  emu__print(text, " ");
  switch (inst->op) {
    case EMU_S_WAITCNT:
      print_waitcnt(text, inst->imm, target);
      break;
    case EMU_S_WAITCNT_DEPCTR:
      print_depctr(text, imm, target->encoding->depctr_holds);
      break;
    case EMU_S_SET_GPR_IDX_MODE:
      print_index_mode(text, imm);
      break;
    case EMU_S_DELAY_ALU:
      print_delay(text, imm);
      break;
    case EMU_S_SENDMSG:
    case EMU_S_SENDMSGHALT:
      print_message(text, imm, target);
      break;
    case EMU_S_CLAUSE:
    case EMU_S_SET_INST_PREFETCH_DISTANCE:
    case EMU_S_ROUND_MODE:
    case EMU_S_WAIT_EVENT:
    case EMU_S_TTRACEDATA_IMM:
    case EMU_S_SINGLEUSE_VDST:
    case EMU_S_WAIT_LOADCNT:
    case EMU_S_WAIT_STORECNT:
    case EMU_S_WAIT_SAMPLECNT:
    case EMU_S_WAIT_BVHCNT:
    case EMU_S_WAIT_EXPCNT:
    case EMU_S_WAIT_DSCNT:
    case EMU_S_WAIT_KMCNT:
    case EMU_S_WAIT_LOADCNT_DSCNT:
    case EMU_S_WAIT_STORECNT_DSCNT:
      emu__print(text, "0x%x", imm);
      break;
    case EMU_S_NOP:
    case EMU_S_BARRIER_WAIT:
    case EMU_S_SLEEP:
    case EMU_S_SETKILL:
    case EMU_S_SETHALT:
    case EMU_S_SETPRIO:
    case EMU_S_TRAP:
    case EMU_S_DENORM_MODE:
    case EMU_S_INCPERFLEVEL:
    case EMU_S_DECPERFLEVEL:
      emu__print(text, imm <= 64 ? "%u" : "0x%x", imm);
      break;
    default:
      emu__print(text, "%u", imm);
      break;  // branches, in words
  }
}

static void print_sopk(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  unsigned imm = (uint16_t)inst->imm;
  emu__print(text, " ");
  if (inst->op == EMU_S_SETREG_B32 || inst->op == EMU_S_SETREG_IMM32_B32) {
    print_hwreg(text, imm, target);
    emu__print(text, ", ");
    emu__print_register(text, &inst->src[0]);
    return;
  }
  const struct emu_operand *reg = inst->dst.kind ? &inst->dst : &inst->src[0];
  if (reg->kind) {
    emu__print_register(text, reg);
    emu__print(text, ", ");
  }
  switch (inst->op) {
    case EMU_S_GETREG_B32:
      print_hwreg(text, imm, target);
      break;
    case EMU_S_CALL_B64:
    case EMU_S_CBRANCH_I_FORK:
    case EMU_S_SUBVECTOR_LOOP_BEGIN:
    case EMU_S_SUBVECTOR_LOOP_END:
      emu__print(text, "%u", imm);
      break;
    default:
      emu__print(text, "0x%x", imm);
      break;
  }
}

void emu__print_scalar_operands(struct emu_text *text, const struct emu_inst *inst, const struct emu_isa *target) {
  if (inst->format == EMU_SOPP) {
    print_sopp(text, inst, target);
    return;
  }
  if (inst->format == EMU_SOPK) {
    print_sopk(text, inst, target);
    return;
  }
  const char *comma = " ";
  const struct emu_operand *operands[4] = {&inst->dst, &inst->src[0], &inst->src[1], &inst->src[2]};
  int constant = inst->op == EMU_S_FMAMK_F32 ? 2 : inst->op == EMU_S_FMAAK_F32 ? 3 : -1;  // the literal by the opcode
  for (int i = 0; i < 4; i++) {
    if (!operands[i]->kind) continue;
    emu__print(text, "%s", comma);
    if (i == constant) {
      emu__print(text, "0x%x", text->literal);
    } else {
      struct emu_operand shown = *operands[i];
      if (inst->format == EMU_SOP1 && shown.literal && shown.type == EMU_F16) shown.type = EMU_B32;
      emu__print_register(text, &shown);
    }
    comma = ", ";
  }
  if (inst->op == EMU_S_SET_GPR_IDX_ON) {
    emu__print(text, ", ");
    print_index_mode(text, (unsigned)inst->imm);
  }
  if (inst->op == EMU_S_SENDMSG_RTN_B32 || inst->op == EMU_S_SENDMSG_RTN_B64) {
    emu__print(text, "%s", comma);
    print_message(text, (unsigned)inst->imm, target);
  }
}
