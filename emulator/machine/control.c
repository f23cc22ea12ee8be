// Branches, barriers, waits, MODE and hardware registers, messages, the end.
#include "machine/schedule.h"

static void jump(struct emu_wave *w, uint64_t offset) {
  w->next = emu__program_step(w->group->run->program, w->group->run->step_set, offset);
}

// Relative to the instruction behind this one, in words.
static void branch(struct emu_wave *w, const struct emu_step *step) {
  int64_t at = (int64_t)emu__step_offset(w, step) + step->words * 4 + (int64_t)step->inst->imm * 4;
  jump(w, (uint64_t)at);
}
#define BRANCH(name, condition)                                       \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    if (condition) branch(w, step);                                   \
  }
static bool vcc_zero(const struct emu_wave *w) { return !(w->s[EMU_VCC_LO] | (w->lanes == 64 ? w->s[EMU_VCC_HI] : 0)); }
BRANCH(S_BRANCH, true)
BRANCH(S_CBRANCH_SCC0, !w->scc)
BRANCH(S_CBRANCH_SCC1, w->scc)
BRANCH(S_CBRANCH_VCCZ, vcc_zero(w))
BRANCH(S_CBRANCH_VCCNZ, !vcc_zero(w))
BRANCH(S_CBRANCH_EXECZ, !emu__wave_exec(w))
BRANCH(S_CBRANCH_EXECNZ, emu__wave_exec(w))
BRANCH(no_debugger, false)

static uint64_t pc_after(const struct emu_wave *w, const struct emu_step *step) {
  return emu__program_address(w->group->run->program) + emu__step_offset(w, step) + step->words * 4;
}
static void jump_to(struct emu_wave *w, uint64_t address) {
  jump(w, address - emu__program_address(w->group->run->program));
}
static void S_GETPC_B64(struct emu_wave *w, const struct emu_step *step) {
  emu__scalar_write64(w, step->inst->dst.reg, pc_after(w, step));
}
static void S_SETPC_B64(struct emu_wave *w, const struct emu_step *step) {
  jump_to(w, emu__scalar_read64(w, &step->inst->src[0]));
}
static void S_SWAPPC_B64(struct emu_wave *w, const struct emu_step *step) {
  uint64_t to = emu__scalar_read64(w, &step->inst->src[0]);
  emu__scalar_write64(w, step->inst->dst.reg, pc_after(w, step));
  jump_to(w, to);
}
static void S_CALL_B64(struct emu_wave *w, const struct emu_step *step) {
  emu__scalar_write64(w, step->inst->dst.reg, pc_after(w, step));
  branch(w, step);
}

static void nothing(struct emu_wave *w, const struct emu_step *step) {
  (void)w;
  (void)step;
}

// A wave that sleeps waits for another: the others get their turn now.
static void S_SLEEP(struct emu_wave *w, const struct emu_step *step) {
  (void)step;
  w->sleeping = 1;
  emu__wave_stop(w);
}

static void S_ENDPGM(struct emu_wave *w, const struct emu_step *step) { emu__wave_end(w, step); }
static void S_BARRIER(struct emu_wave *w, const struct emu_step *step) { emu__wave_barrier(w, step); }
enum { BARRIER_OF_GROUP = -1 };  // the others are named ones, and those of trap handlers

static bool is_group_barrier(struct emu_wave *w, const struct emu_step *step, int32_t which) {
  if (which == BARRIER_OF_GROUP) return true;
  emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Barrier %d is not one that the emulator has.", which);
  return false;
}
static void S_BARRIER_SIGNAL(struct emu_wave *w, const struct emu_step *step) {
  if (is_group_barrier(w, step, (int32_t)emu__scalar_read(w, &step->inst->src[0]))) emu__wave_signal(w, step);
}
static void S_BARRIER_SIGNAL_ISFIRST(struct emu_wave *w, const struct emu_step *step) {
  bool first = !w->group->waiting;
  S_BARRIER_SIGNAL(w, step);
  w->scc = first;
}
static void S_GET_BARRIER_STATE(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_group *group = w->group;
  if (!is_group_barrier(w, step, (int32_t)emu__scalar_read(w, &step->inst->src[0]))) return;
  // valid, how many waves take part, how many have come
  emu__scalar_write(w, step->inst->dst.reg, 1 | (group->waves - group->ended) << 4 | group->waiting << 16);
}
static void S_BARRIER_WAIT(struct emu_wave *w, const struct emu_step *step) {
  if (is_group_barrier(w, step, step->inst->imm)) emu__wave_await(w, step);
}
static void S_TRAP(struct emu_wave *w, const struct emu_step *step) {
  emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "The kernel trapped with code %d (2 is an assertion or abort).",
                 step->inst->imm & 0xff);
}
static void S_SETHALT(struct emu_wave *w, const struct emu_step *step) {
  if (step->inst->imm & 1) emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "The kernel halted itself.");
}
static void S_CODE_END(struct emu_wave *w, const struct emu_step *step) {
  emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "The wave ran past the end of the kernel's code.");
}

