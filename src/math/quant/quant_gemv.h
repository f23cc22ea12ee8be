/* Device code: products of quantized weights with few rows of activations, as decoding a token needs: the weights are
 * read once, and their bytes are what the time goes to.
 *
 * A set of 32 lanes makes |rows| rows of B at once, with |columns| rows of A. A lane's step is a chunk of a row: 16
 * bytes of low bits, or 32, and what else their 32 or 64 values need, which fall into runs of 16 that share a scale.
 * The next step's bytes are under way while this one's are multiplied. A lies in LDS, a tile of k at a time, in the
 * order in which lanes take it: piece p of 4 values of every lane's chunk in one row, so that a load of 16 bytes by 32
 * lanes meets no bank twice.
 *
 * For each value: the bytes of its block / values (0.33 to 1.06), 2 M FLOPs, and with M = 1 about 3.5 instructions:
 * one or two to make a float of a code, one to multiply, and a part of those that load and shift. Sums are in f32, of
 * (code - zero) * x over a run first, which the scale then multiplies: the activations are not
 * quantized. For .hip files only. */
#ifndef RDNA_MATH_QUANT_GEMV_H
#define RDNA_MATH_QUANT_GEMV_H

#include "math/quant/quant_blocks.h"
#include "math/quant/quant_kernels.h"

/* A code as a float, less the code of 0: NVIDIA puts its byte under the exponent of 2^23, and has no fast conversion;
 * AMD has one for unsigned bytes. */
template <typename weights>
RDNA_DEVICE float fast_code(uint32_t word, int i) {
#ifdef RDNA_NVIDIA
  float shifted = bits_as<float>(__nvvm_prmt(word, 0x4b000000, 0x7650u | (uint32_t)i));
  return shifted - (0x1p23f + (weights::is_signed ? 128.0f : (float)weights::zero));
#else
  return weights::is_signed ? signed_byte_of(word, i) : byte_of(word, i) - (float)weights::zero;
#endif
}
/* Codes as fast_code wants them. */
template <typename weights>
RDNA_DEVICE uint32_t fast_word(uint32_t codes) {
  uint32_t word = weights::look_up(codes);
#ifdef RDNA_NVIDIA
  if constexpr (weights::is_signed) word ^= 0x80808080u;
#endif
  return word;
}

/* Which values share bytes: |runs| runs of 16, |step| apart, |parts| times in |span| values. */
template <typename format>
struct gemv_chunk {
  static constexpr rdna_dtype F = format::dtype;
  static constexpr bool of_128 = F == RDNA_Q2_K || F == RDNA_Q3_K || F == RDNA_Q6_K;
  static constexpr bool of_64 = F == RDNA_Q4_K || F == RDNA_Q5_K;
  static constexpr int span = of_128 ? 128 : of_64 ? 64 : 32, runs = of_128 ? 4 : 2, values = runs * 16;
  static constexpr int parts = span / values, step = span / runs, lows = F == RDNA_Q8_0 || F == RDNA_Q6_K ? 2 : 1;

  uint4 low[lows], high;
  uint32_t fifth_bits;
  quant_head head;

  RDNA_DEVICE int first_value(int chunk) { /* of its block */
    constexpr int in_block = format::block_values / values;
    return chunk % in_block / parts * span + chunk % parts * 16;
  }
  RDNA_DEVICE gemv_chunk load(const char *row, int chunk) {
    gemv_chunk c;
    const char *block = row + (int64_t)(chunk / (format::block_values / values)) * format::block_bytes;
    int v = first_value(chunk);
#pragma unroll
    for (int i = 0; i < lows; ++i) c.low[i] = quad_at<format::alignment>(block + quant_low_at(F, v + i * step));
    if constexpr (quant_has_high(F)) c.high = quad_at<format::alignment>(block + quant_high_at(F, v));
    if constexpr (quant_has_fifth_bits(F)) c.fifth_bits = quant_load_32(F, block + quant_fifth_bits_at(F));
    c.head = quant_head_of(F, block, v);
    return c;
  }
  /* After it what the runs differ in is known to the compiler. */
  GEMM_MEMBER void settle(int first) {
    head = quant_unfold(F, head, first);
    if constexpr (F == RDNA_Q3_K || F == RDNA_Q5_K) high >>= quant_high_shift(F, first);
  }
  /* Word |word| of the codes of run |run|. */
  GEMM_MEMBER uint32_t codes(int run, int word) const {
    int v = run * step;
    uint32_t q = QUANT_LOW_CODES(F, low[run % lows][word], v, 0x01010101u);
    if constexpr (quant_has_high(F)) q |= QUANT_HIGH_CODES(F, high[word], v, 0x01010101u);
    if constexpr (quant_has_fifth_bits(F)) q |= quant_spread_bits(fifth_bits >> (run * 16 + word * 4));
    return q;
  }
};

