/* Kernels gemv_*: products of weights of every block format with up to 8 rows of activations. */
#define RDNA_SM_90A_IMAGE /* builds a second image, for sm_90a: see cmake/kernels.cmake */
#include "math/quant/quant_gemv.h"

#include "math/quant/nvidia/quant_gemv_mma.h"

/* Multiplies one row of activations. |shared|: the bytes of group memory that the tiled kernel takes on GPUs of compute
 * capability 9.0; 0: the format has no tiled kernel. */
template <typename format, int shared>
RDNA_DEVICE void quant_gemv_1(const struct gemv_args &args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (shared > 0)
    quant_gemv_tiled<format>(args);
  else
    quant_gemv<stepped_weights<format>, 1>(args);
#else
  quant_gemv<stepped_weights<format>, 1>(args);
#endif
}

#define QUANT_GEMV(F, NAME)                                                                  \
  RDNA_KERNEL_RESIDENT(QUANT_GEMV_THREADS, 2) gemv_f32_##F##_f32_m1(struct gemv_args args) { \
    quant_gemv_1<F, QUANT_GEMV_SHARED_##F>(args);                                            \
  }                                                                                          \
  RDNA_KERNEL(QUANT_GEMV_THREADS) gemv_f32_##F##_f32_m4(struct gemm_args args) {             \
    quant_gemv<block_weights<F>, 4>(args);                                                   \
  }                                                                                          \
  RDNA_KERNEL(QUANT_GEMV_THREADS) gemv_f32_##F##_f32_m8(struct gemm_args args) {             \
    quant_gemv<block_weights<F>, 8>(args);                                                   \
  }
RDNA_QUANT_FORMATS(QUANT_GEMV)
