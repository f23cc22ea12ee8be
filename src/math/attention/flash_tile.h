/* Device code that the attention kernels share: tiles in LDS, fragments of matrix units, and how scores become an
 * operand of the next product without leaving their registers. For .hip files only.
 *
 * A wave owns rows: queries, or in one backward kernel keys. It walks over tiles of |keys| other vectors in LDS. A
 * score tile is 16 rows by 16 keys; an output tile 16 rows by 16 values. On AMD's matrix units both are computed
 * transposed, so that a lane has one row and a row's maximum needs no more than one or two steps across lanes; and
 * there the key of a tile's row, or the position of a key in the other operand, is chosen such that a lane's scores
 * are already (but on gfx11 half of) what the next product wants of it. On NVIDIA a lane's scores are its operand.
 * Elsewhere scores pass through LDS. f32 uses fused multiply-adds by lanes on every GPU. */
#ifndef RDNA_MATH_FLASH_TILE_H
#define RDNA_MATH_FLASH_TILE_H

#include "kernel/arguments.h"
#include "kernel/wgmma.h"
#include "math/attention/flash_math.h"
#include "math/common/device/values.h"

#define FLASH_WAVES (FLASH_THREADS / WAVE_SIZE)
/* RDNA_DEVICE is static; this is for member functions that have an object. */
#define FLASH_MEMBER inline __attribute__((device, always_inline))

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

/* Loads from LDS stay behind those before: a scheduler that has all fragments loaded first wants twice the registers.
 */
RDNA_DEVICE void flash_loads_in_turn(int i) {
#ifdef RDNA_AMD
  if (i % 4 == 3) __builtin_amdgcn_sched_barrier(0);
#endif
}

/* |v|, at this place among others of the kind: so long computations of many values are not done all at once, in more
 * registers than there are, nor their beginnings kept from one tile to the next. */
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

/* The same for what all lanes have, so that what follows from it is not kept. */
RDNA_DEVICE int32_t flash_again(int32_t v) {
#ifdef RDNA_NVIDIA
  asm volatile("" : "+r"(v));
#else
  asm volatile("" : "+s"(v));
#endif
  return v;
}

/* --- units: what a wave does with 16 x 16 x K values ---------------------------------------------------------- */

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
  RDNA_DEVICE uint32_t key_chunk_of_k(uint32_t i) { return 0; }
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

/* --- tiles in LDS ------------------------------------------------------------------------------------------- */

/* |count| vectors of d values, |stride| bytes apart. */
struct flash_rows {
  const char *base;
  int32_t stride, count, d;
  FLASH_MEMBER flash_rows from(int32_t row) const { return {base + (int64_t)row * stride, stride, count - row, d}; }
};

template <typename type>
RDNA_DEVICE flash_rows flash_rows_of(const void *base, const int64_t stride[3], int64_t batch, int64_t row,
                                     int64_t head, int32_t count, int32_t d) {
  return {(const char *)base + (batch * stride[0] + row * stride[1] + head * stride[2]) * type::BYTES,
          (int32_t)stride[1] * type::BYTES, count, d};
}

/* thread_id, from which nothing is computed ahead of a loop: addresses are cheap, registers are not. */
RDNA_DEVICE uint32_t flash_thread(void) {
  uint32_t thread = thread_id();
#ifdef RDNA_AMD
  asm volatile("" : "+v"(thread));
#endif
  return thread;
}

/* A tile of |keys| vectors in the order of memory. On NVIDIA the chunks of a row are exchanged such that 8 rows' chunks
 * of one place, and two rows' 4 neighbours, are in different banks; elsewhere rows are a chunk longer. */
template <typename type, int max_d, int keys>
struct plain_tile {
  typedef typename unit_of<type>::is unit;
  static constexpr int IN_ROW = max_d / type::IN_16, COUNT = keys * IN_ROW / FLASH_THREADS;
  static constexpr int PITCH = max_d * type::BYTES + (unit::ASYNC ? 0 : 16), BYTES = keys * PITCH;
  uint4 raw[unit::ASYNC ? 1 : COUNT];

  RDNA_DEVICE uint32_t swap(uint32_t row) { return (row & 1) << 2 | (row & 2) | (row >> 2 & 1); }

