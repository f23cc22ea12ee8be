/* Device code: losses of values, one by one, and their gradients. */
#ifndef RDNA_MATH_LOSS_LOSS_VALUES_H
#define RDNA_MATH_LOSS_LOSS_VALUES_H

#include "math/common/device/chunk.h"
#include "math/loss/loss_kernels.h"
#include "math/loss/loss_math.h"

static constexpr int threads = LOSS_THREADS;

/* Calls each(i) for the thread's values i of a block: the first of 16 bytes if |wide|, else single values that lie
 * |threads| apart. */
template <typename type, bool wide, typename function>
RDNA_DEVICE void for_block(int64_t block, int64_t count, function each) {
  constexpr int size = chunk<type, wide>::COUNT;
#pragma unroll 2
  for (int j = 0; j < LOSS_BLOCK / threads / size; j++) {
    int64_t i = block * LOSS_BLOCK + (j * threads + (int64_t)thread_id()) * size;
    if (i < count) each((uint64_t)i);
  }
}

/* Groups take slices in turn, of whose blocks the threads take values. */
template <typename type, bool wide>
RDNA_DEVICE void loss_values(const loss_values_args &a, float *scratch) {
  typedef chunk<type, wide> part;
  constexpr int size = part::COUNT;
  int64_t blocks = (a.count + LOSS_BLOCK - 1) / LOSS_BLOCK;
  for (int64_t slice = group_id_x(); slice < a.slices; slice += group_count_x()) {
    float sum = 0;
    for (int64_t block = slice; block < blocks; block += a.slices) {
      for_block<type, wide>(block, a.count, [&] __attribute__((device)) (uint64_t i) {
        float x[size], t[size], w[size];
        part::template load<type>(a.x, i, x);
        part::template load<type>(a.target, i, t);
        if (a.weight) part::template load<type>(a.weight, i, w);
#pragma unroll
        for (int k = 0; k < size; k++) {
          x[k] = loss_of(a.kind, x[k], t[k], a.beta);
          if (a.weight) x[k] *= w[k];
          sum += x[k];
        }
        if (a.out) part::store(a.out, i, x);
      });
    }
    if (a.out) continue;
    sum = group_sum_f32<threads>(sum, scratch);
    if (thread_id() == 0) a.partial[slice] = sum;
  }
}

template <typename type, bool wide>
RDNA_DEVICE void loss_values_backward(const loss_values_backward_args &a) {
  typedef chunk<type, wide> part;
  constexpr int size = part::COUNT;
  int64_t blocks = (a.count + LOSS_BLOCK - 1) / LOSS_BLOCK;
  if (blocks == 0) return;
  float all = 0;
  if (a.one) all = a.scale * (a.dout_f32 ? f32::load(a.dout, 0) : type::load(a.dout, 0));
  for (int64_t block = group_id_x(); block < blocks; block += group_count_x()) {
    for_block<type, wide>(block, a.count, [&] __attribute__((device)) (uint64_t i) {
      float x[size], t[size], g[size];
      part::template load<type>(a.x, i, x);
      part::template load<type>(a.target, i, t);
      if (!a.one) part::template load<type>(a.dout, i, g);
#pragma unroll
      for (int k = 0; k < size; k++) {
        float factor = a.one ? all : a.scale * g[k];
        x[k] = factor * loss_slope(a.kind, x[k], t[k], a.beta);
      }
      if (a.weight) {
        part::template load<type>(a.weight, i, t);
#pragma unroll
        for (int k = 0; k < size; k++) x[k] *= t[k];
      }
      part::store(a.dx, i, x);
    });
  }
}

#endif
