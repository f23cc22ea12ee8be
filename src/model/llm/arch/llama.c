/* Llama 1 to 3 (Touvron et al., 2023; Grattafiori et al., 2024), Mistral 7B (Jiang et al., 2023) and Mixtral (2024):
 * RMS norms before blocks, RoPE over neighbouring pairs, grouped heads, SwiGLU, or a mixture of experts in its place.
 */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(rdna__arch_window(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_INTERLEAVED);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  int experts;
  RDNA_TRY(rdna__key_count_or_none(&llm->weights, "expert_count", &experts));
  return experts == 0 ? rdna__arch_layer(llm, index, l) : rdna__arch_expert_layer(llm, index, l);
}

/* ERNIE 4.5 (Baidu, 2025), its dense models. */
const rdna__llm_arch rdna__arch_ernie4_5 = {"ernie4_5", keys, layer};
const rdna__llm_arch rdna__arch_llama = {"llama", keys, layer};
