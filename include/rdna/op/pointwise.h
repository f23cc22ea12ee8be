/* Operators that work value by value on tensors of any strides, up to rank 8.
 *
 * Inputs are of one type and are broadcast to |out|'s shape: sizes are matched from the last dimension, and are equal
 * or 1. Strides may be anything, negative too, but no two values of |out| may share a place. |out| may be one of the
 * inputs, with its shape and strides, or must be apart from them. Promotion of types is the caller's.
 *
 * f16 and bf16 compute in f32 and round once; f32 in f32; f64 in f64; i8, u8, i16, i32, i64 and bool in 64 bits,
 * cut to the type (bool: whether it is not 0). Integer division by zero gives 0, its remainder the dividend. What an
 * operation is not offered for is RDNA_UNSUPPORTED. RDNA_INVALID_ARGUMENT: types or shapes that disagree, missing data,
 * partial overlap. Empty tensors are RDNA_OK. */
#ifndef RDNA_OP_POINTWISE_H
#define RDNA_OP_POINTWISE_H

#include <stdbool.h>
#include <stdint.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number that is the same for all values: floating types take |real|, integers and bool |integer|. */
typedef struct rdna_scalar {
  double real;
  int64_t integer;
} rdna_scalar;

static inline rdna_scalar rdna_scalar_real(double v) {
  rdna_scalar s = {v, v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : 0};
  return s;
}
static inline rdna_scalar rdna_scalar_integer(int64_t v) {
  rdna_scalar s = {(double)v, v};
  return s;
}

/* out = f(x), with up to two parameters p and q. R: f32, f16, bf16 and f64, of which elementary functions are off
 * by 1.5 units in the last place at most, softplus by |p x| more where p x is rounded. I: integers and bool. */
typedef enum rdna_map {
  RDNA_MAP_ABS = 0,     /* R I */
  RDNA_MAP_NEG,         /* R I */
  RDNA_MAP_SIGN,        /* R I; a NaN stays one */
  RDNA_MAP_SQUARE,      /* R I */
  RDNA_MAP_AFFINE,      /* R I; x p + q, rounded once */
  RDNA_MAP_CLAMP,       /* R I; at least p, then at most q: hardtanh; a NaN stays one */
  RDNA_MAP_BITWISE_NOT, /* I; for bool the logical one */
  RDNA_MAP_CEIL,        /* R */
  RDNA_MAP_FLOOR,       /* R */
  RDNA_MAP_ROUND,       /* R; ties to even */
  RDNA_MAP_TRUNC,       /* R */
  RDNA_MAP_SQRT,        /* R */
  RDNA_MAP_RSQRT,       /* R */
  RDNA_MAP_RECIPROCAL,  /* R */
  RDNA_MAP_RELU,        /* R I; a NaN stays one */
  RDNA_MAP_LEAKY_RELU,  /* R; slope p below 0 */
  RDNA_MAP_HARDSWISH,   /* R; x min(max(x + 3, 0), 6) / 6 */
  RDNA_MAP_HARDSIGMOID, /* R; min(max(x + 3, 0), 6) / 6 */
  RDNA_MAP_EXP,         /* R */
  RDNA_MAP_EXP2,        /* R */
  RDNA_MAP_EXPM1,       /* R */
  RDNA_MAP_LOG,         /* R */
  RDNA_MAP_LOG2,        /* R */
  RDNA_MAP_LOG10,       /* R */
  RDNA_MAP_LOG1P,       /* R */
  RDNA_MAP_SIN,         /* R */
  RDNA_MAP_COS,         /* R */
  RDNA_MAP_TAN,         /* R */
  RDNA_MAP_TANH,        /* R */
  RDNA_MAP_ERF,         /* R */
  RDNA_MAP_SIGMOID,     /* R */
  RDNA_MAP_SILU,        /* R */
  RDNA_MAP_GELU_TANH,   /* R */
  RDNA_MAP_GELU_ERF,    /* R */
  RDNA_MAP_ELU,         /* R; p (exp(x) - 1) below 0, q x above: selu with its two constants */
  RDNA_MAP_SOFTPLUS,    /* R; log(1 + exp(p x)) / p, or x where p x > q */
  RDNA_MAP_MISH,        /* R; x tanh(softplus(x)) */
  RDNA_MAP_POW,         /* R; x^p */
  RDNA_MAP_COUNT
} rdna_map;

/* out = f(a, b), with up to two parameters. In the backward forms a is the gradient of the result; b is the input x
 * or the result y. */
