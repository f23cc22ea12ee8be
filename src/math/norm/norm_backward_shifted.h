/* Gradients of norms, kind 4: rows of 16-bit values at any alignment, x, dout and dx each at its own. Rows are loaded
 * as vectors, written to group memory, and read there value by value: a thread has columns that lie a group apart. */
#ifndef RDNA_MATH_NORM_NORM_BACKWARD_SHIFTED_H
#define RDNA_MATH_NORM_NORM_BACKWARD_SHIFTED_H

#include "math/common/edges.h"
#include "math/norm/norm_backward_held.h"

/* A row at any alignment in the registers of a group: vectors, and for some threads a single value before or after
 * them. */
template <typename type>
struct shifted_row {
  enum : uint32_t { SIZE = type::IN_16, VECTORS = NORM_BACKWARD_HELD_COLS / threads / SIZE };
  uint4 vector[VECTORS];
  typename type::stored single;
  RDNA_DEVICE void load(shifted_row &r, const char *row, uint32_t cols) {
    row_edges e = row_edges_of(address_of(row), cols, SIZE);
    const char *body = row + e.head * type::BYTES;
    uint32_t single = (uint32_t)row_edges_single(&e, cols, thread_id(), SIZE);
#pragma unroll
    for (uint32_t j = 0; j < VECTORS; j++) {
      uint32_t i = j * threads + thread_id();
      if (i < (uint32_t)e.vectors) r.vector[j] = load_as<uint4>(body + i * 16);
    }
    if (single < cols) r.single = ((const typename type::stored *)row)[single];
  }
  /* Where column 0 of |row| lies in group memory, in values. */
  RDNA_DEVICE uint32_t origin(const char *row) { return (uint32_t)(address_of(row) & 15) / type::BYTES; }
  /* Writes it to group memory at the same place of 16 bytes as |row| has in memory. */
  RDNA_DEVICE void put(const shifted_row &r, const char *row, uint32_t cols, uint4 *to) {
    row_edges e = row_edges_of(address_of(row), cols, SIZE);
    uint32_t first = origin(row) ? 1 : 0, single = (uint32_t)row_edges_single(&e, cols, thread_id(), SIZE);
#pragma unroll
    for (uint32_t j = 0; j < VECTORS; j++) {
      uint32_t i = j * threads + thread_id();
      if (i < (uint32_t)e.vectors) to[first + i] = r.vector[j];
    }
    if (single < cols) ((typename type::stored *)to)[origin(row) + single] = r.single;
  }
};

/* Calls at(k) for the thread's columns k * threads + thread_id(), four at a time without a branch between them: some
 * may be past the end. */
template <typename each>
RDNA_DEVICE void for_columns(uint32_t cols, const each &at) {
#pragma unroll
  for (uint32_t first = 0; first < NORM_BACKWARD_HELD_COLS / threads; first += 4) {
    if (first * threads >= cols) return;
#pragma unroll
    for (uint32_t k = first; k < first + 4; k++) at(k);
  }
}

/* Columns past the end are read from group memory too, where there is always something, and count for nothing. What is
 * read passes through again(), or the compiler would move the read below the condition and wait for it there. */
