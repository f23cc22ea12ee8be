/* Device code that the dense and the quantized matrix products share: how operands are fetched, the tiled product and
 * the matrix-vector product. For .hip files only.
 *
 * A group makes one tile of C from a strip of A's rows and a strip of B's columns, |tile_k| values of the summed
 * dimension p at a step:
 *
 *                      B, n columns
 *                 p  |    [  ]    |          Either operand is a matrix of rows (of C: m of A, n of B) by p.
 *     A, m rows      |    [  ]    |          A fetch is 8 neighbours of it in memory: 8 values of p of a row if p is
 *     [ ][ ]...  ->  |   [tile]   |          the contiguous dimension ("along k"), else 8 rows at a value of p.
 *
 * The next step's fetches are in flight, as they lie in memory, while a step is multiplied; they are decoded to floats
 * on their way into LDS. */
#ifndef RDNA_MATH_GEMM_TILE_H
#define RDNA_MATH_GEMM_TILE_H

#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/common/device/values.h"
#include "math/gemm/gemm_activation.h"
#include "math/gemm/gemm_kernels.h"

#define GEMM_TILE_K 16 /* see tile_plan, which may have less */

/* Two signed bytes along k, which matrix units take in place of a 16-bit value. */
struct i8x2 {};

/* Into how many parts a type cuts 16 bytes of an operand: those that are made wider on their way to the unit, in two.
 */
template <typename type>
constexpr int mma_parts = 1;

/* Where this thread's fetch lies in a tile of |tile| rows by |tile_k| values of p:
 *
 *     along k, tile_k 16       otherwise, tile 64
 *     row 0   t0  t1           p 0   t0 (rows 0 to 7)  t1 (rows 8 to 15) ... t7
 *     row 1   t2  t3           p 1   t8                t9                ... t15 */
template <int tile, int tile_k = GEMM_TILE_K>
RDNA_DEVICE int fetch_row(bool along_k) {
  return (int)(along_k ? thread_id() / (tile_k / 8) : thread_id() % (tile / 8) * 8);
}
template <int tile, int tile_k = GEMM_TILE_K>
RDNA_DEVICE int fetch_p(bool along_k) {
  return (int)(along_k ? thread_id() % (tile_k / 8) * 8 : thread_id() / (tile / 8));
}

/* An operand of plain values, in either layout. */
template <typename type, int tile_k = GEMM_TILE_K>
struct dense_operand {
  typedef typename type::raw8 raw;
  const typename type::stored *at;
  int64_t step;
  int rows_left, p, k;
  bool along_k, vectors;

  template <int tile>
  RDNA_MEMBER void init(const void *base, int64_t ld, bool is_along_k, int first_row, int rows, int size_k) {
    along_k = is_along_k;
    k = size_k;
    p = fetch_p<tile, tile_k>(along_k);
    int row = first_row + fetch_row<tile, tile_k>(along_k);
    rows_left = rows - row;
    at = (const typename type::stored *)base + (along_k ? row * ld + p : p * ld + row);
    step = along_k ? tile_k : tile_k * ld;
    vectors = all_16((uint64_t)base | (uint64_t)ld * sizeof(typename type::stored));
  }
  /* The next fetch; what lies outside the matrix is zero. */
  RDNA_MEMBER raw fetch(void) {
    int valid = along_k ? (rows_left > 0 ? k - p : 0) : (p < k ? rows_left : 0);
    raw v = {};
    if (vectors && valid >= 8) {
      v = type::load_raw8(at);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (i < valid) type::set_raw8(v, i, at[i]);
    }
    at += step;
    p += tile_k;
    return v;
  }
  RDNA_DEVICE void decode(const raw &v, float out[8]) { type::decode8(v, out); }
};

/* A tile in LDS, one row for each value of p. Rows are 4 floats longer than the tile, to spread columns over the banks.
 */
template <int tile, int tile_k>
struct lds_tile {
  float value[tile_k][tile + 4];
};

