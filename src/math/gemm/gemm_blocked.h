/* Host code that the dense and the quantized matrix products share: a product over packed blocks, and a product of
 * few rows that streams the weights once. For *_host.c files only; everything here is static.
 *
 * A task is a tile of C. It packs its part of A and B for 256 values of k at a time, as f32 and zero-padded to whole
 * micro-tiles, so the innermost loop knows neither types nor edges. Tiles are small enough for the second-level
 * cache and for a thread's stack: a twin cannot report a failed allocation. They are tall, since what costs most beside
 * the products is B, which is decoded and transposed again for each tile below another: 0.6 to 1 of what it takes to
 * multiply it by 32 rows. A is only copied. */
#ifndef RDNA_MATH_GEMM_BLOCKED_H
#define RDNA_MATH_GEMM_BLOCKED_H

#include "kernel/float8.h"
#include "math/common/host/simd.h"
#include "math/gemm/gemm_activation.h"
#include "math/gemm/gemv_kernels.h"
#include "rdna/tensor.h"

/* Rows and columns of a micro-tile fill the registers: 24 of 32, or 12 of 16, hold sums. */
#if SIMD_WIDTH == 4
#define GEMM_MICRO_M 4
#else
#define GEMM_MICRO_M (SIMD_WIDTH == 16 ? 12 : 6)
#endif
#define GEMM_MICRO_N (2 * SIMD_WIDTH)
#define GEMM_BLOCK_M 516
#define GEMM_BLOCK_N 192
#define GEMM_BLOCK_K 256
/* Rows of packed A lie off a power of two, or they would compete for the same lines of the first-level cache. */
#define GEMM_PACKED_ROW (GEMM_BLOCK_K + 16)

typedef struct gemm_job gemm_job;
struct gemm_job {
  const struct gemm_args *args;
  rdna_dtype type_a, type_b, type_c;
  /* As fetch_b, of a type_a that gemm_load does not know; NULL otherwise. A is not transposed then. */
  void (*fetch_a)(const gemm_job *job, const char *a, int64_t row, int64_t p, int count, float *out);
  /* Values p .. p + count of row |row| of a transposed B as f32. */
  void (*fetch_b)(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out);
  /* Sums of up to GEMV_MAX_M rows of A against rows [first, last) of a transposed B; may be NULL. */
  void (*dot_rows)(const gemm_job *job, const char *a, const char *b, char *c, int64_t first, int64_t last);
  const float *scales_a, *scales_b; /* of each row of A and of B, of a product that has them; NULL otherwise */
  int64_t each_a, each_b;           /* from one of these to the next: 1, or 0 where there is one for all */
  const void *prepared;             /* what the product's own code made of A for dot_rows, or NULL */
  bool times;                       /* C is multiplied by the result, which is f32 */
  int64_t batch_bytes_b;            /* from one B of the batch to the next */
  int64_t tiles_m, tiles_n, tile_m, tile_n;
};

typedef struct gemm_blocks {
  float a[GEMM_BLOCK_M][GEMM_PACKED_ROW];
  float b[GEMM_BLOCK_N / GEMM_MICRO_N][GEMM_BLOCK_K][GEMM_MICRO_N];
  float c[GEMM_BLOCK_M][GEMM_BLOCK_N];
} gemm_blocks;

SIMD_INLINE int gemm_value_size(rdna_dtype type) { return type == RDNA_F32 ? 4 : float8_is(type) ? 1 : 2; }

SIMD_INLINE float gemm_load(rdna_dtype type, const char *base, int64_t index) {
  if (type == RDNA_F32) return ((const float *)(const void *)base)[index];
  uint16_t v = ((const uint16_t *)(const void *)base)[index];
  return type == RDNA_F16 ? f16_to_f32(v) : bf16_to_f32(v);
}

