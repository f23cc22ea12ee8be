/* Device code of the products on matrix units: both operands of the same 16-bit type, in any layout. For .hip files
 * only.
 *
 * A group makes a tile of C, MMA_STEP values of k a step. The next step's operands are in flight, in registers, while
 * this step's are multiplied; as there are two buffers in LDS, one barrier a step suffices. Rows past the end of an
 * operand repeat another row, as nothing that comes of them is stored; only k is padded with zeros. */
#ifndef RDNA_MATH_GEMM_MMA_H
#define RDNA_MATH_GEMM_MMA_H

#include "math/gemm/nvidia/gemm_pipe.h"

enum { MMA_STEP = 32, MMA_ROW = MMA_STEP + MMA_ROW_GAP };

/* How the waves of a group share a tile of C, and how LDS is used. 128 x 128 by 4 waves, waves_n 2:
 *
 *     | wave 0 | wave 1 |  64 rows (wave_m)      each wave's part is tiles_m x tiles_n tiles of the matrix unit
 *     | wave 2 | wave 3 |
 *       64 columns (wave_n)
 *
 *     LDS   | A, step 0 | B, step 0 | A, step 1 | B, step 1 |
 *
 * and at the end strips of sums, 16 rows of a wave at a time. */
template <int tile_m_, int tile_n_, int threads_, int pipe_stages_>
struct mma_plan {
  static constexpr int tile_m = tile_m_, tile_n = tile_n_, threads = threads_;
#ifdef RDNA_WGMMA
  static constexpr int waves_n = 1, waves_m = threads / WAVE_SIZE / waves_n;
#else
  static constexpr int waves_n = threads > 128 ? 4 : 2, waves_m = threads / WAVE_SIZE / waves_n;
#endif
  static constexpr int wave_m = tile_m / waves_m, wave_n = tile_n / waves_n;
  static constexpr int tiles_m = wave_m / MMA_M, tiles_n = wave_n / MMA_N;
  static constexpr int operand_a = tile_m * MMA_ROW, step = (tile_m + tile_n) * MMA_ROW; /* values */
#ifdef RDNA_NVIDIA
  static constexpr int pipe_stages = pipe_stages_, pipe_operand_a = tile_m * PIPE_STEP * 2; /* bytes */
  static constexpr int pipe_stage = (tile_m + tile_n) * PIPE_STEP * 2, bytes = pipe_stages * pipe_stage;
  static_assert(bytes >= 2 * step * 2, "both ways of multiplying fit");
#else
  static constexpr int bytes = 2 * step * 2;
#endif
  /* floats; rows that are written together meet different banks, two floats a lane on NVIDIA's GPUs and one elsewhere
   */
#ifdef RDNA_NVIDIA
  static constexpr int stage_row = wave_n + 8;
#else
  static constexpr int stage_row = wave_n + 4;
#endif
  /* where this wave's strips of 16 rows begin in the tile, and how far apart */
#ifdef RDNA_WGMMA
  static constexpr int strip = 64;
  RDNA_DEVICE int first_row(void) { return (int)(wave_id() / 4 * tiles_m * 64 + wave_id() % 4 * 16); }
#else
  static constexpr int strip = MMA_M;
  RDNA_DEVICE int first_row(void) { return (int)(wave_id() / waves_n) * wave_m; }
#endif
  static_assert(bytes >= threads / WAVE_SIZE * MMA_M * stage_row * 4, "the stage fits");
};

/* Stores 8 rows of |chunks| neighbours along k, transposed: chunk i has the 8 rows' values of k = i. */
template <int chunks>
RDNA_DEVICE void mma_store_turned(uint16_t *to, const uint4 (&raw)[chunks]) {
#pragma unroll
  for (int row = 0; row < 8; ++row)
#pragma unroll
    for (int i = 0; i < chunks; i += 2) {
      uint32_t low = raw[i][row / 2], high = raw[i + 1][row / 2];
      store_as<uint32_t>(to + row * MMA_ROW + i,
                         row % 2 ? low >> 16 | (high & 0xffff0000u) : (low & 0xffffu) | high << 16);
    }
}