template <int tile, int tile_k>
RDNA_DEVICE void store_fetch(lds_tile<tile, tile_k> &lds, bool along_k, const float v[8]) {
  int row = fetch_row<tile, tile_k>(along_k), p = fetch_p<tile, tile_k>(along_k);
  if (along_k) {
#pragma unroll
    for (int i = 0; i < 8; ++i) lds.value[p + i][row] = v[i];
  } else {
    store_f32x4(&lds.value[p][row], float4{v[0], v[1], v[2], v[3]});
    store_f32x4(&lds.value[p][row + 4], float4{v[4], v[5], v[6], v[7]});
  }
}

/* Stores four neighbours of a row of C, as many as lie before column |n|. */
template <typename type>
RDNA_DEVICE void gemm_store4(typename type::stored *c, int column, int n, float4 v, bool vectors) {
  if (vectors && column + 4 <= n) {
    type::store4(c + column, v);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (column + i < n) type::store_global(c + column + i, v[i]);
}

/* Finishes and stores four neighbours of a row of C: alpha, beta and the bias of columns. What GEMM_MORE stands for
 * comes later. */
template <typename type>
RDNA_DEVICE void gemm_finish4(const struct gemm_args &args, typename type::stored *c, int column, float4 sum,
                              bool vectors) {
  const typename type::stored *bias =
      args.flags & GEMM_BIAS_OF_ROWS ? nullptr : (const typename type::stored *)args.bias;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (column + i >= args.n) break;
    float v = args.alpha * sum[i];
    if (args.beta != 0) v = fma_f32(args.beta, type::load_global(c + column + i), v);
    if (bias) v += type::load_global(bias + column + i);
    sum[i] = v;
  }
  gemm_store4<type>(c, column, args.n, sum, vectors);
}

/* What GEMM_MORE stands for: a bias of rows, the activation, the residual. */
template <typename type>
RDNA_DEVICE float gemm_more(const struct gemm_args &args, int64_t batch, int row, int column, float v) {
  typedef typename type::stored value;
  if (args.bias && args.flags & GEMM_BIAS_OF_ROWS) v += type::load_global((const value *)args.bias + row);
  v = gemm_activate(args.activation, v);
  if (args.residual) {
    int64_t at = batch * args.stride_residual + row * args.ld_residual + column;
    v += type::load_global((const value *)args.residual + at);
  }
  return v;
}

/* One value of C from its sum; |c| is where it is. */
template <typename type>
RDNA_DEVICE float gemm_finish1(const struct gemm_args &args, const typename type::stored *c, int64_t batch, int row,
                               int column, float v) {
  v *= args.alpha;
  if (args.beta != 0) v = fma_f32(args.beta, type::load_global(c), v);
  if (args.bias && !(args.flags & GEMM_BIAS_OF_ROWS))
    v += type::load_global((const typename type::stored *)args.bias + column);
  return args.flags & GEMM_MORE ? gemm_more<type>(args, batch, row, column, v) : v;
}

/* The matrix of the batch and the values of k that this group multiplies. */
struct gemm_range {
  int64_t batch, first;
  int k;
};
RDNA_DEVICE gemm_range gemm_range_of(const struct gemm_args &args) {
  int64_t z = group_id_z();
  if (args.parts <= 1) return {z, 0, args.k};
  int64_t first = z % args.parts * args.part_k, left = args.k - first;
  return {z / args.parts, left > 0 ? first : 0, (int)(left < 0 ? 0 : left < args.part_k ? left : args.part_k)};
}
/* Where its operands begin, in values. */
RDNA_DEVICE int64_t gemm_first_a(const struct gemm_args &args, const gemm_range &range) {
  return range.batch * args.stride_a + (args.flags & GEMM_A_TRANSPOSED ? range.first * args.lda : range.first);
}
RDNA_DEVICE int64_t gemm_first_b(const struct gemm_args &args, const gemm_range &range) {
  return range.batch * args.stride_b + (args.flags & GEMM_B_TRANSPOSED ? range.first : range.first * args.ldb);
}

