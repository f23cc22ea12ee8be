/* Implicit products for convolution on matrix units, in one 16-bit type: a code object for each. */
#ifndef RDNA_MATH_CONV_MMA_H
#define RDNA_MATH_CONV_MMA_H

#include "math/conv/nvidia/conv_pipe.h"

/* A source as an operand of mma_product: a thread fetches 8 values along k of |chunks| rows. With |only_runs| it has no
 * registers for sources without runs. */
template <typename source, int tile, int threads, bool only_runs>
struct mma_source {
  static constexpr int chunks = tile * MMA_STEP / 8 / threads;
  source from;
  int first, first_p;
  typename source::row kept[chunks];
  uint4 raw[chunks];
  RDNA_DEVICE int row_of(int chunk) { return (int)thread_id() / 4 + threads / 4 * chunk; }
  RDNA_DEVICE int k_of(void) { return (int)thread_id() % 4 * 8; }
  RDNA_MEMBER mma_source(const source &s, int first_row, int p) : from(s), first(first_row), first_p(p) {
#pragma unroll
    for (int i = 0; source::keep_rows && i < chunks; ++i) kept[i] = s.make_row(s.args, first_row + row_of(i));
  }
  RDNA_MEMBER void fetch(int step) {
    int p = first_p + step * MMA_STEP + k_of(), row0 = first;
#ifdef RDNA_MMA_BY_LANES_
    asm volatile("" : "+v"(row0)); /* or the compiler keeps the rows after all, in memory */
#endif
    if (only_runs || from.runs) {
      const struct conv_args &args = only_runs ? from.args : arguments_again(from.args);
#pragma unroll
      for (int i = 0; i < chunks; ++i)
        raw[i] = from.load_run(args, source::keep_rows ? kept[i] : from.make_row(args, row0 + row_of(i)), p);
      return;
    }
#pragma unroll 1 /* unrolled it would want registers that the sums have */
    for (int chunk = 0; chunk < chunks; ++chunk) {
      uint4 v = from.load_each(from.make_row(arguments_again(from.args), row0 + row_of(chunk)), p);
#pragma unroll
      for (int i = 0; i < chunks; ++i) raw[i] = i == chunk ? v : raw[i];
    }
  }
  RDNA_MEMBER void store(uint16_t *lds) const {
#pragma unroll
    for (int i = 0; i < chunks; ++i) store_u32x4(lds + row_of(i) * MMA_ROW + k_of(), raw[i]);
  }
};

/* An operand whose rows are neighbours in memory: a thread fetches 8 rows at |chunks| neighbouring values of k, which
 * it transposes on their way into LDS. */
template <typename source, int tile, int threads>
struct mma_rows {
  static constexpr int chunks = tile * MMA_STEP / 8 / threads;
  source rows;
  const uint16_t *base;
  int first_p;
  bool inside;
  uint4 raw[chunks];
  RDNA_DEVICE int row(void) { return (int)thread_id() % (tile / 8) * 8; }
  RDNA_DEVICE int k_of(int chunk) { return (int)thread_id() / (tile / 8) * chunks + chunk; }
  RDNA_MEMBER mma_rows(const source &from, const void *matrix, int p, int first_row, int limit)
      : rows(from), base((const uint16_t *)matrix), first_p(p), inside(first_row + row() < limit) {}
  RDNA_MEMBER void fetch(int step) {
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      int at = rows.offset(first_p + step * MMA_STEP + k_of(i));
      uint4 v = {};
      if (inside && at >= 0) v = load_u32x4(base + at);
      raw[i] = v;
    }
  }
  RDNA_MEMBER void store(uint16_t *lds) const { mma_store_turned<chunks>(lds + row() * MMA_ROW + k_of(0), raw); }
};

template <typename type, bool is_image, typename plan>
RDNA_DEVICE void conv_any(const struct conv_args &args, const conv_range &range, int row0, int column0, uint16_t *lds,
                          mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  typedef image_source<type, is_image> image;
  typedef other_source<type, is_image> other;
  constexpr int image_tile = is_image ? plan::tile_m : plan::tile_n;
  constexpr int other_tile = is_image ? plan::tile_n : plan::tile_m;
  mma_source<image, image_tile, plan::threads, false> from_image(image(args, range), is_image ? row0 : column0,
                                                                 range.first);
  mma_source<other, other_tile, plan::threads, false> from_other(other(args, range), is_image ? column0 : row0,
                                                                 range.first);
  if constexpr (is_image)
    mma_product<type, plan>(from_image, from_other, range.end - range.first, lds, sum);
  else
    mma_product<type, plan>(from_other, from_image, range.end - range.first, lds, sum);
}

