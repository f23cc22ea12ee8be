/* Moving values. A transposition goes through shared memory so that both sides are read and written in whole lines: a
 * value's bytes are read once and written once, and an H200 should come within a fifth of its copy rate, or a third
 * where lines begin anywhere: for each 16 bytes those read 8 values of 2 bytes from shared memory one by one, three
 * times what the banks have to do for aligned lines, and a quarter more vectors come from the cache. */
#include "kernel/prelude.h"
#include "math/common/device/partial.h"
#include "math/common/device/values.h"
#include "math/movement/movement_convert.h"
#include "math/movement/movement_kernels.h"

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

/* 16 bytes from |p| on, which lies anywhere: where loads must be aligned, of the 4 or 5 words that they are in. */
RDNA_DEVICE uint4 load_anywhere(const uint8_t *p) {
#ifdef RDNA_NVIDIA
  uint32_t bits = (uint32_t)(uint64_t)p % 4 * 8;
  const uint32_t *words = (const uint32_t *)(p - bits / 8);
  uint32_t w[5];
#pragma unroll
  for (int i = 0; i < 4; i++) w[i] = words[i];
  w[4] = bits ? words[4] : 0;
  uint32_t v[4];
#pragma unroll
  for (int i = 0; i < 4; i++) v[i] = (uint32_t)(((uint64_t)w[i + 1] << 32 | w[i]) >> bits);
  return uint4{v[0], v[1], v[2], v[3]};
#else
  uint4 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
#endif
}

/* A chunk of out's line, whose byte |first| it begins with. Whole words are read, so that a chunk whose words reach
 * beyond the line goes byte by byte. */
RDNA_DEVICE void copy_chunk(uint8_t *out, const uint8_t *in, int64_t first, int64_t bytes) {
  int64_t over = (int64_t)((uint64_t)(in + first) % 4);
  if (first >= over && first + 16 + (over ? 4 - over : 0) <= bytes) {
    store_as<uint4>(out + first, load_anywhere(in + first));
    return;
  }
#pragma unroll 1
  for (int i = 0; i < 16; i++) {
    if (first + i >= 0 && first + i < bytes) out[first + i] = in[first + i];
  }
}
RDNA_KERNEL(256) copy_lines(struct lines_args a) {
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    uint32_t i = value_index_of(j);
    if (i < a.shape.count) {
      int64_t at[2];
      strided_offsets(&a.shape, a.operand, 2, i, at);
      uint8_t *out = (uint8_t *)a.operand[0].data + at[0];
      int64_t chunk = i % a.shape.size[0], before = (int64_t)((uint64_t)out % 16);
      copy_chunk(out, (const uint8_t *)a.operand[1].data + at[1], 16 * chunk - before, a.bytes);
    }
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
      if (!dtype_is_integer((rdna_dtype)a.dtype)) {
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

/* Loads the first |count| values of 16 bytes at |p|. */
template <typename bits>
RDNA_DEVICE uint4 load_some(const bits *p, uint32_t count) {
  constexpr uint32_t values = 16 / sizeof(bits);
  if (count >= values) return load_as<uint4>(p);
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
/* 16 bytes put together by hand: a struct of values would be stored in pieces. */
template <typename bits>
RDNA_DEVICE void store_line(bits *p, const bits *v) {
  uint32_t words[4] = {};
#pragma unroll
  for (uint32_t i = 0; i < 16 / sizeof(bits); i++) {
    if constexpr (sizeof(bits) == 8) {
      words[2 * i] = (uint32_t)v[i], words[2 * i + 1] = (uint32_t)(v[i] >> 32);
    } else {
      words[i * sizeof(bits) / 4] |= (uint32_t)v[i] << (8 * sizeof(bits) * i % 32);
    }
  }
  store_as<uint4>(p, uint4{words[0], words[1], words[2], words[3]});
}
/* Stores values |from| to |to| of a line's vector. */
template <typename bits>
RDNA_DEVICE void store_some(bits *p, int32_t from, int32_t to, const bits *v) {
  constexpr int32_t values = 16 / sizeof(bits);
  if (from <= 0 && to >= values) {
    store_line(p, v);
    return;
  }
#pragma unroll
  for (int32_t i = 0; i < values; i++) {
    if (i >= from && i < to) p[i] = v[i];
  }
}

/* Groups that run together read 4 tiles side by side, so that pages of memory are opened for more than one line. */
RDNA_DEVICE uint2 tile_of(const transpose_args &a) { /* its row and column */
  uint32_t in_plane = group_id_x() % (a.shape.size[0] * a.shape.size[1]), band = in_plane / (a.shape.size[0] * 4);
  uint32_t in_band = in_plane - band * a.shape.size[0] * 4, width = min_u32(4, a.shape.size[1] - band * 4);
  return uint2{in_band / width, band * 4 + in_band % width};
}

/* Transposes an aligned tile. Its rows lie in shared memory as they were read, but for the order of the 16-byte vectors
 * in a row: with V values in a vector, vector k of row r lies at k ^ (r / V), so that eight lanes that read one column
 * from eight groups of V rows meet eight different sets of banks:
 *
 *     rows 0 to V - 1        | 0 1 2 3 4 5 6 7 |
 *     rows V to 2 V - 1      | 1 0 3 2 5 4 7 6 |
 *     rows 2 V to 3 V - 1    | 2 3 0 1 6 7 4 5 | */
template <typename bits>
RDNA_DEVICE void transpose_tile(const transpose_args &a) {
  constexpr uint32_t V = 16 / sizeof(bits), columns_of_tile = 8 * V, rows_of_tile = RDNA__TRANSPOSE_ROWS;
  RDNA_SHARED uint4 tile[rows_of_tile * 8];
  int64_t at[2];
  strided_offsets(&a.shape, a.operand, 2, group_id_x(), at);
  uint2 at_tile = tile_of(a);
  uint32_t row0 = at_tile.x * rows_of_tile, column0 = at_tile.y * columns_of_tile;
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
      v[j] = load_some<bits>(in + row * a.in_stride + column, a.columns - column);
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
        store_some<bits>(out + to * a.out_stride + row, 0, (int32_t)(a.rows - row), line);
      }
    }
  }
}