SIMD_INLINE void gemm_store(rdna_dtype type, char *base, int64_t index, float v) {
  if (type == RDNA_F32) {
    ((float *)(void *)base)[index] = v;
  } else {
    ((uint16_t *)(void *)base)[index] = type == RDNA_F16 ? f32_to_f16(v) : f32_to_bf16(v);
  }
}

SIMD_INLINE simd_float gemm_load_vector(rdna_dtype type, const char *base, int64_t index) {
  if (type == RDNA_F32) return simd_load((const float *)(const void *)base + index);
  const uint16_t *p = (const uint16_t *)(const void *)base + index;
  return type == RDNA_F16 ? simd_load_f16(p) : simd_load_bf16(p);
}

/* The first |count| lanes; zero in the others. */
SIMD_INLINE simd_float gemm_load_part(rdna_dtype type, const char *base, int64_t index, int64_t count) {
  if (count >= SIMD_WIDTH) return gemm_load_vector(type, base, index);
  float lanes[SIMD_WIDTH] = {0};
  for (int64_t i = 0; i < count; i++) lanes[i] = gemm_load(type, base, index + i);
  return simd_load(lanes);
}

/* |count| neighbours as f32, then zeros to a multiple of SIMD_WIDTH. */
static inline void gemm_fetch(rdna_dtype type, const char *base, int64_t index, int count, float *out) {
  for (int i = 0; i < count; i += SIMD_WIDTH) simd_store(out + i, gemm_load_part(type, base, index + i, count - i));
}

/* Pieces of rows are too short for the processor to foresee the next. */
enum { GEMM_ROWS_AHEAD = 6 };
static inline void gemm_prefetch_row(rdna_dtype type, const char *base, int64_t index, int count) {
  const char *from = base + index * gemm_value_size(type);
  for (int at = 0; at < count * gemm_value_size(type); at += 64) __builtin_prefetch(from + at);
}

static inline void gemm_fetch_dense_b(const gemm_job *job, const char *b, int64_t row, int64_t p, int count,
                                      float *out) {
  gemm_fetch(job->type_b, b, row * job->args->ldb + p, count, out);
}

/* Rows [row, row + rows) and k values [p, p + count) of A; rows to the next multiple of GEMM_MICRO_M are zero. */
static inline void gemm_pack_a(const gemm_job *job, const char *a, int64_t row, int rows, int64_t p, int count,
                               gemm_blocks *blocks) {
  int64_t lda = job->args->lda;
  if (job->args->flags & GEMM_A_TRANSPOSED) {
    for (int i = 0; i < rows; i += SIMD_WIDTH) {
      for (int q = 0; q < count; q += SIMD_WIDTH) {
        simd_float square[SIMD_WIDTH];
        for (int s = 0; s < SIMD_WIDTH; s++)
          square[s] = gemm_load_part(job->type_a, a, (p + q + s) * lda + row + i, q + s < count ? rows - i : 0);
        simd_transpose(square);
        for (int s = 0; s < SIMD_WIDTH && i + s < rows; s++) simd_store(&blocks->a[i + s][q], square[s]);
      }
    }
  } else {
    for (int i = 0; i < rows; i++) {
      if (job->fetch_a) {
        job->fetch_a(job, a, row + i, p, count, blocks->a[i]);
        continue;
      }
      gemm_prefetch_row(job->type_a, a, (row + (i + GEMM_ROWS_AHEAD < rows ? i + GEMM_ROWS_AHEAD : i)) * lda + p,
                        count);
      gemm_fetch(job->type_a, a, (row + i) * lda + p, count, blocks->a[i]);
    }
  }
  for (int i = rows; i % GEMM_MICRO_M != 0; i++) memset(blocks->a[i], 0, sizeof blocks->a[i]);
}

