/* gpt-oss (OpenAI, 2025): experts in MXFP4 with biases and a clamped SwiGLU, attention with sinks and biases, windows
 * in every second layer, YaRN whose ramp is not rounded. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  rdna__rope_scaling scaling;
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(rdna__arch_window(llm));
  RDNA_TRY(rdna__arch_period(llm, 2));
  RDNA_TRY(rdna__arch_scaling(llm, &scaling));
  scaling.unrounded = true;
  return rdna__arch_rotation(llm, llm->config.rope_base, RDNA_ROPE_LAYOUT_HALVES, &scaling, &llm->rotations[0]);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  rdna__weights *w = &llm->weights;
  rdna__nn_attention *a = &l->attention;
  RDNA_TRY(rdna__arch_attention(llm, index, a));
  RDNA_TRY(rdna__load_layer_vector(w, index, "attn_sinks.weight", a->heads, &a->sinks));
  RDNA_TRY(rdna__arch_norms_by_other_names(llm, index, l));
  l->moe = (rdna__nn_moe){.score = RDNA_MOE_SCORE_CHOSEN, .scale = 1, .activation = RDNA__NN_GATE_CLAMPED};
  return rdna__arch_experts(llm, index, &l->moe);
}

const rdna__llm_arch rdna__arch_gpt_oss = {"gpt-oss", keys, layer};
