/* Making blocks of the formats IQ1, IQ2 and IQ3 on the host, by the steps of quant_encode.h, a block at a time.
 *
 * A half is every second value of an entry: the bits of its low or its high byte. Halves are numbered by their levels,
 * the first value's the lowest digit. Entries are looked at by their low halves, what the best high half would cost
 * known beforehand, so that most low halves are left out as a whole. */
#include "kernel/host.h"

#include "math/common/host/simd.h"
#include "math/quant/quant_encode.h"
#include "math/quant/quant_encode_kernels.h"

enum { HALVES = 96 }; /* 3^4 or 8^2 of them, and room for whole vectors */

struct quant_search {
  /* The entries with low half n are number first[n] to first[n + 1]: their high halves and their indices. */
  uint16_t first[HALVES + 1];
  uint8_t high[2048];
  uint16_t index[2048];
  float cost[2][HALVES], turn[2][HALVES]; /* of low and high halves */
};

RDNA_SCALAR int half_count(rdna_dtype format) { return quant_is_iq3(format) ? 64 : 81; }
/* The number of the half in |byte|. */
static uint32_t half_of(rdna_dtype format, uint32_t byte) {
  uint32_t number = 0, bits = quant_is_iq3(format) ? 4 : 2;
  for (int i = quant_entry_values(format) / 2 - 1; i >= 0; i--)
    number = number * (uint32_t)quant_levels(format) + (byte >> (bits * (uint32_t)i) & (quant_is_iq3(format) ? 7 : 3));
  return number;
}

static void sort_entries(rdna_dtype format, struct quant_search *search) {
  int count = 0;
  for (uint32_t low = 0; low < HALVES; low++) {
    search->first[low] = (uint16_t)count;
    for (uint32_t i = 0; i < (uint32_t)quant_entries(format); i++) {
      uint32_t entry = quant_entry(format, i);
      if (half_of(format, entry & 255) != low) continue;
      search->high[count] = (uint8_t)half_of(format, entry >> 8);
      search->index[count++] = (uint16_t)i;
    }
  }
  search->first[HALVES] = (uint16_t)count;
  for (int half = 0; half < 2; half++)
    for (int i = 0; i < HALVES; i++) search->cost[half][i] = search->turn[half][i] = __builtin_inff();
}

RDNA_SCALAR bool quant_is_writer(void) { return true; }
RDNA_SCALAR void quant_meet(void) {}

/* Bit i of the result is 1 where lane i of a comparison is true. */
RDNA_SCALAR uint32_t true_lanes(simd_int comparison) {
#if SIMD_WIDTH == 16
  return _mm512_movepi32_mask((__m512i)comparison);
#elif SIMD_WIDTH == 8
  return (uint32_t)_mm256_movemask_ps((__m256)comparison);
#else
  uint32_t bits = 0;
  for (int i = 0; i < SIMD_WIDTH; i++) bits |= (uint32_t)(comparison[i] != 0) << i;
  return bits;
#endif
}

RDNA_SCALAR float smaller(float a, float b) { return a < b ? a : b; }

/* For each half the sum, or the smallest, of what the levels of values |high|, |high| + 2 and so on cost. */
RDNA_SCALAR void fill_halves(rdna_dtype format, float *out, float (*cost)[8], int high, bool smallest) {
  int size = quant_levels(format);
  for (int l = 0; l < size; l++) out[l] = cost[high][l];
  for (int v = high + 2; v < quant_entry_values(format); v += 2, size *= quant_levels(format))
    for (int l = quant_levels(format) - 1; l >= 0; l--)
      for (int i = 0; i < size; i++) out[l * size + i] = smallest ? smaller(out[i], cost[v][l]) : out[i] + cost[v][l];
}

/* The least of fill_halves' sums; |*out_half|: which it is. */
RDNA_SCALAR float least_half(rdna_dtype format, float (*cost)[8], int high, int *out_half) {
  float sum = 0;
  int place = 1;
  *out_half = 0;
  for (int v = high; v < quant_entry_values(format); v += 2, place *= quant_levels(format)) {
    int least = 0;
    for (int l = 1; l < quant_levels(format); l++) least = cost[v][l] < cost[v][least] ? l : least;
    sum = v == high ? cost[v][least] : sum + cost[v][least];
    *out_half += least * place;
  }
  return sum;
}