/* SIMD_WIDTH columns of a panel, from |to| on, of rows of |count| values. */
static inline void gemm_turn_columns(float rows[SIMD_WIDTH][GEMM_PACKED_ROW], int count, float *to) {
  for (int q = 0; q < count; q += SIMD_WIDTH) {
    simd_float square[SIMD_WIDTH];
    for (int s = 0; s < SIMD_WIDTH; s++) square[s] = simd_load(&rows[s][q]);
    simd_transpose(square);
    for (int s = 0; s < SIMD_WIDTH; s++) simd_store(to + (q + s) * GEMM_MICRO_N, square[s]);
  }
}

/* Zeros in the second half of the last panel, where no column of |columns| is. */
static inline void gemm_clear_columns(int columns, int count, gemm_blocks *blocks) {
  if (columns % GEMM_MICRO_N == 0 || columns % GEMM_MICRO_N > SIMD_WIDTH) return;
  float(*panel)[GEMM_MICRO_N] = blocks->b[columns / GEMM_MICRO_N];
  for (int q = 0; q < count; q++) memset(&panel[q][SIMD_WIDTH], 0, sizeof(float[SIMD_WIDTH]));
}

/* Columns [column, column + columns) of B, in panels of GEMM_MICRO_N; the last panel is filled with zeros. */
static inline void gemm_pack_b(const gemm_job *job, const char *b, int64_t column, int columns, int64_t p, int count,
                               gemm_blocks *blocks) {
  for (int first = 0; first < columns; first += SIMD_WIDTH) {
    float(*panel)[GEMM_MICRO_N] = blocks->b[first / GEMM_MICRO_N];
    int offset = first % GEMM_MICRO_N;
    if (!(job->args->flags & GEMM_B_TRANSPOSED)) {
      for (int q = 0; q < count; q++)
        simd_store(&panel[q][offset],
                   gemm_load_part(job->type_b, b, (p + q) * job->args->ldb + column + first, columns - first));
      continue;
    }
    float rows[SIMD_WIDTH][GEMM_PACKED_ROW];
    for (int s = 0; s < SIMD_WIDTH; s++) {
      if (first + s < columns)
        job->fetch_b(job, b, column + first + s, p, count, rows[s]);
      else
        memset(rows[s], 0, sizeof rows[s]);
    }
    gemm_turn_columns(rows, count, &panel[0][offset]);
  }
  gemm_clear_columns(columns, count, blocks);
}

/* c(GEMM_MICRO_M, GEMM_MICRO_N) += a(GEMM_MICRO_M, count) b(count, GEMM_MICRO_N); count is at least 1 */
static __attribute__((noinline)) void gemm_micro(int count, const float *a, const float *b, float *c) {
  simd_float sum[GEMM_MICRO_M][2];
#pragma GCC unroll 12
  for (int i = 0; i < GEMM_MICRO_M; i++) {
    sum[i][0] = simd_load(c + i * GEMM_BLOCK_N);
    sum[i][1] = simd_load(c + i * GEMM_BLOCK_N + SIMD_WIDTH);
  }
  int p = 0;
  do { /* a loop that may run no times would keep the sums in memory as well */
    simd_float b0 = simd_load(b + p * GEMM_MICRO_N), b1 = simd_load(b + p * GEMM_MICRO_N + SIMD_WIDTH);
#pragma GCC unroll 12
    for (int i = 0; i < GEMM_MICRO_M; i++) {
      simd_float v = simd_set(a[i * GEMM_PACKED_ROW + p]);
      sum[i][0] = simd_fma(v, b0, sum[i][0]);
      sum[i][1] = simd_fma(v, b1, sum[i][1]);
    }
  } while (++p < count);
#pragma GCC unroll 12
  for (int i = 0; i < GEMM_MICRO_M; i++) {
    simd_store(c + i * GEMM_BLOCK_N, sum[i][0]);
    simd_store(c + i * GEMM_BLOCK_N + SIMD_WIDTH, sum[i][1]);
  }
}

