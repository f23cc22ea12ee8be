/* What the operator and the generated cases of convolution share. */
#ifndef RDNA_MATH_CONV_H
#define RDNA_MATH_CONV_H

#include "math/conv/conv_kernels.h"
#include "rdna/op/conv.h"

typedef enum rdna__conv_mode { RDNA__CONV_FORWARD, RDNA__CONV_DATA, RDNA__CONV_WEIGHT } rdna__conv_mode;

/* Fills |out_args| but for the bias. The tensors agree with each other, and offsets fit in 31 bits. */
void rdna__conv_args_make(rdna__conv_mode mode, const rdna_convolution *conv, const rdna_tensor *x,
                          const rdna_tensor *weight, const rdna_tensor *y, struct conv_args *out_args);

#endif
