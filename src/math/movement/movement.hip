/* Moving values. A transposition goes through shared memory so that both sides are read and written in whole lines. */
#include "kernel/prelude.h"
#include "math/movement/movement_convert.h"
#include "math/movement/movement_kernels.h"
#include "math/values.h"

static constexpr uint32_t threads = RDNA__MOVEMENT_THREADS;
static constexpr uint32_t each = RDNA__MOVEMENT_TILE / RDNA__MOVEMENT_THREADS;

/* The |j|th value of this thread. */
RDNA_DEVICE uint32_t value_index_of(uint32_t j) {
  return group_id_x() * RDNA__MOVEMENT_TILE + j * threads + thread_id();
}

template <typename bits>
RDNA_DEVICE void copy_values(const move_args &a) {
  bits v[each];
  int64_t at[each][2];
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (value_index_of(j) < a.shape.count) {
      strided_offsets(&a.shape, a.operand, 2, value_index_of(j), at[j]);
      v[j] = ((const bits *)a.operand[1].data)[at[j][1]];
    }
  }
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (value_index_of(j) < a.shape.count) ((bits *)a.operand[0].data)[at[j][0]] = v[j];
  }
}

RDNA_KERNEL(256) convert_strided(struct move_args a) {
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (value_index_of(j) < a.shape.count) {
      int64_t at[2];
      strided_offsets(&a.shape, a.operand, 2, value_index_of(j), at);
      movement_convert(a.from, a.to, a.operand[1].data, at[1], a.operand[0].data, at[0]);
    }
  }
}

template <typename bits>
RDNA_DEVICE void set_values(const set_args &a, bits v) {
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (value_index_of(j) < a.shape.count) {
      int64_t at;
      strided_offsets(&a.shape, a.operand, 1, value_index_of(j), &at);
      ((bits *)a.operand[0].data)[at] = v;
    }
  }
}

RDNA_KERNEL(256) arange(struct set_args a) {
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    uint32_t i = value_index_of(j);
    if (i < a.shape.count) {
      int64_t at = (int64_t)i * a.operand[0].stride[0];
      if (a.dtype <= RDNA_F64 || float8_is((rdna_dtype)a.dtype)) {
        movement_store_real(a.dtype, a.operand[0].data, at, __builtin_fma((double)i, a.step.real, a.start.real));
      } else {
        uint64_t v = (uint64_t)a.start.integer + i * (uint64_t)a.step.integer;
        movement_store_integer(a.dtype, a.operand[0].data, at, (int64_t)v);
      }
    }
  }
}

template <typename bits>
RDNA_DEVICE void pad_values(const pad_args &a) {
  bits value = (bits)a.value;
  uint32_t rest[each];
  int64_t to[each] = {}, from[each] = {};
#pragma unroll
  for (uint32_t j = 0; j < each; j++) rest[j] = value_index_of(j);
  /* A dimension's numbers serve all values, and then make room for the next dimension's. */
#pragma unroll
  for (uint32_t d = 0; d < STRIDED_RANK; d++) {
    if (d >= a.shape.rank) break;
#pragma unroll
    for (uint32_t j = 0; j < each; j++) movement_pad_step(&a, d, &rest[j], &to[j], &from[j]);
  }
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (value_index_of(j) < a.shape.count) {
      bits v = value;
      if (from[j] != INT64_MIN) v = ((const bits *)a.operand[1].data)[from[j]];
      ((bits *)a.operand[0].data)[to[j]] = v;
    }
  }
}

template <typename bits>
RDNA_DEVICE void triangle_values(const triangle_args &a) {
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    uint32_t i = value_index_of(j);
    if (i < a.shape.count) {
      uint32_t line = i / a.shape.size[0];
      int64_t over = (int64_t)(i - line * a.shape.size[0]) - (int64_t)(line % a.shape.size[1]);
      bool kept = a.upper ? over >= a.diagonal : over <= a.diagonal;
      int64_t at[2];
      strided_offsets(&a.shape, a.operand, 2, i, at);
      ((bits *)a.operand[0].data)[at[0]] = kept ? ((const bits *)a.operand[1].data)[at[1]] : (bits)0;
    }
  }
}

/* 16 bytes from |p|, of which the first |count| values are there. */
template <typename bits>
RDNA_DEVICE uint4 load_some(const bits *p, uint32_t count, bool whole) {
  constexpr uint32_t values = 16 / sizeof(bits);
  if (whole && count >= values) return load_as<uint4>(p);
  union {
    uint4 bits_16;
    bits v[values];
  } u = {uint4{0, 0, 0, 0}};
#pragma unroll
  for (uint32_t i = 0; i < values; i++) {
    if (i < count) u.v[i] = p[i];
  }
  return u.bits_16;
}
template <typename bits>
RDNA_DEVICE void store_some(bits *p, uint32_t count, bool whole, const bits *v) {
  constexpr uint32_t values = 16 / sizeof(bits);
  if (whole && count >= values) { /* put together by hand: a struct of values would be stored in pieces */
    uint32_t words[4] = {};
#pragma unroll
    for (uint32_t i = 0; i < values; i++) {
      if constexpr (sizeof(bits) == 8) {
        words[2 * i] = (uint32_t)v[i], words[2 * i + 1] = (uint32_t)(v[i] >> 32);
      } else {
        words[i * sizeof(bits) / 4] |= (uint32_t)v[i] << (8 * sizeof(bits) * i % 32);
      }
    }
    store_as<uint4>(p, uint4{words[0], words[1], words[2], words[3]});
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < values; i++) {
    if (i < count) p[i] = v[i];
  }
}