/* Where this group's tile of C begins. Groups go down bands of 8 rows of tiles, so that those that run at the same time
 * read the same operands, from the L2 cache:
 *
 *     group   0   8  16  ...      band 0
 *             1   9  17
 *            ..
 *             7  15  23 */
template <int tile_m, int tile_n = tile_m>
RDNA_DEVICE void gemm_place(int m, int n, int &row0, int &column0) {
  uint32_t tiles_m = (uint32_t)(m + tile_m - 1) / tile_m, tiles_n = (uint32_t)(n + tile_n - 1) / tile_n;
  uint32_t band = group_id_x() / (8 * tiles_n), in_band = group_id_x() % (8 * tiles_n);
  uint32_t band_rows = min_u32(8, tiles_m - band * 8);
  row0 = (int)(band * 8 + in_band % band_rows) * tile_m;
  column0 = (int)(in_band / band_rows) * tile_n;
}

/* Adds up the parts of a matrix of |values|; the first part is at |sums|, each follows the one before. Always in the
 * same order. Returns whether this thread has a sum, which is that of value |out_index|. */
RDNA_DEVICE bool sum_parts(const float *sums, int64_t values, int parts, int64_t &out_index, float &out_sum) {
  RDNA_SHARED float shared[GEMM_SUM_THREADS];
  bool many = GEMM_SUM_MANY(parts);
  uint32_t across = (uint32_t)GEMM_SUM_VALUES(parts), column = thread_id() % across, slice = thread_id() / across;
  int slices = many ? GEMM_SUM_SLICES : 1;
  int64_t index = (int64_t)group_id_x() * across + column;
  float sum = 0;
  if (index < values) {
    const float *part = sums + index;
#pragma unroll 4
    for (int i = (int)slice; i < parts; i += slices) sum += part[i * values];
  }
  if (many) {
    shared[thread_id()] = sum;
    group_barrier();
#pragma unroll
    for (uint32_t i = 1; i < GEMM_SUM_SLICES; ++i)
      if (slice == 0) sum += shared[i * across + column];
  }
  out_index = index, out_sum = sum;
  return index < values && slice == 0;
}

/* Which sums of a tile a thread has: those of every |down|th quad (4) of rows with every |across|th quad of columns. 32
 * threads stand 4 by 8, so that together they read few different quads from LDS:
 *
 *     quad of rows \ columns    0   1  ..  7     8  ..  15
 *               0               t0  t1  .. t7   t32  .. t39
 *               1               t8  t9  .. t15  t40  .. t47
 *               2               t16 ..
 *               3               t24 ..                         then threads from 64 on, below */
template <int tile, int threads>
struct tile_plan {
  static constexpr int across = 16, down = threads / across;
  static constexpr int quads_m = tile / (4 * down), quads_n = tile / (4 * across);
  static constexpr int tile_k = threads * 8 / tile; /* one fetch of each operand a thread */
  static_assert(tile_k % 8 == 0 && tile * tile_k == threads * 8, "whole fetches");
  RDNA_DEVICE int row(int i) {
    int place = (int)(thread_id() / 64 * 4 + thread_id() / 8 % 4);
    return (i / 4 * down + place) * 4 + i % 4;
  }
  RDNA_DEVICE int column(int j) {
    int place = (int)(thread_id() / 32 % 2 * 8 + thread_id() % 8);
    return (j / 4 * across + place) * 4 + j % 4;
  }
};

