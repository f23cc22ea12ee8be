/* The kernels that multiply f32 by blocks of each format, among which gemm.c chooses. */
#include "math/gemm/gemm_product.h"
#include "math/quant/quant.h"
#include "math/quant/quant_kernels.h"

uint32_t rdna__quant_gemv_groups(rdna_stream *stream, uint32_t groups) {
  enum { RESIDENT = 2 }; /* groups on a multiprocessor or compute unit */
  uint32_t room = RESIDENT * (uint32_t)rdna_device_get_info(rdna_stream_device(stream))->compute_units;
  return groups < room ? groups : room;
}

const rdna__gemm_product *rdna__quant_product(const rdna_dtype types[3]) {
#define PRODUCT(X, name, NAME, ...)                                      \
  [RDNA_##NAME] = {.types = {RDNA_F32, RDNA_##NAME, RDNA_F32},           \
                   .kernels = {[LARGE] = "gemm_f32_" #name "_f32_large", \
                               [SMALL] = "gemm_f32_" #name "_f32_small", \
                               [M1] = "gemv_f32_" #name "_f32_m1",       \
                               [M4] = "gemv_f32_" #name "_f32_m4",       \
                               [M8] = "gemv_f32_" #name "_f32_m8"},      \
                   .vector_rows = QUANT_GEMV_GROUP_ROWS,                 \
                   .vector_groups = rdna__quant_gemv_groups},
  static const rdna__gemm_product products[RDNA_DTYPE_COUNT] = {RDNA_BLOCK_FORMATS(PRODUCT, )};
#undef PRODUCT
  const rdna__gemm_product *product = &products[types[1]];
  return product->vector_rows && types[0] == RDNA_F32 && types[2] == RDNA_F32 ? product : NULL;
}
