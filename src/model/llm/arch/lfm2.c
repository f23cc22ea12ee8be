/* LFM2 (Liquid AI, 2025), dense and with experts: most layers are short convolutions, the others attention with norms
 * of the heads of q and k. The norm behind the last layer has the name of one of the embedding. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

static rdna_status load_convolution(rdna_llm *llm, int index, rdna__nn_recurrent *r) {
  int64_t width = llm->info.width;
  const rdna__part in = {"shortconv.in_proj", &r->qkv, 3 * width, width, true};
  const rdna__part out = {"shortconv.out_proj", &r->output, width, width, true};
  RDNA_TRY(rdna__key_count(&llm->weights, "shortconv.l_cache", 0, &r->width));
  r->v_heads = 1;
  r->v_dim = (int)width;
  RDNA_TRY(rdna__load_parts(&llm->weights, index, &in, 1, NULL, NULL));
  RDNA_TRY(rdna__load_parts(&llm->weights, index, &out, 1, NULL, NULL));
  return rdna__load_layer_values(&llm->weights, index, "shortconv.conv.weight", width, r->width, &r->convolution);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  int experts;
  if (rdna__has_in_layer(&llm->weights, index, "shortconv.in_proj.weight")) {
    RDNA_TRY(load_convolution(llm, index, &l->recurrent));
  } else {
    RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
    RDNA_TRY(rdna__arch_has_head_norms(llm, index, &l->attention));
  }
  RDNA_TRY(rdna__arch_norms(llm, index, l));
  RDNA_TRY(rdna__key_count_or_none(&llm->weights, "expert_count", &experts));
  if (experts == 0) return rdna__arch_ffn(llm, index, &l->ffn, NULL);
  l->moe.normalised = true;
  return rdna__arch_dense_or_experts(llm, index, l, RDNA__ARCH_SIGMOID);
}

const rdna__llm_arch rdna__arch_lfm2 = {"lfm2", keys, layer};
const rdna__llm_arch rdna__arch_lfm2moe = {"lfm2moe", keys, layer};