/* A matrix of 16-bit values in either layout. Along k a thread fetches 8 values of |chunks| rows; otherwise 8 rows at
 * |chunks| neighbouring values of k, which it transposes on their way into LDS. */
template <int tile, int threads>
struct mma_operand {
  static constexpr int chunks = tile * MMA_STEP / 8 / threads; /* of 8 values, a thread */
  const uint16_t *base; /* the same in all threads, as is the rest but for the offsets */
  int64_t ld;
  int first_row, rows, k;
  int whole_steps; /* those that need no look at edges */
  bool along_k;
  uint32_t offset[chunks]; /* bytes from the step's first value */
  uint4 raw[chunks];

  RDNA_MEMBER int row_of(int chunk) const {
    return (int)(along_k ? thread_id() / 4 + threads / 4 * chunk : thread_id() % (tile / 8) * 8);
  }
  RDNA_MEMBER int k_of(int chunk) const {
    return (int)(along_k ? thread_id() % 4 * 8 : thread_id() / (tile / 8) * chunks + chunk);
  }
  RDNA_MEMBER void init(const void *matrix, int64_t row_distance, bool is_along_k, int row, int row_count, int size_k) {
    base = (const uint16_t *)matrix;
    ld = row_distance, along_k = is_along_k, first_row = row, rows = row_count, k = size_k;
    bool vectors = all_16((uint64_t)base | (uint64_t)ld * 2) && ld >= 0 && ld < 1 << 23 && (along_k || rows % 8 == 0);
    whole_steps = vectors ? k / MMA_STEP : 0;
    base += along_k ? first_row * ld : first_row;
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      uint32_t in_tile = (uint32_t)row_of(i), last = (uint32_t)(rows - first_row - (along_k ? 1 : 8));
      in_tile = vectors ? min_u32(in_tile, last) : 0;
      offset[i] =
          2 * (along_k ? in_tile * (uint32_t)ld + (uint32_t)k_of(i) : (uint32_t)k_of(i) * (uint32_t)ld + in_tile);
    }
  }
  RDNA_MEMBER void fetch(int step) {
    if (step < whole_steps) {
      const char *from = (const char *)(base + step * (along_k ? MMA_STEP : MMA_STEP * ld));
#pragma unroll
      for (int i = 0; i < chunks; ++i) raw[i] = load_u32x4(from + offset[i]);
    } else {
      fetch_edge(step);
    }
  }
  RDNA_MEMBER void fetch_edge(int step) {
#pragma unroll 1 /* it is seldom run; unrolled it would want registers that the sums have */
    for (int chunk = 0; chunk < chunks; ++chunk) {
      int row = row_of(chunk), p = step * MMA_STEP + k_of(chunk), rows_left = rows - first_row - row;
      const uint16_t *from = base + (along_k ? row * ld + p : p * ld + row);
      int valid = along_k ? (rows_left > 0 ? k - p : 0) : (p < k ? rows_left : 0);
      uint4 v = {};
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if (j < valid) v[j / 2] |= (uint32_t)from[j] << (j % 2 * 16);
#pragma unroll
      for (int i = 0; i < chunks; ++i) raw[i] = i == chunk ? v : raw[i];
    }
  }
  RDNA_MEMBER void store(uint16_t *lds) const {
    if (along_k) {
#pragma unroll
      for (int i = 0; i < chunks; ++i) store_u32x4(lds + row_of(i) * MMA_ROW + k_of(i), raw[i]);
      return;
    }
    mma_store_turned<chunks>(lds + row_of(0) * MMA_ROW + k_of(0), raw);
  }
};

RDNA_DEVICE void mma_of(f16, mma_acc &c, const mma_a &a, const mma_b &b) { mma_f16(c, a, b); }
RDNA_DEVICE void mma_of(bf16, mma_acc &c, const mma_a &a, const mma_b &b) { mma_bf16(c, a, b); }
RDNA_DEVICE void mma_of(i8x2, mma_acc_i32 &c, const mma_a &a, const mma_b &b) { mma_i8(c, a, b); }

