// Vector integer and bit operations on 32 and 64 bits.
#include "machine/valu.h"

#define OP1(name, expression)               \
  EMU_LANES name(struct emu_half_wave *x) { \
    const uint32_t *s0 = x->s[0];           \
    uint32_t r[EMU_HALF];                   \
    EMU_EACH {                              \
      uint32_t a = s0[l];                   \
      r[l] = (uint32_t)(expression);        \
    }                                       \
    emu__copy(x->d, r);                     \
  }
#define OP2(name, expression)                    \
  EMU_LANES name(struct emu_half_wave *x) {      \
    const uint32_t *s0 = x->s[0], *s1 = x->s[1]; \
    uint32_t r[EMU_HALF];                        \
    EMU_EACH {                                   \
      uint32_t a = s0[l], b = s1[l];             \
      r[l] = (uint32_t)(expression);             \
    }                                            \
    emu__copy(x->d, r);                          \
  }
#define OP3(name, expression)                                   \
  EMU_LANES name(struct emu_half_wave *x) {                     \
    const uint32_t *s0 = x->s[0], *s1 = x->s[1], *s2 = x->s[2]; \
    uint32_t r[EMU_HALF];                                       \
    EMU_EACH {                                                  \
      uint32_t a = s0[l], b = s1[l], c = s2[l];                 \
      r[l] = (uint32_t)(expression);                            \
    }                                                           \
    emu__copy(x->d, r);                                         \
  }

#define I(x) ((int32_t)(x))
#define U64(x) ((uint64_t)(x))
#define I64(x) ((int64_t)(int32_t)(x))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline uint32_t reverse(uint32_t v) {
  v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
  v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
  v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(v);
}
static inline uint32_t leading(uint32_t v) { return v ? (uint32_t)__builtin_clz(v) : UINT32_MAX; }
static inline uint32_t trailing(uint32_t v) { return v ? (uint32_t)__builtin_ctz(v) : UINT32_MAX; }
// How many bits follow the sign that equal it, the sign counted; none differs: -1.
static inline uint32_t sign_run(uint32_t v) {
  uint32_t folded = v ^ (uint32_t)(I(v) >> 31);
  return folded ? (uint32_t)__builtin_clz(folded) : UINT32_MAX;
}

OP1(mov, a)
OP1(not, ~a)
OP1(bfrev, reverse(a))
OP1(clz, leading(a))
OP1(ctz, trailing(a))
OP1(cls, sign_run(a))
OP1(sext16, I((int16_t)a))
OP1(zext16, (uint16_t)a)

OP2(lshl, b << (a & 31))
OP2(lshr, b >> (a & 31))
OP2(ashr, I(b) >> (a & 31))
OP2(and, a &b)
OP2(or, a | b)
OP2(xor, a ^ b)
OP2(xnor, ~(a ^ b))
OP2(min_i, MIN(I(a), I(b)))
OP2(max_i, MAX(I(a), I(b)))
OP2(min_u, MIN(a, b))
OP2(max_u, MAX(a, b))
OP2(mul_lo, a *b)
OP2(mul_hi_u, U64(a) * b >> 32)
OP2(mul_hi_i, I64(a) * I64(b) >> 32)
OP2(bfm, ((1u << (a & 31)) - 1) << (b & 31))
OP2(bcnt, (uint32_t)__builtin_popcount(a) + b)

static inline int64_t i24(uint32_t v) { return (int32_t)(v << 8) >> 8; }
static inline uint64_t u24(uint32_t v) { return v & 0xffffff; }
OP2(mul_hi_i24, i24(a) * i24(b) >> 32)
OP2(mul_hi_u24, u24(a) * u24(b) >> 32)

