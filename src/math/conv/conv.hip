/* Convolution in f32 as an implicit product, whose operands are gathered on their way into LDS; depthwise convolution;
 * sums of parts; and changes of layout. */
#include "math/conv/conv_sources.h"

/* A source as an operand of tile_product: a thread fetches 8 values of a row along k, or with |only_across|, and
 * wherever the source is across, 8 rows at a value of k. */
template <typename type, typename source, int tile, bool only_across>
struct tile_operand {
  typedef typename type::raw8 raw;
  source from;
  typename source::row row;
  int p;
  RDNA_MEMBER tile_operand(const source &s, int first_row, int first_p)
      : from(s),
        row(s.make_row(s.args, first_row + fetch_row<tile>(along_k()))),
        p(first_p + fetch_p<tile>(along_k())) {}
  RDNA_MEMBER bool along_k(void) const { return !only_across && !from.across; }
  RDNA_MEMBER raw fetch(void) {
    raw v = {};
    if (!along_k()) {
      int at = from.offset(from.args, row, p);
      if (at >= 0) v = type::load_raw8(from.base + at);
    } else {
      v = from.runs ? from.load_run(from.args, row, p) : from.load_each(row, p);
    }
    p += GEMM_TILE_K;
    return v;
  }
  RDNA_DEVICE void decode(const raw &v, float out[8]) { type::decode8(v, out); }
};

template <typename type, bool is_image, int tile, int threads, bool only_across>
RDNA_DEVICE void conv_tile(const struct conv_args &args) {
  typedef tile_plan<tile, threads> plan;
  typedef image_source<type, is_image> image;
  typedef other_source<type, is_image> other;
  conv_range range = conv_range_of(args);
  int row0, column0;
  gemm_place<tile>(args.rows, args.columns, row0, column0);
  image from_image(args, range);
  other from_other(args, range);
  float sum[plan::quads_m * 4][plan::quads_n * 4] = {};
  tile_operand<type, image, tile, only_across> image_operand(from_image, is_image ? row0 : column0, range.first);
  tile_operand<type, other, tile, only_across> other_operand(from_other, is_image ? column0 : row0, range.first);
  bool image_along = image_operand.along_k(), other_along = other_operand.along_k();
  int k = range.end - range.first;
  if constexpr (is_image)
    tile_product<tile, threads>(image_operand, other_operand, image_along, other_along, k, sum);
  else
    tile_product<tile, threads>(other_operand, image_operand, other_along, image_along, k, sum);

  const struct conv_args &now = arguments_again(args);
  bool whole = now.parts <= 1;
  typename type::stored *out = (typename type::stored *)now.out + (int64_t)range.group * now.out_group;
#pragma unroll
  for (int j = 0; j < plan::quads_n * 4; ++j) {
    int column = column0 + plan::column(j);
    if (column >= now.columns) continue;
    int in_row = out_of_column<is_image>(now, column);
    float bias = bias_of_column<type, is_image>(now, range.group, column);
#pragma unroll
    for (int i = 0; i < plan::quads_m * 4; ++i) {
      int row = row0 + plan::row(i);
      if (row >= now.rows) continue;
      if (whole)
        type::store_global(out + in_row + out_of_row<is_image>(now, row), sum[i][j] + bias);
      else
        conv_part(now, range)[(int64_t)row * now.columns + column] = sum[i][j];
    }
  }
}

/* What conv_tile left for later: this thread's own values again. */
template <typename type, int tile, int threads>
RDNA_DEVICE void conv_activate_tile(const struct conv_args &args) {
  typedef tile_plan<tile, threads> plan;
  if (args.activation == 0 || args.parts > 1) return;
  int row0, column0;
  gemm_place<tile>(args.rows, args.columns, row0, column0);
  typename type::stored *out = (typename type::stored *)args.out + (int64_t)group_id_z() * args.out_group;
#pragma unroll 1
  for (int i = 0; i < plan::quads_m * 4; ++i) {
    int row = row0 + plan::row(i);
    if (row >= args.rows) break;
    typename type::stored *at = out + out_of_row<true>(args, row);
#pragma unroll 1
    for (int j = 0; j < plan::quads_n * 4; ++j) {
      int column = column0 + plan::column(j);
      if (column >= args.columns) break;
      typename type::stored *value = at + out_of_column<true>(args, column);
      type::store_global(value, gemm_activate(args.activation, type::load_global(value)));
    }
  }
}

