/* Host twins of spread_kernels.h. */
#include "math/common/host/doubles.h"
#include "math/conv/spread_kernels.h"

typedef struct job {
  struct conv_args args;
  rdna_dtype dtype;
} job;

static void positions(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const struct conv_args *a = &j->args;
  for (int64_t position = begin; position < end; position++) {
    int32_t at[4];
    conv_digits(&a->position, (int32_t)position, at);
    for (int32_t channel = 0; channel < a->columns; channel++) {
      double sum = (double)spread_sum(a, at, channel) + (a->bias ? load_double(j->dtype, a->bias, channel) : 0);
      int64_t to = (int64_t)channel * a->out_channel;
      for (int d = 0; d < 4; d++) to += (int64_t)at[d] * a->out_digits[d];
      store_double(j->dtype, a->out, to, sum);
    }
  }
}

#define TWIN(type, dtype)                                                       \
  void RDNA_HOST_KERNEL(conv_spread_##type)(const void *args, rdna_grid grid) { \
    job j = {*(const struct conv_args *)args, dtype};                           \
    rdna__parallel_for(j.args.rows, 64, positions, &j);                         \
  }
TWIN(f32, RDNA_F32)
TWIN(f16, RDNA_F16)
TWIN(bf16, RDNA_BF16)
