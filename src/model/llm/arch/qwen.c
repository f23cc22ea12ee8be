/* Qwen2 (Yang et al., 2024), with biases of q, k and v, and Qwen3 (Yang et al., 2025), with a norm of each head of q
 * and k instead: RMS norms before blocks, RoPE over halves, grouped heads, SwiGLU. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

static rdna_status qwen3_layer(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  RDNA_TRY(rdna__arch_layer(llm, index, layer));
  return rdna__arch_has_head_norms(llm, index, &layer->attention);
}

const rdna__llm_arch rdna__arch_qwen2 = {"qwen2", keys, rdna__arch_layer};
const rdna__llm_arch rdna__arch_qwen3 = {"qwen3", keys, qwen3_layer};
