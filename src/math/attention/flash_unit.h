/* Device code of flash attention: units, which say how a wave's lanes hold the operands and results of a product, and
 * how scores become an operand of the next product. For .hip files only.
 *
 * Attention is two products: scores = Q K^T, out = P V, where P is exp(scores). Scores stay in registers between them,
 * so a lane's results of the first must be what the second wants of that lane.
 *
 *     AMD, matrix units   both are computed transposed: a lane has one row (query), so that a row's maximum takes one
 * or two steps across lanes. Which key stands in which row of the tile, or at which position of the second product's
 * sum (key_at), is chosen such that the lane's scores are its operand. On gfx11 an operand is wanted twice, in both
 * halves of the wave, so the halves exchange theirs. NVIDIA              a lane's scores are its operand as they are
 *     neither, and f32    fused multiply-adds by lanes; scores pass through LDS */
#ifndef RDNA_MATH_FLASH_UNIT_H
#define RDNA_MATH_FLASH_UNIT_H

#include "kernel/arguments.h"
#include "kernel/wgmma.h"
#include "math/attention/flash_math.h"
#include "math/common/device/values.h"

#define FLASH_WAVES (FLASH_THREADS / WAVE_SIZE)
RDNA_DEVICE uint32_t flash_pack(f16, float low, float high) {
#ifdef RDNA_NVIDIA
  uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return bits_as<uint32_t>(half2{(half)low, (half)high});
#endif
}
/* A NaN's payload is expected to have low bits free, as one from 16 bits or from arithmetic has. */
RDNA_DEVICE uint32_t flash_pack(bf16, float low, float high) {
#ifdef RDNA_NVIDIA
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  uint32_t l = bits_as<uint32_t>(low), h = bits_as<uint32_t>(high);
  l += 0x7fff + (l >> 16 & 1);
  h += 0x7fff + (h >> 16 & 1);
  return l >> 16 | (h & 0xffff0000u);
#endif
}

RDNA_DEVICE float2 flash_unpack(f16, uint32_t pair) { return f16x2_to_f32(pair); }
RDNA_DEVICE float2 flash_unpack(bf16, uint32_t pair) { return bf16x2_to_f32(pair); }

RDNA_DEVICE void flash_mma(f16, mma_acc &c, const mma_a &a, const mma_b &b) { mma_f16(c, a, b); }
RDNA_DEVICE void flash_mma(bf16, mma_acc &c, const mma_a &a, const mma_b &b) { mma_bf16(c, a, b); }

/* Keeps each four loads from LDS behind those before them: clang would load all fragments first, in twice the
 * registers. */
RDNA_DEVICE void flash_loads_in_turn(int i) {
#ifdef RDNA_AMD
  if (i % 4 == 3) __builtin_amdgcn_sched_barrier(0);
#endif
}

/* Returns |v|, which the compiler must take for another value, computed here: nothing that follows from it is computed
 * ahead of this place or kept from the last tile. The many values of a tile are so computed one after the other, in few
 * registers. See "Values again" in src/math/README.md. */
template <typename value>
RDNA_DEVICE value flash_in_turn(value v) {
  uint32_t bits = bits_as<uint32_t>(v);
#ifdef RDNA_NVIDIA
  asm volatile("" : "+r"(bits));
#else
  asm volatile("" : "+v"(bits));
#endif
  return bits_as<value>(bits);
}

/* The same for a value that is the same in all lanes. */
RDNA_DEVICE int32_t flash_again(int32_t v) {
#ifdef RDNA_NVIDIA
  asm volatile("" : "+r"(v));
#else
  asm volatile("" : "+s"(v));
#endif
  return v;
}

/* A unit is how a wave multiplies 16 rows by 16 keys, K values of each at a time:
 *
 *     rows, keys                  what a lane holds of either: chunks of 16 bytes
 *     row_of_chunk, chunk_of_k    which row, and which chunk of it, chunk i of this lane is; the same of keys
 *     row_of(v), key_of(v)        which score value v of this lane's accumulator is
 *     STATS, stat_of(v)           a lane has scores of STATS rows; which of them value v is of
 *     REDUCE_FIRST, REDUCE_END    lanes that differ in these bits have other scores of the same rows
 *     THROUGH_LDS                 scores pass through LDS to become an operand; else operand() makes one of them */

/* By lanes, 8 abreast, as in mma.h for GPUs without matrix units. A chunk is 16 bytes of any type. */
template <typename type>
struct lanes_unit {
  static constexpr int K = type::IN_16, UP = WAVE_SIZE / 8, STATS = 16 / UP, REDUCE_FIRST = 1, REDUCE_END = 8;
  static constexpr bool TRANSPOSED = false, THROUGH_LDS = true, ASYNC = false;
  struct rows {
    uint4 chunk[STATS];
  };
  struct keys {
    uint4 chunk[2];
  };
  RDNA_DEVICE uint32_t row_of_chunk(uint32_t i) { return lane_id() / 8 + UP * i; }
  RDNA_DEVICE uint32_t key_of_chunk(uint32_t i) { return lane_id() % 8 + 8 * i; }
  RDNA_DEVICE uint32_t chunk_of_k(uint32_t i) { return 0; }
  RDNA_DEVICE uint32_t row_of(uint32_t v) { return lane_id() / 8 + UP * (v / 2); }
  RDNA_DEVICE uint32_t key_of(uint32_t v) { return lane_id() % 8 + 8 * (v % 2); }
  static constexpr int stat_of(int v) { return v / 2; }
  RDNA_DEVICE uint32_t key_at(uint32_t position) { return position; }
  RDNA_DEVICE void multiply(mma_acc &c, const rows &a, const keys &b) {
    if constexpr (type::BYTES == 4) {
#pragma unroll
      for (int e = 0; e < 4; e++)
#pragma unroll
        for (int i = 0; i < MMA_VALUES; i++)
          c[i] =
              fma_f32(bits_as<float>((uint32_t)a.chunk[i / 2][e]), bits_as<float>((uint32_t)b.chunk[i % 2][e]), c[i]);
    } else {
#ifdef RDNA_MMA_BY_LANES_
      flash_mma(type(), c, bits_as<mma_a>(a), bits_as<mma_b>(b));
#endif
    }
  }
};

