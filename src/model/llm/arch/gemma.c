/* Gemma 2 (Gemma Team, 2024) and Gemma 3 (2025): norms before and after each block, an embedding that is scaled, GELU
 * in the gate, windows in most layers; Gemma 2 with soft caps on scores and logits, Gemma 3 with norms of the heads of
 * q and k, with rotary positions of their own in layers that have a window, and with pictures whose tokens see each
 * other both ways; EmbeddingGemma (2025), a Gemma 3 whose tokens see those behind them, half of the window to each
 * side. Norms stand in files with 1 added. */
#include <math.h>

#include "base/status.h"
#include "model/llm/arch/arch.h"

/* The largest model of each divides scores by the width of a head as the sizes give it, not as it is. */
enum { GEMMA2_27B_LAYERS = 46, GEMMA3_27B_LAYERS = 62 };

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  llm->decoder.embedding_scale = (float)sqrt(llm->info.width);
  return rdna__key_number_or_none(&llm->weights, "final_logit_softcapping", &llm->decoder.logit_softcap);
}

static rdna_status gemma2_keys(rdna_llm *llm) {
  RDNA_TRY(keys(llm));
  if (llm->decoder.logit_softcap == 0) llm->decoder.logit_softcap = 30;
  RDNA_TRY(rdna__arch_window(llm));
  if (llm->config.window == 0) llm->config.window = 4096;
  RDNA_TRY(rdna__arch_period(llm, 2));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

static rdna_status gemma3_keys(rdna_llm *llm) {
  double of_windows;
  RDNA_TRY(keys(llm));
  llm->decoder.whole_pictures = true;
  RDNA_TRY(rdna__arch_window(llm));
  RDNA_TRY(rdna__arch_period(llm, 6));
  RDNA_TRY(rdna__key_number(&llm->weights, "rope.freq_base", 1e6, &llm->config.rope_base));
  RDNA_TRY(rdna__key_number(&llm->weights, "rope.freq_base_swa", 10000, &of_windows));
  RDNA_TRY(rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES));
  return rdna__arch_rope_of_windows(llm, of_windows, llm->config.rotated);
}

static rdna_status embedding_keys(rdna_llm *llm) {
  RDNA_TRY(gemma3_keys(llm));
  llm->decoder.bidirectional = true;
  if (llm->config.window > 0) llm->config.window = llm->config.window / 2 + 1; /* with the token itself */
  return RDNA_OK;
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l, int largest) {
  const rdna_llm_info *info = &llm->info;
  double of_head = info->layers == largest ? (double)info->width / info->heads : info->head_dim;
  RDNA_TRY(rdna__arch_layer(llm, index, l));
  l->attention.scale = (float)(1 / sqrt(of_head));
  RDNA_TRY(rdna__arch_scale(llm, &l->attention));
  l->ffn.activation = RDNA__NN_GATE_GELU_TANH;
  l->ffn.wide = true;
  return rdna__arch_post_norms(llm, index, l);
}

static rdna_status gemma2_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  double softcap;
  RDNA_TRY(layer(llm, index, l, GEMMA2_27B_LAYERS));
  RDNA_TRY(rdna__key_number(&llm->weights, "attn_logit_softcapping", 50, &softcap));
  l->attention.softcap = (float)softcap;
  return RDNA_OK;
}

static rdna_status gemma3_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(layer(llm, index, l, GEMMA3_27B_LAYERS));
  if (rdna__arch_is_windowed(llm, index)) l->attention.rotation = &llm->rotations[1];
  return rdna__arch_has_head_norms(llm, index, &l->attention);
}

const rdna__llm_arch rdna__arch_gemma2 = {"gemma2", gemma2_keys, gemma2_layer};
const rdna__llm_arch rdna__arch_gemma3 = {"gemma3", gemma3_keys, gemma3_layer};
const rdna__llm_arch rdna__arch_gemma_embedding = {"gemma-embedding", embedding_keys, gemma3_layer};
