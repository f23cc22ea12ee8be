/* Convolutions by AMD's MIOpen, in immediate mode: no search. */
#ifndef RDNA_MATH_CONV_MIOPEN_H
#define RDNA_MATH_CONV_MIOPEN_H

#include "math/conv/conv.h"
#include "math/vendor/vendor.h"

/* Whose kernels our own way runs, for the tuner. */
#define RDNA__CONV_FAMILIES "conv conv_bf16 conv_f16 winograd spread gemm gemm_bf16 gemm_f16"

/* Whether MIOpen is there and has a solution. The first question about a shape may take seconds, because MIOpen
 * compiles what it has no binary of; the answer is kept. */
bool rdna__conv_miopen_applies(rdna_device *device, const rdna__conv_call *call);
/* RDNA_UNSUPPORTED, with nothing queued, where it does not apply. */
rdna_status rdna__conv_miopen_run(rdna_stream *stream, const rdna__conv_call *call);

#endif
