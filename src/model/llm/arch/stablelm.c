/* Models with LayerNorm and its biases: StableLM (Stability AI, 2023, 2024), whose largest has attention and the
 * feed-forward block side by side; StarCoder 2 (BigCode, 2024), with biases everywhere and no gate; Nemotron and
 * Minitron (NVIDIA, 2024), without a gate and with the square of ReLU. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_layer_norm_keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  if (rdna__has_in_layer(&llm->weights, index, "attn_q_norm.weight"))
    return rdna__fail(RDNA_UNSUPPORTED, "the model has LayerNorm of the heads of q and k, which this library has not");
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, NULL));
  if (rdna__has_in_layer(&llm->weights, index, "ffn_norm.weight")) return rdna__arch_norms(llm, index, l);
  l->parallel = true;
  return rdna__arch_norm(llm, index, "attn_norm", &l->attention_norm);
}

static rdna_status starcoder2_keys(rdna_llm *llm) {
  RDNA_TRY(keys(llm));
  return rdna__arch_window(llm);
}

static rdna_status starcoder2_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_plain_ffn(llm, index, &l->ffn));
  l->ffn.activation = RDNA__NN_GATE_GELU_TANH;
  return rdna__arch_norms(llm, index, l);
}

static rdna_status nemotron_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_plain_ffn(llm, index, &l->ffn));
  l->ffn.activation = RDNA__NN_GATE_RELU_SQUARED;
  l->ffn.wide = true;
  return rdna__arch_norms(llm, index, l);
}

const rdna__llm_arch rdna__arch_stablelm = {"stablelm", keys, layer};
const rdna__llm_arch rdna__arch_starcoder2 = {"starcoder2", starcoder2_keys, starcoder2_layer};
const rdna__llm_arch rdna__arch_nemotron = {"nemotron", keys, nemotron_layer};
