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
#include <immintrin.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>

#include "machine/checker_state.h"
#include "machine/float8.h"
#include "machine/valu.h"

enum kind { F32, XF32, F16, BF16, I8, FP8, BF8, FP6, BF6, FP4, F64 };

struct shape {
  uint16_t op;
  uint8_t m, k, blocks, kind;  // n is m
  uint8_t kind_b;              // of B, where factors are 8-bit floats
  bool sparse;
  bool split;  // a factor whose lanes hold two runs of 16 elements, half of the depth apart
};

#define DENSE(name, m_, k_, blocks_, kind_) {.op = EMU_V_##name, .m = m_, .k = k_, .blocks = blocks_, .kind = kind_}
#define SPARSE(name, m_, k_, kind_) {.op = EMU_V_##name, .m = m_, .k = k_, .blocks = 1, .kind = kind_, .sparse = true}
#define MIXED(name, m_, k_, kind_, kind_b_, sparse_) \
  {.op = EMU_V_##name, .m = m_, .k = k_, .blocks = 1, .kind = kind_, .kind_b = kind_b_, .sparse = sparse_}
#define FLOAT8(name, m, k, sparse)                                                              \
  MIXED(name##_BF8_BF8, m, k, BF8, BF8, sparse), MIXED(name##_BF8_FP8, m, k, BF8, FP8, sparse), \
      MIXED(name##_FP8_BF8, m, k, FP8, BF8, sparse), MIXED(name##_FP8_FP8, m, k, FP8, FP8, sparse)
static const struct shape shapes[] = {
    DENSE(MFMA_F32_16X16X32_F16, 16, 32, 1, F16),      DENSE(MFMA_F32_32X32X16_F16, 32, 16, 1, F16),
    DENSE(MFMA_F32_16X16X32_BF16, 16, 32, 1, BF16),    DENSE(MFMA_F32_32X32X16_BF16, 32, 16, 1, BF16),
    DENSE(MFMA_I32_16X16X64_I8, 16, 64, 1, I8),        DENSE(MFMA_I32_32X32X32_I8, 32, 32, 1, I8),
    SPARSE(SMFMAC_F32_16X16X64_F16, 16, 64, F16),      SPARSE(SMFMAC_F32_32X32X32_F16, 32, 32, F16),
    SPARSE(SMFMAC_F32_16X16X64_BF16, 16, 64, BF16),    SPARSE(SMFMAC_F32_32X32X32_BF16, 32, 32, BF16),
    SPARSE(SMFMAC_I32_16X16X128_I8, 16, 128, I8),      SPARSE(SMFMAC_I32_32X32X64_I8, 32, 64, I8),
    FLOAT8(SMFMAC_F32_16X16X128, 16, 128, true),       FLOAT8(SMFMAC_F32_32X32X64, 32, 64, true),
    DENSE(MFMA_F32_16X16X128_F8F6F4, 16, 128, 1, FP8), DENSE(MFMA_F32_32X32X64_F8F6F4, 32, 64, 1, FP8),
    DENSE(MFMA_F32_32X32X1_2B_F32, 32, 1, 2, F32),     DENSE(MFMA_F32_16X16X1_4B_F32, 16, 1, 4, F32),
    DENSE(MFMA_F32_4X4X1_16B_F32, 4, 1, 16, F32),      DENSE(MFMA_F32_32X32X2_F32, 32, 2, 1, F32),
    DENSE(MFMA_F32_16X16X4_F32, 16, 4, 1, F32),        DENSE(MFMA_F32_16X16X8_XF32, 16, 8, 1, XF32),
    DENSE(MFMA_F32_32X32X4_XF32, 32, 4, 1, XF32),      DENSE(MFMA_F32_32X32X4_2B_F16, 32, 4, 2, F16),
    DENSE(MFMA_F32_16X16X4_4B_F16, 16, 4, 4, F16),     DENSE(MFMA_F32_4X4X4_16B_F16, 4, 4, 16, F16),
    DENSE(MFMA_F32_32X32X8_F16, 32, 8, 1, F16),        DENSE(MFMA_F32_16X16X16_F16, 16, 16, 1, F16),
    DENSE(MFMA_F32_32X32X2_2B_BF16, 32, 2, 2, BF16),   DENSE(MFMA_F32_16X16X2_4B_BF16, 16, 2, 4, BF16),
    DENSE(MFMA_F32_4X4X2_16B_BF16, 4, 2, 16, BF16),    DENSE(MFMA_F32_32X32X4_BF16, 32, 4, 1, BF16),
    DENSE(MFMA_F32_16X16X8_BF16, 16, 8, 1, BF16),      DENSE(MFMA_F32_32X32X4_2B_BF16, 32, 4, 2, BF16),
    DENSE(MFMA_F32_16X16X4_4B_BF16, 16, 4, 4, BF16),   DENSE(MFMA_F32_4X4X4_16B_BF16, 4, 4, 16, BF16),
    DENSE(MFMA_F32_32X32X8_BF16, 32, 8, 1, BF16),      DENSE(MFMA_F32_16X16X16_BF16, 16, 16, 1, BF16),
    DENSE(MFMA_I32_32X32X4_2B_I8, 32, 4, 2, I8),       DENSE(MFMA_I32_16X16X4_4B_I8, 16, 4, 4, I8),
    DENSE(MFMA_I32_4X4X4_16B_I8, 4, 4, 16, I8),        DENSE(MFMA_I32_32X32X8_I8, 32, 8, 1, I8),
    DENSE(MFMA_I32_16X16X16_I8, 16, 16, 1, I8),        DENSE(MFMA_I32_32X32X16_I8, 32, 16, 1, I8),
    DENSE(MFMA_I32_16X16X32_I8, 16, 32, 1, I8),        DENSE(MFMA_F64_16X16X4_F64, 16, 4, 1, F64),
    DENSE(MFMA_F64_4X4X4_4B_F64, 4, 4, 4, F64),        FLOAT8(MFMA_F32_16X16X32, 16, 32, false),
    FLOAT8(MFMA_F32_32X32X16, 32, 16, false),          FLOAT8(SMFMAC_F32_16X16X64, 16, 64, true),
    FLOAT8(SMFMAC_F32_32X32X32, 32, 32, true),         SPARSE(SMFMAC_F32_16X16X32_F16, 16, 32, F16),
    SPARSE(SMFMAC_F32_32X32X16_F16, 32, 16, F16),      SPARSE(SMFMAC_F32_16X16X32_BF16, 16, 32, BF16),
    SPARSE(SMFMAC_F32_32X32X16_BF16, 32, 16, BF16),    SPARSE(SMFMAC_I32_16X16X64_I8, 16, 64, I8),
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

static unsigned element_bits(enum kind kind) {
  if (kind == F64) return 64;
  if (kind >= FP6) return kind == FP4 ? 4 : 6;
  return kind <= XF32 ? 32 : kind <= BF16 ? 16 : 8;
}

// Sides, depths and blocks are powers of two.
static unsigned log2_of(unsigned power) { return (unsigned)__builtin_ctz(power); }

// Where element (row or column, k) of a factor lies.
static void find_factor(const struct shape *s, unsigned row, unsigned k, unsigned block, unsigned *lane,
                        unsigned *element) {
  if (s->split) {
    unsigned half = s->k / 2;
    *lane = row + s->m * (k % half / 16);
    *element = k / half * 16 + k % 16;
    return;
  }
  unsigned run = s->m * s->k * s->blocks / 64, part = k >> log2_of(run), groups = s->k >> log2_of(run);
  *element = k & (run - 1);
  // of doubles in blocks, the blocks lie between the rows and k
  *lane = s->kind == F64 ? row + s->m * (block + s->blocks * k) : row + s->m * (part + groups * block);
}

// Where element (row, column) of C and D lies; registers count elements.
static void find_result(const struct shape *s, unsigned row, unsigned column, unsigned block, unsigned *lane,
                        unsigned *reg) {
  unsigned groups = 64 >> log2_of(s->m);
  if (s->kind == F64) {
    unsigned lanes = groups >> log2_of(s->blocks);  // rows in the lanes of one register
    *lane = column + s->m * (block + s->blocks * (row & (lanes - 1)));
    *reg = row >> log2_of(lanes);
  } else if (s->m == 4) {
    *lane = column + 4 * block;
    *reg = row;
  } else {
    *lane = column + s->m * (row / 4 & (groups - 1));
    *reg = (row / 4 >> log2_of(groups)) * 4 + row % 4 + s->m * s->m / 64 * block;
  }
}

static bool names_formats(unsigned op) {
  return op == EMU_V_MFMA_F32_16X16X128_F8F6F4 || op == EMU_V_MFMA_F32_32X32X64_F8F6F4;
}

// Of a product whose instruction names the formats of its factors: those of 8 bits lie in two runs, as Composable
// Kernel's tests have it, all others in one.
static void name_format(struct shape *side, unsigned format) {
  static const uint8_t kinds[8] = {FP8, BF8, FP6, BF6, FP4, FP4, FP4, FP4};
  side->kind = kinds[format & 7];
  side->split = side->kind <= BF8;
}

// The shapes by which A and B lie.
static struct shape shape_of_a(const struct emu_inst *inst, const struct shape *s) {
  struct shape a = *s;
  if (s->sparse) a.k /= 2;
  if (names_formats(s->op)) name_format(&a, (unsigned)inst->imm);
  return a;
}
static struct shape shape_of_b(const struct emu_inst *inst, const struct shape *s) {
  struct shape b = *s;
  if (s->kind == FP8 || s->kind == BF8) b.kind = s->kind_b;
  if (names_formats(s->op)) name_format(&b, (unsigned)inst->imm >> 7);
  return b;
}

static bool flushes(const struct emu_wave *w, unsigned kind) {
  return w->group->run->target->matrices_flush && (kind == F16 || kind == BF16);
}

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

// ---- factors as numbers, in their lanes: (element of the lane, lane). Of B the columns, and of A the rows, that share
// k and block lie beside each other.
union factor {
  float f[32][64];
  int32_t i[32][64];
  double d[64];
};

static float float8[EMU_FLOAT8_COUNT][256];
static void fill_float8(void) {
  for (unsigned f = 0; f < EMU_FLOAT8_COUNT; f++)
    for (uint32_t i = 0; i < 1u << emu__float8_bits((enum emu_float8)f); i++)
      float8[f][i] = emu__f16_to_f32((uint16_t)emu__float8_to_half(i, (enum emu_float8)f));
}

static const float *float8_of_kind(const struct emu_wave *w, unsigned kind) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  bool fnuz = w->group->run->target->float8_fnuz;
  pthread_once(&once, fill_float8);
  switch (kind) {
    case FP8:
      return float8[fnuz ? EMU_FP8_FNUZ : EMU_FP8];
    case BF8:
      return float8[fnuz ? EMU_BF8_FNUZ : EMU_BF8];
    case FP6:
      return float8[EMU_FP6];
    default:
      return float8[kind == BF6 ? EMU_BF6 : EMU_FP4];
  }
}

static void open_halves(const uint32_t *from, unsigned low, bool flush, float *to) {
  const __m256i half = _mm256_set1_epi32(0xffff), field = _mm256_set1_epi32(0x7c00), sign = _mm256_set1_epi32(0x8000);
  for (unsigned l = 0; l < 64; l += 8) {
    __m256i v = _mm256_srl_epi32(_mm256_loadu_si256((const __m256i *)(from + l)), _mm_cvtsi32_si128((int)low));
    v = _mm256_and_si256(v, half);
    __m256i small = _mm256_cmpeq_epi32(_mm256_and_si256(v, field), _mm256_setzero_si256());
    if (flush) v = _mm256_blendv_epi8(v, _mm256_and_si256(v, sign), small);
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm256_storeu_ps(to + l, _mm256_cvtph_ps(packed));
  }
}

// One element of each lane, of the register whose lanes are `from`.
static void open_element(const struct emu_wave *w, unsigned kind, const uint32_t *from, unsigned low, union factor *to,
                         unsigned element) {
  float *f = to->f[element];
  bool flush = flushes(w, kind);
  switch (kind) {
    case F32:
      memcpy(f, from, sizeof(to->f[0]));
      break;
    case XF32:
      for (unsigned l = 0; l < 64; l++) f[l] = emu__f32(from[l] & ~0x1fffu);
      break;
    case F16:
      open_halves(from, low, flush, f);
      break;
    case BF16:
      for (unsigned l = 0; l < 64; l++) f[l] = emu__f32(from[l] >> low << 16);
      for (unsigned l = 0; flush && l < 64; l++) f[l] = flushed(f[l]);
      break;
    case FP8:
    case BF8:
      for (unsigned l = 0; l < 64; l++) f[l] = float8_of_kind(w, kind)[from[l] >> low & 0xff];
      break;
    default:
      for (unsigned l = 0; l < 64; l++) to->i[element][l] = (int8_t)(from[l] >> low);
  }
}

// Elements that may begin in one register and end in the next.
static void read_small(const struct emu_wave *w, unsigned kind, unsigned reg, unsigned elements, union factor *to) {
  unsigned bits = element_bits((enum kind)kind);
  const float *values = float8_of_kind(w, kind);
  for (unsigned e = 0; e < elements; e++) {
    unsigned low = e * bits % 32, last = (e * bits + bits - 1) / 32;
    const uint32_t *from = emu__vector(w, reg + e * bits / 32, 0), *next = emu__vector(w, reg + last, 0);
    for (unsigned l = 0; l < 64; l++)
      to->f[e][l] = values[(from[l] | (uint64_t)next[l] << 32) >> low & ((1u << bits) - 1)];
  }
}

static void read_factor(const struct emu_wave *w, unsigned kind, unsigned reg, unsigned elements, union factor *to) {
  if (kind >= FP6 && kind <= FP4) {
    read_small(w, kind, reg, elements, to);
    return;
  }
  unsigned bits = element_bits((enum kind)kind), in_register = 32 / bits;
  for (unsigned l = 0; bits == 64 && l < 64; l++)
    to->d[l] = emu__f64(*emu__vector(w, reg, l) | (uint64_t)*emu__vector(w, reg + 1, l) << 32);
  for (unsigned e = 0; bits < 64 && e < elements; e++)
    open_element(w, kind, emu__vector(w, reg + e / in_register, 0), e % in_register * bits, to, e);
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

// The scale of a row of a factor and the 32 elements from k on: a byte of the lane that would hold them in one run.
// INT_MAX: it is NaN.
static int scale_of(const struct emu_wave *w, const struct emu_inst *inst, const struct shape *s, int side,
                    unsigned row, unsigned k) {
  unsigned byte = (unsigned)inst->imm >> (10 + 2 * side) & 3, lane = row + s->m * (k / 32);
  unsigned exponent = *emu__vector(w, inst->y.src[side].reg, lane) >> 8 * byte & 0xff;
  return exponent == 0xff ? INT_MAX : (int)exponent - 127;
}

// Reads a factor's scales. false: with one of them, floats may not hold the elements.
static bool read_scales(const struct emu_wave *w, const struct emu_inst *inst, const struct shape *s, int side,
                        int scales[32][4]) {
  enum { MOST = 60 };
  bool fits = true;
  for (unsigned row = 0; row < s->m; row++) {
    for (unsigned k = 0; k < s->k; k += 32) {
      int scale = scale_of(w, inst, s, side, row, k);
      scales[row][k / 32] = scale;
      fits = fits && (scale == INT_MAX || (scale >= -MOST && scale <= MOST));
    }
  }
  return fits;
}

static void scale_factor(const struct shape *s, int scales[32][4], bool wide, union factor *f) {
  for (unsigned row = 0; row < s->m; row++) {
    for (unsigned k = 0; k < s->k; k++) {
      unsigned lane, element;
      int scale = scales[row][k / 32];
      find_factor(s, row, k, 0, &lane, &element);
      float *x = &f->f[element][lane];
      if (scale == INT_MAX) {
        *x = NAN;
      } else if (!wide) {
        *x = ldexpf(*x, scale);
      }
    }
  }
}

struct factors {
  union factor a, b;
  uint32_t index[64];  // of a sparse product: two bits for each element of A
  bool wide;           // scales, of rows and of columns, are not in the factors
  int scale_a[32][4], scale_b[32][4];
};

static void read_factors(const struct emu_wave *w, const struct emu_inst *inst, const struct shape *s,
                         struct factors *f) {
  const struct shape a = shape_of_a(inst, s), b = shape_of_b(inst, s);
  unsigned run_a = a.m * a.k * a.blocks / 64, run_b = s->m * s->k * s->blocks / 64;
  unsigned cbsz = (unsigned)inst->imm & 7, abid = (unsigned)inst->imm >> 3 & 15, blgp = (unsigned)inst->imm >> 7;
  read_factor(w, a.kind, inst->src[0].reg, run_a, &f->a);
  read_factor(w, b.kind, inst->src[1].reg, run_b, &f->b);
  f->wide = false;
  if (inst->y.op) {
    bool fits = read_scales(w, inst, &a, 0, f->scale_a);
    f->wide = !read_scales(w, inst, &b, 1, f->scale_b) || !fits;
    scale_factor(&a, f->scale_a, f->wide, &f->a);
    scale_factor(&b, f->scale_b, f->wide, &f->b);
  } else if (names_formats(s->op)) {
    // blgp is a format
  } else if (s->kind == F64) {  // BLGP negates
    for (unsigned l = 0; blgp & 1 && l < 64; l++) f->a.d[l] = -f->a.d[l];
    for (unsigned l = 0; blgp & 2 && l < 64; l++) f->b.d[l] = -f->b.d[l];
  } else if (blgp) {
    for (unsigned e = 0; e < run_b; e++) {
      int32_t lanes[64];
      memcpy(lanes, f->b.i[e], sizeof(lanes));
      for (unsigned l = 0; l < 64; l++) f->b.i[e][l] = lanes[permuted_lane(blgp, l)];
    }
  }
  for (unsigned l = 0; s->sparse && l < 64; l++)
    f->index[l] = *emu__vector(w, inst->src[2].reg, l) >> (cbsz ? 0 : abid * 2 * run_a % 32);
}

// A row of D: which product of a factor of A and a row of B comes i-th. Of A all rows lie alike, lane after lane.
struct pair {
  unsigned al, ae, bl, be;  // lane and element of A in row 0, and of B in column 0
};
struct row {
  const struct factors *f;
  unsigned row, count;
  struct pair pairs[128];
  struct pair every[128];  // of B, by k, of which a sparse product takes those that A's indices name
};

static void find_block(struct row *r, const struct factors *f, const struct emu_inst *inst, const struct shape *s,
                       unsigned a_block, unsigned block) {
  const struct shape a = shape_of_a(inst, s), b = shape_of_b(inst, s);
  r->f = f;
  r->count = a.k;
  for (unsigned i = 0; i < a.k; i++) find_factor(&a, 0, i, a_block, &r->pairs[i].al, &r->pairs[i].ae);
  for (unsigned k = 0; k < s->k; k++) {
    struct pair *p = s->sparse ? &r->every[k] : &r->pairs[k];
    find_factor(&b, 0, k, block, &p->bl, &p->be);
  }
}

static void find_row(struct row *r, const struct shape *s, unsigned row) {
  r->row = row;
  for (unsigned i = 0; s->sparse && i < r->count; i++) {
    struct pair *p = &r->pairs[i];
    const struct pair *b = &r->every[i / 2 * 4 + (r->f->index[p->al + row] >> 2 * p->ae & 3)];
    p->bl = b->bl;
    p->be = b->be;
  }
}

// The columns of a row at once, eight in a vector; four where there are no more.
static inline __attribute__((always_inline)) void sum_vectors(const struct row *r, unsigned vectors, float *sum) {
  __m256 s[4];
  for (unsigned v = 0; v < vectors; v++) s[v] = _mm256_loadu_ps(sum + 8 * v);
  for (unsigned i = 0; i < r->count; i++) {
    const struct pair *p = &r->pairs[i];
    const float *b = r->f->b.f[p->be] + p->bl;
    __m256 x = _mm256_broadcast_ss(&r->f->a.f[p->ae][p->al + r->row]);
    for (unsigned v = 0; v < vectors; v++) s[v] = _mm256_fmadd_ps(x, _mm256_loadu_ps(b + 8 * v), s[v]);
  }
  for (unsigned v = 0; v < vectors; v++) _mm256_storeu_ps(sum + 8 * v, s[v]);
}

static void sum_four(const struct row *r, float *sum) {
  __m128 s = _mm_loadu_ps(sum);
  for (unsigned i = 0; i < r->count; i++) {
    const struct pair *p = &r->pairs[i];
    __m128 x = _mm_broadcast_ss(&r->f->a.f[p->ae][p->al + r->row]);
    s = _mm_fmadd_ps(x, _mm_loadu_ps(r->f->b.f[p->be] + p->bl), s);
  }
  _mm_storeu_ps(sum, s);
}

// The same for one column, where a NaN came out: of several, and where none went in, the rules say which it is.
static float sum_nan(const struct row *r, unsigned column, float sum) {
  for (unsigned i = 0; i < r->count; i++) {
    const struct pair *p = &r->pairs[i];
    float x = r->f->a.f[p->ae][p->al + r->row], y = r->f->b.f[p->be][p->bl + column], next = fmaf(x, y, sum);
    sum = next == next ? next : emu__f32(add_nan(x, y, sum));
  }
  return sum;
}

// The sum of two numbers, rounded to the nearest that is odd in the last place where it is not exact, so that the next
// rounding sees no tie that is none.
static long double add_odd(long double a, long double b) {
  long double sum = a + b, second = sum - a, lost = (a - (sum - second)) + (b - second);
  uint64_t significand;
  memcpy(&significand, &sum, sizeof(significand));
  if (lost == 0 || significand & 1 || !isfinite(sum)) return sum;
  return nextafterl(sum, lost > 0 ? INFINITY : -INFINITY);
}

// With scales that take elements out of the range of floats.
static void sum_wide(const struct row *r, unsigned columns, const uint32_t *c, uint32_t *d) {
  for (unsigned j = 0; j < columns; j++) {
    float sum = emu__f32(c[j]);
    for (unsigned i = 0; i < r->count; i++) {
      const struct pair *p = &r->pairs[i];
      float x = r->f->a.f[p->ae][p->al + r->row], y = r->f->b.f[p->be][p->bl + j];
      int a = r->f->scale_a[r->row][i / 32], b = r->f->scale_b[j][i / 32];
      long double product = (long double)x * (long double)y;
      if (a != INT_MAX && b != INT_MAX) product = ldexpl(product, a + b);
      float next = (float)add_odd((long double)sum, product);
      sum = next == next ? next : emu__f32(add_nan((double)x, (double)y, sum));
    }
    d[j] = emu__bits32(sum);
  }
}

static void sum_floats(const struct row *r, unsigned columns, const uint32_t *c, uint32_t *d) {
  float sum[32];
  if (r->f->wide) {
    sum_wide(r, columns, c, d);
    return;
  }
  memcpy(sum, c, columns * 4);
  if (columns == 4)
    sum_four(r, sum);
  else if (columns == 16)
    sum_vectors(r, 2, sum);
  else
    sum_vectors(r, 4, sum);
  for (unsigned j = 0; j < columns; j++)
    if (sum[j] != sum[j]) sum[j] = sum_nan(r, j, emu__f32(c[j]));
  memcpy(d, sum, columns * 4);
}

// Four rows, from r->row on, and 16 columns at once: so many sums keep the host busy, where those of one row wait for
// each other. Returns whether a NaN came out.
static bool sum_tile(const struct row *r, unsigned column, float sum[4][16]) {
  __m256 s[4][2];
  for (unsigned i = 0; i < 8; i++) s[i / 2][i % 2] = _mm256_loadu_ps(sum[i / 2] + i % 2 * 8);
  for (unsigned i = 0; i < r->count; i++) {
    const struct pair *p = &r->pairs[i];
    const float *a = &r->f->a.f[p->ae][p->al + r->row], *b = r->f->b.f[p->be] + p->bl + column;
    __m256 low = _mm256_loadu_ps(b), high = _mm256_loadu_ps(b + 8);
    for (unsigned k = 0; k < 4; k++) {
      __m256 x = _mm256_broadcast_ss(a + k);
      s[k][0] = _mm256_fmadd_ps(x, low, s[k][0]);
      s[k][1] = _mm256_fmadd_ps(x, high, s[k][1]);
    }
  }
  __m256 odd = _mm256_setzero_ps();
  for (unsigned i = 0; i < 8; i++) {
    __m256 v = s[i / 2][i % 2];
    odd = _mm256_or_ps(odd, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    _mm256_storeu_ps(sum[i / 2] + i % 2 * 8, v);
  }
  return _mm256_movemask_ps(odd);
}

static inline __attribute__((always_inline)) void sum_integer_vectors(const struct row *r, unsigned vectors,
                                                                      const uint32_t *c, uint32_t *d) {
  __m256i s[4];
  for (unsigned v = 0; v < vectors; v++) s[v] = _mm256_loadu_si256((const __m256i *)(c + 8 * v));
  for (unsigned i = 0; i < r->count; i++) {
    const struct pair *p = &r->pairs[i];
    const int32_t *b = r->f->b.i[p->be] + p->bl;
    __m256i x = _mm256_set1_epi32(r->f->a.i[p->ae][p->al + r->row]);
    for (unsigned v = 0; v < vectors; v++) {
      __m256i product = _mm256_mullo_epi32(x, _mm256_loadu_si256((const __m256i *)(b + 8 * v)));
      s[v] = _mm256_add_epi32(s[v], product);
    }
  }
  for (unsigned v = 0; v < vectors; v++) _mm256_storeu_si256((__m256i *)(d + 8 * v), s[v]);
}

static void sum_integers(const struct row *r, unsigned columns, const uint32_t *c, uint32_t *d) {
  if (columns == 16) {
    sum_integer_vectors(r, 2, c, d);
    return;
  }
  if (columns == 32) {
    sum_integer_vectors(r, 4, c, d);
    return;
  }
  memcpy(d, c, columns * 4);
  for (unsigned i = 0; i < r->count; i++) {
    const struct pair *p = &r->pairs[i];
    const int32_t x = r->f->a.i[p->ae][p->al + r->row], *b = r->f->b.i[p->be] + p->bl;
    for (unsigned j = 0; j < columns; j++) d[j] += (uint32_t)(x * b[j]);
  }
}

static void sum_doubles(const struct row *r, unsigned columns, const double *c, double *d) {
  memcpy(d, c, columns * 8);
  for (unsigned i = 0; i < r->count; i++) {
    const struct pair *p = &r->pairs[i];
    const double x = r->f->a.d[p->al + r->row], *b = r->f->b.d + p->bl;
    for (unsigned j = 0; j < columns; j++) d[j] = __builtin_fma(x, b[j], d[j]);
  }
}

// A row of C, whose columns lie in lanes beside each other, summed up into D, which lies alike.
static void run_row(struct emu_wave *w, const struct emu_inst *inst, const struct shape *s, const struct row *r,
                    unsigned reg, unsigned lane, uint32_t (*d)[64]) {
  const struct emu_operand *addend = s->sparse ? &inst->dst : &inst->src[2];
  bool constant = addend->kind != EMU_OPERAND_VECTOR, flush = flushes(w, s->kind);
  if (s->kind == F64) {
    double c[16], sum[16];
    bool negate = inst->imm >> 7 & 4;
    for (unsigned j = 0; j < s->m; j++) {
      uint64_t low = constant ? 0 : *emu__vector(w, addend->reg + 2 * reg, lane + j);
      uint64_t high = constant ? 0 : *emu__vector(w, addend->reg + 2 * reg + 1, lane + j);
      uint64_t bits = constant ? addend->value : low | high << 32;
      c[j] = emu__f64(negate ? bits ^ UINT64_C(1) << 63 : bits);
    }
    sum_doubles(r, s->m, c, sum);
    for (unsigned j = 0; j < s->m; j++) {
      d[2 * reg][lane + j] = (uint32_t)emu__bits64(sum[j]);
      d[2 * reg + 1][lane + j] = (uint32_t)(emu__bits64(sum[j]) >> 32);
    }
    return;
  }
  uint32_t c[32], *to = d[reg] + lane;
  for (unsigned j = 0; j < s->m; j++)
    c[j] = constant ? (uint32_t)addend->value : *emu__vector(w, addend->reg + reg, lane + j);
  for (unsigned j = 0; flush && j < s->m; j++) c[j] = emu__bits32(flushed(emu__f32(c[j])));
  if (s->kind == I8)
    sum_integers(r, s->m, c, to);
  else
    sum_floats(r, s->m, c, to);
  for (unsigned j = 0; flush && j < s->m; j++) to[j] = emu__bits32(flushed(emu__f32(to[j])));
}

// Four rows of a dense product of floats, of 16 or 32 columns: they lie in four registers from `reg` on.
static void run_rows(struct emu_wave *w, const struct emu_inst *inst, const struct shape *s, struct row *r,
                     unsigned reg, unsigned lane, uint32_t (*d)[64]) {
  const struct emu_operand *addend = &inst->src[2];
  bool flush = flushes(w, s->kind);
  unsigned first = r->row;
  for (unsigned column = 0; column < s->m; column += 16) {
    float c[4][16], sum[4][16];
    for (unsigned i = 0; i < 4; i++) {
      for (unsigned j = 0; addend->kind != EMU_OPERAND_VECTOR && j < 16; j++)
        c[i][j] = emu__f32((uint32_t)addend->value);
      if (addend->kind == EMU_OPERAND_VECTOR)
        memcpy(c[i], emu__vector(w, addend->reg + reg + i, lane + column), sizeof(c[i]));
      for (unsigned j = 0; flush && j < 16; j++) c[i][j] = flushed(c[i][j]);
    }
    memcpy(sum, c, sizeof(sum));
    bool odd = sum_tile(r, column, sum);
    for (unsigned i = 0; i < 4; i++) {
      r->row = first + i;
      for (unsigned j = 0; odd && j < 16; j++)
        if (sum[i][j] != sum[i][j]) sum[i][j] = sum_nan(r, column + j, c[i][j]);
      for (unsigned j = 0; flush && j < 16; j++) sum[i][j] = flushed(sum[i][j]);
      memcpy(d[reg + i] + lane + column, sum[i], sizeof(sum[i]));
    }
    r->row = first;
  }
}

// The whole product, so that D may lie over A, B and C.
static void run_matrix(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  const struct shape *s = shape_of(inst->op);
  bool formats = names_formats(s->op);
  unsigned cbsz = s->sparse || formats ? 0 : (unsigned)inst->imm & 7, abid = (unsigned)inst->imm >> 3 & 15;
  struct factors f;
  struct row r;
  uint32_t d[32][64];
  if (1u << cbsz > s->blocks) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "cbsz %u asks for more blocks than the product has.", cbsz);
    return;
  }
  if (formats && ((inst->imm & 7) > 4 || (inst->imm >> 7 & 7) > 4)) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "cbsz and blgp name formats from 0 to 4.");
    return;
  }
  // source: LLVM, FeatureMFMAInlineLiteralBug
  if (!s->sparse && inst->src[2].kind == EMU_OPERAND_CONSTANT && w->group->run->target->accumulators_apart) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "On gfx908 a constant in place of C gives wrong sums.");
    return;
  }
  read_factors(w, inst, s, &f);
  for (unsigned block = 0; block < s->blocks; block++) {
    unsigned others = (1u << cbsz) - 1, a_block = cbsz ? (block & ~others) + (abid & others) : block;
    find_block(&r, &f, inst, s, a_block, block);
    for (unsigned row = 0; row < s->m; row++) {
      unsigned lane, reg;
      find_row(&r, s, row);
      find_result(s, row, 0, block, &lane, &reg);
      if (!s->sparse && !f.wide && s->kind != F64 && s->kind != I8 && s->m >= 16) {
        run_rows(w, inst, s, &r, reg, lane, d);
        row += 3;
        continue;
      }
      run_row(w, inst, s, &r, reg, lane, d);
    }
  }
  for (unsigned k = 0; k < inst->dst.dwords; k++) memcpy(emu__vector(w, inst->dst.reg + k, 0), d[k], sizeof(d[0]));
}

