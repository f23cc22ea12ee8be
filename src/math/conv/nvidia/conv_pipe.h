/* Device code: the operands of a convolution's product as NVIDIA's asynchronous copies gather them. For .hip files
 * only; see math/gemm/nvidia/gemm_pipe.h. Where values lie is counted on from step to step rather than found anew: a
 * thread has few instructions for each copy beside those of the product. */
#ifndef RDNA_MATH_CONV_NVIDIA_CONV_PIPE_H
#define RDNA_MATH_CONV_NVIDIA_CONV_PIPE_H

#include "math/conv/conv_sources.h"

#ifdef RDNA_NVIDIA
template <typename value>
RDNA_DEVICE void store_group(uint32_t address, value v) {
  *(__attribute__((address_space(3))) value *)(uintptr_t)address = v;
}

/* Where the first value of a position's window lies, and which of its taps are inside the image: a bit for each, of
 * which there are at most 32. */
RDNA_DEVICE int2 pipe_window(const struct conv_args &args, conv_place at) {
  int first = at.z * args.image_stride[1] + at.y * args.image_stride[2] + at.x * args.image_stride[3];
  int across = (int)args.tap.size[2], down = (int)args.tap.size[1];
  uint32_t line = 0, plane = 0, inside = 0;
#pragma unroll 1
  for (int i = 0; i < across; ++i, at.x += args.dilation[2])
    line |= ((uint32_t)at.x < (uint32_t)args.image_size[2] ? 1u : 0u) << i;
#pragma unroll 1
  for (int i = 0; i < down; ++i, at.y += args.dilation[1])
    if ((uint32_t)at.y < (uint32_t)args.image_size[1]) plane |= line << (i * across);
#pragma unroll 1
  for (int i = 0; i < (int)args.tap.size[0]; ++i, at.z += args.dilation[0])
    if ((uint32_t)at.z < (uint32_t)args.image_size[0]) inside |= plane << (i * across * down);
  return {at.offset + first, (int)inside};
}

/* The image by positions, with 8 channels of a tap in a chunk. The windows of all rows of the tile are kept in shared
 * memory. */
template <int tile, int threads>
struct pipe_image {
  static constexpr int rows_a_pass = threads / 8, passes = tile / rows_a_pass;
  static constexpr int table_bytes = tile * 8;
  const struct conv_args &args;
  const uint16_t *base;
  uint32_t to, table; /* this thread's first row */
  int left;           /* of k, from this thread's place on */
  int tap, z, y, x, channel, after;

  RDNA_MEMBER pipe_image(const struct conv_args &a, const conv_range &range, int first_row, uint8_t *rows) : args(a) {
    base = (const uint16_t *)a.image + (int64_t)range.group * a.image_group;
    int chunk = (int)thread_id() % 8, row = (int)thread_id() / 8, d[4];
    to = (uint32_t)(row * 8 + (chunk ^ (row & 7))) * 16;
    left = range.end - range.first - chunk * 8;
    conv_digits(&a.tap, range.first + chunk * 8, d);
    z = d[0], y = d[1], x = d[2], channel = d[3];
    tap = (z * (int)a.tap.size[1] + y) * (int)a.tap.size[2] + x;
    place();
#pragma unroll 1
    for (int i = (int)thread_id(); i < tile; i += threads) {
      int2 entry = {0, 0};
      if (first_row + i < a.rows) entry = pipe_window(a, conv_position(&a, first_row + i));
      ((int2 *)rows)[i] = entry;
    }
    table = group_address(rows) + (uint32_t)row * 8;
    group_barrier();
  }
  RDNA_MEMBER void place(void) {
    after = z * args.dilation[0] * args.image_stride[1] + y * args.dilation[1] * args.image_stride[2] +
            x * args.dilation[2] * args.image_stride[3];
  }
  RDNA_MEMBER void copy(uint32_t stage) {
    const uint16_t *from = base + after + channel;
    uint32_t bit = left > 0 ? 1u << (tap & 31) : 0;
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      int2 entry = load_group<int2>(table + i * rows_a_pass * 8);
      bool inside = (uint32_t)entry.y & bit;
      async_copy16(stage + to + i * rows_a_pass * 8 * 16, inside ? from + entry.x : base, inside ? 16 : 0);
    }
    left -= PIPE_STEP, channel += PIPE_STEP;
    if (channel < (int)args.tap.size[3]) return;
    do {
      channel -= (int)args.tap.size[3], ++tap;
      if (++x == (int)args.tap.size[2]) {
        x = 0;
        if (++y == (int)args.tap.size[1]) y = 0, ++z;
      }
    } while (channel >= (int)args.tap.size[3]);
    place();
  }
};