  FLASH_MEMBER void fetch(const flash_rows &from, char *lds) {
    uint32_t thread = flash_thread(), row = thread / IN_ROW, chunk = thread % IN_ROW;
    const char *base = from.base + (int64_t)(row * (uint32_t)from.stride + chunk * 16);
#ifdef RDNA_NVIDIA
    if constexpr (unit::ASYNC) {
      uint32_t to = shared_address(lds);
#pragma unroll
      for (int i = 0; i < COUNT; i++) {
        uint32_t at = row + i * (FLASH_THREADS / IN_ROW);
        bool valid = (int32_t)at < from.count && (int32_t)(chunk * type::IN_16) < from.d;
        copy_to_shared_16(to + at * PITCH + (chunk ^ swap(at)) * 16,
                          valid ? base + (int64_t)i * (FLASH_THREADS / IN_ROW) * from.stride : from.base, valid);
      }
      return;
    }
#endif
    if (from.count >= keys && from.d == max_d) {
#pragma unroll
      for (int i = 0; i < COUNT; i++)
        raw[i] = load_global<uint4>(base + (int64_t)i * (FLASH_THREADS / IN_ROW) * from.stride);
    } else {
#pragma unroll
      for (int i = 0; i < COUNT; i++) {
        uint32_t at = row + i * (FLASH_THREADS / IN_ROW);
        raw[i] = uint4{0, 0, 0, 0};
        if ((int32_t)at < from.count && (int32_t)(chunk * type::IN_16) < from.d)
          raw[i] = load_global<uint4>(base + (int64_t)i * (FLASH_THREADS / IN_ROW) * from.stride);
      }
    }
  }
  FLASH_MEMBER void store(char *lds) const {
#ifdef RDNA_NVIDIA
    if constexpr (unit::ASYNC) {
      copy_to_shared_wait();
      return;
    }
#endif
    uint32_t thread = flash_thread(), row = thread / IN_ROW, chunk = thread % IN_ROW;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
      store_u32x4(lds + (row + i * (FLASH_THREADS / IN_ROW)) * PITCH + chunk * 16, raw[i]);
  }
  /* Keys 16 |tile| .. + 15, values |k| .. + K - 1. */
  RDNA_DEVICE typename unit::keys load(const char *lds, int tile, int k) {
    typename unit::keys f;
    constexpr int chunks = sizeof f / 16;
#pragma unroll
    for (int i = 0; i < chunks; i++) {
      uint32_t row = unit::key_of_chunk(i), chunk = unit::chunk_of_k(i);
#ifdef RDNA_NVIDIA
      if constexpr (unit::ASYNC) { /* k / IN_16 is a multiple of 4 */
        uint32_t base = shared_address(lds) + row * PITCH + (chunk ^ swap(row)) * 16;
        f.chunk[i] = load_shared_16((base ^ (uint32_t)k * type::BYTES) + 16 * tile * PITCH);
        continue;
      }
#endif
      f.chunk[i] = load_u32x4(lds + (16 * tile + row) * PITCH + chunk * 16 + k * type::BYTES);
    }
    return f;
  }
};

/* A tile of |keys| vectors with the keys along memory, in the order in which scores come. */
template <typename type, int max_d, int keys>
struct turned_tile {
  typedef typename unit_of<type>::is unit;
  static constexpr int QUADS = keys / 4, COUNT = QUADS * (max_d / type::IN_16) / FLASH_THREADS;
  static constexpr int PITCH = keys * type::BYTES + 16, BYTES = max_d * PITCH;
  static_assert(unit::ASYNC || COUNT >= 1, "no thread is idle");
  uint4 raw[unit::ASYNC ? 1 : COUNT][4];

