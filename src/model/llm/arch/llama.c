/* Llama 1 to 3 (Touvron et al., 2023; Grattafiori et al., 2024) and Mistral 7B (Jiang et al., 2023): RMS norms before
 * blocks, RoPE over neighbouring pairs, grouped heads, SwiGLU. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  int experts;
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(rdna__key_count_or_none(&llm->weights, "expert_count", &experts));
  if (experts > 0)
    return rdna__fail(RDNA_UNSUPPORTED, "the model has %d experts; this library runs dense Llama models", experts);
  RDNA_TRY(rdna__arch_window(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_INTERLEAVED);
}

const rdna__llm_arch rdna__arch_llama = {"llama", keys, rdna__arch_layer};
