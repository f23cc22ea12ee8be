/* Rows of a table by their numbers, on the host. A quantized row is a run of blocks for the quant family's twins. */
#include "kernel/host.h"
#include "math/floats.h"
#include "math/index/index_kernels.h"
#include "math/quant/quant_kernels.h"

void RDNA_HOST_KERNEL(dequantize_q8_0_f32)(const void *args, rdna_grid grid);
void RDNA_HOST_KERNEL(dequantize_q4_0_f32)(const void *args, rdna_grid grid);
void RDNA_HOST_KERNEL(dequantize_q4_K_f32)(const void *args, rdna_grid grid);
void RDNA_HOST_KERNEL(dequantize_q6_K_f32)(const void *args, rdna_grid grid);

struct work {
  struct gather_args a;
  rdna_dtype dtype;                                     /* of a table of floats */
  void (*dequantize)(const void *args, rdna_grid grid); /* or how to take blocks apart */
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
FLOATS(gather_rows_f32, RDNA_F32)
FLOATS(gather_rows_f16, RDNA_F16)
FLOATS(gather_rows_bf16, RDNA_BF16)

#define BLOCKS(name, dequantize, values, bytes)                                                                      \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) {                                                    \
    gather((struct work){*(const struct gather_args *)args, RDNA_F32, RDNA_HOST_KERNEL(dequantize), values, bytes}); \
  }
BLOCKS(gather_rows_q8_0, dequantize_q8_0_f32, 32, 34)
BLOCKS(gather_rows_q4_0, dequantize_q4_0_f32, 32, 18)
BLOCKS(gather_rows_q4_K, dequantize_q4_K_f32, 256, 144)
BLOCKS(gather_rows_q6_K, dequantize_q6_K_f32, 256, 210)