SIMD_INLINE int64_t gemm_batch_bytes(const gemm_job *job, int64_t stride, int64_t batch) {
  return batch * stride * gemm_value_size(job->type_c);
}

/* What GEMM_MORE stands for: a bias of rows, the activation, the residual. */
SIMD_INLINE float gemm_more(const gemm_job *job, int64_t batch, int64_t row, int64_t column, float v) {
  const struct gemm_args *args = job->args;
  if (args->bias && args->flags & GEMM_BIAS_OF_ROWS) v += gemm_load(job->type_c, args->bias, row);
  v = gemm_activate(args->activation, v);
  if (args->residual) {
    const char *residual = (const char *)args->residual + gemm_batch_bytes(job, args->stride_residual, batch);
    v += gemm_load(job->type_c, residual, row * args->ld_residual + column);
  }
  return v;
}

/* Sums of neighbours of a row of C times the scales of their row and columns. */
SIMD_INLINE simd_float gemm_scaled_part(const gemm_job *job, simd_float sum, int64_t row, int64_t column, int count) {
  if (!job->scales_a) return sum;
  float lanes[SIMD_WIDTH] = {0}, scale = job->scales_a[row * job->each_a];
  for (int i = 0; i < count && i < SIMD_WIDTH; i++) lanes[i] = scale * job->scales_b[(column + i) * job->each_b];
  return simd_load(lanes) * sum;
}

/* One row of a tile to C. */
static inline void gemm_finish_row(const gemm_job *job, const float *sum, int64_t batch, int64_t row, int64_t column,
                                   int count, char *c_row) {
  const struct gemm_args *args = job->args;
  const char *bias = args->flags & GEMM_BIAS_OF_ROWS ? NULL : args->bias;
  bool more = args->flags & GEMM_MORE;
  simd_float alpha = simd_set(args->alpha), beta = simd_set(args->beta);
  for (int j = 0; j < count; j += SIMD_WIDTH) {
    int left = count - j;
    simd_float v = alpha * gemm_scaled_part(job, simd_load(sum + j), row, column + j, left);
    if (args->beta != 0) v = simd_fma(beta, gemm_load_part(job->type_c, c_row, column + j, left), v);
    if (bias) v += gemm_load_part(job->type_c, bias, column + j, left);
    if (left < SIMD_WIDTH || job->type_c == RDNA_BF16 || more) {
      for (int i = 0; i < left && i < SIMD_WIDTH; i++) {
        float value = more ? gemm_more(job, batch, row, column + j + i, v[i]) : v[i];
        gemm_store(job->type_c, c_row, column + j + i, value);
      }
    } else if (job->type_c == RDNA_F32) {
      simd_store((float *)(void *)c_row + column + j, v);
    } else {
      simd_store_f16((uint16_t *)(void *)c_row + column + j, v);
    }
  }
}

/* Operands of matrix |batch|. */
SIMD_INLINE const char *gemm_matrix_a(const gemm_job *job, int64_t batch) {
  return (const char *)job->args->a + batch * job->args->stride_a * gemm_value_size(job->type_a);
}
SIMD_INLINE const char *gemm_matrix_b(const gemm_job *job, int64_t batch) {
  return (const char *)job->args->b + batch * job->batch_bytes_b;
}
SIMD_INLINE char *gemm_matrix_c(const gemm_job *job, int64_t batch) {
  return (char *)job->args->c + batch * job->args->stride_c * gemm_value_size(job->type_c);
}

/* An even cut of |size| into tiles of at most |most|, whole micro-tiles each. */
static int64_t gemm_even_tile(int64_t size, int64_t most, int64_t micro) {
  int64_t tiles = (size + most - 1) / most, each = (size + tiles - 1) / tiles;
  return (each + micro - 1) / micro * micro;
}

/* Cuts C so that each thread has several tiles, of |products| matrices: first narrower ones, which copy A more often,
 * then lower ones, which decode B more often. */
