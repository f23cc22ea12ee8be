/* Device code: how the operands of a convolution's product are gathered from tensors. For .hip files only.
 *
 * The image's matrix has a row for each position and a column for each tap (conv_kernels.h); it is never written out.
 * Of a window of 3 along one dimension, stride 1:
 *
 *     image      a b c d e          tap    0 1 2
 *                           position 0     a b c
 *                                    1     b c d
 *                                    2     c d e */
#ifndef RDNA_MATH_CONV_SOURCES_H
#define RDNA_MATH_CONV_SOURCES_H

#include "kernel/arguments.h"
#include "math/conv/conv_kernels.h"
#include "math/gemm/gemm_mma.h"

/* The values of k that this group sums: all, or one part of them. */
struct conv_range {
  int first, end, group, part;
};
RDNA_DEVICE conv_range conv_range_of(const struct conv_args &args) {
  int z = (int)group_id_z();
  if (args.parts <= 1) return {0, args.k, z, 0};
  int part = z % args.parts, first = part * args.part_k;
  int end = first + args.part_k < args.k ? first + args.part_k : args.k;
  return {first < args.k ? first : args.k, end, z / args.parts, part};
}

/* The image as an operand. Its rows are positions and what is summed over is taps, or the other way round. */
template <typename type, bool rows_are_positions>
struct image_source {
  typedef typename type::stored value;
  typedef typename type::raw8 raw8;
  typedef conv_place row;
  /* Whether rows are kept rather than made again for every fetch: where registers suffice. */
#if defined(RDNA_NVIDIA) || defined(RDNA_MMA_BY_LANES_)
  static constexpr bool keep_rows = false;
#else
  static constexpr bool keep_rows = rows_are_positions;
#endif
  const struct conv_args &args;
  const value *base;
  int end;
  /* Values 8i to 8i + 7 are neighbours along k; or rows 8i to 8i + 7 are, and 8 of them are fetched for one value of k.
   */
  bool runs, across;

  RDNA_MEMBER image_source(const struct conv_args &a, const conv_range &range) : args(a), end(range.end) {
    base = (const value *)a.image + (int64_t)range.group * a.image_group;
    bool aligned = (a.flags & CONV_IMAGE_RUNS) && all_16((uint64_t)base);
    runs = rows_are_positions && aligned, across = !rows_are_positions && aligned;
  }
  RDNA_MEMBER row make_row(const struct conv_args &a, int at) const {
    int limit = rows_are_positions ? a.rows : a.columns, safe = at < limit ? at : 0;
    row r = rows_are_positions ? conv_position(&a, safe) : conv_tap(&a, safe);
    if (at >= limit) r.z = -(1 << 30); /* outside, with any tap */
    return r;
  }
  RDNA_MEMBER int offset(const struct conv_args &a, const row &r, int p) const {
    if (p >= end) return -1;
    return rows_are_positions ? conv_offset(&a, r, conv_tap(&a, p)) : conv_offset(&a, conv_position(&a, p), r);
  }
  /* Values p to p + 7 of a row, p a multiple of 8: by one load where there are |runs|, or value by value. */
  RDNA_MEMBER raw8 load_run(const struct conv_args &a, const row &r, int p) const {
    raw8 v = {};
    int at = offset(a, r, p);
    if (at >= 0) v = type::load_raw8(base + at);
    return v;
  }
  RDNA_MEMBER raw8 load_each(const row &r, int p) const {
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

/* The other operand, channels by taps (the weight) or by positions (the gradient of y). */
template <typename type, bool k_is_tap>
struct other_source {
  typedef typename type::stored value;
  typedef typename type::raw8 raw8;
  typedef int row; /* where it begins; -1 past the last */
  static constexpr bool keep_rows = false;
  const struct conv_args &args;
  const value *base;
  int end;
  bool runs, across, even;

  RDNA_MEMBER other_source(const struct conv_args &a, const conv_range &range) : args(a), end(range.end) {
    base = (const value *)a.other + (int64_t)range.group * a.other_group;
    even = a.flags & CONV_OTHER_EVEN;
    bool aligned = all_16((uint64_t)base);
    runs = (a.flags & CONV_OTHER_RUNS) && a.k % 8 == 0 && aligned;
    across = !runs && (a.flags & CONV_OTHER_ROWS) && aligned;
  }
  RDNA_MEMBER int offset(const struct conv_args &a, const row &r, int p) const {
    if (r < 0 || p >= end) return -1;
    return r + (even ? p * a.other_step : conv_digits_offset(k_is_tap ? &a.tap : &a.position, p, a.other_k));
  }
  RDNA_MEMBER row make_row(const struct conv_args &a, int at) const {
    int limit = k_is_tap ? a.columns : a.rows;
    return at < limit ? at * a.other_row : -1;
  }
  RDNA_MEMBER raw8 load_run(const struct conv_args &a, const row &r, int p) const {
    raw8 v = {};
    if (r >= 0 && p < end) v = type::load_raw8(base + r + p);
    return v;
  }
  RDNA_MEMBER raw8 load_each(const row &r, int p) const {
    raw8 v = {};
    if (r < 0) return v;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (p + i >= end) break;
      type::set_raw8(v, i, base[offset(args, r, p + i)]);
    }
    return v;
  }
};

/* Operands whose rows are neighbours in memory (CONV_OTHER_ROWS, CONV_IMAGE_RUNS): for a value of k, 8 rows at once.
 * offset(p) is where those of k = p lie, or -1 where they are zero. */
template <bool k_is_tap>
struct other_rows {
  const struct conv_args &args;
  int end, first;
  bool even;
  RDNA_MEMBER other_rows(const struct conv_args &a, const conv_range &range, int first_row)
      : args(a), end(range.end), first(first_row), even(a.flags & CONV_OTHER_EVEN) {}
  RDNA_MEMBER int offset(int p) const {
    if (p >= end) return -1;
    return first +
           (even ? p * args.other_step : conv_digits_offset(k_is_tap ? &args.tap : &args.position, p, args.other_k));
  }
};
struct image_rows {
  const struct conv_args &args;
  int end;
  conv_place tap;
  RDNA_MEMBER image_rows(const struct conv_args &a, const conv_range &range, int first_row)
      : args(a), end(range.end), tap(conv_tap(&a, first_row < a.columns ? first_row : 0)) {}
  RDNA_MEMBER int offset(int p) const {
    const struct conv_args &a = arguments_again(args);
    return p < end ? conv_offset(&a, conv_position(&a, p), tap) : -1;
  }
};

/* Where the result lies, and what is added to it. */
template <bool rows_are_positions>
RDNA_DEVICE int out_of_row(const struct conv_args &args, int row) {
  if (!rows_are_positions) return row * args.out_channel;
  if (args.flags & CONV_OUT_EVEN) return row * args.out_step;
  return conv_digits_offset(&args.position, row, args.out_digits);
}
template <bool rows_are_positions>
RDNA_DEVICE int out_of_column(const struct conv_args &args, int column) {
  return rows_are_positions ? column * args.out_channel : conv_digits_offset(&args.tap, column, args.out_digits);
}
template <typename type, bool rows_are_positions>
RDNA_DEVICE float bias_of_column(const struct conv_args &args, int group, int column) {
  if (!rows_are_positions || !args.bias) return 0;
  return type::load_global((const typename type::stored *)args.bias + group * args.columns + column);
}

/* Sums of a part of k go to a matrix of f32 of its own. */
RDNA_DEVICE float *conv_part(const struct conv_args &args, const conv_range &range) {
  return args.sums + ((int64_t)range.group * args.parts + range.part) * args.rows * args.columns;
}

#endif