/* The image by taps, 8 channels of one in a chunk, and positions down. The windows of a step's positions are worked out
 * by one thread each, |stages| - 1 steps before they are copied: there is a barrier between. */
template <int tile, int threads, int stages>
struct pipe_windows {
  static constexpr int row_chunks = tile / 8, rows_a_pass = threads / row_chunks, passes = PIPE_STEP / rows_a_pass;
  static constexpr int ahead = stages - 1, slots = 2 * ahead;
  static constexpr uint32_t slot_bytes = PIPE_STEP * 8;
  static_assert(rows_a_pass % 8 == 0, "the permutation is the same in every pass");
  static_assert(CONV_WEIGHT_TABLE(stages) == slots * slot_bytes, "the table fits");
  const struct conv_args &args;
  const uint16_t *from; /* the image, at this thread's tap */
  uint32_t to, table, bit;
  uint32_t slot;        /* whose windows are copied next */
  int left, n, z, y, x; /* positions from the one on that is worked out next, and its digits */
  int step_n, step_z, step_y, step_x;

  RDNA_MEMBER pipe_windows(const struct conv_args &a, const conv_range &range, int first_column, uint8_t *memory)
      : args(a), slot(0) {
    int chunk = (int)thread_id() % row_chunks, row = (int)thread_id() / row_chunks, d[4];
    int column = first_column + chunk * 8;
    bool there = column < a.columns;
    conv_digits(&a.tap, there ? column : 0, d);
    bit = there ? 1u << ((d[0] * (int)a.tap.size[1] + d[1]) * (int)a.tap.size[2] + d[2]) : 0;
    from = (const uint16_t *)a.image + (int64_t)range.group * a.image_group + d[3] +
           d[0] * a.dilation[0] * a.image_stride[1] + d[1] * a.dilation[1] * a.image_stride[2] +
           d[2] * a.dilation[2] * a.image_stride[3];
    to = pipe_place<row_chunks>(row, chunk);
    table = group_address(memory);
    conv_digits(&a.position, range.first + (int)thread_id(), d);
    left = range.end - range.first - (int)thread_id(), n = d[0], z = d[1], y = d[2], x = d[3];
    conv_digits(&a.position, PIPE_STEP, d);
    step_n = d[0], step_z = d[1], step_y = d[2], step_x = d[3];
#pragma unroll 1
    for (int i = 0; i < ahead; ++i) work_out(i);
    group_barrier();
  }
  RDNA_MEMBER void work_out(uint32_t to_slot) {
    if (thread_id() < PIPE_STEP) {
      int2 entry = {0, 0};
      if (left > 0)
        entry = pipe_window(args, {n * args.image_stride[0], z * args.step[0] - args.begin[0],
                                   y * args.step[1] - args.begin[1], x * args.step[2] - args.begin[2]});
      store_group(table + to_slot * slot_bytes + thread_id() * 8, entry);
    }
    left -= PIPE_STEP;
    n += step_n, z += step_z, y += step_y, x += step_x;
    if (x >= (int)args.position.size[3]) x -= (int)args.position.size[3], ++y;
    if (y >= (int)args.position.size[2]) y -= (int)args.position.size[2], ++z;
    if (z >= (int)args.position.size[1]) z -= (int)args.position.size[1], ++n;
  }
  RDNA_MEMBER void copy(uint32_t stage) {
    uint32_t at = table + slot * slot_bytes + thread_id() / row_chunks * 8;
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      int2 entry = load_group<int2>(at + i * rows_a_pass * 8);
      bool inside = (uint32_t)entry.y & bit;
      async_copy16(stage + to + pipe_rows_bytes<row_chunks>(i * rows_a_pass), inside ? from + entry.x : from,
                   inside ? 16 : 0);
    }
    uint32_t later = slot + ahead;
    work_out(later >= slots ? later - slots : later);
    slot = slot + 1 == slots ? 0 : slot + 1;
  }
};