OP3(add3, a + b + c)
OP3(xor3, a ^ b ^ c)
OP3(or3, a | b | c)
OP3(xad, (a ^ b) + c)
OP3(lshl_add, (a << (b & 31)) + c)
OP3(add_lshl, (a + b) << (c & 31))
OP3(lshl_or, a << (b & 31) | c)
OP3(and_or, (a & b) | c)
OP3(bfi, (a & b) | (~a & c))
OP3(bfe_u, a >> (b & 31) & ((1u << (c & 31)) - 1))
OP3(alignbit, (U64(a) << 32 | b) >> (c & 31))
OP3(alignbyte, (U64(a) << 32 | b) >> (8 * (c & 3)))
OP3(min3_i, MIN(MIN(I(a), I(b)), I(c)))
OP3(max3_i, MAX(MAX(I(a), I(b)), I(c)))
OP3(min3_u, MIN(MIN(a, b), c))
OP3(max3_u, MAX(MAX(a, b), c))
OP3(med3_i, MAX(MIN(I(a), I(b)), MIN(MAX(I(a), I(b)), I(c))))
OP3(med3_u, MAX(MIN(a, b), MIN(MAX(a, b), c)))
OP3(maxmin_u, MIN(MAX(a, b), c))
OP3(minmax_u, MAX(MIN(a, b), c))
OP3(maxmin_i, MIN(MAX(I(a), I(b)), I(c)))
OP3(minmax_i, MAX(MIN(I(a), I(b)), I(c)))

static inline uint32_t bit_field_signed(uint32_t a, uint32_t offset, uint32_t width) {
  offset &= 31, width &= 31;
  if (!width) return 0;
  uint32_t v = a >> offset;
  // a field that runs past bit 31 takes its sign there, as an arithmetic shift would
  if (offset + width >= 32) return (uint32_t)(I(a) >> offset);
  return (uint32_t)(I(v << (32 - width)) >> (32 - width));
}
OP3(bfe_i, bit_field_signed(a, b, c))

static inline uint32_t permute_byte(uint64_t bytes, uint32_t select) {
  if (select >= 13) return 0xff;
  if (select == 12) return 0;
  if (select >= 8) return bytes >> (16 * (select - 8) + 15) & 1 ? 0xff : 0;
  return bytes >> (8 * select) & 0xff;
}
static void perm(struct emu_half_wave *x) {
  EMU_EACH {
    uint64_t bytes = U64(x->s[0][l]) << 32 | x->s[1][l];
    uint32_t select = x->s[2][l], r = 0;
    for (int i = 0; i < 4; i++) r |= permute_byte(bytes, select >> (8 * i) & 0xff) << (8 * i);
    x->d[l] = r;
  }
}

static inline uint32_t byte_of(uint32_t v, int i) { return v >> (8 * i) & 0xff; }
static inline uint32_t apart(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
static inline uint32_t add_clamped(uint64_t sum, bool clamp) {
  return clamp && sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}
#define SAD(name, expression, shift)                               \
  static void name(struct emu_half_wave *x) {                      \
    bool clamp = x->inst->clamp;                                   \
    EMU_EACH {                                                     \
      uint32_t a = x->s[0][l], b = x->s[1][l];                     \
      uint64_t sum = 0;                                            \
      expression;                                                  \
      x->d[l] = add_clamped((sum << (shift)) + x->s[2][l], clamp); \
    }                                                              \
  }
SAD(sad_u8, for (int i = 0; i < 4; i++) sum += apart(byte_of(a, i), byte_of(b, i)), 0)
SAD(sad_hi_u8, for (int i = 0; i < 4; i++) sum += apart(byte_of(a, i), byte_of(b, i)), 16)
SAD(sad_u16, sum = apart(a & 0xffff, b & 0xffff) + apart(a >> 16, b >> 16), 0)
SAD(sad_u32, sum = apart(a, b), 0)
SAD(msad_u8, for (int i = 0; i < 4; i++) if (byte_of(b, i)) sum += apart(byte_of(a, i), byte_of(b, i)), 0)

// Four sums of four differences: of the bytes from 0, 1, 2 and 3 on.
static inline uint32_t apart4(uint32_t a, uint32_t b, bool masked) {
  uint32_t sum = 0;
  for (int i = 0; i < 4; i++) sum += masked && !byte_of(b, i) ? 0 : apart(byte_of(a, i), byte_of(b, i));
  return sum;
}
static void quads16(struct emu_half_wave *x, bool masked) {
  EMU_EACH {
    uint64_t a = emu__pair(x->s[0], l), c = emu__pair(x->s[2], l), r = 0;
    for (int i = 0; i < 4; i++) {
      uint32_t sum = apart4((uint32_t)(a >> 8 * i), x->s[1][l], masked) + (uint32_t)(c >> 16 * i & 0xffff);
      r |= U64(sum & 0xffff) << 16 * i;
    }
    emu__set_pair(x->d, l, r);
  }
}
static void qsad_pk(struct emu_half_wave *x) { quads16(x, false); }
static void mqsad_pk(struct emu_half_wave *x) { quads16(x, true); }
static void mqsad_u32(struct emu_half_wave *x) {
  EMU_EACH {
    uint64_t a = emu__pair(x->s[0], l);
    for (int i = 0; i < 4; i++) {
      x->d[l + i * EMU_HALF] = apart4((uint32_t)(a >> 8 * i), x->s[1][l], true) + x->s[2][l + i * EMU_HALF];
    }
  }
}

static void lerp(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t a = x->s[0][l], b = x->s[1][l], c = x->s[2][l], r = 0;
    for (int i = 0; i < 4; i++) r |= ((byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1)) >> 1) << (8 * i);
    x->d[l] = r;
  }
}

