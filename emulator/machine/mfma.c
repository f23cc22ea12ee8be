// Products of matrices of gfx908 and later (MFMA): D = A B + C, over the whole wave of 64 lanes whatever EXEC says;
// some shapes are several products at once, `blocks`.
//
// Of A, lane l holds `run` elements of row l % M that lie beside each other in k, low bits first, and the groups of M
// lanes go on in k, then in the block; of B the same with columns. C and D have four rows in four registers of a lane:
//
//     A, 32 x 32 x 8, 16 bits      r0            r1              C, D, 32 x 32     r0   r1   r2   r3   r4   …
//       lane 0               A[0][0,1]     A[0][2,3]               lanes 0 … 31   0    1    2    3    8    …   rows,
//       lane 32              A[0][4,5]     A[0][6,7]               lanes 32 … 63  4    5    6    7    12   …   column
//       lane 1               A[1][0,1]     …                                                                   l % 32
//
// Sparse products (SMFMAC) add to D. Of A there are two of each four k, lying as those of a product half as deep, and a
// register of indices has two bits for each that a lane holds, which say which of the four it is: several sets of them,
// of which ABID chooses one unless CBSZ says the first.
//
// Source: AMD's matrix instruction calculator. Products are exact, but for XF32's, whose factors lose 13 bits; each is
// added with one rounding, in ascending k. How a card rounds, nobody has recorded. On gfx90a halves and BF16, as
// factors, and sums with them lose their denormals. Source: MIOpen's guide, "MI200 MFMA behavior specifics".
#include <math.h>

#include "machine/checker_state.h"
#include "machine/float8.h"
#include "machine/valu.h"

enum kind { F32, XF32, F16, BF16, I8, FP8, BF8, F64 };

struct shape {
  uint16_t op;
  uint8_t m, k, blocks, kind;  // n is m
  uint8_t kind_b;              // of B, where factors are 8-bit floats
  bool sparse;
};

