// See hardware_dot.h; dot_pairs.c explains the arithmetic, and where it was measured. On the common grid a sum of four
// products is below 2^28 and the addend below 2^27, so that 32-bit lanes hold every sum. A shift of signed numbers to
// the right rounds down, and by 32 and more leaves 0 or -1.
#include "machine/hardware_lanes.h"

struct signed_factors {
  ints significand, exponent;
};

static inline struct signed_factors factors_of(ints bits, bool bfloat, ints *odd) {
  const int fraction = bfloat ? 7 : 10, top = bfloat ? 255 : 31;
  ints field = (bits >> fraction) & top, low = bits & ((1 << fraction) - 1), denormal = field == 0;
  ints sign = -((bits >> 15) & 1), significand = choose(denormal, low, low | 1 << fraction);
  *odd |= field == top;
  return (struct signed_factors){(significand ^ sign) - sign, field - denormal - (bfloat ? 127 : 15)};
}

static inline ints down(ints v, ints by) { return (ints)_mm256_srav_epi32((__m256i)v, (__m256i)by); }

struct sums {
  ints units, grid;
};

static inline struct sums product(int32_t a, int32_t a_exponent, const struct signed_factors *b, bool bfloat) {
  ints units = b->significand * a;
  return (struct sums){units << (bfloat ? 10 : 4), choose(units == 0, all(NOTHING), b->exponent + a_exponent - 24)};
}

static inline struct sums add(struct sums x, struct sums y) {
  ints grid = larger(x.grid, y.grid);
  return (struct sums){down(x.units, grid - x.grid) + down(y.units, grid - y.grid), grid};
}

// A row of A, taken apart.
struct row {
  int32_t significand[16], exponent[16];
};

// c is a float's bits; so is the result, but for EMU_DOT_F16, and cut to its upper half for EMU_DOT_BF16. *odd is set
// where c is infinite or NaN, or the result may be denormal.
static inline ints step(const struct row *a, const struct signed_factors *const b[4], int k, ints c, bool bfloat,
                        enum emu_dot_result result, ints *odd) {
  const int floor = result == EMU_DOT_F16 ? -14 : -126;
  struct sums p[4];
  for (int i = 0; i < 4; i++) p[i] = product(a->significand[k + i], a->exponent[k + i], b[i], bfloat);
  struct sums low = add(p[0], p[1]), high = add(p[2], p[3]);

  ints field = (c >> 23) & 255, denormal = field == 0, sign = c >> 31;
  ints significand = choose(denormal, c & 0x7fffff, (c & 0x7fffff) | 0x800000), lowest = field - denormal - 150;
  *odd |= field == 255;
  ints top = choose(significand == 0, all(NOTHING), log2_of(significand) + lowest);
  ints grid = larger(larger(low.grid, high.grid), larger(top, all(floor)) - 26);
  // three bits of room below its last place: it is never moved to a grid finer than that
  ints by = grid - lowest, addend = down(((significand ^ sign) - sign) << 3, by + 3);
  ints gone = (addend == -1) & (grid > floor) & (down(significand, larger(by, all(0))) == 0);
  ints sum = choose(gone, all(0), addend) + down(low.units, grid - low.grid) + down(high.units, grid - high.grid);
  if (result == EMU_DOT_F16) return to_half(sum, grid, sum >> 31);
  ints size = choose(sum < 0, -sum, sum);
  *odd |= (size != 0) & (log2_of(size) + grid < -126);
  ints value = to_float(size, grid, sum);
  return result == EMU_DOT_BF16 ? value & (int32_t)0xffff0000 : value;
}

// One element, by emu__dot_pairs.
static uint32_t element(const struct emu_pair_tiles *t, int row, int column, bool bfloat, enum emu_dot_result result,
                        bool saturates) {
  uint32_t sum = t->c[row][column];
  for (int k = 0; k < 16; k += 4) {
    const uint16_t *a = &t->a[row][k], *b = t->b[column];
    const uint8_t *at = &t->meets[row][k];
    uint32_t pairs_a[2] = {a[0] | (uint32_t)a[1] << 16, a[2] | (uint32_t)a[3] << 16};
    uint32_t pairs_b[2] = {b[at[0]] | (uint32_t)b[at[1]] << 16, b[at[2]] | (uint32_t)b[at[3]] << 16};
    uint32_t c = result == EMU_DOT_F16 ? emu__half_to_float_bits(sum) : result == EMU_DOT_BF16 ? sum << 16 : sum;
    sum = emu__dot_pairs(pairs_a, pairs_b, 4, c, bfloat, result, saturates);
  }
  return sum;
}

// Eight columns of a row, from `first` on. odd: those that are left to `element`.
static inline void eight(struct emu_pair_tiles *t, int row, int first, const struct row *a,
                         const struct signed_factors b[32], ints odd, bool bfloat, enum emu_dot_result result,
                         bool saturates) {
  ints sum;
  memcpy(&sum, &t->c[row][first], 32);
  for (int k = 0; k < 16; k += 4) {
    const uint8_t *at = &t->meets[row][k];
    const struct signed_factors *const four[4] = {&b[at[0]], &b[at[1]], &b[at[2]], &b[at[3]]};
    sum = step(a, four, k, open_c(sum, result), bfloat, result, &odd);
    if (result == EMU_DOT_F16 && saturates) sum -= ((sum & 0x7fff) == 0x7c00) & 1;
    if (result == EMU_DOT_BF16) sum = (ints)_mm256_srli_epi32((__m256i)sum, 16);
  }
  memcpy(&t->d[row][first], &sum, 32);
  for (unsigned left = mask_of(odd); left; left &= left - 1) {
    int column = first + __builtin_ctz(left);
    t->d[row][column] = element(t, row, column, bfloat, result, saturates);
  }
}

static inline void tiles(struct emu_pair_tiles *t, bool bfloat, enum emu_dot_result result, bool saturates) {
  struct signed_factors b[2][32];  // (columns' half, K)
  ints b_odd[2] = {{0}};
  for (int h = 0; h < 2; h++) {
    for (int k = 0; k < 32; k++) {
      ints bits;
      for (int i = 0; i < 8; i++) bits[i] = t->b[8 * h + i][k];
      b[h][k] = factors_of(bits, bfloat, &b_odd[h]);
    }
  }
  for (int row = 0; row < 16; row++) {
    struct row a;
    ints a_odd = all(0);
    for (int h = 0; h < 2; h++) {
      ints bits;
      for (int i = 0; i < 8; i++) bits[i] = t->a[row][8 * h + i];
      struct signed_factors f = factors_of(bits, bfloat, &a_odd);
      memcpy(&a.significand[8 * h], &f.significand, 32);
      memcpy(&a.exponent[8 * h], &f.exponent, 32);
    }
    for (int h = 0; h < 2; h++)
      eight(t, row, 8 * h, &a, b[h], mask_of(a_odd) ? all(-1) : b_odd[h], bfloat, result, saturates);
  }
}

void emu__hw_pair_tiles(struct emu_pair_tiles *t, bool bfloat, enum emu_dot_result result, bool saturates) {
  if (result == EMU_DOT_F16) {
    tiles(t, false, EMU_DOT_F16, saturates);
  } else if (result == EMU_DOT_BF16) {
    tiles(t, true, EMU_DOT_BF16, false);
  } else if (bfloat) {
    tiles(t, true, EMU_DOT_F32, false);
  } else {
    tiles(t, false, EMU_DOT_F32, false);
  }
}
