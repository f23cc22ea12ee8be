/* Making blocks of the formats IQ1, IQ2 and IQ3 on the host, by the steps of quant_encode.h, a block at a time.
 *
 * Entries are looked at by their low bytes, what the best high byte would cost known beforehand, so that most low bytes
 * are left out as a whole. */
#include "kernel/host.h"

#include "math/quant/quant_encode.h"
#include "math/quant/quant_encode_kernels.h"

struct quant_search {
  /* The entries that have low byte lows[i] are number first[i] to first[i + 1]: their high bytes and their indices. */
  int low_count;
  uint8_t lows[256];
  uint16_t first[257];
  uint8_t high[2048];
  uint16_t index[2048];
  float cost[2][256], turn[2][256]; /* of the low and the high byte of an entry */
};

static void sort_entries(rdna_dtype format, struct quant_search *search) {
  int count = 0;
  search->low_count = 0;
  for (uint32_t low = 0; low < 256; low++) {
    int before = count;
    for (uint32_t i = 0; i < (uint32_t)quant_entries(format); i++) {
      uint32_t entry = quant_entry(format, i);
      if ((entry & 255) != low) continue;
      search->high[count] = (uint8_t)(entry >> 8);
      search->index[count++] = (uint16_t)i;
    }
    if (count == before) continue;
    search->lows[search->low_count] = (uint8_t)low;
    search->first[search->low_count++] = (uint16_t)before;
  }
  search->first[search->low_count] = (uint16_t)count;
}

RDNA_SCALAR bool quant_is_writer(void) { return true; }
RDNA_SCALAR void quant_meet(void) {}

RDNA_SCALAR float smaller(float a, float b) { return a < b ? a : b; }

/* The costs of all bytes that hold levels of values |high|, |high| + 2 and so on. Returns the least. */
RDNA_SCALAR float fill_costs(rdna_dtype format, float *out, const float (*cost)[8], int high) {
  const int levels = quant_levels(format), bits = quant_is_iq3(format) ? 4 : 2;
  float least[4];
  for (int v = 0; v < quant_entry_values(format) / 2; v++) {
    least[v] = cost[high + 2 * v][0];
    for (int l = 1; l < levels; l++) least[v] = smaller(cost[high + 2 * v][l], least[v]);
  }
  for (int b = 0; b < levels; b++) {
    for (int a = 0; a < levels; a++) {
      float two = cost[high][a] + cost[high + 2][b];
      int at = a | b << bits;
      if (quant_is_iq3(format)) {
        out[at] = two;
        continue;
      }
      for (int c = 0; c < levels; c++) {
        float three = two + cost[high + 4][c];
        for (int d = 0; d < levels; d++) out[at | c << 4 | d << 6] = three + cost[high + 6][d];
      }
    }
  }
  float sum = least[0] + least[1];
  return quant_is_iq3(format) ? sum : sum + least[2] + least[3];
}
RDNA_SCALAR void fill_turns(rdna_dtype format, float *out, const float (*turn)[8], int high) {
  const int levels = quant_levels(format), bits = quant_is_iq3(format) ? 4 : 2;
  for (int b = 0; b < levels; b++) {
    for (int a = 0; a < levels; a++) {
      float two = smaller(turn[high][a], turn[high + 2][b]);
      int at = a | b << bits;
      if (quant_is_iq3(format)) {
        out[at] = two;
        continue;
      }
      for (int c = 0; c < levels; c++) {
        float three = smaller(two, turn[high + 4][c]);
        for (int d = 0; d < levels; d++) out[at | c << 4 | d << 6] = smaller(three, turn[high + 6][d]);
      }
    }
  }
}

RDNA_SCALAR struct quant_best quant_find(rdna_dtype format, struct quant_search *search, const float *x, const float *w,
                                         float scale, int shift, bool odd) {
  const int values = quant_entry_values(format), levels = quant_levels(format);
  float cost[8][8], turn[8][8], least_turn[2] = {__builtin_inff(), __builtin_inff()}, least[2];
  for (int v = 0; v < values; v++)
    for (int l = 0; l < levels; l++) cost[v][l] = quant_level_cost(format, x[v], w[v], scale, l, shift);
  for (int high = 0; high < 2; high++) least[high] = fill_costs(format, search->cost[high], cost, high);
  if (odd) {
    for (int v = 0; v < values; v++) {
      for (int l = 0; l < levels; l++) turn[v][l] = quant_turn_cost(format, x[v], w[v], scale, l);
      least_turn[v % 2] = smaller(turn[v][0], least_turn[v % 2]);
    }
    for (int high = 0; high < 2; high++) fill_turns(format, search->turn[high], turn, high);
  }
  /* the low byte that is the cheapest by itself first, since it often has the best entry */
  int begin = 0;
  for (int n = 1; n < search->low_count; n++)
    if (search->cost[0][search->lows[n]] < search->cost[0][search->lows[begin]]) begin = n;
  struct quant_best best = {__builtin_inff(), 0};
  for (int n = -1; n < search->low_count; n++) {
    int at = n < 0 ? begin : n;
    uint32_t low = search->lows[at];
    float of_low = search->cost[0][low], bound = of_low + least[1];
    if (odd) bound += smaller(search->turn[0][low], least_turn[1]);
    if (bound > best.cost || n == begin) continue;
    for (int i = search->first[at]; i < search->first[at + 1]; i++) {
      float sum = of_low + search->cost[1][search->high[i]];
      if (odd) sum += smaller(search->turn[0][low], search->turn[1][search->high[i]]);
      if (sum < best.cost || (sum == best.cost && search->index[i] < best.index && sum < __builtin_inff()))
        best.cost = sum, best.index = search->index[i];
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
