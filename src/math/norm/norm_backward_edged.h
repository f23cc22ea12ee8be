/* Gradients of norms, kind 3: rows that do not begin at multiples of 16 bytes, but all alike: in each row of a slice,
 * of x, dout and dx, as many values come before the first multiple of 16 bytes.
 *
 *     head      vectors of 16 bytes       tail       a thread has vectors as in row_layout, and at most one single
 *     . . . | . . . . | . . . . | ... | . .          value of head or tail */
#ifndef RDNA_MATH_NORM_NORM_BACKWARD_EDGED_H
#define RDNA_MATH_NORM_NORM_BACKWARD_EDGED_H

#include "math/common/edges.h"
#include "math/norm/norm_backward_held.h"

/* As held_slices for a group. |weight|, |columns|: group memory of NORM_BACKWARD_HELD_COLS values, of which weight[0]
 * is that of the first vector's first value. */
template <typename type, typename weights>
RDNA_DEVICE void edged_slices(const norm_backward_args &args, float *scratch, typename weights::stored *weight,
                              float *columns) {
  typedef row_layout<type, group_team<threads>, true> place;
  constexpr uint32_t size = type::IN_16;
  constexpr int vectors = NORM_BACKWARD_HELD_COLS / threads / size;
  for (int64_t slice = group_id_x(); slice < args.slices; slice += group_count_x()) {
    const norm_backward_args &a = arguments_again(args);
    float dweight[vectors][size] = {}, dbias[vectors][size] = {};
    const row_edges e =
        row_edges_of(address_of(a.x) + (uint64_t)(slice * a.x_stride * type::BYTES), (uint64_t)a.cols, size);
    const uint32_t single = (uint32_t)row_edges_single(&e, (uint64_t)a.cols, thread_id(), size);
    row_edge<type> edge;
    edge.head = wave_uniform_u32((uint32_t)e.head), edge.cols = wave_uniform_u32((uint32_t)e.vectors * size);
    edge.single = single < (uint32_t)a.cols ? single : edge.NONE;
    edge.weight = 1, edge.dweight = edge.dbias = 0, edge.weights = weight;
    if (a.weight && edge.single != edge.NONE) edge.weight = weights::load(a.weight, edge.single);
    group_barrier(); /* the last slice's weights have been read */
    for (uint32_t i = thread_id(); i < edge.cols; i += threads) {
      weight[i] = a.weight ? ((const typename weights::stored *)a.weight)[edge.head + i] : stored_of<weights>(1);
    }
    group_barrier();
    row_bits<type, vectors> bits;
    if (slice < a.rows) load_row<type, place, vectors, true>(a, slice, bits, edge);
    for (int64_t row = slice; row < args.rows; row += args.slices) {
      held_row<type, weights, group_team<threads>, vectors, true, true>(a, row, row + args.slices, bits, dweight, dbias,
                                                                        edge, scratch);
    }
    float *to = args.partial + slice * args.cols, *to_bias = to + args.slices * args.cols;
    if (edge.single != edge.NONE) to[edge.single] = edge.dweight, to_bias[edge.single] = edge.dbias;
#pragma unroll
    for (int which = 0; which < 2; which++) { /* through group memory, so that threads write neighbours */
      float *from_head = (which ? to_bias : to) + edge.head;
      group_barrier();
#pragma unroll
      for (uint32_t j = 0; j < (uint32_t)vectors; j++) {
        if (place::column(j, 0) >= edge.cols) continue;
        place::template store<f32>(columns, j, edge.cols, which ? dbias[j] : dweight[j]);
      }
      group_barrier();
      for (uint32_t i = thread_id(); i < edge.cols; i += threads) from_head[i] = columns[i];
    }
  }
}

#endif