/* The bits of a sum, as a float. */
RDNA_DEVICE float mma_staged(float v) { return v; }
RDNA_DEVICE float mma_staged(int32_t v) { return bits_as<float>(v); }

/* Part number |part| of an operand, of mma_parts, as mma_of takes it. */
template <typename type>
RDNA_DEVICE mma_a mma_part_of_a(type, const mma_a &a, int part) {
  return a;
}
template <typename type>
RDNA_DEVICE mma_b mma_part_of_b(type, const mma_b &b, int part) {
  return b;
}

/* Multiplies MMA_K values of k from |p| on of what lies in LDS, or a part of each, for this wave's part of the tile. */
template <typename type, typename plan, typename acc>
RDNA_DEVICE void mma_multiply_at(const uint16_t *lds_a, const uint16_t *lds_b, int p, int part,
                                 acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  mma_b b[plan::tiles_n];
#pragma unroll
  for (int j = 0; j < plan::tiles_n; ++j)
    b[j] = mma_part_of_b(type(), mma_load_b(lds_b + j * MMA_N * MMA_ROW + p, MMA_ROW), part);
#pragma unroll
  for (int i = 0; i < plan::tiles_m; ++i) {
    mma_a a = mma_part_of_a(type(), mma_load_a(lds_a + i * MMA_M * MMA_ROW + p, MMA_ROW), part);
#pragma unroll
    for (int j = 0; j < plan::tiles_n; ++j) mma_of(type(), sum[i][j], a, b[j]);
  }
}

/* Multiplies what lies in LDS, one step's operands. */
template <typename type, typename plan, typename acc>
RDNA_DEVICE void mma_multiply(const uint16_t *lds_a, const uint16_t *lds_b, acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  if constexpr (mma_parts<type> > 1) {
#pragma unroll 1 /* or operands, as they are and wider, would be in registers at the same time */
    for (int step = 0; step < MMA_STEP / MMA_K * mma_parts<type>; ++step)
      mma_multiply_at<type, plan>(lds_a, lds_b, step / mma_parts<type> * MMA_K, step % mma_parts<type>, sum);
    return;
  }
#ifdef RDNA_MMA_BY_LANES_
#pragma unroll 1 /* as it is, the loop has hundreds of instructions */
#else
#pragma unroll
#endif
  for (int p = 0; p < MMA_STEP; p += MMA_K) mma_multiply_at<type, plan>(lds_a, lds_b, p, 0, sum);
}

/* Finishes and stores 8 neighbours of a row of C. */
template <typename type>
RDNA_DEVICE void mma_finish8(const struct gemm_args &args, typename type::stored *c, int column, const float *sum,
                             bool vectors) {
  float4 low = load_f32x4(sum), high = load_f32x4(sum + 4);
  gemm_finish4<type>(args, c, column, low, vectors);
  if (column + 4 < args.n) gemm_finish4<type>(args, c, column + 4, high, vectors);
}

/* Multiplies: the sums of a tile over all of k, for this wave's part of it. Every operand has fetch(step) and
 * store(lds). |lds| has plan::bytes. */
template <typename type, typename plan, typename operand_a, typename operand_b, typename acc>
RDNA_DEVICE void mma_product(operand_a &from_a, operand_b &from_b, int k, uint16_t *lds,
                             acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  uint32_t row = wave_id() / plan::waves_n * plan::wave_m, column = wave_id() % plan::waves_n * plan::wave_n;
  int steps = (k + MMA_STEP - 1) / MMA_STEP;
  if (steps > 0) from_a.fetch(0), from_b.fetch(0);
  for (int step = 0; step < steps; ++step) {
    uint16_t *tile_a = lds + (step & 1) * plan::step, *tile_b = tile_a + plan::operand_a;
    from_a.store(tile_a);
    from_b.store(tile_b);
    group_barrier();
    if (step + 1 < steps) from_a.fetch(step + 1), from_b.fetch(step + 1);
    mma_multiply<type, plan>(tile_a + row * MMA_ROW, tile_b + column * MMA_ROW, sum);
  }
}