/* Looks at the entries with |low|. */
RDNA_SCALAR void look(const struct quant_search *search, int low, bool odd, struct quant_best *best) {
  float of_low = search->cost[0][low], turn = odd ? search->turn[0][low] : 0;
  for (int i = search->first[low]; i < search->first[low + 1]; i++) {
    float sum = of_low + search->cost[1][search->high[i]];
    if (odd) sum += smaller(turn, search->turn[1][search->high[i]]);
    if (sum < best->cost || (sum == best->cost && search->index[i] < best->index && sum < __builtin_inff()))
      best->cost = sum, best->index = search->index[i];
  }
}

RDNA_SCALAR struct quant_best quant_find(rdna_dtype format, struct quant_search *search, const float *x, const float *w,
                                         float scale, int shift, bool odd) {
  const int values = quant_entry_values(format), levels = quant_levels(format);
  float cost[8][8], turn[8][8], least_turn = __builtin_inff();
  int begin, unused;
  for (int v = 0; v < values; v++)
    for (int l = 0; l < levels; l++) cost[v][l] = quant_level_cost(format, x[v], w[v], scale, l, shift);
  for (int high = 0; high < 2; high++) fill_halves(format, search->cost[high], cost, high, false);
  if (odd) {
    for (int v = 0; v < values; v++) {
      for (int l = 0; l < levels; l++) turn[v][l] = quant_turn_cost(format, x[v], w[v], scale, l);
      if (v % 2 == 1) least_turn = smaller(turn[v][0], least_turn); /* the lowest level costs the least */
    }
    for (int high = 0; high < 2; high++) fill_halves(format, search->turn[high], turn, high, true);
  }
  float least_high = least_half(format, cost, 1, &unused);
  (void)least_half(format, cost, 0, &begin); /* it often has the best entry */
  struct quant_best best = {__builtin_inff(), 0};
  look(search, begin, odd, &best);
  float bound[HALVES];
  for (int n = 0; n < HALVES; n++) {
    bound[n] = search->cost[0][n] + least_high;
    if (odd) bound[n] += smaller(search->turn[0][n], least_turn);
  }
  for (int n = 0; n < half_count(format); n += SIMD_WIDTH) {
    for (uint32_t left = true_lanes(simd_load(bound + n) <= simd_set(best.cost)); left; left &= left - 1) {
      int low = n + __builtin_ctz(left);
      if (low != begin && bound[low] <= best.cost) look(search, low, odd, &best);
    }
  }
  return best;
}

#define ENCODE(name, NAME)                                                                                            \
  static void encode_##name(void *context, int64_t begin, int64_t end) {                                              \
    const struct quantize_args *args = context;                                                                       \
    struct quant_search search;                                                                                       \
    struct quant_encoding e;                                                                                          \
    sort_entries(RDNA_##NAME, &search);                                                                               \
    for (int64_t b = begin; b < end; b++) {                                                                           \
      quant_encode_load(&e, args->x + b * 256, args->weights ? args->weights + b * 256 % args->columns : NULL, 0, 1); \
      quant_encode(RDNA_##NAME, &search, &e);                                                                         \
      uint8_t *out = (uint8_t *)args->blocks + b * quant_bytes(RDNA_##NAME);                                          \
      for (int i = 0; i < quant_bytes(RDNA_##NAME); i++) out[i] = quant_encoded_byte(RDNA_##NAME, i, &e);             \
    }                                                                                                                 \
  }                                                                                                                   \
  void RDNA_HOST_KERNEL(quantize_f32_##name)(const void *args, rdna_grid grid) {                                      \
    struct quantize_args a = *(const struct quantize_args *)args;                                                     \
    rdna__parallel_for(a.count / 256, 16, encode_##name, &a);                                                         \
  }
RDNA_QUANT_ENCODED(ENCODE)
