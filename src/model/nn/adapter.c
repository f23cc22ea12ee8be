/* Low-rank adapters (LoRA; Hu et al., 2021) of some tokens of a pass, added to the products with the model's matrices:
 *
 *     low (rows, rank) = x A^T    low *= each row's scale    out += low B^T
 *
 * Matrices are found by where their rows lie, since a model applies the same rows by themselves, or as part of others:
 *
 *     W of adapters    |    attn_q    |  attn_k  |  attn_v  |        | attn_qkv               |
 *     applied          |         q, k and v as one          |        | q       | k    | v     |
 */
#include "base/status.h"
#include "math/common/plan/scratch.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

/* The first matrix of |adapter| that ends behind |place|. */
static const rdna__nn_low_rank *find(const rdna__nn_adapter *adapter, const char *place) {
  int low = 0, high = adapter->count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (adapter->matrices[middle].end > place)
      high = middle;
    else
      low = middle + 1;
  }
  return adapter->matrices + low;
}

/* out += (scales x A^T) B^T, of the rows of B whose products |out| has. */
static rdna_status add_product(const rdna__nn_pass *pass, const rdna__nn_low_rank *m, const rdna_tensor *scales,
                               const rdna_tensor *b, const rdna_tensor *x, const rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t shape[] = {x->shape[0], m->a.shape[0]};
  rdna__scratch scratch = {.stream = pass->stream, .holder = "an adapter"};
  rdna_tensor low, rounded;
  rdna_status status = rdna__scratch_tensor(&scratch, RDNA_F32, 2, shape, &low);
  if (status == RDNA_OK) status = rdna_op_linear(pass->stream, x, &m->a, NULL, &low);
  if (status == RDNA_OK) status = rdna_op_zip(pass->stream, RDNA_ZIP_MUL, &low, scales, zero, zero, &low);
  if (status == RDNA_OK && out->dtype != RDNA_F32) { /* a product of 16 bits is one of operands that are */
    status = rdna__scratch_tensor(&scratch, out->dtype, 2, shape, &rounded);
    if (status == RDNA_OK) status = rdna_op_cast(pass->stream, &low, &rounded);
    low = rounded;
  }
  if (status == RDNA_OK) status = rdna_op_linear_add(pass->stream, &low, b, NULL, out);
  return rdna__scratch_release(&scratch, status);
}

/* The rows that |m| and |of| have in common, of B and of the columns of |out|. */
static rdna_status adapt_by(const rdna__nn_pass *pass, const rdna__nn_low_rank *of, const rdna_tensor *scales,
                            const rdna__matrix_weights *m, const rdna_tensor *x, const rdna_tensor *out) {
  size_t row = rdna_dtype_bytes(m->weight.dtype, m->weight.shape[1]);
  const char *begin = m->weight.data, *end = begin + row * (size_t)m->weight.shape[0];
  const char *first = of->begin > begin ? of->begin : begin, *last = of->end < end ? of->end : end;
  rdna_tensor part = *out, b = of->b;
  part.data = (char *)out->data + rdna_dtype_bytes(out->dtype, (first - begin) / (int64_t)row);
  b.data = (float *)of->b.data + (first - of->begin) / (int64_t)row * of->b.shape[1];
  part.shape[1] = b.shape[0] = (last - first) / (int64_t)row;
  return add_product(pass, of, scales, &b, x, &part);
}

rdna_status rdna__nn_adapt(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                           const rdna_tensor *out) {
  int64_t rows = pass->adapter_scales.shape[1];
  const char *begin = m->weight.data;
  const char *end = begin + rdna_dtype_bytes(m->weight.dtype, rdna_tensor_count(&m->weight));
  for (int i = 0; i < pass->adapter_count; i++) {
    const rdna__nn_adapter *adapter = pass->adapters[i];
    rdna_tensor scales = rdna__nn_matrix((float *)pass->adapter_scales.data + i * rows, rows, 1);
    for (const rdna__nn_low_rank *of = find(adapter, begin); of < adapter->matrices + adapter->count && of->begin < end;
         of++)
      RDNA_TRY(adapt_by(pass, of, &scales, m, x, out));
  }
  return RDNA_OK;
}