/* On matrix units, for 16-bit types. */
template <typename type>
struct matrix_unit {
  static constexpr int K = MMA_K;
  static constexpr bool THROUGH_LDS = false;
#ifdef RDNA_NVIDIA
  static constexpr bool TRANSPOSED = false, ASYNC = true;
  static constexpr int STATS = 2, REDUCE_FIRST = 1, REDUCE_END = 4;
  typedef mma_a rows;
  typedef mma_b keys;
  RDNA_DEVICE uint32_t row_of(uint32_t v) { return mma_row(v); }
  RDNA_DEVICE uint32_t key_of(uint32_t v) { return mma_column(v); }
  static constexpr int stat_of(int v) { return v / 2 % 2; }
  RDNA_DEVICE void multiply(mma_acc &c, const rows &a, const keys &b) { flash_mma(type(), c, a, b); }
  RDNA_DEVICE uint32_t row_of_chunk(uint32_t i) { return mma_a_row(i); }
  RDNA_DEVICE uint32_t key_of_chunk(uint32_t i) { return mma_b_column(i); }
#else
  static constexpr bool TRANSPOSED = true, ASYNC = false;
  static constexpr int STATS = 1, REDUCE_FIRST = 16, REDUCE_END = WAVE_SIZE;
  typedef mma_b rows;
  typedef mma_a keys;
  RDNA_DEVICE uint32_t row_of(uint32_t v) { return mma_column(v); }
  RDNA_DEVICE uint32_t key_of(uint32_t v) { return mma_row(v); }
  static constexpr int stat_of(int v) { return 0; }
  RDNA_DEVICE void multiply(mma_acc &c, const rows &a, const keys &b) { flash_mma(type(), c, b, a); }
  RDNA_DEVICE uint32_t row_of_chunk(uint32_t i) { return mma_b_column(i); }
  RDNA_DEVICE uint32_t key_of_chunk(uint32_t i) { return mma_a_row(i); }
#endif
  RDNA_DEVICE uint32_t chunk_of_k(uint32_t i) { return mma_k(i) / 8; }
  /* Which key of its tile stands at |position| of the second product's sum. */
  RDNA_DEVICE uint32_t key_at(uint32_t position) {
#if defined(__GFX11__)
    return (position & ~15u) | (position % 8 * 2 + position / 8 % 2);
#elif defined(RDNA_MFMA_)
    return (position & ~31u) | (position / 4 % 2 * 16 + position / 8 % 4 * 4 + position % 4);
#else
    return position;
#endif
  }
  /* Scores of neighbouring tiles, K keys together, as the other product's operand. */
  RDNA_DEVICE rows operand(const mma_acc *c) {
    rows p;
#if defined(RDNA_NVIDIA)
#pragma unroll
    for (int i = 0; i < 2; i++)
      p.chunk[i] =
          uint4{flash_pack(type(), c[0][2 * i], c[0][2 * i + 1]), flash_pack(type(), c[0][2 * i + 4], c[0][2 * i + 5]),
                flash_pack(type(), c[1][2 * i], c[1][2 * i + 1]), flash_pack(type(), c[1][2 * i + 4], c[1][2 * i + 5])};
#elif defined(RDNA_MFMA_)
    p.chunk[0] = uint4{flash_pack(type(), c[0][0], c[0][1]), flash_pack(type(), c[0][2], c[0][3]),
                       flash_pack(type(), c[1][0], c[1][1]), flash_pack(type(), c[1][2], c[1][3])};
#elif !defined(RDNA_MMA_BY_LANES_)
    uint4 mine = {flash_pack(type(), c[0][0], c[0][1]), flash_pack(type(), c[0][2], c[0][3]),
                  flash_pack(type(), c[0][4], c[0][5]), flash_pack(type(), c[0][6], c[0][7])};
    p.chunk[0] = mine;
#ifdef __GFX11__
    bool upper = lane_id() >= 16;
#pragma unroll
    for (int w = 0; w < 4; w++) {
      uint32_t other = wave_shuffle_xor_u32(mine[w], 16);
      p.chunk[0][w] = upper ? other : mine[w];
      p.chunk[1][w] = upper ? mine[w] : other;
    }
#endif
#endif
    return p;
  }
};

template <typename type>
struct unit_of {
#ifdef RDNA_MMA_BY_LANES_
  typedef lanes_unit<type> is;
#else
  typedef matrix_unit<type> is;
#endif
};
template <>
struct unit_of<f32> {
  typedef lanes_unit<f32> is;
};

#endif
