/* What a fused operator does to its result. */
#ifndef RDNA_TENSORFLOW_ACTIVATION_H
#define RDNA_TENSORFLOW_ACTIVATION_H

#include "kernel.h"
#include "rdna/op/activation.h"

/* By the attribute |activation|. */
rdna_status call_activation(call *c, rdna_activation *out_activation);
/* The same of |x| alone, for what cannot be fused after all. |out| may be |x|. */
rdna_status call_activate(call *c, rdna_activation activation, const rdna_tensor *x, const rdna_tensor *out);

#endif