  FLASH_MEMBER void fetch(const flash_rows &from, char *lds) {
    uint32_t thread = flash_thread();
    if (from.count >= keys && from.d == max_d) {
#pragma unroll
      for (int i = 0; i < COUNT; i++) {
        uint32_t quad = thread % QUADS, chunk = thread / QUADS + i * (FLASH_THREADS / QUADS);
#pragma unroll
        for (int j = 0; j < 4; j++)
          raw[i][j] = load_global<uint4>(from.base +
                                         (int64_t)(unit::key_at(4 * quad + j) * (uint32_t)from.stride + chunk * 16));
      }
    } else {
#pragma unroll
      for (int i = 0; i < COUNT; i++) {
        uint32_t quad = thread % QUADS, chunk = thread / QUADS + i * (FLASH_THREADS / QUADS);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          uint32_t row = unit::key_at(4 * quad + j);
          raw[i][j] = uint4{0, 0, 0, 0};
          if ((int32_t)row < from.count && (int32_t)(chunk * type::IN_16) < from.d)
            raw[i][j] = load_global<uint4>(from.base + (int64_t)(row * (uint32_t)from.stride + chunk * 16));
        }
      }
    }
  }
  FLASH_MEMBER void store(char *lds) const {
    uint32_t thread = flash_thread();
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      uint32_t quad = thread % QUADS, chunk = thread / QUADS + i * (FLASH_THREADS / QUADS);
      char *to = lds + chunk * type::IN_16 * PITCH + quad * 4 * type::BYTES;
#pragma unroll
      for (int e = 0; e < type::IN_16; e++) {
        if constexpr (type::BYTES == 4) {
          store_u32x4(to + e * PITCH, uint4{raw[i][0][e], raw[i][1][e], raw[i][2][e], raw[i][3][e]});
        } else {
          uint2 pair;
#pragma unroll
          for (int w = 0; w < 2; w++) {
            uint32_t low = raw[i][2 * w][e / 2], high = raw[i][2 * w + 1][e / 2];
            pair[w] = e % 2 ? low >> 16 | (high & 0xffff0000u) : (low & 0xffffu) | high << 16;
          }
          store_as<uint2>(to + e * PITCH, pair);
        }
      }
    }
  }
  /* Values 16 |tile| .. + 15, keys |k| .. + K - 1. */
  RDNA_DEVICE typename unit::keys load(const char *lds, int tile, int k) {
    typename unit::keys f;
    constexpr int chunks = sizeof f / 16;
#pragma unroll
    for (int i = 0; i < chunks; i++)
      f.chunk[i] =
          load_u32x4(lds + (16 * tile + unit::key_of_chunk(i)) * PITCH + unit::chunk_of_k(i) * 16 + k * type::BYTES);
    return f;
  }
};

#ifdef RDNA_NVIDIA
/* The plain tile is read with its rows and columns exchanged. */
template <typename type, int max_d, int keys>
struct read_turned_tile : plain_tile<type, max_d, keys> {
  typedef plain_tile<type, max_d, keys> plain;
  RDNA_DEVICE mma_b load(const char *lds, int tile, int k) {
    uint32_t row = (uint32_t)k + lane_id();
    uint32_t base = shared_address(lds) + row * plain::PITCH + plain::swap(lane_id()) * 16;
    mma_b f;
#pragma unroll
    for (int i = 0; i < 2; i++) f.chunk[i] = mma_load_turned(base ^ (uint32_t)(2 * tile + i) * 16);
    return f;
  }
};
template <typename type, int max_d, int keys, bool async>
struct value_tile_of {
  typedef read_turned_tile<type, max_d, keys> is;
};
template <typename type, int max_d, int keys>
struct value_tile_of<type, max_d, keys, false> {
  typedef turned_tile<type, max_d, keys> is;
};
#else
template <typename type, int max_d, int keys, bool async>
struct value_tile_of {
  typedef turned_tile<type, max_d, keys> is;
};
#endif

/* --- rows of a wave ----------------------------------------------------------------------------------------- */

/* 16 rows from |first| on, values k .. k + K - 1, from memory. Rows past the end repeat the last: nothing that comes
 * of them is stored. */
template <typename type>
RDNA_DEVICE typename unit_of<type>::is::rows flash_load_rows(const flash_rows &from, int32_t first, int k) {
  typedef typename unit_of<type>::is unit;
  typename unit::rows f;
  constexpr int chunks = sizeof f / 16;
#pragma unroll
  for (int i = 0; i < chunks; i++) {
    int32_t row = first + (int32_t)unit::row_of_chunk(i), at = k + (int32_t)unit::chunk_of_k(i) * type::IN_16;
    row = row < from.count ? row : from.count - 1;
    f.chunk[i] = uint4{0, 0, 0, 0};
    if (at < from.d) f.chunk[i] = load_global<uint4>(from.base + (int64_t)row * from.stride + at * type::BYTES);
  }
  return f;
}

