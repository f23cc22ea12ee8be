/* Mixture of experts: a router chooses a few experts for each token, whose results are added with the router's weights;
 * some models have one more that every token takes. */
#include "base/status.h"
#include "math/moe/moe_gated.h"
#include "model/nn/nn.h"
#include "model/nn/watch.h"
#include "rdna/memory.h"
#include "rdna/op.h"

/* Chooses experts for each token: their |indices| and their |shares| of its result, (count, used) each. */
static rdna_status route(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *h, rdna_tensor *indices,
                         rdna_tensor *shares) {
  int64_t shape[] = {pass->count, moe->used};
  rdna_tensor logits = rdna__nn_matrix(pass->router_logits, pass->count, moe->experts);
  *indices = rdna_tensor_contiguous(pass->expert_indices, RDNA_I32, 2, shape);
  *shares = rdna_tensor_contiguous(pass->expert_shares, RDNA_F32, 2, shape);
  RDNA_TRY(rdna__nn_linear_in(pass, &moe->router, h, &logits));
  rdna_moe_routing routing = {RDNA_MOE_ROUTING_INIT,
                              .score = moe->score,
                              .normalised = moe->normalised,
                              .groups = moe->groups,
                              .groups_kept = moe->groups_kept,
                              .group_best = moe->group_best,
                              .scale = moe->scale,
                              .bias = moe->ranking_bias.data ? &moe->ranking_bias : NULL};
  RDNA_TRY(rdna_op_moe_route(pass->stream, &routing, &logits, indices, shares));
  if (!moe->expert_scale.data) return RDNA_OK;
  const rdna_scalar zero = rdna_scalar_real(0);
  const rdna_tensor *chosen = indices;
  rdna_tensor scales = rdna__nn_matrix(pass->router_logits, pass->count, moe->used); /* logits have been read */
  RDNA_TRY(rdna_op_index(pass->stream, &moe->expert_scale, &chosen, &scales, NULL));
  return rdna_op_zip(pass->stream, RDNA_ZIP_MUL, shares, &scales, zero, zero, shares);
}

/* The two weights of the gates, (experts, hidden, width) each. */
static void find_gates(const rdna__nn_moe *moe, rdna_tensor *gate, rdna_tensor *up) {
  *gate = moe->gate, *up = moe->up;
  if (!moe->gate_up.data) return;
  *gate = *up = moe->gate_up;
  gate->shape[1] = up->shape[1] = moe->hidden;
  up->data = (char *)up->data + rdna_dtype_bytes(up->dtype, moe->hidden * up->shape[2]);
}

static bool has_biases(const rdna__nn_moe *moe) { return moe->gate_bias.data && moe->up_bias.data; }

/* Whether the gates of one token, what they multiply and f are one launch. */
static bool opens_at_once(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *x) {
  rdna_tensor gate, up, indices = rdna_tensor_contiguous(NULL, RDNA_I32, 2, (int64_t[]){pass->count, moe->used});
  bool has_f = moe->activation == RDNA__NN_GATE_CLAMPED || rdna__nn_activation(moe->activation) != RDNA_ACTIVATION_NONE;
  find_gates(moe, &gate, &up);
  return pass->count == 1 && !rdna__nn_watcher && has_f &&
         has_biases(moe) == (moe->gate_bias.data || moe->up_bias.data) && rdna__moe_is_gated(x, &gate, &up, &indices);
}

bool rdna__nn_can_norm_experts(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *x,
                               const rdna_tensor *norm) {
  return !moe->on_host && !moe->norm.data && !moe->shared.hidden && opens_at_once(pass, moe, x) &&
         rdna__nn_can_norm(pass, &moe->router, x, norm);
}

/* |activated| (tokens, used, hidden) = f(gate x) * up x of the chosen experts, which is what their down matrices read.
 * It overwrites gate x. */
static rdna_status open_gates(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *x,
                              const rdna_tensor *indices, rdna_tensor *activated) {
  int64_t tokens = pass->count, hidden = moe->hidden, values = tokens * moe->used * hidden;
  rdna_tensor gate = rdna__nn_heads(pass->experts, tokens, moe->used, hidden);
  rdna_tensor up = rdna__nn_heads((float *)pass->experts + values, tokens, moe->used, hidden);
  if (opens_at_once(pass, moe, x)) {
    rdna_tensor of_gate, of_up;
    bool clamped = moe->activation == RDNA__NN_GATE_CLAMPED;
    const rdna__moe_gate options = {.activation = rdna__nn_activation(moe->activation),
                                    .limit = clamped ? (float)RDNA__NN_CLAMP_LIMIT : 0,
                                    .slope = clamped ? (float)RDNA__NN_CLAMP_SLOPE : 0,
                                    .gate_bias = has_biases(moe) ? &moe->gate_bias : NULL,
                                    .up_bias = has_biases(moe) ? &moe->up_bias : NULL,
                                    .may_round = pass->may_round,
                                    .norm = pass->input_norm,
                                    .epsilon = pass->norm_epsilon};
    find_gates(moe, &of_gate, &of_up);
    *activated = gate;
    return rdna__moe_gated(pass->stream, &options, x, &of_gate, &of_up, indices, &gate);
  }
  if (moe->gate_up.data) { /* each slot's row is its gate, then its up */
    rdna_tensor both = rdna__nn_heads(pass->experts, tokens, moe->used, 2 * hidden);
    rdna_moe_product product = {RDNA_MOE_PRODUCT_INIT, .may_round = pass->may_round};
    RDNA_TRY(rdna__nn_show(pass->stream, &moe->gate_up, x, indices));
    RDNA_TRY(rdna_op_moe_linear(pass->stream, &product, x, &moe->gate_up, indices, &both));
    gate = up = both;
    gate.shape[2] = up.shape[2] = hidden;
    up.data = (float *)both.data + hidden;
  } else {
    rdna_moe_product of_gate = {RDNA_MOE_PRODUCT_INIT, .bias = moe->gate_bias.data ? &moe->gate_bias : NULL,
                                .may_round = pass->may_round};
    rdna_moe_product of_up = {RDNA_MOE_PRODUCT_INIT, .bias = moe->up_bias.data ? &moe->up_bias : NULL,
                              .may_round = pass->may_round};
    RDNA_TRY(rdna__nn_show(pass->stream, &moe->gate, x, indices));
    RDNA_TRY(rdna__nn_show(pass->stream, &moe->up, x, indices));
    RDNA_TRY(rdna_op_moe_linear(pass->stream, &of_gate, x, &moe->gate, indices, &gate));
    RDNA_TRY(rdna_op_moe_linear(pass->stream, &of_up, x, &moe->up, indices, &up));
  }
  *activated = gate;
  RDNA_TRY(rdna__nn_gate_with(pass->stream, moe->activation, &gate, &up));
  if (x->dtype == RDNA_F32 || moe->gate_up.data || (moe->wide && x->dtype == RDNA_F16)) return RDNA_OK;
  *activated = rdna_tensor_contiguous(up.data, x->dtype, 3, gate.shape); /* for the matrix units, in place of up */
  return rdna_op_cast(pass->stream, &gate, activated);
}

