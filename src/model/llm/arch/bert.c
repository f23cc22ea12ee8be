/* Encoders, whose tokens see their whole text: BERT (Devlin et al., 2018) and RoBERTa, which are the same but for their
 * vocabularies, and Nomic's (2024), with rotary positions and SwiGLU. A norm stands behind the embeddings and behind
 * each block. */
#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_layer_norm_keys(llm));
  RDNA_TRY(rdna__key_number(&llm->weights, "attention.layer_norm_epsilon", 1e-12, &llm->decoder.norm_epsilon));
  llm->decoder.bidirectional = llm->decoder.post_norm = true;
  llm->rotations[0] = rdna__arch_no_rotation();
  int types;
  if (!rdna_gguf_has_tensor(llm->weights.file, "token_types.weight")) return RDNA_OK;
  RDNA_TRY(rdna__table_rows(&llm->weights, "token_types.weight", &types));
  return rdna__load_table(&llm->weights, "token_types.weight", types, llm->info.width, &llm->decoder.type_embedding);
}

static rdna_status bert_keys(rdna_llm *llm) {
  RDNA_TRY(keys(llm));
  int positions;
  RDNA_TRY(rdna__table_rows(&llm->weights, "position_embd.weight", &positions));
  if (positions < llm->info.context)
    return rdna__fail(RDNA_BAD_DATA, "the model has embeddings of %d positions, and a context of %d", positions,
                      llm->info.context);
  return rdna__load_table(&llm->weights, "position_embd.weight", positions, llm->info.width,
                          &llm->decoder.position_embedding);
}

static rdna_status nomic_keys(rdna_llm *llm) {
  RDNA_TRY(keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

/* Norms as the decoder has them, each before a block: the embeddings' before the first, and the one behind a layer
 * before the next. */
static rdna_status norms(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_norm(llm, index, "attn_output_norm", &l->ffn_norm));
  if (index > 0) return rdna__arch_norm(llm, index - 1, "layer_output_norm", &l->attention_norm);
  return rdna__arch_global_norm(llm, "token_embd_norm", &l->attention_norm);
}

static rdna_status bert_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_plain_ffn(llm, index, &l->ffn));
  l->ffn.activation = RDNA__NN_GATE_GELU;
  return norms(llm, index, l);
}

static rdna_status nomic_layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, NULL));
  return norms(llm, index, l);
}

const rdna__llm_arch rdna__arch_bert = {"bert", bert_keys, bert_layer};
const rdna__llm_arch rdna__arch_nomic_bert = {"nomic-bert", nomic_keys, nomic_layer};
