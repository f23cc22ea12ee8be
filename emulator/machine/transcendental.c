// The functions of the transcendental unit. Whatever MODE says, they flush denormals and round to nearest.
//
// V_EXP_F32, V_LOG_F32 and V_SQRT_F32 are the hardware's bits (transcendental_fixed.c). V_RCP_F32 and V_RSQ_F32 are
// rounded correctly, from which hardware differs by at most one unit in the last place; sines are within one too. The
// halves are rounded from the exact value; the double forms are more exact than the hardware's.
#include "machine/transcendental_fixed.h"

#include <math.h>

#include "machine/valu.h"

static inline uint32_t flush(uint32_t bits) { return bits & 0x7f800000 ? bits : bits & 0x80000000; }

static uint32_t rcp(uint32_t bits) {
  uint32_t a = flush(bits);
  if (emu__is_nan32(a)) return a | 0x400000;
  return flush(emu__bits32(1.0f / emu__f32(a)));
}

static uint32_t rsq(uint32_t bits) {
  uint32_t a = flush(bits);
  if (emu__is_nan32(a)) return a | 0x400000;
  if (!(a & 0x7fffffff)) return a | 0x7f800000;
  if (a >> 31) return 0xffc00000;
  return emu__bits32((float)(1.0 / sqrt((double)emu__f32(a))));
}

static uint32_t square_root(uint32_t bits) { return emu__sqrt_bits(bits); }
static uint32_t exp_(uint32_t bits) { return emu__exp2_bits(bits); }
static uint32_t log_(uint32_t bits) { return emu__log2_bits(bits); }

// In turns.
static double turn(double a, bool cosine) {
  double r = a - nearbyint(a);
  return cosine ? cos(r * 6.283185307179586476925) : sin(r * 6.283185307179586476925);
}
static uint32_t trig(uint32_t bits, bool cosine, bool keeps) {
  uint32_t a = keeps ? bits : flush(bits);
  if (emu__is_nan32(a)) return a | 0x400000;
  if ((a & 0x7fffffff) == 0x7f800000) return 0xffc00000;
  return emu__bits32((float)turn((double)emu__f32(a), cosine));
}
static uint32_t sin_(uint32_t bits) { return trig(bits, false, false); }
static uint32_t cos_(uint32_t bits) { return trig(bits, true, false); }

#define EACH(name) \
  static void name##_f32(struct emu_half_wave *x) { EMU_EACH x->d[l] = name(x->s[0][l]); }
EACH(rcp)
EACH(rsq)
EACH(square_root)
EACH(exp_)
EACH(log_)
EACH(sin_)
EACH(cos_)

// ---- halves: the exact value, rounded

#define HALF(name, expression)                                                             \
  static void name##_f16(struct emu_half_wave *x) {                                        \
    EMU_EACH {                                                                             \
      uint32_t bits = x->s[0][l] & 0xffff;                                                 \
      double a = (double)emu__f16_to_f32((uint16_t)bits), r = expression;                  \
      x->d[l] = emu__is_nan16(bits) ? bits | 0x200 : r != r ? 0xfe00 : emu__f64_to_f16(r); \
    }                                                                                      \
  }
HALF(rcp, 1.0 / a)
HALF(rsq, 1.0 / sqrt(a))
HALF(square_root, sqrt(a))
HALF(exp_, exp2(a))
HALF(log_, log2(a))
HALF(sin_, turn(a, false))
HALF(cos_, turn(a, true))

// ---- doubles

#define DOUBLE(name, expression)                                                \
  static void name##_f64(struct emu_half_wave *x) {                             \
    EMU_EACH {                                                                  \
      uint64_t bits = emu__pair(x->s[0], l);                                    \
      double a = emu__f64(bits), r = expression;                                \
      emu__set_pair(x->d, l, r == r ? emu__bits64(r) : emu__nan64(bits, 0, 0)); \
    }                                                                           \
  }
DOUBLE(rcp, 1.0 / a)
DOUBLE(rsq, 1.0 / sqrt(a))
DOUBLE(square_root, sqrt(a))

#define ROW(name, f) EMU_ALU_C(name, f, NONE, TRANSCENDENTAL)
const struct emu_action emu__transcendental_actions[] = {ROW(V_RCP_F32, rcp_f32),
                                                         ROW(V_RCP_IFLAG_F32, rcp_f32),
                                                         ROW(V_RSQ_F32, rsq_f32),
                                                         ROW(V_SQRT_F32, square_root_f32),
                                                         ROW(V_EXP_F32, exp__f32),
                                                         ROW(V_LOG_F32, log__f32),
                                                         ROW(V_SIN_F32, sin__f32),
                                                         ROW(V_COS_F32, cos__f32),
                                                         ROW(V_RCP_F16, rcp_f16),
                                                         ROW(V_RSQ_F16, rsq_f16),
                                                         ROW(V_SQRT_F16, square_root_f16),
                                                         ROW(V_EXP_F16, exp__f16),
                                                         ROW(V_LOG_F16, log__f16),
                                                         ROW(V_SIN_F16, sin__f16),
                                                         ROW(V_COS_F16, cos__f16),
                                                         ROW(V_RCP_F64, rcp_f64),
                                                         ROW(V_RSQ_F64, rsq_f64),
                                                         ROW(V_SQRT_F64, square_root_f64),
                                                         {0}};
