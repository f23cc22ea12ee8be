/* Losses and their gradients: the kernels. loss_values.h has losses of values; of cross-entropy, loss_rows.h has rows
 * that belong to a wave or a group and loss_short.h those that are several to a wave.
 *
 * Cross-entropy reads the logits once for the loss; its gradient reads them again and is written: 6 bytes a value of
 * bf16, and an exponential in either pass, about 60 instructions for a lane's 16 bytes where an H200 has time for 110
 * while it reads them. Large inputs should go at the copy rate; of small ones, the three or four launches take as long
 * as their bytes. */
#include "math/loss/loss_short.h"

#define LOSS(type)                                                                                                  \
  RDNA_KERNEL(LOSS_THREADS) loss_values_##type(struct loss_values_args a) {                                         \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                       \
    if (all_16(address_of(a.x) | address_of(a.target) | address_of(a.weight) | address_of(a.out) |                  \
               (uint64_t)a.count * type::BYTES)) {                                                                  \
      loss_values<type, true>(a, scratch);                                                                          \
    } else {                                                                                                        \
      loss_values<type, false>(a, scratch);                                                                         \
    }                                                                                                               \
  }                                                                                                                 \
  RDNA_KERNEL(LOSS_THREADS) loss_values_backward_##type(struct loss_values_backward_args a) {                       \
    if (all_16((a.one ? 0 : address_of(a.dout)) | address_of(a.x) | address_of(a.target) | address_of(a.weight) |   \
               address_of(a.dx) | (uint64_t)a.count * type::BYTES)) {                                               \
      loss_values_backward<type, true>(a);                                                                          \
    } else {                                                                                                        \
      loss_values_backward<type, false>(a);                                                                         \
    }                                                                                                               \
  }                                                                                                                 \
  RDNA_KERNEL(LOSS_THREADS) cross_entropy_##type(struct cross_entropy_args a) {                                     \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                       \
    cross_entropy<type>(a, scratch);                                                                                \
  }                                                                                                                 \
  RDNA_KERNEL(LOSS_THREADS) cross_entropy_backward_##type(struct cross_entropy_backward_args a) {                   \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                       \
    cross_entropy_backward<type>(a, scratch);                                                                       \
  }                                                                                                                 \
  RDNA_KERNEL(LOSS_SUM_THREADS) cross_entropy_finish_##type(struct cross_entropy_finish_args a) {                   \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(LOSS_SUM_THREADS)];                                              \
    cross_entropy_finish<type>(a, scratch);                                                                         \
  }                                                                                                                 \
  RDNA_KERNEL_RESIDENT(LOSS_THREADS, 4) cross_entropy_short_##type(struct cross_entropy_args a) {                   \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                       \
    if (a.cols <= LOSS_SHORT_COLS(4, 1, type::BYTES)) {                                                             \
      cross_entropy_short<type, 4, 1, 1>(a, scratch);                                                               \
    } else if (a.cols <= LOSS_SHORT_COLS(16, 1, type::BYTES)) {                                                     \
      cross_entropy_short<type, 16, 1, 4>(a, scratch);                                                              \
    } else if (a.cols <= LOSS_SHORT_COLS(16, 2, type::BYTES)) {                                                     \
      cross_entropy_short<type, 16, 2, 2>(a, scratch);                                                              \
    } else {                                                                                                        \
      cross_entropy_short<type, 16, 4, 1>(a, scratch);                                                              \
    }                                                                                                               \
  }                                                                                                                 \
  RDNA_KERNEL_RESIDENT(LOSS_THREADS, 4) cross_entropy_backward_short_##type(struct cross_entropy_backward_args a) { \
    if (a.cols <= LOSS_SHORT_COLS(4, 1, type::BYTES)) {                                                             \
      cross_entropy_backward_short<type, 4, 1, 1>(a);                                                               \
    } else if (a.cols <= LOSS_SHORT_COLS(16, 1, type::BYTES)) {                                                     \
      cross_entropy_backward_short<type, 16, 1, 4>(a);                                                              \
    } else if (a.cols <= LOSS_SHORT_COLS(16, 2, type::BYTES)) {                                                     \
      cross_entropy_backward_short<type, 16, 2, 2>(a);                                                              \
    } else {                                                                                                        \
      cross_entropy_backward_short<type, 16, 4, 1>(a);                                                              \
    }                                                                                                               \
  }
LOSS(f32)
LOSS(f16)
LOSS(bf16)

RDNA_KERNEL(LOSS_SUM_THREADS) loss_sum(struct loss_sum_args a) {
  RDNA_SHARED static float scratch[GROUP_SCRATCH(LOSS_SUM_THREADS)];
  constexpr int ahead = 8;
  float sum = 0, weight = 0;
#pragma nounroll
  for (int64_t i = thread_id(); i < a.count; i += ahead * LOSS_SUM_THREADS) {
    float v[ahead], w[ahead];
#pragma unroll
    for (int j = 0; j < ahead; j++) {
      int64_t at = i + j * LOSS_SUM_THREADS;
      v[j] = at < a.count ? a.values[at] : 0;
      w[j] = at < a.count && a.weights ? a.weights[at] : 0;
    }
#pragma unroll
    for (int j = 0; j < ahead; j++) sum += v[j], weight += w[j];
  }
  sum = group_sum_f32<LOSS_SUM_THREADS>(sum, scratch);
  weight = group_sum_f32<LOSS_SUM_THREADS>(weight, scratch);
  if (thread_id() != 0 || group_id_x() != 0) return;
  store_float(a.out, 0, a.dtype, a.weights ? a.scale * sum / weight : a.scale * sum);
  if (a.total) *a.total = weight;
}

RDNA_KERNEL(LOSS_THREADS) loss_store(struct loss_store_args a) {
  for (int64_t i = (int64_t)group_id_x() * threads + thread_id(); i < a.count;
       i += (int64_t)group_count_x() * threads) {
    store_float(a.out, (uint64_t)i, a.dtype, a.values[i]);
  }
}
