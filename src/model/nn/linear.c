/* A matrix of a model applied to activations. */
#include "base/status.h"
#include "model/nn/nn.h"
#include "model/nn/watch.h"
#include "rdna/op.h"

_Thread_local const rdna__nn_watch *rdna__nn_watcher;

rdna_tensor rdna__nn_matrix(void *data, int64_t rows, int64_t columns) {
  return rdna_tensor_contiguous(data, RDNA_F32, 2, (int64_t[]){rows, columns});
}

rdna_tensor rdna__nn_input(const rdna__nn_pass *pass, void *data, int64_t columns) {
  return rdna_tensor_contiguous(data, pass->type, 2, (int64_t[]){pass->count, columns});
}

rdna_tensor rdna__nn_heads(void *data, int64_t tokens, int64_t heads, int64_t columns) {
  return rdna_tensor_contiguous(data, RDNA_F32, 3, (int64_t[]){tokens, heads, columns});
}

rdna_tensor rdna__nn_rows(const rdna_tensor *t, int64_t first, int64_t count) {
  rdna_tensor rows = *t;
  rows.shape[0] = count;
  if (t->data) rows.data = (char *)t->data + rdna_dtype_bytes(t->dtype, first * t->stride[0]);
  return rows;
}

rdna_status rdna__nn_scale(rdna_stream *stream, const rdna_tensor *x, double by) {
  if (by == 1) return RDNA_OK;
  return rdna_op_map(stream, RDNA_MAP_AFFINE, x, rdna_scalar_real(by), rdna_scalar_real(0), x);
}

/* A file that has scales is rare, so they cost a pass of their own. */
rdna_status rdna__nn_linear(rdna_stream *stream, const rdna__matrix_weights *m, const rdna_tensor *x,
                            const rdna_tensor *out) {
  const rdna_tensor *bias = m->bias.data ? &m->bias : NULL;
  const rdna_scalar zero = rdna_scalar_real(0);
  RDNA_TRY(rdna__nn_show(stream, &m->weight, x, NULL));
  if (m->scale == 1) return rdna_op_linear(stream, x, &m->weight, bias, out);
  RDNA_TRY(rdna_op_linear(stream, x, &m->weight, m->scale_after_bias ? bias : NULL, out));
  RDNA_TRY(rdna_op_map(stream, RDNA_MAP_AFFINE, out, rdna_scalar_real((double)m->scale), zero, out));
  if (bias && !m->scale_after_bias) RDNA_TRY(rdna_op_zip(stream, RDNA_ZIP_ADD, out, bias, zero, zero, out));
  return RDNA_OK;
}
