// See hardware_dot.h; dot.c explains the arithmetic, and where it was measured. Magnitudes on the common grid are below
// 2^27, so that 32-bit lanes hold every sum.
#include "machine/hardware_lanes.h"

// A product of two significands has 24 places below that of its exponent.
struct factors {
  ints significand, exponent;  // in 2^-12 of the exponent, which is that of a normal number's leading place
  ints sign;                   // 0 or -1
};

// v / 2^by, cut, of a v that is not negative. Shifts by 32 and more give 0 in this instruction.
static inline ints cut(ints v, ints by) { return (ints)_mm256_srlv_epi32((__m256i)v, (__m256i)by); }
// *odd is set where a factor is infinite or NaN.
static inline struct factors factors_of(ints bits, bool bfloat, ints *odd) {
  const int fraction = bfloat ? 7 : 10, top = bfloat ? 255 : 31;
  ints field = (bits >> fraction) & top, low = bits & ((1 << fraction) - 1), denormal = field == 0;
  struct factors f = {.sign = -((bits >> 15) & 1)};
  f.significand = choose(denormal, bfloat ? all(0) : low, low | 1 << fraction) << (12 - fraction);
  f.exponent = choose(f.significand == 0, all(NOTHING), field - denormal - (bfloat ? 127 : 15));
  *odd |= field == top;
  return f;
}

static inline struct factors broadcast(const int32_t significand, const int32_t exponent, const int32_t sign) {
  return (struct factors){all(significand), all(exponent), all(sign)};
}

// c is a float's bits; so is the result, but for EMU_DOT_F16, and cut to its upper half for EMU_DOT_BF16. *odd is set
// where c is infinite or NaN.
static inline ints step(const struct factors *a0, const struct factors *b0, const struct factors *a1,
                        const struct factors *b1, ints c, bool bfloat, enum emu_dot_result result, ints *odd) {
  ints p0 = a0->significand * b0->significand, p1 = a1->significand * b1->significand;
  ints e0 = a0->exponent + b0->exponent, e1 = a1->exponent + b1->exponent;
  ints field = (c >> 23) & 255, c_sign = c >> 31, no_c = field == 0;
  *odd |= field == 255;
  ints c_significand = choose(no_c, all(0), (c & 0x7fffff) | 0x800000), c_top = choose(no_c, all(NOTHING), field - 127);
  if (result == EMU_DOT_F16) c_top = larger(c_top, all(-14));
  // The grid has 26 places below the leading one of any term, too: a product's is at most one above its exponent. What
  // is zero is far below all others.
  ints grid = larger(larger(e0, e1) - 24, c_top - 26);
  // a term of the other sign than c's adds the complement of its magnitude
  ints flip0 = a0->sign ^ b0->sign ^ c_sign, flip1 = a1->sign ^ b1->sign ^ c_sign;
  ints sum = cut(c_significand << 3, grid + 153 - field) + (cut(p0, grid + 24 - e0) ^ flip0) +
             (cut(p1, grid + 24 - e1) ^ flip1);
  sum = choose((c_significand | p0 | p1) == 0, all(0), sum);
  ints sign = (sum < 0) ^ c_sign;
  if (result == EMU_DOT_F16) return to_half(sum, grid, sign);
  ints value = to_float(choose(sum < 0, -sum, sum), grid, sign);
  return result == EMU_DOT_BF16 ? value & (int32_t)0xffff0000 : value;
}

static inline void dot2(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d, bool bfloat) {
  for (int l = 0; l < 32; l += 8) {
    ints va, vb, vc, odd = {0};
    memcpy(&va, a + l, 32);
    memcpy(&vb, b + l, 32);
    memcpy(&vc, c + l, 32);
    struct factors a0 = factors_of(va, bfloat, &odd), a1 = factors_of(va >> 16, bfloat, &odd);
    struct factors b0 = factors_of(vb, bfloat, &odd), b1 = factors_of(vb >> 16, bfloat, &odd);
    ints r = step(&a0, &b0, &a1, &b1, vc, bfloat, EMU_DOT_F32, &odd);
    for (unsigned left = mask_of(odd); left; left &= left - 1) {
      int i = __builtin_ctz(left);
      r[i] = (int32_t)emu__dot2((uint32_t)va[i], (uint32_t)vb[i], (uint32_t)vc[i], bfloat, EMU_DOT_F32);
    }
    memcpy(d + l, &r, 32);
  }
}