/* The rows of a wave, in registers for good or fetched whenever they are wanted, or |early|, one step before. */
template <typename type, int max_d, int tiles, bool resident, bool early>
struct wave_rows {
  typedef typename unit_of<type>::is unit;
  static constexpr bool RESIDENT = resident, EARLY = early;
  static constexpr int STEPS = max_d / unit::K;
  flash_rows from;
  int32_t first;
  typename unit::rows kept[resident ? tiles : 1][resident ? STEPS : 1];
  FLASH_MEMBER void init(const flash_rows &rows, int32_t first_row) {
    from = rows;
    first = first_row;
    if constexpr (resident) {
#pragma unroll
      for (int m = 0; m < tiles; m++)
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
          kept[m][s] = load(m, s);
#ifdef RDNA_NVIDIA
        /* Registers that a load of 16 bytes wrote stand in its order, of which each product would first make its own
         * again; the result of a shuffle may stand anywhere. */
#pragma unroll
          for (uint32_t w = 0; w < sizeof kept[m][s] / 4; w++)
            kept[m][s].chunk[w / 4][w % 4] = wave_shuffle_u32(kept[m][s].chunk[w / 4][w % 4], lane_id());
#endif
        }
    }
  }
  FLASH_MEMBER typename unit::rows load(int m, int step) const {
    return flash_load_rows<type>(from, first + 16 * m, step * unit::K);
  }
};

/* scores[m][n] = the products of rows 16 m.. with keys 16 n.. of the tile. */
template <typename tile, int m_tiles, int n_tiles, int steps, typename rows_of>
RDNA_DEVICE void flash_scores(const rows_of &rows, const char *lds, mma_acc (&scores)[m_tiles][n_tiles]) {
  typedef typename tile::unit unit;
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int n = 0; n < n_tiles; n++) scores[m][n] = mma_acc{};
  if constexpr (rows_of::RESIDENT) {
#pragma unroll
    for (int s = 0; s < steps; s++) {
#pragma unroll
      for (int n = 0; n < n_tiles; n++) {
        typename unit::keys key = tile::load(lds, n, s * unit::K);
#pragma unroll
        for (int m = 0; m < m_tiles; m++) unit::multiply(scores[m][n], rows.kept[m][s], key);
        flash_loads_in_turn(s * n_tiles + n);
      }
    }
  } else {
    typename unit::rows row[m_tiles], next[m_tiles];
    rows_of from = rows;
    from.first = flash_in_turn(from.first); /* addresses are made for these steps alone */
#pragma unroll
    for (int m = 0; m < m_tiles; m++)
      if (rows_of::EARLY) next[m] = from.load(m, 0);
#pragma unroll 1 /* else all rows would be kept in registers */
    for (int s = 0; s < steps; s++) {
#pragma unroll
      for (int m = 0; m < m_tiles; m++) {
        row[m] = rows_of::EARLY ? next[m] : from.load(m, s);
        if (rows_of::EARLY) next[m] = from.load(m, s + 1 < steps ? s + 1 : s);
      }
#pragma unroll
      for (int n = 0; n < n_tiles; n++) {
        typename unit::keys key = tile::load(lds, n, s * unit::K);
#pragma unroll
        for (int m = 0; m < m_tiles; m++) unit::multiply(scores[m][n], row[m], key);
      }
    }
  }
}

/* out[m][c] += scores times the vectors of the tile. |strip| is LDS of this wave: 16 rows of STRIP_PITCH bytes. */
template <typename type, int keys>
struct score_strip {
  static constexpr int PITCH = keys * type::BYTES + 16;
  static constexpr int BYTES = unit_of<type>::is::THROUGH_LDS ? 16 * PITCH : 0;
};
template <typename type, typename tile, int m_tiles, int n_tiles, int d_tiles>
RDNA_DEVICE void flash_accumulate(const mma_acc (&scores)[m_tiles][n_tiles], const char *lds, char *strip,
                                  mma_acc (&out)[m_tiles][d_tiles]) {
  typedef typename unit_of<type>::is unit;
  constexpr int keys = 16 * n_tiles, steps = keys / unit::K;
  if constexpr (unit::THROUGH_LDS) {
    typedef score_strip<type, keys> layout;
    strip += flash_in_turn(0u);
    lds += flash_in_turn(0u);
#pragma unroll
    for (int m = 0; m < m_tiles; m++) {
      wave_barrier();
#pragma unroll
      for (int n = 0; n < n_tiles; n++)
#pragma unroll
        for (int v = 0; v < MMA_VALUES; v++)
          type::store(strip + unit::row_of(v) * layout::PITCH, 16 * n + unit::key_of(v), scores[m][n][v]);
      wave_barrier();
#pragma unroll 1
      for (int s = 0; s < steps; s++) {
        typename unit::rows p;
#pragma unroll
        for (int i = 0; i < unit::STATS; i++)
          p.chunk[i] = load_u32x4(strip + unit::row_of_chunk(i) * layout::PITCH + s * 16);
#pragma unroll
        for (int c = 0; c < d_tiles; c++) {
          unit::multiply(out[m][c], p, tile::load(lds, c, s * unit::K));
          flash_loads_in_turn(c);
        }
      }
    }
  } else {
#pragma unroll
    for (int s = 0; s < steps; s++) {
      typename unit::rows p[m_tiles];
#pragma unroll
      for (int m = 0; m < m_tiles; m++) p[m] = unit::operand(&scores[m][s * (n_tiles / steps)]);
#pragma unroll
      for (int c = 0; c < d_tiles; c++) {
        typename unit::keys value = tile::load(lds, c, s * unit::K);
#pragma unroll
        for (int m = 0; m < m_tiles; m++) unit::multiply(out[m][c], p[m], value);
        flash_loads_in_turn(c);
      }
    }
  }
}

