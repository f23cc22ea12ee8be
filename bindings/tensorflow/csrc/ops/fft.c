/* Discrete Fourier transforms of the last dimensions, or of dimensions that an input names. The number of a row tells
 * how many they are; 0: what the input says. */
#include "rdna/op/fft.h"

#include <string.h>

#include "compose.h"
#include "ops.h"

struct axes {
  int count, dim[RDNA_MAX_RANK];
  int64_t length[RDNA_MAX_RANK]; /* -1: what the input has */
};

/* Inputs 1 and 2, both in host memory, where the operator has them: lengths, and dimensions. */
static rdna_status read_axes(call *c, int rank, struct axes *out) {
  int64_t dims[RDNA_MAX_RANK];
  int count;
  *out = (struct axes){.count = c->number};
  for (int i = 0; i < out->count; i++) out->dim[i] = rank - out->count + i, out->length[i] = -1;
  if (out->count > rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Input must have rank of at least %d but got %d", out->count, rank);
  if (call_inputs(c) < 2) return RDNA_OK;
  TRY(call_integers(c, 1, RDNA_MAX_RANK, out->length, &count));
  if (c->number) {
    if (count != c->number) return call_fail(c, RDNA_INVALID_ARGUMENT, "fft_length must have shape [%d]", c->number);
  } else {
    unsigned seen = 0;
    TRY(call_integers(c, 2, RDNA_MAX_RANK, dims, &out->count));
    if (count != out->count || count == 0)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "fft_length and axes must have the same, non-zero size");
    for (int i = 0; i < count; i++) {
      out->dim[i] = (int)(dims[i] < 0 ? dims[i] + rank : dims[i]);
      if (out->dim[i] < 0 || out->dim[i] >= rank || seen >> out->dim[i] & 1)
        return call_fail(c, RDNA_INVALID_ARGUMENT, "axes must be different dimensions of the input");
      seen |= 1u << out->dim[i];
    }
  }
  for (int i = 0; i < out->count; i++)
    if (out->length[i] < 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "fft_length must be >= 0");
  return RDNA_OK;
}

/* |x| cut, or where an input names the dimensions filled up with zeros, to |shape|; |x| itself where it has it. */
static rdna_status fitted(call *c, const rdna_tensor *x, const int64_t *shape, rdna_tensor *out) {
  int64_t before[RDNA_MAX_RANK] = {0};
  for (int i = 0; i < x->rank && c->number; i++)
    if (x->shape[i] < shape[i] && x->shape[i])
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Input dimension %d must have length of at least %lld but got: %lld",
                       i, (long long)shape[i], (long long)x->shape[i]);
  *out = *x;
  if (same_shape(x, x->rank, shape)) return RDNA_OK;
  TRY(call_scratch(c, x->dtype, x->rank, shape, out));
  if (rdna_tensor_count(x) == 0) return fill(c, 0, out);
  return rdna_op_pad(c->stream, RDNA_PAD_MODE_CONSTANT, x, before, zero, out);
}

static rdna_status transform(call *c, bool inverse, const rdna_tensor *x, int dim, const rdna_tensor *out) {
  double scale = inverse ? 1.0 / (double)x->shape[dim] : 1;
  return rdna_op_fft_c2c(c->stream, inverse, scale, x, dim, out);
}

static rdna_status complex_to_complex(call *c, bool inverse) {
  rdna_tensor x, out, from;
  struct axes axes;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_pairs(c, 0, &x));
  TRY(read_axes(c, x.rank - 1, &axes));
  memcpy(shape, x.shape, sizeof shape);
  for (int i = 0; i < axes.count; i++)
    if (axes.length[i] >= 0) shape[axes.dim[i]] = axes.length[i];
  TRY(call_output_pairs(c, 0, x.rank - 1, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(fitted(c, &x, shape, &from));
  for (int i = 0; i < axes.count; i++) TRY(transform(c, inverse, i ? &out : &from, axes.dim[i], &out));
  return RDNA_OK;
}

rdna_status compute_fft(call *c) { return complex_to_complex(c, false); }

rdna_status compute_ifft(call *c) { return complex_to_complex(c, true); }

/* Of reals: the last of the dimensions keeps half. */
rdna_status compute_rfft(call *c) {
  rdna_tensor x, out, from;
  struct axes axes;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  TRY(read_axes(c, x.rank, &axes));
  memcpy(shape, x.shape, sizeof shape);
  for (int i = 0; i < axes.count; i++) shape[axes.dim[i]] = axes.length[i];
  int last = axes.dim[axes.count - 1];
  int64_t length = shape[last];
  shape[last] = length ? length / 2 + 1 : 0;
  TRY(call_output_pairs(c, 0, x.rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  shape[last] = length;
  TRY(fitted(c, &x, shape, &from));
  TRY(rdna_op_fft_r2c(c->stream, 1, &from, last, &out));
  for (int i = 0; i < axes.count - 1; i++) TRY(transform(c, false, &out, axes.dim[i], &out));
  return RDNA_OK;
}

rdna_status compute_irfft(call *c) {
  rdna_tensor x, out, from, turned;
  struct axes axes;
  int64_t shape[RDNA_MAX_RANK], half[RDNA_MAX_RANK];
  TRY(call_pairs(c, 0, &x));
  TRY(read_axes(c, x.rank - 1, &axes));
  memcpy(shape, x.shape, sizeof shape);
  for (int i = 0; i < axes.count; i++) shape[axes.dim[i]] = axes.length[i];
  int last = axes.dim[axes.count - 1];
  TRY(call_output(c, 0, x.rank - 1, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  memcpy(half, shape, sizeof half);
  half[last] = shape[last] / 2 + 1;
  half[x.rank - 1] = 2;
  TRY(fitted(c, &x, half, &from));
  turned = from;
  if (axes.count > 1) TRY(like(c, &from, &turned));
  for (int i = 0; i < axes.count - 1; i++) TRY(transform(c, true, i ? &turned : &from, axes.dim[i], &turned));
  return rdna_op_fft_c2r(c->stream, 1.0 / (double)shape[last], &turned, last, &out);
}
