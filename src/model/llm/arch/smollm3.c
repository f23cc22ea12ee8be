/* SmolLM3 (Bakouch et al., 2025): a Llama whose every fourth layer knows no positions (NoPE, Yang et al., 2025). */
#include "base/status.h"
#include "model/llm/arch/arch.h"

enum { PERIOD = 4 };

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  llm->rotations[1] = rdna__arch_no_rotation();
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_INTERLEAVED);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  if ((index + 1) % PERIOD == 0) l->attention.rotation = &llm->rotations[1];
  RDNA_TRY(rdna__arch_scale(llm, &l->attention));
  return rdna__arch_layer(llm, index, l);
}

const rdna__llm_arch rdna__arch_smollm3 = {"smollm3", keys, layer};
