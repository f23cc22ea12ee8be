// Scalar arithmetic: SOP1, SOP2, SOPC, SOPK.
#include "machine/wave.h"

#define I(x) ((int32_t)(x))
#define ACTION(name) {.op = EMU_##name, .klass = EMU_CLASS_SALU, .run = name, .straight = true}
#define TRAPPING(name) {.op = EMU_##name, .klass = EMU_CLASS_SALU, .run = name}

static void write32(struct emu_wave *w, const struct emu_step *step, uint32_t value) {
  emu__scalar_write(w, step->inst->dst.reg, value);
}
static void write64(struct emu_wave *w, const struct emu_step *step, uint64_t value) {
  emu__scalar_write64(w, step->inst->dst.reg, value);
}

// a, b: the sources; `v` is written and may set the condition code.
#define OP32(name, expression, condition)                             \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    uint32_t a = emu__scalar_read(w, &step->inst->src[0]);            \
    uint32_t b = emu__scalar_read(w, &step->inst->src[1]);            \
    (void)b;                                                          \
    uint32_t v = (uint32_t)(expression);                              \
    condition;                                                        \
    write32(w, step, v);                                              \
  }
#define OP64(name, expression, condition)                             \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    uint64_t a = emu__scalar_read64(w, &step->inst->src[0]);          \
    uint64_t b = emu__scalar_read64(w, &step->inst->src[1]);          \
    (void)b;                                                          \
    uint64_t v = (uint64_t)(expression);                              \
    condition;                                                        \
    write64(w, step, v);                                              \
  }
#define SHIFT64(name, expression)                                     \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    uint64_t a = emu__scalar_read64(w, &step->inst->src[0]);          \
    uint32_t b = emu__scalar_read(w, &step->inst->src[1]);            \
    uint64_t v = (uint64_t)(expression);                              \
    w->scc = v != 0;                                                  \
    write64(w, step, v);                                              \
  }