// Whether one of the k of a row of a factor is undefined.
static bool row_undefined(const struct emu_wave *w, const struct shape *s, unsigned reg, unsigned row, unsigned block) {
  unsigned bits = element_bits((enum kind)s->kind), words = bits == 64 ? 2 : 1;
  for (unsigned k = 0; k < s->k; k++) {
    unsigned lane, element;
    find_factor(s, row, k, block, &lane, &element);
    if (bits < 8) {  // these may end in another register than they begin in
      unsigned first = element * bits / 32, last = (element * bits + bits - 1) / 32;
      uint64_t u = *emu__undefined(w, reg + first, lane) | (uint64_t)*emu__undefined(w, reg + last, lane) << 32;
      if (u >> element * bits % 32 & ((1u << bits) - 1)) return true;
      continue;
    }
    for (unsigned i = 0; i < words; i++) {
      uint32_t u = *emu__undefined(w, reg + (words == 2 ? i : element * bits / 32), lane);
      if (words == 2 || bits == 32 ? u : u >> element * bits % 32 & ((1u << bits) - 1)) return true;
    }
  }
  return false;
}

// Whether one of the scales of a row of a factor is.
static bool scale_undefined(const struct emu_wave *w, const struct emu_inst *inst, const struct shape *s, int side,
                            unsigned row) {
  unsigned byte = (unsigned)inst->imm >> (10 + 2 * side) & 3;
  for (unsigned lane = row; inst->y.op && lane < 64; lane += s->m)
    if (*emu__undefined(w, inst->y.src[side].reg, lane) >> 8 * byte & 0xff) return true;
  return false;
}

