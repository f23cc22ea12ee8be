/* Operators that work on each value by itself, in f32, f16 and bf16. They compute in f32 and round once.
 *
 * Tensors are contiguous and of one type. |out| may be one of the inputs, or must be apart from them. Empty
 * tensors are RDNA_OK. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, partial overlap.
 * RDNA_UNSUPPORTED: another type, or gaps between the values. */
#ifndef RDNA_OP_ELEMENTWISE_H
#define RDNA_OP_ELEMENTWISE_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rdna_binary {
  RDNA_ADD = 0, /* a + b */
  RDNA_SUB,     /* a - b */
  RDNA_MUL,     /* a * b */
  RDNA_DIV,     /* a / b */
  RDNA_BINARY_COUNT
} rdna_binary;

typedef enum rdna_unary {
  RDNA_NEG = 0,
  RDNA_EXP,
  RDNA_RELU, /* a NaN stays a NaN */
  RDNA_SIGMOID,
  RDNA_TANH,
  RDNA_SILU,      /* x * sigmoid(x) */
  RDNA_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
  RDNA_GELU_ERF,  /* x/2 (1 + erf(x / sqrt(2))) */
  RDNA_UNARY_COUNT
} rdna_unary;

RDNA_API const char *rdna_binary_name(rdna_binary op); /* "add"; "?" outside the enumeration */
RDNA_API const char *rdna_unary_name(rdna_unary op);   /* "silu" */

/* |b| has |a|'s shape, or is one row (cols) of it, (…, cols) + (cols), as for a bias. |out| has |a|'s shape and
 * may be |a|, or |b| when their shapes are equal. */
RDNA_CHECKED rdna_status rdna_op_binary(rdna_stream *stream, rdna_binary op, const rdna_tensor *a, const rdna_tensor *b,
                                        const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_unary(rdna_stream *stream, rdna_unary op, const rdna_tensor *x,
                                       const rdna_tensor *out);
/* x * scale + shift, as one fused multiply-add. */
RDNA_CHECKED rdna_status rdna_op_affine(rdna_stream *stream, const rdna_tensor *x, float scale, float shift,
                                        const rdna_tensor *out);
/* silu(gate) * up: the middle of a Llama's feed-forward layer in one pass. */
RDNA_CHECKED rdna_status rdna_op_swiglu(rdna_stream *stream, const rdna_tensor *gate, const rdna_tensor *up,
                                        const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
