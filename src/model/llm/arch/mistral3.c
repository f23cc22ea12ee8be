/* Mistral Small 3 and Ministral 3 (Mistral AI, 2025): a Llama whose queries grow with the position (Nakanishi, 2025).
 */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  const rdna__weights *w = &llm->weights;
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(rdna__key_number_or_none(w, "attention.temperature_scale", &llm->decoder.temperature_beta));
  RDNA_TRY(
      rdna__key_count(w, "rope.scaling.original_context_length", llm->info.context, &llm->decoder.temperature_after));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_INTERLEAVED);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_scale(llm, &l->attention));
  return rdna__arch_layer(llm, index, l);
}

const rdna__llm_arch rdna__arch_mistral3 = {"mistral3", keys, layer};
