/* Making blocks, by the steps of quant_pack.h. A thread has a sub-block. It finds the scale that its values ask for,
 * gets the block's scales from the largest among the threads of its block (neighbouring lanes), and writes its codes to
 * group memory, from which the threads of a block assemble its bytes.
 *
 * Reads 4 bytes a value and writes the blocks. A weight is quantized once, so nothing is tuned. */
#include "kernel/prelude.h"
#include "math/quant/quant_pack.h"
#include "math/quant/quant_pack_kernels.h"

template <rdna_dtype F>
RDNA_DEVICE void quantize(const struct quantize_args &args) {
  constexpr int values = quant_run(F), parts = quant_values(F) / values, bytes = quant_bytes(F);
  RDNA_SHARED uint8_t codes[QUANT_THREADS * values], s[QUANT_THREADS], m[QUANT_THREADS];
  int64_t all = args.count / values, index = (int64_t)group_id_x() * QUANT_THREADS + thread_id();
  /* threads past the end compute the last sub-block again, since a shuffle needs all lanes, and store nothing */
  const float *from = args.x + (index < all ? index : all - 1) * values;
  float x[values];
#pragma unroll
  for (int i = 0; i < values; i += 4) {
    float4 quad = load_f32x4(from + i);
    x[i] = quad.x, x[i + 1] = quad.y, x[i + 2] = quad.z, x[i + 3] = quad.w;
  }
  quant_scale wanted = quant_wanted(F, x);
  if (args.weights) {
    float w[values];
    const float *of = args.weights + (index < all ? index : all - 1) * values % args.columns;
#pragma unroll
    for (int i = 0; i < values; i += 4) {
      float4 quad = load_f32x4(of + i);
      w[i] = quad.x, w[i + 1] = quad.y, w[i + 2] = quad.z, w[i + 3] = quad.w;
    }
    wanted = quant_searched(F, x, w, wanted);
  }
  quant_scale most = wanted;
#pragma unroll
  for (uint32_t mask = 1; mask < (uint32_t)parts; mask *= 2) {
    float scale = wave_shuffle_xor_f32(most.scale, mask), least = wave_shuffle_xor_f32(most.least, mask);
    most.scale = quant_farther(most.scale, scale);
    most.least = most.least > least ? most.least : least;
  }
  quant_block_scales block = quant_scales_of_block(F, most);
  quant_part part = quant_part_of(F, block, wanted);
  uint32_t here = thread_id();
  s[here] = part.s;
  m[here] = part.m;
#pragma unroll
  for (int i = 0; i < values; ++i) codes[here * values + i] = quant_code_of(F, part.scale, x[i]);
  group_barrier();
  if (index >= all) return;
  uint32_t first = here / parts * parts;
  uint8_t *out = (uint8_t *)args.blocks + index / parts * bytes;
#pragma unroll 1
  for (int i = (int)(here % parts); i < bytes; i += parts)
    out[i] = quant_packed_byte(F, i, block, codes + first * values, s + first, m + first);
}

#define QUANTIZE(name, NAME) \
  RDNA_KERNEL(QUANT_THREADS) quantize_f32_##name(struct quantize_args args) { quantize<RDNA_##NAME>(args); }
RDNA_QUANT_PACKED(QUANTIZE)
