/* Device code that decodes quantized values, 8 neighbours at a time, for gemm's tiles and for dequantizing; see
 * quant_unpack.h. For .hip files only. */
#ifndef RDNA_MATH_QUANT_BLOCKS_H
#define RDNA_MATH_QUANT_BLOCKS_H

#include "math/gemm/gemm_tile.h"
#include "math/quant/quant_coded.h"

/* Load 8 (words_at) or 16 bytes (quad_at) from a multiple of |alignment|. AMD loads them from any address. NVIDIA needs
 * a multiple of the size: there only the aligned words of 8 bytes that hold some of these bytes are loaded, and the
 * bytes cut out of them. */
#ifdef RDNA_AMD
template <int alignment>
struct loose;
#define LOOSE(n)                                     \
  template <>                                        \
  struct loose<n> {                                  \
    typedef uint2 words __attribute__((aligned(n))); \
    typedef uint4 quad __attribute__((aligned(n)));  \
  };
LOOSE(1)
LOOSE(2)
LOOSE(4)
LOOSE(8)
LOOSE(16)
#undef LOOSE
template <int alignment>
RDNA_DEVICE uint2 words_at(const char *p) {
  return *(const typename loose<alignment>::words *)p;
}
template <int alignment>
RDNA_DEVICE uint4 quad_at(const char *p) {
  return *(const typename loose<alignment>::quad *)p;
}
#else
RDNA_DEVICE uint32_t funnel_shift(uint32_t low, uint32_t high, uint32_t bits) {
  uint32_t v;
  asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(low), "r"(high), "r"(bits));
  return v;
}
RDNA_DEVICE uint2 load_global(uint64_t at) { return *(const __attribute__((address_space(1))) uint2 *)at; }
template <int alignment>
RDNA_DEVICE uint2 words_at(const char *p) {
  if constexpr (alignment >= 8) {
    return load_as<uint2>(p);
  } else {
    uint64_t at = (uint64_t)p;
    uint2 a = load_global(at & ~7ull), b = load_global((at + 7) & ~7ull);
    bool second = at & 4;
    uint32_t bits = (uint32_t)at % 4 * 8, w0 = second ? a.y : a.x, w1 = second ? b.x : a.y, w2 = second ? b.y : b.x;
    return uint2{funnel_shift(w0, w1, bits), funnel_shift(w1, w2, bits)};
  }
}
template <int alignment>
RDNA_DEVICE uint4 quad_at(const char *p) {
  if constexpr (alignment >= 16) {
    return load_u32x4(p);
  } else if constexpr (alignment == 8) {
    uint2 a = load_as<uint2>(p), b = load_as<uint2>(p + 8);
    return uint4{a.x, a.y, b.x, b.y};
  } else {
    uint64_t at = (uint64_t)p, first = at & ~7ull;
    uint2 a = load_global(first), b = load_global(first + 8), c = load_global((at + 15) & ~7ull);
    bool second = at & 4;
    uint32_t bits = (uint32_t)at % 4 * 8;
    uint32_t w0 = second ? a.y : a.x, w1 = second ? b.x : a.y, w2 = second ? b.y : b.x, w3 = second ? c.x : b.y,
             w4 = second ? c.y : c.x;
    return uint4{funnel_shift(w0, w1, bits), funnel_shift(w1, w2, bits), funnel_shift(w2, w3, bits),
                 funnel_shift(w3, w4, bits)};
  }
}
#endif

RDNA_DEVICE float byte_of(uint32_t word, int i) { return (float)(word >> (8 * i) & 0xff); }
RDNA_DEVICE float signed_byte_of(uint32_t word, int i) { return (float)(int8_t)(word >> (8 * i)); }

/* Byte i of the result is byte selector[i], 0 to 7, of the eight of a (0 to 3) and b (4 to 7). */
RDNA_DEVICE uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef RDNA_AMD
  return __builtin_amdgcn_perm(b, a, selector);
#else
  uint32_t pairs = (selector | selector >> 4) & 0x00ff00ff; /* NVIDIA wants the four numbers in nibbles */
  return __nvvm_prmt(a, b, (pairs | pairs >> 8) & 0xffff);
#endif
}

