/* Convolutions by AMD's MIOpen, in immediate mode: no search. */
#ifndef RDNA_MATH_CONV_MIOPEN_H
#define RDNA_MATH_CONV_MIOPEN_H

#include "math/conv/conv.h"
#include "math/vendor/vendor.h"

typedef struct rdna__conv_call {
  rdna__conv_mode mode;
  const rdna_convolution *conv;
  const rdna_tensor *x, *weight, *y, *bias; /* bias may be NULL */
} rdna__conv_call;

/* Whether MIOpen is there and has a solution. The first question about a shape may take seconds, because MIOpen
 * compiles what it has no binary of; the answer is kept. */
bool rdna__conv_miopen_applies(rdna_device *device, const rdna__conv_call *call);
/* RDNA_UNSUPPORTED, with nothing queued, where it does not apply. */
rdna_status rdna__conv_miopen_run(rdna_stream *stream, const rdna__conv_call *call);

/* Runs a checked convolution by our kernels or, where that was found to be faster, by MIOpen. |args| is complete. */
rdna_status rdna__conv_run(rdna_stream *stream, const char *operator, const rdna__conv_call * call,
                           const struct conv_args *args);
/* Our kernels. */
rdna_status rdna__conv_launch(rdna_stream *stream, const char *operator, rdna__conv_mode mode, rdna_dtype dtype,
                              const struct conv_args *args);

#endif