#define NOTHING (void)0
#define NONZERO w->scc = v != 0
#define BOTH(name, expression)          \
  OP32(name##_B32, expression, NONZERO) \
  OP64(name##_B64, expression, NONZERO)

OP32(S_MOV_B32, a, NOTHING)
OP64(S_MOV_B64, a, NOTHING)
BOTH(S_AND, a &b)
BOTH(S_OR, a | b)
BOTH(S_XOR, a ^ b)
BOTH(S_NAND, ~(a &b))
BOTH(S_NOR, ~(a | b))
BOTH(S_XNOR, ~(a ^ b))
BOTH(S_AND_NOT1, a & ~b)
BOTH(S_OR_NOT1, a | ~b)
BOTH(S_NOT, ~a)

OP32(S_ADD_U32, a + b, w->scc = v < a)
OP32(S_SUB_U32, a - b, w->scc = a < b)
OP32(S_ADD_I32, a + b, w->scc = ((a ^ v) & (b ^ v)) >> 31)
OP32(S_SUB_I32, a - b, w->scc = ((a ^ b) & (a ^ v)) >> 31)
OP32(S_ADDC_U32, a + b + w->scc, w->scc = (uint64_t)a + b + w->scc > UINT32_MAX)
OP32(S_SUBB_U32, a - b - w->scc, w->scc = (uint64_t)b + w->scc > a)
OP32(S_ABSDIFF_I32, I(a - b) < 0 ? b - a : a - b, NONZERO)
OP32(S_ABS_I32, I(a) < 0 ? 0 - a : a, NONZERO)
OP32(S_LSHL_B32, a << (b & 31), NONZERO)
OP32(S_LSHR_B32, a >> (b & 31), NONZERO)
OP32(S_ASHR_I32, I(a) >> (b & 31), NONZERO)
SHIFT64(S_LSHL_B64, a << (b & 63))
SHIFT64(S_LSHR_B64, a >> (b & 63))
SHIFT64(S_ASHR_I64, (int64_t)a >> (b & 63))
OP32(S_LSHL1_ADD_U32, (a << 1) + b, w->scc = ((uint64_t)a << 1) + b > UINT32_MAX)
OP32(S_LSHL2_ADD_U32, (a << 2) + b, w->scc = ((uint64_t)a << 2) + b > UINT32_MAX)
OP32(S_LSHL3_ADD_U32, (a << 3) + b, w->scc = ((uint64_t)a << 3) + b > UINT32_MAX)
OP32(S_LSHL4_ADD_U32, (a << 4) + b, w->scc = ((uint64_t)a << 4) + b > UINT32_MAX)
OP32(S_MIN_I32, I(a) < I(b) ? a : b, w->scc = I(a) < I(b))
OP32(S_MIN_U32, a < b ? a : b, w->scc = a < b)
OP32(S_MAX_I32, I(a) > I(b) ? a : b, w->scc = I(a) >= I(b))
OP32(S_MAX_U32, a > b ? a : b, w->scc = a >= b)
OP32(S_MUL_I32, a *b, NOTHING)
OP32(S_MUL_HI_U32, (uint64_t)a *b >> 32, NOTHING)
OP32(S_MUL_HI_I32, ((int64_t)I(a) * I(b)) >> 32, NOTHING)
OP32(S_CSELECT_B32, w->scc ? a : b, NOTHING)
OP64(S_CSELECT_B64, w->scc ? a : b, NOTHING)
OP32(S_PACK_LL_B32_B16, (a & 0xffff) | b << 16, NOTHING)
OP32(S_PACK_LH_B32_B16, (a & 0xffff) | (b & 0xffff0000), NOTHING)
OP32(S_PACK_HH_B32_B16, a >> 16 | (b & 0xffff0000), NOTHING)
OP32(S_PACK_HL_B32_B16, a >> 16 | b << 16, NOTHING)
OP32(S_BFM_B32, ((1u << (a & 31)) - 1) << (b & 31), NOTHING)

OP64(S_ADD_NC_U64, a + b, NOTHING)
OP64(S_SUB_NC_U64, a - b, NOTHING)
OP64(S_MUL_U64, a *b, NOTHING)

static void S_BFM_B64(struct emu_wave *w, const struct emu_step *step) {
  uint32_t a = emu__scalar_read(w, &step->inst->src[0]), b = emu__scalar_read(w, &step->inst->src[1]);
  write64(w, step, ((UINT64_C(1) << (a & 63)) - 1) << (b & 63));
}

static uint64_t field(uint64_t value, unsigned offset, unsigned width, unsigned bits, bool is_signed) {
  if (!width) return 0;
  if (width > bits - offset) width = bits - offset;
  uint64_t v = value << (64 - offset - width);
  return is_signed ? (uint64_t)((int64_t)v >> (64 - width)) : v >> (64 - width);
}
OP32(S_BFE_U32, field(a, b & 31, b >> 16 & 127, 32, false), NONZERO)
OP32(S_BFE_I32, field(a, b & 31, b >> 16 & 127, 32, true), NONZERO)
SHIFT64(S_BFE_U64, field(a, b & 63, b >> 16 & 127, 64, false))
SHIFT64(S_BFE_I64, field(a, b & 63, b >> 16 & 127, 64, true))

// ---- one source

static uint32_t reverse(uint32_t v) {
  uint32_t r = 0;
  for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
  return r;
}
OP32(S_BREV_B32, reverse(a), NOTHING)
OP64(S_BREV_B64, (uint64_t)reverse((uint32_t)a) << 32 | reverse((uint32_t)(a >> 32)), NOTHING)
OP32(S_SEXT_I32_I8, (int8_t)a, NOTHING)
OP32(S_SEXT_I32_I16, (int16_t)a, NOTHING)
OP32(S_CTZ_I32_B32, a ? __builtin_ctz(a) : -1, NOTHING)
OP32(S_CLZ_I32_U32, a ? __builtin_clz(a) : -1, NOTHING)
OP32(S_FF0_I32_B32, ~a ? __builtin_ctz(~a) : -1, NOTHING)
OP32(S_BCNT0_I32_B32, 32 - __builtin_popcount(a), NONZERO)
OP32(S_BCNT1_I32_B32, __builtin_popcount(a), NONZERO)

static inline uint32_t sign_run(uint64_t v, unsigned bits) {
  uint64_t top = v << (64 - bits), folded = top ^ (uint64_t)((int64_t)top >> 63);
  folded &= ~UINT64_C(0) << (64 - bits);
  return folded ? (uint32_t)__builtin_clzll(folded) : UINT32_MAX;
}
OP32(S_CLS_I32, sign_run(a, 32), NOTHING)

#define FROM64(name, expression, condition)                           \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    uint64_t a = emu__scalar_read64(w, &step->inst->src[0]);          \
    uint32_t v = (uint32_t)(expression);                              \
    condition;                                                        \
    write32(w, step, v);                                              \
  }
FROM64(S_CTZ_I32_B64, a ? __builtin_ctzll(a) : -1, NOTHING)
FROM64(S_CLZ_I32_U64, a ? __builtin_clzll(a) : -1, NOTHING)
FROM64(S_CLS_I32_I64, sign_run(a, 64), NOTHING)
FROM64(S_FF0_I32_B64, ~a ? __builtin_ctzll(~a) : -1, NOTHING)
FROM64(S_BCNT0_I32_B64, 64 - __builtin_popcountll(a), NONZERO)
FROM64(S_BCNT1_I32_B64, __builtin_popcountll(a), NONZERO)

static uint64_t quads(uint64_t a) {
  uint64_t r = 0;
  for (int i = 0; i < 16; i++) r |= (uint64_t)((a >> (4 * i) & 15) != 0) << i;
  return r;
}
static uint64_t whole_quads(uint64_t a) {
  uint64_t r = 0;
  for (int i = 0; i < 16; i++) r |= a >> (4 * i) & 15 ? UINT64_C(15) << (4 * i) : 0;
  return r;
}
static uint64_t replicate(uint32_t a) {
  uint64_t r = 0;
  for (int i = 0; i < 32; i++) r |= (uint64_t)(a >> i & 1) * 3 << (2 * i);
  return r;
}
OP32(S_QUADMASK_B32, quads(a), NONZERO)
OP64(S_QUADMASK_B64, quads(a), NONZERO)
OP32(S_WQM_B32, whole_quads(a), NONZERO)
OP64(S_WQM_B64, whole_quads(a), NONZERO)

static void S_BITREPLICATE_B64_B32(struct emu_wave *w, const struct emu_step *step) {
  write64(w, step, replicate(emu__scalar_read(w, &step->inst->src[0])));
}
static void S_CMOV_B32(struct emu_wave *w, const struct emu_step *step) {
  if (w->scc) write32(w, step, emu__scalar_read(w, &step->inst->src[0]));
}
static void S_CMOV_B64(struct emu_wave *w, const struct emu_step *step) {
  if (w->scc) write64(w, step, emu__scalar_read64(w, &step->inst->src[0]));
}

static void set_bit(struct emu_wave *w, const struct emu_step *step, bool wide, bool value) {
  const struct emu_operand *dst = &step->inst->dst;
  uint64_t old = wide ? emu__scalar_read64(w, dst) : emu__scalar_read(w, dst);
  uint64_t bit = UINT64_C(1) << (emu__scalar_read(w, &step->inst->src[0]) & (wide ? 63 : 31));
  old = value ? old | bit : old & ~bit;
  if (wide) {
    write64(w, step, old);
  } else {
    write32(w, step, (uint32_t)old);
  }
}
static void S_BITSET0_B32(struct emu_wave *w, const struct emu_step *step) { set_bit(w, step, false, false); }
static void S_BITSET1_B32(struct emu_wave *w, const struct emu_step *step) { set_bit(w, step, false, true); }
static void S_BITSET0_B64(struct emu_wave *w, const struct emu_step *step) { set_bit(w, step, true, false); }
static void S_BITSET1_B64(struct emu_wave *w, const struct emu_step *step) { set_bit(w, step, true, true); }

// ---- EXEC: the old value goes to the destination, the new one is a function of both

#define SAVEEXEC(name, expression)                                                      \
  static void name##_B32(struct emu_wave *w, const struct emu_step *step) {             \
    uint32_t a = emu__scalar_read(w, &step->inst->src[0]), e = w->s[EMU_EXEC_LO];       \
    write32(w, step, e);                                                                \
    w->s[EMU_EXEC_LO] = expression;                                                     \
    w->scc = w->s[EMU_EXEC_LO] != 0;                                                    \
  }                                                                                     \
  static void name##_B64(struct emu_wave *w, const struct emu_step *step) {             \
    uint64_t a = emu__scalar_read64(w, &step->inst->src[0]);                            \
    uint64_t e = w->s[EMU_EXEC_LO] | (uint64_t)w->s[EMU_EXEC_HI] << 32, v = expression; \
    write64(w, step, e);                                                                \
    emu__scalar_write64(w, EMU_EXEC_LO, v);                                             \
    w->scc = v != 0;                                                                    \
  }