#define DENSE(name, m_, k_, blocks_, kind_) {.op = EMU_V_##name, .m = m_, .k = k_, .blocks = blocks_, .kind = kind_}
#define SPARSE(name, m_, k_, kind_) {.op = EMU_V_##name, .m = m_, .k = k_, .blocks = 1, .kind = kind_, .sparse = true}
#define MIXED(name, m_, k_, kind_, kind_b_, sparse_) \
  {.op = EMU_V_##name, .m = m_, .k = k_, .blocks = 1, .kind = kind_, .kind_b = kind_b_, .sparse = sparse_}
#define FLOAT8(name, m, k, sparse)                                                              \
  MIXED(name##_BF8_BF8, m, k, BF8, BF8, sparse), MIXED(name##_BF8_FP8, m, k, BF8, FP8, sparse), \
      MIXED(name##_FP8_BF8, m, k, FP8, BF8, sparse), MIXED(name##_FP8_FP8, m, k, FP8, FP8, sparse)
static const struct shape shapes[] = {
    DENSE(MFMA_F32_32X32X1_2B_F32, 32, 1, 2, F32),   DENSE(MFMA_F32_16X16X1_4B_F32, 16, 1, 4, F32),
    DENSE(MFMA_F32_4X4X1_16B_F32, 4, 1, 16, F32),    DENSE(MFMA_F32_32X32X2_F32, 32, 2, 1, F32),
    DENSE(MFMA_F32_16X16X4_F32, 16, 4, 1, F32),      DENSE(MFMA_F32_16X16X8_XF32, 16, 8, 1, XF32),
    DENSE(MFMA_F32_32X32X4_XF32, 32, 4, 1, XF32),    DENSE(MFMA_F32_32X32X4_2B_F16, 32, 4, 2, F16),
    DENSE(MFMA_F32_16X16X4_4B_F16, 16, 4, 4, F16),   DENSE(MFMA_F32_4X4X4_16B_F16, 4, 4, 16, F16),
    DENSE(MFMA_F32_32X32X8_F16, 32, 8, 1, F16),      DENSE(MFMA_F32_16X16X16_F16, 16, 16, 1, F16),
    DENSE(MFMA_F32_32X32X2_2B_BF16, 32, 2, 2, BF16), DENSE(MFMA_F32_16X16X2_4B_BF16, 16, 2, 4, BF16),
    DENSE(MFMA_F32_4X4X2_16B_BF16, 4, 2, 16, BF16),  DENSE(MFMA_F32_32X32X4_BF16, 32, 4, 1, BF16),
    DENSE(MFMA_F32_16X16X8_BF16, 16, 8, 1, BF16),    DENSE(MFMA_F32_32X32X4_2B_BF16, 32, 4, 2, BF16),
    DENSE(MFMA_F32_16X16X4_4B_BF16, 16, 4, 4, BF16), DENSE(MFMA_F32_4X4X4_16B_BF16, 4, 4, 16, BF16),
    DENSE(MFMA_F32_32X32X8_BF16, 32, 8, 1, BF16),    DENSE(MFMA_F32_16X16X16_BF16, 16, 16, 1, BF16),
    DENSE(MFMA_I32_32X32X4_2B_I8, 32, 4, 2, I8),     DENSE(MFMA_I32_16X16X4_4B_I8, 16, 4, 4, I8),
    DENSE(MFMA_I32_4X4X4_16B_I8, 4, 4, 16, I8),      DENSE(MFMA_I32_32X32X8_I8, 32, 8, 1, I8),
    DENSE(MFMA_I32_16X16X16_I8, 16, 16, 1, I8),      DENSE(MFMA_I32_32X32X16_I8, 32, 16, 1, I8),
    DENSE(MFMA_I32_16X16X32_I8, 16, 32, 1, I8),      DENSE(MFMA_F64_16X16X4_F64, 16, 4, 1, F64),
    DENSE(MFMA_F64_4X4X4_4B_F64, 4, 4, 4, F64),      FLOAT8(MFMA_F32_16X16X32, 16, 32, false),
    FLOAT8(MFMA_F32_32X32X16, 32, 16, false),        FLOAT8(SMFMAC_F32_16X16X64, 16, 64, true),
    FLOAT8(SMFMAC_F32_32X32X32, 32, 32, true),       SPARSE(SMFMAC_F32_16X16X32_F16, 16, 32, F16),
    SPARSE(SMFMAC_F32_32X32X16_F16, 32, 16, F16),    SPARSE(SMFMAC_F32_16X16X32_BF16, 16, 32, BF16),
    SPARSE(SMFMAC_F32_32X32X16_BF16, 32, 16, BF16),  SPARSE(SMFMAC_I32_16X16X64_I8, 16, 64, I8),
    SPARSE(SMFMAC_I32_32X32X32_I8, 32, 32, I8),
};

static const struct shape *shape_of(unsigned op) {
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
    if (shapes[i].op == op) return &shapes[i];
  return NULL;
}

// Sources: LLVM's scheduling model; AMD "CDNA3 Instruction Set Architecture", which has a table of passes. gfx942 takes
// half as many for a single block of small elements.
unsigned emu__matrix_passes(const struct emu_isa *target, unsigned op) {
  const struct shape *s = shape_of(op);
  if (!s) return 0;
  if (s->kind == F64) return s->m == 4 ? 4 : 8;
  if (s->m == 4) return 2;
  bool fast = target->matrix_waits == EMU_MATRIX_WAITS_942 && s->blocks == 1 && s->kind != F32;
  return s->m / (fast ? 4 : 2);
}

bool emu__matrix_is_xdl(const struct emu_isa *target, unsigned op) {
  const struct shape *s = shape_of(op);
  return s && s->kind != F64 && (target->matrix_waits != EMU_MATRIX_WAITS_942 || s->kind != F32);
}

bool emu__matrix_is_sparse(unsigned op) {
  const struct shape *s = shape_of(op);
  return s && s->sparse;
}

static unsigned element_bits(enum kind kind) { return kind == F64 ? 64 : kind <= XF32 ? 32 : kind <= BF16 ? 16 : 8; }

// Where element (row or column, k) of a factor lies.
static void find_factor(const struct shape *s, unsigned row, unsigned k, unsigned block, unsigned *lane,
                        unsigned *element) {
  unsigned run = s->m * s->k * s->blocks / 64, groups = s->k / run;
  *element = k % run;
  // of doubles in blocks, the blocks lie between the rows and k
  *lane = s->kind == F64 ? row + s->m * (block + s->blocks * k) : row + s->m * (k / run + groups * block);
}

// Where element (row, column) of C and D lies; registers count elements.
static void find_result(const struct shape *s, unsigned row, unsigned column, unsigned block, unsigned *lane,
                        unsigned *reg) {
  if (s->kind == F64) {
    unsigned lanes = 64 / (s->m * s->blocks);  // rows in the lanes of one register
    *lane = column + s->m * (block + s->blocks * (row % lanes));
    *reg = row / lanes;
  } else if (s->m == 4) {
    *lane = column + 4 * block;
    *reg = row;
  } else {
    unsigned groups = 64 / s->m;
    *lane = column + s->m * (row / 4 % groups);
    *reg = row / (4 * groups) * 4 + row % 4 + s->m * s->m / 64 * block;
  }
}

// The shape by which A lies.
static struct shape shape_of_a(const struct shape *s) {
  struct shape a = *s;
  if (s->sparse) a.k /= 2;
  return a;
}

static bool flushes(const struct emu_wave *w, unsigned kind) {
  return w->group->run->target->matrices_flush && (kind == F16 || kind == BF16);
}

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

static double value_of(unsigned kind, const struct emu_wave *w, unsigned reg, unsigned lane, unsigned element) {
  unsigned bits = element_bits((enum kind)kind), in_register = 32 / bits;
  if (bits == 64) return emu__f64(*emu__vector(w, reg, lane) | (uint64_t)*emu__vector(w, reg + 1, lane) << 32);
  uint32_t v = *emu__vector(w, reg + element / in_register, lane) >> element % in_register * bits;
  switch (kind) {
    case F32:
      return emu__f32(v);
    case XF32:
      return emu__f32(v & ~0x1fffu);
    case F16:
      return emu__f16_to_f32((uint16_t)(flushes(w, kind) && !(v & 0x7c00) ? v & 0x8000 : v));
    case BF16:
      return flushes(w, kind) ? flushed(emu__f32(v << 16)) : emu__f32(v << 16);
    case FP8:
      return emu__f16_to_f32((uint16_t)emu__float8_to_half(v & 0xff, EMU_FP8_FNUZ));
    case BF8:
      return emu__f16_to_f32((uint16_t)emu__float8_to_half(v & 0xff, EMU_BF8_FNUZ));
    default:
      return (int8_t)v;
  }
}

// The lane that B is read from in place of `lane`. Source: AMD "CDNA3 Instruction Set Architecture", section
// "Broadcasting Values" of matrix instructions.
static unsigned permuted_lane(unsigned blgp, unsigned lane) {
  if (blgp == 1 || blgp == 2) return (lane & 31) + 32 * (blgp - 1);
  if (blgp == 3) return (lane + 16) & 63;
  return blgp >= 4 ? (lane & 15) + 16 * (blgp - 4) : lane;
}

static uint32_t add_nan(double a, double b, float c) {
  bool invalid = (isinf(a) && b == 0) || (a == 0 && isinf(b));
  if (invalid || !(isnan(a) || isnan(b) || isnan(c))) return 0xffc00000;
  float first = isnan(a) ? (float)a : isnan(b) ? (float)b : c;
  return emu__bits32(first) | 0x400000;
}

// Factors as lanes hold them.
struct factors {
  double a[64][16], b[64][16];  // (lane, element)
  uint32_t index[64];           // of a sparse product: two bits for each element of A
};

static void read_factors(const struct emu_wave *w, const struct emu_inst *inst, const struct shape *s,
                         struct factors *f) {
  const struct shape a = shape_of_a(s);
  unsigned run_a = a.m * a.k * a.blocks / 64, run_b = s->m * s->k * s->blocks / 64;
  unsigned cbsz = (unsigned)inst->imm & 7, abid = (unsigned)inst->imm >> 3 & 15, blgp = (unsigned)inst->imm >> 7;
  unsigned negate = s->kind == F64 ? blgp : 0, kind_b = s->kind == FP8 || s->kind == BF8 ? s->kind_b : s->kind;
  for (unsigned l = 0; l < 64; l++) {
    unsigned from = s->kind == F64 ? l : permuted_lane(blgp, l);
    for (unsigned e = 0; e < run_a; e++) {
      f->a[l][e] = value_of(s->kind, w, inst->src[0].reg, l, e);
      if (negate & 1) f->a[l][e] = -f->a[l][e];
    }
    for (unsigned e = 0; e < run_b; e++) {
      f->b[l][e] = value_of(kind_b, w, inst->src[1].reg, from, e);
      if (negate & 2) f->b[l][e] = -f->b[l][e];
    }
    if (s->sparse) f->index[l] = *emu__vector(w, inst->src[2].reg, l) >> (cbsz ? 0 : abid * 2 * run_a % 32);
  }
}

// One element of D: the sum of products to c, whose bits these are.
static uint64_t sum_of(const struct factors *f, const struct shape *s, unsigned row, unsigned column, unsigned a_block,
                       unsigned block, uint64_t c) {
  const struct shape a = shape_of_a(s);
  float sum = emu__f32((uint32_t)c);
  double total = emu__f64(c);
  uint32_t integer = (uint32_t)c;
  for (unsigned i = 0; i < a.k; i++) {
    unsigned al, ae, bl, be;
    find_factor(&a, row, i, a_block, &al, &ae);
    find_factor(s, column, s->sparse ? i / 2 * 4 + (f->index[al] >> 2 * ae & 3) : i, block, &bl, &be);
    double x = f->a[al][ae], y = f->b[bl][be];
    if (s->kind == I8) {
      integer += (uint32_t)((int32_t)x * (int32_t)y);
    } else if (s->kind == F64) {
      total = fma(x, y, total);
    } else {
      float next = fmaf((float)x, (float)y, sum);
      sum = next == next ? next : emu__f32(add_nan(x, y, sum));
    }
  }
  return s->kind == I8 ? integer : s->kind == F64 ? emu__bits64(total) : emu__bits32(sum);
}

// The whole product, so that D may lie over A, B and C.
static void run_matrix(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  const struct shape *s = shape_of(inst->op);
  const struct emu_operand *addend = s->sparse ? &inst->dst : &inst->src[2];
  unsigned cbsz = s->sparse ? 0 : (unsigned)inst->imm & 7, abid = (unsigned)inst->imm >> 3 & 15;
  unsigned wide = s->kind == F64 ? 2 : 1, count = inst->dst.dwords / wide;
  bool negate = s->kind == F64 && inst->imm >> 7 & 4;
  struct factors f;
  uint64_t d[32][64];
  if (1u << cbsz > s->blocks) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "cbsz %u asks for more blocks than the product has.", cbsz);
    return;
  }
  // source: LLVM, FeatureMFMAInlineLiteralBug
  if (addend->kind == EMU_OPERAND_CONSTANT && w->group->run->target->accumulators_apart) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "On gfx908 a constant in place of C gives wrong sums.");
    return;
  }
  read_factors(w, inst, s, &f);
  for (unsigned block = 0; block < s->blocks; block++) {
    unsigned others = (1u << cbsz) - 1, a_block = cbsz ? (block & ~others) + (abid & others) : block;
    for (unsigned row = 0; row < s->m; row++) {
      for (unsigned column = 0; column < s->m; column++) {
        unsigned lane, reg;
        find_result(s, row, column, block, &lane, &reg);
        uint64_t c = addend->value;
        if (addend->kind == EMU_OPERAND_VECTOR) {
          c = *emu__vector(w, addend->reg + reg * wide, lane);
          if (wide == 2) c |= (uint64_t)*emu__vector(w, addend->reg + reg * 2 + 1, lane) << 32;
        }
        if (negate) c ^= UINT64_C(1) << 63;
        if (flushes(w, s->kind)) c = emu__bits32(flushed(emu__f32((uint32_t)c)));
        d[reg][lane] = sum_of(&f, s, row, column, a_block, block, c);
        if (flushes(w, s->kind)) d[reg][lane] = emu__bits32(flushed(emu__f32((uint32_t)d[reg][lane])));
      }
    }
  }
  for (unsigned r = 0; r < count; r++) {
    for (unsigned l = 0; l < 64; l++) {
      *emu__vector(w, inst->dst.reg + r * wide, l) = (uint32_t)d[r][l];
      if (wide == 2) *emu__vector(w, inst->dst.reg + r * 2 + 1, l) = (uint32_t)(d[r][l] >> 32);
    }
  }
}

