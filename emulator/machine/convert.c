// Conversions between formats.
#include "machine/valu.h"

#define EACH1(name, expression)               \
  static void name(struct emu_half_wave *x) { \
    uint32_t r[EMU_HALF];                     \
    const uint32_t *s0 = x->s[0];             \
    EMU_EACH {                                \
      uint32_t a = s0[l];                     \
      r[l] = (uint32_t)(expression);          \
    }                                         \
    emu__copy(x->d, r);                       \
  }

// Out of range goes to the nearest end, NaN to zero. Every such number is exact in double.
static inline int32_t to_i32(double v) {
  return v != v ? 0 : v >= 2147483647.0 ? INT32_MAX : v <= -2147483648.0 ? INT32_MIN : (int32_t)v;
}
static inline uint32_t to_u32(double v) {
  return v != v || v <= 0 ? 0 : v >= 4294967295.0 ? UINT32_MAX : (uint32_t)(int64_t)v;
}
static inline uint32_t to_i16(float v) {
  return (uint16_t)(v != v ? 0 : v >= 32767 ? 32767 : v <= -32768 ? -32768 : (int32_t)v);
}
static inline uint32_t to_u16(float v) { return v != v || v <= 0 ? 0 : v >= 65535 ? 65535 : (uint32_t)(int32_t)v; }
static inline uint32_t quiet32(uint32_t bits) { return emu__is_nan32(bits) ? bits | 0x400000 : bits; }

EACH1(f32_i32, emu__bits32((float)(int32_t)a))
EACH1(f32_u32, emu__bits32((float)a))
EACH1(i32_f32, to_i32((double)emu__f32(a)))
EACH1(u32_f32, to_u32((double)emu__f32(a)))
// A NaN is 0, or the end of the range on its side where gfx1201's rules hold, as recorded there.
static inline uint32_t whole_i32(uint32_t bits, double more, uint32_t mode) {
  if (mode & EMU_MODE_2019 && emu__is_nan32(bits)) return bits >> 31 ? 0x80000000u : 0x7fffffff;
  return (uint32_t)to_i32(__builtin_floor((double)emu__f32(bits) + more));
}
EACH1(nearest_i32_f32, whole_i32(a, 0.5, x->mode))
EACH1(floor_i32_f32, whole_i32(a, 0, x->mode))
EACH1(f16_f32, emu__f32_to_f16(emu__f32(a)))
EACH1(f32_f16, quiet32(emu__bits32(emu__f16_to_f32((uint16_t)a))))
EACH1(off_f32_i4, emu__bits32((float)((int32_t)(a << 28) >> 28) * 0.0625f))
EACH1(ubyte0, emu__bits32((float)(a & 0xff)))
EACH1(ubyte1, emu__bits32((float)(a >> 8 & 0xff)))
EACH1(ubyte2, emu__bits32((float)(a >> 16 & 0xff)))
EACH1(ubyte3, emu__bits32((float)(a >> 24)))
EACH1(f16_u16, emu__f32_to_f16((float)(uint16_t)a))
EACH1(f16_i16, emu__f32_to_f16((float)(int16_t)a))
EACH1(u16_f16, to_u16(emu__f16_to_f32((uint16_t)a)))
EACH1(i16_f16, to_i16(emu__f16_to_f32((uint16_t)a)))

static void f64_i32(struct emu_half_wave *x) {
  EMU_EACH emu__set_pair(x->d, l, emu__bits64((double)(int32_t)x->s[0][l]));
}
static void f64_u32(struct emu_half_wave *x) { EMU_EACH emu__set_pair(x->d, l, emu__bits64((double)x->s[0][l])); }
static void f64_f32(struct emu_half_wave *x) {
  EMU_EACH emu__set_pair(x->d, l, emu__bits64((double)emu__f32(x->s[0][l])));
}
static void f32_f64(struct emu_half_wave *x) { EMU_EACH x->d[l] = emu__bits32((float)emu__f64(emu__pair(x->s[0], l))); }
static void i32_f64(struct emu_half_wave *x) { EMU_EACH x->d[l] = (uint32_t)to_i32(emu__f64(emu__pair(x->s[0], l))); }
static void u32_f64(struct emu_half_wave *x) { EMU_EACH x->d[l] = to_u32(emu__f64(emu__pair(x->s[0], l))); }

#define EACH2(name, expression)                                 \
  static void name(struct emu_half_wave *x) {                   \
    EMU_EACH {                                                  \
      float a = emu__f32(x->s[0][l]), b = emu__f32(x->s[1][l]); \
      x->d[l] = expression;                                     \
    }                                                           \
  }
EACH2(pk_rtz, (uint32_t)_cvtss_sh(a, _MM_FROUND_TO_ZERO) | (uint32_t)_cvtss_sh(b, _MM_FROUND_TO_ZERO) << 16)
EACH2(pk_i16_f32, to_i16(a) | to_i16(b) << 16)
EACH2(pk_u16_f32, to_u16(a) | to_u16(b) << 16)

