// WMMA and SWMMAC whose factors all lanes share out: D = A B + C on tiles of 16 x 16, over the whole wave whatever EXEC
// says.
//
// A lane holds elements of row l % 16 of A or of column l % 16 of B, low bits of registers first. In a wave of 32 lanes
// the two lanes of a row share K out: elements of 8 and 4 bits by halves, elements of 16 bits by quarters in turn. Of C
// and D a lane holds 8 rows of column l % 16; 16-bit elements lie two in a register.
//
//     32 lanes        A, 16-bit elements                  A, 8-bit elements            C, D, 32-bit elements
//       lanes 0 … 15    K = 0 … 3 in r0, r1; 8 … 11         K = 0 … 7 in r0, r1          rows 0 … 7 in r0 … r7
//       lanes 16 … 31   K = 4 … 7 in r0, r1; 12 … 15        K = 8 … 15                   rows 8 … 15
//
// In a wave of 64 lanes, lanes 32 to 63 hold what are the upper half of the registers in one of 32; where that has but
// one register, they hold nothing. Source: AMD's matrix instruction calculator, for RDNA 4.
//
// SWMMAC: of every four elements along K, A holds two; which, say two bits for each, that lie in the same lane of a
// register of indices as the element, low bits first. There is room for those of several instructions, of which the
// index key chooses.
#include "machine/float8.h"
#include "machine/hardware_dot.h"
#include "machine/valu.h"

enum element { F16, BF16, FP8, BF8, I8, I4 };
static const uint8_t element_bits[] = {16, 16, 8, 8, 8, 4};

struct product {
  enum element a, b;
  unsigned depth;  // K
  enum { TO_F32, TO_F16, TO_BF16, TO_I32 } result;
  bool sparse;  // A holds half of the elements along K
};

struct spot {
  unsigned lane, reg, bit, number;  // number: which of the lane's elements it is
};

// Where element n of `count` along K is in its row's lanes.
static struct spot spot_of(const struct emu_wave *w, unsigned row, unsigned n, unsigned count, unsigned bits) {
  unsigned in_lane = count / 2, run = bits == 16 ? in_lane / 2 : in_lane;
  struct spot s = {.lane = n / run % 2 * 16 + row, .number = n / (2 * run) * run + n % run};
  unsigned half = in_lane * bits / 64, place = half ? half * 32 / bits : in_lane;
  if (w->lanes == 64 && s.number >= place) {
    s.lane += 32;
    s.number -= place;
  }
  s.reg = s.number * bits / 32;
  s.bit = s.number * bits % 32;
  return s;
}

// Its bits at the bottom.
static uint32_t element_at(const struct emu_wave *w, const struct emu_operand *o, unsigned row, unsigned n,
                           unsigned count, unsigned bits) {
  struct spot s = spot_of(w, row, n, count, bits);
  return emu__bits(*emu__vector(w, o->reg + s.reg, s.lane), s.bit, bits);
}

// The K of B that element n of a row of A meets.
static unsigned meets(const struct emu_wave *w, const struct emu_inst *inst, const struct product *p, unsigned row,
                      unsigned n) {
  if (!p->sparse) return n;
  struct spot s = spot_of(w, row, n, p->depth / 2, element_bits[p->a]);
  unsigned key_bits = (p->depth == 64 ? 1024 : 512) / w->lanes;
  uint32_t indices = *emu__vector(w, inst->src[2].reg, s.lane) >> key_bits * (unsigned)inst->imm % 32;
  return n / 2 * 4 + (indices >> 2 * s.number & 3);
}

static uint16_t half_at(const struct emu_wave *w, const struct emu_operand *o, unsigned row, unsigned n, unsigned count,
                        enum element kind, bool flip) {
  uint32_t v = element_at(w, o, row, n, count, element_bits[kind]);
  if (element_bits[kind] == 8) v = emu__float8_to_half(v, kind == BF8 ? EMU_BF8 : EMU_FP8);
  return (uint16_t)(v ^ (flip ? 0x8000u : 0));
}

