/* Weights of integers in quantization groups (see group_kernels.h): dequantizing, quantizing, and products. A value's
 * code takes 1 or 0.5 bytes, a quantization group's scale, zero point and offset 2 to 9. The products are
 * quant_gemv.h's and gemm_tile.h's. */
#include "math/quant/quant_gemv.h"

#include "math/quant/group.h"

/* A row of weights. |shift|: log2 of the values in a quantization group. */
template <bool is_u4>
struct group_row {
  const char *codes, *scales, *offsets;
  const uint8_t *zeros;
  int64_t scale_step, offset_step; /* in values, from group to group */
  int shift, type;

  RDNA_DEVICE group_row of(const struct group_weights_args &w, int64_t row) {
    int bytes = w.type == RDNA_F32 ? 4 : 2;
    return {(const char *)w.codes + row * (is_u4 ? w.k / 2 : w.k),
            (const char *)w.scales + row * w.scale_row * bytes,
            w.offsets ? (const char *)w.offsets + row * w.offset_row * bytes : nullptr,
            w.zeros ? (const uint8_t *)w.zeros + row * (w.k >> w.shift) : nullptr,
            w.scale_group,
            w.offset_group,
            w.shift,
            w.type};
  }
  RDNA_DEVICE int zero_from(uint32_t stored) { return is_u4 ? (int)stored : (int)(int8_t)stored; }
  RDNA_MEMBER int zero_at(int group) const { return zeros ? zero_from(zeros[group]) : is_u4 ? 8 : 0; }
  RDNA_MEMBER float scale_at(int group) const { return group_number(scales, group * scale_step, type); }
  RDNA_MEMBER float offset_at(int group) const {
    return offsets ? group_number(offsets, group * offset_step, type) : 0.0f;
  }

  /* Decodes 8 values from value |v| on, a multiple of 8. */
  RDNA_MEMBER void decode8(int v, float out[8]) const {
    int group = v >> shift, zero = zero_at(group), down = is_u4 ? v % 32 / 16 * 4 : 0;
    float scale = scale_at(group), offset = offset_at(group);
    uint2 q = load_as<uint2>(codes + (is_u4 ? v / 32 * 16 + v % 16 : v));
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      uint32_t byte = q[i / 4] >> (i % 4 * 8 + down);
      out[i] = fma_f32(scale, (float)((is_u4 ? (int)(byte & 15) : (int)(int8_t)byte) - zero), offset);
    }
  }
};

template <bool is_u4, typename type>
RDNA_DEVICE void dequantize_group(const struct dequantize_group_args &args) {
  const struct group_weights_args &w = args.weights;
  int64_t at = ((int64_t)group_id_x() * QUANT_THREADS + thread_id()) * 8;
  if (at >= w.n * w.k) return;
  float v[8];
  group_row<is_u4>::of(w, at / w.k).decode8((int)(at % w.k), v);
  typename type::stored *out = (typename type::stored *)args.out + at;
  type::store4(out, float4{v[0], v[1], v[2], v[3]});
  type::store4(out + 4, float4{v[4], v[5], v[6], v[7]});
}

template <bool is_u4>
RDNA_DEVICE void quantize_group(const struct quantize_group_args &args) {
  const struct group_weights_args &w = args.weights;
  int64_t group = (int64_t)group_id_x() * QUANT_THREADS + thread_id();
  if (group >= (w.n * w.k) >> w.shift) return;
  const float *x = args.x + (group << w.shift);
  group_range range = {0, 0};
  for (int i = 0; i < 1 << w.shift; i += 4) {
    float4 quad = load_f32x4(x + i);
#pragma unroll
    for (int j = 0; j < 4; ++j) group_see(&range, quad[j]);
  }
  group_coding coding = group_coding_of(is_u4, w.zeros != nullptr, range);
  ((uint16_t *)w.scales)[group] = coding.scale;
  if (w.zeros) ((uint8_t *)w.zeros)[group] = (uint8_t)coding.zero;
  for (int i = 0; i < 1 << w.shift; i += is_u4 ? 32 : 16) {
    uint32_t word[4] = {};
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      uint32_t byte = is_u4 ? group_byte_of(&coding, x + i, j) : (uint8_t)group_code_of(&coding, x[i + j]);
      word[j / 4] |= byte << (j % 4 * 8);
    }
    store_u32x4((char *)w.codes + ((group << w.shift) + i) / (is_u4 ? 2 : 1),
                uint4{word[0], word[1], word[2], word[3]});
  }
}