SAVEEXEC(S_AND_SAVEEXEC, a &e)
SAVEEXEC(S_OR_SAVEEXEC, a | e)
SAVEEXEC(S_XOR_SAVEEXEC, a ^ e)
SAVEEXEC(S_NAND_SAVEEXEC, ~(a &e))
SAVEEXEC(S_NOR_SAVEEXEC, ~(a | e))
SAVEEXEC(S_XNOR_SAVEEXEC, ~(a ^ e))
SAVEEXEC(S_AND_NOT0_SAVEEXEC, ~a &e)
SAVEEXEC(S_OR_NOT0_SAVEEXEC, ~a | e)
SAVEEXEC(S_AND_NOT1_SAVEEXEC, a & ~e)
SAVEEXEC(S_OR_NOT1_SAVEEXEC, a | ~e)

// … and these write the new value to both.
#define WREXEC(name, expression)                                                        \
  static void name##_B32(struct emu_wave *w, const struct emu_step *step) {             \
    uint32_t a = emu__scalar_read(w, &step->inst->src[0]), e = w->s[EMU_EXEC_LO];       \
    w->s[EMU_EXEC_LO] = expression;                                                     \
    write32(w, step, w->s[EMU_EXEC_LO]);                                                \
    w->scc = w->s[EMU_EXEC_LO] != 0;                                                    \
  }                                                                                     \
  static void name##_B64(struct emu_wave *w, const struct emu_step *step) {             \
    uint64_t a = emu__scalar_read64(w, &step->inst->src[0]);                            \
    uint64_t e = w->s[EMU_EXEC_LO] | (uint64_t)w->s[EMU_EXEC_HI] << 32, v = expression; \
    emu__scalar_write64(w, EMU_EXEC_LO, v);                                             \
    write64(w, step, v);                                                                \
    w->scc = v != 0;                                                                    \
  }