// ---- MODE

static void S_DENORM_MODE(struct emu_wave *w, const struct emu_step *step) {
  emu__wave_set_mode(w, (w->mode & ~0xf0u) | ((uint32_t)step->inst->imm & 15) << 4);
}
static void S_ROUND_MODE(struct emu_wave *w, const struct emu_step *step) {
  emu__wave_set_mode(w, (w->mode & ~0xfu) | ((uint32_t)step->inst->imm & 15));
}

enum {
  HW_MODE = 1,
  HW_STATUS = 2,
  HW_TRAPSTS = 3,
  HW_ID = 4,
  HW_SH_MEM_BASES = 15,
  HW_XCC_ID = 20,  // of gfx942, where GFX10 and later have the next
  HW_FLAT_SCR_LO = 20,
  HW_FLAT_SCR_HI = 21,
  HW_XNACK_MASK = 22,
  HW_ID1 = 23,
  HW_ID2 = 24,
  HW_SHADER_CYCLES = 29
};

// What GFX9 has besides: where a wave runs. All are on the first compute unit, in turn on its SIMDs.
static bool read_place(const struct emu_wave *w, unsigned id, uint32_t *value) {
  *value = id == HW_ID ? (w->index / 4 & 15) | (w->index & 3) << 4 : 0;
  return id == HW_ID || (id == HW_XCC_ID && w->group->run->target->xcc_id);
}

static bool read_register(const struct emu_wave *w, unsigned id, uint32_t *value) {
  bool common = id == HW_MODE || id == HW_STATUS || id == HW_TRAPSTS || id == HW_SH_MEM_BASES;
  if (!common && w->group->run->target->scratch_in_sgprs) return read_place(w, id, value);
  switch (id) {
    case HW_MODE:
      *value = emu__wave_mode(w);
      return true;
    case HW_STATUS:
      *value = w->scc | (uint32_t)!emu__wave_exec(w) << 9 | (uint32_t)vcc_zero(w) << 10;
      return true;
    case HW_TRAPSTS:
      *value = 0;
      return true;
    case HW_SH_MEM_BASES:
      *value = EMU_PRIVATE_APERTURE >> 16 | EMU_SHARED_APERTURE;
      return true;
    case HW_FLAT_SCR_LO:
      *value = (uint32_t)w->flat_scratch;
      return true;
    case HW_FLAT_SCR_HI:
      *value = (uint32_t)(w->flat_scratch >> 32);
      return true;
    case HW_ID1:
    case HW_ID2:
      *value = w->index;
      return true;
    case HW_SHADER_CYCLES:
      *value = (uint32_t)emu__clock() & 0xfffff;
      return true;
    default:
      return false;
  }
}
static void S_GETREG_B32(struct emu_wave *w, const struct emu_step *step) {
  unsigned imm = (unsigned)step->inst->imm, size = (imm >> 11 & 31) + 1;
  uint32_t value;
  if (!read_register(w, imm & 63, &value)) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Hardware register %u is not one that the emulator has.",
                   imm & 63);
    return;
  }
  value >>= imm >> 6 & 31;
  emu__scalar_write(w, step->inst->dst.reg, size == 32 ? value : value & ((1u << size) - 1));
}
static void set_register(struct emu_wave *w, const struct emu_step *step, uint32_t value) {
  unsigned imm = (unsigned)step->inst->imm, id = imm & 63, at = imm >> 6 & 31, size = (imm >> 11 & 31) + 1;
  uint32_t mask = (size == 32 ? UINT32_MAX : (1u << size) - 1) << at, old = 0;
  bool scratch = (id == HW_FLAT_SCR_LO || id == HW_FLAT_SCR_HI) && !w->group->run->target->scratch_in_sgprs;
  bool known = id == HW_MODE || id == HW_TRAPSTS || scratch;
  if (!known || !read_register(w, id, &old)) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Hardware register %u cannot be written on the emulator.", id);
    return;
  }
  value = (old & ~mask) | (value << at & mask);
  if (id == HW_MODE) emu__wave_set_mode(w, value);
  if (id == HW_FLAT_SCR_LO) w->flat_scratch = (w->flat_scratch & ~(uint64_t)UINT32_MAX) | value;
  if (id == HW_FLAT_SCR_HI) w->flat_scratch = (w->flat_scratch & UINT32_MAX) | (uint64_t)value << 32;
}
static void S_SETREG_B32(struct emu_wave *w, const struct emu_step *step) {
  set_register(w, step, emu__scalar_read(w, &step->inst->src[0]));
}

