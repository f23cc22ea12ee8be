// V_CMP and V_CMPX, which differ only in where the mask goes.
#include "machine/valu.h"

// ORDERED types have sixteen relations for floats, eight for integers.
#define LOOP(name, type, load, expression)    \
  static void name(struct emu_half_wave *x) { \
    uint32_t r[EMU_HALF];                     \
    EMU_EACH {                                \
      type a = load(0), b = load(1);          \
      (void)a, (void)b;                       \
      r[l] = -(uint32_t)(expression);         \
    }                                         \
    x->mask_out = emu__mask_of(r);            \
  }
#define LOAD_F32(i) emu__f32(x->s[i][l])
#define LOAD_F16(i) emu__f16_to_f32((uint16_t)x->s[i][l])
#define LOAD_F64(i) emu__f64(emu__pair(x->s[i], l))
#define LOAD_32(i) x->s[i][l]
#define LOAD_I32(i) (int32_t)x->s[i][l]
#define LOAD_I16(i) (int16_t)x->s[i][l]
#define LOAD_U16(i) (uint16_t)x->s[i][l]
#define LOAD_U64(i) emu__pair(x->s[i], l)
#define LOAD_I64(i) (int64_t)emu__pair(x->s[i], l)

#define FLOATS(suffix, type, load)                  \
  LOOP(f_##suffix, type, load, 0)                   \
  LOOP(lt_##suffix, type, load, a < b)              \
  LOOP(eq_##suffix, type, load, a == b)             \
  LOOP(le_##suffix, type, load, a <= b)             \
  LOOP(gt_##suffix, type, load, a > b)              \
  LOOP(lg_##suffix, type, load, a<b || a> b)        \
  LOOP(ge_##suffix, type, load, a >= b)             \
  LOOP(o_##suffix, type, load, a == a && b == b)    \
  LOOP(u_##suffix, type, load, a != a || b != b)    \
  LOOP(nge_##suffix, type, load, !(a >= b))         \
  LOOP(nlg_##suffix, type, load, !(a < b || a > b)) \
  LOOP(ngt_##suffix, type, load, !(a > b))          \
  LOOP(nle_##suffix, type, load, !(a <= b))         \
  LOOP(neq_##suffix, type, load, !(a == b))         \
  LOOP(nlt_##suffix, type, load, !(a < b))          \
  LOOP(t_##suffix, type, load, 1)
FLOATS(f16, float, LOAD_F16)
FLOATS(f32, float, LOAD_F32)
FLOATS(f64, double, LOAD_F64)

#define INTEGERS(suffix, type, load)    \
  LOOP(lt_##suffix, type, load, a < b)  \
  LOOP(eq_##suffix, type, load, a == b) \
  LOOP(le_##suffix, type, load, a <= b) \
  LOOP(gt_##suffix, type, load, a > b)  \
  LOOP(ne_##suffix, type, load, a != b) \
  LOOP(ge_##suffix, type, load, a >= b)
INTEGERS(i16, int16_t, LOAD_I16)
INTEGERS(u16, uint16_t, LOAD_U16)
INTEGERS(i32, int32_t, LOAD_I32)
INTEGERS(u32, uint32_t, LOAD_32)
INTEGERS(i64, int64_t, LOAD_I64)
INTEGERS(u64, uint64_t, LOAD_U64)
static void never(struct emu_half_wave *x) { x->mask_out = 0; }
static void always(struct emu_half_wave *x) { x->mask_out = UINT32_MAX; }

// The ten classes of V_CMP_CLASS: signaling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
static inline unsigned class_of(uint64_t bits, unsigned mantissa, unsigned exponent) {
  uint64_t fraction = bits & ((UINT64_C(1) << mantissa) - 1), top = bits >> mantissa & ((1u << exponent) - 1);
  bool negative = bits >> (mantissa + exponent) & 1;
  if (top == (1u << exponent) - 1) {
    if (fraction) return fraction >> (mantissa - 1) ? 1 : 0;
    return negative ? 2 : 9;
  }
  unsigned kind = top ? 0 : fraction ? 1 : 2;  // normal, denormal, zero
  return negative ? 3 + kind : 8 - kind;
}
static void class_f16(struct emu_half_wave *x) {
  EMU_EACH x->mask_out |= (x->s[1][l] >> class_of(x->s[0][l] & 0xffff, 10, 5) & 1) << l;
}
static void class_f32(struct emu_half_wave *x) {
  EMU_EACH x->mask_out |= (x->s[1][l] >> class_of(x->s[0][l], 23, 8) & 1) << l;
}
static void class_f64(struct emu_half_wave *x) {
  EMU_EACH x->mask_out |= (x->s[1][l] >> class_of(emu__pair(x->s[0], l), 52, 11) & 1) << l;
}

#define ROW_F(relation, TYPE, type, which) \
  EMU_ALU_F(V_CMP_##relation##_##TYPE, type, which), EMU_ALU_F(V_CMPX_##relation##_##TYPE, type, which)
#define ROWS_F(TYPE, t, which)                                                                              \
  ROW_F(F, TYPE, f_##t, which), ROW_F(LT, TYPE, lt_##t, which), ROW_F(EQ, TYPE, eq_##t, which),             \
      ROW_F(LE, TYPE, le_##t, which), ROW_F(GT, TYPE, gt_##t, which), ROW_F(LG, TYPE, lg_##t, which),       \
      ROW_F(GE, TYPE, ge_##t, which), ROW_F(O, TYPE, o_##t, which), ROW_F(U, TYPE, u_##t, which),           \
      ROW_F(NGE, TYPE, nge_##t, which), ROW_F(NLG, TYPE, nlg_##t, which), ROW_F(NGT, TYPE, ngt_##t, which), \
      ROW_F(NLE, TYPE, nle_##t, which), ROW_F(NEQ, TYPE, neq_##t, which), ROW_F(NLT, TYPE, nlt_##t, which), \
      ROW_F(T, TYPE, t_##t, which)
#define ROW(relation, TYPE, function) \
  EMU_ALU(V_CMP_##relation##_##TYPE, function), EMU_ALU(V_CMPX_##relation##_##TYPE, function)
#define ROWS(TYPE, t)                                                                                                \
  ROW(LT, TYPE, lt_##t), ROW(EQ, TYPE, eq_##t), ROW(LE, TYPE, le_##t), ROW(GT, TYPE, gt_##t), ROW(NE, TYPE, ne_##t), \
      ROW(GE, TYPE, ge_##t)
#define ROWS_FT(TYPE, t) ROW(F, TYPE, never), ROW(T, TYPE, always), ROWS(TYPE, t)

const struct emu_action emu__compare_actions[] = {ROWS_F(F16, f16, 64),
                                                  ROWS_F(F32, f32, 32),
                                                  ROWS_F(F64, f64, 64),
                                                  ROWS_FT(I16, i16),
                                                  ROWS_FT(U16, u16),
                                                  ROWS_FT(I32, i32),
                                                  ROWS_FT(U32, u32),
                                                  ROWS_FT(I64, i64),
                                                  ROWS_FT(U64, u64),
                                                  ROW(CLASS, F16, class_f16),
                                                  ROW(CLASS, F32, class_f32),
                                                  ROW(CLASS, F64, class_f64),
                                                  {0}};