#ifndef RDNA_NVIDIA
template <typename type, typename plan>
RDNA_DEVICE void conv_runs_image(const struct conv_args &args, const conv_range &range, int row0, int column0,
                                 uint16_t *lds, mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  typedef image_source<type, true> image;
  mma_source<image, plan::tile_m, plan::threads, true> from_image(image(args, range), row0, range.first);
  if (args.flags & CONV_OTHER_RUNS) {
    typedef other_source<type, true> other;
    mma_source<other, plan::tile_n, plan::threads, true> weights(other(args, range), column0, range.first);
    mma_product<type, plan>(from_image, weights, range.end - range.first, lds, sum);
  } else {
    typedef other_rows<true> source;
    int first = column0 + (int)thread_id() % (plan::tile_n / 8) * 8;
    mma_rows<source, plan::tile_n, plan::threads> weights(
        source(args, range, first), (const uint16_t *)args.other + (int64_t)range.group * args.other_group, range.first,
        column0, args.columns);
    mma_product<type, plan>(from_image, weights, range.end - range.first, lds, sum);
  }
}
template <typename type, typename plan>
RDNA_DEVICE void conv_runs_weight(const struct conv_args &args, const conv_range &range, int row0, int column0,
                                  uint16_t *lds, mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  typedef other_rows<false> channels;
  int first_m = row0 + (int)thread_id() % (plan::tile_m / 8) * 8;
  int first_n = column0 + (int)thread_id() % (plan::tile_n / 8) * 8;
  mma_rows<channels, plan::tile_m, plan::threads> other(
      channels(args, range, first_m), (const uint16_t *)args.other + (int64_t)range.group * args.other_group,
      range.first, row0, args.rows);
  mma_rows<image_rows, plan::tile_n, plan::threads> image(
      image_rows(args, range, first_n), (const uint16_t *)args.image + (int64_t)range.group * args.image_group,
      range.first, column0, args.columns);
  mma_product<type, plan>(other, image, range.end - range.first, lds, sum);
}
#endif

/* Stores a strip of 16 rows of a wave's part of the result. Neighbouring lanes write neighbours in memory: 8 values
 * each where columns are neighbours at multiples of 16 bytes, else value by value along a row or a column. */
template <typename type, bool is_image, typename plan, bool only_runs>
RDNA_DEVICE void conv_store_strip(const struct conv_args &args, const conv_range &range, int row, int column,
                                  float *stage) {
  typedef typename type::stored value;
  value *out = (value *)args.out + (int64_t)range.group * args.out_group;
  if (args.parts > 1) {
    float *part = conv_part(args, range);
    if (args.columns % 4 == 0) { /* sums begin at multiples of 16 bytes */
#pragma unroll 1
      for (int i = (int)lane_id(); i < MMA_M * plan::wave_n / 4; i += WAVE_SIZE) {
        int in_row = i / (plan::wave_n / 4), in_column = i % (plan::wave_n / 4) * 4;
        if (row + in_row < args.rows && column + in_column < args.columns)
          store_global<float4>(part + (int64_t)(row + in_row) * args.columns + column + in_column,
                               load_f32x4(stage + in_row * plan::stage_row + in_column));
      }
      return;
    }
#pragma unroll 1
    for (int i = (int)lane_id(); i < MMA_M * plan::wave_n; i += WAVE_SIZE) {
      int at_row = row + i / plan::wave_n, at_column = column + i % plan::wave_n;
      if (at_row < args.rows && at_column < args.columns)
        global(part)[(int64_t)at_row * args.columns + at_column] =
            stage[i / plan::wave_n * plan::stage_row + i % plan::wave_n];
    }
    return;
  }
  if (only_runs && args.flags & CONV_OUT_RUNS) {
    constexpr int in_row = plan::wave_n / 8;
    auto store = [&](int i, bool finish) __attribute__((device, always_inline)) {
      int at_row = row + i / in_row, at_column = column + i % in_row * 8;
      if (at_row >= args.rows || at_column >= args.columns) return;
      float *from = stage + i / in_row * plan::stage_row + i % in_row * 8;
      if (finish) {
#pragma unroll 1
        for (int j = 0; j < 8; ++j)
          from[j] =
              gemm_activate(args.activation, from[j] + bias_of_column<type, true>(args, range.group, at_column + j));
      }
      float4 low = load_f32x4(from), high = load_f32x4(from + 4);
      value *to = out + out_of_row<is_image>(args, at_row) + out_of_column<is_image>(args, at_column);
      store_global(to, uint4{type::encode2(low.x, low.y), type::encode2(low.z, low.w), type::encode2(high.x, high.y),
                             type::encode2(high.z, high.w)});
    };
    if (is_image && (args.bias || args.activation)) {
#pragma unroll 1
      for (int i = (int)lane_id(); i < MMA_M * in_row; i += WAVE_SIZE) store(i, true);
    } else {
#pragma unroll 4
      for (int i = (int)lane_id(); i < MMA_M * in_row; i += WAVE_SIZE) store(i, false);
    }
    return;
  }
  bool along_row = !is_image || args.out_channel == 1;
#pragma unroll 1
  for (int i = (int)lane_id(); i < MMA_M * plan::wave_n; i += WAVE_SIZE) {
    int in_row = along_row ? i / plan::wave_n : i % MMA_M, in_column = along_row ? i % plan::wave_n : i / MMA_M;
    int at_row = row + in_row, at_column = column + in_column;
    if (at_row >= args.rows || at_column >= args.columns) continue;
    float v = stage[in_row * plan::stage_row + in_column];
    if (is_image) v = gemm_activate(args.activation, v + bias_of_column<type, true>(args, range.group, at_column));
    type::store_global(out + out_of_row<is_image>(args, at_row) + out_of_column<is_image>(args, at_column), v);
  }
}

