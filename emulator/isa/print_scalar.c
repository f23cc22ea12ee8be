// Operands of the scalar formats, whose immediates LLVM spells out.
#include "isa/print.h"

static void print_hwreg(struct emu_text *text, unsigned imm, enum emu_target target) {
  static const char *const common[64] = {
      [1] = "MODE",         [2] = "STATUS",  [3] = "TRAPSTS",       [5] = "GPR_ALLOC",
      [6] = "LDS_ALLOC",    [7] = "IB_STS",  [15] = "SH_MEM_BASES", [20] = "FLAT_SCR_LO",
      [21] = "FLAT_SCR_HI", [23] = "HW_ID1", [24] = "HW_ID2",       [29] = "SHADER_CYCLES"};
  static const char *const gfx10[64] = {
      [16] = "TBA_LO", [17] = "TBA_HI", [18] = "TMA_LO", [19] = "TMA_HI", [25] = "POPS_PACKER"};
  static const char *const gfx11[64] = {
      [18] = "PERF_SNAPSHOT_PC_LO", [19] = "PERF_SNAPSHOT_PC_HI", [27] = "PERF_SNAPSHOT_DATA"};
  unsigned id = imm & 63, offset = imm >> 6 & 31, width = (imm >> 11 & 31) + 1;
  const char *name = common[id] ? common[id] : (target == EMU_GFX1030 ? gfx10 : gfx11)[id];
  if (name) {
    emu__print(text, "hwreg(HW_REG_%s", name);
  } else {
    emu__print(text, "hwreg(%u", id);
  }
  if (offset || width != 32) emu__print(text, ", %u, %u", offset, width);
  emu__print(text, ")");
}

static const char *message_name(unsigned id, enum emu_target target) {
  static const char *const gfx10[16] = {NULL,
                                        "MSG_INTERRUPT",
                                        "MSG_GS",
                                        "MSG_GS_DONE",
                                        "MSG_SAVEWAVE",
                                        "MSG_STALL_WAVE_GEN",
                                        "MSG_HALT_WAVES",
                                        "MSG_ORDERED_PS_DONE",
                                        "MSG_EARLY_PRIM_DEALLOC",
                                        "MSG_GS_ALLOC_REQ",
                                        "MSG_GET_DOORBELL",
                                        "MSG_GET_DDID",
                                        NULL,
                                        NULL,
                                        NULL,
                                        "MSG_SYSMSG"};
  static const char *const gfx11[10] = {NULL, "MSG_INTERRUPT",      "MSG_HS_TESSFACTOR", "MSG_DEALLOC_VGPRS",
                                        NULL, "MSG_STALL_WAVE_GEN", "MSG_HALT_WAVES",    NULL,
                                        NULL, "MSG_GS_ALLOC_REQ"};
  static const char *const returning[7] = {"MSG_RTN_GET_DOORBELL", "MSG_RTN_GET_DDID",  "MSG_RTN_GET_TMA",
                                           "MSG_RTN_GET_REALTIME", "MSG_RTN_SAVE_WAVE", "MSG_RTN_GET_TBA",
                                           "MSG_RTN_GET_TBA_TO_PC"};
  if (target == EMU_GFX1030) return id < 16 ? gfx10[id] : NULL;
  if (id >= 128 && id < 135) return returning[id - 128];
  return id < 10 ? gfx11[id] : NULL;
}

static void print_message_gfx10(struct emu_text *text, unsigned imm) {
  static const char *const gs[4] = {"GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"};
  static const char *const system[5] = {NULL, "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD", NULL,
                                        "SYSMSG_OP_TTRACE_PC"};
  unsigned id = imm & 15, op = imm >> 4 & 7, stream = imm >> 8 & 3;
  const char *name = message_name(id, EMU_GFX1030);
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

static void print_message(struct emu_text *text, unsigned imm, enum emu_target target) {
  if (target == EMU_GFX1030) {
    print_message_gfx10(text, imm);
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

static void print_waitcnt(struct emu_text *text, int32_t imm, enum emu_target target) {
  struct emu_waitcnt wait = emu_isa_waitcnt(target, imm);
  bool vm = wait.vm != 63, exp = wait.exp != 7, lgkm = wait.lgkm != 63;
  bool all = !vm && !exp && !lgkm;
  const char *space = "";
  if (vm || all) emu__print(text, "vmcnt(%u)", wait.vm), space = " ";
  if (exp || all) emu__print(text, "%sexpcnt(%u)", space, wait.exp), space = " ";
  if (lgkm || all) emu__print(text, "%slgkmcnt(%u)", space, wait.lgkm);
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

static void print_depctr(struct emu_text *text, unsigned imm) {
  static const struct {
    const char *name;
    uint8_t low, bits;
  } fields[7] = {{"hold_cnt", 7, 1}, {"sa_sdst", 0, 1}, {"va_vdst", 12, 4}, {"va_sdst", 9, 3},
                 {"va_ssrc", 8, 1},  {"va_vcc", 1, 1},  {"vm_vsrc", 2, 3}};
  if (imm & 0x60) {  // no field is there
    emu__print(text, "0x%x", imm);
    return;
  }
  const char *space = "";
  bool all = imm == 0xff9f;  // waits for nothing
  for (int i = 0; i < 7; i++) {
    unsigned most = (1u << fields[i].bits) - 1, value = imm >> fields[i].low & most;
    if (value == most && !all) continue;
    emu__print(text, "%sdepctr_%s(%u)", space, fields[i].name, value);
    space = " ";
  }
}

static void print_sopp(struct emu_text *text, const struct emu_inst *inst, enum emu_target target) {
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
      print_depctr(text, imm);
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
      emu__print(text, "0x%x", imm);
      break;
    case EMU_S_NOP:
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

static void print_sopk(struct emu_text *text, const struct emu_inst *inst, enum emu_target target) {
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
    case EMU_S_SUBVECTOR_LOOP_BEGIN:
    case EMU_S_SUBVECTOR_LOOP_END:
      emu__print(text, "%u", imm);
      break;
    default:
      emu__print(text, "0x%x", imm);
      break;
  }
}

void emu__print_scalar_operands(struct emu_text *text, const struct emu_inst *inst, enum emu_target target) {
  if (inst->format == EMU_SOPP) {
    print_sopp(text, inst, target);
    return;
  }
  if (inst->format == EMU_SOPK) {
    print_sopk(text, inst, target);
    return;
  }
  const char *comma = " ";
  const struct emu_operand *operands[3] = {&inst->dst, &inst->src[0], &inst->src[1]};
  for (int i = 0; i < 3; i++) {
    if (!operands[i]->kind) continue;
    emu__print(text, "%s", comma);
    emu__print_register(text, operands[i]);
    comma = ", ";
  }
  if (inst->op == EMU_S_SENDMSG_RTN_B32 || inst->op == EMU_S_SENDMSG_RTN_B64) {
    emu__print(text, "%s", comma);
    print_message(text, (unsigned)inst->imm, target);
  }
}
