/* Convolution of bf16 on matrix units. */
#include "math/conv/conv_mma.h"

CONV_MMA_DEFINE(bf16)
