/* OLMo 2 and 3 (OLMo Team, 2024, 2025): norms after blocks instead of before them, and of all heads of q and k as one
 * row; OLMo 3 with windows in three layers of four, which have plain rotary positions. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(rdna__arch_window(llm));
  RDNA_TRY(rdna__arch_period(llm, 4));
  RDNA_TRY(rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES));
  return rdna__arch_rope_of_windows(llm, llm->config.rope_base, llm->config.rotated);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  if (rdna__arch_is_windowed(llm, index)) l->attention.rotation = &llm->rotations[1];
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, NULL));
  RDNA_TRY(rdna__arch_has_head_norms(llm, index, &l->attention));
  return rdna__arch_post_norms(llm, index, l);
}

const rdna__llm_arch rdna__arch_olmo2 = {"olmo2", keys, layer};