WREXEC(S_AND_NOT0_WREXEC, ~a &e)
WREXEC(S_AND_NOT1_WREXEC, a & ~e)

// ---- relative addressing by M0

static bool within(struct emu_wave *w, const struct emu_step *step, unsigned reg, unsigned dwords) {
  if (reg + dwords <= EMU_VCC_HI + 1) return true;
  emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "M0 holds %u, which addresses scalar register %u; there are 106.",
                 w->s[EMU_M0], reg);
  return false;
}
static void S_MOVRELS_B32(struct emu_wave *w, const struct emu_step *step) {
  unsigned reg = step->inst->src[0].reg + w->s[EMU_M0];
  if (within(w, step, reg, 1)) write32(w, step, w->s[reg]);
}
static void S_MOVRELS_B64(struct emu_wave *w, const struct emu_step *step) {
  unsigned reg = step->inst->src[0].reg + w->s[EMU_M0];
  if (within(w, step, reg, 2)) write64(w, step, w->s[reg] | (uint64_t)w->s[reg + 1] << 32);
}
static void S_MOVRELD_B32(struct emu_wave *w, const struct emu_step *step) {
  unsigned reg = step->inst->dst.reg + w->s[EMU_M0];
  if (within(w, step, reg, 1)) emu__scalar_write(w, reg, emu__scalar_read(w, &step->inst->src[0]));
}
static void S_MOVRELD_B64(struct emu_wave *w, const struct emu_step *step) {
  unsigned reg = step->inst->dst.reg + w->s[EMU_M0];
  if (within(w, step, reg, 2)) emu__scalar_write64(w, reg, emu__scalar_read64(w, &step->inst->src[0]));
}
static void S_MOVRELSD_2_B32(struct emu_wave *w, const struct emu_step *step) {
  unsigned from = step->inst->src[0].reg + (w->s[EMU_M0] & 0x3ff),
           to = step->inst->dst.reg + (w->s[EMU_M0] >> 16 & 0x3ff);
  if (within(w, step, from, 1) && within(w, step, to, 1)) emu__scalar_write(w, to, w->s[from]);
}

