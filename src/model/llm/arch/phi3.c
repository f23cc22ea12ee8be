/* Phi-3 and Phi-4 (Abdin et al., 2024): q, k and v in one matrix and gate and up in another, RoPE over a part of each
 * head, and factors of its frequencies for short and for long contexts (LongRoPE, Ding et al., 2024). */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/llm/arch/arch.h"

/* Frequencies divided by the factors |name|, where the file has them. */
static rdna_status divided(rdna_llm *llm, const char *name, rdna_tensor *out) {
  float *factors;
  RDNA_TRY(rdna__read_vector(&llm->weights, name, llm->config.rotated / 2, &factors));
  rdna_status status = rdna__arch_rotation_by(llm, llm->config.rope_base, factors, out);
  free(factors);
  return status;
}

static rdna_status keys(rdna_llm *llm) {
  rdna__nn_rotation *rotation = &llm->rotations[0];
  const rdna__weights *w = &llm->weights;
  RDNA_TRY(rdna__arch_keys(llm));
  RDNA_TRY(rdna__arch_window(llm));
  if (!rdna_gguf_has_tensor(w->file, "rope_factors_long.weight")) return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
  RDNA_TRY(rdna__key_count(w, "rope.scaling.original_context_length", llm->info.context, &rotation->short_context));
  RDNA_TRY(divided(llm, "rope_factors_long.weight", &rotation->long_inv_freq));
  RDNA_TRY(divided(llm, "rope_factors_short.weight", &rotation->inv_freq));
  double original = rotation->short_context, stretched = llm->info.context / original, magnitude;
  double of_contexts = stretched > 1 ? sqrt(1 + log(stretched) / log(original)) : 1;
  RDNA_TRY(rdna__key_number(w, "rope.scaling.attn_factor", of_contexts, &magnitude));
  rotation->magnitude = (float)magnitude;
  rotation->layout = RDNA_ROPE_LAYOUT_HALVES;
  return RDNA_OK;
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, "ffn_up"));
  return rdna__arch_norms(llm, index, l);
}

const rdna__llm_arch rdna__arch_phi3 = {"phi3", keys, layer};
