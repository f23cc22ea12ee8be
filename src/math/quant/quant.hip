/* dequantize_*: blocks to values; quantize_f32_q8_0: values to blocks. quant_pack.hip and quant_encode.hip make the
 * other formats. */
#include "math/quant/quant_blocks.h"
#include "math/quant/quant_kernels.h"

template <typename format, typename type>
RDNA_DEVICE void dequantize(const struct dequantize_args &args) {
  int64_t chunk = (int64_t)group_id_x() * QUANT_THREADS + thread_id();
  if (chunk * 8 >= args.count) return;
  constexpr int per_block = format::block_values / 8;
  const char *block = (const char *)args.blocks + chunk / per_block * format::block_bytes;
  float v[8];
  format::decode8(format::load8(block, (int)(chunk % per_block)), v);
  typename type::stored *out = (typename type::stored *)args.out + chunk * 8;
  type::store4(out, float4{v[0], v[1], v[2], v[3]});
  type::store4(out + 4, float4{v[4], v[5], v[6], v[7]});
}

#define QUANT_DEFINE(F, NAME)                                                                                \
  RDNA_KERNEL(QUANT_THREADS) dequantize_##F##_f32(struct dequantize_args args) { dequantize<F, f32>(args); } \
  RDNA_KERNEL(QUANT_THREADS) dequantize_##F##_f16(struct dequantize_args args) { dequantize<F, f16>(args); } \
  RDNA_KERNEL(QUANT_THREADS) dequantize_##F##_bf16(struct dequantize_args args) { dequantize<F, bf16>(args); }
RDNA_QUANT_FORMATS(QUANT_DEFINE)

/* Rounds to nearest, halves away from zero; a NaN becomes 0. |v| is at most 127 but for rounding. */
RDNA_DEVICE int32_t round_away(float v) {
  float whole = __builtin_truncf(v);
  if (abs_f32(v - whole) >= 0.5f) whole += v < 0 ? -1.0f : 1.0f;
  return v == v ? (int32_t)whole : 0;
}

RDNA_KERNEL(QUANT_THREADS) quantize_f32_q8_0(struct quantize_args args) {
  int64_t block = (int64_t)group_id_x() * QUANTIZE_BLOCKS_PER_GROUP + thread_id() / 8;
  int64_t blocks = args.count / 32;
  /* threads past the end compute the last block again, since a shuffle needs all lanes, and store nothing */
  int part = (int)thread_id() % 8;
  float4 x = load_f32x4(args.x + (block < blocks ? block : blocks - 1) * 32 + part * 4);
  float largest = max_f32(max_f32(abs_f32(x.x), abs_f32(x.y)), max_f32(abs_f32(x.z), abs_f32(x.w)));
#pragma unroll
  for (uint32_t mask = 1; mask < 8; mask *= 2) largest = max_f32(largest, wave_shuffle_xor_f32(largest, mask));
  float d = largest / 127.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
  if (block >= blocks) return;
  char *out = (char *)args.blocks + block * q8_0::block_bytes;
  if (part == 0) *(uint16_t *)out = f32_to_f16(d);
  uint32_t q = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) q |= ((uint32_t)round_away(x[i] * inverse) & 0xff) << (8 * i);
  *(quant_word_at_2 *)(out + 2 + part * 4) = q;
}
