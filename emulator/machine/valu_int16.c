// Vector integer operations on 16 bits, single and packed, and packing.
#include "machine/valu.h"

static inline int32_t low_i(uint32_t v) { return (int16_t)v; }
static inline uint32_t low_u(uint32_t v) { return v & 0xffff; }
static inline uint32_t saturate_i16(int64_t v) { return (uint16_t)(v > 32767 ? 32767 : v < -32768 ? -32768 : v); }
static inline uint32_t saturate_u16(int64_t v) { return (uint16_t)(v > 65535 ? 65535 : v < 0 ? 0 : v); }
static inline uint32_t wrap(int64_t v) { return (uint16_t)v; }
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

// One operation gives its single form `name` and its packed form `pk_name`. a, b and c are the numbers, signed or not
// by `take`; `saturate` applies under clamp.
#define OP16(name, sources, take, expression, saturate)                                            \
  static inline uint32_t one_##name(uint32_t ra, uint32_t rb, uint32_t rc, bool clamp) {           \
    int64_t a = take(ra), b = take(rb), c = take(rc);                                              \
    (void)a, (void)b, (void)c;                                                                     \
    int64_t v = expression;                                                                        \
    return clamp ? saturate(v) : wrap(v);                                                          \
  }                                                                                                \
  static void name(struct emu_half_wave *x) {                                                      \
    bool clamp = x->inst->clamp;                                                                   \
    EMU_EACH {                                                                                     \
      uint32_t b = sources > 1 ? x->s[1][l] : 0, c = sources > 2 ? x->s[2][l] : 0;                 \
      x->d[l] = one_##name(x->s[0][l], b, c, clamp);                                               \
    }                                                                                              \
  }                                                                                                \
  __attribute__((unused)) static void pk_##name(struct emu_half_wave *x) {                         \
    bool clamp = x->inst->clamp;                                                                   \
    EMU_EACH {                                                                                     \
      uint32_t a = x->s[0][l], b = sources > 1 ? x->s[1][l] : 0, c = sources > 2 ? x->s[2][l] : 0; \
      x->d[l] = one_##name(a, b, c, clamp) | one_##name(a >> 16, b >> 16, c >> 16, clamp) << 16;   \
    }                                                                                              \
  }

OP16(mov16, 1, low_u, a, wrap)
OP16(not16, 1, low_u, ~a, wrap)
OP16(and16, 2, low_u, a &b, wrap)
OP16(or16, 2, low_u, a | b, wrap)
OP16(xor16, 2, low_u, a ^ b, wrap)
OP16(add_u16, 2, low_u, a + b, saturate_u16)
OP16(sub_u16, 2, low_u, a - b, saturate_u16)
OP16(subrev_u16, 2, low_u, b - a, saturate_u16)
OP16(add_i16, 2, low_i, a + b, saturate_i16)
OP16(sub_i16, 2, low_i, a - b, saturate_i16)
OP16(mul_u16, 2, low_u, a *b, saturate_u16)
OP16(mad_u16, 3, low_u, a *b + c, saturate_u16)
OP16(mad_i16, 3, low_i, a *b + c, saturate_i16)
OP16(min_u16, 2, low_u, MIN(a, b), wrap)
OP16(max_u16, 2, low_u, MAX(a, b), wrap)
OP16(min_i16, 2, low_i, MIN(a, b), wrap)
OP16(max_i16, 2, low_i, MAX(a, b), wrap)
OP16(min3_u16, 3, low_u, MIN(MIN(a, b), c), wrap)
OP16(max3_u16, 3, low_u, MAX(MAX(a, b), c), wrap)
OP16(med3_u16, 3, low_u, MAX(MIN(a, b), MIN(MAX(a, b), c)), wrap)
OP16(min3_i16, 3, low_i, MIN(MIN(a, b), c), wrap)
OP16(max3_i16, 3, low_i, MAX(MAX(a, b), c), wrap)
OP16(med3_i16, 3, low_i, MAX(MIN(a, b), MIN(MAX(a, b), c)), wrap)
OP16(lshl16, 2, low_u, b << (a & 15), wrap)
OP16(lshr16, 2, low_u, b >> (a & 15), wrap)
OP16(ashr16, 2, low_i, b >> (a & 15), wrap)

