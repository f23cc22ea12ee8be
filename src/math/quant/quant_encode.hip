/* Making blocks of the formats IQ1, IQ2 and IQ3, by the steps of quant_encode.h. 32 lanes have a block and all do the
 * same, but for the search for an entry: each looks at every 32nd, with tables in group memory of what the levels of
 * half of its values cost.
 *
 * Reads 4 bytes a value and writes the blocks; what it takes is the search, about ten times a grid's entries for each 8
 * or 4 values. A weight is quantized once, so nothing is tuned. */
#include "kernel/prelude.h"
#include "math/quant/quant_encode.h"
#include "math/quant/quant_encode_kernels.h"

struct quant_search {
  float cost[32], turn[32];                   /* of each value's levels */
  float half_cost[2][256], half_turn[2][256]; /* of the low and the high byte of an entry */
};

RDNA_DEVICE bool quant_is_writer(void) { return thread_id() % 32 == 0; }
RDNA_DEVICE void quant_meet(void) { wave_barrier(); }

RDNA_DEVICE quant_best quant_find(rdna_dtype format, quant_search *search, const float *x, const float *w, float scale,
                                  int shift, bool odd) {
  const int levels = quant_levels(format), slots = levels == 8 ? 8 : 4, bits = levels == 8 ? 4 : 2;
  const int halves = levels == 8 ? 64 : 81; /* bytes that hold levels */
  int lane = (int)(thread_id() % 32), value = lane / slots, level = lane % slots;
  wave_barrier();
  search->cost[lane] = quant_level_cost(format, x[value], w[value], scale, level, shift);
  if (odd) search->turn[lane] = quant_turn_cost(format, x[value], w[value], scale, level);
  wave_barrier();
  for (int i = lane; i < halves; i += 32) {
    for (int high = 0; high < 2; ++high) {
      int byte = 0;
      float cost = 0, turn = __builtin_inff();
      for (int v = high, at = i; v < quant_entry_values(format); v += 2, at /= levels) {
        int slot = v * slots + at % levels;
        byte |= at % levels << (v / 2 * bits);
        cost = v == high ? search->cost[slot] : cost + search->cost[slot];
        if (odd) turn = search->turn[slot] < turn ? search->turn[slot] : turn;
      }
      search->half_cost[high][byte] = cost;
      if (odd) search->half_turn[high][byte] = turn;
    }
  }
  wave_barrier();
  quant_best best = {__builtin_inff(), 0};
  for (uint32_t i = (uint32_t)lane; i < (uint32_t)quant_entries(format); i += 32) {
    uint32_t entry = quant_entry(format, i), low = entry & 255, high = entry >> 8;
    float cost = search->half_cost[0][low] + search->half_cost[1][high];
    if (odd) {
      float a = search->half_turn[0][low], b = search->half_turn[1][high];
      cost += a < b ? a : b;
    }
    if (cost < best.cost) best.cost = cost, best.index = i;
  }
  for (uint32_t mask = 1; mask < 32; mask *= 2) {
    float cost = wave_shuffle_xor_f32(best.cost, mask);
    uint32_t index = wave_shuffle_xor_u32(best.index, mask);
    if (cost < best.cost || (cost == best.cost && index < best.index)) best.cost = cost, best.index = index;
  }
  return best;
}

template <rdna_dtype F>
RDNA_DEVICE void encode(const struct quantize_args &args) {
  RDNA_SHARED quant_search searches[QUANT_ENCODE_BLOCKS];
  RDNA_SHARED quant_encoding encodings[QUANT_ENCODE_BLOCKS];
  int here = (int)thread_id() / 32, lane = (int)thread_id() % 32;
  int64_t all = args.count / 256, index = (int64_t)group_id_x() * QUANT_ENCODE_BLOCKS + here;
  if (index >= all) return;
  quant_encoding *e = &encodings[here];
  quant_encode_load(e, args.x + index * 256, args.weights ? args.weights + index * 256 % args.columns : nullptr, lane,
                    32);
  wave_barrier();
  quant_encode(F, &searches[here], e);
  uint8_t *out = (uint8_t *)args.blocks + index * quant_bytes(F);
  for (int i = lane; i < quant_bytes(F); i += 32) out[i] = quant_encoded_byte(F, i, e);
}

#define ENCODE(name, NAME) \
  RDNA_KERNEL(QUANT_ENCODE_THREADS) quantize_f32_##name(struct quantize_args args) { encode<RDNA_##NAME>(args); }
RDNA_QUANT_ENCODED(ENCODE)