// Whether one of the k of a row of a factor is undefined.
static bool row_undefined(const struct emu_wave *w, const struct shape *s, unsigned reg, unsigned row, unsigned block) {
  unsigned bits = element_bits((enum kind)s->kind), words = bits == 64 ? 2 : 1;
  for (unsigned k = 0; k < s->k; k++) {
    unsigned lane, element;
    find_factor(s, row, k, block, &lane, &element);
    for (unsigned i = 0; i < words; i++) {
      uint32_t u = *emu__undefined(w, reg + (words == 2 ? i : element * bits / 32), lane);
      if (words == 2 || bits == 32 ? u : u >> element * bits % 32 & ((1u << bits) - 1)) return true;
    }
  }
  return false;
}

// Whether one of the indices of a row of A is.
static bool index_undefined(const struct emu_wave *w, const struct emu_inst *inst, const struct shape *a,
                            unsigned row) {
  unsigned bits = 2 * a->m * a->k / 64, abid = (unsigned)inst->imm >> 3 & 15;
  unsigned low = inst->imm & 7 ? 0 : abid * bits % 32;
  for (unsigned lane = row; lane < 64; lane += a->m)
    if (*emu__undefined(w, inst->src[2].reg, lane) >> low & ((1u << bits) - 1)) return true;
  return false;
}