// ---- messages

enum { MESSAGE_DEALLOC_VGPRS = 3, MESSAGE_INTERRUPT = 1, MESSAGE_RTN_DOORBELL = 128, MESSAGE_RTN_REALTIME = 131 };

static void S_SENDMSG(struct emu_wave *w, const struct emu_step *step) {
  unsigned id = (unsigned)step->inst->imm & 0xff;
  const struct emu_dispatch *d = w->group->run->dispatch;
  if (id == MESSAGE_INTERRUPT && d->interrupt) d->interrupt(d->interrupt_context);
  if (id == MESSAGE_INTERRUPT || (id == MESSAGE_DEALLOC_VGPRS && w->group->run->target->message_dealloc)) return;
  emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Message %u is not one that the emulator answers.", id);
}
static void S_SENDMSG_RTN_B32(struct emu_wave *w, const struct emu_step *step) {
  unsigned id = (unsigned)step->inst->imm & 0xff;
  if (id == MESSAGE_RTN_DOORBELL) {
    emu__scalar_write(w, step->inst->dst.reg, 0);  // what a trap handler would want; there is no handler
  } else {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Message %u is not one that the emulator answers.", id);
  }
}
static void S_SENDMSG_RTN_B64(struct emu_wave *w, const struct emu_step *step) {
  unsigned id = (unsigned)step->inst->imm & 0xff;
  if (id == MESSAGE_RTN_REALTIME) {
    emu__scalar_write64(w, step->inst->dst.reg, emu__clock());
  } else {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Message %u is not one that the emulator answers.", id);
  }
}
static void clock_read(struct emu_wave *w, const struct emu_step *step) {
  emu__scalar_write64(w, step->inst->dst.reg, emu__clock());
}