/* Hands out this wave's sums 16 rows at a time through LDS, where neighbours of a row or column may meet in a lane:
 * finish(row, column, stage) is called by all lanes for each strip, its first place in the tile, and its floats, rows
 * of plan::stage_row. */
template <typename plan, typename acc, typename function>
RDNA_DEVICE void mma_finish(void *lds, const acc (&sum)[plan::tiles_m][plan::tiles_n], function finish) {
  group_barrier();
  int row = plan::first_row(), column = (int)(wave_id() % plan::waves_n) * plan::wave_n;
#ifdef RDNA_NVIDIA
  /* All strips fit, so that what follows them is there once. */
  static_assert(plan::bytes >= plan::threads / WAVE_SIZE * plan::wave_m * plan::stage_row * 4, "the wave's part fits");
  float *stage = (float *)lds + wave_id() * (plan::wave_m * plan::stage_row);
#pragma unroll
  for (int i = 0; i < plan::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < plan::tiles_n; ++j)
#pragma unroll
      for (int v = 0; v < MMA_VALUES; v += 2)
        store_as<float2>(&stage[(i * MMA_M + mma_row(v)) * plan::stage_row + j * MMA_N + mma_column(v)],
                         float2{mma_staged(sum[i][j][v]), mma_staged(sum[i][j][v + 1])});
  wave_barrier();
#pragma unroll 1
  for (int i = 0; i < plan::tiles_m; ++i) finish(row + i * plan::strip, column, stage + i * MMA_M * plan::stage_row);
#else
  float *stage = (float *)lds + wave_id() * (MMA_M * plan::stage_row);
#pragma unroll
  for (int i = 0; i < plan::tiles_m; ++i) {
    wave_barrier();
#pragma unroll
    for (int j = 0; j < plan::tiles_n; ++j)
#pragma unroll
      for (int v = 0; v < MMA_VALUES; ++v)
        stage[mma_row(v) * plan::stage_row + j * MMA_N + mma_column(v)] = mma_staged(sum[i][j][v]);
    wave_barrier();
    finish(row + i * plan::strip, column, stage);
  }
#endif
}

#ifdef RDNA_NVIDIA
/* Of a row that begins at an odd value two neighbours at a time all the same, from its second on: lane q has
 * row[2 q + 1] and row[2 q + 2], and the last one row[0] besides. */
template <typename plan>
RDNA_DEVICE void mma_store_pairs(const struct gemm_args &args, uint16_t *c, int row0, int column0,
                                 const uint16_t *stage, int pitch) {
  constexpr int pairs = plan::wave_n / 2;
  int n = args.n - column0 < plan::wave_n ? args.n - column0 : plan::wave_n;
#pragma unroll 4
  for (int at = (int)lane_id(); at < plan::wave_m * pairs; at += WAVE_SIZE) {
    int row = at / pairs, at_row = row0 + row / MMA_M * plan::strip + row % MMA_M;
    if (at_row >= args.m) continue;
    uint16_t *to = c + at_row * args.ldc + column0;
    const uint16_t *from = stage + row * pitch;
    int odd = (int)((uint64_t)to >> 1 & 1), i = at % pairs * 2 + odd;
    if (i + 1 < n) {
      store_as<uint32_t>(to + i, (uint32_t)from[i] | (uint32_t)from[i + 1] << 16);
    } else if (i < n) {
      to[i] = from[i];
    }
    if (odd && at % pairs == pairs - 1 && n > 0) to[0] = from[0];
  }
}

/* This wave's part of a C of 16 bits, if alpha and a bias of columns are all there is: the values pass through LDS as
 * they will be in memory. |vectors|: rows are whole chunks of 16 bytes. */