template <rdna_dtype F>
struct quant_format {
  static constexpr rdna_dtype dtype = F;
  static constexpr int block_values = quant_values(F), block_bytes = quant_bytes(F), alignment = quant_alignment(F);
  static constexpr bool is_signed = quant_bits(F) == 8 || quant_has_table(F);

  /* Replaces each of four codes by its entry in the format's table, if it has one. */
  RDNA_DEVICE uint32_t look_up(uint32_t codes) {
    if constexpr (!quant_has_table(F)) return codes;
    uint32_t in_half = codes & 0x07070707, upper = (codes >> 3 & 0x01010101) * 255;
    uint32_t low = permute_bytes(quant_table_word(F, 0), quant_table_word(F, 1), in_half);
    uint32_t high = permute_bytes(quant_table_word(F, 2), quant_table_word(F, 3), in_half);
    return (low & ~upper) | (high & upper);
  }
  /* code - zero of byte |i|, or the table's entry */
  RDNA_DEVICE float code_of(uint32_t word, int i) {
    return is_signed ? signed_byte_of(word, i) : byte_of(word, i) - (float)quant_zero(F);
  }

  struct fetch {
    uint2 q; /* 8 codes, a byte each */
    quant_scale scale;
  };
  RDNA_DEVICE fetch load8(const char *row, int chunk) {
    constexpr int per_block = block_values / 8;
    const char *block = row + (int64_t)(chunk / per_block) * block_bytes;
    int v = chunk % per_block * 8;
    if constexpr (quant_is_coded(F)) {
      fetch f = {};
      quant_eight e = quant_coded_load_eight(F, block, v, &f.scale.scale);
      f.q = uint2{e.w[0], e.w[1]};
      return f;
    }
    uint2 q = QUANT_LOW_CODES(F, words_at<(alignment < 8 ? alignment : 8)>(block + quant_low_at(F, v)), v, 0x01010101u);
    if constexpr (quant_has_high(F))
      q |= QUANT_HIGH_CODES(F, words_at<(alignment < 8 ? alignment : 8)>(block + quant_high_at(F, v)), v, 0x01010101u);
    if constexpr (quant_has_fifth_bits(F)) {
      uint32_t bits = quant_load_32(F, block + quant_fifth_bits_at(F)) >> v;
      q |= uint2{quant_spread_bits(bits), quant_spread_bits(bits >> 4)};
    }
    return {q, quant_scale_of(F, quant_unfold(F, quant_head_of(F, block, v), v), v % 128)};
  }
  RDNA_DEVICE void decode8(const fetch &f, float out[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out[i] = f.scale.scale * code_of(look_up(f.q[i / 4]), i % 4);
      if constexpr (quant_has_least(F)) out[i] -= f.scale.least;
    }
  }
};
#define QUANT_NAME(name, NAME)                                                                                   \
  typedef quant_format<RDNA_##NAME> name;                                                                        \
  static_assert(                                                                                                 \
      quant_is_coded(RDNA_##NAME) || quant_low_at(RDNA_##NAME, name::block_values - 8) + 8 <= name::block_bytes, \
      "src/base/block_formats.h: the codes of " #name " reach past the block's last byte");
RDNA_QUANT_FORMATS(QUANT_NAME)
#undef QUANT_NAME

/* Rows of blocks as an operand of gemm_tile. Values are contiguous along k, which is a multiple of the block. */
template <typename format>
struct quant_operand {
  typedef typename format::fetch raw;
  const char *row;
  int p, k;

  template <int tile>
  RDNA_MEMBER void init(const void *base, int64_t ld, bool is_along_k, int first_row, int rows, int size_k) {
    int index = first_row + fetch_row<tile>(true);
    row = (const char *)base + index * (ld / format::block_values) * format::block_bytes;
    p = fetch_p<tile>(true);
    k = index < rows ? size_k : 0;
  }
  RDNA_MEMBER raw fetch(void) {
    raw v = {};
    if (p < k) v = format::load8(row, p / 8);
    p += GEMM_TILE_K;
    return v;
  }
  RDNA_DEVICE void decode(const raw &v, float out[8]) { format::decode8(v, out); }
};

#endif
