#include "math/reduce/reduce_f64.h"

#include <math.h>

#include "math/common/plan/scratch.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"

static const rdna_scalar zero = {0, 0};

/* log(sum of exp(x - top)) + top; a top that is infinite is left out. |out| has 1 for the reduced sizes. */
static rdna_status log_sum(rdna__scratch *scratch, uint32_t dims, const rdna_tensor *x, const rdna_tensor *terms,
                           const rdna_tensor *out) {
  rdna_stream *stream = scratch->stream;
  rdna_tensor top, infinite;
  RDNA_TRY(rdna__scratch_tensor(scratch, RDNA_F64, out->rank, out->shape, &top));
  RDNA_TRY(rdna__scratch_tensor(scratch, RDNA_BOOL, out->rank, out->shape, &infinite));
  RDNA_TRY(rdna_op_reduce(stream, RDNA_REDUCTION_MAX, x, dims, 0, &top));
  RDNA_TRY(rdna_op_compare(stream, RDNA_COMPARE_ISINF, &top, NULL, &infinite));
  RDNA_TRY(rdna_op_masked_fill(stream, &infinite, zero, &top, &top));
  RDNA_TRY(rdna_op_zip(stream, RDNA_ZIP_SUB, x, &top, zero, zero, terms));
  RDNA_TRY(rdna_op_map(stream, RDNA_MAP_EXP, terms, zero, zero, terms));
  RDNA_TRY(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, terms, dims, 0, out));
  RDNA_TRY(rdna_op_map(stream, RDNA_MAP_LOG, out, zero, zero, out));
  return rdna_op_zip(stream, RDNA_ZIP_ADD, out, &top, zero, zero, out);
}

static rdna_status norm(rdna__scratch *scratch, uint32_t dims, double p, const rdna_tensor *x, const rdna_tensor *terms,
                        const rdna_tensor *out) {
  rdna_stream *stream = scratch->stream;
  RDNA_TRY(rdna_op_map(stream, RDNA_MAP_ABS, x, zero, zero, terms));
  RDNA_TRY(rdna_op_map(stream, RDNA_MAP_POW, terms, rdna_scalar_real(p), zero, terms));
  RDNA_TRY(rdna_op_reduce(stream, RDNA_REDUCTION_SUM, terms, dims, 0, out));
  return rdna_op_map(stream, RDNA_MAP_POW, out, rdna_scalar_real(1 / p), zero, out);
}

rdna_status rdna__reduce_f64(const char *op_name, rdna_stream *stream, rdna_reduction reduction, uint32_t dims,
                             double parameter, const rdna_tensor *x, const rdna_tensor *out) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  bool is_log = reduction == RDNA_REDUCTION_LOGSUMEXP;
  int64_t shape[RDNA_MAX_RANK];
  rdna_tensor terms;
  if (rdna_tensor_count(x) == 0) return rdna_op_fill(stream, rdna_scalar_real(is_log ? -(double)INFINITY : 0), out);
  for (int i = 0; i < x->rank; i++) shape[i] = dims >> i & 1 ? 1 : x->shape[i];
  rdna_tensor kept = rdna_tensor_contiguous(out->data, RDNA_F64, x->rank, shape); /* |out| is contiguous */
  RDNA_TRY(rdna__scratch_tensor(&scratch, RDNA_F64, x->rank, x->shape, &terms));
  rdna_status status =
      is_log ? log_sum(&scratch, dims, x, &terms, &kept) : norm(&scratch, dims, parameter, x, &terms, &kept);
  return rdna__scratch_release(&scratch, status);
}