/* Transposes a tile where lines begin anywhere. Whole vectors are read, those that rows of the input lie in, and whole
 * ones are written, those that a line of the output lies in: of line c, those from row0 - o on, o being the number of
 * values by which the line begins beyond a multiple of 16 bytes; so a tile has V - 1 rows before row0 too, a tenth of
 * what it reads where V is 8, and most of it from the cache. Rows lie in shared memory as their vectors do, 36 words
 * each. Rows that are V apart begin at the same place in a vector, as do lines V apart: every V rows are followed by so
 * many words that the next lie one bank further, and lanes that write a line's vectors meet |lanes| banks side by side,
 * those of the next line, |lanes| words along, the banks after them. */
template <typename bits>
RDNA_DEVICE void transpose_ragged_tile(const transpose_args &a) {
  constexpr uint32_t V = 16 / sizeof(bits), columns_of_tile = 8 * V, rows_of_tile = RDNA__TRANSPOSE_ROWS;
  constexpr uint32_t groups = rows_of_tile / V, rows = rows_of_tile + V - 1, vectors = 9; /* of a row */
  constexpr uint32_t pitch = 4 * vectors, skew = (1 - V * pitch) % 32;                    /* words */
  constexpr uint32_t workers = RDNA__TRANSPOSE_THREADS, loads = (rows * vectors + workers - 1) / workers;
  RDNA_SHARED uint32_t tile[rows * pitch + rows / V * skew];
  int64_t at[2];
  strided_offsets(&a.shape, a.operand, 2, group_id_x(), at);
  const bits *in = (const bits *)a.operand[1].data + at[1];
  bits *out = (bits *)a.operand[0].data + at[0];
  uint2 at_tile = tile_of(a);
  const int32_t row0 = (int32_t)(at_tile.x * rows_of_tile), column0 = (int32_t)(at_tile.y * columns_of_tile);
  /* by how many values the tile's first row, and line 0, begin beyond a multiple of 16 bytes */
  const uint32_t in_at = (uint32_t)(address_of(in) / sizeof(bits)) + (uint32_t)column0 +
                         (uint32_t)(row0 - (int32_t)V + 1) * (uint32_t)a.in_stride;
  const uint32_t out_at = (uint32_t)(address_of(out) / sizeof(bits));
  const int64_t last = (a.rows - 1) * a.in_stride; /* what lies between the first row and the last may be read */
  const int64_t low = last < 0 ? last : 0, high = (last < 0 ? 0 : last) + a.columns;
  uint4 v[loads];
#pragma unroll
  for (uint32_t j = 0; j < loads; j++) {
    uint32_t i = j * workers + thread_id(), k = i % vectors, line = i / vectors;
    int32_t row = row0 - (int32_t)V + 1 + (int32_t)line;
    int32_t column = column0 + (int32_t)(k * V) - (int32_t)(in_at + line * (uint32_t)a.in_stride & (V - 1));
    v[j] = uint4{0, 0, 0, 0};
    if (line < rows && row >= 0 && row < (int32_t)a.rows && column < (int32_t)a.columns &&
        column < column0 + (int32_t)columns_of_tile) {
      int64_t from = row * a.in_stride + column;
      if (from >= low && from + V <= high) {
        v[j] = load_as<uint4>(in + from);
      } else { /* at the first row's begin or the last one's end */
        v[j] = load_partial(in + from, -column, (int32_t)a.columns - column);
      }
    }
  }
#pragma unroll
  for (uint32_t j = 0; j < loads; j++) {
    uint32_t i = j * workers + thread_id(), line = i / vectors, turn = i / 8 & 3;
    if (line < rows) { /* word by word, and eight neighbours at a time begin with the next word: no bank meets two */
      uint32_t *to = tile + i * 4 + line / V * skew;
      uint4 w = turn & 1 ? uint4{v[j].y, v[j].z, v[j].w, v[j].x} : v[j];
      w = turn & 2 ? uint4{w.z, w.w, w.x, w.y} : w;
#pragma unroll
      for (uint32_t k = 0; k < 4; k++) to[(k + turn) & 3] = w[k];
    }
  }
  group_barrier();
  constexpr uint32_t lanes = groups < 8 ? groups : 8; /* neighbours that write one line's vectors */
  constexpr uint32_t side_by_side = 32 / lanes, apart = columns_of_tile / side_by_side;
#pragma unroll 2
  for (uint32_t i = thread_id(); i < columns_of_tile * groups; i += workers) {
    uint32_t g = i % lanes + i / (lanes * columns_of_tile) * lanes, q = i / lanes % columns_of_tile;
    uint32_t column = q % side_by_side * apart + q / side_by_side, to = (uint32_t)column0 + column;
    uint32_t before = out_at + to * (uint32_t)a.out_stride & (V - 1), line = g * V + V - 1 - before;
    int32_t row = row0 + (int32_t)(g * V - before);
    bits w[V];
#pragma unroll
    for (uint32_t r = 0; r < V; r++) {
      uint32_t y = line + r, x = column + (in_at + y * (uint32_t)a.in_stride & (V - 1));
      const char *p = (const char *)(tile + y * pitch + y / V * skew) + x * sizeof(bits);
      if constexpr (sizeof(bits) == 8) {
        w[r] = ((const uint32_t *)p)[0] | (uint64_t)((const uint32_t *)p)[1] << 32;
      } else {
        w[r] = *(const bits *)p;
      }
    }
    if (to < a.columns && row < (int32_t)a.rows) {
      store_some<bits>(out + (int64_t)to * a.out_stride + row, -row, (int32_t)a.rows - row, w);
    }
  }
}

