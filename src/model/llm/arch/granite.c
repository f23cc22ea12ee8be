/* Granite 3 and 4 (IBM, 2024, 2025), dense or with experts, but without recurrent layers: a Llama with factors on
 * embeddings, scores, what blocks add, and logits; some of 4 know no positions. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status factor(const rdna_llm *llm, const char *key, float *out) {
  double value;
  RDNA_TRY(rdna__key_number(&llm->weights, key, 1, &value));
  *out = (float)value;
  return RDNA_OK;
}

static rdna_status keys(rdna_llm *llm) {
  double divisor;
  bool rotates = true;
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(factor(llm, "embedding_scale", &llm->decoder.embedding_scale));
  RDNA_TRY(factor(llm, "residual_scale", &llm->decoder.residual_scale));
  RDNA_TRY(rdna__key_number(&llm->weights, "logit_scale", 0, &divisor));
  llm->decoder.logit_scale = (float)(1 / divisor);
  RDNA_TRY(rdna__key_flag(&llm->weights, "rope.scaling.finetuned", &rotates));
  if (rotates) return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_INTERLEAVED);
  llm->rotations[0] = rdna__arch_no_rotation();
  return RDNA_OK;
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_scale(llm, &l->attention));
  return rdna__arch_layer(llm, index, l);
}

static rdna_status moe_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_scale(llm, &l->attention));
  return rdna__arch_expert_layer(llm, index, l);
}

const rdna__llm_arch rdna__arch_granitemoe = {"granitemoe", keys, moe_layer};
const rdna__llm_arch rdna__arch_granite = {"granite", keys, layer};
