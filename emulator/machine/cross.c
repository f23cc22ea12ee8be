// Between lanes: DPP's selection, readlane, permlane, and registers addressed by M0.
#include "machine/checker.h"
#include "machine/valu.h"

unsigned emu__dpp_lane(const struct emu_inst *inst, unsigned lane, bool *inside) {
  *inside = true;
  if (inst->lanes == EMU_LANES_DPP8) return (lane & ~7u) | (inst->dpp8 >> (3 * (lane & 7)) & 7);
  unsigned c = inst->dpp_ctrl, row = lane & ~15u, at = lane & 15, n = c & 15;
  if (c < EMU_DPP_ROW_SHL) return (lane & ~3u) | (c >> (2 * (lane & 3)) & 3);
  switch (c) {
    case EMU_DPP_WAVE_SHL:
      *inside = lane < 63;
      return (lane + 1) & 63;
    case EMU_DPP_WAVE_ROL:
      return (lane + 1) & 63;
    case EMU_DPP_WAVE_SHR:
      *inside = lane > 0;
      return (lane - 1) & 63;
    case EMU_DPP_WAVE_ROR:
      return (lane - 1) & 63;
    case EMU_DPP_ROW_BCAST15:
      *inside = row > 0;
      return (row - 1) & 63;
    case EMU_DPP_ROW_BCAST31:
      *inside = lane >= 32;
      return 31;
    default:
      break;
  }
  switch (c & ~15u) {
    case EMU_DPP_ROW_SHL:
      *inside = at + n < 16;
      return row | ((at + n) & 15);
    case EMU_DPP_ROW_SHR:
      *inside = at >= n;
      return row | ((at - n) & 15);
    case EMU_DPP_ROW_ROR:
      return row | ((at - n) & 15);
    case EMU_DPP_ROW_MIRROR & ~15:
      return c == EMU_DPP_ROW_MIRROR ? row | (15 - at) : (lane & ~7u) | (7 - (lane & 7));
    case EMU_DPP_ROW_SHARE:
      return row | n;
    case EMU_DPP_ROW_XMASK:
      return row | (at ^ n);
    default:
      *inside = false;
      return lane;
  }
}

static unsigned first_lane(const struct emu_wave *w) {
  uint64_t exec = emu__wave_exec(w);
  return exec ? (unsigned)__builtin_ctzll(exec) : 0;
}

static void V_READFIRSTLANE_B32(struct emu_wave *w, const struct emu_step *step) {
  emu__scalar_write(w, step->inst->dst.reg, *emu__vector(w, step->inst->src[0].reg, first_lane(w)));
}
static void V_READLANE_B32(struct emu_wave *w, const struct emu_step *step) {
  unsigned lane = emu__scalar_read(w, &step->inst->src[1]) & (w->lanes - 1);
  emu__scalar_write(w, step->inst->dst.reg, *emu__vector(w, step->inst->src[0].reg, lane));
}
static void V_WRITELANE_B32(struct emu_wave *w, const struct emu_step *step) {
  unsigned lane = emu__scalar_read(w, &step->inst->src[1]) & (w->lanes - 1);
  *emu__vector(w, step->inst->dst.reg, lane) = emu__scalar_read(w, &step->inst->src[0]);
}

// Within rows of 16 lanes, or from the neighbouring row: sixteen selectors of four bits in two scalars, or each lane's
// own in a vector register.
static void permlane16(struct emu_wave *w, const struct emu_step *step, unsigned flip) {
  const struct emu_inst *inst = step->inst;
  bool own = inst->src[1].kind == EMU_OPERAND_VECTOR;
  uint64_t select = own ? 0 : emu__scalar_read(w, &inst->src[1]) | (uint64_t)emu__scalar_read(w, &inst->src[2]) << 32;
  uint64_t exec = emu__wave_exec(w);
  uint32_t from[64], selectors[64];
  memcpy(from, emu__vector(w, inst->src[0].reg, 0), w->lanes * 4);
  if (own) memcpy(selectors, emu__vector(w, inst->src[1].reg, 0), w->lanes * 4);
  uint32_t *to = emu__vector(w, inst->dst.reg, 0);
  for (unsigned l = 0; l < w->lanes; l++) {
    unsigned lane = ((l & ~15u) ^ flip) | (own ? selectors[l] & 15 : select >> (4 * (l & 15)) & 15);
    bool readable = inst->fetch_inactive || exec >> lane & 1;
    if (exec >> l & 1 && (readable || inst->bound_ctrl)) to[l] = readable ? from[lane] : 0;
  }
}
static void V_PERMLANE16_B32(struct emu_wave *w, const struct emu_step *step) { permlane16(w, step, 0); }
static void V_PERMLANEX16_B32(struct emu_wave *w, const struct emu_step *step) { permlane16(w, step, 16); }