/* A thread has eight neighbouring channels of a position, each a group of its own. */
template <typename type>
RDNA_DEVICE void conv_depthwise_octets(const struct conv_args &args) {
  typedef typename type::stored value;
  int64_t index = (int64_t)group_id_x() * CONV_DEPTHWISE_THREADS + thread_id();
  int octets = args.groups / 8;
  if (index >= (int64_t)octets * args.rows) return;
  int group = (int)(index % octets) * 8, position = (int)(index / octets);
  const value *image = (const value *)args.image + group;
  const value *other = (const value *)args.other + (int64_t)group * args.other_group;
  conv_place place = conv_position(&args, position);
  float sum[8] = {};
  for (int p = 0; p < args.k; ++p) {
    int at = conv_offset(&args, place, conv_tap(&args, p));
    if (at < 0) continue;
    float v[8];
    type::decode8(type::load_raw8(image + at), v);
    const value *weight = other + conv_digits_offset(&args.tap, p, args.other_k);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      sum[i] = fma_f32(v[i], type::load_global(weight + (int64_t)i * args.other_group), sum[i]);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sum[i] += bias_of_column<type, true>(args, group + i, 0);
  if (args.activation) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] = gemm_activate(args.activation, sum[i]);
  }
  value *out = (value *)args.out + group + out_of_row<true>(args, position);
  type::store4(out, float4{sum[0], sum[1], sum[2], sum[3]});
  type::store4(out + 4, float4{sum[4], sum[5], sum[6], sum[7]});
}

/* A thread has one value of the result: for groups of channels so small that tiles would be nearly empty. */
template <typename type>
RDNA_DEVICE void conv_depthwise(const struct conv_args &args) {
  typedef typename type::stored value;
  if (args.flags & CONV_OCTETS) {
    conv_depthwise_octets<type>(args);
    return;
  }
  int64_t index = (int64_t)group_id_x() * CONV_DEPTHWISE_THREADS + thread_id();
  int channels = args.columns * args.groups;
  if (index >= (int64_t)channels * args.rows) return;
  bool channels_last = args.out_channel == 1;
  int channel = (int)(channels_last ? index % channels : index / args.rows);
  int position = (int)(channels_last ? index / channels : index % args.rows);
  int group = channel / args.columns;
  int column = channel % args.columns;
  const value *image = (const value *)args.image + (int64_t)group * args.image_group;
  const value *other = (const value *)args.other + (int64_t)group * args.other_group + column * args.other_row;
  conv_place place = conv_position(&args, position);
  float sum = 0;
  for (int p = 0; p < args.k; ++p) {
    int at = conv_offset(&args, place, conv_tap(&args, p));
    if (at < 0) continue;
    sum = fma_f32(type::load_global(image + at),
                  type::load_global(other + conv_digits_offset(&args.tap, p, args.other_k)), sum);
  }
  value *out = (value *)args.out + (int64_t)group * args.out_group + column * args.out_channel;
  sum += bias_of_column<type, true>(args, group, column);
  type::store_global(out + out_of_row<true>(args, position), gemm_activate(args.activation, sum));
}

/* What is done to a sum: bias and activation. */
template <typename type, bool is_image>
RDNA_DEVICE float conv_finish(const struct conv_args &args, int group, int column, float sum) {
  return is_image ? gemm_activate(args.activation, sum + bias_of_column<type, true>(args, group, column)) : sum;
}

/* Adds up the parts of 4 neighbours in a row, always in the same order, and stores them. */
template <typename type, bool is_image>
RDNA_DEVICE void conv_sum_quad(const struct conv_args &args, int group) {
  typedef typename type::stored value;
  int64_t values = (int64_t)args.rows * args.columns;
  uint32_t index = (group_id_x() * GEMM_SUM_THREADS + thread_id()) * 4;
  if (index >= values) return;
  int row = (int)(index / (uint32_t)args.columns), column = (int)(index % (uint32_t)args.columns);
  const float *part = args.sums + (int64_t)group * args.parts * values + index;
  float4 sum = load_f32x4(part);
#pragma unroll 4
  for (int i = 1; i < args.parts; ++i) sum += load_f32x4(part + i * values);
  value *out = (value *)args.out + (int64_t)group * args.out_group + out_of_row<is_image>(args, row);
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[i] = conv_finish<type, is_image>(args, group, column + i, sum[i]);
  if (args.flags & CONV_OUT_RUNS) {
    type::store4(out + out_of_column<is_image>(args, column), sum);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) type::store_global(out + out_of_column<is_image>(args, column + i), sum[i]);
}

/* Adds up the parts of a sum and stores it. */
template <typename type, bool is_image>
RDNA_DEVICE void conv_sum(const struct conv_args &args) {
  int64_t values = (int64_t)args.rows * args.columns, index;
  int group = (int)group_id_z();
  float sum;
  if (CONV_SUM_QUADS(args.parts, args.columns)) {
    conv_sum_quad<type, is_image>(args, group);
    return;
  }
  if (!sum_parts(args.sums + (int64_t)group * args.parts * values, values, args.parts, index, sum)) return;
  int row = (int)(index / args.columns), column = (int)(index % args.columns);
  typename type::stored *out = (typename type::stored *)args.out + (int64_t)group * args.out_group;
  type::store_global(out + out_of_row<is_image>(args, row) + out_of_column<is_image>(args, column),
                     conv_finish<type, is_image>(args, group, column, sum));
}