#define SIZES(KERNEL) KERNEL(8, uint8_t) KERNEL(16, uint16_t) KERNEL(32, uint32_t) KERNEL(64, uint64_t)
#define MOVERS(size, bits)                                                                                    \
  RDNA_KERNEL(256) copy_strided_##size(struct move_args a) { copy_values<bits>(a); }                          \
  RDNA_KERNEL(256) set_strided_##size(struct set_args a) { set_values<bits>(a, (bits)a.value[0]); }           \
  RDNA_KERNEL(256) pad_strided_##size(struct pad_args a) { pad_values<bits>(a); }                             \
  RDNA_KERNEL(256) triangle_strided_##size(struct triangle_args a) { triangle_values<bits>(a); }              \
  RDNA_KERNEL(RDNA__TRANSPOSE_THREADS) transpose_##size(struct transpose_args a) { transpose_tile<bits>(a); } \
  RDNA_KERNEL(RDNA__TRANSPOSE_THREADS) transpose_ragged_##size(struct transpose_args a) {                     \
    transpose_ragged_tile<bits>(a);                                                                           \
  }
SIZES(MOVERS)
RDNA_KERNEL(256) copy_strided_128(struct move_args a) { copy_values<uint4>(a); }
RDNA_KERNEL(256) set_strided_128(struct set_args a) {
  set_values<uint4>(
      a, uint4{(uint32_t)a.value[0], (uint32_t)(a.value[0] >> 32), (uint32_t)a.value[1], (uint32_t)(a.value[1] >> 32)});
}
