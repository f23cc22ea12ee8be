/* Elementary operations on f64, of which every GPU but the largest does few at once: memory waits for them. */
#include "kernel/prelude.h"
#include "math/pointwise/pointwise_elementary.h"
#include "math/pointwise/pointwise_f64_kernels.h"

RDNA_DEVICE double operand_at(const pointwise_args &a, int k, int64_t at) {
  return a.constants >> k & 1 ? a.constant.real : ((const double *)a.operand[k].data)[at];
}

RDNA_KERNEL(RDNA__POINTWISE_THREADS) map_elementary_f64(struct pointwise_args a) {
  uint32_t i = group_id_x() * RDNA__POINTWISE_THREADS + thread_id();
  if (i >= a.shape.count) return;
  int64_t at[2];
  strided_offsets(&a.shape, a.operand, 2, i, at);
  double v = operand_at(a, 1, at[1]);
  pointwise_map_elementary(a.op, &v, 1, a.p.real, a.q.real);
  ((double *)a.operand[0].data)[at[0]] = v;
}

RDNA_KERNEL(RDNA__POINTWISE_THREADS) zip_elementary_f64(struct pointwise_args a) {
  uint32_t i = group_id_x() * RDNA__POINTWISE_THREADS + thread_id();
  if (i >= a.shape.count) return;
  int64_t at[3];
  strided_offsets(&a.shape, a.operand, 3, i, at);
  double v = operand_at(a, 1, at[1]), w = operand_at(a, 2, at[2]);
  pointwise_zip_elementary(a.op, &v, &w, 1, a.p.real, a.q.real);
  ((double *)a.operand[0].data)[at[0]] = v;
}