void emu__hw_dot2(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d, bool bfloat) {
  if (bfloat) {
    dot2(a, b, c, d, true);
  } else {
    dot2(a, b, c, d, false);
  }
}

// One element, by emu__dot2.
static uint32_t element(const uint32_t *a, const uint32_t *b, uint32_t sum, bool bfloat, enum emu_dot_result result) {
  for (int k = 0; k < 8; k++) {
    uint32_t c = result == EMU_DOT_F16 ? emu__half_to_float_bits(sum) : result == EMU_DOT_BF16 ? sum << 16 : sum;
    sum = emu__dot2(a[k], b[k], c, bfloat, result);
  }
  return sum;
}

static inline void wmma(const uint32_t a[16][8], const uint32_t b[16][8], const uint32_t c[16][16], uint32_t d[16][16],
                        bool bfloat, enum emu_dot_result result) {
  struct factors fb[2][16];  // (columns' half, K)
  ints b_odd[2] = {{0}}, a_odd = {0};
  int32_t fa[3][16][16];  // (significand exponent sign, row, K)
  unsigned row_odd = 0;
  for (int k = 0; k < 16; k++) {
    for (int h = 0; h < 2; h++) {
      ints bits;
      for (int i = 0; i < 8; i++) bits[i] = (int32_t)(b[8 * h + i][k / 2] >> 16 * (k % 2));
      fb[h][k] = factors_of(bits, bfloat, &b_odd[h]);
      for (int i = 0; i < 8; i++) bits[i] = (int32_t)(a[8 * h + i][k / 2] >> 16 * (k % 2));
      a_odd = all(0);
      struct factors f = factors_of(bits, bfloat, &a_odd);
      for (int i = 0; i < 8; i++) {
        fa[0][8 * h + i][k] = f.significand[i];
        fa[1][8 * h + i][k] = f.exponent[i];
        fa[2][8 * h + i][k] = f.sign[i];
      }
      row_odd |= mask_of(a_odd) << 8 * h;
    }
  }
  for (int row = 0; row < 16; row++) {
    ints sum[2], odd[2];  // both halves in turn: steps of one wait for each other
    for (int h = 0; h < 2; h++) {
      odd[h] = row_odd >> row & 1 ? all(-1) : b_odd[h];
      memcpy(&sum[h], &c[row][8 * h], 32);
    }
    for (int k = 0; k < 16; k += 2) {
      struct factors a0 = broadcast(fa[0][row][k], fa[1][row][k], fa[2][row][k]);
      struct factors a1 = broadcast(fa[0][row][k + 1], fa[1][row][k + 1], fa[2][row][k + 1]);
      for (int h = 0; h < 2; h++) {
        sum[h] = step(&a0, &fb[h][k], &a1, &fb[h][k + 1], open_c(sum[h], result), bfloat, result, &odd[h]);
        if (result == EMU_DOT_BF16) sum[h] = (ints)_mm256_srli_epi32((__m256i)sum[h], 16);
      }
    }
    for (int h = 0; h < 2; h++) {
      memcpy(&d[row][8 * h], &sum[h], 32);
      for (unsigned left = mask_of(odd[h]); left; left &= left - 1) {
        int column = 8 * h + __builtin_ctz(left);
        d[row][column] = element(a[row], b[column], c[row][column], bfloat, result);
      }
    }
  }
}

void emu__hw_wmma(const uint32_t a[16][8], const uint32_t b[16][8], const uint32_t c[16][16], uint32_t d[16][16],
                  bool bfloat, enum emu_dot_result result) {
  if (result == EMU_DOT_F16) {
    wmma(a, b, c, d, false, EMU_DOT_F16);
  } else if (result == EMU_DOT_BF16) {
    wmma(a, b, c, d, true, EMU_DOT_BF16);
  } else if (bfloat) {
    wmma(a, b, c, d, true, EMU_DOT_F32);
  } else {
    wmma(a, b, c, d, false, EMU_DOT_F32);
  }
}
