/* Keys and tensors of mixtures of experts. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

enum { MOST_EXPERTS = 1024, MOST_USED = 32 }; /* of rdna_op_moe_route */

static rdna_status read_keys(const rdna_llm *llm, rdna__nn_moe *moe) {
  const rdna__weights *w = &llm->weights;
  double scale;
  RDNA_TRY(rdna__key_count(w, "expert_count", 0, &moe->experts));
  RDNA_TRY(rdna__key_count(w, "expert_used_count", 0, &moe->used));
  if (moe->used > moe->experts)
    return rdna__fail(RDNA_BAD_DATA, "%s.expert_used_count is %d, of %d experts", w->architecture, moe->used,
                      moe->experts);
  if (moe->experts > MOST_EXPERTS || moe->used > MOST_USED)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "the model has %d experts, of which a token takes %d; this library has up to %d and "
                      "%d",
                      moe->experts, moe->used, MOST_EXPERTS, MOST_USED);
  RDNA_TRY(rdna__key_count(w, "expert_feed_forward_length", llm->info.hidden, &moe->hidden));
  RDNA_TRY(rdna__key_number(w, "expert_weights_scale", (double)moe->scale, &scale));
  moe->scale = (float)scale;
  RDNA_TRY(rdna__key_flag(w, "expert_weights_norm", &moe->normalised));
  RDNA_TRY(rdna__key_count_or_none(w, "expert_group_count", &moe->groups));
  RDNA_TRY(rdna__key_count_or_none(w, "expert_group_used_count", &moe->groups_kept));
  if (moe->groups < 2) return RDNA_OK;
  if (moe->groups > MOST_USED || moe->experts % moe->groups != 0 || moe->groups_kept < 1 ||
      moe->groups_kept > moe->groups || moe->used > moe->experts / moe->groups * moe->groups_kept)
    return rdna__fail(RDNA_BAD_DATA, "%s has %d experts in %d groups, of which %d are kept for %d experts of a token",
                      w->architecture, moe->experts, moe->groups, moe->groups_kept, moe->used);
  return RDNA_OK;
}

/* The expert of all tokens: three matrices, and how much of it a token takes. */
static rdna_status load_shared(rdna_llm *llm, int index, rdna__nn_moe *moe) {
  rdna__weights *w = &llm->weights;
  int64_t width = llm->info.width, hidden = rdna__rows_in_layer(w, index, "ffn_up_shexp.weight");
  if (hidden == 0) return RDNA_OK;
  if (hidden > RDNA__LARGEST_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "the expert of all tokens has %lld rows; at most %d makes sense",
                      (long long)hidden, RDNA__LARGEST_COUNT);
  rdna__nn_ffn *shared = &moe->shared;
  shared->hidden = (int)hidden;
  shared->activation = moe->activation;
  const rdna__part parts[] = {{"ffn_gate_shexp", &shared->gate, hidden, width, true},
                              {"ffn_up_shexp", &shared->up, hidden, width, true}};
  const rdna__part down = {"ffn_down_shexp", &shared->down, width, hidden, true};
  RDNA_TRY(rdna__load_parts(w, index, parts, 2, NULL, &shared->gate_up));
  RDNA_TRY(rdna__load_parts(w, index, &down, 1, NULL, NULL));
  if (!rdna__has_in_layer(w, index, "ffn_gate_inp_shexp.weight")) return RDNA_OK;
  rdna_tensor *gate = &moe->shared_gate.weight;
  RDNA_TRY(rdna__load_layer_vector(w, index, "ffn_gate_inp_shexp.weight", width, gate));
  *gate = rdna__nn_matrix(gate->data, 1, width);
  moe->shared_gate.scale = 1;
  return RDNA_OK;
}

rdna_status rdna__arch_experts(rdna_llm *llm, int index, rdna__nn_moe *moe) {
  rdna__weights *w = &llm->weights;
  int64_t width = llm->info.width;
  RDNA_TRY(read_keys(llm, moe));
  int experts = moe->experts, hidden = moe->hidden;
  RDNA_TRY(rdna__load_router(w, index, experts, width, &moe->router));
  if (rdna__has_in_layer(w, index, "exp_probs_b.bias"))
    RDNA_TRY(rdna__load_layer_vector(w, index, "exp_probs_b.bias", experts, &moe->ranking_bias));
  if (rdna__has_in_layer(w, index, "ffn_gate_up_exps.weight")) {
    RDNA_TRY(rdna__load_experts(w, index, "ffn_gate_up_exps", experts, 2 * hidden, width, &moe->gate_up, NULL));
  } else {
    RDNA_TRY(rdna__load_experts(w, index, "ffn_gate_exps", experts, hidden, width, &moe->gate, &moe->gate_bias));
    RDNA_TRY(rdna__load_experts(w, index, "ffn_up_exps", experts, hidden, width, &moe->up, &moe->up_bias));
  }
  RDNA_TRY(rdna__load_experts(w, index, "ffn_down_exps", experts, width, hidden, &moe->down, &moe->down_bias));
  if (rdna__has_in_layer(w, index, "ffn_down_exps.scale"))
    RDNA_TRY(rdna__load_layer_vector(w, index, "ffn_down_exps.scale", experts, &moe->expert_scale));
  return load_shared(llm, index, moe);
}

rdna_status rdna__arch_softmax_experts(rdna_llm *llm, int index, rdna__nn_moe *moe) {
  *moe = (rdna__nn_moe){.score = RDNA_MOE_SCORE_SOFTMAX, .normalised = true, .scale = 1};
  return rdna__arch_experts(llm, index, moe);
}

rdna_status rdna__arch_dense_or_experts(rdna_llm *llm, int index, rdna__nn_layer *l, int gating) {
  int dense;
  RDNA_TRY(rdna__key_count_or_none(&llm->weights, "leading_dense_block_count", &dense));
  if (index < dense) return rdna__arch_ffn(llm, index, &l->ffn, NULL);
  RDNA_TRY(rdna__key_count(&llm->weights, "expert_gating_func", gating, &gating));
  if (gating != RDNA__ARCH_SOFTMAX && gating != RDNA__ARCH_SIGMOID)
    return rdna__fail(RDNA_UNSUPPORTED, "%s.expert_gating_func is %d; this library has 1, softmax, and 2, sigmoid",
                      llm->weights.architecture, gating);
  bool sigmoid = gating == RDNA__ARCH_SIGMOID;
  l->moe = (rdna__nn_moe){.score = sigmoid ? RDNA_MOE_SCORE_SIGMOID : RDNA_MOE_SCORE_SOFTMAX,
                          .normalised = l->moe.normalised,
                          .scale = 1,
                          .group_best = sigmoid ? 2 : 1}; /* DeepSeek V3 and V2 rank groups so */
  return rdna__arch_experts(llm, index, &l->moe);
}