static void read_factors(const struct emu_wave *w, const struct emu_inst *inst, const struct product *p,
                         struct emu_pair_tiles *t) {
  const struct emu_operand *a = &inst->src[0], *b = &inst->src[1];
  for (unsigned row = 0; row < 16; row++) {
    for (unsigned n = 0; n < 16; n++) {
      t->a[row][n] = half_at(w, a, row, n, 16, p->a, n % 2 ? a->neg_high : a->neg);
      t->meets[row][n] = (uint8_t)meets(w, inst, p, row, n);
    }
    for (unsigned k = 0; k < p->depth; k++)
      t->b[row][k] = half_at(w, b, row, k, p->depth, p->b, k % 2 ? b->neg_high : b->neg);
  }
}

// Where element (row, column) of C and D is: its lane, and its number among the lane's.
static unsigned place(const struct emu_wave *w, unsigned row, unsigned column, unsigned *lane) {
  *lane = row / 8 * 16 + column;
  if (w->lanes == 32) return row % 8;
  *lane += row / 4 % 2 * 32;
  return row % 4;
}

static void read_c(const struct emu_wave *w, const struct emu_inst *inst, const struct product *p, uint32_t c[16][16]) {
  const struct emu_operand *o = p->sparse ? &inst->dst : &inst->src[2];
  bool half = p->result == TO_F16 || p->result == TO_BF16;
  uint32_t constant = (uint32_t)o->value, sign = half ? 0x8000 : 0x80000000u;
  if (half && o->reg >= 240) constant = p->result == TO_BF16 ? constant >> 16 : emu__f32_to_f16(emu__f32(constant));
  for (unsigned row = 0; row < 16; row++) {
    for (unsigned column = 0; column < 16; column++) {
      unsigned lane, at = place(w, row, column, &lane);
      uint32_t v = constant;
      if (o->kind == EMU_OPERAND_VECTOR) {
        v = half ? *emu__vector(w, o->reg + at / 2, lane) >> at % 2 * 16 : *emu__vector(w, o->reg + at, lane);
      }
      if (half) v &= 0xffff;
      if (p->result != TO_I32 && o->neg_high) v &= ~sign;
      if (p->result != TO_I32 && o->neg) v ^= sign;
      c[row][column] = v;
    }
  }
}

static void write_d(const struct emu_wave *w, const struct emu_inst *inst, const struct product *p,
                    uint32_t d[16][16]) {
  bool half = p->result == TO_F16 || p->result == TO_BF16;
  for (unsigned row = 0; row < 16; row++) {
    for (unsigned column = 0; column < 16; column++) {
      unsigned lane, at = place(w, row, column, &lane);
      if (!half) {
        *emu__vector(w, inst->dst.reg + at, lane) = d[row][column];
        continue;
      }
      uint32_t *to = emu__vector(w, inst->dst.reg + at / 2, lane);
      *to = at % 2 ? (*to & 0xffff) | d[row][column] << 16 : (*to & 0xffff0000) | d[row][column];
    }
  }
}

static int32_t integer_at(const struct emu_wave *w, const struct emu_operand *o, unsigned row, unsigned n,
                          unsigned count, unsigned bits) {
  uint32_t v = element_at(w, o, row, n, count, bits) << (32 - bits);
  return o->neg ? (int32_t)v >> (32 - bits) : (int32_t)(v >> (32 - bits));
}

static void multiply_integers(const struct emu_wave *w, const struct emu_inst *inst, const struct product *p,
                              uint32_t c[16][16]) {
  int32_t a[16][32], b[16][64];
  uint8_t at[16][32];
  unsigned bits = element_bits[p->a], count = p->sparse ? p->depth / 2 : p->depth;
  for (unsigned i = 0; i < 16; i++) {
    for (unsigned n = 0; n < count; n++) {
      a[i][n] = integer_at(w, &inst->src[0], i, n, count, bits);
      at[i][n] = (uint8_t)meets(w, inst, p, i, n);
    }
    for (unsigned k = 0; k < p->depth; k++) b[i][k] = integer_at(w, &inst->src[1], i, k, p->depth, bits);
  }
  for (unsigned row = 0; row < 16; row++) {
    for (unsigned column = 0; column < 16; column++) {
      int64_t sum = (int32_t)c[row][column];
      for (unsigned n = 0; n < count; n++) sum += a[row][n] * b[column][at[row][n]];
      if (inst->clamp) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      c[row][column] = (uint32_t)sum;
    }
  }
}