// ---- comparisons

#define COMPARE(name, expression)                                     \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    uint32_t a = emu__scalar_read(w, &step->inst->src[0]);            \
    uint32_t b = emu__scalar_read(w, &step->inst->src[1]);            \
    w->scc = expression;                                              \
  }
#define COMPARE64(name, expression)                                   \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    uint64_t a = emu__scalar_read64(w, &step->inst->src[0]);          \
    uint64_t b = emu__scalar_read64(w, &step->inst->src[1]);          \
    w->scc = expression;                                              \
  }
#define COMPARE_K(name, expression)                                   \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    uint32_t a = emu__scalar_read(w, &step->inst->src[0]);            \
    int32_t imm = step->inst->imm;                                    \
    w->scc = expression;                                              \
  }
COMPARE(S_CMP_EQ_I32, a == b)
COMPARE(S_CMP_LG_I32, a != b)
COMPARE(S_CMP_GT_I32, I(a) > I(b))
COMPARE(S_CMP_GE_I32, I(a) >= I(b))
COMPARE(S_CMP_LT_I32, I(a) < I(b))
COMPARE(S_CMP_LE_I32, I(a) <= I(b))
COMPARE(S_CMP_EQ_U32, a == b)
COMPARE(S_CMP_LG_U32, a != b)
COMPARE(S_CMP_GT_U32, a > b)
COMPARE(S_CMP_GE_U32, a >= b)
COMPARE(S_CMP_LT_U32, a < b)
COMPARE(S_CMP_LE_U32, a <= b)
COMPARE(S_BITCMP0_B32, !(a >> (b & 31) & 1))
COMPARE(S_BITCMP1_B32, a >> (b & 31) & 1)
COMPARE64(S_BITCMP0_B64, !(a >> (b & 63) & 1))
COMPARE64(S_BITCMP1_B64, a >> (b & 63) & 1)
COMPARE64(S_CMP_EQ_U64, a == b)
COMPARE64(S_CMP_LG_U64, a != b)
COMPARE_K(S_CMPK_EQ_I32, I(a) == imm)
COMPARE_K(S_CMPK_LG_I32, I(a) != imm)
COMPARE_K(S_CMPK_GT_I32, I(a) > imm)
COMPARE_K(S_CMPK_GE_I32, I(a) >= imm)
COMPARE_K(S_CMPK_LT_I32, I(a) < imm)
COMPARE_K(S_CMPK_LE_I32, I(a) <= imm)
COMPARE_K(S_CMPK_EQ_U32, a == (uint16_t)imm)
COMPARE_K(S_CMPK_LG_U32, a != (uint16_t)imm)
COMPARE_K(S_CMPK_GT_U32, a > (uint16_t)imm)
COMPARE_K(S_CMPK_GE_U32, a >= (uint16_t)imm)
COMPARE_K(S_CMPK_LT_U32, a < (uint16_t)imm)
COMPARE_K(S_CMPK_LE_U32, a <= (uint16_t)imm)