/* Multiplies: the sums of a tile over all of k. */
template <int tile, int threads, typename operand_a, typename operand_b>
RDNA_DEVICE void tile_product(
    operand_a &from_a, operand_b &from_b, bool a_along_k, bool b_along_k, int k,
    float (&sum)[tile_plan<tile, threads>::quads_m * 4][tile_plan<tile, threads>::quads_n * 4]) {
  typedef tile_plan<tile, threads> plan;
  constexpr int tile_k = plan::tile_k;
  RDNA_SHARED __attribute__((aligned(16))) lds_tile<tile, tile_k> lds_a[2], lds_b[2];
  int steps = (k + tile_k - 1) / tile_k;
  typename operand_a::raw raw_a = from_a.fetch();
  typename operand_b::raw raw_b = from_b.fetch();
  for (int step = 0; step < steps; ++step) {
    lds_tile<tile, tile_k> &tile_a = lds_a[step & 1], &tile_b = lds_b[step & 1];
    float decoded[8];
    operand_a::decode(raw_a, decoded);
    store_fetch<tile, tile_k>(tile_a, a_along_k, decoded);
    operand_b::decode(raw_b, decoded);
    store_fetch<tile, tile_k>(tile_b, b_along_k, decoded);
    /* One barrier a step is enough: a tile is written again only after the next step's barrier, which every
     * thread reaches after it has read this tile. */
    group_barrier();
    if (step + 1 < steps) {
      raw_a = from_a.fetch();
      raw_b = from_b.fetch();
    }
#pragma unroll
    for (int p = 0; p < tile_k; ++p) {
      float4 va[plan::quads_m], vb[plan::quads_n];
#pragma unroll
      for (int q = 0; q < plan::quads_m; ++q) va[q] = load_f32x4(&tile_a.value[p][plan::row(q * 4)]);
#pragma unroll
      for (int q = 0; q < plan::quads_n; ++q) vb[q] = load_f32x4(&tile_b.value[p][plan::column(q * 4)]);
#pragma unroll
      for (int i = 0; i < plan::quads_m * 4; ++i)
#pragma unroll
        for (int j = 0; j < plan::quads_n * 4; ++j) sum[i][j] = fma_f32(va[i / 4][i % 4], vb[j / 4][j % 4], sum[i][j]);
    }
  }
}

/* Stores a tile of C. */
template <typename type_c, int tile, int threads, typename plan>
RDNA_DEVICE void tile_store(const struct gemm_args &args, typename type_c::stored *c, int row0, int column0,
                            const float (&sum)[plan::quads_m * 4][plan::quads_n * 4]) {
  bool vectors = all_16((uint64_t)c | (uint64_t)args.ldc * sizeof(typename type_c::stored));
#pragma unroll
  for (int i = 0; i < plan::quads_m * 4; ++i) {
    int row = row0 + plan::row(i);
    if (row >= args.m) continue;
#pragma unroll
    for (int q = 0; q < plan::quads_n; ++q) {
      float4 v = {sum[i][q * 4], sum[i][q * 4 + 1], sum[i][q * 4 + 2], sum[i][q * 4 + 3]};
      gemm_finish4<type_c>(args, c + row * args.ldc, column0 + plan::column(q * 4), v, vectors);
    }
  }
}

/* Does what GEMM_MORE stands for to this thread's own values of C, which tile_store has stored: f32, so not rounded
 * yet. */
template <typename type_c, typename plan>
RDNA_DEVICE void tile_store_more(const struct gemm_args &args, typename type_c::stored *c, int64_t batch, int row0,
                                 int column0) {
  static_assert(sizeof(typename type_c::stored) == 4, "an unrounded C");
#pragma unroll 1
  for (int i = 0; i < plan::quads_m * 4; ++i) {
    int row = row0 + plan::row(i);
    if (row >= args.m) break;
#pragma unroll 1
    for (int j = 0; j < plan::quads_n * 4; ++j) {
      int column = column0 + plan::column(j);
      if (column >= args.n) break;
      typename type_c::stored *at = c + row * args.ldc + column;
      type_c::store_global(at, gemm_more<type_c>(args, batch, row, column, type_c::load_global(at)));
    }
  }
}