static void run(struct emu_wave *w, const struct emu_step *step, const struct product *p) {
  const struct emu_inst *inst = step->inst;
  struct emu_pair_tiles t;
  bool one_register = p->sparse && p->a == I4 && p->depth == 32;
  if (one_register && w->lanes == 64 && inst->imm) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0,
                   "Which indices an index key means where half of the lanes hold them is not known.");
    return;
  }
  read_c(w, inst, p, t.c);
  if (p->result == TO_I32) {
    multiply_integers(w, inst, p, t.c);
    write_d(w, inst, p, t.c);
    return;
  }
  static const enum emu_dot_result results[] = {EMU_DOT_F32, EMU_DOT_F16, EMU_DOT_BF16};
  memset(t.b, 0, sizeof(t.b));
  read_factors(w, inst, p, &t);
  emu__hw_pair_tiles(&t, p->a == BF16, results[p->result], w->mode & EMU_MODE_FP16_OVFL);
  write_d(w, inst, p, t.d);
}

#define PRODUCTS(X)                                                \
  X(WMMA_SPLIT_F32_16X16X16_F16, F16, F16, 16, TO_F32, false)      \
  X(WMMA_SPLIT_F32_16X16X16_BF16, BF16, BF16, 16, TO_F32, false)   \
  X(WMMA_SPLIT_F16_16X16X16_F16, F16, F16, 16, TO_F16, false)      \
  X(WMMA_SPLIT_BF16_16X16X16_BF16, BF16, BF16, 16, TO_BF16, false) \
  X(WMMA_SPLIT_F32_16X16X16_FP8_FP8, FP8, FP8, 16, TO_F32, false)  \
  X(WMMA_SPLIT_F32_16X16X16_FP8_BF8, FP8, BF8, 16, TO_F32, false)  \
  X(WMMA_SPLIT_F32_16X16X16_BF8_FP8, BF8, FP8, 16, TO_F32, false)  \
  X(WMMA_SPLIT_F32_16X16X16_BF8_BF8, BF8, BF8, 16, TO_F32, false)  \
  X(WMMA_SPLIT_I32_16X16X16_IU8, I8, I8, 16, TO_I32, false)        \
  X(WMMA_SPLIT_I32_16X16X16_IU4, I4, I4, 16, TO_I32, false)        \
  X(WMMA_SPLIT_I32_16X16X32_IU4, I4, I4, 32, TO_I32, false)        \
  X(SWMMAC_F32_16X16X32_F16, F16, F16, 32, TO_F32, true)           \
  X(SWMMAC_F32_16X16X32_BF16, BF16, BF16, 32, TO_F32, true)        \
  X(SWMMAC_F16_16X16X32_F16, F16, F16, 32, TO_F16, true)           \
  X(SWMMAC_BF16_16X16X32_BF16, BF16, BF16, 32, TO_BF16, true)      \
  X(SWMMAC_F32_16X16X32_FP8_FP8, FP8, FP8, 32, TO_F32, true)       \
  X(SWMMAC_F32_16X16X32_FP8_BF8, FP8, BF8, 32, TO_F32, true)       \
  X(SWMMAC_F32_16X16X32_BF8_FP8, BF8, FP8, 32, TO_F32, true)       \
  X(SWMMAC_F32_16X16X32_BF8_BF8, BF8, BF8, 32, TO_F32, true)       \
  X(SWMMAC_I32_16X16X32_IU8, I8, I8, 32, TO_I32, true)             \
  X(SWMMAC_I32_16X16X32_IU4, I4, I4, 32, TO_I32, true)             \
  X(SWMMAC_I32_16X16X64_IU4, I4, I4, 64, TO_I32, true)
#define X(name, a, b, depth, result, sparse)                                \
  static void run_##name(struct emu_wave *w, const struct emu_step *step) { \
    run(w, step, &(const struct product){a, b, depth, result, sparse});     \
  }
PRODUCTS(X)
#undef X

const struct emu_action emu__fragment_actions[] = {
#define X(name, a, b, depth, result, sparse) {.op = EMU_V_##name, .klass = EMU_CLASS_WMMA, .run = run_##name},
    PRODUCTS(X)
#undef X
        {0}};
