/* Device code of flash attention: tiles in LDS, the rows of a wave, and the two products. For .hip files only.
 *
 * A wave owns rows: queries, or in one backward kernel keys. It walks over tiles of |keys| other vectors in LDS, which
 * all waves of the group share. A score tile is 16 rows by 16 keys; an output tile 16 rows by 16 values.
 *
 *               tile of keys in LDS, N_TILES of 16        tile of values, d / 16 of 16 columns
 *     wave 0    [ 16 x 16 ] [ 16 x 16 ] ...         ->    [ 16 x 16 ] [ 16 x 16 ] ...
 *     wave 1    [ 16 x 16 ] [ 16 x 16 ] ...         ->    [ 16 x 16 ] [ 16 x 16 ] ... */
#ifndef RDNA_MATH_FLASH_TILE_H
#define RDNA_MATH_FLASH_TILE_H

#include "math/attention/flash_unit.h"

/* |count| vectors of d values in memory, |stride| bytes apart. */
struct flash_rows {
  const char *base;
  int32_t stride, count, d;
  RDNA_MEMBER flash_rows from(int32_t row) const { return {base + (int64_t)row * stride, stride, count - row, d}; }
};

template <typename type>
RDNA_DEVICE flash_rows flash_rows_of(const void *base, const int64_t stride[3], int64_t batch, int64_t row,
                                     int64_t head, int32_t count, int32_t d) {
  return {(const char *)base + (batch * stride[0] + row * stride[1] + head * stride[2]) * type::BYTES,
          (int32_t)stride[1] * type::BYTES, count, d};
}

/* thread_id, as a value from which nothing is computed ahead of a loop: addresses are cheap, registers are not. */
RDNA_DEVICE uint32_t flash_thread(void) {
  uint32_t thread = thread_id();
#ifdef RDNA_AMD
  asm volatile("" : "+v"(thread));
#endif
  return thread;
}

/* A tile of |keys| vectors in LDS, row by row as in memory. Lanes read the same chunk of 16 bytes of neighbouring rows,
 * which should lie in different banks:
 *
 *     AMD      row 0 | c0 | c1 | c2 | c3 | pad |     rows are a chunk longer than a power of two
 *              row 1 | c0 | c1 | c2 | c3 | pad |
 *     NVIDIA   row 0 | c0 | c1 | c2 | c3 |           chunk c of a row lies at c ^ swap(row): 8 rows' chunks of one
 * place, row 1 | c4 ...                        and two rows' 4 neighbours, are in different banks */
template <typename type, int max_d, int keys>
struct plain_tile {
  typedef typename unit_of<type>::is unit;
  static constexpr int IN_ROW = max_d / type::IN_16, COUNT = keys * IN_ROW / FLASH_THREADS;
  static constexpr int PITCH = max_d * type::BYTES + (unit::ASYNC ? 0 : 16), BYTES = keys * PITCH;
  uint4 raw[unit::ASYNC ? 1 : COUNT];

  RDNA_DEVICE uint32_t swap(uint32_t row) { return (row & 1) << 2 | (row & 2) | (row >> 2 & 1); }

  RDNA_MEMBER void fetch(const flash_rows &from, char *lds) {
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
  RDNA_MEMBER void store(char *lds) const {
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

/* A tile of |keys| vectors in LDS, transposed: a row is one value of all keys, in the order in which scores come
 * (key_at). A thread turns 4 keys by 16 bytes in its registers on their way. */
template <typename type, int max_d, int keys>
struct turned_tile {
  typedef typename unit_of<type>::is unit;
  static constexpr int QUADS = keys / 4, COUNT = QUADS * (max_d / type::IN_16) / FLASH_THREADS;
  static constexpr int PITCH = keys * type::BYTES + 16, BYTES = max_d * PITCH;
  static_assert(unit::ASYNC || COUNT >= 1, "no thread is idle");
  uint4 raw[unit::ASYNC ? 1 : COUNT][4];

  RDNA_MEMBER void fetch(const flash_rows &from, char *lds) {
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
  RDNA_MEMBER void store(char *lds) const {
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
/* The plain tile, transposed as it is read. */
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

/* Loads values k .. k + K - 1 of 16 rows from |first| on from memory. Rows past the end repeat the last: nothing that
 * comes of them is stored. */
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

/* The rows of a wave: kept in registers if |resident|, else loaded from memory for each tile, if |early| one step
 * before they are multiplied. */
template <typename type, int max_d, int tiles, bool resident, bool early>
struct wave_rows {
  typedef typename unit_of<type>::is unit;
  static constexpr bool RESIDENT = resident, EARLY = early;
  static constexpr int STEPS = max_d / unit::K;
  flash_rows from;
  int32_t first;
  typename unit::rows kept[resident ? tiles : 1][resident ? STEPS : 1];
  RDNA_MEMBER void init(const flash_rows &rows, int32_t first_row) {
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
  RDNA_MEMBER typename unit::rows load(int m, int step) const {
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

/* out[m][c] += scores times the vectors of the tile. |strip| is LDS of this wave: 16 rows of score_strip::PITCH bytes.
 */
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

/* Writes 16 rows by d values, each row times its factor. They pass through LDS of this wave, 64 columns at a time, so
 * that neighbouring lanes write neighbours. */
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
    /* what follows of the lane is made here, where registers are short */
    for (uint32_t at = d_tiles < 16 || WAVE_SIZE == 64 ? lane_id() : flash_in_turn(lane_id()); at < 16 * in_row;
         at += WAVE_SIZE) {
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

#endif