/* Adds the shared expert, which all tokens take, to |projected|; scaled by sigmoid of its own gate where it has one. */
static rdna_status add_shared(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *h,
                              const rdna_tensor *projected) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor out = rdna__nn_matrix(pass->shared, pass->count, projected->shape[1]);
  if (pass->adds && !moe->shared_gate.weight.data && rdna__nn_can_add(pass, &moe->shared.down))
    return rdna__nn_feed_forward(pass, &moe->shared, h, projected);
  rdna__nn_pass apart = *pass;
  apart.adds = false;
  RDNA_TRY(rdna__nn_feed_forward(&apart, &moe->shared, h, &out));
  if (moe->shared_gate.weight.data) {
    rdna_tensor gate = rdna__nn_matrix(pass->router_logits, pass->count, 1);
    RDNA_TRY(rdna__nn_linear(pass, &moe->shared_gate, h, &gate));
    RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_SIGMOID, &gate, zero, zero, &gate));
    RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_MUL, &out, &gate, zero, zero, &out));
  }
  return rdna_op_zip(pass->stream, RDNA_ZIP_ADD, projected, &out, zero, zero, projected);
}

/* projected = the sum of the chosen experts' results over |h|, each times its share; or added to it. */
static rdna_status multiply(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *h,
                            const rdna_tensor *indices, const rdna_tensor *shares, const rdna_tensor *projected) {
  rdna_tensor activated;
  RDNA_TRY(open_gates(pass, moe, h, indices, &activated));
  rdna_moe_product down = {RDNA_MOE_PRODUCT_INIT, .add = pass->adds,
                           .bias = moe->down_bias.data ? &moe->down_bias : NULL, .shares = shares,
                           .may_round = pass->may_round};
  RDNA_TRY(rdna__nn_show(pass->stream, &moe->down, &activated, indices));
  return rdna_op_moe_linear(pass->stream, &down, &activated, &moe->down, indices, projected);
}

static rdna_status fetch(const rdna__nn_pass *pass, const rdna_tensor *from, void *to, rdna_tensor *out) {
  *out = *from;
  out->data = to;
  return rdna_copy_to_host(pass->stream, to, from->data, rdna_dtype_bytes(from->dtype, rdna_tensor_count(from)));
}

/* The same where the experts' matrices are in host memory: copies |h|, indices and shares to the host, multiplies
 * there, and copies the sum back. */
static rdna_status multiply_on_host(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *h,
                                    const rdna_tensor *indices, const rdna_tensor *shares,
                                    const rdna_tensor *projected) {
  rdna__nn_pass there = *pass->host;
  rdna_tensor x, there_indices, there_shares, whole = rdna__nn_matrix(there.h, pass->count, h->shape[1]);
  rdna_tensor out = rdna__nn_matrix(there.projected, pass->count, projected->shape[1]);
  there.count = pass->count;
  there.type = RDNA_F32;
  RDNA_TRY(fetch(pass, h, h->dtype == RDNA_F32 ? there.h : there.expert_input, &x));
  RDNA_TRY(fetch(pass, indices, there.expert_indices, &there_indices));
  RDNA_TRY(fetch(pass, shares, there.expert_shares, &there_shares));
  RDNA_TRY(rdna_stream_synchronize(pass->stream));
  if (x.dtype != RDNA_F32) RDNA_TRY(rdna_op_cast(there.stream, &x, &whole));
  RDNA_TRY(multiply(&there, moe, &whole, &there_indices, &there_shares, &out));
  RDNA_TRY(rdna_stream_synchronize(there.stream));
  size_t bytes = rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&out));
  return rdna_copy_to_device(pass->stream, projected->data, out.data, bytes);
}

rdna_status rdna__nn_mix_experts(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *h,
                                 const rdna_tensor *router_input, const rdna_tensor *projected) {
  rdna_tensor indices, shares;
  RDNA_TRY(route(pass, moe, router_input, &indices, &shares));
  RDNA_TRY(moe->on_host ? multiply_on_host(pass, moe, h, &indices, &shares, projected)
                        : multiply(pass, moe, h, &indices, &shares, projected));
  return moe->shared.hidden ? add_shared(pass, moe, h, projected) : RDNA_OK;
}
