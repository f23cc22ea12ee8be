/* Device code that takes quantized values out of their blocks; see quant_kernels.h for the layouts. For .hip files
 * only.
 *
 * Each format has two views of a row. fetch: 8 neighbouring values, for tiles and for dequantizing. weight: what a
 * lane of gemv_rows takes in one step, 16 bytes of quants, which give one or two runs of 16 values. */
#ifndef RDNA_MATH_QUANT_BLOCKS_H
#define RDNA_MATH_QUANT_BLOCKS_H

#include "math/gemm/gemm_tile.h"

/* Blocks whose size is not a multiple of 4 can start at any even address. AMD loads such words whole; for other
 * GPUs the compiler puts them together from halves. */
typedef uint32_t word_at_2 __attribute__((aligned(2)));
typedef uint4 quad_at_2 __attribute__((aligned(2)));

RDNA_DEVICE float half_at(const char *p) { return f16_to_f32(*(const uint16_t *)p); }
RDNA_DEVICE uint2 words_at(const char *p) { return uint2{*(const word_at_2 *)p, *(const word_at_2 *)(p + 4)}; }
RDNA_DEVICE uint4 quad_at(const char *p) { return *(const quad_at_2 *)p; }
RDNA_DEVICE float byte_of(uint32_t word, int i) { return (float)(word >> (8 * i) & 0xff); }
RDNA_DEVICE float signed_byte_of(uint32_t word, int i) { return (float)(int8_t)(word >> (8 * i)); }

struct q8_0 {
  static constexpr int block_values = 32, block_bytes = 34;
  struct fetch {
    uint2 q;
    float d;
  };
  RDNA_DEVICE fetch load8(const char *row, int chunk) {
    const char *block = row + (int64_t)(chunk >> 2) * block_bytes;
    return {words_at(block + 2 + (chunk & 3) * 8), half_at(block)};
  }
  RDNA_DEVICE void decode8(const fetch &f, float out[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = f.d * signed_byte_of(f.q[i / 4], i % 4);
  }

  struct weight {
    static constexpr int runs = 1;
    struct raw {
      uint4 q;
      float d;
    };
    RDNA_DEVICE int chunks(int k) { return k / 16; }
    RDNA_DEVICE int position(int chunk, int run) { return chunk * 16; }
    RDNA_DEVICE raw load(const char *row, int chunk) {
      const char *block = row + (int64_t)(chunk >> 1) * block_bytes;
      return {quad_at(block + 2 + (chunk & 1) * 16), half_at(block)};
    }
    RDNA_DEVICE void decode(const raw &v, int run, float out[16]) {
#pragma unroll
      for (int i = 0; i < 16; ++i) out[i] = v.d * signed_byte_of(v.q[i / 4], i % 4);
    }
  };
};

struct q4_0 {
  static constexpr int block_values = 32, block_bytes = 18;
  struct fetch {
    uint2 q; /* nibbles in the low half of each byte */
    float d;
  };
  RDNA_DEVICE fetch load8(const char *row, int chunk) {
    const char *block = row + (int64_t)(chunk >> 2) * block_bytes;
    uint2 q = words_at(block + 2 + (chunk & 1) * 8);
    int shift = (chunk & 2) * 2;
    return {uint2{q.x >> shift & 0x0f0f0f0f, q.y >> shift & 0x0f0f0f0f}, half_at(block)};
  }
  RDNA_DEVICE void decode8(const fetch &f, float out[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = f.d * (byte_of(f.q[i / 4], i % 4) - 8);
  }

  struct weight {
    static constexpr int runs = 2;
    struct raw {
      uint4 q;
      float d;
    };
    RDNA_DEVICE int chunks(int k) { return k / 32; }
    RDNA_DEVICE int position(int chunk, int run) { return chunk * 32 + run * 16; }
    RDNA_DEVICE raw load(const char *row, int chunk) {
      const char *block = row + (int64_t)chunk * block_bytes;
      return {quad_at(block + 2), half_at(block)};
    }
    RDNA_DEVICE void decode(const raw &v, int run, float out[16]) {
#pragma unroll
      for (int i = 0; i < 16; ++i) out[i] = v.d * (byte_of(v.q[i / 4] >> (4 * run) & 0x0f0f0f0f, i % 4) - 8);
    }
  };
};

struct q4_K {
  static constexpr int block_values = 256, block_bytes = 144;
  /* (d s, dmin m) of sub-block |j|; |head| is the block's first 16 bytes. */
  RDNA_DEVICE float2 scale_of(uint4 head, int j) {
    float2 d = f16x2_to_f32(head.x);
    int shift = (j & 3) * 8;
    uint32_t low = head.y >> shift, middle = head.z >> shift, high = head.w >> shift;
    uint32_t s = j < 4 ? low & 63 : (high & 15) | (low >> 2 & 48);
    uint32_t m = j < 4 ? middle & 63 : (high >> 4 & 15) | (middle >> 2 & 48);
    return float2{d.x * (float)s, d.y * (float)m};
  }