static void pack(struct emu_half_wave *x) { EMU_EACH x->d[l] = (x->s[0][l] & 0xffff) | x->s[1][l] << 16; }
static void pack_saturated_u(struct emu_half_wave *x) {
  EMU_EACH x->d[l] = saturate_u16(x->s[0][l]) | saturate_u16(x->s[1][l]) << 16;
}
static void pack_saturated_i(struct emu_half_wave *x) {
  EMU_EACH x->d[l] = saturate_i16((int32_t)x->s[0][l]) | saturate_i16((int32_t)x->s[1][l]) << 16;
}
static inline uint32_t saturate_u8(int32_t v) { return (uint32_t)(v < 0 ? 0 : v > 255 ? 255 : v); }
static void sat_pk_u8(struct emu_half_wave *x) {
  EMU_EACH x->d[l] = saturate_u8(low_i(x->s[0][l])) | saturate_u8(low_i(x->s[0][l] >> 16)) << 8;
}

const struct emu_action emu__int16_actions[] = {EMU_ALU(V_MOV_B16, mov16),
                                                EMU_ALU(V_NOT_B16, not16),
                                                EMU_ALU(V_AND_B16, and16),
                                                EMU_ALU(V_OR_B16, or16),
                                                EMU_ALU(V_XOR_B16, xor16),
                                                EMU_ALU_SAT(V_ADD_NC_U16, add_u16),
                                                EMU_ALU_SAT(V_SUB_NC_U16, sub_u16),
                                                EMU_ALU_SAT(V_SUBREV_NC_U16, subrev_u16),
                                                EMU_ALU_SAT(V_MAD_LEGACY_U16, mad_u16),
                                                EMU_ALU_SAT(V_MAD_LEGACY_I16, mad_i16),
                                                EMU_ALU_SAT(V_ADD_NC_I16, add_i16),
                                                EMU_ALU_SAT(V_SUB_NC_I16, sub_i16),
                                                EMU_ALU(V_MUL_LO_U16, mul_u16),
                                                EMU_ALU_SAT(V_MAD_U16, mad_u16),
                                                EMU_ALU_SAT(V_MAD_I16, mad_i16),
                                                EMU_ALU(V_MIN_U16, min_u16),
                                                EMU_ALU(V_MAX_U16, max_u16),
                                                EMU_ALU(V_MIN_I16, min_i16),
                                                EMU_ALU(V_MAX_I16, max_i16),
                                                EMU_ALU(V_MIN3_U16, min3_u16),
                                                EMU_ALU(V_MAX3_U16, max3_u16),
                                                EMU_ALU(V_MED3_U16, med3_u16),
                                                EMU_ALU(V_MIN3_I16, min3_i16),
                                                EMU_ALU(V_MAX3_I16, max3_i16),
                                                EMU_ALU(V_MED3_I16, med3_i16),
                                                EMU_ALU(V_LSHLREV_B16, lshl16),
                                                EMU_ALU(V_LSHRREV_B16, lshr16),
                                                EMU_ALU(V_ASHRREV_I16, ashr16),
                                                EMU_ALU_SAT(V_PK_MAD_I16, pk_mad_i16),
                                                EMU_ALU_SAT(V_PK_MAD_U16, pk_mad_u16),
                                                EMU_ALU(V_PK_MUL_LO_U16, pk_mul_u16),
                                                EMU_ALU_SAT(V_PK_ADD_I16, pk_add_i16),
                                                EMU_ALU_SAT(V_PK_SUB_I16, pk_sub_i16),
                                                EMU_ALU_SAT(V_PK_ADD_U16, pk_add_u16),
                                                EMU_ALU_SAT(V_PK_SUB_U16, pk_sub_u16),
                                                EMU_ALU(V_PK_LSHLREV_B16, pk_lshl16),
                                                EMU_ALU(V_PK_LSHRREV_B16, pk_lshr16),
                                                EMU_ALU(V_PK_ASHRREV_I16, pk_ashr16),
                                                EMU_ALU(V_PK_MAX_I16, pk_max_i16),
                                                EMU_ALU(V_PK_MIN_I16, pk_min_i16),
                                                EMU_ALU(V_PK_MAX_U16, pk_max_u16),
                                                EMU_ALU(V_PK_MIN_U16, pk_min_u16),
                                                EMU_ALU(V_PACK_B32_F16, pack),
                                                EMU_ALU(V_CVT_PK_U16_U32, pack_saturated_u),
                                                EMU_ALU(V_CVT_PK_I16_I32, pack_saturated_i),
                                                EMU_ALU(V_SAT_PK_U8_I16, sat_pk_u8),
                                                {0}};
