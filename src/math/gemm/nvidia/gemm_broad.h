/* Device code of f32's product for NVIDIA's GPUs: a thread makes 16 x 8 values of a tile of 128 x 128, and operands go
 * from global to shared memory value by value, by copies that run by themselves, some steps ahead. On an H200 5 %
 * faster than gemm_tile.h's tile of that size where k is large, and slower below about 800. For .hip files only.
 *
 * Work: 2 m n k operations. Read: each operand once for every tile across it, m n k / 64 values, most of it from the L2
 * cache; from shared memory 24 values for 128 multiplications. */
#ifndef RDNA_MATH_GEMM_NVIDIA_GEMM_BROAD_H
#define RDNA_MATH_GEMM_NVIDIA_GEMM_BROAD_H

#include "kernel/mma.h"
#include "math/gemm/gemm_tile.h"

#ifdef RDNA_NVIDIA
enum { BROAD_TILE = GEMM_LARGE_TILE, BROAD_THREADS = GEMM_BROAD_THREADS, BROAD_STEP = 8, BROAD_STAGES = 4 };
typedef tile_plan<BROAD_TILE, BROAD_THREADS> broad_plan;

RDNA_DEVICE void async_copy4(uint32_t to, const float *from, uint32_t bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

RDNA_DEVICE void async_copy4(uint32_t to, const float *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

/* In shared memory values of a k lie side by side, and those of the next 4 banks on, so that neither 4 rows of 8 values
 * along k nor 32 rows of one meet in a bank. */
struct broad_stage {
  float a[BROAD_STEP][BROAD_TILE + 4], b[BROAD_STEP][BROAD_TILE + 4];
};

struct broad_operand {
  enum { PASSES = BROAD_TILE * BROAD_STEP / BROAD_THREADS, ROWS = BROAD_THREADS / BROAD_STEP };
  const float *at;
  int64_t pass, step;
  uint32_t to;      /* in a stage's operand */
  uint32_t rows_in; /* a bit for every pass whose row is in the matrix */
  int k_left;       /* from this thread's first place in the step */
  bool along_k;

  RDNA_MEMBER void init(const float *matrix, int64_t ld, bool is_along_k, int first_row, int rows, int k) {
    along_k = is_along_k;
    int row = (int)(along_k ? thread_id() / BROAD_STEP : thread_id()), p = along_k ? (int)thread_id() % BROAD_STEP : 0;
    int row_step = along_k ? ROWS : 0;
    at = matrix + (along_k ? (first_row + row) * ld + p : p * ld + first_row + row);
    pass = along_k ? ROWS * ld : ld, step = along_k ? BROAD_STEP : BROAD_STEP * ld;
    to = (uint32_t)(p * (BROAD_TILE + 4) + row) * 4;
    k_left = k - p;
    rows_in = 0;
#pragma unroll
    for (int i = 0; i < PASSES; ++i) rows_in |= (first_row + row + i * row_step < rows ? 1u : 0u) << i;
  }
  /* Starts the copies of the next step to |stage|, all of which are in the matrix if |whole|. */
  RDNA_MEMBER void copy(uint32_t stage, bool whole) {
    if (whole)
      copy_step<true>(stage);
    else
      copy_step<false>(stage);
    at += step;
    k_left -= BROAD_STEP;
  }
  template <bool whole>
  RDNA_MEMBER void copy_step(uint32_t stage) {
    const float *from = at;
    uint32_t place = stage + to, place_step = along_k ? ROWS * 4 : (BROAD_TILE + 4) * 4;
#pragma unroll
    for (int i = 0; i < PASSES; ++i) {
      bool in = (rows_in >> i & 1) && (along_k ? 0 : i) < k_left;
      if constexpr (whole)
        async_copy4(place, from);
      else
        async_copy4(place, from, in ? 4 : 0);
      place += place_step, from += pass;
    }
  }
  RDNA_MEMBER bool all_rows(void) const { return rows_in == (1u << PASSES) - 1; }
};

RDNA_DEVICE void broad_load(const broad_stage &stage, int p, float4 va[broad_plan::quads_m],
                            float4 vb[broad_plan::quads_n]) {
#pragma unroll
  for (int q = 0; q < broad_plan::quads_m; ++q) va[q] = load_f32x4(&stage.a[p][broad_plan::row(q * 4)]);
#pragma unroll
  for (int q = 0; q < broad_plan::quads_n; ++q) vb[q] = load_f32x4(&stage.b[p][broad_plan::column(q * 4)]);
}

/* The sums of a tile over all of k. */
RDNA_DEVICE void broad_product(broad_operand &from_a, broad_operand &from_b, int k,
                               float (&sum)[broad_plan::quads_m * 4][broad_plan::quads_n * 4]) {
  RDNA_SHARED __attribute__((aligned(16))) broad_stage stages[BROAD_STAGES];
  uint32_t memory = shared_address(stages);
  int steps = (k + BROAD_STEP - 1) / BROAD_STEP;
  bool all_rows = from_a.all_rows() && from_b.all_rows();
#pragma unroll
  for (int i = 0; i < BROAD_STAGES - 1; ++i) {
    if (i < steps) {
      from_a.copy(memory + i * (uint32_t)sizeof(broad_stage), false);
      from_b.copy(memory + i * (uint32_t)sizeof(broad_stage) + (uint32_t)sizeof(stages[0].a), false);
    }
    async_commit();
  }
  async_wait<BROAD_STAGES - 2>();
  group_barrier();
  float4 va[2][broad_plan::quads_m], vb[2][broad_plan::quads_n];
  broad_load(stages[0], 0, va[0], vb[0]);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const broad_stage &stage = stages[step % BROAD_STAGES], &next = stages[(step + 1) % BROAD_STAGES];
#pragma unroll
    for (int p = 0; p < BROAD_STEP; ++p) {
      if (p == 0) {
        int later = step + BROAD_STAGES - 1;
        uint32_t to = memory + (uint32_t)(later % BROAD_STAGES) * (uint32_t)sizeof(broad_stage);
        if (later < steps) {
          bool whole = all_rows && (later + 1) * BROAD_STEP <= k;
          from_a.copy(to, whole);
          from_b.copy(to + (uint32_t)sizeof(stages[0].a), whole);
        }
        async_commit();
      }
      if (p == BROAD_STEP - 1) {
        async_wait<BROAD_STAGES - 2>();
        group_barrier();
        broad_load(next, 0, va[(p + 1) & 1], vb[(p + 1) & 1]);
      } else {
        broad_load(stage, p + 1, va[(p + 1) & 1], vb[(p + 1) & 1]);
      }
#pragma unroll
      for (int i = 0; i < broad_plan::quads_m * 4; ++i)
#pragma unroll
        for (int j = 0; j < broad_plan::quads_n * 4; ++j)
          sum[i][j] = fma_f32(va[p & 1][i / 4][i % 4], vb[p & 1][j / 4][j % 4], sum[i][j]);
    }
  }
}
#endif

#endif
