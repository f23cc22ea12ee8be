/* Convolution of bf16 on matrix units. */
#define RDNA_SM_90A_IMAGE /* a second one: cmake/kernels.cmake */
#include "math/conv/conv_mma.h"

CONV_MMA_DEFINE(bf16)
