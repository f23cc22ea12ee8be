/* Qwen2 (Yang et al., 2024), with biases of q, k and v, and Qwen3 (Yang et al., 2025), with a norm of each head of q
 * and k instead: RMS norms before blocks, RoPE over halves, grouped heads, SwiGLU. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

/* Those that see pictures have three positions a token, which are one and the same for text. */
static rdna_status qwen2vl_keys(rdna_llm *llm) {
  RDNA_TRY(keys(llm));
  return rdna__arch_rope_in_pictures(llm, false);
}
static rdna_status qwen3vl_keys(rdna_llm *llm) {
  RDNA_TRY(keys(llm));
  RDNA_TRY(rdna__key_count_or_none(&llm->weights, "n_deepstack_layers", &llm->decoder.deepstack));
  if (llm->decoder.deepstack > llm->info.layers)
    return rdna__fail(RDNA_BAD_DATA, "%d layers read vectors of pictures, of a model of %d layers",
                      llm->decoder.deepstack, llm->info.layers);
  return rdna__arch_rope_in_pictures(llm, true);
}

static rdna_status qwen3_layer(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  RDNA_TRY(rdna__arch_layer(llm, index, layer));
  return rdna__arch_has_head_norms(llm, index, &layer->attention);
}

static rdna_status qwen3moe_layer(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  RDNA_TRY(rdna__arch_expert_layer(llm, index, layer));
  return rdna__arch_has_head_norms(llm, index, &layer->attention);
}

/* Its weights are not normalised, and one expert more is taken by every token. */
static rdna_status qwen2moe_layer(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  RDNA_TRY(rdna__arch_attention(llm, index, &layer->attention));
  layer->moe = (rdna__nn_moe){.score = RDNA_MOE_SCORE_SOFTMAX, .scale = 1};
  RDNA_TRY(rdna__arch_experts(llm, index, &layer->moe));
  return rdna__arch_norms(llm, index, layer);
}

const rdna__llm_arch rdna__arch_qwen2 = {"qwen2", keys, rdna__arch_layer};
const rdna__llm_arch rdna__arch_qwen3 = {"qwen3", keys, qwen3_layer};
const rdna__llm_arch rdna__arch_qwen3moe = {"qwen3moe", keys, qwen3moe_layer};
const rdna__llm_arch rdna__arch_qwen2vl = {"qwen2vl", qwen2vl_keys, rdna__arch_layer};
const rdna__llm_arch rdna__arch_qwen3vl = {"qwen3vl", qwen3vl_keys, qwen3_layer};
const rdna__llm_arch rdna__arch_qwen3vlmoe = {"qwen3vlmoe", qwen3vl_keys, qwen3moe_layer};
const rdna__llm_arch rdna__arch_qwen2moe = {"qwen2moe", keys, qwen2moe_layer};