/* What quant_gemv asks of weights; here, of rows of blocks. */
template <typename format>
struct block_weights {
  typedef gemv_chunk<format> chunk;
  typedef struct gemm_args args;
  typedef const char *row;
  static constexpr bool has_least = quant_has_least(format::dtype), is_signed = format::is_signed;
  static constexpr int zero = quant_zero(format::dtype);
  static constexpr int rows(bool one_row_of_a) { return quant_gemv_rows(format::dtype, one_row_of_a); }
  RDNA_DEVICE const struct gemm_args &product(const args &a) { return a; }
  RDNA_DEVICE row row_of(const args &a, int j) {
    return (const char *)a.b + j * (a.ldb / format::block_values) * format::block_bytes;
  }
  RDNA_DEVICE chunk load(row from, int index) { return chunk::load(from, index); }
  RDNA_DEVICE quant_scale scale_of(const chunk &c, int v) { return quant_scale_of(format::dtype, c.head, v); }
  RDNA_DEVICE uint32_t look_up(uint32_t codes) { return format::look_up(codes); }
};

template <typename weights, int columns>
struct gemv_plan {
  typedef typename weights::chunk chunk;
  /* what LDS holds of each column: 2048 values, or 1024 where that would be more than 48 KiB */
  static constexpr int tile_k = columns > 4 ? 1024 : 2048;
  static constexpr int lanes = tile_k / chunk::values < 32 ? tile_k / chunk::values : 32; /* that have a chunk */
  static constexpr int steps = tile_k / chunk::values / lanes, pieces = steps * chunk::runs * 4;
  static constexpr int row = lanes + 1; /* quads of a piece, and one so that stores spread over the banks too */
  static constexpr int rows = weights::rows(columns == 1);
  static constexpr bool ahead = columns <= 4;

  /* Where the quad at value |v| of a tile lies. */
  RDNA_DEVICE int slot(int v) {
    int in_span = v % chunk::span, run = in_span / chunk::step, part = in_span % chunk::step / 16;
    int at = v / chunk::span * chunk::parts + part;
    return ((at / lanes * chunk::runs + run) * 4 + v / 4 % 4) * row + at % lanes;
  }
};

template <typename weights, int columns>
RDNA_DEVICE void fill_tile(
    const struct gemm_args &args, int k0,
    float4 (&tile)[columns][gemv_plan<weights, columns>::pieces * gemv_plan<weights, columns>::row]) {
  typedef gemv_plan<weights, columns> plan;
  constexpr int turns = plan::tile_k / 4 / GEMV_THREADS;
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    const float *x = (const float *)args.a + (c < args.m ? c : args.m - 1) * args.lda + k0;
    float4 quad[turns];
#pragma unroll
    for (int i = 0; i < turns; ++i) {
      int v = (i * GEMV_THREADS + (int)thread_id()) * 4;
      quad[i] = v < args.k - k0 ? load_f32x4(x + v) : float4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < turns; ++i) tile[c][plan::slot((i * GEMV_THREADS + (int)thread_id()) * 4)] = quad[i];
  }
}

/* Adds the products of a run of weights' values, once made for all columns. */
template <typename weights, int columns>
RDNA_DEVICE void multiply_values(const typename weights::chunk (&now)[gemv_plan<weights, columns>::rows], int run,
                                 const quant_scale (&scale)[gemv_plan<weights, columns>::rows], const float4 *x,
                                 float (&sum)[gemv_plan<weights, columns>::rows][columns]) {
  typedef gemv_plan<weights, columns> plan;
  constexpr int rows = plan::rows, column = plan::pieces * plan::row;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    /* or the compiler would load all of A that a step needs at once, and spill */
    __asm__ volatile("" ::: "memory");
    float w[rows][4];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      uint32_t q = fast_word<weights>(now[r].codes(run, word));
#pragma unroll
      for (int i = 0; i < 4; ++i) w[r][i] = fma_f32(scale[r].scale, fast_code<weights>(q, i), -scale[r].least);
    }
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      float4 v = x[c * column + word * plan::row];
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[r][c] = fma_f32(w[r][i], v[i], sum[r][c]);
    }
  }
}

/* The same for one column: the codes' products first, then once the scale, and the minimum times the sum of A. That
 * would make NaN of an infinite A and a code of 0, which stands for the minimum. */
