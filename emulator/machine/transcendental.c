// The functions of the transcendental unit, as hardware_math.h has them. The double forms are seeds of limited accuracy
// on hardware, whose bits nobody has published; here they are rounded correctly.
#include <math.h>

#include "machine/hardware_math.h"
#include "machine/valu.h"

#define EACH(name, function)                        \
  static void name##_f32(struct emu_half_wave *x) { \
    bool quiet = x->mode & EMU_MODE_QUIETS;         \
    EMU_EACH x->d[l] = function(x->s[0][l], quiet); \
  }
#define LANES(name, function)                                                                          \
  EMU_LANES name##_f32(struct emu_half_wave *x) { function(x->s[0], x->d, x->mode &EMU_MODE_QUIETS); } \
  EMU_PLAIN(name##_f32, 1)
LANES(rcp, emu__hw_rcp_lanes)
LANES(rsq, emu__hw_rsq_lanes)
LANES(square_root, emu__hw_sqrt_lanes)
LANES(exp_, emu__hw_exp_lanes)
EACH(log_, emu__hw_log_f32)

static void trig(struct emu_half_wave *x, bool cosine) {
  EMU_EACH x->d[l] = emu__hw_trig_f32(x->s[0][l], cosine, x->mode >> 4 & 3, x->mode & EMU_MODE_QUIETS);
}
static void sin_f32(struct emu_half_wave *x) { trig(x, false); }
static void cos_f32(struct emu_half_wave *x) { trig(x, true); }

#define HALF(name, function)                                                                         \
  static void name##_f16(struct emu_half_wave *x) {                                                  \
    bool overflow_to_max = x->mode >> 23 & 1, quiet = x->mode & EMU_MODE_QUIETS;                     \
    EMU_EACH x->d[l] = emu__hw_half(function, x->s[0][l], x->mode >> 6 & 3, overflow_to_max, quiet); \
  }
HALF(rcp, EMU_HW_RCP)
HALF(rsq, EMU_HW_RSQ)
HALF(square_root, EMU_HW_SQRT)
HALF(exp_, EMU_HW_EXP)
HALF(log_, EMU_HW_LOG)
HALF(sin, EMU_HW_SIN)
HALF(cos, EMU_HW_COS)

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
#define DIRECT(name, f) {.op = EMU_##name, .klass = EMU_CLASS_TRANSCENDENTAL, .lanes = f, .plain = f##_plain}
const struct emu_action emu__transcendental_actions[] = {DIRECT(V_RCP_F32, rcp_f32),
                                                         DIRECT(V_RCP_IFLAG_F32, rcp_f32),
                                                         DIRECT(V_RSQ_F32, rsq_f32),
                                                         DIRECT(V_SQRT_F32, square_root_f32),
                                                         DIRECT(V_EXP_F32, exp__f32),
                                                         ROW(V_LOG_F32, log__f32),
                                                         ROW(V_SIN_F32, sin_f32),
                                                         ROW(V_COS_F32, cos_f32),
                                                         ROW(V_RCP_F16, rcp_f16),
                                                         ROW(V_RSQ_F16, rsq_f16),
                                                         ROW(V_SQRT_F16, square_root_f16),
                                                         ROW(V_EXP_F16, exp__f16),
                                                         ROW(V_LOG_F16, log__f16),
                                                         ROW(V_SIN_F16, sin_f16),
                                                         ROW(V_COS_F16, cos_f16),
                                                         ROW(V_RCP_F64, rcp_f64),
                                                         ROW(V_RSQ_F64, rsq_f64),
                                                         ROW(V_SQRT_F64, square_root_f64),
                                                         {0}};
