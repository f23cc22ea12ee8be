/* Device code: products of few rows of f16 with weights in blocks, on matrix units. Reading the weights takes most of
 * the time, so each is read once and unpacked in the registers that the matrix unit takes it from.
 *
 * Waves share out k, step by step, and each has sums of a whole tile of C, which the caller adds up at the end, wave by
 * wave:
 *
 *     k            step 0 | step 1 | step 2 | … | step 8 | …
 *     wave         0      | 1      | 2      |   | 0      |             of 8 waves
 *
 * Nothing is shared before that, so no wave waits for another. The next step's blocks are in flight while this one's
 * are multiplied.
 *
 * In a step the MMA_PARTS lanes that have a row of the weights take a chunk of it each, the 32 or 64 values of
 * gemv_chunk, and each product of the matrix unit takes the next 8 (on gfx11 16) values of each lane's chunk. Which k
 * that is differs from lane to lane, and does not matter as long as A's lanes take the same. With 4 parts:
 *
 *     row of B     | chunk 0         | chunk 1         | chunk 2         | chunk 3         |
 *     part         0                 1                 2                 3
 *     product 0      values 0-7        values 0-7        …                                    product 1: values 8-15 …
 *
 * For each weight about 3 instructions: the code's bits become the low bits of the f16 number 1024 + code, two at a
 * time, from which 1024 and the format's zero are subtracted, exactly; a fused multiply-add in f16 follows. For .hip
 * files only. */
#ifndef RDNA_MATH_QUANT_MMA_H
#define RDNA_MATH_QUANT_MMA_H

#include "kernel/mma.h"
#include "math/quant/quant_gemv.h"
#include "math/quant/quant_mma_kernels.h"

enum {
  WAVES = QUANT_MMA_THREADS / WAVE_SIZE,
  ROWS_A = MMA_CHUNKS_A / MMA_ROW_CHUNKS, /* of a tile of A that a lane has chunks of */
  ROWS_B = MMA_CHUNKS_B / MMA_ROW_CHUNKS  /* the same of the weights */
};

/* A lane's weights of a step: a chunk of each of its rows. */
template <typename format, int tiles_n>
struct quant_mma_weights {
  typedef gemv_chunk<format> chunk;
  const char *row[tiles_n][ROWS_B];
  chunk next[tiles_n][ROWS_B], now[tiles_n][ROWS_B];

  /* |b|: |n| rows of |k| values, those of columns |column0| and on; past the end the last one again. */
  RDNA_MEMBER void init(const void *b, int64_t k, int n, int column0) {
    int64_t row_bytes = k / format::block_values * format::block_bytes;
#pragma unroll
    for (int j = 0; j < tiles_n; ++j)
#pragma unroll
      for (int i = 0; i < ROWS_B; ++i) {
        int column = column0 + j * MMA_N + (int)mma_b_column((uint32_t)(i * MMA_ROW_CHUNKS));
        row[j][i] = (const char *)b + (column < n ? column : n - 1) * row_bytes;
      }
  }
  RDNA_MEMBER void fetch(int index) {
#pragma unroll
    for (int j = 0; j < tiles_n; ++j)
#pragma unroll
      for (int i = 0; i < ROWS_B; ++i) next[j][i] = chunk::template load<true>(row[j][i], (uint32_t)index);
  }
  RDNA_MEMBER void settle(int first) {
#pragma unroll
    for (int j = 0; j < tiles_n; ++j)
#pragma unroll
      for (int i = 0; i < ROWS_B; ++i) now[j][i] = next[j][i], now[j][i].settle(first);
  }
};

/* Scale and least of a run as two equal halves. */
struct quant_halves {
  half2 scale, least;
};
RDNA_DEVICE quant_halves quant_halves_of(quant_scale s) {
  _Float16 scale = round_to_half(s.scale), least = round_to_half(-s.least);
  return {half2{scale, scale}, half2{least, least}};
}