static inline void gemm_cut(gemm_job *job, int64_t products) {
  enum { TILES = 8, LEAST_M = 132, LEAST_N = 64 };
  const struct gemm_args *args = job->args;
  const int64_t wanted = rdna__thread_count() > 1 ? (int64_t)TILES * rdna__thread_count() : 1;
  for (int64_t most_m = GEMM_BLOCK_M, most_n = GEMM_BLOCK_N;;) {
    job->tile_m = gemm_even_tile(args->m, most_m, GEMM_MICRO_M);
    job->tile_n = gemm_even_tile(args->n, most_n, GEMM_MICRO_N);
    job->tiles_m = (args->m + job->tile_m - 1) / job->tile_m;
    job->tiles_n = (args->n + job->tile_n - 1) / job->tile_n;
    if (products * job->tiles_m * job->tiles_n >= wanted) return;
    if (job->tile_n > LEAST_N)
      most_n = job->tile_n / 2;
    else if (job->tile_m > LEAST_M)
      most_m = job->tile_m / 2;
    else
      return;
  }
}

static inline void gemm_one_tile(const gemm_job *job, int64_t tile, gemm_blocks *blocks) {
  const struct gemm_args *args = job->args;
  int64_t z = tile / (job->tiles_m * job->tiles_n), in_batch = tile % (job->tiles_m * job->tiles_n);
  int64_t parts = args->parts > 1 ? args->parts : 1, batch = z / parts;
  int64_t first = parts > 1 ? z % parts * args->part_k : 0, end = args->k;
  if (parts > 1 && first + args->part_k < end) end = first + args->part_k;
  int64_t row = in_batch % job->tiles_m * job->tile_m, column = in_batch / job->tiles_m * job->tile_n;
  int rows = (int)(args->m - row < job->tile_m ? args->m - row : job->tile_m);
  int columns = (int)(args->n - column < job->tile_n ? args->n - column : job->tile_n);
  memset(blocks->c, 0, sizeof blocks->c[0] * (size_t)gemm_even_tile(rows, rows, GEMM_MICRO_M));
  for (int64_t p = first; p < end; p += GEMM_BLOCK_K) {
    int count = (int)(end - p < GEMM_BLOCK_K ? end - p : GEMM_BLOCK_K);
    gemm_pack_a(job, gemm_matrix_a(job, batch), row, rows, p, count, blocks);
    gemm_pack_b(job, gemm_matrix_b(job, batch), column, columns, p, count, blocks);
    for (int j = 0; j < columns; j += GEMM_MICRO_N)
      for (int i = 0; i < rows; i += GEMM_MICRO_M)
        gemm_micro(count, blocks->a[i], blocks->b[j / GEMM_MICRO_N][0], &blocks->c[i][j]);
  }
  if (parts > 1) {
    float *part = args->sums + z * args->m * args->n;
    for (int i = 0; i < rows; i++)
      memcpy(part + (row + i) * args->n + column, blocks->c[i], (size_t)columns * sizeof *part);
    return;
  }
  char *c = gemm_matrix_c(job, batch);
  for (int i = 0; i < rows; i++)
    gemm_finish_row(job, blocks->c[i], batch, row + i, column, columns,
                    c + (row + i) * args->ldc * gemm_value_size(job->type_c));
}

static inline void gemm_tiles(void *context, int64_t begin, int64_t end) {
  gemm_blocks blocks __attribute__((aligned(64)));
  for (int64_t tile = begin; tile < end; tile++) gemm_one_tile(context, tile, &blocks);
}

static inline void gemm_some_rows(void *context, int64_t begin, int64_t end) {
  const gemm_job *job = context;
  int64_t n = job->args->n;
  while (begin < end) {
    int64_t batch = begin / n, last = (batch + 1) * n < end ? n : end - batch * n;
    job->dot_rows(job, gemm_matrix_a(job, batch), gemm_matrix_b(job, batch), gemm_matrix_c(job, batch),
                  begin - batch * n, last);
    begin = batch * n + last;
  }
}