template <typename type, typename weights>
RDNA_DEVICE void shifted_slices(const norm_backward_args &args, float *scratch, uint4 *x_shared, uint4 *dout_shared,
                                typename weights::stored *w_shared) {
  typedef shifted_row<type> row_of;
  constexpr uint32_t values = NORM_BACKWARD_HELD_COLS / threads;
  typedef typename type::stored stored;
  const typename weights::stored *w_values = w_shared + thread_id();
  auto column = [](uint32_t k) { return k * threads + thread_id(); };
  for (uint32_t i = thread_id(); i < NORM_BACKWARD_HELD_COLS; i += threads) {
    w_shared[i] = stored_of<weights>(1);
    if (args.weight && i < (uint32_t)args.cols) w_shared[i] = ((const typename weights::stored *)args.weight)[i];
  }
  for (uint32_t i = thread_id(); i < NORM_BACKWARD_HELD_COLS / type::IN_16 + 1; i += threads) {
    x_shared[i] = dout_shared[i] = uint4{};
  }
  for (int64_t slice = group_id_x(); slice < args.slices; slice += group_count_x()) {
    float dweight[values] = {}, dbias[values] = {};
    row_of x_row, dout_row;
    auto load = [&](int64_t row) {
      const norm_backward_args &a = arguments_again(args);
      row_of::load(x_row, (const char *)a.x + row * a.x_stride * type::BYTES, (uint32_t)a.cols);
      row_of::load(dout_row, (const char *)a.dout + row * a.dout_stride * type::BYTES, (uint32_t)a.cols);
    };
    if (slice < args.rows) load(slice);
    for (int64_t row = slice; row < args.rows; row += args.slices) {
      const norm_backward_args &a = arguments_again(args);
      const char *x_from = (const char *)a.x + row * a.x_stride * type::BYTES;
      const char *dout_from = (const char *)a.dout + row * a.dout_stride * type::BYTES;
      uint32_t cols = (uint32_t)a.cols;
      const float count = (float)cols;
      group_barrier(); /* the last row has been read */
      row_of::put(x_row, x_from, cols, x_shared);
      row_of::put(dout_row, dout_from, cols, dout_shared);
      group_barrier();
      float y[values], mean = 0, sums[3] = {0, 0, 0}; /* of y^2, g y and g */
      const stored *x_values = (const stored *)x_shared + row_of::origin(x_from) + thread_id();
      const stored *dout_values = (const stored *)dout_shared + row_of::origin(dout_from) + thread_id();
      for_columns(cols, [&](uint32_t k) { y[k] = again(type::load(x_values, k * threads)); });
      if (row + args.slices < args.rows) load(row + args.slices);
      if (a.mean) {
        mean = a.mean[row];
      } else if (a.centred) {
        float sum = 0;
        for_columns(cols, [&](uint32_t k) { sum += column(k) < cols ? y[k] : 0; });
        mean = group_team<threads>::sum(sum, scratch) / count;
      }
      cols = again_uniform(cols);
      for_columns(cols, [&](uint32_t k) {
        const bool there = column(k) < cols;
        float g = again(type::load(dout_values, k * threads) * weights::load(w_values, k * threads));
        g = there ? g : 0;
        y[k] = there ? y[k] - mean : 0;
        sums[0] = fma_f32(y[k], y[k], sums[0]);
        sums[1] = fma_f32(g, y[k], sums[1]);
        sums[2] += g;
      });
      group_team<threads>::sums(sums, scratch);
      const norm_backward_args &last = arguments_again(args);
      stored *dx = (stored *)((char *)last.dx + row * last.dx_stride * type::BYTES);
      float inverse = inverse_of(last, row, sums[0] / count);
      float of_y = -(sums[1] * inverse / count) * inverse, level = last.centred ? -(sums[2] / count) * inverse : 0;
      cols = again_uniform(cols);
      for_columns(cols, [&](uint32_t k) {
        const float d = type::load(dout_values, k * threads), w = again(weights::load(w_values, k * threads));
        const float normal = y[k] * inverse;
        dweight[k] = fma_f32(d, normal, dweight[k]);
        dbias[k] += d;
        float v = fma_f32(normal, of_y, fma_f32(d * w, inverse, level));
        if (column(k) < cols) dx[column(k)] = stored_of<type>(v);
      });
    }
    float *to = args.partial + slice * args.cols, *to_bias = to + args.slices * args.cols;
#pragma unroll
    for (uint32_t k = 0; k < values; k++) {
      if (column(k) < (uint32_t)args.cols) to[column(k)] = dweight[k], to_bias[column(k)] = dbias[k];
    }
  }
}

#endif
