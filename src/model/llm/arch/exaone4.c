/* EXAONE 4 (LG AI Research, 2025): norms after blocks instead of before them, and of the heads of q and k; in its
 * larger model windows in three layers of four, and no positions in the fourth. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(rdna__arch_window(llm));
  RDNA_TRY(rdna__arch_period(llm, 4));
  llm->rotations[1] = rdna__arch_no_rotation();
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  if (llm->config.window > 0 && !rdna__arch_is_windowed(llm, index)) l->attention.rotation = &llm->rotations[1];
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_has_head_norms(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, NULL));
  return rdna__arch_post_norms(llm, index, l);
}

const rdna__llm_arch rdna__arch_exaone4 = {"exaone4", keys, layer};