// Undefined is what a row of A with its indices, a column of B or an element of C makes undefined; lanes that B is
// taken from by blgp, and blocks of A by cbsz, count as the lane's own.
bool emu__check_matrix(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  const struct shape *s = shape_of(inst->op);
  if (!s) return false;
  unsigned wide = s->kind == F64 ? 2 : 1;
  const struct emu_operand *addend = s->sparse ? &inst->dst : &inst->src[2];
  const struct shape a = shape_of_a(s);
  uint32_t lost[32][64];
  for (unsigned block = 0; block < s->blocks; block++) {
    uint32_t rows = 0, columns = 0;
    for (unsigned i = 0; i < s->m; i++) {
      rows |= (uint32_t)row_undefined(w, &a, inst->src[0].reg, i, block) << i;
      if (s->sparse && index_undefined(w, inst, &a, i)) rows |= 1u << i;
      columns |= (uint32_t)row_undefined(w, s, inst->src[1].reg, i, block) << i;
    }
    for (unsigned row = 0; row < s->m; row++) {
      for (unsigned column = 0; column < s->m; column++) {
        unsigned lane, reg;
        find_result(s, row, column, block, &lane, &reg);
        bool undefined = rows >> row & 1 || columns >> column & 1;
        for (unsigned i = 0; addend->kind == EMU_OPERAND_VECTOR && i < wide; i++)
          undefined |= *emu__undefined(w, addend->reg + reg * wide + i, lane) != 0;
        lost[reg][lane] = undefined ? UINT32_MAX : 0;
      }
    }
  }
  for (unsigned r = 0; r < inst->dst.dwords; r++) {
    memcpy(emu__undefined(w, inst->dst.reg + r, 0), lost[r / wide], sizeof(lost[0]));
    emu__check_settle(w, inst->dst.reg + r);
  }
  return true;
}