/* Moves |block| channels of an image from (channels, plane) to (plane, channels), or back, through group memory. There
 * it has, for each run of in_16 channels, their planes one after the other as they lie in memory, padded to an odd
 * number of 16 bytes, so that neighbouring runs lie in different banks. A thread gathers the in_16 channels of a
 * position, 16 bytes of the other layout:
 *
 *     run 0   | channel 0: 0 1 2 .. | channel 1: 0 1 2 .. | ... | pad |
 *     run 1   | channel in_16: ..   |                                      */
template <typename value, bool to_last>
RDNA_DEVICE void conv_turn(const struct conv_turn_args &args) {
  constexpr int in_16 = 16 / sizeof(value);
  struct alignas(16) vector {
    value v[in_16];
  };
  RDNA_SHARED vector memory[CONV_TURN_BYTES / 16];
  int first = (int)group_id_x() * args.block, plane = args.plane, pitch = plane | 1;
  int channels = args.channels - first < args.block ? args.channels - first : args.block, runs = channels / in_16;
  int64_t image = (int64_t)group_id_y() * args.channels * plane, planes = image + (int64_t)first * plane;
  const value *in = (const value *)args.in + (to_last ? planes : image + first);
  value *out = (value *)args.out + (to_last ? image + first : planes);
  int count = runs * plane;
  if (to_last) {
    for (int i = (int)thread_id(); i < count; i += CONV_TURN_THREADS)
      memory[i / plane * pitch + i % plane] = load_as<vector>(in + (int64_t)i * in_16);
    group_barrier();
  }
  for (int i = (int)thread_id(); i < count; i += CONV_TURN_THREADS) {
    int run = i % runs, position = i / runs;
    int64_t at = (int64_t)position * args.channels + run * in_16;
    value *line = (value *)&memory[run * pitch] + position;
    vector turned;
    if (!to_last) turned = load_as<vector>(in + at);
#pragma unroll
    for (int j = 0; j < in_16; ++j) {
      if (to_last)
        turned.v[j] = line[j * plane];
      else
        line[j * plane] = turned.v[j];
    }
    if (to_last) store_as<vector>(out + at, turned);
  }
  if (to_last) return;
  group_barrier();
  for (int i = (int)thread_id(); i < count; i += CONV_TURN_THREADS)
    store_as<vector>(out + (int64_t)i * in_16, memory[i / plane * pitch + i % plane]);
}

RDNA_KERNEL(CONV_FLOAT_SMALL_THREADS) conv_image_small_f32(struct conv_args args) {
  conv_tile<f32, true, CONV_SMALL_TILE, CONV_FLOAT_SMALL_THREADS, false>(args);
  conv_activate_tile<f32, CONV_SMALL_TILE, CONV_FLOAT_SMALL_THREADS>(args);
}
RDNA_KERNEL_RESIDENT(CONV_FLOAT_LARGE_THREADS, 2) conv_image_large_f32(struct conv_args args) {
  conv_tile<f32, true, CONV_LARGE_TILE, CONV_FLOAT_LARGE_THREADS, false>(args);
  conv_activate_tile<f32, CONV_LARGE_TILE, CONV_FLOAT_LARGE_THREADS>(args);
}
RDNA_KERNEL(CONV_FLOAT_SMALL_THREADS) conv_weight_small_f32(struct conv_args args) {
  conv_tile<f32, false, CONV_SMALL_TILE, CONV_FLOAT_SMALL_THREADS, false>(args);
}
RDNA_KERNEL_RESIDENT(CONV_FLOAT_LARGE_THREADS, 2) conv_weight_large_f32(struct conv_args args) {
  conv_tile<f32, false, CONV_LARGE_TILE, CONV_FLOAT_LARGE_THREADS, true>(args);
}

#define CONV_VALUES_DEFINE(T)                                                                                \
  RDNA_KERNEL(CONV_DEPTHWISE_THREADS) conv_depthwise_##T(struct conv_args args) { conv_depthwise<T>(args); } \
  RDNA_KERNEL(GEMM_SUM_THREADS) conv_image_sum_##T(struct conv_args args) { conv_sum<T, true>(args); }       \
  RDNA_KERNEL(GEMM_SUM_THREADS) conv_weight_sum_##T(struct conv_args args) { conv_sum<T, false>(args); }
CONV_VALUES_DEFINE(f32)
CONV_VALUES_DEFINE(f16)
CONV_VALUES_DEFINE(bf16)

#define CONV_TURN_DEFINE(bits, value)                                                                              \
  RDNA_KERNEL(CONV_TURN_THREADS) conv_to_last_##bits(struct conv_turn_args args) { conv_turn<value, true>(args); } \
  RDNA_KERNEL(CONV_TURN_THREADS) conv_to_first_##bits(struct conv_turn_args args) { conv_turn<value, false>(args); }
CONV_TURN_DEFINE(16, uint16_t)
CONV_TURN_DEFINE(32, uint32_t)