/* Rows of the tile lie in shared memory as they were read, but for the order of the 16-byte vectors in a row: vector k
 * of row r is at k ^ (r / V), V being the values of a vector, so that eight lanes that read one column from eight
 * groups of V rows meet eight different sets of banks. */
template <typename bits>
RDNA_DEVICE void transpose_tile(const transpose_args &a) {
  constexpr uint32_t V = 16 / sizeof(bits), columns_of_tile = 8 * V, rows_of_tile = RDNA__TRANSPOSE_ROWS;
  RDNA_SHARED uint4 tile[rows_of_tile * 8];
  int64_t at[2];
  strided_offsets(&a.shape, a.operand, 2, group_id_x(), at);
  /* Groups that run together read 4 tiles side by side, so that pages of memory are opened for more than one line. */
  uint32_t in_plane = group_id_x() % (a.shape.size[0] * a.shape.size[1]), band = in_plane / (a.shape.size[0] * 4);
  uint32_t in_band = in_plane - band * a.shape.size[0] * 4, width = min_u32(4, a.shape.size[1] - band * 4);
  uint32_t tile_row = in_band / width, tile_column = band * 4 + in_band % width;
  uint32_t row0 = tile_row * rows_of_tile, column0 = tile_column * columns_of_tile;
  const bits *in = (const bits *)a.operand[1].data + at[1];
  bits *out = (bits *)a.operand[0].data + at[0];
  constexpr uint32_t workers = RDNA__TRANSPOSE_THREADS, loads = rows_of_tile * 8 / workers;
  uint4 v[loads];
  uint32_t k = thread_id() % 8, column = column0 + k * V;
#pragma unroll
  for (uint32_t j = 0; j < loads; j++) {
    uint32_t row = row0 + j * (workers / 8) + thread_id() / 8;
    v[j] = uint4{0, 0, 0, 0};
    if (row < a.rows && column < a.columns) {
      v[j] = load_some<bits>(in + row * a.in_stride + column, a.columns - column, a.vectors & 2);
    }
  }
#pragma unroll
  for (uint32_t j = 0; j < loads; j++) {
    uint32_t row = j * (workers / 8) + thread_id() / 8;
    tile[row * 8 + (k ^ (row / V & 7))] = v[j];
  }
  group_barrier();
  constexpr uint32_t word_values = sizeof(bits) < 4 ? 4 / sizeof(bits) : 1; /* columns that are read at once */
  constexpr uint32_t units = columns_of_tile / word_values, groups = rows_of_tile / V;
  constexpr uint32_t lanes = groups < 8 ? groups : 8; /* neighbours that write one column's vectors */
  struct alignas(sizeof(bits) * word_values) word {
    bits v[word_values];
  };
#pragma unroll
  for (uint32_t i = thread_id(); i < units * groups; i += workers) {
    uint32_t unit = i / lanes % units, g = i % lanes + i / (lanes * units) * lanes;
    word w[V];
#pragma unroll
    for (uint32_t r = 0; r < V; r++) {
      uint32_t byte = unit * (uint32_t)sizeof(word);
      const char *vector = (const char *)&tile[(g * V + r) * 8 + (byte / 16 ^ (g & 7))];
      w[r] = *(const word *)(vector + byte % 16);
    }
    uint32_t row = row0 + g * V;
#pragma unroll
    for (uint32_t c = 0; c < word_values; c++) {
      uint32_t to = column0 + unit * word_values + c;
      bits line[V];
#pragma unroll
      for (uint32_t r = 0; r < V; r++) line[r] = w[r].v[c];
      if (to < a.columns && row < a.rows) {
        store_some<bits>(out + to * a.out_stride + row, a.rows - row, a.vectors & 1, line);
      }
    }
  }
}

#define SIZES(KERNEL) KERNEL(8, uint8_t) KERNEL(16, uint16_t) KERNEL(32, uint32_t) KERNEL(64, uint64_t)
#define MOVERS(size, bits)                                                                          \
  RDNA_KERNEL(256) copy_strided_##size(struct move_args a) { copy_values<bits>(a); }                \
  RDNA_KERNEL(256) set_strided_##size(struct set_args a) { set_values<bits>(a, (bits)a.value[0]); } \
  RDNA_KERNEL(256) pad_strided_##size(struct pad_args a) { pad_values<bits>(a); }                   \
  RDNA_KERNEL(256) triangle_strided_##size(struct triangle_args a) { triangle_values<bits>(a); }    \
  RDNA_KERNEL(RDNA__TRANSPOSE_THREADS) transpose_##size(struct transpose_args a) { transpose_tile<bits>(a); }
SIZES(MOVERS)
RDNA_KERNEL(256) copy_strided_128(struct move_args a) { copy_values<uint4>(a); }
RDNA_KERNEL(256) set_strided_128(struct set_args a) {
  set_values<uint4>(
      a, uint4{(uint32_t)a.value[0], (uint32_t)(a.value[0] >> 32), (uint32_t)a.value[1], (uint32_t)(a.value[1] >> 32)});
}