// Exchanges the halves of a wave of 64, EXEC ignored; in a wave of 32 it does nothing.
static void V_PERMLANE64_B32(struct emu_wave *w, const struct emu_step *step) {
  if (w->lanes == 32) return;
  uint32_t from[64];
  memcpy(from, emu__vector(w, step->inst->src[0].reg, 0), sizeof(from));
  uint32_t *to = emu__vector(w, step->inst->dst.reg, 0);
  uint64_t exec = emu__wave_exec(w);
  for (unsigned l = 0; l < 64; l++) to[l] = exec >> l & 1 ? from[l ^ 32] : to[l];
}

static void swap_registers(struct emu_wave *w, unsigned a, unsigned b) {
  uint32_t *x = emu__vector(w, a, 0), *y = emu__vector(w, b, 0);
  uint64_t exec = emu__wave_exec(w);
  for (unsigned l = 0; l < w->lanes; l++) {
    if (!(exec >> l & 1)) continue;
    uint32_t t = x[l];
    x[l] = y[l];
    y[l] = t;
  }
}
static void V_SWAP_B32(struct emu_wave *w, const struct emu_step *step) {
  swap_registers(w, step->inst->dst.reg, step->inst->src[0].reg);
}

// Of every second run of `run` lanes of one register with every first of another: the rows that gfx950 exchanges. A
// lane that is off neither gives nor takes, but with fi, with which all are on.
static void swap_rows(struct emu_wave *w, const struct emu_step *step, unsigned run) {
  const struct emu_inst *inst = step->inst;
  uint64_t exec = inst->fetch_inactive ? UINT64_MAX : emu__wave_exec(w);
  uint32_t *x = emu__vector(w, inst->dst.reg, 0), *y = emu__vector(w, inst->src[0].reg, 0);
  uint32_t a[64], b[64];
  if (exec != UINT64_MAX) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "What it does with lanes off is not known.");
    return;
  }
  memcpy(a, x, sizeof(a)), memcpy(b, y, sizeof(b));
  for (unsigned l = 0; l < 64; l++) {
    if (l & run) x[l] = b[l - run], y[l - run] = a[l];
  }
}
static void V_PERMLANE16_SWAP_B32(struct emu_wave *w, const struct emu_step *step) { swap_rows(w, step, 16); }
static void V_PERMLANE32_SWAP_B32(struct emu_wave *w, const struct emu_step *step) { swap_rows(w, step, 32); }

// ---- M0 added to register numbers

static bool within(struct emu_wave *w, const struct emu_step *step, uint64_t reg) {
  if (reg < w->vgprs) return true;
  emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0,
                 "With M0 at %u it names vector register v%llu; the kernel's descriptor allocates %u.", w->s[EMU_M0],
                 (unsigned long long)reg, w->vgprs);
  return false;
}

// source_scalar: a source that is no vector (v_movreld takes any).
static void move_relative(struct emu_wave *w, const struct emu_step *step, uint32_t add_source, uint32_t add_target) {
  const struct emu_inst *inst = step->inst;
  const struct emu_operand *o = &inst->src[0];
  uint64_t from = (uint64_t)o->reg + add_source, to = (uint64_t)inst->dst.reg + add_target;
  bool vector = o->kind == EMU_OPERAND_VECTOR;
  if (inst->lanes != EMU_LANES_PLAIN) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Relative moves with DPP or SDWA are not executed.");
    return;
  }
  if ((vector && !within(w, step, from)) || !within(w, step, to)) return;
  uint64_t exec = emu__wave_exec(w);
  uint32_t value = vector ? 0 : emu__scalar_read(w, o), *target = emu__vector(w, (unsigned)to, 0);
  const uint32_t *source = vector ? emu__vector(w, (unsigned)from, 0) : NULL;
  for (unsigned l = 0; l < w->lanes; l++) {
    if (exec >> l & 1) target[l] = vector ? source[l] : value;
  }
}
static void V_MOVRELS_B32(struct emu_wave *w, const struct emu_step *step) { move_relative(w, step, w->s[EMU_M0], 0); }
static void V_MOVRELD_B32(struct emu_wave *w, const struct emu_step *step) { move_relative(w, step, 0, w->s[EMU_M0]); }
static void V_MOVRELSD_B32(struct emu_wave *w, const struct emu_step *step) {
  move_relative(w, step, w->s[EMU_M0], w->s[EMU_M0]);
}
static void V_MOVRELSD_2_B32(struct emu_wave *w, const struct emu_step *step) {
  move_relative(w, step, w->s[EMU_M0] & 0x3ff, w->s[EMU_M0] >> 16 & 0x3ff);
}
static void V_SWAPREL_B32(struct emu_wave *w, const struct emu_step *step) {
  uint64_t a = step->inst->dst.reg + (w->s[EMU_M0] >> 16 & 0x3ff), b = step->inst->src[0].reg + (w->s[EMU_M0] & 0x3ff);
  if (within(w, step, a) && within(w, step, b)) swap_registers(w, (unsigned)a, (unsigned)b);
}

