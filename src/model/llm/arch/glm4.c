/* GLM-4 (Z.ai, 2025), with norms before and after blocks and gate and up in one matrix, and GLM-4.5 to 4.7, with
 * experts behind some dense layers: biases of q, k and v, and rotary positions in a half of each head. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_INTERLEAVED);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, "ffn_up"));
  RDNA_TRY(rdna__arch_norms(llm, index, l));
  return rdna__arch_post_norms(llm, index, l);
}

static rdna_status moe_keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

static rdna_status moe_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_norms_by_other_names(llm, index, l));
  return rdna__arch_dense_or_experts(llm, index, l, RDNA__ARCH_SIGMOID);
}

/* dots.llm1 (rednote-hilab, 2025): the same with norms of the heads of q and k. */
static rdna_status dots1_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_has_head_norms(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_norms(llm, index, l));
  return rdna__arch_dense_or_experts(llm, index, l, RDNA__ARCH_SIGMOID);
}

/* MiniMax M2 (MiniMax, 2025): no dense layers, norms of all heads of q and k as one row. */
static rdna_status minimax_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  l->moe.normalised = true;
  return dots1_layer(llm, index, l);
}

const rdna__llm_arch rdna__arch_glm4 = {"glm4", keys, layer};
const rdna__llm_arch rdna__arch_glm4moe = {"glm4moe", moe_keys, moe_layer};
const rdna__llm_arch rdna__arch_dots1 = {"dots1", moe_keys, dots1_layer};
const rdna__llm_arch rdna__arch_minimax_m2 = {"minimax-m2", moe_keys, minimax_layer};
