/* Device code of the products of 16-bit types on NVIDIA's matrix units, for operands whose rows lie at multiples of 16
 * bytes. For .hip files only.
 *
 * A group of |waves_m| x |waves_n| waves makes a tile of C, PIPE_STEP values of k at a step. Operands go from global
 * to shared memory by copies that run by themselves, |stages| - 1 steps ahead; from there to registers one quarter of
 * a step ahead of the instructions that use them. Shared memory holds an operand as it lies in memory: rows of
 * PIPE_STEP values along k, or PIPE_STEP rows of a tile's values. The 16-byte chunks of a row are permuted by
 * exclusive or with the row's number, so that the 8 rows which one load meets lie in different banks.
 *
 * On GPUs of compute capability 9.0 the products are asynchronous too: see the second pipe_product. An operand across k
 * then lies in blocks of 64 of a tile's values, as kernel/wgmma.h wants it.
 *
 * Work: 2 m n k operations. Read: each operand once for every tile across it, (m n k) (1/tile_m + 1/tile_n) values,
 * most of it from the L2 cache. */
#ifndef RDNA_MATH_GEMM_NVIDIA_GEMM_PIPE_H
#define RDNA_MATH_GEMM_NVIDIA_GEMM_PIPE_H

#include "kernel/wgmma.h"
#include "math/gemm/gemm_tile.h"

#ifdef RDNA_WGMMA
#define PIPE_MEMORY(name, bytes) WGMMA_MEMORY(name, bytes)
#else
#define PIPE_MEMORY(name, bytes) GROUP_MEMORY(name, bytes)
#endif

#ifdef RDNA_NVIDIA
enum { PIPE_STEP = GEMM_PIPE_STEP };

RDNA_DEVICE uint32_t bytes_of_8(int values) { /* of the next 8 16-bit values, those that are there */
  return values >= 8 ? 16 : values > 0 ? (uint32_t)values * 2 : 0;
}

/* Where chunk |chunk| of row |row| lies, of rows of |row_chunks| chunks as they are in memory, and from there how far
 * |rows| rows, a multiple of 8, reach. */
template <int row_chunks>
RDNA_DEVICE uint32_t pipe_place(int row, int chunk) {
#ifdef RDNA_WGMMA
  return (uint32_t)((chunk / 8 * PIPE_STEP + row) * 8 + (chunk % 8 ^ (row & 7))) * 16;
#else
  return (uint32_t)(row * row_chunks + (chunk ^ (row & 7))) * 16;
#endif
}
template <int row_chunks>
constexpr int pipe_rows_bytes(int rows) {
#ifdef RDNA_WGMMA
  return rows * 8 * 16;
#else
  return rows * row_chunks * 16;
#endif
}

/* A matrix's part of a tile, copied by |threads| threads. */
template <int tile, int threads, bool along_k>
struct pipe_operand {
  static constexpr int row_chunks = along_k ? PIPE_STEP / 8 : tile / 8; /* as stored */
  static constexpr int rows_a_pass = threads / row_chunks, passes = (along_k ? tile : PIPE_STEP) / rows_a_pass;
  static_assert(rows_a_pass % 8 == 0, "the permutation is the same in every pass");
  const char *at;
  int64_t pass_bytes, step_bytes;
  uint32_t to;       /* in a stage */
  uint32_t rows_in;  /* along k: a bit for every pass whose row is in the matrix */
  uint32_t in_chunk; /* otherwise: bytes of the chunk that are in the matrix */
  int k_left;        /* from this thread's place in the step */

  RDNA_MEMBER void init(const void *matrix, int64_t ld, int first_row, int rows, int k) {
    int chunk = (int)thread_id() % row_chunks, row = (int)thread_id() / row_chunks;
    to = pipe_place<row_chunks>(row, chunk);
    pass_bytes = rows_a_pass * ld * 2;
    if constexpr (along_k) {
      at = (const char *)matrix + ((first_row + row) * ld + chunk * 8) * 2;
      step_bytes = PIPE_STEP * 2;
      k_left = k - chunk * 8;
      rows_in = 0;
#pragma unroll
      for (int i = 0; i < passes; ++i) rows_in |= (first_row + row + i * rows_a_pass < rows ? 1u : 0u) << i;
    } else {
      at = (const char *)matrix + (row * ld + first_row + chunk * 8) * 2;
      step_bytes = PIPE_STEP * ld * 2;
      k_left = k - row;
      in_chunk = bytes_of_8(rows - first_row - chunk * 8);
    }
  }
  /* Starts the copies of the next step to the stage at |stage|. */
  RDNA_MEMBER void copy(uint32_t stage) {
    uint32_t in_k = bytes_of_8(k_left);
    const char *from = at;
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      uint32_t bytes = along_k ? (rows_in >> i & 1 ? in_k : 0) : (i * rows_a_pass < k_left ? in_chunk : 0);
      async_copy16(stage + to + pipe_rows_bytes<row_chunks>(i * rows_a_pass), from, bytes);
      from += pass_bytes;
    }
    at += step_bytes;
    k_left -= PIPE_STEP;
  }
};

