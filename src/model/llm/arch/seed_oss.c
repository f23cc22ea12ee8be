/* Seed-OSS (ByteDance Seed, 2025): as Qwen2, with heads of a size of their own and another name for a norm. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, NULL));
  return rdna__arch_norms_by_other_names(llm, index, l);
}

const rdna__llm_arch rdna__arch_seed_oss = {"seed_oss", keys, layer};