#define ROW(name) {.op = name, .klass = EMU_CLASS_WMMA, .run = run_matrix}
#define FLOAT8_ROWS(name) \
  ROW(EMU_V_##name##_BF8_BF8), ROW(EMU_V_##name##_BF8_FP8), ROW(EMU_V_##name##_FP8_BF8), ROW(EMU_V_##name##_FP8_FP8)
const struct emu_action emu__matrix_actions[] = {
    ROW(EMU_V_MFMA_F32_32X32X1_2B_F32),  ROW(EMU_V_MFMA_F32_16X16X1_4B_F32),  ROW(EMU_V_MFMA_F32_4X4X1_16B_F32),
    ROW(EMU_V_MFMA_F32_32X32X2_F32),     ROW(EMU_V_MFMA_F32_16X16X4_F32),     ROW(EMU_V_MFMA_F32_16X16X8_XF32),
    ROW(EMU_V_MFMA_F32_32X32X4_XF32),    ROW(EMU_V_MFMA_F32_32X32X4_2B_F16),  ROW(EMU_V_MFMA_F32_16X16X4_4B_F16),
    ROW(EMU_V_MFMA_F32_4X4X4_16B_F16),   ROW(EMU_V_MFMA_F32_32X32X8_F16),     ROW(EMU_V_MFMA_F32_16X16X16_F16),
    ROW(EMU_V_MFMA_F32_32X32X2_2B_BF16), ROW(EMU_V_MFMA_F32_16X16X2_4B_BF16), ROW(EMU_V_MFMA_F32_4X4X2_16B_BF16),
    ROW(EMU_V_MFMA_F32_32X32X4_BF16),    ROW(EMU_V_MFMA_F32_16X16X8_BF16),    ROW(EMU_V_MFMA_F32_32X32X4_2B_BF16),
    ROW(EMU_V_MFMA_F32_16X16X4_4B_BF16), ROW(EMU_V_MFMA_F32_4X4X4_16B_BF16),  ROW(EMU_V_MFMA_F32_32X32X8_BF16),
    ROW(EMU_V_MFMA_F32_16X16X16_BF16),   ROW(EMU_V_MFMA_I32_32X32X4_2B_I8),   ROW(EMU_V_MFMA_I32_16X16X4_4B_I8),
    ROW(EMU_V_MFMA_I32_4X4X4_16B_I8),    ROW(EMU_V_MFMA_I32_32X32X8_I8),      ROW(EMU_V_MFMA_I32_16X16X16_I8),
    ROW(EMU_V_MFMA_I32_32X32X16_I8),     ROW(EMU_V_MFMA_I32_16X16X32_I8),     ROW(EMU_V_MFMA_F64_16X16X4_F64),
    ROW(EMU_V_MFMA_F64_4X4X4_4B_F64),    FLOAT8_ROWS(MFMA_F32_16X16X32),      FLOAT8_ROWS(MFMA_F32_32X32X16),
    FLOAT8_ROWS(SMFMAC_F32_16X16X64),    FLOAT8_ROWS(SMFMAC_F32_32X32X32),    ROW(EMU_V_SMFMAC_F32_16X16X32_F16),
    ROW(EMU_V_SMFMAC_F32_32X32X16_F16),  ROW(EMU_V_SMFMAC_F32_16X16X32_BF16), ROW(EMU_V_SMFMAC_F32_32X32X16_BF16),
    ROW(EMU_V_SMFMAC_I32_16X16X64_I8),   ROW(EMU_V_SMFMAC_I32_32X32X32_I8),   {0}};
