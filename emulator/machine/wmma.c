// WMMA of GFX11: D = A B + C on tiles of 16 x 16, over the whole wave whatever EXEC says.
//
// Lanes 0 to 15 hold the rows of A and the columns of B, with K running through the registers, low bits first; the
// other lanes hold copies, which are not read here. Of C and D, register i of lane l holds column l % 16: of row
// 2 i + l / 16 in a wave of 32 lanes, of row 4 i + l / 16 in one of 64.
//
//     A, 16-bit elements        r0         r1       …  r7              C, D, 32 lanes   lanes 0 … 15   lanes 16 … 31
//       lane 0              A[0][0,1]  A[0][2,3]  …  A[0][14,15]       r0                 row 0           row 1
//       lane 1              A[1][0,1]  A[1][2,3]  …  A[1][14,15]       r1                 row 2           row 3
//       …                                                              …
//
// So the rows of C and D follow each other as the lanes of one register after the other do.
//
// Sums in floats are eight DOT2 steps, as measured on gfx1100 (see dot.c).
#include "machine/hardware_dot.h"
#include "machine/valu.h"

struct tiles {
  uint32_t a[16][8], b[16][8];  // (row or column, register)
  uint32_t c[16][16], d[16][16];
};

static void read_factor(const struct emu_wave *w, const struct emu_operand *o, uint32_t to[16][8]) {
  uint32_t flip = (o->neg ? 0x8000u : 0) | (o->neg_high ? 0x80000000u : 0);
  bool integers = o->type == EMU_TILE4 || o->type == EMU_TILE2;
  for (unsigned k = 0; k < o->dwords; k++) {
    for (unsigned l = 0; l < 16; l++) to[l][k] = *emu__vector(w, o->reg + k, l) ^ (integers ? 0 : flip);
  }
}

// half: a 16-bit element, in the low or the high part of the register.
static void read_c(const struct emu_wave *w, const struct emu_inst *inst, bool half, bool bfloat, uint32_t c[16][16]) {
  const struct emu_operand *o = &inst->src[2];
  uint32_t constant = (uint32_t)o->value, sign = half ? 0x8000 : 0x80000000u;
  if (half && o->reg >= 240) constant = bfloat ? constant >> 16 : emu__f32_to_f16(emu__f32(constant));
  bool constant_c = o->kind != EMU_OPERAND_VECTOR;
  unsigned low = half && o->high && !constant_c ? 16 : 0;
  uint32_t keep = (half ? 0xffff : UINT32_MAX) & (o->neg_high ? ~sign : UINT32_MAX), flip = o->neg ? sign : 0;
  for (unsigned i = 0; i < 256 / w->lanes; i++) {
    uint32_t *to = &c[0][0] + i * w->lanes;
    const uint32_t *from = constant_c ? NULL : emu__vector(w, o->reg + i, 0);
    for (unsigned l = 0; l < w->lanes; l++) to[l] = (((from ? from[l] : constant) >> low) & keep) ^ flip;
  }
}

static void write_d(const struct emu_wave *w, const struct emu_inst *inst, bool half, uint32_t d[16][16]) {
  for (unsigned i = 0; i < 256 / w->lanes; i++) {
    uint32_t *to = emu__vector(w, inst->dst.reg + i, 0);
    const uint32_t *from = &d[0][0] + i * w->lanes;
    if (!half) {
      memcpy(to, from, w->lanes * 4);
      continue;
    }
    for (unsigned l = 0; l < w->lanes; l++)
      to[l] = inst->src[2].high ? (to[l] & 0xffff) | from[l] << 16 : (to[l] & 0xffff0000) | from[l];
  }
}

static void run_float(struct emu_wave *w, const struct emu_step *step, bool bfloat, enum emu_dot_result result) {
  struct tiles t;
  bool half = result != EMU_DOT_F32;
  read_factor(w, &step->inst->src[0], t.a);
  read_factor(w, &step->inst->src[1], t.b);
  read_c(w, step->inst, half, bfloat, t.c);
  emu__hw_wmma((const uint32_t(*)[8])t.a, (const uint32_t(*)[8])t.b, (const uint32_t(*)[16])t.c, t.d, bfloat, result);
  write_d(w, step->inst, half, t.d);
}

static int32_t element(uint32_t word, int i, int bits, bool is_signed) {
  uint32_t v = word << (32 - bits - i * bits);
  return is_signed ? (int32_t)v >> (32 - bits) : (int32_t)(v >> (32 - bits));
}

static void read_elements(uint32_t words[16][8], int bits, bool is_signed, int16_t to[16][16]) {
  int in_word = 32 / bits;
  for (int i = 0; i < 16; i++) {
    for (int k = 0; k < 16; k++) to[i][k] = (int16_t)element(words[i][k / in_word], k % in_word, bits, is_signed);
  }
}

static void run_integer(struct emu_wave *w, const struct emu_step *step, int bits) {
  const struct emu_inst *inst = step->inst;
  struct tiles t;
  int16_t a[16][16], b[16][16];
  read_factor(w, &inst->src[0], t.a);
  read_factor(w, &inst->src[1], t.b);
  read_elements(t.a, bits, inst->src[0].neg, a);
  read_elements(t.b, bits, inst->src[1].neg, b);
  struct emu_inst plain = *inst;
  plain.src[2].neg = plain.src[2].neg_high = false;
  read_c(w, &plain, false, false, t.c);
  for (int row = 0; row < 16; row++) {
    for (int column = 0; column < 16; column++) {
      int32_t products = 0;
      for (int k = 0; k < 16; k++) products += a[row][k] * b[column][k];
      int64_t sum = (int64_t)(int32_t)t.c[row][column] + products;
      if (inst->clamp) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      t.d[row][column] = (uint32_t)sum;
    }
  }
  write_d(w, inst, false, t.d);
}

#define RUN(name, call) \
  static void name(struct emu_wave *w, const struct emu_step *step) { call; }
// Where a sum of eight steps that overflows is cut to the largest number is not known.
static void f16_f16(struct emu_wave *w, const struct emu_step *step) {
  if (w->mode & EMU_MODE_FP16_OVFL) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0,
                   "WMMA with half-precision results is not executed under FP16_OVFL.");
    return;
  }
  run_float(w, step, false, EMU_DOT_F16);
}
RUN(f32_f16, run_float(w, step, false, EMU_DOT_F32))
RUN(f32_bf16, run_float(w, step, true, EMU_DOT_F32))
RUN(bf16_bf16, run_float(w, step, true, EMU_DOT_BF16))
RUN(i32_iu8, run_integer(w, step, 8))
RUN(i32_iu4, run_integer(w, step, 4))

#define ROW(name, f) {.op = EMU_V_WMMA_##name, .klass = EMU_CLASS_WMMA, .run = f}
const struct emu_action emu__wmma_actions[] = {ROW(F32_16X16X16_F16, f32_f16),
                                               ROW(F32_16X16X16_BF16, f32_bf16),
                                               ROW(F16_16X16X16_F16, f16_f16),
                                               ROW(BF16_16X16X16_BF16, bf16_bf16),
                                               ROW(I32_16X16X16_IU8, i32_iu8),
                                               ROW(I32_16X16X16_IU4, i32_iu4),
                                               {0}};