typedef enum rdna_zip {
  RDNA_ZIP_ADD = 0,          /* R I */
  RDNA_ZIP_SUB,              /* R I */
  RDNA_ZIP_MUL,              /* R I */
  RDNA_ZIP_DIV,              /* R I; integers round towards zero */
  RDNA_ZIP_ADD_SCALED,       /* R I; a + p b, rounded once */
  RDNA_ZIP_MAXIMUM,          /* R I; a NaN wins */
  RDNA_ZIP_MINIMUM,          /* R I; a NaN wins */
  RDNA_ZIP_SQUARED_DIFF,     /* R I; (a - b)^2 */
  RDNA_ZIP_FLOOR_DIV,        /* R I */
  RDNA_ZIP_FMOD,             /* R I; the sign of a */
  RDNA_ZIP_REMAINDER,        /* R I; the sign of b */
  RDNA_ZIP_POW,              /* R I; integers with b < 0: 0 unless a is 1 or -1 */
  RDNA_ZIP_BITWISE_AND,      /* I */
  RDNA_ZIP_BITWISE_OR,       /* I */
  RDNA_ZIP_BITWISE_XOR,      /* I */
  RDNA_ZIP_SHIFT_LEFT,       /* I; 0 for b < 0 or b > 63 */
  RDNA_ZIP_SHIFT_RIGHT,      /* I; copies of the sign for b < 0 or b > 63 */
  RDNA_ZIP_LERP,             /* R; a + p (b - a) */
  RDNA_ZIP_RELU_GRAD,        /* R; x */
  RDNA_ZIP_LEAKY_RELU_GRAD,  /* R; x, slope p */
  RDNA_ZIP_CLAMP_GRAD,       /* R; x, within p to q both included */
  RDNA_ZIP_HARDSWISH_GRAD,   /* R; x */
  RDNA_ZIP_HARDSIGMOID_GRAD, /* R; x */
  RDNA_ZIP_SIGMOID_GRAD,     /* R; y */
  RDNA_ZIP_TANH_GRAD,        /* R; y */
  RDNA_ZIP_SQRT_GRAD,        /* R; y */
  RDNA_ZIP_RSQRT_GRAD,       /* R; y */
  RDNA_ZIP_RECIPROCAL_GRAD,  /* R; y */
  RDNA_ZIP_ATAN2,            /* R */
  RDNA_ZIP_SILU_GRAD,        /* R; x */
  RDNA_ZIP_GELU_TANH_GRAD,   /* R; x */
  RDNA_ZIP_GELU_ERF_GRAD,    /* R; x */
  RDNA_ZIP_ELU_GRAD,         /* R; x; p and q as in RDNA_MAP_ELU */
  RDNA_ZIP_SOFTPLUS_GRAD,    /* R; x; p and q as in RDNA_MAP_SOFTPLUS */
  RDNA_ZIP_COUNT
} rdna_zip;

/* out = f(a, b, c) */
typedef enum rdna_zip3 {
  RDNA_ZIP3_FMA = 0, /* R I; a b + c, rounded once */
  RDNA_ZIP3_ADDCMUL, /* R I; a + p b c */
  RDNA_ZIP3_CLAMP,   /* R I; a at least b, then at most c; a NaN wins */
  RDNA_ZIP3_ADDCDIV, /* R; a + p b / c */
  RDNA_ZIP3_LERP,    /* R; a + c (b - a) */
  RDNA_ZIP3_COUNT
} rdna_zip3;

/* Questions, answered in bool, for every type. Those about one tensor leave b alone. */
typedef enum rdna_compare {
  RDNA_EQ = 0,
  RDNA_NE, /* true for a NaN */
  RDNA_LT,
  RDNA_LE,
  RDNA_GT,
  RDNA_GE,
  RDNA_LOGICAL_AND, /* a NaN counts as true */
  RDNA_LOGICAL_OR,
  RDNA_LOGICAL_XOR,
  RDNA_LOGICAL_NOT, /* of a */
  RDNA_ISNAN,       /* of a */
  RDNA_ISINF,       /* of a */
  RDNA_ISFINITE,    /* of a */
  RDNA_COMPARE_COUNT
} rdna_compare;

/* "abs", "add_scaled"; "?" outside the enumeration */
RDNA_API const char *rdna_map_name(rdna_map op);
RDNA_API const char *rdna_zip_name(rdna_zip op);
RDNA_API const char *rdna_zip3_name(rdna_zip3 op);
RDNA_API const char *rdna_compare_name(rdna_compare op);

RDNA_CHECKED rdna_status rdna_op_map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, rdna_scalar p,
                                     rdna_scalar q, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b,
                                     rdna_scalar p, rdna_scalar q, const rdna_tensor *out);
/* b is a number, or a is when |scalar_first|. */
RDNA_CHECKED rdna_status rdna_op_zip_scalar(rdna_stream *stream, rdna_zip op, const rdna_tensor *x, rdna_scalar scalar,
                                            bool scalar_first, rdna_scalar p, rdna_scalar q, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_zip3(rdna_stream *stream, rdna_zip3 op, const rdna_tensor *a, const rdna_tensor *b,
                                      const rdna_tensor *c, rdna_scalar p, const rdna_tensor *out);
/* |out| is bool. |b| may be NULL for a question about one tensor. */
RDNA_CHECKED rdna_status rdna_op_compare(rdna_stream *stream, rdna_compare op, const rdna_tensor *a,
                                         const rdna_tensor *b, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_compare_scalar(rdna_stream *stream, rdna_compare op, const rdna_tensor *a,
                                                rdna_scalar b, const rdna_tensor *out);
/* |a| where |condition| (bool) is true, else |b|; any type of 1, 2, 4 or 8 bytes. */
RDNA_CHECKED rdna_status rdna_op_where(rdna_stream *stream, const rdna_tensor *condition, const rdna_tensor *a,
                                       const rdna_tensor *b, const rdna_tensor *out);
/* |value| where |condition| is true, else |b|. */
RDNA_CHECKED rdna_status rdna_op_masked_fill(rdna_stream *stream, const rdna_tensor *condition, rdna_scalar value,
                                             const rdna_tensor *b, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