/* The other operand where it lies across k. */
template <int tile, int threads, bool k_is_tap>
struct pipe_others {
  static constexpr int row_chunks = tile / 8, rows_a_pass = threads / row_chunks, passes = PIPE_STEP / rows_a_pass;
  static_assert(rows_a_pass % 8 == 0, "the permutation is the same in every pass");
  const struct conv_args &args;
  const uint16_t *base;
  uint32_t to, in_chunk;
  int p, end;
  int step; /* from one k to the next within a step, or -1: there is none */
  RDNA_MEMBER pipe_others(const struct conv_args &a, const conv_range &range, int first_row, int limit)
      : args(a), end(range.end) {
    int chunk = (int)thread_id() % row_chunks, row = (int)thread_id() / row_chunks;
    base = (const uint16_t *)a.other + (int64_t)range.group * a.other_group + first_row + chunk * 8;
    to = pipe_place<row_chunks>(row, chunk);
    in_chunk = bytes_of_8(limit - first_row - chunk * 8);
    p = range.first + row;
    const struct conv_radix &radix = k_is_tap ? a.tap : a.position;
    step = a.flags & CONV_OTHER_EVEN ? a.other_step : radix.size[3] % PIPE_STEP == 0 ? a.other_k[3] : -1;
  }
  RDNA_MEMBER int offset(int k) const {
    return args.flags & CONV_OTHER_EVEN ? k * args.other_step
                                        : conv_digits_offset(k_is_tap ? &args.tap : &args.position, k, args.other_k);
  }
  RDNA_MEMBER void copy(uint32_t stage) {
    if (step >= 0) {
      const uint16_t *from = base + offset(p);
#pragma unroll
      for (int i = 0; i < passes; ++i) {
        bool inside = p + i * rows_a_pass < end;
        async_copy16(stage + to + pipe_rows_bytes<row_chunks>(i * rows_a_pass), inside ? from : base,
                     inside ? in_chunk : 0);
        from += rows_a_pass * step;
      }
    } else {
#pragma unroll 2
      for (int i = 0; i < passes; ++i) {
        bool inside = p + i * rows_a_pass < end;
        int at = inside ? offset(p + i * rows_a_pass) : 0;
        async_copy16(stage + to + pipe_rows_bytes<row_chunks>(i * rows_a_pass), base + at, inside ? in_chunk : 0);
      }
    }
    p += PIPE_STEP;
  }
};

template <typename type, typename plan>
RDNA_DEVICE void conv_pipe_image(const struct conv_args &args, const conv_range &range, int row0, int column0,
                                 uint8_t *memory, mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  constexpr int threads = plan::threads, tile_n = plan::tile_n;
  uint32_t at = group_address(memory);
  int k = range.end - range.first;
  pipe_image<plan::tile_m, threads> image(args, range, row0, memory + plan::bytes);
  if (args.flags & CONV_OTHER_RUNS) {
    const uint16_t *other = (const uint16_t *)args.other + (int64_t)range.group * args.other_group;
    pipe_operand<tile_n, threads, true> weights;
    weights.init(other + range.first, args.other_row, column0, args.columns, k);
    pipe_product<type, plan, true, true>(image, weights, k, at, sum);
  } else {
    pipe_others<tile_n, threads, true> weights(args, range, column0, args.columns);
    pipe_product<type, plan, true, false>(image, weights, k, at, sum);
  }
}

template <typename type, typename plan>
RDNA_DEVICE void conv_pipe_weight(const struct conv_args &args, const conv_range &range, int row0, int column0,
                                  uint8_t *memory, mma_acc (&sum)[plan::tiles_m][plan::tiles_n]) {
  pipe_others<plan::tile_m, plan::threads, false> other(args, range, row0, args.rows);
  pipe_windows<plan::tile_n, plan::threads, plan::pipe_stages> image(args, range, column0, memory + plan::bytes);
  pipe_product<type, plan, false, false>(other, image, range.end - range.first, group_address(memory), sum);
}
#endif

#endif
