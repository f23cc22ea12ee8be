/* Softmax, log-softmax and their gradients in f64, made of other operators: f64 has no kernels of its own for them. */
#ifndef RDNA_MATH_SOFTMAX_F64_H
#define RDNA_MATH_SOFTMAX_F64_H

#include <stdbool.h>

#include "base/status.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

/* |dim| counts from 0. Tensors were checked, but for |stream|: f64, of one shape, overlapping as the operators
 * allow. */
rdna_status rdna__softmax_f64(const char *op_name, rdna_stream *stream, const rdna_tensor *x, int dim, double scale,
                              bool log, const rdna_tensor *out);
rdna_status rdna__softmax_f64_backward(const char *op_name, rdna_stream *stream, const rdna_tensor *dout,
                                       const rdna_tensor *out, int dim, double scale, bool log, const rdna_tensor *dx);

#endif
