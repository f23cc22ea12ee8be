/* Implicit products for convolution: operands are gathered on their way into LDS. */
#include "kernel/arguments.h"
#include "math/conv/conv_kernels.h"
#include "math/gemm/gemm_mma.h"

/* Rows of the image's matrix, and what is summed over, are positions and taps, either way round. */
template <typename type, bool rows_are_positions>
struct image_source {
  typedef typename type::value value;
  typedef typename type::raw8 raw8;
  typedef conv_place row;
  /* Rather than make them for every fetch: where registers suffice. */
#if defined(RDNA_NVIDIA) || defined(RDNA_MMA_BY_LANES_)
  static constexpr bool keep_rows = false;
#else
  static constexpr bool keep_rows = rows_are_positions;
#endif
  const struct conv_args &args;
  const value *base;
  bool runs;

  GEMM_MEMBER image_source(const struct conv_args &a, int64_t group) : args(a) {
    base = (const value *)a.image + group * a.image_group;
    runs = rows_are_positions && (a.flags & CONV_IMAGE_RUNS) && is_16_byte_multiple((uint64_t)base);
  }
  GEMM_MEMBER row make_row(const struct conv_args &a, int at) const {
    int limit = rows_are_positions ? a.rows : a.columns, safe = at < limit ? at : 0;
    row r = rows_are_positions ? conv_position(&a, safe) : conv_tap(&a, safe);
    if (at >= limit) r.z = -(1 << 30); /* outside, with any tap */
    return r;
  }
  GEMM_MEMBER int offset(const struct conv_args &a, const row &r, int p) const {
    if (p >= a.k) return -1;
    return rows_are_positions ? conv_offset(&a, r, conv_tap(&a, p)) : conv_offset(&a, conv_position(&a, p), r);
  }
  /* Values p to p + 7 of a row; p is a multiple of 8. load_run asks for |runs|. */
  GEMM_MEMBER raw8 load_run(const struct conv_args &a, const row &r, int p) const {
    raw8 v = {};
    int at = offset(a, r, p);
    if (at >= 0) v = type::load_raw8(base + at);
    return v;
  }
  GEMM_MEMBER raw8 load_each(const row &r, int p) const {
    const struct conv_args &a = arguments_again(args);
    raw8 v = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      int at = offset(a, r, p + i);
      if (at >= 0) type::set_raw8(v, i, base[at]);
    }
    return v;
  }
};

/* Channels of the other operand by taps, or by positions. */
template <typename type, bool k_is_tap>
struct other_source {
  typedef typename type::value value;
  typedef typename type::raw8 raw8;
  typedef int row; /* where it begins; -1 past the last */
  static constexpr bool keep_rows = false;
  const struct conv_args &args;
  const value *base;
  bool runs, even;

  GEMM_MEMBER other_source(const struct conv_args &a, int64_t group) : args(a) {
    base = (const value *)a.other + group * a.other_group;
    even = a.flags & CONV_OTHER_EVEN;
    runs = (a.flags & CONV_OTHER_RUNS) && a.k % 8 == 0 && is_16_byte_multiple((uint64_t)base);
  }
  GEMM_MEMBER row make_row(const struct conv_args &a, int at) const {
    int limit = k_is_tap ? a.columns : a.rows;
    return at < limit ? at * a.other_row : -1;
  }
  GEMM_MEMBER raw8 load_run(const struct conv_args &a, const row &r, int p) const {
    raw8 v = {};
    if (r >= 0 && p < a.k) v = type::load_raw8(base + r + p);
    return v;
  }
  GEMM_MEMBER raw8 load_each(const row &r, int p) const {
    raw8 v = {};
    if (r < 0) return v;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (p + i >= args.k) break;
      int at = even ? (p + i) * args.other_step
                    : conv_digits_offset(k_is_tap ? &args.tap : &args.position, p + i, args.other_k);
      type::set_raw8(v, i, base[r + at]);
    }
    return v;
  }
};

/* A source as an operand of tile_product: one row and 8 values of k a thread. */
template <typename type, typename source>
struct tile_operand {
  typedef typename type::raw8 raw;
  source from;
  typename source::row row;
  int p;
  GEMM_MEMBER tile_operand(const source &s, int first_row)
      : from(s), row(s.make_row(s.args, first_row + (int)thread_id() / 2)), p((int)thread_id() % 2 * 8) {}
  GEMM_MEMBER raw fetch(void) {
    raw v = from.runs ? from.load_run(from.args, row, p) : from.load_each(row, p);
    p += GEMM_TILE_K;
    return v;
  }
  RDNA_DEVICE void decode(const raw &v, float out[8]) { type::decode8(v, out); }
};

