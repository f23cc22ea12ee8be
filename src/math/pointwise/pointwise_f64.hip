/* Elementary operations on f64, most of which are 35 to 80 operations in f64. While the largest GPUs copy 4 bytes they
 * do one such operation, others far fewer, so arithmetic bounds these kernels. It remains to keep enough loads of a
 * thread in flight, and to spend few other instructions. */
#include "kernel/arguments.h"
#include "math/pointwise/pointwise_elementary.h"
#include "math/pointwise/pointwise_f64_kernels.h"

static constexpr uint32_t threads = RDNA__POINTWISE_THREADS, values = RDNA__ELEMENTARY_VALUES;

/* The offset of value |i| in each of |count| operands from operand |first| on; i itself if |together|. */
template <int count>
RDNA_DEVICE void places_of(const pointwise_args &a, int first, uint32_t i, int64_t *at) {
  if (a.together) {
#pragma unroll
    for (int k = 0; k < count; k++) at[k] = i;
  } else {
    strided_offsets(&a.shape, a.operand + first, count, i, at);
  }
}

/* Loads a thread's values from |start| on. Those past the end become 1, for which no operation takes a slow path. */
template <int inputs>
RDNA_DEVICE void load_values(const pointwise_args &args, uint32_t start, double v[inputs][values]) {
#pragma unroll
  for (uint32_t j = 0; j < values; j++) {
    const pointwise_args &a = arguments_again(args);
    uint32_t i = start + j * threads;
    int64_t at[inputs];
#pragma unroll
    for (int k = 0; k < inputs; k++) v[k][j] = 1;
    if (i >= a.shape.count) continue;
    places_of<inputs>(a, 1, i, at);
#pragma unroll
    for (int k = 0; k < inputs; k++) {
      v[k][j] = a.constants >> (k + 1) & 1 ? a.constant.real : global((const double *)a.operand[k + 1].data)[at[k]];
    }
  }
}
RDNA_DEVICE void store_values(const pointwise_args &a, uint32_t start, const double *v) {
#pragma unroll
  for (uint32_t j = 0; j < values; j++) {
    uint32_t i = start + j * threads;
    int64_t at[1];
    if (i >= a.shape.count) break;
    places_of<1>(a, 0, i, at);
    ((double *)a.operand[0].data)[at[0]] = v[j];
  }
}

RDNA_KERNEL_RESIDENT(RDNA__POINTWISE_THREADS, 4) map_elementary_f64(struct pointwise_args a) {
  uint32_t start = group_id_x() * threads * values + thread_id();
  double v[1][values];
  load_values<1>(a, start, v);
  const pointwise_args &now = arguments_again(a);
  pointwise_map_elementary(now.op, v[0], values, now.p.real, now.q.real);
  store_values(arguments_again(a), start, v[0]);
}

RDNA_KERNEL_RESIDENT(RDNA__POINTWISE_THREADS, 3) zip_elementary_f64(struct pointwise_args a) {
  uint32_t start = group_id_x() * threads * values + thread_id();
  double v[2][values];
  load_values<2>(a, start, v);
  const pointwise_args &now = arguments_again(a);
  pointwise_zip_elementary(now.op, v[0], v[1], values, now.p.real, now.q.real);
  store_values(arguments_again(a), start, v[0]);
}