// Sums and differences, which saturate under clamp.
static inline uint32_t saturate_i(int64_t v) {
  return (uint32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v);
}
static inline uint32_t saturate_u(int64_t v) { return v < 0 ? 0 : v > UINT32_MAX ? UINT32_MAX : (uint32_t)v; }
#define SATURATING(name, wrapped, exact, saturate) \
  EMU_LANES name(struct emu_half_wave *x) {        \
    const uint32_t *s0 = x->s[0], *s1 = x->s[1];   \
    uint32_t r[EMU_HALF];                          \
    if (!x->inst->clamp) {                         \
      EMU_EACH {                                   \
        uint32_t a = s0[l], b = s1[l];             \
        r[l] = (uint32_t)(wrapped);                \
      }                                            \
    } else {                                       \
      EMU_EACH {                                   \
        uint32_t a = s0[l], b = s1[l];             \
        r[l] = saturate(exact);                    \
      }                                            \
    }                                              \
    emu__copy(x->d, r);                            \
  }
SATURATING(add_nc, a + b, (int64_t)a + b, saturate_u)
SATURATING(sub_nc, a - b, (int64_t)a - b, saturate_u)
SATURATING(subrev_nc, b - a, (int64_t)b - a, saturate_u)
SATURATING(add_nc_i, a + b, I64(a) + I64(b), saturate_i)
SATURATING(sub_nc_i, a - b, I64(a) - I64(b), saturate_i)
SATURATING(mul_i24, i24(a) * i24(b), i24(a) * i24(b), saturate_i)
SATURATING(mul_u24, u24(a) * u24(b), (int64_t)(u24(a) * u24(b)), saturate_u)

#define MAD24(name, product, saturate, addend)                                                       \
  EMU_LANES name(struct emu_half_wave *x) {                                                          \
    const uint32_t *s0 = x->s[0], *s1 = x->s[1], *s2 = x->s[2];                                      \
    uint32_t r[EMU_HALF];                                                                            \
    bool clamp = x->inst->clamp;                                                                     \
    EMU_EACH {                                                                                       \
      uint32_t a = s0[l], b = s1[l], c = s2[l];                                                      \
      r[l] = clamp ? saturate((int64_t)(product) + addend(c)) : (uint32_t)((uint64_t)(product) + c); \
    }                                                                                                \
    emu__copy(x->d, r);                                                                              \
  }
#define AS_UNSIGNED(c) ((int64_t)(c))
MAD24(mad_i24, i24(a) * i24(b), saturate_i, I64)
MAD24(mad_u24, u24(a) * u24(b), saturate_u, AS_UNSIGNED)
MAD24(mad_u16, U64(a & 0xffff) * (b & 0xffff), saturate_u, AS_UNSIGNED)
MAD24(mad_i16, (int64_t)(int16_t)a *(int16_t)b, saturate_i, I64)