/* Weights 2 * pair and the next of four codes: code * scale - least, rounded once. */
template <typename format>
RDNA_DEVICE uint32_t quant_half_pair(uint32_t codes, int pair, const quant_halves &s) {
  constexpr float zero = 1024.0f + (format::is_signed ? 128.0f : (float)quant_zero(format::dtype));
  uint32_t bits = permute_bytes(codes, 0x64646464u, pair ? 0x04030402u : 0x04010400u);
  half2 code = bits_as<half2>(bits) - half2{(_Float16)zero, (_Float16)zero};
  if constexpr (quant_has_least(format::dtype))
    return bits_as<uint32_t>(__builtin_elementwise_fma(code, s.scale, s.least));
  return bits_as<uint32_t>(code * s.scale);
}

/* The same of MXFP4's codes, e2m1: moved to f16's sign, exponent and first bit of the mantissa, each is 2^-15 of its
 * entry in the table, also where it is a subnormal number. |moved|: four codes, each in a byte as the high one of an
 * f16. */
RDNA_DEVICE uint32_t quant_move_e2m1(uint32_t codes) { return (codes << 1 & 0x0e0e0e0eu) | (codes << 4 & 0x80808080u); }
RDNA_DEVICE uint32_t quant_e2m1_pair(uint32_t moved, int pair, half2 scale) {
  half2 code = bits_as<half2>(permute_bytes(moved, 0, pair ? 0x03040204u : 0x01040004u));
  return bits_as<uint32_t>(code * half2{(_Float16)32768.0f, (_Float16)32768.0f} * scale);
}

/* Values 8 * |half| and on of run |run|. */
template <typename format>
RDNA_DEVICE uint4 quant_half_eight(const gemv_chunk<format> &chunk, int run, int half, const quant_halves &s) {
  uint4 out;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if constexpr (format::dtype == RDNA_MXFP4) {
      uint32_t moved = quant_move_e2m1(chunk.codes(run, 2 * half + i));
      out[2 * i] = quant_e2m1_pair(moved, 0, s.scale);
      out[2 * i + 1] = quant_e2m1_pair(moved, 1, s.scale);
      continue;
    }
    uint32_t codes = format::look_up(chunk.codes(run, 2 * half + i));
    if constexpr (format::is_signed) codes ^= 0x80808080u;
    out[2 * i] = quant_half_pair<format>(codes, 0, s);
    out[2 * i + 1] = quant_half_pair<format>(codes, 1, s);
  }
  return out;
}

/* The bytes from A's beginning to this lane's rows of it. */
template <int tiles_m>
struct quant_mma_rows {
  uint32_t offset[tiles_m][ROWS_A];

  /* byte_of(row): where row |row| of the tile begins */
  template <typename function>
  RDNA_MEMBER void init(function byte_of) {
#pragma unroll
    for (int t = 0; t < tiles_m; ++t)
#pragma unroll
      for (int i = 0; i < ROWS_A; ++i)
        offset[t][i] = byte_of((uint32_t)t * MMA_M + mma_a_row((uint32_t)(i * MMA_ROW_CHUNKS)));
  }
};

/* Multiplies a step's weights: product |m| takes of each lane's chunk the values from 8 * MMA_ROW_CHUNKS * m on. |at|:
 * where the lane's chunk begins in k; |there|: it is not past the end. */