  struct fetch {
    uint2 q; /* nibbles in the low half of each byte */
    float2 scale;
  };
  RDNA_DEVICE fetch load8(const char *row, int chunk) {
    const char *block = row + (int64_t)(chunk >> 5) * block_bytes;
    int part = chunk & 31, j = part >> 2;
    uint2 q = load_as<uint2>(block + 16 + (j >> 1) * 32 + (part & 3) * 8);
    int shift = (j & 1) * 4;
    return {uint2{q.x >> shift & 0x0f0f0f0f, q.y >> shift & 0x0f0f0f0f}, scale_of(load_u32x4(block), j)};
  }
  RDNA_DEVICE void decode8(const fetch &f, float out[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = f.scale.x * byte_of(f.q[i / 4], i % 4) - f.scale.y;
  }

  struct weight {
    static constexpr int runs = 2;
    struct raw {
      uint4 q;
      float2 scale[2];
    };
    /* 8 chunks a block: two for each 32 bytes of nibbles */
    RDNA_DEVICE int chunks(int k) { return k / 32; }
    RDNA_DEVICE int position(int chunk, int run) { return (chunk >> 1) * 64 + run * 32 + (chunk & 1) * 16; }
    RDNA_DEVICE raw load(const char *row, int chunk) {
      const char *block = row + (int64_t)(chunk >> 3) * block_bytes;
      int part = chunk & 7;
      uint4 head = load_u32x4(block);
      return {load_u32x4(block + 16 + part * 16), {scale_of(head, part & 6), scale_of(head, (part & 6) + 1)}};
    }
    RDNA_DEVICE void decode(const raw &v, int run, float out[16]) {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        out[i] = v.scale[run].x * byte_of(v.q[i / 4] >> (4 * run) & 0x0f0f0f0f, i % 4) - v.scale[run].y;
    }
  };
};

struct q6_K {
  static constexpr int block_values = 256, block_bytes = 210;
  static constexpr int high_at = 128, scales_at = 192, d_at = 208;
  RDNA_DEVICE float scale_of(const char *block, int index) {
    return half_at(block + d_at) * (float)((const int8_t *)block)[scales_at + index];
  }

  struct fetch {
    uint2 q; /* 6 bits in each byte */
    float scale;
  };
  RDNA_DEVICE fetch load8(const char *row, int chunk) {
    const char *block = row + (int64_t)(chunk >> 5) * block_bytes;
    int part = chunk & 31, half_block = part >> 4, r = part >> 2 & 3, l = (part & 3) * 8;
    uint2 low = words_at(block + half_block * 64 + (r & 1) * 32 + l);
    uint2 high = words_at(block + high_at + half_block * 32 + l);
    int low_shift = (r >> 1) * 4, high_shift = 2 * r;
    uint2 q;
#pragma unroll
    for (int i = 0; i < 2; ++i) q[i] = (low[i] >> low_shift & 0x0f0f0f0f) | (high[i] >> high_shift & 0x03030303) << 4;
    return {q, scale_of(block, half_block * 8 + 2 * r + (l >> 4))};
  }
  RDNA_DEVICE void decode8(const fetch &f, float out[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = f.scale * (byte_of(f.q[i / 4], i % 4) - 32);
  }

  struct weight {
    static constexpr int runs = 2;
    struct raw {
      uint4 low, high; /* |high| with this chunk's pairs at bits 0 and 4 */
      float scale[2];
    };
    /* 8 chunks a block: 16 bytes of low nibbles each, whose low nibbles stand 64 values before the high ones */
    RDNA_DEVICE int chunks(int k) { return k / 32; }
    RDNA_DEVICE int position(int chunk, int run) { return (chunk >> 2) * 128 + run * 64 + (chunk & 3) * 16; }
    RDNA_DEVICE raw load(const char *row, int chunk) {
      const char *block = row + (int64_t)(chunk >> 3) * block_bytes;
      int half_block = chunk >> 2 & 1, part = chunk & 3, index = half_block * 8 + part;
      uint4 high = quad_at(block + high_at + half_block * 32 + (part & 1) * 16);
      int shift = (part >> 1) * 2;
#pragma unroll
      for (int i = 0; i < 4; ++i) high[i] >>= shift;
      return {quad_at(block + half_block * 64 + part * 16), high, {scale_of(block, index), scale_of(block, index + 4)}};
    }
    RDNA_DEVICE void decode(const raw &v, int run, float out[16]) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        uint32_t q = (v.low[i] >> (4 * run) & 0x0f0f0f0f) | (v.high[i] >> (4 * run) & 0x03030303) << 4;
#pragma unroll
        for (int b = 0; b < 4; ++b) out[4 * i + b] = v.scale[run] * (byte_of(q, b) - 32);
      }
    }
  };
};

/* The weight view with what gemv_rows asks of every weight. */
template <typename format>
struct quant_weight : format::weight {
  static constexpr int length = 16;
  RDNA_DEVICE int64_t row_bytes(int64_t ld) { return ld / format::block_values * format::block_bytes; }
  RDNA_DEVICE float tail(const char *row, int p) { return 0; } /* rows are whole blocks */
};

/* The fetch view as an operand of gemm_tile; k is the contiguous dimension and a multiple of the block. */
template <typename format>
struct quant_operand {
  typedef typename format::fetch raw;
  const char *row;
  int p, k;

  template <int tile>
  GEMM_MEMBER void init(const void *base, int64_t ld, bool is_along_k, int first_row, int rows, int size_k) {
    int index = first_row + fetch_row<tile>(true);
    row = (const char *)base + index * (ld / format::block_values) * format::block_bytes;
    p = fetch_p<tile>(true);
    k = index < rows ? size_k : 0;
  }
  GEMM_MEMBER raw fetch(void) {
    raw v = {};
    if (p < k) v = format::load8(row, p / 8);
    p += GEMM_TILE_K;
    return v;
  }
  RDNA_DEVICE void decode(const raw &v, float out[8]) { format::decode8(v, out); }
};

#endif