static inline void gemm_run(gemm_job *job) {
  const struct gemm_args *args = job->args;
  if (args->m <= 0 || args->n <= 0 || args->batch <= 0) return;
  bool rows_of_b = (args->flags & (GEMM_A_TRANSPOSED | GEMM_B_TRANSPOSED)) == GEMM_B_TRANSPOSED;
  int64_t parts = args->parts > 1 ? args->parts : 1;
  if (job->dot_rows && rows_of_b && args->m <= GEMV_MAX_M && parts == 1) {
    rdna__parallel_for((int64_t)args->batch * args->n, 16, gemm_some_rows, job);
    return;
  }
  gemm_cut(job, args->batch * parts);
  rdna__parallel_for(args->batch * parts * job->tiles_m * job->tiles_n, 1, gemm_tiles, job);
}

/* Row r of a group of |rows| rows of B, and column c of |columns| rows of A: those past the end repeat the last. */
SIMD_INLINE int64_t gemm_clamp(int64_t index, int64_t count) { return index < count ? index : count - 1; }

/* |c| is matrix |batch|'s. */
static inline void gemm_finish_one(const gemm_job *job, char *c, int64_t batch, int64_t row, int64_t column,
                                   float sum) {
  const struct gemm_args *args = job->args;
  float v = args->alpha * sum;
  if (args->beta != 0) v = scalar_fma(args->beta, gemm_load(job->type_c, c, row * args->ldc + column), v);
  if (args->bias && !(args->flags & GEMM_BIAS_OF_ROWS)) v += gemm_load(job->type_c, args->bias, column);
  if (args->flags & GEMM_MORE) v = gemm_more(job, batch, row, column, v);
  if (job->times) v *= gemm_load(job->type_c, c, row * args->ldc + column);
  gemm_store(job->type_c, c, row * args->ldc + column, v);
}
static inline void gemm_finish_dot(const gemm_job *job, char *c, int64_t row, int64_t column, float sum) {
  int64_t batch_bytes = gemm_batch_bytes(job, job->args->stride_c, 1);
  int64_t batch = batch_bytes ? (c - (char *)job->args->c) / batch_bytes : 0;
  gemm_finish_one(job, c, batch, row, column, sum);
}

/* x times the weights of a norm, in |out|; the result is what the sums of them are multiplied by. */
static inline float gemv_weigh(const struct gemv_args *args, float *out) {
  const float *x = args->product.a, *norm = args->steps.norm;
  float squares[16] = {0}, all = 0;
  for (int64_t i = 0; i < args->product.k; i++) {
    squares[i % 16] = scalar_fma(x[i], x[i], squares[i % 16]);
    out[i] = x[i] * norm[i];
  }
  for (int i = 0; i < 16; i++) all += squares[i];
  return 1.0f / __builtin_sqrtf(all / (float)args->product.k + args->steps.epsilon);
}

/* A product of one row with what stands around it: |run| multiplies, |row_bytes| are those of a row of B. The gate is
 * one product and what it multiplies another. */
static inline void gemv_run(gemm_job *job, const struct gemv_args *all, int64_t row_bytes, void (*run)(gemm_job *job)) {
  if (!all->steps.norm && !all->steps.gated) {
    run(job);
    return;
  }
  float x[GEMV_NORM_MOST_K] __attribute__((aligned(64)));
  struct gemm_args args = all->product;
  gemm_job with = *job;
  with.args = &args;
  if (all->steps.norm) args.alpha *= gemv_weigh(all, x), args.a = x;
  if (all->steps.gated) {
    args.flags |= GEMM_MORE;
    run(&with);
    args.flags &= ~GEMM_MORE;
    args.b = (const char *)args.b + args.n * row_bytes;
    with.times = true;
  }
  run(&with);
}

#endif