/* Writes 16 rows by d values, each row times its factor, through LDS of this wave, 64 columns at a time. */
#define FLASH_STAGE_PITCH 68 /* floats */
#define FLASH_STAGE_BYTES (16 * FLASH_STAGE_PITCH * 4)
template <typename type, int d_tiles>
RDNA_DEVICE void flash_write(const mma_acc (&out)[d_tiles], const float *factor, char *base, int64_t stride,
                             int32_t count, int32_t d, float *stage) {
  typedef typename unit_of<type>::is unit;
#pragma unroll
  for (int part = 0; part < d_tiles; part += 4) {
    wave_barrier();
#pragma unroll
    for (int c = 0; c < 4; c++)
#pragma unroll
      for (int v = 0; v < MMA_VALUES; v++)
        stage[unit::row_of(v) * FLASH_STAGE_PITCH + 16 * c + unit::key_of(v)] =
            out[part + c][v] * factor[unit::stat_of(v)];
    wave_barrier();
    constexpr int in_row = 64 / type::IN_16;
#pragma unroll 1
    for (uint32_t at = lane_id(); at < 16 * in_row; at += WAVE_SIZE) {
      uint32_t row = at / in_row, column = at % in_row * type::IN_16;
      if ((int32_t)row >= count || (int32_t)(16 * part + column) >= d) continue;
      float values[type::IN_16];
#pragma unroll
      for (int i = 0; i < type::IN_16; i += 4) {
        float4 four = load_f32x4(stage + row * FLASH_STAGE_PITCH + column + i);
#pragma unroll
        for (int j = 0; j < 4; j++) values[i + j] = four[j];
      }
      type::store_16(base + row * stride + (16 * part + column) * type::BYTES, values);
    }
  }
}

/* --- options ------------------------------------------------------------------------------------------------ */

/* Where a score stands. */
struct flash_place {
  const flash_args *a;
  flash_sequence s;
  int32_t batch, head;
};
/* The same with arguments that are read when they are wanted: there are not scalar registers for all of them. */
RDNA_DEVICE flash_place flash_place_again(const flash_place &at) {
  flash_place now = at;
  now.a = &arguments_again(*at.a);
  return now;
}
/* The same for good; nor is what follows from the batch and the head kept where registers are fewest. */
RDNA_DEVICE void flash_place_renew(flash_place &at) {
  at.a = &arguments_again(*at.a);
#if WAVE_SIZE == 64
  asm volatile("" : "+s"(at.batch), "+s"(at.head));
#endif
}

/* What of the options a kernel knows: limits; limits and a mask that is there; all. */
enum flash_kind { FLASH_PLAIN, FLASH_MASKED, FLASH_ANY };

/* c, 16 x 16 products of queries and keys from the given ones on, to scale * c + mask, |together| at a time. Places
 * past the end take the last one's. |of_keys|: rows are keys. */