template <typename weights>
RDNA_DEVICE void multiply_codes(const typename weights::chunk (&now)[gemv_plan<weights, 1>::rows], int run,
                                const quant_scale (&scale)[gemv_plan<weights, 1>::rows], const float4 *x,
                                float (&sum)[gemv_plan<weights, 1>::rows][1]) {
  typedef gemv_plan<weights, 1> plan;
  constexpr bool has_least = weights::has_least;
  float part[plan::rows] = {}, x_sum = 0;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    float4 v = x[word * plan::row];
    if constexpr (has_least) x_sum += (v.x + v.y) + (v.z + v.w);
#pragma unroll
    for (int r = 0; r < plan::rows; ++r) {
      uint32_t q = fast_word<weights>(now[r].codes(run, word));
#pragma unroll
      for (int i = 0; i < 4; ++i) part[r] = fma_f32(fast_code<weights>(q, i), v[i], part[r]);
    }
  }
  if constexpr (has_least) {
    if (!(abs_f32(x_sum) < infinity_f32())) return multiply_values<weights, 1>(now, run, scale, x, sum);
  }
#pragma unroll
  for (int r = 0; r < plan::rows; ++r) {
    sum[r][0] = fma_f32(scale[r].scale, part[r], sum[r][0]);
    if constexpr (has_least) sum[r][0] = fma_f32(-scale[r].least, x_sum, sum[r][0]);
  }
}

template <typename weights, int columns>
RDNA_DEVICE void quant_gemv(const typename weights::args &all) {
  const struct gemm_args &args = weights::product(all);
  typedef gemv_plan<weights, columns> plan;
  typedef typename weights::chunk chunk;
  constexpr int rows = plan::rows;
  RDNA_SHARED __attribute__((aligned(16))) float4 tile[columns][plan::pieces * plan::row];
  int lane = (int)thread_id() % 32, set = (int)(group_id_x() * (GEMV_THREADS / 32) + thread_id() / 32);
  typename weights::row row[rows];
  float sum[rows][columns] = {};
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    int j = set * rows + r;
    row[r] = weights::row_of(all, j < args.n ? j : args.n - 1);
  }
  int chunks = args.k / chunk::values;
  chunk next[rows];
  if constexpr (plan::ahead) {
    if (lane < plan::lanes && lane < chunks) {
#pragma unroll
      for (int r = 0; r < rows; ++r) next[r] = weights::load(row[r], lane);
    }
  }

  for (int k0 = 0; k0 < args.k; k0 += plan::tile_k) {
    group_barrier();
    fill_tile<weights, columns>(args, k0, tile);
    group_barrier();
#pragma unroll 1
    for (int s = 0; s < plan::steps; ++s) {
      int at = k0 / chunk::values + s * plan::lanes + lane;
      if (at >= chunks || lane >= plan::lanes) continue;
      chunk now[rows];
      if constexpr (plan::ahead) {
#pragma unroll
        for (int r = 0; r < rows; ++r) now[r] = next[r];
        if (at + plan::lanes < chunks) {
#pragma unroll
          for (int r = 0; r < rows; ++r) next[r] = weights::load(row[r], at + plan::lanes);
        }
      } else {
#pragma unroll
        for (int r = 0; r < rows; ++r) now[r] = weights::load(row[r], at);
      }
      int first = chunk::first_value(at), part_at = chunk::span == 128 ? first % 32 : first % 128;
#pragma unroll
      for (int r = 0; r < rows; ++r) now[r].settle(first);
#pragma unroll
      for (int run = 0; run < chunk::runs; ++run) {
        quant_scale scale[rows];
#pragma unroll
        for (int r = 0; r < rows; ++r) scale[r] = weights::scale_of(now[r], part_at + run * chunk::step);
        const float4 *x = &tile[0][(s * chunk::runs + run) * 4 * plan::row + lane];
        if constexpr (columns == 1) {
          multiply_codes<weights>(now, run, scale, x, sum);
        } else {
          multiply_values<weights, columns>(now, run, scale, x, sum);
        }
      }
    }
  }

  /* a lane for each result */
  float mine = 0;
#pragma unroll
  for (int i = 0; i < rows * columns; ++i) {
    float v = sum[i / columns][i % columns];
#pragma unroll
    for (uint32_t mask = 1; mask < 32; mask *= 2) v += wave_shuffle_xor_f32(v, mask);
    mine = lane == i ? v : mine;
  }
  int c = lane % columns, j = set * rows + lane / columns;
  if (lane >= rows * columns || c >= args.m || j >= args.n) return;
  float *out = (float *)args.c + c * args.ldc + j;
  *out = gemm_finish1<type_f32>(args, out, 0, c, j, mine);
}

#endif