#define ROW(name, what, function) {.op = EMU_##name, .klass = EMU_CLASS_##what, .run = function}
#define IDLE(name) {.op = EMU_##name, .klass = EMU_CLASS_WAIT, .run = nothing, .straight = true}
const struct emu_action emu__control_actions[] = {ROW(S_BRANCH, BRANCH, S_BRANCH),
                                                  ROW(S_CBRANCH_SCC0, BRANCH, S_CBRANCH_SCC0),
                                                  ROW(S_CBRANCH_SCC1, BRANCH, S_CBRANCH_SCC1),
                                                  ROW(S_CBRANCH_VCCZ, BRANCH, S_CBRANCH_VCCZ),
                                                  ROW(S_CBRANCH_VCCNZ, BRANCH, S_CBRANCH_VCCNZ),
                                                  ROW(S_CBRANCH_EXECZ, BRANCH, S_CBRANCH_EXECZ),
                                                  ROW(S_CBRANCH_EXECNZ, BRANCH, S_CBRANCH_EXECNZ),
                                                  ROW(S_CBRANCH_CDBGSYS, BRANCH, no_debugger),
                                                  ROW(S_CBRANCH_CDBGUSER, BRANCH, no_debugger),
                                                  ROW(S_CBRANCH_CDBGSYS_OR_USER, BRANCH, no_debugger),
                                                  ROW(S_CBRANCH_CDBGSYS_AND_USER, BRANCH, no_debugger),
                                                  ROW(S_GETPC_B64, SALU, S_GETPC_B64),
                                                  ROW(S_SETPC_B64, BRANCH, S_SETPC_B64),
                                                  ROW(S_SWAPPC_B64, BRANCH, S_SWAPPC_B64),
                                                  ROW(S_CALL_B64, BRANCH, S_CALL_B64),
                                                  IDLE(S_NOP),
                                                  IDLE(S_SET_INST_PREFETCH_DISTANCE),
                                                  IDLE(S_CLAUSE),
                                                  IDLE(S_DELAY_ALU),
                                                  IDLE(S_WAITCNT_DEPCTR),
                                                  IDLE(S_WAITCNT),
                                                  IDLE(S_WAIT_IDLE),
                                                  IDLE(S_WAIT_LOADCNT),
                                                  IDLE(S_WAIT_STORECNT),
                                                  IDLE(S_WAIT_SAMPLECNT),
                                                  IDLE(S_WAIT_BVHCNT),
                                                  IDLE(S_WAIT_EXPCNT),
                                                  IDLE(S_WAIT_DSCNT),
                                                  IDLE(S_WAIT_KMCNT),
                                                  IDLE(S_WAIT_LOADCNT_DSCNT),
                                                  IDLE(S_WAIT_STORECNT_DSCNT),
                                                  IDLE(S_SINGLEUSE_VDST),
                                                  IDLE(GLOBAL_INV),
                                                  IDLE(GLOBAL_WB),
                                                  IDLE(GLOBAL_WBINV),
                                                  IDLE(S_PREFETCH_INST),
                                                  IDLE(S_PREFETCH_INST_PC_REL),
                                                  IDLE(S_PREFETCH_DATA),
                                                  IDLE(S_BUFFER_PREFETCH_DATA),
                                                  IDLE(S_PREFETCH_DATA_PC_REL),
                                                  ROW(S_SLEEP_VAR, WAIT, S_SLEEP),
                                                  ROW(S_BARRIER_SIGNAL, BARRIER, S_BARRIER_SIGNAL),
                                                  ROW(S_BARRIER_SIGNAL_ISFIRST, BARRIER, S_BARRIER_SIGNAL_ISFIRST),
                                                  ROW(S_BARRIER_WAIT, WAIT, S_BARRIER_WAIT),
                                                  ROW(S_GET_BARRIER_STATE, SALU, S_GET_BARRIER_STATE),
                                                  IDLE(S_WAITCNT_VSCNT),
                                                  IDLE(S_WAITCNT_VMCNT),
                                                  IDLE(S_WAITCNT_EXPCNT),
                                                  IDLE(S_WAITCNT_LGKMCNT),
                                                  IDLE(S_VERSION),
                                                  IDLE(S_SETPRIO),
                                                  IDLE(S_INCPERFLEVEL),
                                                  IDLE(S_DECPERFLEVEL),
                                                  IDLE(S_ICACHE_INV),
                                                  IDLE(S_TTRACEDATA),
                                                  IDLE(S_TTRACEDATA_IMM),
                                                  IDLE(V_NOP),
                                                  IDLE(V_PIPEFLUSH),
                                                  IDLE(V_CLREXCP),
                                                  IDLE(S_WAIT_EVENT),
                                                  IDLE(S_WAKEUP),
                                                  IDLE(S_DCACHE_INV),
                                                  IDLE(S_GL1_INV),
                                                  IDLE(BUFFER_GL0_INV),
                                                  IDLE(BUFFER_INVL2),
                                                  IDLE(BUFFER_INV),
                                                  IDLE(BUFFER_WBL2),
                                                  IDLE(S_DCACHE_WB_VOL),
                                                  IDLE(S_DCACHE_INV_VOL),
                                                  IDLE(S_DCACHE_WB),
                                                  IDLE(BUFFER_WBINVL1_VOL),
                                                  IDLE(BUFFER_WBINVL1),
                                                  IDLE(BUFFER_GL1_INV),
                                                  ROW(S_SLEEP, WAIT, S_SLEEP),
                                                  ROW(S_ENDPGM, BRANCH, S_ENDPGM),
                                                  ROW(S_BARRIER, BARRIER, S_BARRIER),
                                                  ROW(S_TRAP, WAIT, S_TRAP),
                                                  ROW(S_SETHALT, WAIT, S_SETHALT),
                                                  ROW(S_CODE_END, WAIT, S_CODE_END),
                                                  ROW(S_DENORM_MODE, SALU, S_DENORM_MODE),
                                                  ROW(S_ROUND_MODE, SALU, S_ROUND_MODE),
                                                  ROW(S_GETREG_B32, SALU, S_GETREG_B32),
                                                  ROW(S_SETREG_B32, SALU, S_SETREG_B32),
                                                  ROW(S_SETREG_IMM32_B32, SALU, S_SETREG_B32),
                                                  ROW(S_SENDMSG, WAIT, S_SENDMSG),
                                                  ROW(S_SENDMSG_RTN_B32, SALU, S_SENDMSG_RTN_B32),
                                                  ROW(S_SENDMSG_RTN_B64, SALU, S_SENDMSG_RTN_B64),
                                                  ROW(S_MEMTIME, SMEM, clock_read),
                                                  ROW(S_MEMREALTIME, SMEM, clock_read),
                                                  {0}};