/* A source as an operand of mma_product. With |only_runs| it has no registers for anything else. */
template <typename source, int tile, bool only_runs>
struct mma_source {
  static constexpr int chunks = tile * MMA_STEP / 8 / GEMM_MMA_THREADS;
  source from;
  int first;
  typename source::row kept[chunks];
  uint4 raw[chunks];
  RDNA_DEVICE int row_of(int chunk) { return (int)thread_id() / 4 + GEMM_MMA_THREADS / 4 * chunk; }
  RDNA_DEVICE int k_of(void) { return (int)thread_id() % 4 * 8; }
  GEMM_MEMBER mma_source(const source &s, int first_row) : from(s), first(first_row) {
#pragma unroll
    for (int i = 0; source::keep_rows && i < chunks; ++i) kept[i] = s.make_row(s.args, first_row + row_of(i));
  }
  GEMM_MEMBER void fetch(int step) {
    int p = step * MMA_STEP + k_of(), row0 = first;
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
  GEMM_MEMBER void store(uint16_t *lds) const {
#pragma unroll
    for (int i = 0; i < chunks; ++i) store_u32x4(lds + row_of(i) * MMA_ROW + k_of(), raw[i]);
  }
};

/* Where the result lies, and what is added to it. */
template <bool rows_are_positions>
RDNA_DEVICE int out_of_row(const struct conv_args &args, int row) {
  return rows_are_positions ? conv_digits_offset(&args.position, row, args.out_digits) : row * args.out_channel;
}
template <bool rows_are_positions>
RDNA_DEVICE int out_of_column(const struct conv_args &args, int column) {
  return rows_are_positions ? column * args.out_channel : conv_digits_offset(&args.tap, column, args.out_digits);
}
template <typename type, bool rows_are_positions>
RDNA_DEVICE float bias_of_column(const struct conv_args &args, int64_t group, int column) {
  if (!rows_are_positions || !args.bias) return 0;
  return type::load((const typename type::value *)args.bias + group * args.columns + column);
}

template <typename type, bool is_image, int tile, int threads>
RDNA_DEVICE void conv_tile(const struct conv_args &args) {
  typedef tile_plan<tile, threads> plan;
  typedef image_source<type, is_image> image;
  typedef other_source<type, is_image> other;
  int64_t group = group_id_z();
  int row0, column0;
  gemm_place<tile>(args.rows, args.columns, row0, column0);
  image from_image(args, group);
  other from_other(args, group);
  float sum[plan::quads_m * 4][plan::quads_n * 4] = {};
  tile_operand<type, image> image_operand(from_image, is_image ? row0 : column0);
  tile_operand<type, other> other_operand(from_other, is_image ? column0 : row0);
  if constexpr (is_image)
    tile_product<tile, threads>(image_operand, other_operand, true, true, args.k, sum);
  else
    tile_product<tile, threads>(other_operand, image_operand, true, true, args.k, sum);

  const struct conv_args &now = arguments_again(args);
  typename type::value *out = (typename type::value *)now.out + group * now.out_group;
#pragma unroll
  for (int j = 0; j < plan::quads_n * 4; ++j) {
    int column = column0 + plan::column(j);
    if (column >= now.columns) continue;
    int in_row = out_of_column<is_image>(now, column);
    float bias = bias_of_column<type, is_image>(now, group, column);
#pragma unroll
    for (int i = 0; i < plan::quads_m * 4; ++i) {
      int row = row0 + plan::row(i);
      if (row < now.rows) type::store(out + in_row + out_of_row<is_image>(now, row), sum[i][j] + bias);
    }
  }
}

template <typename type, bool is_image, int tile, bool only_runs>
RDNA_DEVICE void conv_mma(const struct conv_args &args) {
  typedef mma_plan<tile, tile, GEMM_MMA_THREADS, 3> plan;
  typedef image_source<type, is_image> image;
  typedef other_source<type, is_image> other;
  RDNA_SHARED __attribute__((aligned(16))) uint16_t lds[2 * plan::step];
  int64_t group = group_id_z();
  int row0, column0;
  gemm_place<tile>(args.rows, args.columns, row0, column0);
  mma_source<image, tile, only_runs> image_operand(image(args, group), is_image ? row0 : column0);
  mma_source<other, tile, only_runs> other_operand(other(args, group), is_image ? column0 : row0);
  mma_acc sum[plan::tiles_m][plan::tiles_n] = {};
  if constexpr (is_image)
    mma_product<type, plan>(image_operand, other_operand, args.k, lds, sum);
  else
    mma_product<type, plan>(other_operand, image_operand, args.k, lds, sum);

  const struct conv_args &now = arguments_again(args);
  /* Neighbouring lanes write neighbours in memory: along a row when channels are next to each other. */
  typename type::value *out = (typename type::value *)now.out + group * now.out_group;
  bool along_row = !is_image || now.out_channel == 1;
  mma_finish<plan>(lds, sum, [&](int row, int column, const float *stage) __attribute__((device, always_inline)) {
#pragma unroll 1
    for (int i = (int)lane_id(); i < MMA_M * plan::wave_n; i += WAVE_SIZE) {
      int in_row = along_row ? i / plan::wave_n : i % MMA_M, in_column = along_row ? i % plan::wave_n : i / MMA_M;
      int at_row = row0 + row + in_row, at_column = column0 + column + in_column;
      if (at_row >= now.rows || at_column >= now.columns) continue;
      float v = stage[in_row * plan::stage_row + in_column] + bias_of_column<type, is_image>(now, group, at_column);
      type::store(out + out_of_row<is_image>(now, at_row) + out_of_column<is_image>(now, at_column), v);
    }
  });
}

/* One value of the result a thread: for groups so small that a tile would be empty. */
template <typename type>
RDNA_DEVICE void conv_depthwise(const struct conv_args &args) {
  typedef typename type::value value;
  int64_t index = (int64_t)group_id_x() * CONV_DEPTHWISE_THREADS + thread_id();
  int channels = args.columns * args.groups;
  if (index >= (int64_t)channels * args.rows) return;
  bool channels_last = args.out_channel == 1;
  int channel = (int)(channels_last ? index % channels : index / args.rows);
  int position = (int)(channels_last ? index / channels : index % args.rows);
  int64_t group = channel / args.columns;
  int column = channel % args.columns;
  const value *image = (const value *)args.image + group * args.image_group;
  const value *other = (const value *)args.other + group * args.other_group + column * args.other_row;
  conv_place place = conv_position(&args, position);
  float sum = 0;
  for (int p = 0; p < args.k; ++p) {
    int at = conv_offset(&args, place, conv_tap(&args, p));
    if (at < 0) continue;
    sum = fma_f32(type::load(image + at), type::load(other + conv_digits_offset(&args.tap, p, args.other_k)), sum);
  }
  value *out = (value *)args.out + group * args.out_group + column * args.out_channel;
  type::store(out + out_of_row<true>(args, position), sum + bias_of_column<type, true>(args, group, column));
}

RDNA_KERNEL(CONV_FLOAT_SMALL_THREADS) conv_image_small_f32(struct conv_args args) {
  conv_tile<type_f32, true, CONV_SMALL_TILE, CONV_FLOAT_SMALL_THREADS>(args);
}
RDNA_KERNEL(CONV_FLOAT_LARGE_THREADS) conv_image_large_f32(struct conv_args args) {
  conv_tile<type_f32, true, CONV_LARGE_TILE, CONV_FLOAT_LARGE_THREADS>(args);
}
RDNA_KERNEL(CONV_FLOAT_SMALL_THREADS) conv_weight_small_f32(struct conv_args args) {
  conv_tile<type_f32, false, CONV_SMALL_TILE, CONV_FLOAT_SMALL_THREADS>(args);
}
#define CONV_MMA_DEFINE(T)                                                     \
  RDNA_KERNEL(CONV_MMA_THREADS) conv_image_small_##T(struct conv_args args) {  \
    conv_mma<type_##T, true, CONV_SMALL_TILE, false>(args);                    \
  }                                                                            \
  RDNA_KERNEL(CONV_MMA_THREADS) conv_image_large_##T(struct conv_args args) {  \
    conv_mma<type_##T, true, CONV_LARGE_TILE, true>(args);                     \
  }                                                                            \
  RDNA_KERNEL(CONV_MMA_THREADS) conv_weight_small_##T(struct conv_args args) { \
    conv_mma<type_##T, false, CONV_SMALL_TILE, false>(args);                   \
  }
CONV_MMA_DEFINE(f16)
CONV_MMA_DEFINE(bf16)

#define CONV_DEPTHWISE_DEFINE(T) \
  RDNA_KERNEL(CONV_DEPTHWISE_THREADS) conv_depthwise_##T(struct conv_args args) { conv_depthwise<type_##T>(args); }
CONV_DEPTHWISE_DEFINE(f32)
CONV_DEPTHWISE_DEFINE(f16)
CONV_DEPTHWISE_DEFINE(bf16)
