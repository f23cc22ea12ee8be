/* Something of everything that kernels use, for retarget_test.c. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"

struct mixture_args {
  const float *x;
  const uint16_t *h;
  float *out;
  uint32_t *counts;
  uint32_t count;
};

RDNA_KERNEL(256) mixture(struct mixture_args a) {
  RDNA_SHARED float scratch[GROUP_SCRATCH(256)];
  RDNA_SHARED uint32_t words[GROUP_SCRATCH(256)];
  uint32_t i = group_id_x() * 256 + thread_id();
  float x = i < a.count ? a.x[i] : 0, s, c;
  scalar_sincos(x, &s, &c);
  float sum = group_sum_f32<256>(s * c, scratch) + group_max_f32<256>(scalar_exp(x), scratch);
  uint32_t largest = group_max_u32<256>(i, words);
  if (thread_id() == 0) atomic_add_u32(a.counts + largest % 16, 1);
  atomic_add_f32(a.out + a.count + group_id_y() % group_count_x(), fast_exp2(x) * fast_rsqrt(x));
  half2 h = load_as<half2>(a.h + 2 * i);
  if (i < a.count)
    a.out[i] = sum / x + dot2_f16(h, h, x) + (float)dot4_i8((int32_t)i, 3, 5) + f16_to_f32(f32_to_f16(x)) +
               bf16_to_f32(f32_to_bf16(scalar_erf(x)));
}