/* Finishes and stores the sums of a tile of C, or stores those of one part. */
template <typename type_c, int tile, int threads>
RDNA_DEVICE void gemm_tile_finish(
    const struct gemm_args &args, int64_t batch, int row0, int column0,
    const float (&sum)[tile_plan<tile, threads>::quads_m * 4][tile_plan<tile, threads>::quads_n * 4]) {
  typedef tile_plan<tile, threads> plan;
  const struct gemm_args &now = arguments_again(args);
  if (now.parts > 1) {
    float *part = now.sums + (int64_t)group_id_z() * now.m * now.n;
    bool vectors = all_16((uint64_t)part | (uint64_t)now.n * 4);
#pragma unroll
    for (int i = 0; i < plan::quads_m * 4; ++i) {
      int row = row0 + plan::row(i);
      if (row >= now.m) continue;
#pragma unroll
      for (int q = 0; q < plan::quads_n; ++q) {
        float4 v = {sum[i][q * 4], sum[i][q * 4 + 1], sum[i][q * 4 + 2], sum[i][q * 4 + 3]};
        gemm_store4<f32>(part + (int64_t)row * now.n, column0 + plan::column(q * 4), now.n, v, vectors);
      }
    }
    return;
  }
  typename type_c::stored *c = (typename type_c::stored *)now.c + batch * now.stride_c;
  tile_store<type_c, tile, threads, plan>(now, c, row0, column0, sum);
  if (now.flags & GEMM_MORE) tile_store_more<type_c, plan>(now, c, batch, row0, column0);
}

/* Makes one tile of C, or of one part's sums. |a| and |b| are this group's; |k| is how much of them is summed. */
template <typename operand_a, typename operand_b, typename type_c, int tile, int threads>
RDNA_DEVICE void gemm_tile(const struct gemm_args &args, const void *a, const void *b, int k, int64_t batch) {
  typedef tile_plan<tile, threads> plan;
  int row0, column0;
  gemm_place<tile>(args.m, args.n, row0, column0);
  bool a_along_k = !(args.flags & GEMM_A_TRANSPOSED), b_along_k = args.flags & GEMM_B_TRANSPOSED;
  operand_a from_a;
  operand_b from_b;
  from_a.template init<tile>(a, args.lda, a_along_k, row0, args.m, k);
  from_b.template init<tile>(b, args.ldb, b_along_k, column0, args.n, k);
  float sum[plan::quads_m * 4][plan::quads_n * 4] = {};
  tile_product<tile, threads>(from_a, from_b, a_along_k, b_along_k, k, sum);
  gemm_tile_finish<type_c, tile, threads>(args, batch, row0, column0, sum);
}

/* The same where k is not cut into parts. */
template <typename operand_a, typename operand_b, typename type_c, int tile, int threads>
RDNA_DEVICE void gemm_tile(const struct gemm_args &args, const void *a, const void *b) {
  gemm_tile<operand_a, operand_b, type_c, tile, threads>(args, a, b, args.k, group_id_z());
}

/* A weight of plain values for gemv_rows: a lane loads 16 bytes of a row a step (a chunk), which are |length|
 * neighbours. Of quantized weights a chunk is |runs| stretches of |length| neighbours each. */
template <typename type>
struct dense_weight {
  static constexpr int length = 16 / sizeof(typename type::stored), runs = 1;
  typedef uint4 raw;
  RDNA_DEVICE int64_t row_bytes(int64_t ld) { return ld * (int64_t)sizeof(typename type::stored); }
  RDNA_DEVICE int chunks(int k) { return k / length; }
  RDNA_DEVICE int position(int chunk, int run) { return chunk * length; }
  RDNA_DEVICE raw load(const char *row, int chunk) { return load_streaming<uint4>(row + (int64_t)chunk * 16); }
  RDNA_DEVICE void decode(const raw &v, int run, float out[length]) {
    if constexpr (length == 4) {
      for (int i = 0; i < 4; ++i) out[i] = bits_as<float>((uint32_t)v[i]);
    } else {
      type::decode8(v, out);
    }
  }
  /* What is left of a row after its whole chunks. */
  RDNA_DEVICE float tail(const char *row, int p) { return type::load_global((const typename type::stored *)row + p); }
};