// ---- GFX9's index mode: what stands between S_SET_GPR_IDX_ON and S_SET_GPR_IDX_OFF adds M0 to the numbers of its
// vector registers. Compilers put one move there. It is executed here, as a part of the first.

enum { INDEX_SOURCE0 = 1, INDEX_TARGET = 8 };

static bool shift(struct emu_wave *w, const struct emu_step *step, struct emu_operand *o, bool chosen, unsigned index) {
  if (!chosen || o->kind != EMU_OPERAND_VECTOR) return true;
  if (!within(w, step, (uint64_t)o->reg + index + o->dwords - 1)) return false;
  o->reg = (uint16_t)(o->reg + index);
  return true;
}

// Executes the step with its registers shifted; false: the wave has trapped.
static bool run_indexed(struct emu_wave *w, const struct emu_step *step, unsigned index, unsigned mode) {
  if (!step->action || !step->action->lanes || step->pair || step->inst->lanes != EMU_LANES_PLAIN) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Under S_SET_GPR_IDX_ON only vector arithmetic is executed.");
    return false;
  }
  struct emu_inst inst = *step->inst;
  struct emu_step shifted = *step;
  shifted.inst = &inst;
  shifted.plan = NULL;
  if (!shift(w, step, &inst.dst, mode & INDEX_TARGET, index)) return false;
  for (unsigned i = 0; i < 3; i++) {
    if (!shift(w, step, &inst.src[i], mode & INDEX_SOURCE0 << i, index)) return false;
  }
  if (!emu__valu_prepare(w->group->run->target, w->lanes, &shifted, NULL)) return false;
  w->instructions[step->klass]++;
  if (w->check && !emu__check_indexed(w, &shifted)) return true;
  shifted.run(w, &shifted);
  return true;
}

static void S_SET_GPR_IDX_ON(struct emu_wave *w, const struct emu_step *step) {
  unsigned index = emu__scalar_read(w, &step->inst->src[0]) & 255, mode = (unsigned)step->inst->imm & 15;
  w->s[EMU_M0] = (w->s[EMU_M0] & ~0xf0ffu) | index | mode << 12;
  while (w->state == EMU_WAVE_READY) {
    const struct emu_step *next = w->next;
    if (__atomic_load_n(&next->run, __ATOMIC_ACQUIRE) == emu__step_decode) {
      emu__step_decode(w, next);
      continue;
    }
    if (!next->inst || !next->words) {  // the next page of steps, or the end of the code
      next->run(w, next);
      continue;
    }
    w->next = next + next->words;
    if (next->inst->op == EMU_S_SET_GPR_IDX_OFF) return;
    if (!run_indexed(w, next, index, mode)) return;
  }
}
static void S_SET_GPR_IDX_OFF(struct emu_wave *w, const struct emu_step *step) {
  (void)w, (void)step;  // met alone: the mode is off
}

#define ROW(name) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .run = name}
const struct emu_action emu__cross_actions[] = {
    ROW(V_READFIRSTLANE_B32),
    ROW(V_READLANE_B32),
    ROW(V_WRITELANE_B32),
    ROW(V_PERMLANE16_B32),
    ROW(V_PERMLANEX16_B32),
    ROW(V_PERMLANE64_B32),
    ROW(V_PERMLANE16_SWAP_B32),
    ROW(V_PERMLANE32_SWAP_B32),
    {.op = EMU_V_PERMLANE16_VAR_B32, .klass = EMU_CLASS_VALU, .run = V_PERMLANE16_B32},
    {.op = EMU_V_PERMLANEX16_VAR_B32, .klass = EMU_CLASS_VALU, .run = V_PERMLANEX16_B32},
    ROW(V_SWAP_B32),
    ROW(V_MOVRELS_B32),
    ROW(V_MOVRELD_B32),
    ROW(V_MOVRELSD_B32),
    ROW(V_MOVRELSD_2_B32),
    ROW(V_SWAPREL_B32),
    {.op = EMU_S_SET_GPR_IDX_ON, .klass = EMU_CLASS_SALU, .run = S_SET_GPR_IDX_ON},
    {.op = EMU_S_SET_GPR_IDX_OFF, .klass = EMU_CLASS_SALU, .run = S_SET_GPR_IDX_OFF},
    {0}};
