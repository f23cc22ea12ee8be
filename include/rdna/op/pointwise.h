/* Operators that work value by value on tensors of any strides, up to rank 8.
 *
 * Inputs are of one type and are broadcast to |out|'s shape: sizes are matched from the last dimension, and are equal
 * or 1. Strides may be anything, negative too, but no two values of |out| may share a place. |out| may be one of the
 * inputs, with its shape and strides, or must not overlap them. Promotion of types is the caller's.
 *
 * f16 and bf16 compute in f32 and round once; f32 in f32; f64 in f64; i8 to i64, u8 to u64 and bool in 64 bits,
 * cut to the type (bool: whether it is not 0). Integer division by zero gives 0, its remainder the dividend. What an
 * operation is not offered for is RDNA_UNSUPPORTED. RDNA_INVALID_ARGUMENT: types or shapes that disagree, missing data,
 * partial overlap. Empty tensors are RDNA_OK. */
#ifndef RDNA_OP_POINTWISE_H
#define RDNA_OP_POINTWISE_H

#include <stdbool.h>

#include "rdna/op/pointwise.def"
#include "rdna/scalar.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The operations, in the order of rdna/op/pointwise.def, which says of each what it computes and for which types; of
 * these, elementary functions are off by 1.5 units in the last place at most, softplus by |p x| more where p x is
 * rounded. */
#define RDNA__MAP_NUMBER(NAME, ...) RDNA_MAP_##NAME,
#define RDNA__ZIP_NUMBER(NAME, ...) RDNA_ZIP_##NAME,
#define RDNA__ZIP3_NUMBER(NAME, ...) RDNA_ZIP3_##NAME,
#define RDNA__COMPARE_NUMBER(NAME, ...) RDNA_COMPARE_##NAME,

/* out = f(x), with up to two parameters p and q: RDNA_MAP_ABS is 0, RDNA_MAP_NEG 1, … */
typedef enum rdna_map { RDNA_POINTWISE_MAPS(RDNA__MAP_NUMBER, RDNA__MAP_NUMBER, , ) RDNA_MAP_COUNT } rdna_map;
/* out = f(a, b), with up to two parameters: RDNA_ZIP_ADD, … */
typedef enum rdna_zip { RDNA_POINTWISE_ZIPS(RDNA__ZIP_NUMBER, RDNA__ZIP_NUMBER, ) RDNA_ZIP_COUNT } rdna_zip;
/* out = f(a, b, c), with a parameter: RDNA_ZIP3_FMA, … */
typedef enum rdna_zip3 { RDNA_POINTWISE_ZIP3S(RDNA__ZIP3_NUMBER, ) RDNA_ZIP3_COUNT } rdna_zip3;
/* Questions, answered in bool, for every type: RDNA_COMPARE_EQ, … Those about one tensor leave b alone. */
typedef enum rdna_compare { RDNA_POINTWISE_COMPARES(RDNA__COMPARE_NUMBER) RDNA_COMPARE_COUNT } rdna_compare;

/* "abs", "add_scaled"; "?" outside the enumeration. A binding in another language asks for them at its start, from 0 on
 * until "?", rather than type the order again. */
RDNA_API const char *rdna_map_name(rdna_map op);
RDNA_API const char *rdna_zip_name(rdna_zip op);
RDNA_API const char *rdna_zip3_name(rdna_zip3 op);
RDNA_API const char *rdna_compare_name(rdna_compare op);

/* Each of |x|'s values through |op|. */
RDNA_CHECKED rdna_status rdna_op_map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, rdna_scalar p,
                                     rdna_scalar q, const rdna_tensor *out);
/* Each value of |a| with that of |b|. */
RDNA_CHECKED rdna_status rdna_op_zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b,
                                     rdna_scalar p, rdna_scalar q, const rdna_tensor *out);
/* b is a number, or a is when |scalar_first|. */
RDNA_CHECKED rdna_status rdna_op_zip_scalar(rdna_stream *stream, rdna_zip op, const rdna_tensor *x, rdna_scalar scalar,
                                            bool scalar_first, rdna_scalar p, rdna_scalar q, const rdna_tensor *out);
/* Each value of |a| with those of |b| and |c|. */
RDNA_CHECKED rdna_status rdna_op_zip3(rdna_stream *stream, rdna_zip3 op, const rdna_tensor *a, const rdna_tensor *b,
                                      const rdna_tensor *c, rdna_scalar p, const rdna_tensor *out);

/* One operation on each of many tensors, item after item, with the bits of the operators above: several tensors share a
 * launch, if they are f32, f16 or bf16, have no gaps, and operands of one item lie alike (b may be one value).
 * Otherwise an item is computed alone. Items may write what later ones read. Of an operation with fewer inputs b and c,
 * or c, are not looked at. */
typedef struct rdna_pointwise {
  const rdna_tensor *a, *b, *c; /* inputs; a is x */
  const rdna_tensor *out;
} rdna_pointwise;
RDNA_CHECKED rdna_status rdna_op_map_each(rdna_stream *stream, rdna_map op, const rdna_pointwise *items, int count,
                                          rdna_scalar p, rdna_scalar q);
RDNA_CHECKED rdna_status rdna_op_zip_each(rdna_stream *stream, rdna_zip op, const rdna_pointwise *items, int count,
                                          rdna_scalar p, rdna_scalar q);
RDNA_CHECKED rdna_status rdna_op_zip_scalar_each(rdna_stream *stream, rdna_zip op, const rdna_pointwise *items,
                                                 int count, rdna_scalar scalar, bool scalar_first, rdna_scalar p,
                                                 rdna_scalar q);
RDNA_CHECKED rdna_status rdna_op_zip3_each(rdna_stream *stream, rdna_zip3 op, const rdna_pointwise *items, int count,
                                           rdna_scalar p);

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
/* silu(gate) * up, the middle of a Llama's feed-forward layer in one pass. f32, f16 and bf16; all contiguous and of one
 * shape, and RDNA_UNSUPPORTED where there are gaps between values. |out| may be one of the inputs. Other gates, and
 * halves of one tensor, are chains of two steps in rdna/op/fused.h: RDNA_MAP_GELU_TANH, then RDNA_ZIP_MUL; or one of
 * one step, RDNA_ZIP_SWIGLU_CLAMPED. */
RDNA_CHECKED rdna_status rdna_op_swiglu(rdna_stream *stream, const rdna_tensor *gate, const rdna_tensor *up,
                                        const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
