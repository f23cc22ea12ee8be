/* Device code: the operands of a convolution's product as NVIDIA's asynchronous copies gather them. For .hip files
 * only; see math/gemm/gemm_pipe.h. */
#ifndef RDNA_MATH_CONV_PIPE_H
#define RDNA_MATH_CONV_PIPE_H

#include "math/conv/conv_sources.h"

#ifdef RDNA_NVIDIA
/* The image by positions, with 8 channels of a tap in a chunk. Where the first value of a row's window lies, and which
 * taps are inside the image, is kept in shared memory for all rows of the tile: with a bit for each tap of the window,
 * of which there are at most 32. Where the image is spread out, the sum of both is 2^image_shift times as far. */
template <int tile, int threads>
struct pipe_image {
  static constexpr int rows_a_pass = threads / 8, passes = tile / rows_a_pass;
  static constexpr int table_bytes = tile * 8;
  const struct conv_args &args;
  const uint16_t *base;
  uint32_t to, table; /* this thread's first row */
  int p, end;

  GEMM_MEMBER pipe_image(const struct conv_args &a, const conv_range &range, int first_row, uint8_t *rows) : args(a) {
    base = (const uint16_t *)a.image + (int64_t)range.group * a.image_group;
    int chunk = (int)thread_id() % 8, row = (int)thread_id() / 8;
    to = (uint32_t)(row * 8 + (chunk ^ (row & 7))) * 16;
    p = range.first + chunk * 8, end = range.end;
#pragma unroll 1
    for (int i = (int)thread_id(); i < tile; i += threads) {
      int2 entry = {0, 0};
      if (first_row + i < a.rows) entry = make_entry(conv_position(&a, first_row + i));
      ((int2 *)rows)[i] = entry;
    }
    table = group_address(rows) + (uint32_t)row * 8;
    group_barrier();
  }
  GEMM_MEMBER int2 make_entry(conv_place place) const {
    int before = place.z * args.image_stride[1] + place.y * args.image_stride[2] + place.x * args.image_stride[3];
    int taps = (int)(args.tap.size[0] * args.tap.size[1] * args.tap.size[2]);
    uint32_t inside = 0;
#pragma unroll 1
    for (int t = 0; t < taps; ++t) {
      conv_place at = conv_tap(&args, t * (int)args.tap.size[3]);
      inside |= (conv_offset(&args, place, at) >= 0 ? 1u : 0u) << t;
    }
    return {place.offset * (1 << args.image_shift) + before, (int)inside};
  }
  GEMM_MEMBER void copy(uint32_t stage) {
    int d[4];
    conv_digits(&args.tap, p, d);
    int tap = (d[0] * (int)args.tap.size[1] + d[1]) * (int)args.tap.size[2] + d[2];
    int after = d[0] * args.dilation[0] * args.image_stride[1] + d[1] * args.dilation[1] * args.image_stride[2] +
                d[2] * args.dilation[2] * args.image_stride[3];
    bool in_k = p < end;
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      int2 entry = load_group<int2>(table + i * rows_a_pass * 8);
      bool inside = in_k && ((uint32_t)entry.y >> (tap & 31) & 1);
      int at = inside ? ((entry.x + after) >> args.image_shift) + d[3] : 0;
      async_copy16(stage + to + i * rows_a_pass * 8 * 16, base + at, inside ? 16 : 0);
    }
    p += PIPE_STEP;
  }
};

/* An operand that lies across k. |rows|.offset(p) tells where; |limit| is the number of rows of the operand. */
template <int tile, int threads, typename source>
struct pipe_rows {
  static constexpr int row_chunks = tile / 8, rows_a_pass = threads / row_chunks, passes = PIPE_STEP / rows_a_pass;
  static_assert(rows_a_pass % 8 == 0, "the permutation is the same in every pass");
  source rows;
  const uint16_t *base;
  uint32_t to, in_chunk;
  int p;
  GEMM_MEMBER pipe_rows(const source &from, const void *matrix, int first_p, int first_row, int limit)
      : rows(from), base((const uint16_t *)matrix) {
    int chunk = (int)thread_id() % row_chunks, row = (int)thread_id() / row_chunks;
    to = (uint32_t)(row * row_chunks + (chunk ^ (row & 7))) * 16;
    in_chunk = bytes_of_8(limit - first_row - chunk * 8);
    p = first_p + row;
  }
  GEMM_MEMBER void copy(uint32_t stage) {
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      int at = rows.offset(p + i * rows_a_pass);
      async_copy16(stage + to + i * rows_a_pass * row_chunks * 16, base + (at >= 0 ? at : 0), at >= 0 ? in_chunk : 0);
    }
    p += PIPE_STEP;
  }
};

/* The first of the 8 rows of an operand across k that this thread copies. */
template <int tile>
RDNA_DEVICE int pipe_rows_first(int first_row) {
  return first_row + (int)thread_id() % (tile / 8) * 8;
}

template <typename type, typename plan>
RDNA_DEVICE void conv_pipe_image(const struct conv_args &args, const conv_range &range, int row0, int column0,
                                 uint8_t *memory, mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  constexpr int threads = plan::threads, tile_n = plan::tile_n;
  const uint16_t *other = (const uint16_t *)args.other + (int64_t)range.group * args.other_group;
  uint32_t at = group_address(memory);
  pipe_image<plan::tile_m, threads> image(args, range, row0, memory + plan::bytes);
  if (args.flags & CONV_OTHER_RUNS) {
    pipe_operand<tile_n, threads, true> weights;
    weights.init(other, args.other_row, column0, args.columns, args.k);
    pipe_product<type, plan, true, true>(image, weights, args.k, at, sum);
  } else {
    typedef other_rows<true> source;
    pipe_rows<tile_n, threads, source> weights(source(args, range, pipe_rows_first<tile_n>(column0)), other,
                                               range.first, column0, args.columns);
    pipe_product<type, plan, true, false>(image, weights, args.k, at, sum);
  }
}

template <typename type, typename plan>
RDNA_DEVICE void conv_pipe_weight(const struct conv_args &args, const conv_range &range, int row0, int column0,
                                  uint8_t *memory, mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  constexpr int threads = plan::threads, tile_m = plan::tile_m, tile_n = plan::tile_n;
  typedef other_rows<false> channels;
  pipe_rows<tile_m, threads, channels> other(channels(args, range, pipe_rows_first<tile_m>(row0)),
                                             (const uint16_t *)args.other + (int64_t)range.group * args.other_group,
                                             range.first, row0, args.rows);
  pipe_rows<tile_n, threads, image_rows> image(image_rows(args, range, pipe_rows_first<tile_n>(column0)),
                                               (const uint16_t *)args.image + (int64_t)range.group * args.image_group,
                                               range.first, column0, args.columns);
  pipe_product<type, plan, false, false>(other, image, range.end - range.first, group_address(memory), sum);
}
#endif

#endif