template <typename type, bool is_image, typename plan, bool only_runs>
RDNA_DEVICE void conv_mma(const struct conv_args &args, uint8_t *memory) {
  conv_range range = conv_range_of(args);
  int row0, column0;
  gemm_place<plan::tile_m, plan::tile_n>(args.rows, args.columns, row0, column0);
  mma_acc sum[plan::tiles_m][plan::tiles_n] = {};
  if constexpr (!only_runs) {
    conv_any<type, is_image, plan>(args, range, row0, column0, (uint16_t *)memory, sum);
  } else {
#ifdef RDNA_NVIDIA
    if constexpr (is_image)
      conv_pipe_image<type, plan>(args, range, row0, column0, memory, sum);
    else
      conv_pipe_weight<type, plan>(args, range, row0, column0, memory, sum);
#else
    if constexpr (is_image)
      conv_runs_image<type, plan>(args, range, row0, column0, (uint16_t *)memory, sum);
    else
      conv_runs_weight<type, plan>(args, range, row0, column0, (uint16_t *)memory, sum);
#endif
  }
  const struct conv_args &now = arguments_again(args);
  mma_finish<plan>(memory, sum, [&](int row, int column, float *stage) __attribute__((device, always_inline)) {
    conv_store_strip<type, is_image, plan, only_runs>(now, conv_range_of(now), row0 + row, column0 + column, stage);
  });
}

#ifdef RDNA_NVIDIA
#define CONV_TABLE_BYTES(is_image, stages) ((is_image) ? CONV_IMAGE_TABLE : CONV_WEIGHT_TABLE(stages))
#else
#define CONV_TABLE_BYTES(is_image, stages) 0
#endif
#define CONV_MMA_DEFINE_(name, T, is_image, rows, columns, stages, only_runs)                  \
  RDNA_KERNEL(CONV_MMA_THREADS) name##_##T(struct conv_args args) {                            \
    typedef mma_plan<rows, columns, CONV_MMA_THREADS, stages> plan;                            \
    PIPE_MEMORY(memory, plan::bytes + ((only_runs) ? CONV_TABLE_BYTES(is_image, stages) : 0)); \
    conv_mma<T, is_image, plan, only_runs>(args, memory);                                      \
  }
#define CONV_MMA_DEFINE(T)                                         \
  CONV_MMA_DEFINE_(conv_image_small, T, true, 64, 64, 3, false)    \
  CONV_MMA_DEFINE_(conv_image_large, T, true, 128, 128, 3, true)   \
  CONV_MMA_DEFINE_(conv_image_narrow, T, true, 128, 64, 3, true)   \
  CONV_MMA_DEFINE_(conv_weight_small, T, false, 64, 64, 3, false)  \
  CONV_MMA_DEFINE_(conv_weight_large, T, false, 128, 128, 3, true) \
  CONV_MMA_DEFINE_(conv_weight_narrow, T, false, 64, 128, 3, true)

#endif