template <typename type_c, typename plan>
RDNA_DEVICE void mma_store_plain(const struct gemm_args &args, typename type_c::stored *c, bool vectors, int row0,
                                 int column0, void *lds, const mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  constexpr int pitch = plan::wave_n / 2 + 4, in_row = plan::wave_n / 8; /* words; chunks */
  group_barrier();
  row0 += plan::first_row(), column0 += (int)(wave_id() % plan::waves_n) * plan::wave_n;
  uint32_t *stage = (uint32_t *)lds + wave_id() * (plan::wave_m * pitch);
#pragma unroll
  for (int j = 0; j < plan::tiles_n; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int column = j * MMA_N + (int)mma_column(4 * half);
      float2 bias = {0, 0};
      if (args.bias && column0 + column < args.n)
        bias = type_c::decode2(load_as<uint32_t>((const typename type_c::stored *)args.bias + column0 + column));
#pragma unroll
      for (int i = 0; i < plan::tiles_m; ++i)
#pragma unroll
        for (int v = 4 * half; v < 4 * half + 4; v += 2) {
          float low = args.alpha * sum[i][j][v], high = args.alpha * sum[i][j][v + 1];
          if (args.bias) low += bias.x, high += bias.y;
          stage[(i * MMA_M + mma_row(v)) * pitch + column / 2] = type_c::encode2(low, high);
        }
    }
  wave_barrier();
  if (!vectors) return mma_store_pairs<plan>(args, (uint16_t *)c, row0, column0, (const uint16_t *)stage, 2 * pitch);
#pragma unroll 4
  for (int chunk = (int)lane_id(); chunk < plan::wave_m * in_row; chunk += WAVE_SIZE) {
    int row = chunk / in_row, at_row = row0 + row / MMA_M * plan::strip + row % MMA_M;
    int at_column = column0 + chunk % in_row * 8;
    if (at_row < args.m && at_column < args.n)
      store_u32x4(c + at_row * args.ldc + at_column, load_u32x4(stage + row * pitch + chunk % in_row * 4));
  }
}
#endif

/* The sums of a product of matrices in any layout. */
template <typename type, typename plan, typename acc>
RDNA_DEVICE void mma_dense(const struct gemm_args &args, const uint16_t *a, const uint16_t *b, int k, int row0,
                           int column0, uint16_t *lds, acc (&sum)[plan::tiles_m][plan::tiles_n]) {
#ifdef RDNA_WGMMA
  static_assert(plan::tiles_m == 1, "the rows of a wave are neighbours");
#endif
  mma_operand<plan::tile_m, plan::threads> from_a;
  mma_operand<plan::tile_n, plan::threads> from_b;
  from_a.init(a, args.lda, !(args.flags & GEMM_A_TRANSPOSED), row0, args.m, k);
  from_b.init(b, args.ldb, args.flags & GEMM_B_TRANSPOSED, column0, args.n, k);
  mma_product<type, plan>(from_a, from_b, k, lds, sum);
}

/* A strip of 16 rows of a wave's part of C. */
template <typename type_c, typename plan>
RDNA_DEVICE void mma_store_strip(const struct gemm_args &args, typename type_c::stored *c, int64_t batch, bool vectors,
                                 int row, int column, float *stage) {
#pragma unroll 1
  for (uint32_t octet = lane_id(); octet < MMA_M * plan::wave_n / 8; octet += WAVE_SIZE) {
    int in_row = (int)octet / (plan::wave_n / 8), in_column = (int)octet % (plan::wave_n / 8) * 8;
    int at_row = row + in_row, at_column = column + in_column;
    if (at_row >= args.m || at_column >= args.n) continue;
    float *sum = stage + in_row * plan::stage_row + in_column;
    typename type_c::stored *c_row = c + at_row * args.ldc;
    if (args.flags & GEMM_MORE) {
#pragma unroll 1
      for (int j = 0; j < 8 && at_column + j < args.n; ++j)
        sum[j] = gemm_finish1<type_c>(args, c_row + at_column + j, batch, at_row, at_column + j, sum[j]);
      gemm_store4<type_c>(c_row, at_column, args.n, load_f32x4(sum), vectors);
      gemm_store4<type_c>(c_row, at_column + 4, args.n, load_f32x4(sum + 4), vectors);
    } else {
      mma_finish8<type_c>(args, c_row, at_column, sum, vectors);
    }
  }
}
template <typename plan>
RDNA_DEVICE void mma_store_part(const struct gemm_args &args, float *part, bool vectors, int row, int column,
                                const float *stage) {
#pragma unroll 1
  for (uint32_t quad = lane_id(); quad < MMA_M * plan::wave_n / 4; quad += WAVE_SIZE) {
    int in_row = (int)quad / (plan::wave_n / 4), in_column = (int)quad % (plan::wave_n / 4) * 4;
    if (row + in_row >= args.m || column + in_column >= args.n) continue;
    gemm_store4<f32>(part + (int64_t)(row + in_row) * args.n, column + in_column, args.n,
                     load_f32x4(stage + in_row * plan::stage_row + in_column), vectors);
  }
}