static void S_MOVK_I32(struct emu_wave *w, const struct emu_step *step) { write32(w, step, (uint32_t)step->inst->imm); }
static void S_CMOVK_I32(struct emu_wave *w, const struct emu_step *step) {
  if (w->scc) write32(w, step, (uint32_t)step->inst->imm);
}
static void S_ADDK_I32(struct emu_wave *w, const struct emu_step *step) {
  uint32_t a = emu__scalar_read(w, &step->inst->src[0]), b = (uint32_t)step->inst->imm, v = a + b;
  w->scc = ((a ^ v) & (b ^ v)) >> 31;
  write32(w, step, v);
}
static void S_MULK_I32(struct emu_wave *w, const struct emu_step *step) {
  write32(w, step, emu__scalar_read(w, &step->inst->src[0]) * (uint32_t)step->inst->imm);
}

#define PAIR(name) ACTION(name##_B32), ACTION(name##_B64)
const struct emu_action emu__salu_actions[] = {PAIR(S_MOV),
                                               PAIR(S_CMOV),
                                               PAIR(S_BREV),
                                               ACTION(S_CTZ_I32_B32),
                                               ACTION(S_CTZ_I32_B64),
                                               ACTION(S_CLZ_I32_U32),
                                               ACTION(S_CLZ_I32_U64),
                                               ACTION(S_CLS_I32),
                                               ACTION(S_CLS_I32_I64),
                                               ACTION(S_SEXT_I32_I8),
                                               ACTION(S_SEXT_I32_I16),
                                               PAIR(S_BITSET0),
                                               PAIR(S_BITSET1),
                                               ACTION(S_FF0_I32_B32),
                                               ACTION(S_FF0_I32_B64),
                                               ACTION(S_BITREPLICATE_B64_B32),
                                               ACTION(S_ABS_I32),
                                               ACTION(S_BCNT0_I32_B32),
                                               ACTION(S_BCNT0_I32_B64),
                                               ACTION(S_BCNT1_I32_B32),
                                               ACTION(S_BCNT1_I32_B64),
                                               PAIR(S_QUADMASK),
                                               PAIR(S_WQM),
                                               PAIR(S_NOT),
                                               PAIR(S_AND_SAVEEXEC),
                                               PAIR(S_OR_SAVEEXEC),
                                               PAIR(S_XOR_SAVEEXEC),
                                               PAIR(S_NAND_SAVEEXEC),
                                               PAIR(S_NOR_SAVEEXEC),
                                               PAIR(S_XNOR_SAVEEXEC),
                                               PAIR(S_AND_NOT0_SAVEEXEC),
                                               PAIR(S_OR_NOT0_SAVEEXEC),
                                               PAIR(S_AND_NOT1_SAVEEXEC),
                                               PAIR(S_OR_NOT1_SAVEEXEC),
                                               PAIR(S_AND_NOT0_WREXEC),
                                               PAIR(S_AND_NOT1_WREXEC),
                                               TRAPPING(S_MOVRELS_B32),
                                               TRAPPING(S_MOVRELS_B64),
                                               TRAPPING(S_MOVRELD_B32),
                                               TRAPPING(S_MOVRELD_B64),
                                               TRAPPING(S_MOVRELSD_2_B32),
                                               ACTION(S_ADD_U32),
                                               ACTION(S_SUB_U32),
                                               ACTION(S_ADD_I32),
                                               ACTION(S_SUB_I32),
                                               ACTION(S_ADDC_U32),
                                               ACTION(S_SUBB_U32),
                                               ACTION(S_ABSDIFF_I32),
                                               ACTION(S_LSHL_B32),
                                               ACTION(S_LSHL_B64),
                                               ACTION(S_LSHR_B32),
                                               ACTION(S_LSHR_B64),
                                               ACTION(S_ASHR_I32),
                                               ACTION(S_ASHR_I64),
                                               ACTION(S_LSHL1_ADD_U32),
                                               ACTION(S_LSHL2_ADD_U32),
                                               ACTION(S_LSHL3_ADD_U32),
                                               ACTION(S_LSHL4_ADD_U32),
                                               ACTION(S_MIN_I32),
                                               ACTION(S_MIN_U32),
                                               ACTION(S_MAX_I32),
                                               ACTION(S_MAX_U32),
                                               PAIR(S_AND),
                                               PAIR(S_OR),
                                               PAIR(S_XOR),
                                               PAIR(S_NAND),
                                               PAIR(S_NOR),
                                               PAIR(S_XNOR),
                                               PAIR(S_AND_NOT1),
                                               PAIR(S_OR_NOT1),
                                               ACTION(S_BFE_U32),
                                               ACTION(S_BFE_I32),
                                               ACTION(S_BFE_U64),
                                               ACTION(S_BFE_I64),
                                               PAIR(S_BFM),
                                               ACTION(S_MUL_I32),
                                               ACTION(S_ADD_NC_U64),
                                               ACTION(S_SUB_NC_U64),
                                               ACTION(S_MUL_U64),
                                               ACTION(S_MUL_HI_U32),
                                               ACTION(S_MUL_HI_I32),
                                               PAIR(S_CSELECT),
                                               ACTION(S_PACK_LL_B32_B16),
                                               ACTION(S_PACK_LH_B32_B16),
                                               ACTION(S_PACK_HH_B32_B16),
                                               ACTION(S_PACK_HL_B32_B16),
                                               ACTION(S_CMP_EQ_I32),
                                               ACTION(S_CMP_LG_I32),
                                               ACTION(S_CMP_GT_I32),
                                               ACTION(S_CMP_GE_I32),
                                               ACTION(S_CMP_LT_I32),
                                               ACTION(S_CMP_LE_I32),
                                               ACTION(S_CMP_EQ_U32),
                                               ACTION(S_CMP_LG_U32),
                                               ACTION(S_CMP_GT_U32),
                                               ACTION(S_CMP_GE_U32),
                                               ACTION(S_CMP_LT_U32),
                                               ACTION(S_CMP_LE_U32),
                                               PAIR(S_BITCMP0),
                                               PAIR(S_BITCMP1),
                                               ACTION(S_CMP_EQ_U64),
                                               ACTION(S_CMP_LG_U64),
                                               ACTION(S_MOVK_I32),
                                               ACTION(S_CMOVK_I32),
                                               ACTION(S_CMPK_EQ_I32),
                                               ACTION(S_CMPK_LG_I32),
                                               ACTION(S_CMPK_GT_I32),
                                               ACTION(S_CMPK_GE_I32),
                                               ACTION(S_CMPK_LT_I32),
                                               ACTION(S_CMPK_LE_I32),
                                               ACTION(S_CMPK_EQ_U32),
                                               ACTION(S_CMPK_LG_U32),
                                               ACTION(S_CMPK_GT_U32),
                                               ACTION(S_CMPK_GE_U32),
                                               ACTION(S_CMPK_LT_U32),
                                               ACTION(S_CMPK_LE_U32),
                                               ACTION(S_ADDK_I32),
                                               ACTION(S_MULK_I32),
                                               {0}};
