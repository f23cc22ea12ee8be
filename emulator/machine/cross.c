// Between lanes: DPP's selection, readlane, permlane, and registers addressed by M0.
#include "machine/valu.h"

unsigned emu__dpp_lane(const struct emu_inst *inst, unsigned lane, bool *inside) {
  *inside = true;
  if (inst->lanes == EMU_LANES_DPP8) return (lane & ~7u) | (inst->dpp8 >> (3 * (lane & 7)) & 7);
  unsigned c = inst->dpp_ctrl, row = lane & ~15u, at = lane & 15, n = c & 15;
  if (c < EMU_DPP_ROW_SHL) return (lane & ~3u) | (c >> (2 * (lane & 3)) & 3);
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

#define ROW(name) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .run = name}
const struct emu_action emu__cross_actions[] = {
    ROW(V_READFIRSTLANE_B32),
    ROW(V_READLANE_B32),
    ROW(V_WRITELANE_B32),
    ROW(V_PERMLANE16_B32),
    ROW(V_PERMLANEX16_B32),
    ROW(V_PERMLANE64_B32),
    {.op = EMU_V_PERMLANE16_VAR_B32, .klass = EMU_CLASS_VALU, .run = V_PERMLANE16_B32},
    {.op = EMU_V_PERMLANEX16_VAR_B32, .klass = EMU_CLASS_VALU, .run = V_PERMLANEX16_B32},
    ROW(V_SWAP_B32),
    ROW(V_MOVRELS_B32),
    ROW(V_MOVRELD_B32),
    ROW(V_MOVRELSD_B32),
    ROW(V_MOVRELSD_2_B32),
    ROW(V_SWAPREL_B32),
    {0}};
