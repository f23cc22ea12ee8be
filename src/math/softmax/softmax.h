/* Parts of softmax and log-softmax. */
#ifndef RDNA_MATH_SOFTMAX_H
#define RDNA_MATH_SOFTMAX_H

#include <stdbool.h>

#include "base/status.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

/* Along the last dimension. The stream and the tensors were checked, but for how rows lie: f32, f16 or bf16. */
rdna_status rdna__softmax_rows(const char *op_name, rdna_stream *stream, const rdna_tensor *x, float scale, bool log,
                               const rdna_tensor *out);

/* In f64, made of other operators: there are no kernels of it. |dim| counts from 0. The stream and the tensors were
 * checked: f64, of one shape, overlapping as the operators allow. */
rdna_status rdna__softmax_f64(const char *op_name, rdna_stream *stream, const rdna_tensor *x, int dim, double scale,
                              bool log, const rdna_tensor *out);
rdna_status rdna__softmax_f64_backward(const char *op_name, rdna_stream *stream, const rdna_tensor *dout,
                                       const rdna_tensor *out, int dim, double scale, bool log, const rdna_tensor *dx);

#endif