template <typename type, int length>
RDNA_DEVICE void load_run(const typename type::stored *p, float v[length]) {
  if constexpr (sizeof(typename type::stored) == 4) {
#pragma unroll
    for (int i = 0; i < length; i += 4) {
      float4 quad = load_f32x4(p + i);
      v[i] = quad.x, v[i + 1] = quad.y, v[i + 2] = quad.z, v[i + 3] = quad.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < length; i += 8) type::decode8(type::load_raw8(p + i), v + i);
  }
}

/* Stores one value of C of gemv_rows. */
template <typename type>
struct gemv_store {
  RDNA_MEMBER void operator()(const struct gemm_args &args, int row, int column, float sum) const {
    typename type::stored *out = (typename type::stored *)args.c + row * args.ldc + column;
    type::store_global(out, gemm_finish1<type>(args, out, 0, row, column, sum));
  }
};

/* C(m, n) for m <= |columns| rows of A: each set of 32 lanes has |rows| rows of B, lane i their chunks i, i + 32 and so
 * on. Rows past m or n repeat the last one, so that nothing diverges and nothing outside is read; they are not stored.
 */
template <typename type_a, typename weight, typename type_c, int columns, int rows, typename store = gemv_store<type_c>>
RDNA_DEVICE void gemv_rows(const struct gemm_args &args, const store &finish = store{}) {
  int lane = (int)thread_id() % 32, set = (int)(group_id_x() * (GEMV_THREADS / 32) + thread_id() / 32);
  const char *row[rows];
  const typename type_a::stored *x[columns];
  float sum[rows][columns] = {};
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    int j = set * rows + r;
    row[r] = (const char *)args.b + (j < args.n ? j : args.n - 1) * weight::row_bytes(args.ldb);
  }
#pragma unroll
  for (int c = 0; c < columns; ++c)
    x[c] = (const typename type_a::stored *)args.a + (c < args.m ? c : args.m - 1) * args.lda;

  int chunks = weight::chunks(args.k);
  constexpr int ahead = columns == 1 ? 2 : 1; /* steps in flight; more would spill registers */
#pragma unroll ahead
  for (int chunk = lane; chunk < chunks; chunk += 32) {
    typename weight::raw raw[rows];
#pragma unroll
    for (int r = 0; r < rows; ++r) raw[r] = weight::load(row[r], chunk);
#pragma unroll
    for (int run = 0; run < weight::runs; ++run) {
      float w[rows][weight::length];
#pragma unroll
      for (int r = 0; r < rows; ++r) weight::decode(raw[r], run, w[r]);
      int at = weight::position(chunk, run);
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        float v[weight::length];
        load_run<type_a, weight::length>(x[c] + at, v);
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
          for (int i = 0; i < weight::length; ++i) sum[r][c] = fma_f32(w[r][i], v[i], sum[r][c]);
      }
    }
  }
  if constexpr (weight::runs == 1 && weight::length <= 8) {
    int p = chunks * weight::length + lane;
    if (p < args.k) {
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int c = 0; c < columns; ++c)
          sum[r][c] = fma_f32(weight::tail(row[r], p), type_a::load_global(x[c] + p), sum[r][c]);
    }
  }

#pragma unroll
  for (int r = 0; r < rows; ++r) {
    int j = set * rows + r;
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      float v = sum[r][c];
#pragma unroll
      for (uint32_t mask = 1; mask < 32; mask *= 2) v += wave_shuffle_xor_f32(v, mask);
      if (lane != 0 || c >= args.m || j >= args.n) continue;
      finish(args, c, j, v);
    }
  }
}

#endif
