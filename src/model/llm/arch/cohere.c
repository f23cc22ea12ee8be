/* Command R (Cohere, 2024) and what followed, R7B and Command A (2024, 2025): LayerNorm without biases, attention and
 * the feed-forward block side by side, logits times a factor; the later ones with windows in three layers of four and
 * no positions in the fourth. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  double scale;
  RDNA_TRY(rdna__arch_layer_norm_keys(llm));
  RDNA_TRY(rdna__key_number(&llm->weights, "logit_scale", 1, &scale));
  llm->decoder.logit_scale = (float)scale;
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_INTERLEAVED);
}

static rdna_status windowed_keys(rdna_llm *llm) {
  RDNA_TRY(keys(llm));
  RDNA_TRY(rdna__arch_window(llm));
  llm->rotations[1] = rdna__arch_no_rotation();
  return rdna__arch_period(llm, 4);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  if (rdna__has_in_layer(&llm->weights, index, "attn_q_norm.weight"))
    return rdna__fail(RDNA_UNSUPPORTED, "the model has LayerNorm of the heads of q and k, which this library has not");
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, NULL));
  l->parallel = true;
  return rdna__arch_norm(llm, index, "attn_norm", &l->attention_norm);
}

static rdna_status windowed_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  if (!rdna__arch_is_windowed(llm, index)) l->attention.rotation = &llm->rotations[1];
  return layer(llm, index, l);
}

const rdna__llm_arch rdna__arch_command_r = {"command-r", keys, layer};
const rdna__llm_arch rdna__arch_cohere2 = {"cohere2", windowed_keys, windowed_layer};
