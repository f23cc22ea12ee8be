// WMMA whose factors all lanes share out: D = A B + C on tiles of 16 x 16, over the whole wave whatever EXEC says.
//
// Lane l holds row l % 16 of A and column l % 16 of B; K is divided among the lanes of one row, low bits of registers
// first. Of C and D a lane holds column l % 16, and as many rows, one behind the other:
//
//     32 lanes        A, 16-bit elements            C, D, 32-bit elements
//       lanes 0 … 15    K = 0 … 7 in r0 … r3          rows 0 … 7 in r0 … r7
//       lanes 16 … 31   K = 8 … 15                    rows 8 … 15
//
// 16-bit elements of C and D lie two in a register. Sums in floats are those of wmma.c: how GFX12 rounds within a sum
// differs, and is not done here (HARDWARE_MATH.md).
#include "machine/hardware_dot.h"
#include "machine/valu.h"

enum element { F16, BF16, FP8, BF8, I8, I4 };
static const uint8_t element_bits[] = {16, 16, 8, 8, 8, 4};

struct product {
  enum element a, b;
  unsigned depth;  // K
  enum { TO_F32, TO_F16, TO_BF16, TO_I32 } result;
};

// Element k of a row, its bits at the bottom.
static uint32_t element_at(const struct emu_wave *w, const struct emu_operand *o, unsigned row, unsigned k,
                           unsigned bits, unsigned depth) {
  unsigned in_lane = depth * 16 / w->lanes, lane = k / in_lane * 16 + row, at = k % in_lane * bits;
  uint32_t word = *emu__vector(w, o->reg + at / 32, lane);
  return emu__bits(word, at % 32, bits);
}

// E4M3 without infinities and E5M2, exactly as halves: the one's numbers are those of a half with other places, the
// other is a half's upper byte.
static uint32_t half_of(uint32_t v, enum element kind) {
  if (kind == BF8) return v << 8;
  uint32_t sign = (v & 0x80) << 8, magnitude = v & 0x7f;
  if (magnitude == 0x7f) return sign | 0x7e00;
  if (magnitude >= 8) return sign | ((magnitude << 7) + ((15 - 7) << 10));
  return sign | emu__f32_to_f16((float)magnitude * 0x1p-9f);
}

static void read_factor(const struct emu_wave *w, const struct emu_operand *o, enum element kind, uint32_t to[16][8]) {
  unsigned bits = element_bits[kind];
  for (unsigned row = 0; row < 16; row++) {
    for (unsigned k = 0; k < 16; k += 2) {
      uint32_t low = element_at(w, o, row, k, bits, 16), high = element_at(w, o, row, k + 1, bits, 16);
      if (bits == 8) low = half_of(low, kind), high = half_of(high, kind);
      to[row][k / 2] = (low ^ (o->neg ? 0x8000u : 0)) | (high ^ (o->neg_high ? 0x8000u : 0)) << 16;
    }
  }
}

// Where element (row, column) of C and D is: its lane, and its number among the lane's.
static unsigned place(const struct emu_wave *w, unsigned row, unsigned column, unsigned *lane) {
  unsigned rows = 256 / w->lanes;
  *lane = row / rows * 16 + column;
  return row % rows;
}

static void read_c(const struct emu_wave *w, const struct emu_inst *inst, const struct product *p, uint32_t c[16][16]) {
  const struct emu_operand *o = &inst->src[2];
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

static int32_t integer_at(const struct emu_wave *w, const struct emu_operand *o, unsigned row, unsigned k,
                          const struct product *p) {
  unsigned bits = element_bits[p->a];
  uint32_t v = element_at(w, o, row, k, bits, p->depth) << (32 - bits);
  return o->neg ? (int32_t)v >> (32 - bits) : (int32_t)(v >> (32 - bits));
}

static void multiply_integers(const struct emu_wave *w, const struct emu_inst *inst, const struct product *p,
                              uint32_t c[16][16]) {
  int32_t a[16][32], b[16][32];
  for (unsigned i = 0; i < 16; i++) {
    for (unsigned k = 0; k < p->depth; k++) {
      a[i][k] = integer_at(w, &inst->src[0], i, k, p);
      b[i][k] = integer_at(w, &inst->src[1], i, k, p);
    }
  }
  for (unsigned row = 0; row < 16; row++) {
    for (unsigned column = 0; column < 16; column++) {
      int64_t sum = (int32_t)c[row][column];
      for (unsigned k = 0; k < p->depth; k++) sum += a[row][k] * b[column][k];
      if (inst->clamp) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      c[row][column] = (uint32_t)sum;
    }
  }
}

static void run(struct emu_wave *w, const struct emu_step *step, const struct product *p) {
  const struct emu_inst *inst = step->inst;
  if (p->result == TO_F16 && w->mode & EMU_MODE_FP16_OVFL) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0,
                   "WMMA with half-precision results is not executed under FP16_OVFL.");
    return;
  }
  uint32_t c[16][16], d[16][16];
  read_c(w, inst, p, c);
  if (p->result == TO_I32) {
    multiply_integers(w, inst, p, c);
    write_d(w, inst, p, c);
    return;
  }
  static const enum emu_dot_result results[] = {EMU_DOT_F32, EMU_DOT_F16, EMU_DOT_BF16};
  uint32_t a[16][8], b[16][8];
  read_factor(w, &inst->src[0], p->a, a);
  read_factor(w, &inst->src[1], p->b, b);
  emu__hw_wmma((const uint32_t(*)[8])a, (const uint32_t(*)[8])b, (const uint32_t(*)[16])c, d, p->a == BF16,
               results[p->result]);
  write_d(w, inst, p, d);
}

#define PRODUCTS(X)                              \
  X(F32_16X16X16_F16, F16, F16, 16, TO_F32)      \
  X(F32_16X16X16_BF16, BF16, BF16, 16, TO_F32)   \
  X(F16_16X16X16_F16, F16, F16, 16, TO_F16)      \
  X(BF16_16X16X16_BF16, BF16, BF16, 16, TO_BF16) \
  X(F32_16X16X16_FP8_FP8, FP8, FP8, 16, TO_F32)  \
  X(F32_16X16X16_FP8_BF8, FP8, BF8, 16, TO_F32)  \
  X(F32_16X16X16_BF8_FP8, BF8, FP8, 16, TO_F32)  \
  X(F32_16X16X16_BF8_BF8, BF8, BF8, 16, TO_F32)  \
  X(I32_16X16X16_IU8, I8, I8, 16, TO_I32)        \
  X(I32_16X16X16_IU4, I4, I4, 16, TO_I32)        \
  X(I32_16X16X32_IU4, I4, I4, 32, TO_I32)
#define X(name, a, b, depth, result)                                        \
  static void run_##name(struct emu_wave *w, const struct emu_step *step) { \
    run(w, step, &(const struct product){a, b, depth, result});             \
  }
PRODUCTS(X)
#undef X

const struct emu_action emu__fragment_actions[] = {
#define X(name, a, b, depth, result) {.op = EMU_V_WMMA_SPLIT_##name, .klass = EMU_CLASS_WMMA, .run = run_##name},
    PRODUCTS(X)
#undef X
        {0}};