#ifdef RDNA_NVIDIA
template <typename type, typename plan>
RDNA_DEVICE void pipe_any(const struct gemm_args &args, const uint16_t *a, const uint16_t *b, int k, int row0,
                          int column0, uint8_t *memory, mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  bool a_along_k = !(args.flags & GEMM_A_TRANSPOSED), b_along_k = args.flags & GEMM_B_TRANSPOSED;
  uint32_t at = group_address(memory);
  if (a_along_k && b_along_k)
    pipe_dense<type, plan, true, true>(args, a, b, k, row0, column0, at, sum);
  else if (a_along_k)
    pipe_dense<type, plan, true, false>(args, a, b, k, row0, column0, at, sum);
  else if (b_along_k)
    pipe_dense<type, plan, false, true>(args, a, b, k, row0, column0, at, sum);
  else
    pipe_dense<type, plan, false, false>(args, a, b, k, row0, column0, at, sum);
}
#endif

/* The tile of C that this group makes. |memory| has plan::bytes. With |aligned| rows of A and B lie at multiples of 16
 * bytes. */
template <typename type, typename type_c, typename plan, bool aligned>
RDNA_DEVICE void gemm_mma(const struct gemm_args &args, const uint16_t *a, const uint16_t *b, int k, uint8_t *memory) {
  int row0, column0;
  gemm_place<plan::tile_m, plan::tile_n>(args.m, args.n, row0, column0);
  mma_acc sum[plan::tiles_m][plan::tiles_n] = {};
#ifdef RDNA_NVIDIA
  if (aligned || all_16((uint64_t)a | (uint64_t)b | (uint64_t)args.lda * 2 | (uint64_t)args.ldb * 2))
    pipe_any<type, plan>(args, a, b, k, row0, column0, memory, sum);
  else if constexpr (!aligned)
    mma_dense<type, plan>(args, a, b, k, row0, column0, (uint16_t *)memory, sum);
#else
  mma_dense<type, plan>(args, a, b, k, row0, column0, (uint16_t *)memory, sum);
#endif
  const struct gemm_args &now = arguments_again(args);
  if (now.parts > 1) {
    float *part = now.sums + (int64_t)group_id_z() * now.m * now.n;
    bool vectors = all_16((uint64_t)part | (uint64_t)now.n * 4);
    mma_finish<plan>(memory, sum, [&](int row, int column, float *stage) __attribute__((device, always_inline)) {
      mma_store_part<plan>(now, part, vectors, row0 + row, column0 + column, stage);
    });
    return;
  }
  int64_t batch = group_id_z();
  typename type_c::stored *c = (typename type_c::stored *)now.c + batch * now.stride_c;
  bool vectors = all_16((uint64_t)c | (uint64_t)now.ldc * sizeof(typename type_c::stored));
#ifdef RDNA_NVIDIA
  if constexpr (sizeof(typename type_c::stored) == 2) {
    /* the bias is read two values at a time */
    bool pairs_of_bias = !now.bias || (((uint64_t)now.bias & 3) == 0 && now.n % 2 == 0);
    if (!(now.flags & GEMM_MORE) && now.beta == 0 && pairs_of_bias)
      return mma_store_plain<type_c, plan>(now, c, vectors && now.n % 8 == 0, row0, column0, memory, sum);
  }
#endif
  mma_finish<plan>(memory, sum, [&](int row, int column, float *stage) __attribute__((device, always_inline)) {
    mma_store_strip<type_c, plan>(now, c, batch, vectors, row0 + row, column0 + column, stage);
  });
}

#endif