/* As operand B of gemm_tile. The pointer that gemm_tile passes to init is one to the struct group_weights_args. */
template <bool is_u4>
struct group_operand {
  struct raw {
    float v[8];
  };
  group_row<is_u4> row;
  int p, k;
  template <int tile>
  RDNA_MEMBER void init(const void *base, int64_t ld, bool is_along_k, int first_row, int rows, int size_k) {
    const struct group_weights_args &w = *(const struct group_weights_args *)base;
    int index = first_row + fetch_row<tile>(true);
    row = group_row<is_u4>::of(w, index < rows ? index : rows - 1);
    p = fetch_p<tile>(true);
    k = index < rows ? size_k : 0;
  }
  RDNA_MEMBER raw fetch(void) {
    raw v = {};
    if (p < k) row.decode8(p, v.v);
    p += GEMM_TILE_K;
    return v;
  }
  RDNA_DEVICE void decode(const raw &v, float out[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = v.v[i];
  }
};

template <bool is_u4, int tile, int threads>
RDNA_DEVICE void group_gemm(const struct group_gemm_args &args) {
  struct group_weights_args w = args.weights; /* a copy, to stay in registers */
  gemm_tile<dense_operand<f32>, group_operand<is_u4>, f32, tile, threads>(args.product, args.product.a, &w);
}

/* As weights of quant_gemv: a chunk is 32 values, whose minimum is scale * zero point - offset. */
template <bool is_u4>
struct grouped_weights {
  struct chunk {
    static constexpr int span = 32, runs = 2, values = 32, parts = 1, step = 16, in_block = 1;
    uint4 low[is_u4 ? 1 : 2];
    uint32_t scale, least; /* floats' bits */
    RDNA_DEVICE int first_value(uint32_t chunk) { return 0; }
    RDNA_MEMBER void settle(int first) {}
    RDNA_MEMBER uint32_t codes(int run, int word) const {
      return is_u4 ? low[0][word] >> (run * 4) & 0x0f0f0f0f : low[is_u4 ? 0 : run][word];
    }
  };
  typedef struct group_gemm_args args;
  typedef group_row<is_u4> row;
  static constexpr bool has_steps = false, has_groups = true, can_gate = false, has_least = true, is_signed = !is_u4;
  static constexpr int zero = 0, bits = is_u4 ? 4 : 8;
  RDNA_DEVICE const struct gemm_args &product(const args &a) { return a.product; }
  RDNA_DEVICE row row_of(const args &a, int j) { return row::of(a.weights, j); }
  RDNA_DEVICE void finish(const args &a, int i, int j, float sum) { block_weights<q8_0>::finish(a.product, i, j, sum); }
  RDNA_DEVICE chunk load(const row &from, uint32_t index) {
    chunk c;
    const char *codes = in_global_memory(from.codes) + (uint64_t)index * (is_u4 ? 16 : 32);
    int group = (int)(index * 32 >> from.shift);
#pragma unroll
    for (int i = 0; i < (is_u4 ? 1 : 2); ++i) c.low[i] = load_u32x4(codes + i * 16);
    if ((index & ((1 << (from.shift - 5)) - 1)) == 0) {
      float scale = from.scale_at(group);
      c.scale = bits_as<uint32_t>(scale);
      c.least = bits_as<uint32_t>(fma_f32(scale, (float)from.zero_at(group), -from.offset_at(group)));
    }
    return c;
  }
  /* Copies scale and minimum from the lane with the quantization group's first chunk, the only one to load them. */
  RDNA_DEVICE void share(chunk &c, const row &from, uint32_t index) {
    uint32_t first = lane_id() - (uint32_t)(index & ((1 << (from.shift - 5)) - 1));
    c.scale = wave_shuffle_u32(c.scale, first);
    c.least = wave_shuffle_u32(c.least, first);
  }
  RDNA_DEVICE quant_scale scale_of(const chunk &c, int v) { return {bits_as<float>(c.scale), bits_as<float>(c.least)}; }
  RDNA_DEVICE uint32_t look_up(uint32_t codes) { return codes; }
};

#define GROUP_DEFINE(F, is_u4)                                                                                        \
  RDNA_KERNEL(QUANT_THREADS) dequantize_group_##F##_f32(struct dequantize_group_args args) {                          \
    dequantize_group<is_u4, f32>(args);                                                                               \
  }                                                                                                                   \
  RDNA_KERNEL(QUANT_THREADS) dequantize_group_##F##_f16(struct dequantize_group_args args) {                          \
    dequantize_group<is_u4, f16>(args);                                                                               \
  }                                                                                                                   \
  RDNA_KERNEL(QUANT_THREADS) dequantize_group_##F##_bf16(struct dequantize_group_args args) {                         \
    dequantize_group<is_u4, bf16>(args);                                                                              \
  }                                                                                                                   \
  RDNA_KERNEL(QUANT_THREADS) quantize_group_f32_##F(struct quantize_group_args args) { quantize_group<is_u4>(args); } \
  RDNA_KERNEL(GEMM_LARGE_THREADS) gemm_group_##F##_large(struct group_gemm_args args) {                               \
    group_gemm<is_u4, GEMM_LARGE_TILE, GEMM_LARGE_THREADS>(args);                                                     \
  }                                                                                                                   \
  RDNA_KERNEL(GEMM_SMALL_THREADS) gemm_group_##F##_small(struct group_gemm_args args) {                               \
    group_gemm<is_u4, GEMM_SMALL_TILE, GEMM_SMALL_THREADS>(args);                                                     \
  }                                                                                                                   \
  RDNA_KERNEL(QUANT_GEMV_THREADS) gemv_group_##F##_m1(struct group_gemm_args args) {                                  \
    quant_gemv<grouped_weights<is_u4>, 1>(args);                                                                      \
  }                                                                                                                   \
  RDNA_KERNEL(QUANT_GEMV_THREADS) gemv_group_##F##_m4(struct group_gemm_args args) {                                  \
    quant_gemv<grouped_weights<is_u4>, 4>(args);                                                                      \
  }                                                                                                                   \
  RDNA_KERNEL(QUANT_GEMV_THREADS) gemv_group_##F##_m8(struct group_gemm_args args) {                                  \
    quant_gemv<grouped_weights<is_u4>, 8>(args);                                                                      \
  }
GROUP_DEFINE(i8, false)
GROUP_DEFINE(u4, true)