// Carries: a mask in, a mask out. `carried` is of the 32-bit result v.
#define CARRY(name, wrapped, carried, exact)                       \
  EMU_LANES name(struct emu_half_wave *x) {                        \
    const uint32_t *s0 = x->s[0], *s1 = x->s[1];                   \
    uint32_t in = x->mask_in, r[EMU_HALF], out[EMU_HALF];          \
    EMU_EACH {                                                     \
      uint32_t a = s0[l], b = s1[l], c = in >> l & 1, v = wrapped; \
      (void)c;                                                     \
      r[l] = v;                                                    \
      out[l] = -(uint32_t)(carried);                               \
    }                                                              \
    if (x->inst->clamp) {                                          \
      EMU_EACH {                                                   \
        int64_t a = s0[l], b = s1[l], c = in >> l & 1;             \
        (void)c;                                                   \
        r[l] = saturate_u(exact);                                  \
      }                                                            \
    }                                                              \
    x->mask_out = emu__mask_of(out);                               \
    emu__copy(x->d, r);                                            \
  }
CARRY(add_co, a + b, v < a, a + b)
CARRY(sub_co, a - b, a < b, a - b)
CARRY(subrev_co, b - a, b < a, b - a)
CARRY(add_co_ci, a + b + c, (v < a) | (c & (v == a)), a + b + c)
CARRY(sub_co_ci, a - b - c, (a < b) | (c & (a == b)), a - b - c)
CARRY(subrev_co_ci, b - a - c, (b < a) | (c & (a == b)), b - a - c)

EMU_LANES cndmask(struct emu_half_wave *x) {
  const uint32_t *s0 = x->s[0], *s1 = x->s[1];
  uint32_t in = x->mask_in, r[EMU_HALF];
  EMU_EACH r[l] = in >> l & 1 ? s1[l] : s0[l];
  emu__copy(x->d, r);
}

