/* Operators that read at indices. */
#include "math/index/indexed_plan.h"

static rdna_status check_out(const char *name, const rdna_tensor *out, const char *x_name, const rdna_tensor *x) {
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  RDNA_TRY(rdna__check_same_dtype(name, "out", out, x_name, x));
  RDNA_TRY(rdna__check_distinct(name, out));
  return rdna__check_apart(name, "out", out, x_name, x);
}

rdna_status rdna_op_gather(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *indices,
                           const rdna_tensor *out, uint32_t *outside) {
  static const char *const name = "gather";
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(rdna__check_dim(name, "x", x, &dim));
  RDNA_TRY(rdna__check_indices(name, "indices", indices));
  RDNA_TRY(rdna__check_within(name, indices, "x", x, dim));
  RDNA_TRY(check_out(name, out, "x", x));
  RDNA_TRY(rdna__check_same_shape(name, "out", out, "indices", indices));
  RDNA_TRY(rdna__check_apart(name, "out", out, "indices", indices));
  rdna__indexed indexed = {name, stream, *indices, rdna__index_base(x, dim, x->rank, indices->shape),
                           rdna__index_rule(x, dim, indices->dtype, false, outside)};
  return rdna__index_move(&indexed, false, out, (rdna_scalar){0});
}

rdna_status rdna_op_index_select(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *indices,
                                 const rdna_tensor *out, uint32_t *outside) {
  static const char *const name = "index_select";
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(rdna__check_dim(name, "x", x, &dim));
  RDNA_TRY(check_out(name, out, "x", x));
  RDNA_TRY(rdna__check_select(name, "out", out, "x", x, dim, indices));
  RDNA_TRY(rdna__check_apart(name, "out", out, "indices", indices));
  rdna__indexed indexed = {name, stream, rdna__along_dim(indices, dim, out->rank, out->shape),
                           rdna__index_base(x, dim, out->rank, out->shape),
                           rdna__index_rule(x, dim, indices->dtype, false, outside)};
  return rdna__index_move(&indexed, false, out, (rdna_scalar){0});
}

static rdna_status check_shape(const char *name, const char *argument, const rdna_tensor *t, const rdna__advanced *p) {
  RDNA_TRY(rdna__check_rank(name, argument, t, p->rank));
  for (int d = 0; d < p->rank; d++) {
    RDNA_TRY(rdna__check_size(name, argument, t, d, p->shape[d], p->from[d] < 0 ? "as the indices'" : "as x's"));
  }
  return RDNA_OK;
}

rdna_status rdna_op_index(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *const *indices,
                          const rdna_tensor *out, uint32_t *outside) {
  static const char *const name = "index";
  rdna__advanced plan;
  RDNA_TRY(rdna__check_indexed(name, stream, "x", x));
  RDNA_TRY(rdna__advanced_plan(name, x, indices, &plan));
  RDNA_TRY(check_out(name, out, "x", x));
  RDNA_TRY(check_shape(name, "out", out, &plan));
  for (int k = 0; k < plan.indexed_count; k++)
    RDNA_TRY(rdna__check_apart(name, "out", out, "indices", &plan.indices[k]));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna__indexed indexed;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  rdna_status status = rdna__advanced_combine(&scratch, &plan, x, outside, &indexed);
  if (status == RDNA_OK) status = rdna__index_move(&indexed, false, out, (rdna_scalar){0});
  return rdna__scratch_release(&scratch, status);
}