template <typename format, int tiles_m, int tiles_n>
RDNA_DEVICE void quant_mma_step(const quant_mma_weights<format, tiles_n> &weights, const quant_mma_rows<tiles_m> &rows,
                                const void *a, int at, int in_half, bool there, mma_acc (&sum)[tiles_m][tiles_n]) {
  typedef gemv_chunk<format> chunk;
  quant_halves scale[tiles_n][ROWS_B];
#pragma unroll
  for (int m = 0; m < chunk::values / 8 / MMA_ROW_CHUNKS; ++m) {
    int run = m * MMA_ROW_CHUNKS / 2;
    if (m * MMA_ROW_CHUNKS % 2 == 0) {
#pragma unroll
      for (int j = 0; j < tiles_n; ++j)
#pragma unroll
        for (int i = 0; i < ROWS_B; ++i)
          scale[j][i] = quant_halves_of(weights.now[j][i].scale_of(in_half + run * chunk::step));
    }
    mma_b b[tiles_n];
#pragma unroll
    for (int j = 0; j < tiles_n; ++j)
#pragma unroll
      for (int i = 0; i < MMA_CHUNKS_B; ++i) {
        int half = (m * MMA_ROW_CHUNKS + i % MMA_ROW_CHUNKS) % 2, r = i / MMA_ROW_CHUNKS;
        b[j].chunk[i] = quant_half_eight<format>(weights.now[j][r], run, half, scale[j][r]);
      }
#pragma unroll
    for (int t = 0; t < tiles_m; ++t) {
      mma_a v;
#pragma unroll
      for (int i = 0; i < MMA_CHUNKS_A; ++i) {
        int half = (m * MMA_ROW_CHUNKS + i % MMA_ROW_CHUNKS) % 2;
        uint32_t k = (uint32_t)(at + run * chunk::step + half * 8);
        v.chunk[i] = there ? load_u32x4((const char *)a + rows.offset[t][i / MMA_ROW_CHUNKS] + 2 * k) : uint4{};
      }
#pragma unroll
      for (int j = 0; j < tiles_n; ++j) mma_f16(sum[t][j], v, b[j]);
    }
  }
}

/* Multiplies what this wave, number |wave| of |waves|, has of k. */
template <typename format, int tiles_m, int tiles_n, int waves>
RDNA_DEVICE void quant_mma_product(quant_mma_weights<format, tiles_n> &weights, const quant_mma_rows<tiles_m> &rows,
                                   const void *a, int k, int wave, mma_acc (&sum)[tiles_m][tiles_n]) {
  typedef gemv_chunk<format> chunk;
  int chunks = k / chunk::values, part = (int)mma_part(), index = wave * MMA_PARTS; /* of part 0's chunk */
  /* The sums of large tiles leave no registers for the next step's blocks: where chunks are of 64 values, and where
   * there is no matrix unit. */
#ifdef RDNA_MMA_BY_LANES_
  constexpr bool ahead = tiles_m < 4;
#else
  constexpr bool ahead = tiles_m < 4 || chunk::values < 64;
#endif
  /* a lane past the end has the last chunk again, times zeros */
  if (ahead && index < chunks) weights.fetch(index + part < chunks ? index + part : chunks - 1);
#pragma unroll 1
  for (; index < chunks; index += waves * MMA_PARTS) {
    int mine = index + part < chunks ? index + part : chunks - 1, following = index + waves * MMA_PARTS;
    int first = chunk::first_value((uint32_t)mine);
    if (!ahead) weights.fetch(mine);
    weights.settle(first);
    if (ahead && following < chunks) weights.fetch(following + part < chunks ? following + part : chunks - 1);
    quant_mma_step<format, tiles_m, tiles_n>(weights, rows, a, mine / chunk::in_block * format::block_values + first,
                                             chunk::span == 128 ? first % 32 : first % 128, index + part < chunks, sum);
  }
}

/* Stores this wave's sums of rows 16 * |strip| and on of its tile. */
template <int tiles_m, int tiles_n>
RDNA_DEVICE void quant_mma_stage(const mma_acc (&sum)[tiles_m][tiles_n], int strip, float *stage, int stage_row) {
#pragma unroll /* registers are chosen by constants */
  for (int t = 0; t < tiles_m; ++t) {
    if (t != strip) continue;
#pragma unroll
    for (int j = 0; j < tiles_n; ++j)
#pragma unroll
      for (int v = 0; v < MMA_VALUES; ++v)
        stage[(int)mma_row((uint32_t)v) * stage_row + j * MMA_N + (int)mma_column((uint32_t)v)] = sum[t][j][v];
  }
}

#endif