// Whether one of the indices of a row of A is.
static bool index_undefined(const struct emu_wave *w, const struct emu_inst *inst, const struct shape *a,
                            unsigned row) {
  unsigned bits = 2 * a->m * a->k / 64, abid = (unsigned)inst->imm >> 3 & 15;
  unsigned low = inst->imm & 7 ? 0 : abid * bits % 32;
  for (unsigned lane = row; lane < 64; lane += a->m)
    if (*emu__undefined(w, inst->src[2].reg, lane) >> low & (uint32_t)((UINT64_C(1) << bits) - 1)) return true;
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
  const struct shape a = shape_of_a(inst, s), b = shape_of_b(inst, s);
  uint32_t lost[32][64];
  for (unsigned block = 0; block < s->blocks; block++) {
    uint32_t rows = 0, columns = 0;
    for (unsigned i = 0; i < s->m; i++) {
      rows |= (uint32_t)row_undefined(w, &a, inst->src[0].reg, i, block) << i;
      if (s->sparse && index_undefined(w, inst, &a, i)) rows |= 1u << i;
      columns |= (uint32_t)row_undefined(w, &b, inst->src[1].reg, i, block) << i;
      rows |= (uint32_t)scale_undefined(w, inst, &a, 0, i) << i;
      columns |= (uint32_t)scale_undefined(w, inst, &b, 1, i) << i;
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
    ROW(EMU_V_MFMA_F32_16X16X32_F16),     ROW(EMU_V_MFMA_F32_32X32X16_F16),
    ROW(EMU_V_MFMA_F32_16X16X32_BF16),    ROW(EMU_V_MFMA_F32_32X32X16_BF16),
    ROW(EMU_V_MFMA_I32_16X16X64_I8),      ROW(EMU_V_MFMA_I32_32X32X32_I8),
    ROW(EMU_V_SMFMAC_F32_16X16X64_F16),   ROW(EMU_V_SMFMAC_F32_32X32X32_F16),
    ROW(EMU_V_SMFMAC_F32_16X16X64_BF16),  ROW(EMU_V_SMFMAC_F32_32X32X32_BF16),
    ROW(EMU_V_SMFMAC_I32_16X16X128_I8),   ROW(EMU_V_SMFMAC_I32_32X32X64_I8),
    FLOAT8_ROWS(SMFMAC_F32_16X16X128),    FLOAT8_ROWS(SMFMAC_F32_32X32X64),
    ROW(EMU_V_MFMA_F32_16X16X128_F8F6F4), ROW(EMU_V_MFMA_F32_32X32X64_F8F6F4),
    ROW(EMU_V_MFMA_F32_32X32X1_2B_F32),   ROW(EMU_V_MFMA_F32_16X16X1_4B_F32),
    ROW(EMU_V_MFMA_F32_4X4X1_16B_F32),    ROW(EMU_V_MFMA_F32_32X32X2_F32),
    ROW(EMU_V_MFMA_F32_16X16X4_F32),      ROW(EMU_V_MFMA_F32_16X16X8_XF32),
    ROW(EMU_V_MFMA_F32_32X32X4_XF32),     ROW(EMU_V_MFMA_F32_32X32X4_2B_F16),
    ROW(EMU_V_MFMA_F32_16X16X4_4B_F16),   ROW(EMU_V_MFMA_F32_4X4X4_16B_F16),
    ROW(EMU_V_MFMA_F32_32X32X8_F16),      ROW(EMU_V_MFMA_F32_16X16X16_F16),
    ROW(EMU_V_MFMA_F32_32X32X2_2B_BF16),  ROW(EMU_V_MFMA_F32_16X16X2_4B_BF16),
    ROW(EMU_V_MFMA_F32_4X4X2_16B_BF16),   ROW(EMU_V_MFMA_F32_32X32X4_BF16),
    ROW(EMU_V_MFMA_F32_16X16X8_BF16),     ROW(EMU_V_MFMA_F32_32X32X4_2B_BF16),
    ROW(EMU_V_MFMA_F32_16X16X4_4B_BF16),  ROW(EMU_V_MFMA_F32_4X4X4_16B_BF16),
    ROW(EMU_V_MFMA_F32_32X32X8_BF16),     ROW(EMU_V_MFMA_F32_16X16X16_BF16),
    ROW(EMU_V_MFMA_I32_32X32X4_2B_I8),    ROW(EMU_V_MFMA_I32_16X16X4_4B_I8),
    ROW(EMU_V_MFMA_I32_4X4X4_16B_I8),     ROW(EMU_V_MFMA_I32_32X32X8_I8),
    ROW(EMU_V_MFMA_I32_16X16X16_I8),      ROW(EMU_V_MFMA_I32_32X32X16_I8),
    ROW(EMU_V_MFMA_I32_16X16X32_I8),      ROW(EMU_V_MFMA_F64_16X16X4_F64),
    ROW(EMU_V_MFMA_F64_4X4X4_4B_F64),     FLOAT8_ROWS(MFMA_F32_16X16X32),
    FLOAT8_ROWS(MFMA_F32_32X32X16),       FLOAT8_ROWS(SMFMAC_F32_16X16X64),
    FLOAT8_ROWS(SMFMAC_F32_32X32X32),     ROW(EMU_V_SMFMAC_F32_16X16X32_F16),
    ROW(EMU_V_SMFMAC_F32_32X32X16_F16),   ROW(EMU_V_SMFMAC_F32_16X16X32_BF16),
    ROW(EMU_V_SMFMAC_F32_32X32X16_BF16),  ROW(EMU_V_SMFMAC_I32_16X16X64_I8),
    ROW(EMU_V_SMFMAC_I32_32X32X32_I8),    {0}};