/* Starts the copies of the first steps, as many as there are stages but one, and waits for the first's. Each operand
 * has copy(stage address), to be called once a step. */
template <typename plan, typename operand_a, typename operand_b>
RDNA_DEVICE void pipe_start(operand_a &from_a, operand_b &from_b, int steps, uint32_t memory) {
#pragma unroll
  for (int i = 0; i < plan::pipe_stages - 1; ++i) {
    if (i < steps) {
      from_a.copy(memory + i * plan::pipe_stage);
      from_b.copy(memory + i * plan::pipe_stage + plan::pipe_operand_a);
    }
    async_commit();
  }
  async_wait<plan::pipe_stages - 2>();
}

#ifndef RDNA_WGMMA
/* Loads of a wave's part, |tiles| times 16 rows of the operand, from a stage. The order of quarters is the one in which
 * an instruction takes the rows of A or the columns of B. */
template <int tile, int tiles, bool along_k, bool is_b>
struct pipe_loads {
  uint32_t lane; /* of the first quarters, in the operand of a stage */
  RDNA_MEMBER void init(uint32_t first_row) {
    uint32_t in_8 = lane_id() & 7, low = lane_id() >> 3 & 1, high = lane_id() >> 4;
    uint32_t row = is_b ? high : low, k = is_b ? low : high; /* of the quarter that this lane has a row of */
    if constexpr (along_k)
      lane = (first_row + row * 8 + in_8) * (PIPE_STEP * 2) + ((k ^ in_8) * 16);
    else
      lane = (k * 8 + in_8) * (tile * 2) + (((first_row / 8 + row) ^ in_8) * 16);
  }
  /* Values part * 16 to part * 16 + 15 of k. */
  RDNA_MEMBER void load(uint32_t operand, int part, uint4 (&v)[tiles]) const {
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      if constexpr (along_k)
        v[i] = mma_load_quarters(operand + (lane ^ (uint32_t)(part * 32)) + i * MMA_M * PIPE_STEP * 2);
      else
        v[i] = mma_load_quarters_turned(operand + (lane ^ (uint32_t)(i * 32)) + part * 16 * tile * 2);
    }
  }
};

RDNA_DEVICE void mma_quarters_of(f16, mma_acc &c, const uint4 &a, const uint4 &b) { mma_quarters_f16(c, a, b); }
RDNA_DEVICE void mma_quarters_of(bf16, mma_acc &c, const uint4 &a, const uint4 &b) { mma_quarters_bf16(c, a, b); }
RDNA_DEVICE void mma_quarters_of(i8x2, mma_acc_i32 &c, const uint4 &a, const uint4 &b) { mma_quarters_i8(c, a, b); }

/* Part number |part| of a quarter, of mma_parts, as mma_quarters_of takes it. */
template <typename type>
RDNA_DEVICE uint4 pipe_part_of_a(type, const uint4 &a, int part) {
  return a;
}
template <typename type>
RDNA_DEVICE uint4 pipe_part_of_b(type, const uint4 &b, int part) {
  return b;
}

/* The sums of a tile over all of k, for this wave's part of it. */
template <typename type, typename plan, bool a_along_k, bool b_along_k, typename operand_a, typename operand_b,
          typename acc>
RDNA_DEVICE void pipe_product(operand_a &from_a, operand_b &from_b, int k, uint32_t memory,
                              acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  constexpr int stages = plan::pipe_stages, parts = PIPE_STEP / 16;
  int steps = (k + PIPE_STEP - 1) / PIPE_STEP;
  pipe_loads<plan::tile_m, plan::tiles_m, a_along_k, false> loads_a;
  pipe_loads<plan::tile_n, plan::tiles_n, b_along_k, true> loads_b;
  loads_a.init(wave_id() / plan::waves_n * plan::wave_m);
  loads_b.init(wave_id() % plan::waves_n * plan::wave_n);
  pipe_start<plan>(from_a, from_b, steps, memory);
  group_barrier();
  uint4 a[2][plan::tiles_m], b[2][plan::tiles_n];
  uint32_t read = memory, write = memory + (stages - 1) * plan::pipe_stage,
           end = memory + plan::pipe_stages * plan::pipe_stage;
  if (steps > 0) {
    loads_a.load(read, 0, a[0]);
    loads_b.load(read + plan::pipe_operand_a, 0, b[0]);
  }
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      if (part == parts - 1) {
        async_wait<stages - 2>();
        group_barrier();
        read = read + plan::pipe_stage == end ? memory : read + plan::pipe_stage;
      }
      /* After the last step these read a stage of zeros or of old values, which nothing uses. */
      loads_a.load(read, (part + 1) % parts, a[(part + 1) % 2]);
      loads_b.load(read + plan::pipe_operand_a, (part + 1) % parts, b[(part + 1) % 2]);
      /* Into the stage of the step before: all have read it since the last barrier. Half now and half later, as the
       * addresses take registers. */
      if (part == 0 && step + stages - 1 < steps) from_a.copy(write);
      if (part == 1) {
        if (step + stages - 1 < steps) from_b.copy(write + plan::pipe_operand_a);
        async_commit();
        write = write + plan::pipe_stage == end ? memory : write + plan::pipe_stage;
      }
#pragma unroll
      for (int piece = 0; piece < mma_parts<type>; ++piece) {
        uint4 columns[plan::tiles_n];
#pragma unroll
        for (int j = 0; j < plan::tiles_n; ++j) columns[j] = pipe_part_of_b(type(), b[part % 2][j], piece);
#pragma unroll
        for (int i = 0; i < plan::tiles_m; ++i) {
          uint4 row = pipe_part_of_a(type(), a[part % 2][i], piece);
#pragma unroll
          for (int j = 0; j < plan::tiles_n; ++j) mma_quarters_of(type(), sum[i][j], row, columns[j]);
        }
      }
    }
  }
  async_wait<0>();
}