static inline emu_fours product_of(emu_fours a, emu_fours b) {
  return (emu_fours)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
EMU_LANES mad_u64_u32(struct emu_half_wave *x) {
  uint32_t carried[2 * EMU_HALF], r[2 * EMU_HALF];
  for (int l = 0; l < EMU_HALF; l += 8) {
    struct emu_pairs a = emu__extended(x->s[0], l), b = emu__extended(x->s[1], l), c = emu__pairs(x->s[2], l);
    emu_fours first = product_of(a.first, b.first), second = product_of(a.second, b.second);
    struct emu_pairs sum = {first + c.first, second + c.second};
    emu__put_pairs(r, l, sum);
    emu__put_pairs(carried, l, (struct emu_pairs){(emu_fours)(sum.first < first), (emu_fours)(sum.second < second)});
  }
  x->mask_out = emu__mask_of(carried);
  if (x->inst->clamp && x->mask_out) EMU_EACH if (x->mask_out >> l & 1) emu__set_pair(r, l, UINT64_MAX);
  emu__copy(x->d, r);
  emu__copy(x->d + EMU_HALF, r + EMU_HALF);
}

static void mad_i64_i32(struct emu_half_wave *x) {
  uint32_t out = 0;
  EMU_EACH {
    int64_t product = I64(x->s[0][l]) * I64(x->s[1][l]), c = (int64_t)emu__pair(x->s[2], l), sum;
    bool over = __builtin_add_overflow(product, c, &sum);
    out |= (uint32_t)over << l;
    if (over && x->inst->clamp) sum = c < 0 ? INT64_MIN : INT64_MAX;
    emu__set_pair(x->d, l, (uint64_t)sum);
  }
  x->mask_out = out;
}

// Of 64 bits, four at a time: `a` is the distance, b the value.
#define SHIFT64(name, expression)                                                                                     \
  static inline emu_fours name##_fours(emu_fours a, emu_fours b) { return (expression); }                             \
  EMU_LANES name(struct emu_half_wave *x) {                                                                           \
    uint32_t r[2 * EMU_HALF];                                                                                         \
    for (int l = 0; l < EMU_HALF; l += 8) {                                                                           \
      struct emu_pairs a = emu__extended(x->s[0], l), b = emu__pairs(x->s[1], l);                                     \
      emu__put_pairs(r, l,                                                                                            \
                     (struct emu_pairs){name##_fours(a.first & 63, b.first), name##_fours(a.second & 63, b.second)}); \
    }                                                                                                                 \
    emu__copy(x->d, r);                                                                                               \
    emu__copy(x->d + EMU_HALF, r + EMU_HALF);                                                                         \
  }
SHIFT64(lshl64, b << a)
SHIFT64(lshr64, b >> a)
// the host shifts with zeros alone
static inline emu_fours sign_of(emu_fours v) {
  return (emu_fours)_mm256_cmpgt_epi64(_mm256_setzero_si256(), (__m256i)v);
}
SHIFT64(ashr64, ((b ^ sign_of(b)) >> a) ^ sign_of(b))

// Lanes below this one whose bit is set, counted in the low or the high word of a mask of 64.
static void mbcnt_lo(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t below = x->half ? UINT32_MAX : (1u << l) - 1;
    x->d[l] = (uint32_t)__builtin_popcount(x->s[0][l] & below) + x->s[1][l];
  }
}
static void mbcnt_hi(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t below = x->half ? (1u << l) - 1 : 0;
    x->d[l] = (uint32_t)__builtin_popcount(x->s[0][l] & below) + x->s[1][l];
  }
}

static void mov64(struct emu_half_wave *x) { EMU_EACH emu__set_pair(x->d, l, emu__pair(x->s[0], l)); }
EMU_LANES lshl_add64(struct emu_half_wave *x) {
  uint32_t r[2 * EMU_HALF];
  for (int l = 0; l < EMU_HALF; l += 8) {
    struct emu_pairs a = emu__pairs(x->s[0], l), b = emu__extended(x->s[1], l), c = emu__pairs(x->s[2], l);
    emu__put_pairs(r, l,
                   (struct emu_pairs){(a.first << (b.first & 7)) + c.first, (a.second << (b.second & 7)) + c.second});
  }
  emu__copy(x->d, r);
  emu__copy(x->d + EMU_HALF, r + EMU_HALF);
}
// The first half is the one that op_sel chose of the first source, the second that of the second.
static void pk_mov(struct emu_half_wave *x) {
  EMU_EACH emu__set_pair(x->d, l, x->s[0][l] | (uint64_t)x->s[1][l] << 32);
}

// The most frequent ones have functions of their own.
EMU_PLAIN(mov, 1)
EMU_PLAIN(lshl, 2)
EMU_PLAIN(lshr, 2)
EMU_PLAIN(ashr, 2)
EMU_PLAIN(and, 2)
EMU_PLAIN(or, 2)
EMU_PLAIN(xor, 2)

EMU_PLAIN(add_nc, 2)
EMU_PLAIN(sub_nc, 2)
EMU_PLAIN(subrev_nc, 2)
EMU_PLAIN(add3, 3)
EMU_PLAIN(lshl_add, 3)
EMU_PLAIN(add_lshl, 3)
EMU_PLAIN(lshl_or, 3)
EMU_PLAIN(and_or, 3)
EMU_PLAIN(or3, 3)
EMU_PLAIN(bfe_u, 3)
EMU_PLAIN(bfi, 3)
EMU_PLAIN(mad_u24, 3)
EMU_WHOLE(cndmask, 2)
EMU_WHOLE(add_co, 2)
EMU_WHOLE(sub_co, 2)
EMU_WHOLE(add_co_ci, 2)
EMU_WHOLE(sub_co_ci, 2)
EMU_WHOLE(lshl64, 2)
EMU_WHOLE(mad_u64_u32, 3)
EMU_WHOLE(lshl_add64, 3)

// Bit 4 a + 2 b + c of the table for bits a, b and c.
static void bitop3(struct emu_half_wave *x) {
  uint32_t table = (uint32_t)x->inst->imm;
  EMU_EACH {
    uint32_t a = x->s[0][l], b = x->s[1][l], c = x->s[2][l], r = 0;
    for (unsigned i = 0; i < 8; i++)
      if (table >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    x->d[l] = r;
  }
}

static uint32_t within(int32_t v, int32_t least, int32_t most) {
  return (uint32_t)(v < least ? least : v > most ? most : v) & 0xff;
}
#define SHIFT_PAIR(name, least, most)                                                                     \
  static void name(struct emu_half_wave *x) {                                                             \
    EMU_EACH {                                                                                            \
      int32_t a = (int32_t)x->s[0][l] >> (x->s[2][l] & 31), b = (int32_t)x->s[1][l] >> (x->s[2][l] & 31); \
      x->d[l] = within(a, least, most) | within(b, least, most) << 8;                                     \
    }                                                                                                     \
  }
SHIFT_PAIR(ashr_pk_i8, -128, 127)
SHIFT_PAIR(ashr_pk_u8, 0, 255)

const struct emu_action emu__int_actions[] = {
    EMU_ALU(V_BITOP3_B32, bitop3),
    EMU_ALU(V_BITOP3_B16, bitop3),
    {.op = EMU_V_ASHR_PK_I8_I32, .klass = EMU_CLASS_VALU, .lanes = ashr_pk_i8, .part = 16},
    {.op = EMU_V_ASHR_PK_U8_I32, .klass = EMU_CLASS_VALU, .lanes = ashr_pk_u8, .part = 16},
    EMU_ALU_PLAIN(V_MOV_B32, mov),
    EMU_ALU_PLAIN(V_ACCVGPR_MOV_B32, mov),
    EMU_ALU_PLAIN(V_ACCVGPR_READ_B32, mov),
    EMU_ALU_PLAIN(V_ACCVGPR_WRITE_B32, mov),
    EMU_ALU(V_MOV_B64, mov64),
    EMU_ALU(V_PK_MOV_B32, pk_mov),
    EMU_ALU_WHOLE(V_LSHL_ADD_U64, lshl_add64),
    EMU_ALU(V_NOT_B32, not),
    EMU_ALU(V_BFREV_B32, bfrev),
    EMU_ALU(V_CLZ_I32_U32, clz),
    EMU_ALU(V_CTZ_I32_B32, ctz),
    EMU_ALU(V_CLS_I32, cls),
    EMU_ALU(V_CVT_I32_I16, sext16),
    EMU_ALU(V_CVT_U32_U16, zext16),
    EMU_ALU_WHOLE(V_CNDMASK_B32, cndmask),
    EMU_ALU_WHOLE(V_CNDMASK_B16, cndmask),
    EMU_ALU_SAT_PLAIN(V_ADD_NC_U32, add_nc),
    EMU_ALU_SAT_PLAIN(V_SUB_NC_U32, sub_nc),
    EMU_ALU_SAT_PLAIN(V_SUBREV_NC_U32, subrev_nc),
    EMU_ALU_SAT(V_ADD_NC_I32, add_nc_i),
    EMU_ALU_SAT(V_SUB_NC_I32, sub_nc_i),
    EMU_ALU_SAT_WHOLE(V_ADD_CO_U32, add_co),
    EMU_ALU_SAT_WHOLE(V_SUB_CO_U32, sub_co),
    EMU_ALU_SAT(V_SUBREV_CO_U32, subrev_co),
    EMU_ALU_SAT_WHOLE(V_ADD_CO_CI_U32, add_co_ci),
    EMU_ALU_SAT_WHOLE(V_SUB_CO_CI_U32, sub_co_ci),
    EMU_ALU_SAT(V_SUBREV_CO_CI_U32, subrev_co_ci),
    EMU_ALU_PLAIN(V_LSHLREV_B32, lshl),
    EMU_ALU_PLAIN(V_LSHRREV_B32, lshr),
    EMU_ALU_PLAIN(V_ASHRREV_I32, ashr),
    EMU_ALU_PLAIN(V_AND_B32, and),
    EMU_ALU_PLAIN(V_OR_B32, or),
    EMU_ALU_PLAIN(V_XOR_B32, xor),
    EMU_ALU(V_XNOR_B32, xnor),
    EMU_ALU(V_MIN_I32, min_i),
    EMU_ALU(V_MAX_I32, max_i),
    EMU_ALU(V_MIN_U32, min_u),
    EMU_ALU(V_MAX_U32, max_u),
    EMU_ALU_C(V_MUL_LO_U32, mul_lo, NONE, VALU_64),
    EMU_ALU_C(V_MUL_HI_U32, mul_hi_u, NONE, VALU_64),
    EMU_ALU_C(V_MUL_HI_I32, mul_hi_i, NONE, VALU_64),
    EMU_ALU_SAT(V_MUL_I32_I24, mul_i24),
    EMU_ALU_SAT(V_MUL_U32_U24, mul_u24),
    EMU_ALU(V_MUL_HI_I32_I24, mul_hi_i24),
    EMU_ALU(V_MUL_HI_U32_U24, mul_hi_u24),
    EMU_ALU_SAT(V_MAD_I32_I24, mad_i24),
    EMU_ALU_SAT_PLAIN(V_MAD_U32_U24, mad_u24),
    EMU_ALU_SAT(V_MAD_U32_U16, mad_u16),
    EMU_ALU_SAT(V_MAD_I32_I16, mad_i16),
    {.op = EMU_V_MAD_U64_U32,
     .klass = EMU_CLASS_VALU_64,
     .lanes = mad_u64_u32,
     .whole = mad_u64_u32_whole,
     .saturates = true},
    {.op = EMU_V_MAD_I64_I32, .klass = EMU_CLASS_VALU_64, .lanes = mad_i64_i32, .saturates = true},
    EMU_ALU(V_BFM_B32, bfm),
    EMU_ALU(V_BCNT_U32_B32, bcnt),
    EMU_ALU(V_MBCNT_LO_U32_B32, mbcnt_lo),
    EMU_ALU(V_MBCNT_HI_U32_B32, mbcnt_hi),
    EMU_ALU_PLAIN(V_ADD3_U32, add3),
    EMU_ALU(V_XOR3_B32, xor3),
    EMU_ALU_PLAIN(V_OR3_B32, or3),
    EMU_ALU(V_XAD_U32, xad),
    EMU_ALU_PLAIN(V_LSHL_ADD_U32, lshl_add),
    EMU_ALU_PLAIN(V_ADD_LSHL_U32, add_lshl),
    EMU_ALU_PLAIN(V_LSHL_OR_B32, lshl_or),
    EMU_ALU_PLAIN(V_AND_OR_B32, and_or),
    EMU_ALU_PLAIN(V_BFI_B32, bfi),
    EMU_ALU_PLAIN(V_BFE_U32, bfe_u),
    EMU_ALU(V_BFE_I32, bfe_i),
    EMU_ALU(V_ALIGNBIT_B32, alignbit),
    EMU_ALU(V_ALIGNBYTE_B32, alignbyte),
    EMU_ALU(V_PERM_B32, perm),
    EMU_ALU(V_MIN3_I32, min3_i),
    EMU_ALU(V_MAX3_I32, max3_i),
    EMU_ALU(V_MED3_I32, med3_i),
    EMU_ALU(V_MIN3_U32, min3_u),
    EMU_ALU(V_MAX3_U32, max3_u),
    EMU_ALU(V_MED3_U32, med3_u),
    EMU_ALU(V_MAXMIN_U32, maxmin_u),
    EMU_ALU(V_MINMAX_U32, minmax_u),
    EMU_ALU(V_MAXMIN_I32, maxmin_i),
    EMU_ALU(V_MINMAX_I32, minmax_i),
    EMU_ALU_SAT(V_SAD_U8, sad_u8),
    EMU_ALU_SAT(V_SAD_HI_U8, sad_hi_u8),
    EMU_ALU_SAT(V_SAD_U16, sad_u16),
    EMU_ALU_SAT(V_SAD_U32, sad_u32),
    EMU_ALU_SAT(V_MSAD_U8, msad_u8),
    EMU_ALU(V_QSAD_PK_U16_U8, qsad_pk),
    EMU_ALU(V_MQSAD_PK_U16_U8, mqsad_pk),
    EMU_ALU(V_MQSAD_U32_U8, mqsad_u32),
    EMU_ALU(V_LERP_U8, lerp),
    {.op = EMU_V_LSHLREV_B64, .klass = EMU_CLASS_VALU_64, .lanes = lshl64, .whole = lshl64_whole},
    EMU_ALU_C(V_LSHRREV_B64, lshr64, NONE, VALU_64),
    EMU_ALU_C(V_ASHRREV_I64, ashr64, NONE, VALU_64),
    {0}};