template <typename type, bool of_keys, int together = MMA_VALUES>
RDNA_DEVICE void flash_mask_add(const flash_place &at, int32_t first_query, int32_t first_key, mma_acc &c) {
  typedef typename unit_of<type>::is unit;
#pragma unroll
  for (int first = 0; first < MMA_VALUES; first += together) {
    const flash_args &a = arguments_again(*at.a);
    int64_t head = flash_again(at.batch) * a.mask_stride[0] + flash_again(at.head) * a.mask_stride[1];
    int64_t cell[together];
    float value[together];
#pragma unroll
    for (int e = 0; e < together; e++) {
      int32_t row = (int32_t)unit::row_of(first + e), key = (int32_t)unit::key_of(first + e);
      int32_t i = flash_in_turn(first_query) + (of_keys ? key : row),
              j = flash_in_turn(first_key) + (of_keys ? row : key);
      i = i < a.sq ? i : a.sq - 1; /* there are no starts with a mask */
      j = j < a.sk ? j : a.sk - 1;
      cell[e] = head + i * a.mask_stride[2] + j * a.mask_stride[3];
    }
    if (a.mask_type == FLASH_MASK_BOOL) {
#pragma unroll
      for (int e = 0; e < together; e++) value[e] = ((const uint8_t *)a.mask)[cell[e]] ? 0 : -infinity_f32();
    } else if (a.mask_type == FLASH_MASK_F32) {
#pragma unroll
      for (int e = 0; e < together; e++) value[e] = ((const float *)a.mask)[cell[e]];
    } else {
#pragma unroll
      for (int e = 0; e < together; e++) value[e] = type::load(a.mask, (uint64_t)cell[e]);
    }
#pragma unroll
    for (int e = 0; e < together; e++) c[first + e] = flash_in_turn(fma_f32(c[first + e], a.scale, value[e]));
  }
}

/* From scale * q.k to the score in units of log 2, before limits. |slope| of its head; |slack| becomes the derivative
 * of the softcap. */
template <typename type>
RDNA_DEVICE float flash_score(const flash_place &at, float x, float slope, int32_t i, int32_t j, float &slack) {
  const flash_args &a = arguments_again(*at.a);
  x = flash_in_turn(x);
  i = flash_in_turn(i);
  slack = 1;
  if (a.softcap != 0) {
    float tanh = scalar_tanh(x / a.softcap);
    x = a.softcap * tanh;
    slack = fma_f32(-tanh, tanh, 1);
  }
  if (a.slopes) {
    int32_t far = i + at.s.shift - j;
    x -= slope * (float)(far < 0 ? -far : far);
  }
  if (a.mask_type != FLASH_NO_MASK && i < at.s.sq && j < at.s.sk && i >= 0 && j >= 0) {
    const flash_args &m = arguments_again(a);
    int64_t cell =
        at.batch * m.mask_stride[0] + at.head * m.mask_stride[1] + i * m.mask_stride[2] + j * m.mask_stride[3];
    if (m.mask_type == FLASH_MASK_BOOL) {
      if (!((const uint8_t *)m.mask)[cell]) x = -infinity_f32();
    } else {
      x += m.mask_type == FLASH_MASK_F32 ? ((const float *)m.mask)[cell] : type::load(m.mask, (uint64_t)cell);
    }
  }
  return flash_in_turn(x * FLASH_LOG2_E);
}

/* 1 / (1 - dropout) where the probability is kept, else 0. */
RDNA_DEVICE float flash_kept(const flash_place &at, int32_t i, int32_t j) {
  const flash_args &a = arguments_again(*at.a);
  i = flash_in_turn(i);
  random_words words = flash_dropout_words(&a, at.batch, at.head, i, j / 4);
  uint32_t word = j % 4 == 0 ? words.word[0] : j % 4 == 1 ? words.word[1] : j % 4 == 2 ? words.word[2] : words.word[3];
  return flash_in_turn(random_unit(word) >= a.dropout ? 1 / (1 - a.dropout) : 0);
}

/* Whether query i, which is there, does not see key j. */
RDNA_DEVICE bool flash_hidden(const flash_place &place, int32_t i, int32_t j) {
  int32_t far = j - i - place.s.shift;
  return far < -place.a->left || far > place.a->right || j >= place.s.sk;
}

/* From lse in units of log 2: a query that sees nothing has probabilities of 0. */
RDNA_DEVICE float backward_base(float lse) { return lse == -infinity_f32() ? infinity_f32() : lse * FLASH_LOG2_E; }

RDNA_DEVICE float flash_reduce_max(float v, int first, int end) {
#pragma unroll
  for (int mask = first; mask < end; mask *= 2) v = __builtin_fmaxf(v, wave_shuffle_xor_f32(v, (uint32_t)mask));
  return v;
}
RDNA_DEVICE float flash_reduce_sum(float v, int first, int end) {
#pragma unroll
  for (int mask = first; mask < end; mask *= 2) v += wave_shuffle_xor_f32(v, (uint32_t)mask);
  return v;
}

#endif
