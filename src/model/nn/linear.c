/* A matrix of a model applied to activations. */
#include "math/linear/linear.h"
#include "base/status.h"
#include "math/linear/linear_steps.h"
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
rdna_status rdna__nn_linear(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                            const rdna_tensor *out) {
  rdna_stream *stream = pass->stream;
  const rdna_tensor *bias = m->bias.data ? &m->bias : NULL;
  const rdna_scalar zero = rdna_scalar_real(0);
  RDNA_TRY(rdna__nn_show(stream, &m->weight, x, NULL));
  const rdna_tensor *first_bias = m->scale == 1 || m->scale_after_bias ? bias : NULL;
  RDNA_TRY(pass->may_round ? rdna__linear_rounded(stream, x, &m->weight, first_bias, out, false)
                           : rdna_op_linear(stream, x, &m->weight, first_bias, out));
  if (pass->adapter_count > 0) RDNA_TRY(rdna__nn_adapt(pass, m, x, out));
  if (m->scale == 1) return RDNA_OK;
  RDNA_TRY(rdna_op_map(stream, RDNA_MAP_AFFINE, out, rdna_scalar_real((double)m->scale), zero, out));
  if (bias && !m->scale_after_bias) RDNA_TRY(rdna_op_zip(stream, RDNA_ZIP_ADD, out, bias, zero, zero, out));
  return RDNA_OK;
}

/* ---- with what stands around it ---- */

static rdna__linear_steps steps_of(const rdna__nn_pass *pass) {
  return (rdna__linear_steps){.norm = pass->input_norm, .epsilon = pass->norm_epsilon, .may_round = pass->may_round};
}
static const rdna_tensor *bias_of(const rdna__matrix_weights *m) { return m->bias.data ? &m->bias : NULL; }

/* Who collects what matrices are multiplied by must see it, and adapters add between the product and what follows. */
static bool is_one_token(const rdna__nn_pass *pass) {
  return pass->count == 1 && pass->type == RDNA_F32 && !rdna__nn_watcher && pass->adapter_count == 0;
}

bool rdna__nn_can_norm(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                       const rdna_tensor *norm) {
  if (!is_one_token(pass) || m->scale != 1) return false;
  rdna__linear_steps steps = {.norm = norm, .epsilon = pass->norm_epsilon};
  rdna_tensor out = rdna__nn_matrix(NULL, 1, m->weight.shape[0]);
  return rdna__linear_is_stepped(pass->stream, &steps, x, &m->weight, bias_of(m), &out);
}

bool rdna__nn_can_add(const rdna__nn_pass *pass, const rdna__matrix_weights *m) {
  return is_one_token(pass) && (!m || m->scale == 1);
}

rdna_status rdna__nn_linear_in(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                               const rdna_tensor *out) {
  if (!pass->input_norm) return rdna__nn_linear(pass, m, x, out);
  rdna__linear_steps steps = steps_of(pass);
  return rdna__linear_stepped(pass->stream, &steps, x, &m->weight, bias_of(m), out);
}

rdna_status rdna__nn_linear_out(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                                const rdna_tensor *out) {
  if (!pass->adds) return rdna__nn_linear(pass, m, x, out);
  return pass->may_round ? rdna__linear_rounded(pass->stream, x, &m->weight, bias_of(m), out, true)
                         : rdna_op_linear_add(pass->stream, x, &m->weight, bias_of(m), out);
}

rdna_activation rdna__nn_activation(rdna__nn_gate gate) {
  switch (gate) {
    case RDNA__NN_GATE_SILU:
      return RDNA_ACTIVATION_SILU;
    case RDNA__NN_GATE_GELU_TANH:
      return RDNA_ACTIVATION_GELU_TANH;
    case RDNA__NN_GATE_GELU:
      return RDNA_ACTIVATION_GELU_ERF;
    default:
      return RDNA_ACTIVATION_NONE;
  }
}
static bool set_gate(rdna__linear_steps *steps, rdna__nn_gate gate) {
  steps->gated = true;
  steps->activation = rdna__nn_activation(gate);
  return steps->activation != RDNA_ACTIVATION_NONE;
}

bool rdna__nn_is_gated(const rdna__nn_pass *pass, const rdna__matrix_weights *m, rdna__nn_gate gate,
                       const rdna_tensor *x, const rdna_tensor *out) {
  rdna__linear_steps steps = steps_of(pass);
  return m->weight.data && is_one_token(pass) && m->scale == 1 && set_gate(&steps, gate) &&
         rdna__linear_is_stepped(pass->stream, &steps, x, &m->weight, bias_of(m), out);
}

rdna_status rdna__nn_linear_gated(const rdna__nn_pass *pass, const rdna__matrix_weights *m, rdna__nn_gate gate,
                                  const rdna_tensor *x, const rdna_tensor *out) {
  rdna__linear_steps steps = steps_of(pass);
  set_gate(&steps, gate);
  return rdna__linear_stepped(pass->stream, &steps, x, &m->weight, NULL, out);
}