#else
RDNA_DEVICE uint64_t pipe_matrix(bool along_k, uint32_t at) {
  return along_k ? wgmma_along_k(at) : wgmma_across_k(at, PIPE_STEP * 128);
}
template <bool a_across, bool b_across, int tiles>
RDNA_DEVICE void wgmma_of(f16, mma_acc (&c)[tiles], uint64_t a, uint64_t b) {
  wgmma_f16<a_across, b_across, true>(c, a, b);
}
template <bool a_across, bool b_across, int tiles>
RDNA_DEVICE void wgmma_of(bf16, mma_acc (&c)[tiles], uint64_t a, uint64_t b) {
  wgmma_bf16<a_across, b_across, true>(c, a, b);
}

/* The same with products that read their operands from shared memory by themselves: those of a step run while the group
 * waits for those of the step before, starts copies in their place, and waits for the step after to arrive. */
template <typename type, typename plan, bool a_along_k, bool b_along_k, typename operand_a, typename operand_b>
RDNA_DEVICE void pipe_product(operand_a &from_a, operand_b &from_b, int k, uint32_t memory,
                              mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  constexpr int stages = plan::pipe_stages, parts = PIPE_STEP / 16;
  int steps = (k + PIPE_STEP - 1) / PIPE_STEP;
  pipe_start<plan>(from_a, from_b, steps, memory);
  wgmma_publish();
  group_barrier();
  /* the same in all lanes, which the compiler is to know */
  uint32_t rows = wave_shuffle_u32(wave_id() / 4 * (64 * plan::tiles_m * 128), 0);
  uint32_t read = memory, write = memory + (stages - 1) * plan::pipe_stage,
           end = memory + plan::pipe_stages * plan::pipe_stage;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wgmma_begin();
#pragma unroll
    for (int part = 0; part < parts; ++part)
#pragma unroll
      for (int i = 0; i < plan::tiles_m; ++i)
        wgmma_of<!a_along_k, !b_along_k>(
            type(), sum[i], pipe_matrix(a_along_k, read + rows + i * 64 * 128 + part * (a_along_k ? 32 : 16 * 128)),
            pipe_matrix(b_along_k, read + plan::pipe_operand_a + part * (b_along_k ? 32 : 16 * 128)));
    wgmma_commit();
    wgmma_wait<1>();
    group_barrier();
    /* into the stage of the step before, which all have multiplied */
    if (step + stages - 1 < steps) {
      from_a.copy(write);
      from_b.copy(write + plan::pipe_operand_a);
    }
    async_commit();
    async_wait<stages - 2>();
    wgmma_publish();
    group_barrier(); /* the next step has arrived */
    read = read + plan::pipe_stage == end ? memory : read + plan::pipe_stage;
    write = write + plan::pipe_stage == end ? memory : write + plan::pipe_stage;
  }
  wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < plan::tiles_m; ++i) wgmma_hold(sum[i]);
  async_wait<0>();
}
#endif

/* The sums of a product of matrices. */
template <typename type, typename plan, bool a_along_k, bool b_along_k, typename acc>
RDNA_DEVICE void pipe_dense(const struct gemm_args &args, const uint16_t *a, const uint16_t *b, int k, int row0,
                            int column0, uint32_t memory, acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  pipe_operand<plan::tile_m, plan::threads, a_along_k> from_a;
  pipe_operand<plan::tile_n, plan::threads, b_along_k> from_b;
  from_a.init(a, args.lda, row0, args.m, k);
  from_b.init(b, args.ldb, column0, args.n, k);
  pipe_product<type, plan, a_along_k, b_along_k>(from_a, from_b, k, memory, sum);
}
#endif

#endif
