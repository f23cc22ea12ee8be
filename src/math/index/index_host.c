/* Embedding lookup on the host. A quantized row is contiguous blocks, which the quant family's twins convert. */
#include "kernel/host.h"
#include "math/common/host/floats.h"
#include "math/index/index_kernels.h"
#include "math/quant/quant_unpack.h"

#define DECLARE(F, NAME) void RDNA_HOST_KERNEL(dequantize_##F##_f32)(const void *args, rdna_grid grid);
RDNA_QUANT_FORMATS(DECLARE)

struct work {
  struct gather_args a;
  rdna_dtype dtype;                                     /* of a table of floats */
  void (*dequantize)(const void *args, rdna_grid grid); /* of a quantized table, else NULL */
  int64_t block_values, block_bytes;
};

static void gather_tokens(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct gather_args *a = &work->a;
  for (int64_t token = begin; token < end; token++) {
    int64_t id = a->ids[token];
    float *out = a->out + token * a->out_stride;
    if (id < 0 || id >= a->rows) {
      for (int64_t i = 0; i < a->cols; i++) out[i] = __builtin_nanf("");
      continue;
    }
    const char *row = (const char *)a->table + id * (a->table_stride / work->block_values) * work->block_bytes;
    if (work->dequantize) {
      struct dequantize_args args = {.blocks = row, .out = out, .count = a->cols};
      work->dequantize(&args, (rdna_grid){1, 1, 1});
    } else {
      floats_load(work->dtype, row, a->cols, out);
    }
  }
}

static void gather(struct work work) {
  int64_t grain = work.a.cols > 0 ? 1 + (1 << 15) / work.a.cols : work.a.tokens;
  rdna__parallel_for(work.a.tokens, grain, gather_tokens, &work);
}

#define FLOATS(name, type)                                                                       \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) {                                \
    gather((struct work){*(const struct gather_args *)args, type, NULL, 1, floats_bytes(type)}); \
  }
FLOATS(gather_rows_f16, RDNA_F16)
FLOATS(gather_rows_bf16, RDNA_BF16)

#define BLOCKS(F, NAME)                                                                                       \
  void RDNA_HOST_KERNEL(gather_rows_##F)(const void *args, rdna_grid grid) {                                  \
    gather((struct work){*(const struct gather_args *)args, RDNA_F32, RDNA_HOST_KERNEL(dequantize_##F##_f32), \
                         quant_values(RDNA_##NAME), quant_bytes(RDNA_##NAME)});                               \
  }
RDNA_QUANT_FORMATS(BLOCKS)