// Of -1 to 1, or of 0 to 1, to all of the integers but the least signed one; rounded as MODE says.
static inline uint32_t normal(float v, float least, float most) {
  float r = v != v ? 0 : v < least ? least : v > 1 ? 1 : v;
  return (uint16_t)(int32_t)__builtin_rint((double)r * (double)most);
}
static inline uint32_t normal_i16(float v) { return normal(v, -1, 32767); }
static inline uint32_t normal_u16(float v) { return normal(v, 0, 65535); }
EACH1(norm_i16_f16, normal_i16(emu__f16_to_f32((uint16_t)a)))
EACH1(norm_u16_f16, normal_u16(emu__f16_to_f32((uint16_t)a)))
EACH2(pk_norm_i16_f32, normal_i16(a) | normal_i16(b) << 16)
EACH2(pk_norm_u16_f32, normal_u16(a) | normal_u16(b) << 16)
static void pk_norm_i16_f16(struct emu_half_wave *x) {
  EMU_EACH x->d[l] =
      normal_i16(emu__f16_to_f32((uint16_t)x->s[0][l])) | normal_i16(emu__f16_to_f32((uint16_t)x->s[1][l])) << 16;
}
static void pk_norm_u16_f16(struct emu_half_wave *x) {
  EMU_EACH x->d[l] =
      normal_u16(emu__f16_to_f32((uint16_t)x->s[0][l])) | normal_u16(emu__f16_to_f32((uint16_t)x->s[1][l])) << 16;
}

EACH1(f32_bf16, quiet32(a << 16))
EACH2(pk_bf16, emu__bfloat_of(emu__bits32(a)) | emu__bfloat_of(emu__bits32(b)) << 16)
EACH2(pk_nearest, (uint32_t)emu__f32_to_f16(a) | (uint32_t)emu__f32_to_f16(b) << 16)

// Into one byte of the third source, toward zero.
static void pk_u8_f32(struct emu_half_wave *x) {
  EMU_EACH {
    float v = emu__f32(x->s[0][l]);
    uint32_t byte = v != v || v <= 0 ? 0 : v >= 255 ? 255 : (uint32_t)v, at = 8 * (x->s[1][l] & 3);
    x->d[l] = (x->s[2][l] & ~(255u << at)) | byte << at;
  }
}

#define F32(name, function) EMU_ALU_F(name, function, 32)
#define F64(name, function) EMU_ALU_F(name, function, 64)
#define WIDE(name, function, which) EMU_ALU_C(name, function, which, VALU_64)
const struct emu_action emu__convert_actions[] = {F32(V_CVT_F32_I32, f32_i32),
                                                  F32(V_CVT_F32_U32, f32_u32),
                                                  F32(V_CVT_I32_F32, i32_f32),
                                                  F32(V_CVT_U32_F32, u32_f32),
                                                  F32(V_CVT_NEAREST_I32_F32, nearest_i32_f32),
                                                  F32(V_CVT_FLOOR_I32_F32, floor_i32_f32),
                                                  F32(V_CVT_OFF_F32_I4, off_f32_i4),
                                                  F32(V_CVT_F32_UBYTE0, ubyte0),
                                                  F32(V_CVT_F32_UBYTE1, ubyte1),
                                                  F32(V_CVT_F32_UBYTE2, ubyte2),
                                                  F32(V_CVT_F32_UBYTE3, ubyte3),
                                                  F64(V_CVT_F16_F32, f16_f32),
                                                  F64(V_CVT_F32_F16, f32_f16),
                                                  F64(V_CVT_F16_U16, f16_u16),
                                                  F64(V_CVT_F16_I16, f16_i16),
                                                  F64(V_CVT_U16_F16, u16_f16),
                                                  F64(V_CVT_I16_F16, i16_f16),
                                                  F64(V_CVT_PK_RTZ_F16_F32, pk_rtz),
                                                  F64(V_CVT_NORM_I16_F16, norm_i16_f16),
                                                  F64(V_CVT_NORM_U16_F16, norm_u16_f16),
                                                  F64(V_CVT_PK_NORM_I16_F16, pk_norm_i16_f16),
                                                  F64(V_CVT_PK_NORM_U16_F16, pk_norm_u16_f16),
                                                  F32(V_CVT_PK_NORM_I16_F32, pk_norm_i16_f32),
                                                  F32(V_CVT_PK_NORM_U16_F32, pk_norm_u16_f32),
                                                  F32(V_CVT_PK_U8_F32, pk_u8_f32),
                                                  F32(V_CVT_PKACCUM_U8_F32, pk_u8_f32),
                                                  F32(V_CVT_PK_I16_F32, pk_i16_f32),
                                                  F32(V_CVT_PK_U16_F32, pk_u16_f32),
                                                  WIDE(V_CVT_F64_I32, f64_i32, 64),
                                                  WIDE(V_CVT_F64_U32, f64_u32, 64),
                                                  WIDE(V_CVT_F64_F32, f64_f32, 64),
                                                  WIDE(V_CVT_F32_F64, f32_f64, 32),
                                                  WIDE(V_CVT_I32_F64, i32_f64, 64),
                                                  WIDE(V_CVT_U32_F64, u32_f64, 64),
                                                  EMU_ALU(V_CVT_F32_BF16, f32_bf16),
                                                  EMU_ALU(V_CVT_PK_BF16_F32, pk_bf16),
                                                  EMU_ALU(V_CVT_PK_F16_F32, pk_nearest),
                                                  {0}};
